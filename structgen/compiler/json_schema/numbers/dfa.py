"""From a set of numbers to the automaton of its spellings.

The automaton is explored from its start, state by state. A state says all that the digits so far say:

- where the number stands among the points where its set changes (`number_digits`);
- its remainder for each lattice (`Divisor`);
- while it may still turn into scientific notation, where the mantissa stands among the points' mantissas.

Positive and negative numbers are two sides, both read as distances from zero. What may be spelled how is in
``docs/guide/json_numbers.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from ....budget import Meter
from ...automata.dfa import Dfa
from ...automata.words import words_dfa
from ...patterns.lower import language
from ...patterns.parser import parse
from .comparators import DigitPosition, Open
from .exponents import Exponents, exponents
from .interval_set import EVERYTHING, INTEGERS, NEVER, IntervalSet
from .literals import spellings
from .mantissas import Mantissa
from .sides import Remainders, Side
from .table import EXPONENT, MINUS, POINT, ZERO, Moves, State, explored

#: RFC 8259, section 6.
_ANY_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[Ee][+-]?[0-9]+)?"

#: With divisors of more bits than this it is worth a look whether the multiples can be listed instead.
_MANY_BITS = 10

#: So many multiples can be listed.
_MAX_LISTED = 2_000


def number_dfa(plain: IntervalSet, written: IntervalSet, meter: Meter, *, free: bool) -> Dfa:
    """The minimal automaton: ``plain`` spelled as integers, ``written`` with fractions and exponents.

    ``free``: ``written`` in all spellings that the rest of the line has.

    Raises `BudgetExceededError`.
    """
    if plain is EVERYTHING and written is EVERYTHING:
        return language(parse(_ANY_NUMBER), meter, count=False)
    if not free and plain.is_finite and written.is_finite:
        return _listed(_members(plain, meter), _members(written, meter), meter)
    if plain.modulus_bits > _MANY_BITS or written.modulus_bits > _MANY_BITS:
        integers, floats = (
            plain.meet(INTEGERS, meter).members(_MAX_LISTED, meter),
            written.members(_MAX_LISTED, meter),
        )
        if integers is not None and floats is not None:
            return _listed(integers, floats, meter)
    spelling = _Spelling(plain, written, meter, free=free)
    return explored(("start",), spelling.moves, spelling.accepts, meter)


def _members(line: IntervalSet, meter: Meter) -> list[Decimal]:
    return line.members(len(line.points), meter) or []


def _listed(integers: list[Decimal], floats: list[Decimal], meter: Meter) -> Dfa:
    """The automaton of finitely many numbers."""
    whole = [v for v in integers if v == v.to_integral_value()]
    return words_dfa(spellings(whole, floats, meter), meter)


class _Spelling:
    """The states and moves for a set of numbers.

    States: ``start``; after the sign ``side``; ``zero`` and ``whole`` before the point, ``point``, ``fraction`` after
    it; ``power`` in an exponent. The others begin with their tag and their side of zero; their mantissa, the last
    entry, is None once scientific notation is out of the question.
    """

    def __init__(self, plain: IntervalSet, written: IntervalSet, meter: Meter, *, free: bool) -> None:
        positive, negative = (Side(plain, written, is_negative, meter, free=free) for is_negative in (False, True))
        # Where the two are alike, the sign can be forgotten.
        self.sides = (positive,) if positive.is_like(negative) else (positive, negative)
        self._after: dict[str, Callable[..., Moves]] = {
            "start": self._after_start,
            "side": self._after_side,
            "zero": self._after_zero,
            "whole": self._after_whole,
            "point": self._after_point,
            "fraction": self._after_fraction,
            "power": self._after_power,
        }
        self.negative = self.sides[-1].beyond_zero

    def moves(self, state: State) -> Moves:
        """The symbols that may follow, with the state after each."""
        return self._after[state[0]](*state[1:])

    def accepts(self, state: State) -> bool:
        """Whether the text may end."""
        tag = state[0]
        if tag == "zero":
            return self.sides[state[1]].at[0][0]
        if tag == "whole":
            return self._whole_ends(*state[1:])
        if tag == "fraction":
            return self._fraction_ends(*state[1:])
        return tag == "power" and self._power_ends(*state[1:])

    # -- before the point ----------------------------------------------------------------------------------

    def _after_start(self) -> Moves:
        if self.negative:
            yield MINUS, ("side", len(self.sides) - 1)
        yield from self._after_side(0)

    def _after_side(self, which: int) -> Moves:
        side = self.sides[which]
        yield ZERO, ("zero", which)
        stepped = side.stepped(tuple(divisor.start for divisor in side.divisors))
        mantissa = side.mantissas.start
        for digit in range(1, 10):
            first = None if mantissa is None else side.mantissas.step(mantissa, digit)
            state = self._whole(which, side.whole.start, stepped[digit], digit, first)
            if state is not None:
                yield ZERO + digit, state

    def _whole(
        self, which: int, place: DigitPosition | None, stepped: Remainders, digit: int, mantissa: Mantissa | None
    ) -> State | None:
        """The state after a digit, which led to the remainders ``stepped``; None: nothing can come of it."""
        side = self.sides[which]
        place = None if place is None else side.whole.step(place, digit)
        if place is None and mantissa is None and side.ends:
            return None
        if place is None:
            stepped = side.needed(-1, stepped, plain=True)
        return ("whole", which, place, stepped, mantissa)

    def _after_zero(self, which: int) -> Moves:
        side = self.sides[which]
        start = tuple(divisor.start for divisor in side.divisors)
        return self._point(which, side.whole.zeros, start, None)

    def _after_whole(
        self, which: int, place: DigitPosition | None, remainders: Remainders, mantissa: Mantissa | None
    ) -> Moves:
        alike = not remainders and (place is None or not place.equal)  # all digits have the same consequence
        state: State | None = None
        for digit, stepped in enumerate(self.sides[which].stepped(remainders)):
            if not (alike and digit):
                state = self._whole(which, place, stepped, digit, None)
            if state is not None:
                yield ZERO + digit, state
        yield from self._point(which, self.sides[which].whole.end(place), remainders, mantissa)
        yield from self._exponent(which, mantissa)

    def _whole_ends(
        self, which: int, place: DigitPosition | None, remainders: Remainders, mantissa: Mantissa | None
    ) -> bool:
        side = self.sides[which]
        low, high = side.whole.end(place)
        if low < high and not side.tail.landmarks[low]:
            return side.at[low][0]
        return side.satisfied(side.cells[low - 1].plain, remainders)

    # -- after it ------------------------------------------------------------------------------------------

    def _point(
        self, which: int, among: tuple[int, int], remainders: Remainders, mantissa: Mantissa | None
    ) -> Iterator[tuple[int, State]]:
        side = self.sides[which]
        if not side.has_fractions:
            return
        after = tuple(
            None if r is None else divisor.point(r) for divisor, r in zip(side.divisors, remainders, strict=True)
        )
        state = self._fraction("point", which, side.tail.start(*among), after, mantissa)
        if state is not None:
            yield POINT, state

    def _fraction(
        self, tag: str, which: int, tail: Open | int, remainders: Remainders, mantissa: Mantissa | None
    ) -> State | None:
        side = self.sides[which]
        if isinstance(tail, int):
            condition = side.cells[tail - 1].written
            if condition is NEVER and mantissa is None:
                return None
            remainders = side.needed(tail - 1, remainders, plain=False)
        return (tag, which, tail, remainders, mantissa)

    def _after_point(self, which: int, tail: Open | int, remainders: Remainders, mantissa: Mantissa | None) -> Moves:
        side = self.sides[which]
        if mantissa is None and not remainders and isinstance(tail, int):
            state = self._fraction("fraction", which, tail, remainders, mantissa)
            return [] if state is None else [(column, state) for column in range(ZERO, ZERO + 10)]
        moves: list[tuple[int, State]] = []
        for digit in range(10):
            stepped = tuple(
                None if r is None else divisor.step_after(r, digit)
                for divisor, r in zip(side.divisors, remainders, strict=True)
            )
            following = None if mantissa is None else side.mantissas.step(mantissa, digit)
            state = self._fraction("fraction", which, side.tail.step(tail, digit), stepped, following)
            if state is not None:
                moves.append((ZERO + digit, state))
        return moves

    def _after_fraction(self, which: int, tail: Open | int, remainders: Remainders, mantissa: Mantissa | None) -> Moves:
        yield from self._after_point(which, tail, remainders, mantissa)
        yield from self._exponent(which, mantissa)

    def _fraction_ends(self, which: int, tail: Open | int, remainders: Remainders, mantissa: Mantissa | None) -> bool:
        side = self.sides[which]
        before, equal = side.tail.end(tail)
        if equal:
            return side.at[before][1]
        return side.satisfied(side.cells[before - 1].written, remainders)

    # -- exponents -----------------------------------------------------------------------------------------

    def _exponent(self, which: int, mantissa: Mantissa | None) -> Iterator[tuple[int, State]]:
        if mantissa is None:
            return
        side = self.sides[which]
        ranges = side.mantissas.ranges(mantissa)
        if ranges:
            for column in EXPONENT:
                yield column, ("power", exponents(ranges), "e")

    def _after_power(self, powers: Exponents, *state: Any) -> Moves:
        return [(column, ("power", powers, *target)) for column, target in powers.moves(*state)]

    def _power_ends(self, powers: Exponents, *state: Any) -> bool:
        return powers.accepts(*state)
