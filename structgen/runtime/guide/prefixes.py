"""The texts of token rows, found from the rows themselves, over NumPy arrays.

An engine hands over the ids of a row, prompt and all, before each token. What the row may go on with depends on
the tokens after the prompt, and on nothing else: rows swap places (beams), go back (drafts), and calls are
repeated. So the state of a row is never kept for its place in a batch; it is taken up from the remembered row with
which it shares the longest prefix: fork that guide, roll it back, advance over the rest.

- `Step` is one call with several rows, and makes the next; `Rows` keeps the last one, for engines whose batch
  comes in one piece. `structgen.integrations.transformers` does the same over tensors.
- `SequenceTracker` is for engines that hand over one row at a time, perhaps of several sequences in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError, TokenIdError, VocabularyError
from ...system.types import Array
from ..rows.bitmask import common_vocabulary
from .guide import Guide

if TYPE_CHECKING:
    from ...vocabulary.vocabulary import Vocabulary
    from ..index.index import Index

#: Token ids, of whatever integer type the engine has.
Ids = Array


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

    def advance(self, token: int) -> bool:
        """Append a token: any, after the end. False, and nothing changes, for one that is not allowed."""
        guide = self._guide
        if guide is None or self._surplus or guide.is_finished():
            self._surplus += 1
            return True
        return 0 <= token < guide.index.vocabulary.size and guide.advance(token)

    def abandon(self) -> None:
        """Append a token that is not allowed: the text has ended."""
        self._surplus += 1

    def has_ended(self) -> bool:
        """Whether an EOS id was appended, or what comes after the end."""
        return bool(self._surplus) or (self._guide is not None and self._guide.is_finished())

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


@dataclass(frozen=True)
class Generation:
    """What stays the same in one generation.

    Parameters
    ----------
    prompt:
        How many leading ids are the prompt.
    fixed:
        Whether the caller said so; then whatever follows is text.
    strict:
        Whether a token that is not allowed is an error.
    share:
        How many neighbouring rows belong to the same index.
    """

    prompt: int
    fixed: bool
    strict: bool
    share: int

    @classmethod
    def begin(
        cls, indexes: Sequence[Index | None], rows: int, length: int, prompt_length: int | None, strict: bool,
        max_tokens: int | None = None,
    ) -> tuple[Generation, list[Text]]:  # fmt: skip
        """A generation over ``rows`` rows of ``length`` ids, and an empty text for each row."""
        share = rows // len(indexes)
        prompt = length if prompt_length is None else prompt_length
        generation = cls(prompt, prompt_length is not None, strict, share)
        return generation, [Text(index, max_tokens) for index in indexes for _ in range(share)]

    def append(self, text: Text, token: int, row: int, position: int) -> None:
        """Append the token at ``position`` of a row to its text, allowed or not."""
        if text.advance(token):
            return
        if self.strict:
            raise self.refusal(token, row, position)
        text.abandon()

    def refusal(self, token: int, row: int, position: int) -> TokenIdError:
        """The error for a token that was not allowed, at ``position`` of a row's ids."""
        return TokenIdError(
            f"token {token} is not allowed by the definition of its row",
            where=f"row {row}, {position - self.prompt} tokens after a prompt of {self.prompt}",
            remedy=(
                "Another logits processor may have forbidden or forced tokens (min_new_tokens, bad_words_ids, ...). "
                "A loop that draws impossible tokens needs strict=False. Before a prompt that is the last one plus a "
                "token, call reset()."
            ),
        )

    def extend(self, texts: Sequence[Text], rows: Sequence[Sequence[int]], start: int) -> None:
        """Append to each row's text the row's ids, the first of which stands at ``start``."""
        for row, (text, tokens) in enumerate(zip(texts, rows, strict=True)):
            for position, token in enumerate(tokens, start):
                self.append(text, token, row, position)


