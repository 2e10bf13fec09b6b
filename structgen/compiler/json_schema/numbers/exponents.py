"""The exponents that a number may have, by its mantissa: those with which it lies in an interval."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

from ....budget import Meter
from .comparators import Open, Tail
from .interval_set import ALWAYS, NEVER, NOTHING, IndicatorSum, IntervalSet, tidy

#: The place of the digits so far among those of the points; None where no exponent may follow.
Mantissa: TypeAlias = Open | int | None

#: With more points than this on a side, nothing has an exponent: there would be many sets of them.
_MOST_POINTS = 64


class Exponents:
    """The exponents on one side of zero. A mantissa has one digit before the point, which is not 0.

    Where a lattice has to do with it, no number has one. Nor have single points, but beside an interval or if ``free``.

    Parameters
    ----------
    points:
        Ascending distances from zero, zero itself left out.
    digits:
        Those of each point, without zeros at either end.
    at:
        Whether each point is allowed.
    between:
        The numbers that are, below the first point, between neighbours, above the last.
    free:
        Whether single points are written as others are.
    """

    def __init__(
        self,
        points: Sequence[Decimal],
        digits: list[str],
        at: Sequence[bool],
        between: Sequence[IndicatorSum],
        meter: Meter,
        *,
        free: bool,
    ) -> None:
        self._tail = Tail(sorted(set(digits)))
        self._at, self._between = at, [each if each is ALWAYS else NEVER for each in between]
        possible = ALWAYS in self._between or (free and any(at))
        self.start: Mantissa = None
        if possible and len(points) <= _MOST_POINTS:
            self.start = self._tail.start(0, len(self._tail.landmarks))
        ranks = [bisect_left(self._tail.landmarks, each) for each in digits]
        self._points = [(point.adjusted(), rank) for point, rank in zip(points, ranks, strict=True)]
        self._meter = meter
        self._known: dict[tuple[int, bool], IntervalSet] = {}

    def step(self, mantissa: Mantissa, digit: int) -> Mantissa:
        """One more digit."""
        return None if mantissa is None else self._tail.step(mantissa, digit)

    def after(self, mantissa: Mantissa) -> IntervalSet:
        """Those that may follow."""
        if mantissa is None:
            return NOTHING
        key = self._tail.end(mantissa)
        if key not in self._known:
            self._known[key] = self._after(*key)
        return self._known[key]

    def _after(self, less: int, is_equal: bool) -> IntervalSet:
        powers = sorted({power for power, _ in self._points})
        at = []
        for power in powers:
            number = power, less
            k = bisect_left(self._points, number)
            is_point = is_equal and self._points[k : k + 1] == [number]
            at.append(self._at[k] if is_point else self._between[k] is ALWAYS)
        below = [self._between[bisect_left(self._points, (power, 0))] for power in powers]
        return tidy([Decimal(power) for power in powers], at, [*below, self._between[-1]], self._meter)
