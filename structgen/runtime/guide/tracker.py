"""The texts of token rows, found from the rows themselves.

An engine hands over the ids of a row, prompt and all, before each token. What the row may go on with depends on
the tokens after the prompt, and on nothing else: rows swap places (beams), go back (drafts), and calls are
repeated. So the state of a row is never kept for its place in a batch; it is taken up from the remembered row with
which it shares the longest prefix: fork that guide, roll it back, advance over the rest.

- `Rows` is for engines whose batch comes in one piece: what it remembers are the rows of the last call.
- `SequenceTracker` is for engines that hand over one row at a time, perhaps of several sequences in turns: what it
  remembers are *lines*, the ids of each sequence as far as they were seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError, StructgenWarning, TokenIdError, VocabularyError
from ...system.arguments import describe
from ...system.types import Array, Foreign
from ..rows.bitmask import common_vocabulary
from .guide import Guide

if TYPE_CHECKING:
    from ...vocabulary.vocabulary import Vocabulary
    from ..index.index import Index

#: Token ids of several rows: a NumPy array, or a tensor in a subclass of `Rows`.
Ids: TypeAlias = Foreign

#: So many lines are remembered by default; the one that was not asked for longest is forgotten.
MOST_LINES = 1024


#: Makes the error for a token: of the guide before it, the token, where it is, and what to do.
Refuse: TypeAlias = Callable[[Guide, int, str, str], TokenIdError]


def refused(guide: Guide, token: int, where: str, remedy: str) -> TokenIdError:
    """An error that does not say why the token is refused."""
    return TokenIdError(f"token {token} is not allowed by the definition", where=where, remedy=remedy)


class Text:
    """The generated text of one row: a guide, and the number of tokens after the guide stopped.

    Without an index there is no guide, and any token may follow any other.
    """

    __slots__ = ("_guide", "_surplus")

    def __init__(self, index: Index | None, max_tokens: int | None = None) -> None:
        self._guide = None if index is None else Guide(index, max_tokens=max_tokens)
        self._surplus = 0

    def bitmask(self) -> NDArray[np.int32] | None:
        """``int32[words]``: the EOS ids alone, once the text has ended. ``None`` without an index."""
        if self._guide is None:
            return None
        return self._guide.index.eos_row if self._surplus else self._guide.bitmask()

    @property
    def temperature(self) -> float | None:
        """The temperature at which a grammar's rule wants the next token sampled; None where none says so."""
        return None if self._guide is None or self._surplus else self._guide.temperature

    def advance(self, token: int) -> bool:
        """Append a token: any, after the end. False, and nothing changes, for one that is not allowed."""
        guide = self._guide
        if guide is None or self._surplus or guide.is_finished():
            self._surplus += 1
            return True
        return 0 <= token < guide.index.vocabulary.size and guide.advance(token)

    def refusal(self, token: int, refuse: Refuse, where: str, remedy: str) -> TokenIdError:
        """The error for a token that was not allowed where the text was before it, or before it was abandoned."""
        assert self._guide is not None  # without one every token is allowed
        return refuse(self._guide, token, where, remedy)

    def abandon(self) -> None:
        """Append a token that is not allowed: the text has ended."""
        self._surplus += 1

    def has_ended(self) -> bool:
        """Whether an EOS id was appended, or what comes after the end."""
        return bool(self._surplus) or (self._guide is not None and self._guide.is_finished())

    def is_overrun(self) -> bool:
        """Whether tokens were appended behind an EOS id."""
        return bool(self._surplus) and self._guide is not None and self._guide.is_finished()

    def outside(self) -> int:
        """How many of the last tokens are no part of the definition's text: a refused one, and what came after it."""
        if self._guide is None or self._guide.is_finished():
            return 0
        return self._surplus

    def rewound(self, n: int) -> Text:
        """An independent copy without the last ``n`` tokens."""
        twin = Text(None)
        twin._surplus = max(0, self._surplus - n)
        if self._guide is not None:
            twin._guide = self._guide.fork()
            twin._guide.rollback(max(0, n - self._surplus))
        return twin


