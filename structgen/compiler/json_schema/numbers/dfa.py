"""From a set of numbers to the automaton of its spellings.

The automaton is explored from its start, state by state. A state says all that the digits so far say:

- where the number stands among the points where its set changes (`Whole`, `Tail`);
- its remainder for each lattice (`Divisor`).

Positive and negative numbers are two sides, both read as distances from zero. What may be spelled how is in
``docs/guide/json_numbers.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from ....budget import Meter
from ...automata.dfa import Dfa
from ...automata.words import words_dfa
from ...patterns.lower import language
from ...patterns.parser import parse
from .comparators import DigitPosition, Open
from .interval_set import EVERYTHING, INTEGERS, NEVER, IntervalSet
from .literals import spellings
from .sides import Remainders, Side
from .table import MINUS, POINT, ZERO, Moves, State, explored

#: RFC 8259, section 6.
_ANY_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[Ee][+-]?[0-9]+)?"

#: With divisors of more bits than this it is worth a look whether the multiples can be listed instead.
_MANY_BITS = 10

#: So many multiples can be listed.
_MAX_LISTED = 2_000


def number_dfa(plain: IntervalSet, written: IntervalSet, meter: Meter, *, free: bool) -> Dfa:
    """The minimal automaton: ``plain`` spelled as integers, ``written`` with fractions. Only where every
    number is allowed may one have an exponent, and where a few are listed.

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
    spelling = _Spelling(plain, written, meter)
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
    after it. They begin with their tag and their side of zero.
    """

    def __init__(self, plain: IntervalSet, written: IntervalSet, meter: Meter) -> None:
        positive, negative = (Side(plain, written, is_negative, meter) for is_negative in (False, True))
        # Where the two are alike, the sign can be forgotten.
        self.sides = (positive,) if positive.is_like(negative) else (positive, negative)
        self.negative = self.sides[-1].beyond_zero

    def moves(self, state: State) -> Moves:
        """The symbols that may follow, with the state after each."""
        return _AFTER[state[0]](self, *state[1:])

    def accepts(self, state: State) -> bool:
        """Whether the text may end."""
        tag = state[0]
        if tag == "zero":
            return self.sides[state[1]].at[0][0]
        if tag == "whole":
            return self._whole_ends(*state[1:])
        return tag == "fraction" and self._fraction_ends(*state[1:])

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
            state = self._whole(which, side.whole.start, stepped[digit], digit)
            if state is not None:
                yield ZERO + digit, state

    def _whole(self, which: int, place: DigitPosition | None, stepped: Remainders, digit: int) -> State | None:
        """The state after a digit, which led to the remainders ``stepped``; None: nothing can come of it."""
        side = self.sides[which]
        place = None if place is None else side.whole.step(place, digit)
        if place is None:
            if side.ends:
                return None
            stepped = side.needed(-1, stepped, plain=True)
        return ("whole", which, place, stepped)

    def _after_zero(self, which: int) -> Moves:
        side = self.sides[which]
        return self._point(which, side.whole.zeros, tuple(divisor.start for divisor in side.divisors))

    def _after_whole(self, which: int, place: DigitPosition | None, remainders: Remainders) -> Moves:
        rows = self.sides[which].stepped(remainders)
        alike = (place is None or not place.equal) and rows.count(rows[0]) == 10  # all digits have the same consequence
        state: State | None = None
        for digit, stepped in enumerate(rows):
            if not (alike and digit):
                state = self._whole(which, place, stepped, digit)
            if state is not None:
                yield ZERO + digit, state
        yield from self._point(which, self.sides[which].whole.end(place), remainders)

    def _whole_ends(self, which: int, place: DigitPosition | None, remainders: Remainders) -> bool:
        side = self.sides[which]
        low, high = side.whole.end(place)
        if low < high and not side.tail.landmarks[low]:
            return side.at[low][0]
        return side.satisfied(side.cells[low - 1].plain, remainders)

    # -- after it ------------------------------------------------------------------------------------------

    def _point(self, which: int, among: tuple[int, int], remainders: Remainders) -> Iterator[tuple[int, State]]:
        side = self.sides[which]
        if not side.has_fractions:
            return
        after = tuple(
            None if r is None else divisor.point(r) for divisor, r in zip(side.divisors, remainders, strict=True)
        )
        state = self._fraction("point", which, side.tail.start(*among), after)
        if state is not None:
            yield POINT, state

    def _fraction(self, tag: str, which: int, tail: Open | int, remainders: Remainders) -> State | None:
        side = self.sides[which]
        if isinstance(tail, int):
            if side.cells[tail - 1].written is NEVER:
                return None
            remainders = side.needed(tail - 1, remainders, plain=False)
        return (tag, which, tail, remainders)

    def _after_point(self, which: int, tail: Open | int, remainders: Remainders) -> Moves:
        side = self.sides[which]
        if not remainders and isinstance(tail, int):
            state = self._fraction("fraction", which, tail, remainders)
            return [] if state is None else [(column, state) for column in range(ZERO, ZERO + 10)]
        moves: list[tuple[int, State]] = []
        for digit in range(10):
            stepped = tuple(
                None if r is None else divisor.step_after(r, digit)
                for divisor, r in zip(side.divisors, remainders, strict=True)
            )
            state = self._fraction("fraction", which, side.tail.step(tail, digit), stepped)
            if state is not None:
                moves.append((ZERO + digit, state))
        return moves

    def _fraction_ends(self, which: int, tail: Open | int, remainders: Remainders) -> bool:
        side = self.sides[which]
        before, equal = side.tail.end(tail)
        if equal:
            return side.at[before][1]
        return side.satisfied(side.cells[before - 1].written, remainders)


_AFTER: dict[str, Callable[..., Moves]] = {
    "start": _Spelling._after_start,
    "side": _Spelling._after_side,
    "zero": _Spelling._after_zero,
    "whole": _Spelling._after_whole,
    "point": _Spelling._after_point,
    "fraction": _Spelling._after_point,
}
