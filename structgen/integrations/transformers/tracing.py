"""`TracingProcessor`: a `LogitsProcessor` that records what it does.

A processor sees the ids so far and the scores of the next token; which token was drawn, it sees with the next call.
So steps are found as texts are (`structgen.runtime.guide.tracker.Rows`): each row takes up the record of the
remembered row with which it shares the longest prefix, what that has beyond it was taken back, and the rest is new.
The last token of each row is in no call: `TracingProcessor.traces` is given what ``generate()`` returned.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING, NamedTuple

import torch

from ...errors import BitmaskError, VocabularyError
from ...runtime.guide.tracker import Text
from ...system.arguments import describe
from ...traces.recorder import CANDIDATES, MAX_STEPS, Recorder
from ...traces.trace import Trace
from .loops import calling_loop
from .processor import LogitsProcessor, _signed

if TYPE_CHECKING:
    from ...runtime.index.index import Index
    from ...vocabulary.vocabulary import Vocabulary

__all__ = ["TracingProcessor"]

#: Lines that no row went on with, of which so many are remembered.
_MOST_LEFT = 256


class TracingProcessor(LogitsProcessor):
    """A recording `LogitsProcessor`: ``generate(logits_processor=[processor])``, then ``processor.traces(output)``.

    It records the scores that it receives, after processors before it in the list. Drafts of assisted decoding and
    abandoned beams are recorded as tokens that were taken back.

    Parameters
    ----------
    indexes, prompt_length, strict, max_tokens:
        As in `LogitsProcessor`. A row with None is recorded as it is, for comparison.
    vocabulary:
        The tokens, where no row has an index.
    max_steps, candidates:
        For each row, as in `structgen.TracedGuide`.

    Raises
    ------
    VocabularyError
        Where no row has an index and there is no ``vocabulary``. Also the errors of `LogitsProcessor`.
    """

    def __init__(
        self,
        indexes: Index | Sequence[Index | None] | None,
        *,
        prompt_length: int | None = None,
        strict: bool | None = None,
        max_tokens: int | None = None,
        vocabulary: Vocabulary | None = None,
        max_steps: int = MAX_STEPS,
        candidates: int = CANDIDATES,
    ) -> None:
        every = tuple(indexes) if isinstance(indexes, Sequence) else (indexes,)
        super().__init__(every, prompt_length=prompt_length, strict=strict, max_tokens=max_tokens)
        known = self._rows.vocabulary or vocabulary
        if known is None:
            what = "without an index it isn't known what the tokens are"
            raise VocabularyError(what, remedy="Pass vocabulary=.")
        self._vocabulary = known
        self._indexes = every
        self._bounds = max_steps, candidates
        self._generation = -1
        #: The rows of the last call, and those of earlier ones that no row went on with: beams may have ended there.
        self._lines: list[_Line] = []
        self._left: deque[_Line] = deque(maxlen=_MOST_LEFT)

    @_signed
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Mask the scores of each row's next token, and record them; see `LogitsProcessor`."""
        if calling_loop().foreign:
            return scores
        begun = time.perf_counter()
        masked = super().__call__(input_ids, scores)
        share = (time.perf_counter() - begun) / max(1, len(scores))
        rows, texts = self._rows, self._rows.texts
        if self._generation != rows.generation:
            self._generation = rows.generation
            self._lines = [_Line([], 0, self._new(row, len(texts)), text) for row, text in enumerate(texts)]
            self._left.clear()
        lines, continued = [], set()
        for row, ids in enumerate(input_ids[:, rows.prompt :].tolist()):
            donor, shared = _closest(ids, self._lines, row * len(self._lines) // len(texts))
            line = self._lines[donor]
            if shared == len(line.ids):
                continued.add(donor)
            recorder, recorded = self._followed(line, ids, shared, texts[row].rewound(len(ids) - shared))
            lines.append(_Line(ids, recorded, recorder, texts[row]))
        self._left += [line for number, line in enumerate(self._lines) if number not in continued]
        self._lines = lines
        for scores_of_row, line in zip(scores, lines, strict=True):
            line.recorder.ask(share)
            line.recorder.see(scores_of_row, line.text.bitmask())
        return masked

    def traces(self, sequences: torch.Tensor, *, prompts: Sequence[str] = ()) -> list[Trace]:
        """Return the record of each row.

        Parameters
        ----------
        sequences:
            ``int64[rows, length]``: the result of ``generate()``, prompts included.
        prompts:
            The prompts, one for each row, for readers.

        Raises
        ------
        BitmaskError
            For ids that are not of the last generation.
        """
        if sequences.ndim != 2:
            raise BitmaskError(f"sequences are [rows, length], got {describe(sequences)}")
        if not self._lines:
            raise BitmaskError("nothing was generated with this processor")
        found = []
        lines = [*self._lines, *self._left]
        for row, ids in enumerate(sequences[:, self._rows.prompt :].tolist()):
            donor, shared = _closest(ids, lines, row * len(self._lines) // len(sequences))
            line = lines[donor]
            recorder, _ = self._followed(line, ids, shared, line.text.rewound(len(line.ids) - shared))
            found.append(recorder.trace(prompts[row] if row < len(prompts) else ""))
        return found

    def _new(self, row: int, rows: int) -> Recorder:
        steps, candidates = self._bounds
        index = self._indexes[row * len(self._indexes) // rows]
        return Recorder(self._vocabulary, index, max_steps=steps, candidates=candidates)

    def _followed(self, line: _Line, ids: list[int], shared: int, text: Text) -> tuple[Recorder, int]:
        """The record of a row that has the first ``shared`` ids of a line, whose ``text`` that is, then its own; and
        how many of its ids are in it."""
        recorder, recorded = line.recorder.fork(), min(line.recorded, shared)
        if line.recorded > shared:
            recorder.rollback(line.recorded - shared)
        for token in _until_end(ids, shared, text, self._vocabulary):
            recorder.add(token, text.bitmask())
            text.advance(token)
            recorded += 1
        return recorder, recorded


class _Line(NamedTuple):
    """The tokens of a row behind the prompt, how many are recorded (padding is not), their record, their text."""

    ids: list[int]
    recorded: int
    recorder: Recorder
    text: Text


def _closest(ids: list[int], lines: Sequence[_Line], first: int) -> tuple[int, int]:
    """The line with the longest common prefix, the ``first`` one if there are several; and that length."""
    shared = [sum(takewhile(bool, map(eq, ids, line.ids))) for line in lines]
    best = max(range(len(shared)), key=lambda each: (shared[each], each == first))
    return best, shared[best]


def _until_end(ids: list[int], start: int, text: Text, vocabulary: Vocabulary) -> Iterator[int]:
    """The ids from ``start`` on, without the padding behind the end of a text."""
    for position in range(start, len(ids)):
        without = text.bitmask() is None
        ended = position and ids[position - 1] in vocabulary.eos_ids if without else text.has_ended()
        if ended:
            return
        yield ids[position]