class _Overrun:
    """Says once that an engine goes on behind the end of all its texts: it stops at other EOS ids."""

    def __init__(self) -> None:
        self._is_told = False

    def tell(self, vocabulary: Vocabulary | None) -> None:
        """Warn, the first time."""
        if not self._is_told and vocabulary is not None:
            self._is_told = True
            ids = ", ".join(map(str, vocabulary.eos_ids[:8]))
            what = f"generation goes on behind the end of the text, where only the EOS ids of the vocabulary, {ids},"
            remedy = "Make the vocabulary with the EOS ids at which the loop stops, eos_ids=[...], or stop at these"
            warnings.warn(StructgenWarning(f"{what} are allowed. {remedy}."), stacklevel=4)


class Rows:
    """The texts of a batch whose rows are handed over together.

    A call goes on with the same generation if it has as many rows as the last one and each of them is the same
    prompt, then a text known from the last call, then at most one more token, which is allowed there if the row went
    back. Any other call begins a new generation.

    Parameters
    ----------
    indexes:
        One for each prompt; row ``r`` belongs to ``r // (rows // len(indexes))``. ``None`` leaves rows alone.
    prompt_length:
        How many leading ids of each row are no part of the text, all else being text; ``None`` finds it out.
    strict:
        Whether a token that is not allowed raises `TokenIdError`, or ends its text.
    max_tokens:
        Of each text, as for a `Guide`.
    refuse:
        Makes the error for a token that is not allowed.
    """

    def __init__(
        self,
        indexes: Sequence[Index | None],
        *,
        prompt_length: int | None = None,
        strict: bool = True,
        max_tokens: int | None = None,
        refuse: Refuse = refused,
    ) -> None:
        _check_prompt_length(prompt_length)
        self.vocabulary = own = vocabulary_of(indexes)
        self._indexes = tuple(None if each is None or own is None else each.over(own) for each in indexes)
        self._prompt_length, self._strict, self._max_tokens = prompt_length, strict, max_tokens
        self._refuse = refuse
        if max_tokens is not None:
            for index in indexes:
                Text(index, max_tokens)  # an error now, not in the middle of a generation
        #: Leading ids that are no part of the text, in the generation in progress, and that one's number.
        self.prompt, self.generation = 0, 0
        #: The ids of the last call, copied, and its texts.
        self._last: tuple[Ids, list[Text]] | None = None
        self._overrun = _Overrun()

    def reset(self) -> None:
        """Forget the generation in progress: the next call is the first of a new one."""
        self._last = None

    @property
    def texts(self) -> list[Text]:
        """Those of the last call; none where it raised."""
        return [] if self._last is None else self._last[1]

    def follow(self, ids: Ids) -> list[Text]:
        """The texts of ``ids``, an integer array ``[rows, length]``; copied.

        Raises `BitmaskError` for another shape or dtype, rows that the indexes cannot share, and fewer ids than the
        prompt has; `TokenIdError` as ``strict`` has it.
        """
        if ids.ndim != 2 or "int" not in str(ids.dtype):
            raise BitmaskError(f"token ids are integers [rows, length], got {describe(ids)}")
        rows, length = ids.shape
        check_shares(rows, len(self._indexes))
        _check_length(length, self._prompt_length)
        last, self._last = self._last, None  # forgotten, should this raise
        texts = None if last is None else self._gone_on(ids, *last)
        if texts is None:
            self.generation += 1
            self.prompt = length if self._prompt_length is None else self._prompt_length
            share = rows // len(self._indexes)
            texts = [Text(index, self._max_tokens) for index in self._indexes for _ in range(share)]
            self._extend(texts, ids, self.prompt)
        self._last = self._copied(ids), texts
        if all(text.is_overrun() for text in texts):
            self._overrun.tell(self.vocabulary)
        return texts

    def refusal(self, text: Text, token: int, row: int, position: int) -> TokenIdError:
        """The error for a token that a text did not allow, at ``position`` of a row's ids."""
        return text.refusal(
            token,
            self._refuse,
            where=f"row {row}, {position - self.prompt} tokens after a prompt of {self.prompt}",
            remedy=(
                "Another logits processor may have forbidden or forced tokens (min_new_tokens, bad_words_ids, ...). "
                "A loop that draws impossible tokens needs strict=False. Before a prompt that is the last one plus a "
                "token, call reset()."
            ),
        )

    def _gone_on(self, ids: Ids, known: Ids, texts: list[Text]) -> list[Text] | None:
        """The texts of ``ids``, taken up from those of the ids that were ``known``; None for a new generation."""
        rows, length = known.shape
        if ids.shape == (rows, length + 1) and self._are_equal(ids[:, :-1], known):
            self._extend(texts, ids, length)
            return texts
        ids, known = self._on_host(ids), self._on_host(known)
        if len(ids) != rows or not np.array_equal(ids[:, : self.prompt], known[:, : self.prompt]):
            return None
        found: list[Text] = []
        share = rows // len(self._indexes)
        for row in range(rows):
            first = row // share * share  # of the rows with the same index; the row itself has the same prompt
            donor, start = _longest_common_prefix(ids[row], known[first : first + share])
            text = self._taken_up(texts[first + donor].rewound(length - start), ids[row], row, start, length)
            if text is None:
                return None
            found.append(text)
        return found

    def _taken_up(self, text: Text, ids: Ids, row: int, start: int, length: int) -> Text | None:
        """A text of the first ``start`` ids with the others; None if they are another generation's."""
        rest = ids[start:].tolist()
        if self._prompt_length is None:
            if len(rest) > 1:
                return None
            if rest and start < length:
                return text if text.advance(rest[0]) else None
        self._append(text, rest, row, start)
        return text

    def _extend(self, texts: list[Text], ids: Ids, start: int) -> None:
        for row, (text, tokens) in enumerate(zip(texts, ids[:, start:].tolist(), strict=True)):
            self._append(text, tokens, row, start)

    def _append(self, text: Text, tokens: list[int], row: int, start: int) -> None:
        for position, token in enumerate(tokens, start):
            if not text.advance(token):
                if self._strict:
                    raise self.refusal(text, token, row, position)
                text.abandon()

    # -- what depends on the kind of array: `structgen.integrations.transformers` has tensors ----------------

    @staticmethod
    def _are_equal(ids: Ids, known: Ids) -> bool:
        return bool((ids == known).all())

    @staticmethod
    def _on_host(ids: Ids) -> Array:
        host: Array = ids
        return host

    @staticmethod
    def _copied(ids: Ids) -> Ids:
        return ids.copy()


