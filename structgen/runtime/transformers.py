"""`LogitsProcessor`: a definition for each row of transformers' ``generate()``.

A row's mask depends on the tokens after the prompt in that row, and on nothing else: beams may swap rows,
assisted decoding may go back, and a call may be repeated. To find a row's guide without reading all of its
tokens again, the processor keeps the ids and guides of the last call:

- the rows of the last call with one token more (every step of greedy search and sampling): one comparison of
  two tensors on their device, and one `Guide.advance` for each row;
- otherwise (beams, drafts), each row takes up from the remembered row with which it shares the longest
  prefix: fork that guide, roll it back, advance over the rest. A few vectorised comparisons for each row.

Nothing here imports transformers: ``generate()`` only calls its processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import BitmaskError, TokenIdError, VocabularyError
from .bitmask import common_vocabulary, describe
from .guide import Guide
from .logits import apply_bitmask

if TYPE_CHECKING:
    from .index import Index


class LogitsProcessor:
    """Keeps ``generate(logits_processor=[...])`` inside one definition, or one for each prompt.

    Disallowed tokens get the score ``-inf``; the scores passed in are not modified. A row that has ended (an
    EOS id was generated; what follows is padding) is allowed the EOS ids only, so that no row is ever all
    ``-inf``.

    **Where the generated text begins.** The first call sees the prompt, left padding included. A later call
    goes on with the same generation if it has as many rows and each of them is the same prompt, then a text
    known from the last call (a row of it, or the beginning of one), then at most one more token, which is
    allowed there if the row went back. Any other call starts a new generation, and all of its ids are the
    prompt. So one processor serves one ``generate()`` after another. What the ids cannot tell apart is taken
    for the same generation: a new prompt that is the old one plus the beginning of its answer, or plus a
    single token. Call `reset` before such a prompt, or give ``prompt_length``.

    Use one processor for one ``generate()`` at a time.

    Parameters
    ----------
    indexes:
        One index for all rows, or a sequence with one for each prompt of the batch, where ``None`` leaves the
        rows of a prompt alone. With ``num_beams`` or ``num_return_sequences``, row ``r`` of the scores
        belongs to prompt ``r // (rows // len(indexes))``. All indexes belong to one vocabulary.
    prompt_length:
        Number of leading ids of every row, padding included, that are no part of the text. ``None`` finds it
        out as described above. With a number, a row's text is what follows, whatever was seen before.
    strict:
        What to do about a token that was not allowed. True: raise `TokenIdError`. False: end the row, as an
        EOS id would; its text is outside the definition. Beam sampling (``num_beams`` with ``do_sample``)
        needs False: where fewer tokens are possible than it draws, it fills up with tokens of probability
        zero, in beams that score ``-inf`` and are dropped.

    Raises
    ------
    VocabularyMismatchError
        Where two indexes belong to different vocabularies.
    VocabularyError
        For a vocabulary without EOS ids: ``generate()`` could not end a text.
    """

    #: Read by transformers: its continuous batching flattens the rows, which could not be told apart here.
    supports_continuous_batching = False

    def __init__(
        self,
        indexes: Index | Sequence[Index | None],
        *,
        prompt_length: int | None = None,
        strict: bool = True,
    ) -> None:
        self._indexes = tuple(indexes) if isinstance(indexes, Sequence) else (indexes,)
        if not self._indexes:
            raise ValueError("LogitsProcessor needs an index, or an index or None for each prompt")
        if prompt_length is not None and prompt_length < 0:
            raise ValueError(f"prompt_length is a number of tokens, got {prompt_length}")
        vocabulary = common_vocabulary([None if i is None else i.vocabulary for i in self._indexes])
        if vocabulary is not None and not vocabulary.eos_ids:
            raise VocabularyError(
                "the vocabulary has no EOS id, so generate() could not end a text",
                remedy="Name the ids that end a text when the vocabulary is made: eos_ids=[...].",
            )
        self._prompt_length = prompt_length
        self._strict = strict
        self._last: _Step | None = None

    def reset(self) -> None:
        """Forget the generation in progress: the next call is the first of a new one."""
        self._last = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Mask the scores of each row's next token.

        Parameters
        ----------
        input_ids:
            ``int64[rows, length]``: prompt and generated tokens.
        scores:
            ``[rows, width]``, float32, float16 or bfloat16; ``width`` may exceed the vocabulary's size.

        Returns
        -------
        torch.Tensor
            A new tensor of the same shape and dtype; ``scores`` itself where no row has an index.

        Raises
        ------
        BitmaskError
            For ids or scores of the wrong shape or dtype, a number of rows that is no multiple of the number
            of indexes, ids shorter than ``prompt_length``, or scores narrower than the vocabulary.
        TokenIdError
            With ``strict``, for a token that was not allowed; names the row and the token.
        """
        self._check(input_ids, scores)
        last, self._last = self._last, None  # forgotten, should this raise
        step = last and (last.grown(input_ids) or last.moved(input_ids))
        self._last = step = step or self._first(input_ids)
        return _masked(scores, step.texts)

    def _check(self, input_ids: torch.Tensor, scores: torch.Tensor) -> None:
        if input_ids.dim() != 2 or input_ids.is_floating_point():
            raise BitmaskError(f"input_ids are int64[rows, length], got {describe(input_ids)}")
        rows, length = input_ids.shape
        if scores.dim() != 2 or scores.shape[0] != rows:
            raise BitmaskError(f"scores are [{rows}, width] for {rows} rows of input_ids, got {describe(scores)}")
        if rows % len(self._indexes):
            raise BitmaskError(
                f"{rows} rows cannot be shared out among {len(self._indexes)} indexes",
                remedy="Pass one index, or one (or None) for each prompt of the batch.",
            )
        if length < (self._prompt_length or 0):
            raise BitmaskError(f"input_ids of length {length} are shorter than the prompt")

    def _first(self, input_ids: torch.Tensor) -> _Step:
        """The first step of a generation; where the prompt's length was given there may be text already."""
        rows, length = input_ids.shape
        share = rows // len(self._indexes)
        fixed = self._prompt_length is not None
        prompt = self._prompt_length if self._prompt_length is not None else length
        generation = _Generation(prompt, fixed, self._strict, share)
        texts = [_Text(index) for index in self._indexes for _ in range(share)]
        for row, (text, tokens) in enumerate(zip(texts, input_ids[:, prompt:].tolist(), strict=True)):
            for position, token in enumerate(tokens, prompt):
                generation.append(text, token, row, position)
        return _Step(generation, input_ids, texts)


