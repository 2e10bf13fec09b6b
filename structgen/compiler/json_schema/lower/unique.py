"""Arrays whose items must differ: each value that an item can have becomes an option of its own.

Which values have been there is then a matter of one bit for each, so this is exact where the values are few. A
finite memory cannot do more: it would have to tell apart all sets of values. Elsewhere their set is part of the
configuration (`structgen.runtime.pushdown.distinct`), if enough values are seen to be left for each item.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import TypeVar

from ....budget import Meter
from ...automata.dfa import intersect
from ...patterns.lower import language
from ...patterns.parser import parse
from ..normal_form.shapes import ArrayShape, Choice, ObjectShape, Option, Ref, Value
from ..numbers.numbers import NumberSet
from ..strings.languages import count_of
from ..strings.strings import StringSet
from .builder import Builder
from .tallies import MAX_COUNT

_Member = TypeVar("_Member")

#: So many sets of values seen are told apart.
_MAX_SETS = 4096

#: More values than that are never listed.
_MAX_VALUES = 256

#: Deeper in a value it isn't looked for many.
_MOST_NESTED = 4


def without_repeats(builder: Builder, shape: ArrayShape, pointer: str, level: int) -> tuple[ArrayShape, bool]:
    """A shape whose options are single values, each with a mark of its own above those of ``contains``.

    Where there are too many it is the shape itself, and whether its items are to be told apart when a text is
    followed. Raises `UnsupportedError` where they can't be, unless the builder may relax; ``pointer`` is for that.
    """
    longest = len(shape.prefix) if not shape.rest else None
    most = min((n for n in (shape.max_items, longest) if n is not None), default=None)
    plain = shape._replace(unique=False)
    if most is not None and most <= 1:
        return plain, False
    marks: dict[Ref, int] = {}
    first = len(shape.contains)
    try:
        prefix = tuple(_split(builder, choice, marks, first) for choice in shape.prefix)
        rest = _split(builder, shape.rest, marks, first)
        together = len(marks) if most is None else min(most, len(marks))
        if sum(comb(len(marks), k) for k in range(together + 1)) <= _MAX_SETS:
            return shape._replace(prefix=prefix, rest=rest), False
    except _TooManyError:
        pass
    why = _obstacle(builder, shape, level)
    if why:
        builder.relax(
            "uniqueItems",
            pointer,
            why,
            "Bound the items by an enum (of up to 12 values, or more with a small maxItems), or drop uniqueItems.",
        )
    return plain, not why


#: Each number that can be written without an exponent, once.
_ONCE = r"0|-?(?:[1-9][0-9]*(?:\.[0-9]*[1-9])?|0\.[0-9]*[1-9])"


class _TooManyError(Exception):
    """The values of an item are not few."""


def _obstacle(builder: Builder, shape: ArrayShape, level: int) -> str:
    """Why items can't be told apart when a text is followed; nothing where they can."""
    if not builder.keeps_sets(level):
        return "the items have too many different values for all sets of them to be told apart"
    if shape.contains:
        return _counted_obstacle(builder, shape)
    values = [[builder.values[option.value] for option in choice] for choice in (*shape.prefix, shape.rest)]
    for position in range(min(shape.min_items, MAX_COUNT)):
        # So that an item of any value is left, whatever those before it are.
        choice = values[min(position, len(values) - 1)]
        if not any(_has_values(value, position + 1, builder) for value in choice):
            return f"it is not seen that item {position} can always differ from those before it"
        if position >= len(shape.prefix):
            if any(_has_values(value, shape.min_items, builder) for value in choice):
                break
            return f"it is not seen that {shape.min_items} items can differ"
    return ""


def _counted_obstacle(builder: Builder, shape: ArrayShape) -> str:
    """The same where items are counted by their marks.

    An option that is needed for a mark has had fewer values than that mark asks for, since each of them earned it.
    What is needed for its position or the length alone can be of an option that no mark bounds.
    """
    bounded = sum(1 << mark for mark, count in enumerate(shape.contains) if count.max is not None)
    for position, choice in enumerate((*shape.prefix, shape.rest)):
        for value, marks in choice:
            needed = max((count.min for k, count in enumerate(shape.contains) if marks >> k & 1), default=0)
            if not _has_values(builder.values[value], needed, builder):
                return f"it is not seen that {needed} items that contains counts can differ"
        length = position + 1 if position < len(shape.prefix) else shape.min_items
        free = (builder.values[value] for value, marks in choice if not marks & bounded)
        is_needed = position < max(len(shape.prefix), shape.min_items)
        if is_needed and not any(_has_values(value, length, builder) for value in free):
            return f"beside contains, it is not seen that {length} items can differ"
    return ""


