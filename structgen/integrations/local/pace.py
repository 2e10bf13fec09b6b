"""`Pace`: how many tokens are chosen without masks before they are checked."""

from __future__ import annotations

#: What is thought of a model that nobody knows: so many mistakes in so many tokens.
_MISTAKES, _TOKENS = 0.5, 80.0

#: Passes of the model that may be lost, of all: a mask costs about as much of a pass, or more.
_LOST = 0.01

#: Tokens after which what was seen before counts half.
_WINDOW = 512

#: Steps with masks after so many mistakes in a row: twice as many each time, if the next attempts go wrong as well.
_MASKED, _MOST_MASKED, _IN_A_ROW = 16, 256, 2


class Pace:
    """Follows the rate of mistakes, with a prior (the mean of a beta distribution: Laplace's rule of succession).

    Of k tokens that are checked together, a mistake at any place loses the passes behind it, (k - 1) / 2 on average;
    so with r mistakes a token r (k - 1) / 2 of all passes are lost, and k is as large as keeps that below 0.01.
    With one at a time none is lost. After two mistakes in a row there are masks for a while.

    Parameters
    ----------
    most:
        Tokens between two checks at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._wrong, self._seen = _MISTAKES, _TOKENS
        self._in_a_row = self._masked_left = 0
        self._masked = _MASKED
        #: Tokens that were not allowed.
        self.mistakes = 0

    @property
    def ahead(self) -> int:
        """Tokens before the next check."""
        return max(1, min(self._most, 1 + int(2 * _LOST * self._seen / self._wrong)))

    def is_masked(self) -> bool:
        """Whether the next step is one with a mask; each is asked for once."""
        self._masked_left -= self._masked_left > 0
        return self._masked_left > 0

    def right(self, tokens: int) -> None:
        """So many tokens were allowed, all there were."""
        self._note(0, tokens)
        self._in_a_row, self._masked = 0, _MASKED

    def wrong(self, tokens: int) -> None:
        """So many tokens were allowed, and the next one was not."""
        self.mistakes += 1
        self._note(1, tokens + 1)
        self._in_a_row = 1 if tokens else self._in_a_row + 1
        if self._in_a_row == _IN_A_ROW:
            self._in_a_row, self._masked_left = 0, self._masked + 1
            self._masked = min(2 * self._masked, _MOST_MASKED)

    def _note(self, wrong: int, tokens: int) -> None:
        self._wrong += wrong
        self._seen += tokens
        if self._seen > _TOKENS + _WINDOW:
            self._wrong = (self._wrong + _MISTAKES) / 2
            self._seen = (self._seen + _TOKENS) / 2
