"""Sets of numbers, symbolically: intervals of the number line, and what must divide the numbers in them.

A *lattice* is the set of all multiples of a positive number. Whatever ``multipleOf``, ``integer``, and, or and not
can say of a number is a combination of lattices, and the indicator function of every such combination is a sum

    base + c1 [x in L1] + c2 [x in L2] + ...        with base 0 or 1, and integers c

since [x in A] [x in B] = [x in lcm(A, B)]. The indicators of different lattices are linearly independent (evaluate
them at the generators, the coarsest last), so the sum is a normal form: a `IndicatorSum`.

A `IntervalSet` cuts the number line at finitely many points. Between two neighbours one condition holds; each point
itself belongs to the set or does not. Lines are closed under and, or and not.

Numbers come from strangers: ``1e999999999`` is a handful of characters. Nothing here writes a number out; lattices
keep the exponents of 2 and 5 beside the rest, points stay decimals.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Clamped, Context, Decimal, InvalidOperation, Overflow
from functools import lru_cache
from itertools import islice
from math import gcd
from typing import NamedTuple

from ....budget import Meter
from ....errors import BudgetExceededError
from ....system.properties import cached_property

#: More terms in one condition than this are refused: the product of two is quadratic.
_MAX_TERMS = 512

#: Beyond so many digits, numbers are compared but not divided: turning decimals into integers is quadratic.
MAX_DIGITS = 20_000

#: Bit operations in the greatest common divisors of one product; about a second.
_MAX_WORK = 10**10

EXACT = Context(
    prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_FLOOR, traps=[InvalidOperation, Overflow, Clamped]
)
_ROUGH = Context(prec=30, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_FLOOR, traps=[])


class Multiples(NamedTuple):
    """The multiples of 2^twos * 5^fives * rest, with ``rest`` prime to 10: every positive decimal is one such."""

    twos: int
    fives: int
    rest: int

    @classmethod
    def of(cls, generator: Decimal) -> Multiples:
        """The multiples of a positive number."""
        number, exponent = parts(generator)
        twos, number = valuation(number, 2)
        fives, number = valuation(number, 5)
        return cls(twos + exponent, fives + exponent, number)

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, Decimal):
            return False
        if self == ONE:
            return bool(value == value.to_integral_value())
        if not value:
            return True
        number, exponent = parts(value)
        if number % self.rest:
            return False
        return valuation(number, 2)[0] + exponent >= self.twos and valuation(number, 5)[0] + exponent >= self.fives

    def meet(self, other: Multiples) -> Multiples:
        """What is in both: the multiples of the least common multiple."""
        rest = self.rest if self.rest == other.rest else self.rest * other.rest // gcd(self.rest, other.rest)
        return Multiples(max(self.twos, other.twos), max(self.fives, other.fives), rest)

    @property
    def generator(self) -> Decimal:
        """The number whose multiples these are. Up to `MAX_DIGITS` digits, else `BudgetExceededError`."""
        tens = min(self.twos, self.fives)
        if self.twos - tens + self.fives - tens > MAX_DIGITS:
            raise too_long()
        return Decimal(2 ** (self.twos - tens) * 5 ** (self.fives - tens) * self.rest).scaleb(tens, EXACT)


#: The integers.
ONE = Multiples(0, 0, 1)


def parts(value: Decimal) -> tuple[int, int]:
    """``abs(value)`` as (number, exponent of 10). Raises `BudgetExceededError` beyond `MAX_DIGITS` digits."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"not a finite number: {value}")
    if len(digits) > MAX_DIGITS:
        raise too_long()
    return int(Decimal((0, digits, 0))), exponent


def valuation(number: int, prime: int) -> tuple[int, int]:
    """How often ``prime`` divides a positive number, and what is left. Dividing by squares keeps it fast."""
    powers = [prime]
    while number % powers[-1] == 0:
        powers.append(powers[-1] ** 2)
    times = 0
    for i in range(len(powers) - 1, -1, -1):
        if number % powers[i] == 0:
            number //= powers[i]
            times += 1 << i
    return times, number


