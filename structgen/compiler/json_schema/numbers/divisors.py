"""Whether a number is a multiple of another, while its digits are read.

Digits before the point are read into a remainder, as a child does long division. Two things keep it small: a divisor
that ends in zeros asks for zeros at the end, which takes as many states as zeros and not ten to that power; and
digits after the point scale the divisor up one place at a time, so that while the whole part is read only the part of
the divisor matters that has to do with whole numbers.
"""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

from ....budget import Meter
from .interval_set import Multiples

#: Before the point: (zeros at the end, remainder without them); where the divisor does not end in zeros, (0, 0) for a
#: multiple and else (1, remainder modulo what matters to later digits). After it: (digits read, remainder), or `ON`,
#: `OFF`.
Remainder: TypeAlias = tuple[int, int]

#: The number is a multiple if nothing but zeros follow; it is none, whatever follows.
ON: Remainder = (-1, 0)
OFF: Remainder = (-1, 1)

#: Numbers of so many digits are over any budget; it keeps them out of messages.
_HUGE = 10**15


class Divisor:
    """Remainders modulo the generator of a lattice. Raises `BudgetExceededError` where there are too many."""

    def __init__(self, lattice: Multiples, meter: Meter) -> None:
        twos, fives, _ = lattice
        doing = "counting remainders for multipleOf"
        meter.check_states(min(_HUGE, max(abs(twos), abs(fives))), doing)
        self.lattice = lattice
        self.zeros = max(0, min(twos, fives))
        self.places = max(0, -twos, -fives)
        modulus = self._modulus(self.places)
        meter.check_states(min(_HUGE, modulus), doing)
        #: By digits read after the point; the generator in units of that place, as far as it is whole.
        self.moduli = [self._modulus(place) for place in range(self.places + 1)]
        self.start: Remainder = (self.zeros, 0)
        #: Multiplied by 10, a remainder is known when it is known modulo this.
        self._later = modulus // gcd(modulus, 10)
        self._rows: dict[Remainder, tuple[Remainder, ...]] = {}

    def _modulus(self, place: int) -> int:
        twos, fives, rest = self.lattice
        shift = place - self.zeros
        return int(2 ** max(0, twos + shift) * 5 ** max(0, fives + shift) * rest)

    def row(self, remainder: Remainder) -> tuple[Remainder, ...]:
        """The remainder after each of the ten digits, before the point."""
        known = self._rows.get(remainder)
        if known is None:
            known = self._rows[remainder] = tuple([self.step(remainder, digit) for digit in range(10)])
        return known

    def step(self, remainder: Remainder, digit: int) -> Remainder:
        """One more digit before the point."""
        zeros, rest = remainder
        modulus = self.moduli[0]
        if self.places:
            return 0, (rest * 10 + digit) % modulus
        if not self.zeros:
            rest = (rest * 10 + digit) % modulus
            return (1, rest % self._later) if rest else (0, 0)
        if digit == 0:
            return (zeros, rest * 10 % modulus) if zeros == self.zeros else (zeros + 1, rest)
        return 0, (rest * 10 ** (zeros + 1) + digit) % modulus

    def divides(self, remainder: Remainder) -> bool:
        """Whether what was read so far, before the point or after it, is a multiple."""
        if remainder[0] < 0:
            return remainder == ON
        return remainder[1] == 0 if self.places else remainder == self.start

    def point(self, remainder: Remainder) -> Remainder:
        """At the decimal point."""
        if self.places:
            return 0, remainder[1]
        return ON if self.divides(remainder) else OFF

    def step_after(self, remainder: Remainder, digit: int) -> Remainder:
        """One more digit after the point."""
        place, rest = remainder
        if place < 0:
            return remainder if digit == 0 else OFF
        rest = (rest * 10 + digit) % self.moduli[place + 1]
        if place + 1 < self.places:
            return place + 1, rest
        return OFF if rest else ON
