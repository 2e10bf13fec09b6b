"""Arrays whose items must differ: each value that an item can have becomes an option of its own.

Which values have been there is then a matter of one bit for each, so this is exact where the values are few. A
finite memory cannot do more: it would have to tell apart all sets of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import TypeVar

from ..normal_form.shapes import ArrayShape, Choice, ObjectShape, Option, Ref, Value
from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet
from .builder import Builder

_Member = TypeVar("_Member")

#: So many sets of values seen are told apart.
_MAX_SETS = 4096

#: More values than that are never listed.
_MAX_VALUES = 256


def without_repeats(builder: Builder, shape: ArrayShape, pointer: str) -> ArrayShape:
    """A shape whose options are single values, each with a mark of its own above those of ``contains``.

    Raises `UnsupportedError` where there are too many values, unless the builder may relax; ``pointer`` is for that.
    """
    longest = len(shape.prefix) if not shape.rest else None
    most = min((n for n in (shape.max_items, longest) if n is not None), default=None)
    if most is not None and most <= 1:
        return shape._replace(unique=False)
    marks: dict[Ref, int] = {}
    first = len(shape.contains)
    try:
        prefix = tuple(_split(builder, choice, marks, first) for choice in shape.prefix)
        rest = _split(builder, shape.rest, marks, first)
    except _TooManyError:
        return _relaxed(builder, shape, pointer)
    together = len(marks) if most is None else min(most, len(marks))
    if sum(comb(len(marks), k) for k in range(together + 1)) > _MAX_SETS:
        return _relaxed(builder, shape, pointer)
    return shape._replace(prefix=prefix, rest=rest)


class _TooManyError(Exception):
    """The values of an item are not few."""


def _relaxed(builder: Builder, shape: ArrayShape, pointer: str) -> ArrayShape:
    builder.relax(
        "uniqueItems",
        pointer,
        "the items have too many different values for all sets of them to be told apart",
        "Bound the items by an enum (of up to 12 values, or more with a small maxItems), or drop uniqueItems.",
    )
    return shape._replace(unique=False)


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