def _masked(scores: torch.Tensor, texts: list[_Text]) -> torch.Tensor:
    masks = {row: mask for row, text in enumerate(texts) if (mask := text.bitmask()) is not None}
    if not masks:
        return scores
    # A copy, as transformers' own processors make: callers go on using the scores that they passed in.
    masked = scores.clone()
    rows = None if len(masks) == len(texts) else list(masks)
    apply_bitmask(masked, np.stack(list(masks.values())), rows=rows)
    return masked


class _Text:
    """The generated text of one row: a guide, and the number of tokens after the guide stopped.

    Without an index there is no guide, and any token may follow any other.
    """

    __slots__ = ("_guide", "_surplus")

    def __init__(self, index: Index | None) -> None:
        self._guide = None if index is None else Guide(index)
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

    def rewound(self, n: int) -> _Text:
        """An independent copy without the last ``n`` tokens."""
        twin = _Text(None)
        twin._surplus = max(0, self._surplus - n)
        if self._guide is not None:
            twin._guide = self._guide.fork()
            twin._guide.rollback(max(0, n - self._surplus))
        return twin


@dataclass(frozen=True)
class _Generation:
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

    def append(self, text: _Text, token: int, row: int, position: int) -> None:
        """Append the token at ``position`` of a row to its text, allowed or not."""
        if text.advance(token):
            return
        if self.strict:
            raise TokenIdError(
                f"token {token} is not allowed by the definition of its row",
                where=f"row {row}, {position - self.prompt} tokens after a prompt of {self.prompt}",
                remedy=(
                    "Another logits processor may have forbidden or forced tokens (min_new_tokens, "
                    "bad_words_ids, ...). Beam sampling draws impossible tokens: pass strict=False. Before a "
                    "prompt that is the last one plus a token, call reset()."
                ),
            )
        text.abandon()


