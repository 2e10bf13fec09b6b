"""The exponents of scientific notation: whole numbers in given ranges, with a sign or without."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from .comparators import Among, DigitPosition, Whole
from .table import MINUS, PLUS, ZERO, Moves, State

#: Whole numbers from ``low`` to ``high``, None where there is no end.
Range: TypeAlias = tuple[int | None, int | None]


class Exponents:
    """The states and moves of an exponent's spelling; ``("e",)`` is the start, after that letter.

    A sign, or none for a plus; no leading zeros, but a single digit may be padded to two, as C and Python do.

    Each sign has the ends of its ranges as landmarks, lower and upper by turns, so a number is inside where it
    equals one or has an odd number of them below it. An open last range lacks its upper end.
    """

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self._signs = (Whole(_distances(ranges)), Whole(_distances([_negated(r) for r in reversed(ranges)])))

    def moves(self, tag: str, sign: int = 0, place: DigitPosition | None = None) -> Moves:
        """The symbols that may follow, with the state after each."""
        if tag == "end":
            return []
        if tag == "pad":
            return [(ZERO + d, ("end",)) for d in range(10) if self._inside(sign, d)]
        whole = self._signs[sign]
        if tag == "power":
            return self._digits(sign, place, 0)
        first = [(ZERO, ("pad", sign)), *self._digits(sign, whole.start, 1)]
        return first if tag == "sign" else [(PLUS, ("sign", 0)), (MINUS, ("sign", 1)), *first]

    def _digits(self, sign: int, place: DigitPosition | None, first: int) -> list[tuple[int, State]]:
        whole = self._signs[sign]
        moves: list[tuple[int, State]] = []
        for digit in range(first, 10):
            following = None if place is None else whole.step(place, digit)
            if following is not None or _is_inside(whole.end(None)):
                moves.append((ZERO + digit, ("power", sign, following)))
        return moves

    def _inside(self, sign: int, digit: int) -> bool:
        whole = self._signs[sign]
        return _is_inside(whole.end(whole.step(whole.start, digit)) if digit else whole.zeros)

    def accepts(self, tag: str, sign: int = 0, place: DigitPosition | None = None) -> bool:
        """Whether the exponent may end."""
        if tag == "pad":
            return self._inside(sign, 0)
        return tag == "end" or (tag == "power" and _is_inside(self._signs[sign].end(place)))


@lru_cache(maxsize=1024)
def exponents(ranges: tuple[Range, ...]) -> Exponents:
    """The same few ranges come again and again."""
    return Exponents(ranges)


def _is_inside(among: Among) -> bool:
    """Whether a number at that place lies in a range."""
    return among.low < among.high or among.low % 2 == 1


def _negated(bounds: Range) -> Range:
    low, high = bounds
    return None if high is None else -high, None if low is None else -low


def _distances(ranges: Sequence[Range]) -> list[str]:
    """The ends of the ranges' parts from zero up."""
    ends: list[str] = []
    for low, high in ranges:
        if high is None or high >= 0:
            ends.append(str(max(low or 0, 0)))
            if high is not None:
                ends.append(str(high))
    return ends
