"""Which exponents a mantissa may have, so that the number is in the set.

A mantissa has one digit, not 0, before the point. It compares with a point of the line like the digits of the two,
if their powers of ten are equal, and else like the powers. So for each place of the mantissa among the points'
digits, the exponents that lead into a stretch of the line are a range.

In a stretch where only multiples are allowed, a number with j digits after the point and exponent e is a multiple of
10^(e - j). That is used for small fractions only, since JSON writers give them an exponent; for them it suffices.
Where numbers are written freely, M 10^(e - j), for the digits M to the last that is not 0, is a multiple of 2^a 5^b c
for exponents e from j + max(a - v2, b - v5) on, if c divides M, and never else; v2 and v5 say how often 2 and 5
divide M, one of them not at all. So M counts by its remainder modulo c and what a and b differ by.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from decimal import Decimal
from math import lcm
from typing import NamedTuple

from .comparators import Open, Tail
from .exponents import Range
from .interval_set import NEVER, IndicatorSum, Multiples
from .literals import SMALL, has_exponent

#: Digits after the point that 64-bit floats need at most.
_FLOAT_PLACES = 16

#: With more points than this on a side, mixed sets are spelled without exponents: the ranges would be many.
_MAX_POINTS = 64

#: So many remainders of mantissas are told apart; of other multiples fewer exponents are known.
_MOST_REMAINDERS = 64


class Mantissa(NamedTuple):
    """What was read: the place among the points' digits, and the digits after the point where they matter.

    Where numbers are written freely, ``places`` are those to the last digit that is not 0, ``zeros`` those behind it,
    and ``remainder`` that of the digits to there.
    """

    place: Open | int
    places: int
    zeros: int = 0
    remainder: int = 0


class Mantissas:
    """The mantissas on one side of zero.

    Parameters
    ----------
    points:
        Ascending distances from zero, the first is 0.
    digits:
        Of all points but the first, without zeros at either end.
    conditions, at:
        What is allowed beyond each point, and whether the point is.
    free:
        Whether numbers are written freely.
    """

    def __init__(
        self, points: list[Decimal], digits: list[str], conditions: list[IndicatorSum], at: list[bool], *, free: bool
    ) -> None:
        self._tail = Tail(sorted(set(digits)))
        powers = (point.adjusted() for point in points[1:])
        self._points = [(bisect_left(self._tail.landmarks, d), p) for d, p in zip(digits, powers, strict=True)]
        self._at = at
        self._free = free
        lattices = {lattice for condition in conditions for lattice, _ in condition.terms} if free else set()
        #: The lattices whose multiples are known exactly, and what mantissas' remainders are modulo.
        self._exact: set[Multiples] = set()
        self._modulus = 1
        for lattice in sorted(lattices, key=_modulus):
            if lcm(self._modulus, _modulus(lattice)) <= _MOST_REMAINDERS:
                self._exact.add(lattice)
                self._modulus = lcm(self._modulus, _modulus(lattice))
        self._conditions = conditions
        self._bounds = [_exponent_bounds(condition) for condition in conditions]
        self._counts = bool(self._exact) or any(bounds is not None and bounds[2] for bounds in self._bounds)
        needed = any(inside and (free or has_exponent(p)) for inside, p in zip(at[1:], points[1:], strict=True))
        possible = needed or any(map(self._may_hold, range(len(conditions))))
        self._any = possible and len(points) <= _MAX_POINTS
        self._ranges: dict[tuple[int, bool, Mantissa], tuple[Range, ...]] = {}

    @property
    def start(self) -> Mantissa | None:
        """Before the first digit; None: no number may have an exponent."""
        start = self._tail.start(0, len(self._tail.landmarks))
        return Mantissa(start, -1) if self._any else None

    def step(self, mantissa: Mantissa, digit: int) -> Mantissa:
        """One more digit."""
        place = self._tail.step(mantissa.place, digit)
        if not self._counts:
            return Mantissa(place, 0)
        places = min(mantissa.places + mantissa.zeros + 1, _FLOAT_PLACES + 1)
        if self._free and not digit and mantissa.places <= _FLOAT_PLACES:
            return Mantissa(place, mantissa.places, places - mantissa.places, mantissa.remainder)
        if places > _FLOAT_PLACES:
            return Mantissa(place, places)
        scale = 10 ** (mantissa.zeros + 1)
        return Mantissa(place, places, 0, (mantissa.remainder * scale + digit) % self._modulus)

    def ranges(self, mantissa: Mantissa) -> tuple[Range, ...]:
        """The exponents that the mantissa may have, ascending."""
        before, equal = self._tail.end(mantissa.place)
        key = before, equal, mantissa._replace(place=0, zeros=0)
        if key not in self._ranges:
            self._ranges[key] = tuple(_joined(self._parts(*key)))
        return self._ranges[key]

    def _parts(self, before: int, equal: bool, mantissa: Mantissa) -> Iterator[Range]:
        """The exponents for each stretch and point of the line, ascending."""
        low: int | None = None  # the least exponent with which the number is beyond the point before the stretch
        for k in range(len(self._conditions)):
            high, hit, following = None, None, None
            if k < len(self._points):
                digits, power = self._points[k]
                following = power if digits < before else power + 1
                hit = power if equal and digits == before else None
                high = following - 1 if hit is None else power - 1
            for least, most in self._held(k, mantissa):
                yield (
                    least if low is None else low if least is None else max(low, least),
                    most if high is None else high if most is None else min(high, most),
                )
            if hit is not None and self._at[k + 1]:
                yield hit, hit
            low = following

    def _is_exact(self, condition: IndicatorSum) -> bool:
        return self._free and all(lattice in self._exact for lattice, _ in condition.terms)

    def _may_hold(self, k: int) -> bool:
        condition = self._conditions[k]
        return condition is not NEVER if self._is_exact(condition) else self._bounds[k] is not None

    def _held(self, k: int, mantissa: Mantissa) -> Iterator[Range]:
        """The exponents with which the number satisfies a condition, ascending; not all, where it is not exact."""
        if self._is_exact(self._conditions[k]):
            yield from self._satisfied(self._conditions[k], mantissa)
            return
        bounds, places = self._bounds[k], mantissa.places
        if bounds is not None and not (bounds[2] and bounds[0] is not None and places > _FLOAT_PLACES):
            least, most, scaled = bounds
            yield least + places if scaled and least is not None else least, most

    def _satisfied(self, condition: IndicatorSum, mantissa: Mantissa) -> Iterator[Range]:
        if mantissa.places > _FLOAT_PLACES:  # whose remainders are not known
            if condition.base:
                yield None, min((min(each.twos, each.fives) - 1 for each, _ in condition.terms), default=None)
            return
        changes: dict[int, int] = {}  # of the sum, by the exponents from which on they hold
        for lattice, factor in condition.terms:
            if mantissa.remainder % lattice.rest == 0:
                least = mantissa.places + _least(lattice, mantissa.remainder)
                changes[least] = changes.get(least, 0) + factor
        value, begin = condition.base, None
        for exponent in sorted(changes):
            if value:
                yield begin, exponent - 1
            value, begin = value + changes[exponent], exponent
        if value:
            yield begin, None


def _modulus(lattice: Multiples) -> int:
    twos, fives, rest = lattice
    return int(rest * (2 ** (twos - fives) if twos > fives else 5 ** (fives - twos)))


def _least(lattice: Multiples, remainder: int) -> int:
    """The least power of ten by which a number, of that remainder and no multiple of 10, is to be multiplied for a
    multiple of the lattice."""
    twos, fives, _ = lattice
    prime, most, least = (2, twos - fives, twos) if twos > fives else (5, fives - twos, fives)
    for _ in range(most):
        if remainder % prime:
            break
        remainder, least = remainder // prime, least - 1
    return least


def _exponent_bounds(condition: IndicatorSum) -> tuple[int | None, int | None, bool] | None:
    """The exponents with which a number surely satisfies a condition, as least and most; None: not known.

    The third: the least one, or else the most, holds for a mantissa without digits after the point, and grows by 1
    with each.
    """
    if condition is NEVER:
        return None
    if condition.base:
        # All but some multiples: whatever is smaller than the smallest.
        sizes = [lattice.generator.adjusted() - 1 for lattice, _ in condition.terms]
        return None, min(sizes, default=None), False
    (lattice, factor), *others = condition.terms
    least = max(lattice.twos, lattice.fives)
    if others or factor != 1 or lattice.rest != 1 or least > SMALL:
        return None
    return least, -1, True


def _joined(ranges: Iterator[Range]) -> Iterator[Range]:
    """Without empty ranges, and neighbours made one."""
    pending: Range | None = None
    for low, high in ranges:
        if low is not None and high is not None and low > high:
            continue
        if pending is not None and pending[1] is not None and low == pending[1] + 1:
            pending = pending[0], high
            continue
        if pending is not None:
            yield pending
        pending = low, high
    if pending is not None:
        yield pending
