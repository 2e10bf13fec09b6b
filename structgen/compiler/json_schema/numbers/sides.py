"""The numbers on one side of zero, laid out for reading digit by digit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from ....budget import Meter
from .comparators import Tail, Whole
from .divisors import Divisor, Remainder
from .interval_set import NEVER, IndicatorSum, IntervalSet
from .literals import plain_digits

#: For each divisor its remainder, or None where it does not matter any more.
Remainders: TypeAlias = tuple[Remainder | None, ...]

#: What the ten digits do to a remainder that does not matter.
_NOTHING: tuple[None, ...] = (None,) * 10


@dataclass(frozen=True)
class Cell:
    """What is allowed in a stretch of the line, spelled plainly and written otherwise."""

    plain: IndicatorSum
    written: IndicatorSum


class Side:
    """The numbers on one side of zero, by their distance from it.

    ``points`` begin with 0; ``at[i]`` says whether point i is allowed (spelled plainly, written otherwise), and
    ``cells[i]`` what is allowed between it and the next.
    """

    def __init__(self, plain: IntervalSet, written: IntervalSet, negative: bool, meter: Meter) -> None:
        inside = {p.copy_abs() for line in (plain, written) for p in line.points if (p < 0 if negative else p > 0)}
        self.points = [Decimal(0), *sorted(inside)]
        values = [p.copy_negate() for p in self.points] if negative else self.points
        self.at = [(v in plain and v == v.to_integral_value(), v in written) for v in values]
        place = bisect_left if negative else bisect_right
        self.cells = [
            Cell(plain.between[place(plain.points, v)], written.between[place(written.points, v)]) for v in values
        ]
        # At least a state where the digits so far are a point's, and one where they are not.
        meter.check_states(2 * sum(map(plain_digits, self.points)), "spelling the bounds of numbers")
        texts = [f"{p:f}".partition(".") for p in self.points]
        self.whole = Whole([whole for whole, _, _ in texts])
        self.tail = Tail([fraction.rstrip("0") for _, _, fraction in texts])
        conditions = {c for cell in self.cells for c in (cell.plain, cell.written)}
        lattices = sorted({lattice for condition in conditions for lattice, _ in condition.terms})
        self.divisors = [Divisor(lattice, meter) for lattice in lattices]
        self._order = {lattice: i for i, lattice in enumerate(lattices)}
        #: By cell: the divisors that fractions there ask for, and those that any spelling does.
        self._asked = [
            (self._divisors_of(cell.written), self._divisors_of(cell.plain, cell.written)) for cell in self.cells
        ]
        #: Whether there is nothing beyond the last point.
        self.ends = self.cells[-1] == Cell(NEVER, NEVER)
        self.has_fractions = any(c.written is not NEVER for c in self.cells) or any(w for _, w in self.at)

    def is_like(self, other: Side) -> bool:
        """Whether the same distances from zero are allowed on both sides."""
        return (self.points, self.at, self.cells) == (other.points, other.at, other.cells)

    @property
    def beyond_zero(self) -> bool:
        """Whether anything but zero is allowed."""
        return any(c.plain is not NEVER or c.written is not NEVER for c in self.cells) or any(
            a or b for a, b in self.at[1:]
        )

    def satisfied(self, condition: IndicatorSum, remainders: Remainders) -> bool:
        """Whether a condition holds for what was read so far."""
        value = condition.base
        for lattice, factor in condition.terms:
            i = self._order[lattice]
            remainder = remainders[i]
            assert remainder is not None
            value += factor * self.divisors[i].divides(remainder)
        return value == 1

    def _divisors_of(self, *conditions: IndicatorSum) -> frozenset[int]:
        return frozenset(self._order[lattice] for condition in conditions for lattice, _ in condition.terms)

    def needed(self, cell: int, remainders: Remainders, *, plain: bool) -> Remainders:
        """Only the remainders that a cell's conditions ask for, that of plain spelling among them if asked for."""
        asked = self._asked[cell][plain]
        if len(asked) == len(remainders):
            return remainders
        return tuple([remainder if i in asked else None for i, remainder in enumerate(remainders)])

    def stepped(self, remainders: Remainders) -> list[Remainders]:
        """By digit before the point, the remainders after it."""
        rows = [_NOTHING if r is None else d.row(r) for d, r in zip(self.divisors, remainders, strict=True)]
        return list(zip(*rows, strict=True)) if rows else [()] * 10