class SequenceTracker:
    """The texts of token rows that come one at a time, in any order.

    A row is a line, or one with a token more (every step of plain decoding): the line goes on. Or it leaves a line
    behind the prompt: it is a new line, whose guide is that one's, forked and rolled back. Or it is none of these: a
    new generation, all of whose ids are the prompt.

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
    refuse:
        Makes the error for a token that is not allowed.
    """

    def __init__(
        self, index: Index, *, prompt_length: int | None = None, most: int = MOST_LINES, refuse: Refuse = refused
    ) -> None:
        vocabulary_of([index])
        _check_prompt_length(prompt_length)
        self._index = index
        self._prompt_length = prompt_length
        self._most, self._refuse = most, refuse
        self._overrun = _Overrun()
        #: In the order of their last use.
        self._lines: list[_Line] = []

    def reset(self) -> None:
        """Forget every line: the next call is the first of a new generation."""
        self._lines.clear()

    def follow(self, ids: Array, *, may_begin: bool = False) -> Text:
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
            raise BitmaskError(f"token ids are integers [length], got {describe(ids)}")
        _check_length(len(ids), self._prompt_length)
        line = self._find(ids, may_begin)
        if line is None:
            prompt = len(ids) if self._prompt_length is None else self._prompt_length
            line = _Line(ids[:prompt], prompt, Text(self._index))
        line.extend(ids[line.length :].tolist(), self._refuse)
        self._lines.append(line)
        if len(self._lines) > self._most:
            del self._lines[0]
        if line.text.is_overrun():
            self._overrun.tell(self._index.vocabulary)
        return line.text

    def _find(self, ids: Array, may_begin: bool) -> _Line | None:
        """The line that goes on with ``ids``, which is no longer among those that are known, or a fork of one."""
        found = self._closest(ids)
        if found is None:
            return None
        line, shared = found
        is_left = shared < line.length
        if shared < len(ids) and self._prompt_length is None:
            token = int(ids[shared])
            if line.text.has_ended() and not is_left and token not in self._index.vocabulary.eos_ids:
                return None
            if (may_begin or is_left) and not line.text.rewound(line.length - shared).advance(token):
                return None
        if is_left:
            return line.left_at(shared)
        self._lines.remove(line)
        return line

    def _closest(self, ids: Array) -> tuple[_Line, int] | None:
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


