"""What correcting a text may take: mistakes, calls, bytes, tokens, time."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass

from ..errors import VocabularyError
from ..vocabulary.vocabulary import Vocabulary
from .path import Path


class TokenLimit:
    """A number of tokens that a text may have, as a vocabulary's tokenizer splits it.

    A vocabulary all of whose tokens are single bytes needs no tokenizer: its tokens are the text's bytes.

    Raises
    ------
    VocabularyError
        Where there is no tokenizer.
    """

    def __init__(self, most: int, vocabulary: Vocabulary) -> None:
        self._most, self._encode = most, vocabulary.encode
        self._is_bytes = vocabulary.longest == 1
        self._counted = self._tokens = 0  # bytes of the text whose tokens were counted last
        if self._encode is None and not self._is_bytes:
            raise VocabularyError(
                "how many tokens a text has is up to the tokenizer, and the vocabulary came without one",
                remedy="Make the vocabulary from the tokenizer, or use max_bytes in place of max_new_tokens.",
            )

    def kept(self, path: Path) -> int:
        """Bytes of a path's text that may stay: all, or those of the longest text that has not too many tokens."""
        length = len(path)
        if length < self._counted:
            self._counted = self._tokens = 0
        # A byte makes one token more at most, so that the tokens need be counted only when there may be too many.
        if self._tokens + length - self._counted <= self._most:
            return length
        if self._is_bytes:
            return len(path.data[: self._most].decode("utf-8", "ignore").encode())
        text = path.text
        self._counted, self._tokens = length, self._count(text)
        if self._tokens <= self._most:
            return length
        characters = bisect_right(range(len(text)), self._most, key=lambda end: self._count(text[:end])) - 1
        self._counted = self._tokens = 0
        return len(text[:characters].encode())

    def _count(self, text: str) -> int:
        assert self._encode is not None
        return len(self._encode(text))


@dataclass(frozen=True)
class CorrectionLimits:
    """Mistakes, calls, bytes of a text and of a reply, a time of the clock, and tokens of a text."""

    corrections: int
    calls: int
    nbytes: int
    deadline: float
    tokens: TokenLimit | None = None

    @property
    def is_late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.deadline

    def kept(self, path: Path) -> int:
        """Bytes of a path's text that may stay."""
        return len(path) if self.tokens is None else self.tokens.kept(path)
