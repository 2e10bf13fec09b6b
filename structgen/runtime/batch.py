"""`GuideBatch`: many sequences over one vocabulary, moved and masked together.

What a `Guide` does for one sequence with dictionaries, a batch does for all of its sequences in one call of a kernel,
without the GIL: the indexes' configurations are states of one lazily built automaton (`structgen.runtime.lazy_automaton`),
histories a forest (`structgen.runtime.histories`), masks numbered rows (`structgen.runtime.row_store`). What no sequence
did before is worked out by the index's machine, as for a guide, and remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..errors import BatchError, BitmaskError, RollbackError, StructgenError, TokenIdError, VocabularyMismatchError
from ..kernels import ACCEPTED, ENDED, FREE, PENDING, REJECTED, UNKNOWN
from ..vocabulary.vocabulary import Vocabulary
from .bitmask import describe
from .guide import Guide
from .histories import Histories
from .index import Index
from .lazy_automaton import LazyAutomaton
from .row_store import EOS_IDS, RowStore

#: Numbers of rows, of tokens, or token ids: a sequence or an array of integers, or a tensor on the CPU.
Integers: TypeAlias = Any


class GuideBatch:
    """Sequences by number, 0 to ``len(batch) - 1``: the rows of the batch.

    Each row follows its own index, or none: then every id of the vocabulary is allowed. The state after an EOS token is
    that of `Guide`: the mask holds the EOS ids alone, and further EOS ids change nothing.

    A row that goes wrong takes no other down: the others move on, and `errors` says what was wrong. A batch is not meant
    for several threads at once, while the indexes behind it are.

    Parameters
    ----------
    vocabulary:
        The tokens, those of all indexes.
    indexes:
        The first rows; see `add`.
    max_rollback:
        So many tokens of each row, at least, can be taken back; None remembers all, 8 bytes each.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        indexes: Iterable[Index | Guide | None] = (),
        *,
        max_rollback: int | None = None,
    ) -> None:
        if max_rollback is not None and max_rollback < 0:
            raise RollbackError(f"max_rollback is {max_rollback}", remedy="Use a number of tokens, or None.")
        self.vocabulary = vocabulary
        #: The masks by number, as `row_ids` gives them.
        self.rows = RowStore(vocabulary)
        #: What was wrong in the last call, by row.
        self.errors: dict[int, StructgenError] = {}
        self._automaton = LazyAutomaton(vocabulary, self.rows)
        self._histories = Histories(max_rollback)
        self._indexes: list[Index | None] = []
        #: The number of each row's mask, `UNKNOWN` where it has not been asked for.
        self._row_ids = np.zeros(0, np.int32)
        self._every = np.zeros(0, np.int32)
        #: The batch's own masks, ``int32[batch, words]``, and the numbers of what they show.
        self._masks = np.zeros((0, vocabulary.words), np.int32)
        self._shown = np.zeros(0, np.int32)
        for each in indexes:
            self.add(each)

    def __len__(self) -> int:
        return len(self._indexes)

    def __repr__(self) -> str:
        return f"<GuideBatch of {len(self)} over {self.vocabulary!r}>"

    # -- rows ------------------------------------------------------------------------------------------

    def add(self, index: Index | Guide | None) -> int:
        """Append a row, and return its number.

        Parameters
        ----------
        index:
            Begin at the beginning of an index, go on where a guide is, or without a definition.

        Raises
        ------
        VocabularyMismatchError
            For an index of another vocabulary; names the row. The batch stays as it is.
        """
        guide, index = (index, index.index) if isinstance(index, Guide) else (None, index)
        if index is not None and index.vocabulary.fingerprint != self.vocabulary.fingerprint:
            raise VocabularyMismatchError(
                f"the index belongs to {index.vocabulary!r}, the batch to {self.vocabulary!r}",
                where=f"row {len(self)}",
                remedy="Compile every definition of a batch with the model's own vocabulary.",
            )
        self._make_room()
        path = [self._start(index)] if guide is None else [self._number(guide.index, c) for c in guide.path()]
        node = self._histories.grow(path)
        self._indexes.append(index)
        self._histories.at = np.append(self._histories.at, np.int32(node))
        self._rearranged(np.append(self._row_ids, np.int32(UNKNOWN)))
        return len(self) - 1

    def remove(self, rows: Integers) -> None:
        """Remove rows, named by number; those behind them move up. Raises `BatchError` for one that isn't there."""
        gone = set(self._which(rows).tolist())
        self.reorder([row for row in range(len(self)) if row not in gone])

    def reorder(self, rows: Integers) -> None:
        """Have row ``i`` be what row ``rows[i]`` was, with its history; a row may be named often, or never.

        So beams change places and sequences are forked, each in constant time.

        Raises `BatchError` for a row that isn't there.
        """
        chosen = self._which(rows, distinct=False)
        self._indexes = [self._indexes[row] for row in chosen.tolist()]
        self._histories.at = self._histories.at[chosen]
        self._rearranged(self._row_ids[chosen])

    def reset(self, rows: Integers = None) -> None:
        """Take rows, by default all, back to the beginning, and forget what could be rolled back."""
        for row in self._which(rows).tolist():
            self._histories.at[row] = self._histories.grow([self._start(self._indexes[row])])
            self._row_ids[row] = UNKNOWN

    def index(self, row: int) -> Index | None:
        """The index of a row."""
        return self._indexes[int(self._which([row])[0])]

    def guide(self, row: int) -> Guide | None:
        """A guide where a row is, with its history, which goes its own way from there; None without an index."""
        index = self.index(row)
        if index is None:
            return None
        places = map(self._automaton.place, self._histories.path(row))
        return Guide.at(index, [place and place[1] for place in places])

    def _rearranged(self, row_ids: NDArray[np.int32]) -> None:
        self._row_ids = row_ids
        self._shown = np.full(len(row_ids), UNKNOWN, np.int32)
        self._every = np.arange(len(row_ids), dtype=np.int32)
        self.errors = {}

    def _start(self, index: Index | None) -> int:
        return FREE if index is None else self._automaton.number(index.machine, index.machine.start)

    def _number(self, index: Index, config: Any) -> int:
        return ENDED if config is None else self._automaton.number(index.machine, config)

    # -- masks -----------------------------------------------------------------------------------------

    def row_ids(self) -> NDArray[np.int32]:
        """The number of each row's mask in `rows`, ``int32[batch]``: all that a device needs that holds those."""
        self._find_rows()
        return self._row_ids.copy()

    def bitmask(self) -> NDArray[np.int32]:
        """The allowed tokens, as a read-only ``int32[batch, words]`` that the batch keeps and changes.

        Only what differs from the last call is written, which for most steps is a few words. It holds until the next
        call of a method that moves rows.
        """
        self._find_rows()
        if len(self._masks) != len(self):
            self._masks = np.zeros((len(self), self.vocabulary.words), np.int32)
            self._shown[:] = UNKNOWN
        rows = self.rows
        kernels.change_rows(self._row_ids, self._shown, rows.rows, rows.counts, rows.places, self._masks)
        view = self._masks.view()
        view.flags.writeable = False
        return view

    def fill_bitmask(self, bitmask: Any) -> None:
        """Write the allowed tokens of every row into ``bitmask``, in place.

        Parameters
        ----------
        bitmask:
            A writable ``int32[batch, words]``: a NumPy array, or a torch tensor on the CPU. It may be wider than the
            vocabulary (padded logits); the tail is set to zero.

        Raises
        ------
        BitmaskError
            For another dtype, shape or device, or fewer words than the vocabulary needs.
        """
        self._find_rows()
        self._copy(self._row_ids, self._checked_masks(bitmask, (len(self),)))

    def _copy(self, numbers: NDArray[np.int32], masks: NDArray[np.int32]) -> None:
        rows = self.rows
        whole = masks if masks.flags.c_contiguous else np.empty(masks.shape, np.int32)
        kernels.copy_rows(numbers, rows.rows, rows.counts, rows.places, whole)
        if whole is not masks:
            masks[...] = whole

    def _checked_masks(self, bitmask: Any, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """``int32[n, width]`` for masks of this shape, ``width`` aside."""
        device = getattr(bitmask, "device", None)
        if device is not None and getattr(device, "type", "cpu") != "cpu":
            raise BitmaskError(
                f"masks are written to CPU memory, got a tensor on {device}",
                remedy="Use structgen.runtime.devices.DeviceRows, which keeps masks on the device.",
            )
        masks = np.asarray(bitmask) if hasattr(bitmask, "__array__") else bitmask
        words = self.vocabulary.words
        if (
            not isinstance(masks, np.ndarray) or masks.dtype != np.int32
            or masks.shape[:-1] != shape or masks.shape[-1] < words
        ):  # fmt: skip
            sizes = ", ".join(map(str, (*shape, words)))
            raise BitmaskError(
                f"the bitmask is int32[{sizes}] or wider, got {describe(bitmask)}",
                remedy="Allocate structgen.runtime.allocate(batch, width).",
            )
        if not masks.flags.writeable:
            raise BitmaskError("the bitmask is read-only", remedy="Pass an array that can be written.")
        return masks

    def _find_rows(self) -> None:
        """Have the number of every row's mask."""
        missing = np.flatnonzero(self._row_ids == UNKNOWN)
        for row, config in zip(missing.tolist(), self._histories.here()[missing].tolist(), strict=True):
            self._row_ids[row] = self._row_of(config, row)

    def _row_of(self, config: int, row: int) -> int:
        """The number of a configuration's mask. One that can't be worked out lets the row end, and is an error."""
        try:
            return self._automaton.row(config)
        except StructgenError as error:
            self.errors[row] = error
            return EOS_IDS

    # -- moves -----------------------------------------------------------------------------------------

    def advance(self, token_ids: Integers, rows: Integers = None) -> NDArray[np.bool_]:
        """Append one token to each row, or to some.

        A row whose token is refused, or out of range, stays as it is, and `errors` says why.

        Parameters
        ----------
        token_ids:
            ``int[n]``: one for each row of ``rows``.
        rows:
            ``int[n]``: the numbers of rows, each once; None for all.

        Returns
        -------
        ``bool[n]``: which were accepted.

        Raises
        ------
        BatchError
            For another number of tokens than rows, or a row that isn't there; nothing has changed.
        """
        which = self._which(rows)
        wanted = self._integers(token_ids, "token_ids")
        if wanted.shape != which.shape:
            raise BatchError(f"{len(which)} rows are advanced by token_ids int[{len(which)}], got {describe(wanted)}")
        self.errors = {}
        self._make_room()
        histories, automaton = self._histories, self._automaton
        histories.reserve(len(which))
        outcome = np.zeros(len(which), np.int8)
        tokens = wanted.astype(np.int32)
        outside = (wanted < 0) | (wanted >= self.vocabulary.size)
        if outside.any():
            outcome[outside] = REJECTED
        while True:
            pending, _ = kernels.advance_batch(
                tokens, which, histories.at, histories.befores, histories.configs, histories.used, automaton.offsets,
                automaton.blob, automaton.following, automaton.spelled_in, automaton.keys, automaton.values,
                automaton.row_of, outcome, self._row_ids,
            )  # fmt: skip
            if not pending:
                break
            for i in np.flatnonzero(outcome == PENDING).tolist():
                row = int(which[i])
                try:
                    automaton.target(int(histories.configs[histories.at[row]]), int(tokens[i]))
                except StructgenError as error:
                    outcome[i], self.errors[row] = REJECTED, error
        accepted: NDArray[np.bool_] = outcome == ACCEPTED
        if not accepted.all():
            for i in np.flatnonzero(~accepted).tolist():
                self._refused(int(which[i]), int(wanted[i]))
        return accepted

    def _refused(self, row: int, token: int) -> None:
        if row in self.errors:
            return
        what = "is not allowed by the definition of its row"
        if not 0 <= token < self.vocabulary.size:
            what = f"is outside the vocabulary, 0..{self.vocabulary.size - 1}"
        self.errors[row] = TokenIdError(f"token {token} {what}", where=f"row {row}")

    def rollback(self, counts: Integers, rows: Integers = None) -> None:
        """Take back the last tokens that rows have accepted.

        Parameters
        ----------
        counts:
            One number for all, or ``int[n]``, one for each.
        rows:
            ``int[n]``: the numbers of rows, each once; None for all.

        Raises
        ------
        RollbackError
            Past the beginning, or past what ``max_rollback`` remembers; names the row. Nothing has changed.
        """
        which = self._which(rows)
        back = np.broadcast_to(self._integers(counts, "counts", few=True), which.shape).astype(np.int32)
        nodes = self._histories.before(which, np.maximum(back, 0))
        wrong = np.flatnonzero((nodes < 0) | (back < 0))
        if len(wrong):
            row = int(which[wrong[0]])
            known = len(self._histories.path(row)) - 1
            raise RollbackError(
                f"cannot roll back {back[wrong[0]]} tokens, {known} were accepted, or are remembered",
                where=f"row {row}",
            )
        self._histories.at[which] = nodes
        self._row_ids[which] = self._automaton.row_of[self._histories.configs[nodes]]

    # -- questions -------------------------------------------------------------------------------------

    def is_accepting(self) -> NDArray[np.bool_]:
        """Which rows are complete, so that an EOS id is allowed; ``bool[batch]``."""
        return np.array([self._automaton.is_accepting(c) for c in self._histories.here().tolist()], np.bool_)

    def is_finished(self) -> NDArray[np.bool_]:
        """Which rows have accepted an EOS id; ``bool[batch]``. A row without an index never has."""
        finished: NDArray[np.bool_] = self._histories.here() == ENDED
        return finished

    # -- in common -------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Begin anew where too much is remembered."""
        if self._automaton.is_full():
            self._histories.renumber(self._automaton.forget(self._histories.live()))
        if self.rows.is_full():
            self.rows.forget()
            self._automaton.forget_rows()
            self._row_ids[:] = UNKNOWN
            self._shown[:] = UNKNOWN

    def _which(self, rows: Integers, *, distinct: bool = True) -> NDArray[np.int32]:
        """Numbers of rows, checked; all of them for None."""
        if rows is None:
            return self._every
        which = self._integers(rows, "rows", few=True).reshape(-1)
        outside = (which < 0) | (which >= len(self))
        if outside.any():
            raise BatchError(f"the batch has {len(self)} rows", where=f"row {which[outside][0]}")
        if distinct and len(np.unique(which)) < len(which):
            raise BatchError("a row is named twice", where=f"rows {which.tolist()[:20]}")
        return which.astype(np.int32)

    @staticmethod
    def _integers(values: Integers, name: str, *, few: bool = False) -> NDArray[np.int64]:
        """``int64[n]``; a single number only where there may be one."""
        device = getattr(values, "device", None)
        if device is not None and getattr(device, "type", "cpu") != "cpu":
            raise BatchError(f"{name} are read on the CPU, got a tensor on {device}", remedy="Copy it there first.")
        array = np.asarray(values)
        if not array.size:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu" or array.ndim != 1 and not (few and array.ndim == 0):
            raise BatchError(f"{name} are int[n], got {describe(array)}")
        return array.astype(np.int64, copy=False)