@dataclass(frozen=True)
class Step:
    """One call: what generation it belongs to, how many ids each row had, and the text of each row."""

    generation: Generation
    length: int
    texts: list[Text]

    def grown(self, tokens: Sequence[int]) -> Step:
        """The step of the same rows with one token more each. Takes over this step's texts."""
        self.generation.extend(self.texts, [[token] for token in tokens], self.length)
        return Step(self.generation, self.length + 1, self.texts)

    def moved(self, ids: Ids, known: Ids) -> Step | None:
        """The step of ``ids`` (``[rows, length]``), if every row takes up from a text of this one, whose ids were
        ``known``; ``None`` for a new generation."""
        prompt = self.generation.prompt
        if len(ids) != len(known) or not np.array_equal(ids[:, :prompt], known[:, :prompt]):
            return None
        texts: list[Text] = []
        for row, cohort in enumerate(self._cohorts(known)):
            donor, shared = longest_common_prefix(ids[row, prompt:], known[cohort, prompt:])
            text = self._taken_up(ids[row], row, cohort[donor], prompt + shared)
            if text is None:
                return None
            texts.append(text)
        return Step(self.generation, ids.shape[1], texts)

    def _taken_up(self, ids: Ids, row: int, donor: int, start: int) -> Text | None:
        """The text of ``ids``, the first ``start`` of which are the donor's; ``None`` if it is none of
        these."""
        generation = self.generation
        rest = ids[start:].tolist()
        if len(rest) > 1 and not generation.fixed:
            return None
        text = self.texts[donor].rewound(self.length - start)
        if rest and start < self.length and not generation.fixed:
            return text if text.advance(rest[0]) else None
        for position, token in enumerate(rest, start):
            generation.append(text, token, row, position)
        return text

    def _cohorts(self, known: Ids) -> list[list[int]]:
        """For each row, the rows with the same prompt and the same index, which it could come from."""
        members: dict[tuple[int, bytes], list[int]] = {}
        for row, ids in enumerate(known):
            key = (row // self.generation.share, ids[: self.generation.prompt].tobytes())
            members.setdefault(key, []).append(row)
        cohort_of = {row: cohort for cohort in members.values() for row in cohort}
        return [cohort_of[row] for row in range(len(known))]


class Rows:
    """The texts of a batch whose rows are handed over together.

    Parameters
    ----------
    indexes:
        One for each prompt; row ``r`` belongs to ``r // (rows // len(indexes))``. ``None`` leaves rows alone.
    prompt_length:
        How many leading ids of each row are no part of the text; ``None`` finds it out, see `LogitsProcessor` of
        `structgen.integrations.transformers`.
    strict:
        Whether a token that is not allowed raises `TokenIdError`, or ends its text.
    """

    def __init__(
        self, indexes: Sequence[Index | None], *, prompt_length: int | None = None, strict: bool = True
    ) -> None:
        check_prompt_length(prompt_length)
        self._indexes = tuple(indexes)
        self.vocabulary = vocabulary_of(self._indexes)
        self._prompt_length = prompt_length
        self._strict = strict
        self._last: tuple[Ids, Step] | None = None

    def reset(self) -> None:
        """Forget the generation in progress: the next call is the first of a new one."""
        self._last = None

    def follow(self, ids: Ids) -> list[Text]:
        """The texts of ``ids``, an integer array ``[rows, length]``; copied."""
        if ids.ndim != 2 or ids.dtype.kind not in "iu":
            raise BitmaskError(f"token ids are integers [rows, length], got {ids.dtype}{list(ids.shape)}")
        rows, length = ids.shape
        check_rows(rows, length, len(self._indexes), self._prompt_length)
        last, self._last = self._last, None  # forgotten, should this raise
        step = None
        if last is not None:
            known, before = last
            if (rows, length) == (len(known), before.length + 1) and np.array_equal(ids[:, :-1], known):
                step = before.grown(ids[:, -1].tolist())
            else:
                step = before.moved(ids, known)
        if step is None:
            generation, texts = Generation.begin(
                self._indexes, rows, length, self._prompt_length, self._strict
            )
            generation.extend(texts, ids[:, generation.prompt :].tolist(), generation.prompt)
            step = Step(generation, length, texts)
        self._last = ids.copy(), step
        return step.texts


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


def check_prompt_length(prompt_length: int | None) -> None:
    """Raise `ValueError` for a negative number."""
    if prompt_length is not None and prompt_length < 0:
        raise ValueError(f"prompt_length is a number of tokens, got {prompt_length}")


def check_rows(rows: int, length: int, indexes: int, prompt_length: int | None) -> None:
    """Raise `BitmaskError` for rows that the indexes cannot share, or that are shorter than the prompt."""
    if rows % indexes:
        raise BitmaskError(
            f"{rows} rows cannot be shared out among {indexes} indexes",
            remedy="Pass one index, or one (or None) for each prompt of the batch.",
        )
    if length < (prompt_length or 0):
        raise BitmaskError(f"input_ids of length {length} are shorter than the prompt")


def longest_common_prefix(row: Ids, others: Ids) -> tuple[int, int]:
    """Which of ``others`` (``[n, m]``) shares the longest prefix with ``row``, and that length."""
    width = min(len(row), others.shape[1])
    if not width:
        return 0, 0
    differs = others[:, :width] != row[:width]
    lengths = np.where(differs.any(axis=1), differs.argmax(axis=1), width)
    best = int(lengths.argmax())
    return best, int(lengths[best])