class _Step:
    """What one call saw: the ids of all rows (``int64[rows, length]``, copied), and the text of each."""

    def __init__(self, generation: _Generation, input_ids: torch.Tensor, texts: list[_Text]) -> None:
        self._generation = generation
        self._ids = input_ids.clone()
        self.texts = texts

    def grown(self, input_ids: torch.Tensor) -> _Step | None:
        """The next step, if the rows are the same with one token more. Takes over this step's texts."""
        rows, length = self._ids.shape
        if input_ids.shape != (rows, length + 1) or input_ids.device != self._ids.device:
            return None
        if not torch.equal(input_ids[:, :-1], self._ids):
            return None
        for row, (text, token) in enumerate(zip(self.texts, input_ids[:, -1].tolist(), strict=True)):
            self._generation.append(text, token, row, length)
        return _Step(self._generation, input_ids, self.texts)

    def moved(self, input_ids: torch.Tensor) -> _Step | None:
        """The next step, if every row takes up from a text of this one; ``None`` for a new generation."""
        ids, known = input_ids.cpu().numpy(), self._ids.cpu().numpy()
        prompt = self._generation.prompt
        if len(ids) != len(known) or not np.array_equal(ids[:, :prompt], known[:, :prompt]):
            return None
        texts: list[_Text] = []
        for row, cohort in enumerate(self._cohorts(known)):
            donor, shared = _longest_common_prefix(ids[row, prompt:], known[cohort, prompt:])
            text = self._taken_up(ids[row], row, cohort[donor], prompt + shared)
            if text is None:
                return None
            texts.append(text)
        return _Step(self._generation, input_ids, texts)

    def _taken_up(self, ids: NDArray[np.int64], row: int, donor: int, start: int) -> _Text | None:
        """The text of ``ids``, the first ``start`` of which are the donor's; ``None`` if it is none of
        these."""
        generation, length = self._generation, self._ids.shape[1]
        rest = ids[start:].tolist()
        if len(rest) > 1 and not generation.fixed:
            return None
        text = self.texts[donor].rewound(length - start)
        if rest and start < length and not generation.fixed:
            return text if text.advance(rest[0]) else None
        for position, token in enumerate(rest, start):
            generation.append(text, token, row, position)
        return text

    def _cohorts(self, known: NDArray[np.int64]) -> list[list[int]]:
        """For each row, the rows with the same prompt and the same index, which it could come from."""
        members: dict[tuple[int, bytes], list[int]] = {}
        for row, ids in enumerate(known):
            key = (row // self._generation.share, ids[: self._generation.prompt].tobytes())
            members.setdefault(key, []).append(row)
        cohort_of = {row: cohort for cohort in members.values() for row in cohort}
        return [cohort_of[row] for row in range(len(known))]


def _longest_common_prefix(row: NDArray[np.int64], others: NDArray[np.int64]) -> tuple[int, int]:
    """Which of ``others`` (``int64[n, m]``) shares the longest prefix with ``row``, and that length."""
    width = min(len(row), others.shape[1])
    if not width:
        return 0, 0
    differs = others[:, :width] != row[:width]
    lengths = np.where(differs.any(axis=1), differs.argmax(axis=1), width)
    best = int(lengths.argmax())
    return best, int(lengths[best])
