"""`TracedBatch`: a `GuideBatch` that records the text of each row."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ..errors import BatchError
from ..runtime.batch.batch import GuideBatch
from ..runtime.guide.guide import Guide
from ..runtime.index.index import Index
from ..system.arguments import Integers, describe
from ..system.types import Foreign
from ..vocabulary.vocabulary import Vocabulary
from .recorder import CANDIDATES, MAX_STEPS, Recorder
from .trace import Trace


class TracedBatch(GuideBatch):
    """A `GuideBatch` that records each token of each row, as `structgen.TracedGuide` does.

    Use it as a `GuideBatch`. Drafts are recorded when they are accepted. The history of a guide that is added is
    not recorded. Copies are plain batches, which record nothing.

    Parameters
    ----------
    vocabulary, indexes, max_rollback:
        As in `GuideBatch`.
    max_steps, candidates:
        For each row, as in `structgen.TracedGuide`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        indexes: Iterable[Index | Guide | None] = (),
        *,
        max_rollback: int | None = None,
        max_steps: int = MAX_STEPS,
        candidates: int = CANDIDATES,
    ) -> None:
        self._recorders: list[Recorder] = []
        self._bounds = max_steps, candidates
        super().__init__(vocabulary, indexes, max_rollback=max_rollback)

    def traces(self) -> list[Trace]:
        """Return the record of each row so far."""
        return [each.trace() for each in self._recorders]

    def trace(self, row: int, behind: Sequence[int] = ()) -> Trace:
        """Return the record of a row so far.

        Parameters
        ----------
        row:
            The number of the row.
        behind:
            Further tokens at the end of the row that were not appended.
        """
        recorder, guide = self._recorders[row].fork(), self.guide(row) if behind else None
        for token in behind:
            recorder.add(token, None if guide is None else guide.bitmask())
            if guide is not None and not guide.advance(token):
                break
        return recorder.trace()

    def see(self, scores: Foreign, rows: Integers = None) -> None:
        """Record the model's scores of each row's next token, before any mask.

        Parameters
        ----------
        scores:
            ``float[rows, width]``: logits or log-probabilities, an array or a tensor on any device. ``width`` may
            exceed the vocabulary's size.
        rows:
            ``int[n]``: the numbers of the rows. None: all.

        Raises
        ------
        BatchError
            For a wrong number of rows.
        BitmaskError
            For scores narrower than the vocabulary.
        """
        which, masks = self._which(rows).tolist(), self._current_masks()
        if len(scores) != len(which):
            raise BatchError(f"scores are [{len(which)}, width], got {describe(scores)}")
        for scores_of_row, row in zip(scores, which, strict=True):
            self._recorders[row].see(scores_of_row, masks[row])

    def _current_masks(self) -> list[NDArray[np.int32] | None]:
        masks = super().bitmask()
        return [None if self.index(row) is None else mask.copy() for row, mask in enumerate(masks)]

    # -- rows ------------------------------------------------------------------------------------------

    def add(self, index: Index | Guide | None, *, max_tokens: int | None = None) -> int:
        """As of a `GuideBatch`."""
        row = super().add(index, max_tokens=max_tokens)
        steps, candidates = self._bounds
        of = index.index if isinstance(index, Guide) else index
        self._recorders.append(Recorder(self.vocabulary, of, max_steps=steps, candidates=candidates))
        return row

    def reorder(self, rows: Integers) -> None:
        """As of a `GuideBatch`; the records go along."""
        chosen = self._which(rows, distinct=False).tolist()
        super().reorder(rows)
        self._recorders = [self._recorders[row].fork() for row in chosen]

    def reset(self, rows: Integers = None) -> None:
        """As of a `GuideBatch`; what was recorded of these rows is forgotten."""
        super().reset(rows)
        for row in self._which(rows).tolist():
            self._recorders[row].reset()

    # -- masks and moves -------------------------------------------------------------------------------

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Divide the time that masks take among the rows."""
        begun = time.perf_counter()
        yield
        share = (time.perf_counter() - begun) / max(1, len(self))
        for recorder in self._recorders:
            recorder.ask(share)

    def row_ids(self) -> NDArray[np.int32]:
        """As of a `GuideBatch`."""
        with self._asked():
            return super().row_ids()

    def bitmask(self) -> NDArray[np.int32]:
        """As of a `GuideBatch`."""
        with self._asked():
            return super().bitmask()

    def fill_bitmask(self, bitmask: object) -> None:
        """As of a `GuideBatch`."""
        with self._asked():
            super().fill_bitmask(bitmask)

    def advance(self, token_ids: Integers, rows: Integers = None) -> NDArray[np.bool_]:
        """As of a `GuideBatch`."""
        which, masks = self._which(rows).tolist(), self._current_masks()
        accepted = super().advance(token_ids, rows)
        for row, token, taken in zip(which, np.asarray(token_ids).tolist(), accepted.tolist(), strict=True):
            if taken:
                self._recorders[row].add(token, masks[row])
        return accepted

    def rollback(self, counts: Integers, rows: Integers = None) -> None:
        """As of a `GuideBatch`."""
        super().rollback(counts, rows)
        which = self._which(rows).tolist()
        for row, count in zip(which, np.broadcast_to(np.asarray(counts), len(which)).tolist(), strict=True):
            self._recorders[row].rollback(count)