def too_long() -> BudgetExceededError:
    """The error for arithmetic on absurd numbers."""
    return BudgetExceededError(
        f"multipleOf with numbers that have thousands of digits (at most {MAX_DIGITS:,})",
        where="multipleOf",
        remedy="Use bounds and divisors of a sensible size.",
    )


@dataclass(frozen=True)
class IndicatorSum:
    """A combination of lattices, by its indicator function; see the module. ``terms`` are sorted, none is 0."""

    base: int
    terms: tuple[tuple[Multiples, int], ...] = ()

    def holds(self, value: Decimal) -> bool:
        """Whether a number satisfies it."""
        return self.base + sum(factor for lattice, factor in self.terms if value in lattice) == 1

    @cached_property
    def sparse(self) -> bool:
        """Whether only multiples of the lattices satisfy it, so finitely many numbers of a bounded interval."""
        return self.base == 0

    def invert(self) -> IndicatorSum:
        """What does not satisfy it."""
        if not self.terms:
            return NEVER if self.base else ALWAYS
        return IndicatorSum(1 - self.base, tuple((lattice, -factor) for lattice, factor in self.terms))

    def meet(self, other: IndicatorSum) -> IndicatorSum:
        """What satisfies both."""
        if self is NEVER or other is ALWAYS:
            return self
        if other is NEVER or self is ALWAYS:
            return other
        return _product(self, other)

    def members(self, low: Decimal, high: Decimal | None, meter: Meter) -> Iterator[Decimal]:
        """All numbers of the open interval that satisfy it, ascending; for sparse conditions."""
        last = low
        for step in range(1 << 62):
            if step % 256 == 255:
                meter.check_time("looking for multiples")
            last = min(_next_multiple(lattice, last) for lattice, _ in self.terms)
            if high is not None and last >= high:
                return
            if self.holds(last):
                yield last


NEVER = IndicatorSum(0)
ALWAYS = IndicatorSum(1)
INTEGRAL = IndicatorSum(0, ((ONE, 1),))


@lru_cache(maxsize=4096)
def _product(a: IndicatorSum, b: IndicatorSum) -> IndicatorSum:
    """The product of two indicator functions, term by term."""
    bits = max((lattice.rest.bit_length() for condition in (a, b) for lattice, _ in condition.terms), default=0)
    if len(a.terms) * len(b.terms) * bits**2 > _MAX_WORK:
        raise too_long()
    factors: dict[Multiples, int] = {}
    for lattice, factor in a.terms:
        factors[lattice] = factors.get(lattice, 0) + factor * b.base
        for other, factor_b in b.terms:
            both = lattice.meet(other)
            factors[both] = factors.get(both, 0) + factor * factor_b
    for lattice, factor in b.terms:
        factors[lattice] = factors.get(lattice, 0) + factor * a.base
    terms = tuple(sorted((lattice, factor) for lattice, factor in factors.items() if factor))
    if len(terms) > _MAX_TERMS:
        raise BudgetExceededError(
            f"the definition combines multipleOf in more than {_MAX_TERMS:,} ways",
            where="multipleOf",
            remedy="Use fewer different divisors.",
        )
    if not terms:
        return ALWAYS if a.base * b.base else NEVER
    return IndicatorSum(a.base * b.base, terms)


def _next_multiple(lattice: Multiples, above: Decimal) -> Decimal:
    """The least multiple that is greater. Raises `BudgetExceededError` for absurd sizes."""
    generator = lattice.generator
    if above.adjusted() - generator.adjusted() > MAX_DIGITS:
        raise too_long()
    if generator.adjusted() - above.adjusted() > MAX_DIGITS or not above:
        # `above` is nearly nothing, measured in the lattice.
        return Decimal(0) if above < 0 else generator
    if lattice == ONE:
        return EXACT.add(above.to_integral_value(ROUND_FLOOR), Decimal(1))
    number, exponent = parts(above)
    unit, tens = parts(generator)
    number, unit = number * 10 ** max(0, exponent - tens), unit * 10 ** max(0, tens - exponent)
    times = (-number if above < 0 else number) // unit + 1
    return EXACT.multiply(generator, Decimal(times))


