"""Arrays whose items must differ: each value that an item can have becomes an option of its own.

Which values have been there is then a matter of one bit for each, so this is exact where the values are few. A
finite memory cannot do more: it would have to tell apart all sets of values. Where they are strings, numbers,
booleans and null, their set can be part of the configuration (`structgen.runtime.pushdown.distinct`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from math import comb
from typing import TypeVar

from ..normal_form.shapes import ArrayShape, Choice, ObjectShape, Option, Ref, Value
from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet
from .builder import Builder
from .tallies import MAX_COUNT

_Member = TypeVar("_Member")

#: So many sets of values seen are told apart.
_MAX_SETS = 4096

#: More values than that are never listed.
_MAX_VALUES = 256


def without_repeats(builder: Builder, shape: ArrayShape, pointer: str) -> tuple[ArrayShape, bool]:
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
    why = _obstacle(builder, shape)
    if why:
        builder.relax(
            "uniqueItems", pointer, why,
            "Bound the items by an enum (of up to 12 values, or more with a small maxItems), or drop uniqueItems.",
        )  # fmt: skip
    return plain, not why


class _TooManyError(Exception):
    """The values of an item are not few."""


def _obstacle(builder: Builder, shape: ArrayShape) -> str:
    """Why items can't be told apart when a text is followed; nothing where they can."""
    values = [[builder.values[option.value] for option in choice] for choice in (*shape.prefix, shape.rest)]
    if not builder.keeps_sets or shape.contains:
        return "the items have too many different values for all sets of them to be told apart"
    if any(map(_has_containers, chain(*values))):
        return "the items have too many different values, arrays or objects among them, for all sets to be told apart"
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


def _has_containers(value: Value) -> bool:
    return bool(value.arrays or value.objects)


def _has_values(value: Value, count: int, builder: Builder) -> bool:
    """Whether a value without containers is seen to have so many members."""
    found = value.null + len(value.booleans)
    if value.numbers is not None and found < count:
        numbers = value.numbers.values(count)
        found += count if numbers is None else len(numbers)
    if value.strings is not None and found < count:
        found += value.strings.several(count - found, builder.meter)
    return found >= count


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
