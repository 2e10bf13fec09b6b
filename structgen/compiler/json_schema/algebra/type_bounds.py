"""Type bounds: what a schema says about each JSON type; exactly for scalars, roughly for arrays and objects.

Scalars have an algebra of their own, so bounds are closed under *and*, *or* and *not* without any splitting into
clauses. Of arrays and objects it knows whether none, all, or perhaps some are allowed. That settles most questions
("can these two alternatives overlap?") before any shape is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeVar

from ....budget import Meter
from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet


class Kleene(IntEnum):
    """How many of the arrays, or objects: Kleene's three-valued logic, in which *and* is `min` and *or* is `max`."""

    NONE = 0
    SOME = 1
    ALL = 2


BOOLEANS = frozenset({False, True})
_Part = TypeVar("_Part")


class TypeBounds(NamedTuple):
    """See the module."""

    null: bool
    booleans: frozenset[bool]
    numbers: NumberSet
    strings: StringSet
    arrays: Kleene
    objects: Kleene

    def is_empty(self) -> bool:
        """Whether it is certain that no value satisfies this."""
        return not (self.null or self.booleans or self.arrays or self.objects) and (
            self.numbers.is_empty() and self.strings.is_empty()
        )


EVERYTHING = TypeBounds(True, BOOLEANS, NumberSet.ANY, StringSet.ANY, Kleene.ALL, Kleene.ALL)
NOTHING = TypeBounds(False, frozenset(), NumberSet.EMPTY, StringSet.EMPTY, Kleene.NONE, Kleene.NONE)


def meet(left: TypeBounds, right: TypeBounds, meter: Meter) -> TypeBounds:
    """What both allow."""
    if left is EVERYTHING:
        return right
    if right is EVERYTHING:
        return left
    return TypeBounds(
        left.null and right.null,
        left.booleans & right.booleans,
        left.numbers.intersect(right.numbers, meter),
        left.strings.intersect(right.strings, meter),
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
        left.numbers.union(right.numbers, meter),
        left.strings.union(right.strings, meter),
        max(left.arrays, right.arrays),
        max(left.objects, right.objects),
    )


def complement(bounds: TypeBounds, meter: Meter) -> TypeBounds:
    """What it does not allow."""
    return TypeBounds(
        not bounds.null,
        BOOLEANS - bounds.booleans,
        bounds.numbers.complement(meter),
        bounds.strings.complement(meter),
        Kleene(Kleene.ALL - bounds.arrays),
        Kleene(Kleene.ALL - bounds.objects),
    )


def any_of(bounds: list[TypeBounds], meter: Meter) -> TypeBounds:
    """What any of them allows."""
    return folded(bounds, lambda left, right: join(left, right, meter), meter)


def exactly_one(bounds: list[TypeBounds], meter: Meter) -> TypeBounds:
    """What exactly one of them allows; ``SOME`` of arrays or objects unless that is plain from the extents."""

    def combined(
        left: tuple[TypeBounds, TypeBounds], right: tuple[TypeBounds, TypeBounds]
    ) -> tuple[TypeBounds, TypeBounds]:
        both = meet(left[0], right[0], meter)
        twice = join(left[1], right[1], meter)
        return join(left[0], right[0], meter), twice if both.is_empty() else join(twice, both, meter)

    some, several = folded([(bounds, NOTHING) for bounds in bounds], combined, meter)
    return some if several is NOTHING else meet(some, complement(several, meter), meter)


def folded(parts: list[_Part], combine: Callable[[_Part, _Part], _Part], meter: Meter) -> _Part:
    """All parts combined; two and two, so that big sets are not copied often."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        rest = parts[-1:] if len(parts) % 2 else []
        combined = [combine(left, right) for left, right in meter.each(pairs, "comparing alternatives", every=1)]
        parts = combined + rest
    return parts[0]
