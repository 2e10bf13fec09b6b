"""`Pace`: how many tokens are chosen without masks before they are checked."""

from __future__ import annotations

#: Tokens before the first check.
_FIRST = 4

#: Steps with masks after so many mistakes in a row.
_MASKED, _IN_A_ROW = 16, 2


class Pace:
    """Follows the mistakes: twice as far after none, half as far after one, and masks after two in a row.

    Parameters
    ----------
    most:
        Tokens between two checks at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._in_a_row = self._masked_left = 0
        self.ahead = min(_FIRST, most)
        #: Tokens that were not allowed.
        self.mistakes = 0

    def is_masked(self) -> bool:
        """Whether the next step is one with a mask; each is asked for once."""
        self._masked_left -= self._masked_left > 0
        return self._masked_left > 0

    def right(self) -> None:
        """All were allowed."""
        self.ahead, self._in_a_row = min(2 * self.ahead, self._most), 0

    def wrong(self) -> None:
        """One was not."""
        self.mistakes += 1
        self.ahead = max(1, self.ahead // 2)
        self._in_a_row += 1
        if self._in_a_row == _IN_A_ROW:
            self._in_a_row, self._masked_left = 0, _MASKED + 1