class _Line:
    """The ids of one sequence, of which the first ``prompt`` are no part of its text."""

    __slots__ = ("_ids", "length", "prompt", "text")

    def __init__(self, ids: Array, prompt: int, text: Text) -> None:
        self._ids: NDArray[np.int64] = np.array(ids, np.int64)  # a copy, with room behind it once it grows
        self.length = len(ids)
        self.prompt = prompt
        self.text = text

    def may_go_on_with(self, ids: Array) -> bool:
        """False where a look at two ids shows that all of ``ids`` but the last are no part of this line."""
        before = len(ids) - 1
        return self.length >= before and (before < 1 or bool(self._ids[before - 1] == ids[before - 1]))

    def shared(self, ids: Array) -> int:
        """Length of the longest common prefix with ``ids``."""
        width = min(self.length, len(ids))
        differs = self._ids[:width] != ids[:width]
        first = int(differs.argmax()) if width else 0
        return first if width and differs[first] else width

    def left_at(self, length: int) -> _Line:
        """An independent line of the first ``length`` ids."""
        return _Line(self._ids[:length], self.prompt, self.text.rewound(self.length - length))

    def extend(self, tokens: list[int], refuse: Refuse) -> None:
        """Append tokens to the text; `TokenIdError` for one that is not allowed."""
        for token in tokens:
            if not self.text.advance(token):
                raise self.text.refusal(
                    token,
                    refuse,
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


def vocabulary_of(indexes: Sequence[Index | None]) -> Vocabulary | None:
    """The vocabulary that all indexes share; typed errors for two, and for one that could not end a text."""
    if not indexes:
        raise ValueError("LogitsProcessor needs an index, or an index or None for each prompt")
    vocabulary = common_vocabulary([None if i is None else i.vocabulary for i in indexes])
    if vocabulary is not None and not vocabulary.eos_ids:
        raise VocabularyError(
            "the vocabulary has no EOS id, so generate() could not end a text",
            remedy="Name the ids that end a text when the vocabulary is made: eos_ids=[...].",
        )
    return vocabulary


def check_shares(rows: int, indexes: int) -> None:
    """Raise `BitmaskError` for rows that so many indexes cannot share."""
    if rows % indexes:
        raise BitmaskError(
            f"{rows} rows cannot be shared out among {indexes} indexes",
            remedy="Pass one index, or one (or None) for each prompt of the batch.",
        )


def _check_prompt_length(prompt_length: int | None) -> None:
    if prompt_length is not None and prompt_length < 0:
        raise ValueError(f"prompt_length is a number of tokens, got {prompt_length}")


def _check_length(length: int, prompt_length: int | None) -> None:
    if length < (prompt_length or 0):
        raise BitmaskError(f"input_ids of length {length} are shorter than the prompt")


def _longest_common_prefix(row: Array, others: Array) -> tuple[int, int]:
    """Which of ``others`` (``[n, m]``) shares the longest prefix with ``row``, and that length."""
    width = min(len(row), others.shape[1])
    if not width:
        return 0, 0
    differs = others[:, :width] != row[:width]
    lengths = np.where(differs.any(axis=1), differs.argmax(axis=1), width)
    best = int(lengths.argmax())
    return best, int(lengths[best])