@dataclass(frozen=True)
class IntervalSet:
    """A set of numbers: the ``points`` where it changes, ascending; ``at`` each point; and ``between`` them.

    ``between`` has one condition more than there are points: below the first, between neighbours, above the last.
    """

    points: tuple[Decimal, ...]
    at: tuple[bool, ...]
    between: tuple[IndicatorSum, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.points, self.at, self.between))

    def __hash__(self) -> int:
        return self._hash

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, Decimal):
            return False
        i = bisect_left(self.points, value)
        if i < len(self.points) and self.points[i] == value:
            return self.at[i]
        return self.between[i].holds(value)

    @property
    def is_empty(self) -> bool:
        """Whether there is no member."""
        return not self.points and self.between[0] is NEVER

    @property
    def is_finite(self) -> bool:
        """Whether the members are just some of the points."""
        return all(condition is NEVER for condition in self.between)

    @property
    def modulus_bits(self) -> int:
        """Bits of the largest divisor, about, leaving out its powers of ten."""
        lattices = [lattice for condition in self.between for lattice, _ in condition.terms]
        return max((x.rest.bit_length() + 2 * abs(x.twos - x.fives) for x in lattices), default=0)

    def members(self, limit: int, meter: Meter) -> list[Decimal] | None:
        """All members, ascending, if they are found to be at most ``limit``, else None."""
        if not (self.between[0] is NEVER and self.between[-1] is NEVER):
            return None
        if any(not condition.sparse for condition in self.between) or sum(self.at) > limit:
            return None
        found: list[Decimal] = []
        for i, point in enumerate(self.points):
            if self.at[i]:
                found.append(point)
            if self.between[i + 1] is not NEVER:
                stretch = self.between[i + 1].members(point, self.points[i + 1], meter)
                found += islice(stretch, limit + 1 - len(found))
            if len(found) > limit:
                return None
        return found

    def invert(self) -> IntervalSet:
        """All other numbers."""
        if self is EVERYTHING or self is NOTHING:
            return NOTHING if self is EVERYTHING else EVERYTHING
        flipped = tuple(condition.invert() for condition in self.between)
        return IntervalSet(self.points, tuple(not inside for inside in self.at), flipped)

    def meet(self, other: IntervalSet, meter: Meter) -> IntervalSet:
        """What is in both."""
        if self is other or other is EVERYTHING or self is NOTHING:
            return self
        if self is EVERYTHING or other is NOTHING:
            return other
        return self._combine(other, IndicatorSum.meet, lambda a, b: a and b, meter)

    def join(self, other: IntervalSet, meter: Meter) -> IntervalSet:
        """What is in either."""
        if self is other or other is NOTHING or self is EVERYTHING:
            return self
        if self is NOTHING or other is EVERYTHING:
            return other
        return self._combine(other, _either, lambda a, b: a or b, meter)

    def _combine(
        self,
        other: IntervalSet,
        conditions: Callable[[IndicatorSum, IndicatorSum], IndicatorSum],
        truths: Callable[[bool, bool], bool],
        meter: Meter,
    ) -> IntervalSet:
        """Merge the points of two lines."""
        meter.check_time("combining sets of numbers")
        points = sorted({*self.points, *other.points})
        at = [truths(point in self, point in other) for point in points]
        between = [conditions(self.between[0], other.between[0])]
        for point in points:
            mine, theirs = bisect_right(self.points, point), bisect_right(other.points, point)
            between.append(conditions(self.between[mine], other.between[theirs]))
        return tidy(points, at, between, meter)


