"""Comparing a number with fixed others while its digits are read.

Two automata, both with about as many states as the others have digits:

`Whole` reads a whole number from its first digit on. How a number compares with 4096 depends on its length, which
is only known at its end: after ``41``, the text may be 41, 417, 4107 or 41000. So a state is the number of digits
and the place among the texts of those that have as many.

`Tail` reads a fraction's digits. Their places are fixed, so the first difference decides.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple


class DigitPosition(NamedTuple):
    """After ``depth`` digits: those of landmark ``rank`` of the ones with so many, or those before it."""

    depth: int
    rank: int
    equal: bool


class Among(NamedTuple):
    """Where a finished whole number stands: it equals landmarks ``low`` to ``high - 1``, or lies before ``low``."""

    low: int
    high: int


class Whole:
    """Compares whole numbers without leading zeros with ``landmarks``: the same, ascending, repeats allowed.

    Numbers that are compared are positive.
    """

    def __init__(self, landmarks: list[str]) -> None:
        self._ordered = [(len(text), text) for text in landmarks]
        texts = sorted(set(landmarks) - {"0"})
        self._levels = [texts]  # those with so many digits or more, as texts; the last level is empty
        for depth in range(1, max(map(len, texts), default=0) + 2):
            self._levels.append([text for text in self._levels[-1] if len(text) >= depth])
        self.zeros = Among(0, bisect_right(self._ordered, (1, "0")))

    start = DigitPosition(0, 0, True)

    def step(self, place: DigitPosition, digit: int) -> DigitPosition | None:
        """The place after one more digit; None: the number is greater than every landmark, whatever follows."""
        depth, rank, equal = place
        level, following = self._levels[depth : depth + 2]
        if not following:
            return None
        if not equal:
            rank = bisect_left(following, level[rank]) if rank < len(level) else len(following)
            return DigitPosition(depth + 1, rank, False)
        text = level[rank][:depth] + str(digit)
        rank = bisect_left(following, text)
        return DigitPosition(depth + 1, rank, rank < len(following) and following[rank].startswith(text))

    def end(self, place: DigitPosition | None) -> Among:
        """Where a number that ends here stands."""
        if place is None:
            return Among(len(self._ordered), len(self._ordered))
        depth, rank, equal = place
        level = self._levels[depth]
        key = (depth, level[rank][:depth]) if rank < len(level) else (depth + 1, "")
        low = bisect_left(self._ordered, key)
        return Among(low, bisect_right(self._ordered, key) if equal else low)


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
        digits = [self._digit(landmark, depth) for landmark in range(low, high)]
        low, end = low + bisect_left(digits, digit), low + bisect_right(digits, digit)
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
