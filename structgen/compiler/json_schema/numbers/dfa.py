"""From a set of numbers to the automaton of its spellings.

The automaton is explored from its start, state by state. A state says all that the digits so far say:

- where the number stands among the points where its set changes (`Whole`, `Tail`);
- its remainder for each lattice (`Divisor`);
- while an exponent may still follow, where the mantissa stands among those of the points (`Exponents`).

Positive and negative numbers are two sides, both read as distances from zero. What may be spelled how is in
``docs/guide/json_numbers.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache

from ....budget import Budget, Meter
from ...automata.dfa import Dfa
from ...automata.words import words_dfa
from ...patterns.lower import language
from ...patterns.parser import parse
from .comparators import DigitPosition, Open
from .exponents import Mantissa
from .interval_set import EVERYTHING, INTEGERS, NEVER, NOTHING, IntervalSet
from .literals import spellings
from .sides import Remainders, Side
from .table import EXPONENT, MINUS, PLUS, POINT, ZERO, Moves, State, explored

#: RFC 8259, section 6.
_ANY_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[Ee][+-]?[0-9]+)?"

#: With divisors of more bits than this it is worth a look whether the multiples can be listed instead.
_MANY_BITS = 10

#: So many multiples can be listed.
_MAX_LISTED = 2_000


def number_dfa(plain: IntervalSet, written: IntervalSet, meter: Meter, *, free: bool) -> Dfa:
    """The minimal automaton: ``plain`` spelled as integers, ``written`` with fractions and exponents.

    ``free``: ``written`` in all spellings that the rest of the line has, though its numbers may be finitely many.

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

    States: ``start``; after the sign ``side``; ``zero`` and ``whole`` before the point, ``point`` and ``fraction``
    after it; ``power`` in an exponent. The others begin with their tag and their side of zero; their mantissa, the last
    entry, is None where no exponent may follow.
    """

    def __init__(self, plain: IntervalSet, written: IntervalSet, meter: Meter, *, free: bool = False) -> None:
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
            "power": _after_power,
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
        return tag == "power" and _power_ends(*state[1:])

    # -- before the point ----------------------------------------------------------------------------------

    def _after_start(self) -> Moves:
        if self.negative:
            yield MINUS, ("side", len(self.sides) - 1)
        yield from self._after_side(0)

    def _after_side(self, which: int) -> Moves:
        side = self.sides[which]
        yield ZERO, ("zero", which)
        stepped = side.stepped(tuple(divisor.start for divisor in side.divisors))
        for digit in range(1, 10):
            mantissa = side.exponents.step(side.exponents.start, digit)
            state = self._whole(which, side.whole.start, stepped[digit], digit, mantissa)
            if state is not None:
                yield ZERO + digit, state

    def _whole(
        self, which: int, place: DigitPosition | None, stepped: Remainders, digit: int, mantissa: Mantissa
    ) -> State | None:
        """The state after a digit, which led to the remainders ``stepped``; None: nothing can come of it."""
        side = self.sides[which]
        place = None if place is None else side.whole.step(place, digit)
        if place is None and side.ends and mantissa is None:
            return None
        if place is None:
            stepped = side.needed(-1, stepped, plain=True)
        return ("whole", which, place, stepped, mantissa)

    def _after_zero(self, which: int) -> Moves:
        side = self.sides[which]
        return self._point(which, side.whole.zeros, tuple(divisor.start for divisor in side.divisors), None)

    def _after_whole(
        self, which: int, place: DigitPosition | None, remainders: Remainders, mantissa: Mantissa
    ) -> Moves:
        rows = self.sides[which].stepped(remainders)
        alike = (place is None or not place.equal) and rows.count(rows[0]) == 10  # all digits have the same consequence
        state: State | None = None
        for digit, stepped in enumerate(rows):
            if not (alike and digit):
                state = self._whole(which, place, stepped, digit, None)
            if state is not None:
                yield ZERO + digit, state
        yield from self._point(which, self.sides[which].whole.end(place), remainders, mantissa)
        yield from self._exponent(which, mantissa)

    def _whole_ends(self, which: int, place: DigitPosition | None, remainders: Remainders, _: Mantissa) -> bool:
        side = self.sides[which]
        low, high = side.whole.end(place)
        if low < high and not side.tail.landmarks[low]:
            return side.at[low][0]
        return side.satisfied(side.cells[low - 1].plain, remainders)

    # -- after it ------------------------------------------------------------------------------------------

    def _point(
        self, which: int, among: tuple[int, int], remainders: Remainders, mantissa: Mantissa
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
        self, tag: str, which: int, tail: Open | int, remainders: Remainders, mantissa: Mantissa
    ) -> State | None:
        side = self.sides[which]
        if isinstance(tail, int):
            if side.cells[tail - 1].written is NEVER and mantissa is None:
                return None
            remainders = side.needed(tail - 1, remainders, plain=False)
        return (tag, which, tail, remainders, mantissa)

    def _after_point(self, which: int, tail: Open | int, remainders: Remainders, mantissa: Mantissa) -> Moves:
        side = self.sides[which]
        if not remainders and isinstance(tail, int) and not isinstance(mantissa, Open):
            state = self._fraction("fraction", which, tail, remainders, mantissa)
            return [] if state is None else [(column, state) for column in range(ZERO, ZERO + 10)]
        moves: list[tuple[int, State]] = []
        for digit in range(10):
            stepped = tuple(
                None if r is None else divisor.step_after(r, digit)
                for divisor, r in zip(side.divisors, remainders, strict=True)
            )
            following = side.exponents.step(mantissa, digit)
            state = self._fraction("fraction", which, side.tail.step(tail, digit), stepped, following)
            if state is not None:
                moves.append((ZERO + digit, state))
        return moves

    def _after_fraction(self, which: int, tail: Open | int, remainders: Remainders, mantissa: Mantissa) -> Moves:
        yield from self._after_point(which, tail, remainders, mantissa)
        yield from self._exponent(which, mantissa)

    def _fraction_ends(self, which: int, tail: Open | int, remainders: Remainders, _: Mantissa) -> bool:
        side = self.sides[which]
        before, equal = side.tail.end(tail)
        if equal:
            return side.at[before][1]
        return side.satisfied(side.cells[before - 1].written, remainders)

    # -- exponents -----------------------------------------------------------------------------------------

    def _exponent(self, which: int, mantissa: Mantissa) -> Moves:
        line = self.sides[which].exponents.after(mantissa)
        if not line.is_empty:
            powers = _powers(line)
            for column in EXPONENT:
                yield column, ("power", powers, _UNSIGNED)


#: In an exponent: after its letter, and after a zero and another digit.
_UNSIGNED, _PADDED = ("unsigned",), ("padded",)


@lru_cache(maxsize=1024)
def _powers(line: IntervalSet) -> _Spelling:
    """How some exponents are spelled. The same few come again and again."""
    return _Spelling(line, NOTHING, Meter(Budget()))


def _after_power(powers: _Spelling, state: State) -> Moves:
    """Moves within an exponent: a whole number with a sign or without, where one digit may be padded to two."""
    if state == _PADDED:
        return
    if state == _UNSIGNED:
        yield PLUS, ("power", powers, ("side", 0))
        yield MINUS, ("power", powers, ("side", len(powers.sides) - 1))
        state = ("side", 0)
    if state[0] == "zero":
        for column, target in powers.moves(("side", *state[1:])):
            if powers.accepts(target):
                yield column, ("power", powers, _PADDED)
        return
    for column, target in powers.moves(state):
        yield column, ("power", powers, target)


def _power_ends(powers: _Spelling, state: State) -> bool:
    return state == _PADDED or powers.accepts(state)
