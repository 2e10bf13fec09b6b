"""Comparing a number with fixed others while its digits are read.

Two automata, both with about as many states as the others have digits:

`Whole` reads a whole number from its first digit on. How a number compares with 4096 depends on its length, which
is only known at its end: after ``41``, the text may be 41, 417, 4107 or 41000. So a state is the number of digits
and the place among the prefixes of that length.

`Tail` reads a fraction's digits (or a mantissa's). Their places are fixed, so the first difference decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple


class DigitPosition(NamedTuple):
    """After ``depth`` digits: the ``rank``-th prefix of that length itself, or the gap before it."""

    depth: int
    rank: int
    equal: bool


class Among(NamedTuple):
    """Where a finished whole number stands: it equals landmarks ``low`` to ``high - 1``, or lies before ``low``."""

    low: int
    high: int


@dataclass
class _Prefix:
    """One prefix of some landmarks: those that end here, those that go on, by digit."""

    ends: tuple[int, int]
    children: dict[int, int]


@dataclass
class _Level:
    """The distinct prefixes of one length, ascending."""

    prefixes: list[_Prefix] = field(default_factory=list)
    ends_before: list[int] = field(default_factory=list)  # by gap: landmarks less than a number that ends there
    children_before: list[int] = field(default_factory=list)  # by gap: the gap of the next level


class Whole:
    """Compares whole numbers without leading zeros with ``landmarks``: the same, ascending, repeats allowed.

    Landmarks ``"0"`` must come first; numbers that are compared are positive.
    """

    def __init__(self, landmarks: list[str]) -> None:
        self.landmarks = landmarks
        zeros = sum(text == "0" for text in landmarks)
        self._levels: list[_Level] = []
        groups = [list(range(zeros, len(landmarks)))]
        shorter = zeros
        while groups:
            level, groups = self._level(groups, len(self._levels), shorter)
            shorter = level.ends_before[-1]
            self._levels.append(level)
        self.zeros = Among(0, zeros)

    def _level(self, groups: list[list[int]], depth: int, shorter: int) -> tuple[_Level, list[list[int]]]:
        level = _Level()
        below: list[list[int]] = []
        for group in groups:
            ending = [i for i in group if len(self.landmarks[i]) == depth]
            by_digit: dict[int, list[int]] = {}
            for i in group:
                if len(self.landmarks[i]) > depth:
                    by_digit.setdefault(int(self.landmarks[i][depth]), []).append(i)
            children = {}
            for digit in sorted(by_digit):
                children[digit] = len(below)
                below.append(by_digit[digit])
            first = ending[0] if ending else 0
            level.prefixes.append(_Prefix((first, first + len(ending)), children))
        counts = [prefix.ends[1] - prefix.ends[0] for prefix in level.prefixes]
        level.ends_before = list(accumulate(counts, initial=shorter))
        level.children_before = list(accumulate((len(p.children) for p in level.prefixes), initial=0))
        return level, below

    start = DigitPosition(0, 0, True)

    def step(self, place: DigitPosition, digit: int) -> DigitPosition | None:
        """The place after one more digit; None: the number is greater than every landmark, whatever follows."""
        depth, rank, equal = place
        level = self._levels[depth]
        if not equal:
            gap = level.children_before[rank]
        else:
            children = level.prefixes[rank].children
            if digit in children:
                return DigitPosition(depth + 1, children[digit], True)
            gap = level.children_before[rank] + sum(other < digit for other in children)
        return DigitPosition(depth + 1, gap, False) if depth + 1 < len(self._levels) else None

    def end(self, place: DigitPosition | None) -> Among:
        """Where a number that ends here stands."""
        if place is None:
            return Among(len(self.landmarks), len(self.landmarks))
        level = self._levels[place.depth]
        if place.equal:
            low, high = level.prefixes[place.rank].ends
            if low < high:
                return Among(low, high)
        before = level.ends_before[place.rank]
        return Among(before, before)


class Open(NamedTuple):
    """The digits so far agree with landmarks ``low`` to ``high - 1``, as far as ``depth``."""

    low: int
    high: int
    depth: int


class Tail:
    """Compares digits after the point with ``landmarks``, ascending, distinct within a range, no trailing zeros.

    A landmark goes on with zeros. A state is `Open`, or the number of landmarks that are less.
    """

    def __init__(self, landmarks: list[str]) -> None:
        self.landmarks = landmarks

    def start(self, low: int, high: int) -> Open | int:
        """Before the first digit, when only landmarks ``low`` to ``high - 1`` are in question."""
        return Open(low, high, 0) if low < high else low

    def step(self, state: Open | int, digit: int) -> Open | int:
        """The state after one more digit."""
        if isinstance(state, int):
            return state
        low, high, depth = state
        while low < high and self._digit(low, depth) < digit:
            low += 1
        end = low
        while end < high and self._digit(end, depth) == digit:
            end += 1
        if low == end:
            return low
        # A single landmark that is through goes on with zeros for ever: one state.
        through = end - low == 1 and depth >= len(self.landmarks[low])
        return Open(low, end, depth if through else depth + 1)

    def _digit(self, landmark: int, depth: int) -> int:
        text = self.landmarks[landmark]
        return int(text[depth]) if depth < len(text) else 0

    def end(self, state: Open | int) -> tuple[int, bool]:
        """Number of landmarks that are less than digits ending here, and whether the next one is equal."""
        if isinstance(state, int):
            return state, False
        return state.low, len(self.landmarks[state.low]) <= state.depth
