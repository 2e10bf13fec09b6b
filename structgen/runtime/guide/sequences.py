"""`SequenceTracker`: the texts of sequences whose rows are handed over one at a time.

One processor may serve one sequence after another, several in turns (a batch whose rows are processed one by one),
and a draft that goes back. Each row is looked for among the *lines* that are remembered, a line being the ids of a
sequence as far as they were seen:

- it is a line, or one with a token more: the line's guide goes on (every step of plain decoding);
- it leaves a line behind the prompt: that guide is forked and rolled back, and the row is a new line;
- it is none of these: a new generation, all of whose ids are the prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError, TokenIdError
from .prefixes import Ids, Text, check_prompt_length, vocabulary_of

if TYPE_CHECKING:
    from ..index.index import Index

#: So many lines are remembered by default; the one that was not asked for longest is forgotten.
MOST_LINES = 1024


class SequenceTracker:
    """The texts of token rows that come one at a time, in any order.

    What the ids cannot tell apart is taken for the same generation: a new prompt that is a known one plus the
    beginning of its answer, or plus a single token.

    Parameters
    ----------
    index:
        The definition of every text.
    prompt_length:
        How many leading ids of each row are no part of the text; ``None`` finds it out.
    most:
        How many lines are remembered: as many as sequences take turns, at least.
    """

    def __init__(self, index: Index, *, prompt_length: int | None = None, most: int = MOST_LINES) -> None:
        vocabulary_of([index])
        check_prompt_length(prompt_length)
        self._index = index
        self._prompt_length = prompt_length
        self._most = most
        #: In the order of their last use.
        self._lines: list[_Line] = []

    def reset(self) -> None:
        """Forget every line: the next call is the first of a new generation."""
        self._lines.clear()

    def follow(self, ids: Ids, *, may_begin: bool = False) -> Text:
        """The text of a row of integers, ``[length]``.

        Parameters
        ----------
        ids:
            The row.
        may_begin:
            Whether the caller knows that a generation may begin here. A line with one token more, which was not
            allowed there, is then a new prompt.

        Raises
        ------
        TokenIdError
            For a line with one token more, which was not allowed there; the line is forgotten.
        BitmaskError
            For ids of another shape or type, or fewer than ``prompt_length``.
        """
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise BitmaskError(f"token ids are integers [length], got {ids.dtype}{list(ids.shape)}")
        if len(ids) < (self._prompt_length or 0):
            raise BitmaskError(f"input_ids of length {len(ids)} are shorter than the prompt")
        text = self._find(ids, may_begin)
        if text is None:
            text = self._begun(ids)
        if len(self._lines) > self._most:
            del self._lines[0]
        return text

    def _find(self, ids: Ids, may_begin: bool) -> Text | None:
        """The text of ``ids`` where they belong to a known line; that line, or its fork, is then the last."""
        found = self._closest(ids)
        if found is None:
            return None
        line, shared = found
        rest = ids[shared:].tolist()
        if rest and self._prompt_length is None:
            if line.text.has_ended() and shared == line.length and rest[0] not in self._index.vocabulary.eos_ids:
                return None
            if may_begin or shared < line.length:
                allowed = line.text.rewound(line.length - shared).advance(rest[0])
                if not allowed:
                    return None
        if shared < line.length:
            line = line.left_at(shared)
        else:
            self._lines.remove(line)
        line.extend(rest)
        self._lines.append(line)
        return line.text

    def _closest(self, ids: Ids) -> tuple[_Line, int] | None:
        """The line with the longest common prefix, and its length; one that goes on before one that is left."""
        best: tuple[_Line, int] | None = None
        fixed = self._prompt_length is not None
        for line in reversed(self._lines):
            if not fixed and not line.may_go_on_with(ids):
                continue
            shared = line.shared(ids)
            if shared < line.prompt or (not fixed and shared < len(ids) - 1):
                continue
            if shared == line.length and shared >= len(ids) - 1:
                return line, shared
            if best is None or (shared, shared == line.length) > (best[1], best[1] == best[0].length):
                best = line, shared
        return best

    def _begun(self, ids: Ids) -> Text:
        prompt = len(ids) if self._prompt_length is None else self._prompt_length
        line = _Line(ids[:prompt], prompt, Text(self._index))
        line.extend(ids[prompt:].tolist())
        self._lines.append(line)
        return line.text


class _Line:
    """The ids of one sequence, of which the first ``prompt`` are no part of its text."""

    __slots__ = ("_ids", "length", "prompt", "text")

    def __init__(self, ids: Ids, prompt: int, text: Text) -> None:
        self._ids: NDArray[np.int64] = np.array(ids, np.int64)  # a copy, with room behind it once it grows
        self.length = len(ids)
        self.prompt = prompt
        self.text = text

    def may_go_on_with(self, ids: Ids) -> bool:
        """False where a look at two ids shows that all of ``ids`` but the last are no part of this line."""
        before = len(ids) - 1
        return self.length >= before and (before < 1 or bool(self._ids[before - 1] == ids[before - 1]))

    def shared(self, ids: Ids) -> int:
        """Length of the longest common prefix with ``ids``."""
        width = min(self.length, len(ids))
        differs = self._ids[:width] != ids[:width]
        first = int(differs.argmax()) if width else 0
        return first if width and differs[first] else width

    def left_at(self, length: int) -> _Line:
        """An independent line of the first ``length`` ids."""
        return _Line(self._ids[:length], self.prompt, self.text.rewound(self.length - length))

    def extend(self, tokens: list[int]) -> None:
        """Append tokens to the text; `TokenIdError` for one that is not allowed."""
        for token in tokens:
            if not self.text.advance(token):
                raise TokenIdError(
                    f"token {token} is not allowed by the definition",
                    where=f"{self.length - self.prompt} tokens after a prompt of {self.prompt}",
                    remedy=(
                        "Another logits processor may have forbidden or forced tokens. Before a prompt that is a "
                        "known one plus a token, call reset()."
                    ),
                )
            if self.length == len(self._ids):
                self._ids = np.concatenate([self._ids, np.zeros(self.length + 64, np.int64)])
            self._ids[self.length] = token
            self.length += 1