def _has_values(value: Value, count: int, builder: Builder, depth: int = 0) -> bool:
    """Whether a value is seen to have so many members, of which there is always one."""
    if count <= 1:
        return True
    if depth == _MOST_NESTED:
        return False
    found = value.null + len(value.booleans)
    if value.numbers is not None and found < count:
        found += _several(value.numbers, count - found, builder.meter)
    if value.strings is not None and found < count:
        found += value.strings.several(count - found, builder.meter)
    return (
        found + bool(value.arrays) + bool(value.objects) >= count
        or any(_has_arrays(shape, count, builder, depth + 1) for shape in value.arrays)
        or any(_has_objects(shape, count, builder, depth + 1) for shape in value.objects)
    )


def _several(numbers: NumberSet, limit: int, meter: Meter) -> int:
    """How many numbers are seen to be in a set, at most ``limit``."""
    members = numbers.values(limit)
    if members is not None or numbers.digits is None:
        return limit if members is None else len(members)
    found = intersect(numbers.dfa(meter), language(parse(_ONCE), meter, count=False), meter)
    return count_of(found, limit, meter) if found.states else 0


def _some_has(choice: Choice, count: int, builder: Builder, depth: int) -> bool:
    return any(_has_values(builder.values[option.value], count, builder, depth) for option in choice)


def _has_arrays(shape: ArrayShape, count: int, builder: Builder, depth: int) -> bool:
    """Whether there are so many arrays: of several lengths, or that differ in one item."""
    if shape.contains or (shape.unique and shape.min_items > 1):
        return False
    longest = len(shape.prefix) if not shape.rest else None
    most = min((n for n in (shape.max_items, longest) if n is not None), default=None)
    if most == 0:
        return False
    first = shape.prefix[0] if shape.prefix else shape.rest
    if shape.unique:
        return _some_has(first, count - (shape.min_items == 0), builder, depth)
    if most is None or most - shape.min_items + 1 >= count:
        return True
    positions = [*shape.prefix[:most], *([shape.rest] if most > len(shape.prefix) else [])]
    return any(_some_has(choice, count, builder, depth) for choice in positions)


def _has_objects(shape: ObjectShape, count: int, builder: Builder, depth: int) -> bool:
    """Whether there are so many objects: that differ in one member."""
    must = sum(each.required for each in shape.properties)
    if shape.exists or (shape.max_properties is not None and shape.max_properties <= must):
        free = [each.choice for each in shape.properties if each.required] if not shape.exists else []
    else:
        free = [*shape.choices()]
        known = len(shape.properties)
        if any(keys.several(count + known, builder.meter) >= count + known for keys, _ in shape.others):
            return True
    return any(_some_has(choice, count, builder, depth) for choice in free)


def _split(builder: Builder, choice: Choice, marks: dict[Ref, int], first: int) -> Choice:
    """The options of single values; ``marks`` collects the bit of each."""
    options: dict[Option, None] = {}
    for option in choice:
        for single in _singles(builder.values[option.value]):
            ref = builder.single(single)
            mark = marks.setdefault(ref, 1 << (first + len(marks)))
            options[Option(ref, option.marks | mark)] = None
            if len(marks) > _MAX_VALUES:
                raise _TooManyError
    return tuple(options)


def _singles(value: Value) -> Iterator[Value]:
    """The members of a value, each as a value of one member. Raises `_TooManyError`."""
    if value.null:
        yield Value(null=True)
    for flag in value.booleans:
        yield Value(booleans=frozenset({flag}))
    if value.numbers is not None:
        for number in _all(value.numbers.values(_MAX_VALUES)):
            yield Value(numbers=NumberSet.literal([number]))
    if value.strings is not None:
        for text in _all(value.strings.texts(_MAX_VALUES)):
            yield Value(strings=StringSet.literal([text]))
    for array in value.arrays:
        if array.max_items != 0 and (array.prefix or array.rest):
            raise _TooManyError
        yield Value(arrays=(ArrayShape(),))
    for object_ in value.objects:
        if any(p.choice for p in object_.properties) or object_.others:
            raise _TooManyError
        yield Value(objects=(ObjectShape(),))


def _all(members: list[_Member] | None) -> list[_Member]:
    if members is None:
        raise _TooManyError
    return members
