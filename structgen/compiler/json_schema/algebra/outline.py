"""Outlines: what a schema says about each JSON type; exactly for scalars, roughly for arrays and objects.

Scalars have an algebra of their own, so an outline is closed under *and*, *or* and *not* without any splitting into
cases. Of arrays and objects it knows whether none, all, or perhaps some are allowed. That settles most questions
("can these two alternatives overlap?") before any shape is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeVar

from ....budget import Meter
from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet


class Extent(IntEnum):
    """How many of the arrays, or objects: a three-valued logic, in which *and* is `min` and *or* is `max`."""

    NONE = 0
    SOME = 1
    ALL = 2


_BOTH = frozenset({False, True})
_NO_BOOLEANS: frozenset[bool] = frozenset()
_Part = TypeVar("_Part")
_Set = TypeVar("_Set", NumberSet, StringSet)


class TypeBounds(NamedTuple):
    """See the module."""

    null: bool
    booleans: frozenset[bool]
    numbers: NumberSet
    strings: StringSet
    arrays: Extent
    objects: Extent

    def is_empty(self) -> bool:
        """Whether it is certain that no value satisfies this."""
        return not (self.null or self.booleans or self.arrays or self.objects) and (
            self.numbers.is_empty() and self.strings.is_empty()
        )


EVERYTHING = TypeBounds(True, _BOTH, NumberSet.ANY, StringSet.ANY, Extent.ALL, Extent.ALL)
NOTHING = TypeBounds(False, _NO_BOOLEANS, NumberSet.EMPTY, StringSet.EMPTY, Extent.NONE, Extent.NONE)


def meet(left: TypeBounds, right: TypeBounds, meter: Meter) -> TypeBounds:
    """What both allow."""
    if left is EVERYTHING:
        return right
    if right is EVERYTHING:
        return left
    return TypeBounds(
        left.null and right.null,
        left.booleans & right.booleans,
        _meet(left.numbers, right.numbers, meter),
        _meet(left.strings, right.strings, meter),
        min(left.arrays, right.arrays),
        min(left.objects, right.objects),
    )


def join(left: TypeBounds, right: TypeBounds, meter: Meter) -> TypeBounds:
    """What either allows."""
    if left is NOTHING:
        return right
    if right is NOTHING:
        return left
    return TypeBounds(
        left.null or right.null,
        left.booleans | right.booleans,
        _join(left.numbers, right.numbers, meter),
        _join(left.strings, right.strings, meter),
        max(left.arrays, right.arrays),
        max(left.objects, right.objects),
    )


def complement(outline: TypeBounds, meter: Meter) -> TypeBounds:
    """What it does not allow."""
    numbers, strings = outline.numbers, outline.strings
    return TypeBounds(
        not outline.null,
        _BOTH - outline.booleans,
        NumberSet.ANY if numbers is NumberSet.EMPTY else numbers.complement(meter),
        StringSet.ANY if strings is StringSet.EMPTY else strings.complement(meter),
        Extent(Extent.ALL - outline.arrays),
        Extent(Extent.ALL - outline.objects),
    )


def any_of(outlines: list[TypeBounds], meter: Meter) -> TypeBounds:
    """What any of them allows."""
    return folded(outlines, lambda left, right: join(left, right, meter), meter)


def exactly_one(outlines: list[TypeBounds], meter: Meter) -> TypeBounds:
    """What exactly one of them allows; ``SOME`` of arrays or objects unless that is plain from the extents."""

    def combined(
        left: tuple[TypeBounds, TypeBounds], right: tuple[TypeBounds, TypeBounds]
    ) -> tuple[TypeBounds, TypeBounds]:
        both = meet(left[0], right[0], meter)
        twice = left[1] if right[1] is NOTHING else right[1] if left[1] is NOTHING else join(left[1], right[1], meter)
        return join(left[0], right[0], meter), twice if both.is_empty() else join(twice, both, meter)

    some, several = folded([(outline, NOTHING) for outline in outlines], combined, meter)
    return some if several is NOTHING else meet(some, complement(several, meter), meter)


def folded(parts: list[_Part], combine: Callable[[_Part, _Part], _Part], meter: Meter) -> _Part:
    """All parts combined; two and two, so that big sets are not copied often."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        rest = parts[-1:] if len(parts) % 2 else []
        parts = []
        for left, right in pairs:
            meter.check_time("comparing alternatives")
            parts.append(combine(left, right))
        parts += rest
    return parts[0]


def _meet(left: _Set, right: _Set, meter: Meter) -> _Set:
    if left is right or left is left.EMPTY or right is right.ANY:
        return left
    if right is right.EMPTY or left is left.ANY:
        return right
    return left.intersect(right, meter)


def _join(left: _Set, right: _Set, meter: Meter) -> _Set:
    if left is right or left is left.ANY or right is right.EMPTY:
        return left
    if right is right.ANY or left is left.EMPTY:
        return right
    return left.union(right, meter)