def _either(a: IndicatorSum, b: IndicatorSum) -> IndicatorSum:
    if a is ALWAYS or b is NEVER:
        return a
    if b is ALWAYS or a is NEVER:
        return b
    return a.invert().meet(b.invert()).invert()


NOTHING = IntervalSet((), (), (NEVER,))
EVERYTHING = IntervalSet((), (), (ALWAYS,))
INTEGERS = IntervalSet((), (), (INTEGRAL,))


def tidy(points: list[Decimal], at: list[bool], between: list[IndicatorSum], meter: Meter) -> IntervalSet:
    """The normal form: no needless point, no sparse condition where nothing meets it, ends moved to members.

    So integers above 0.5 are those from 1 on. (Not fully normal where two sparse conditions meet.)
    """
    if any(condition is not NEVER and condition.sparse for condition in between):
        points, between = list(points), list(between)
        _tighten(points, at, between, meter)
    new_points: list[Decimal] = []
    new_at: list[bool] = []
    new_between = [between[0]]
    for point, inside, after in zip(points, at, between[1:], strict=True):
        before = new_between[-1]
        if before == after and inside == (before is ALWAYS or (before is not NEVER and before.holds(point))):
            continue
        new_points.append(point)
        new_at.append(inside)
        new_between.append(after)
    if not new_points:
        only = new_between[0]
        return NOTHING if only is NEVER else EVERYTHING if only is ALWAYS else IntervalSet((), (), (only,))
    return IntervalSet(tuple(new_points), tuple(new_at), tuple(new_between))


def _tighten(points: list[Decimal], at: list[bool], between: list[IndicatorSum], meter: Meter) -> None:
    """Drop sparse stretches without members, then move the ends of the others to their first and last."""
    sparse = [i for i, condition in enumerate(between) if condition is not NEVER and condition.sparse]
    for i in sparse:
        if 0 < i < len(points) and not _meets(between[i], points[i - 1], points[i], meter):
            between[i] = NEVER
    for i in sparse:
        condition = between[i]
        low = points[i - 1] if i else None
        high = points[i] if i < len(points) else None
        if low is not None and _can_move(low, at[i - 1], between[i - 1], condition):
            first = next(condition.members(low, high, meter))
            points[i - 1], at[i - 1], low = first, True, first
            if high is not None and not _meets(condition, first, high, meter):
                between[i] = condition = NEVER
        if high is not None and _can_move(high, at[i], between[i + 1], condition):
            mirrored = condition.members(high.copy_negate(), None if low is None else low.copy_negate(), meter)
            last = next(mirrored).copy_negate()  # (unary minus would round)
            points[i], at[i] = last, True
            if low is not None and not _meets(condition, low, last, meter):
                between[i] = NEVER


def _can_move(point: Decimal, inside: bool, outside: IndicatorSum, condition: IndicatorSum) -> bool:
    """Whether nothing is at the point or beyond it, and writing numbers of its size out is affordable."""
    return not inside and outside is NEVER and condition is not NEVER and point.adjusted() < MAX_DIGITS


def _meets(condition: IndicatorSum, low: Decimal, high: Decimal, meter: Meter) -> bool:
    """Whether something in the open interval satisfies a sparse condition."""
    return _surely_meets(condition, low, high) or next(condition.members(low, high, meter), None) is not None


def _surely_meets(condition: IndicatorSum, low: Decimal, high: Decimal) -> bool:
    """Whether the interval is longer than the condition's period, so that something in it satisfies it."""
    period = ONE
    for lattice, _ in condition.terms:
        period = lattice if period is ONE else period.meet(lattice)
    if period.rest.bit_length() + abs(period.twos - period.fives) > 10_000:
        return False
    return bool(_ROUGH.subtract(high, low) > _ROUGH.multiply(Decimal(2), period.generator))
