"""Partial masks in flat arrays, as `structgen.kernels.walk_stack_masks` reads them; they grow as more decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import FormatError
from ..core.bitsets import bits_of, from_bits, sets_of, words_of
from .completability.completion_tables import asked_of
from .mask_table import PartialMask, PartialMaskTable
from .partial_masks import LexemeMasks, Watched
from .tables import GrammarTables


class Growing:
    """An ``int32`` array with room at its end."""

    def __init__(self, values: NDArray[np.int32]) -> None:
        room = np.zeros((64, *values.shape[1:]), np.int32)
        self._data: NDArray[np.int32] = np.concatenate([values, room], dtype=np.int32)
        self._n = len(values)

    def __len__(self) -> int:
        return self._n

    def extend(self, values: list[int] | NDArray[np.int32]) -> None:
        """Append a list or an array of rows."""
        new = self._n + len(values)
        if new > len(self._data):
            wider = np.zeros((2 * new, *self._data.shape[1:]), np.int32)
            wider[: self._n] = self._data[: self._n]
            self._data = wider
        if len(values):
            self._data[self._n : new] = values
        self._n = new

    @property
    def data(self) -> NDArray[np.int32]:
        """The array, with what lies behind its end."""
        return self._data


class PartialMaskGraph:
    """The partial masks of one index, with their groups and ends: one record each, so that it is read at once.

    It begins with those that were stored: continuations and sets have the numbers of the `PartialMaskTable`. Others
    come behind them as they are needed.
    """

    def __init__(self, lexeme_masks: LexemeMasks) -> None:
        self._lexeme_masks = lexeme_masks
        self._stored = stored = lexeme_masks.stored
        self._number: dict[tuple[int, int, Watched], int] = {}
        self._continuation_of: dict[tuple[int, Watched], int] = {}
        self._new_continuations: list[tuple[int, Watched]] = []
        self._sets: list[int] | None = None
        self._set_of: dict[int, int] = {}
        self._first_of: dict[int, int] = {}  # by row: where its ids begin, of those that were added
        self._of_endings = SetsOfEndings(stored.sets, lexeme_masks.tables)
        self.records, self.ids, at = _records(stored, lexeme_masks)
        self._at = at.tolist()
        self._context_of = np.full(stored.states, -1, np.int32)
        self._context_of[lexeme_masks.tables.starts] = np.arange(len(lexeme_masks.tables.starts))
        self.target = np.full((len(stored.continuations) + 64, len(lexeme_masks.tables.starts)), -1, np.int32)
        continuation, context = stored.entries[:, 0], self._context_of[stored.entries[:, 1]]
        begins = np.flatnonzero(context >= 0)
        self.target[continuation[begins], context[begins]] = at[begins]

    def number(self, residual: int, state: int, watched: Watched) -> int:
        """Where the record of a partial mask begins; it is decided if it was not."""
        key = residual, state, watched
        known = self._number.get(key)
        if known is None:
            stored = self._stored.find(*key)
            if stored >= 0:
                known = self._at[stored]
            else:
                record = self._record(self._lexeme_masks.decide(*key))
                known = len(self.records)
                self.records.extend(record)
                context = int(self._context_of[state])
                if context >= 0:
                    self.target[self._continuation(residual, watched), context] = known
            self._number[key] = known
        return known

    @property
    def of_endings(self) -> SetsOfEndings:
        """The sets, as the kernel reads them."""
        if self._sets is not None:
            self._of_endings.extend(self._sets)
        return self._of_endings

    def wanted(self, number: int) -> int:
        """The set with a number, as records have it."""
        return self._all_sets()[number]

    def follow(self, wanted: list[tuple[int, int]]) -> None:
        """Have the records at hand that go on from continuations in contexts, a pair each."""
        starts, keys = self._lexeme_masks.tables.starts, list[tuple[int, int, Watched]]()
        for continuation, context in wanted:
            new = continuation - len(self._stored.continuations)
            residual, watched = self._stored.continuation_at(continuation) if new < 0 else self._new_continuations[new]
            keys.append((residual, int(starts[context]), watched))
        lacking = [key for key in dict.fromkeys(keys) if key not in self._number and self._stored.find(*key) < 0]
        self._lexeme_masks.decide_all(lacking)
        records, at = list[int](), len(self.records)
        for key in lacking:
            if key not in self._number:  # another thread may have had its turn
                self._number[key] = at + len(records)
                records += self._record(self._lexeme_masks.decided[key])
        self.records.extend(records)
        for (continuation, context), key in zip(wanted, keys, strict=True):
            # In a damaged file two continuations can be the same; the kernel asked for this one.
            self.target[continuation, context] = self.number(*key)

    def _record(self, decided: PartialMask) -> list[int]:
        """A partial mask, as the kernel reads it."""
        record = [len(decided.ends), len(decided.groups)]
        for terminal, residual, watched in decided.ends:
            record += terminal, self._continuation(residual, watched)
        for terminals, row in decided.groups:
            record += self._group(self._set(terminals), row)
        return record

    def _group(self, number: int, row: int) -> list[int]:
        few = self._lexeme_masks.pool.few(row, kernels.MOST_IDS)
        if few is not None:
            return [number << 5 | len(few), *few]
        ids = self._lexeme_masks.pool.listed(row)
        if ids is None:
            return [number << 5 | kernels.IS_ROW, row]
        if len(ids) <= kernels.MOST_IDS:
            return [number << 5 | len(ids), *ids.tolist()]
        first = self._first_of.get(row)
        if first is None:
            first = self._first_of[row] = len(self.ids)
            self.ids.extend(ids)
        return [number << 5 | kernels.IS_LONG, first, len(ids)]

    def _all_sets(self) -> list[int]:
        if self._sets is None:
            self._sets = sets_of(self._stored.sets)
            self._set_of = {each: i for i, each in enumerate(self._sets)}
        return self._sets

    def _set(self, terminals: int) -> int:
        """The number of a set."""
        sets = self._all_sets()
        if terminals not in self._set_of:
            # All that lexer states can become, at once; under obligations lexemes can become less.
            for each in (*self._lexeme_masks.distinct[0], terminals):
                if self._set_of.setdefault(each, len(sets)) == len(sets):
                    sets.append(each)
        return self._set_of[terminals]

    def _continuation(self, residual: int, watched: Watched) -> int:
        key = residual, watched
        known = self._continuation_of.get(key)
        if known is None:
            known = self._stored.continuation(residual, watched)
            if known < 0:
                known = len(self._stored.continuations) + len(self._new_continuations)
                self._new_continuations.append(key)
                if known == len(self.target):
                    wider = np.full((2 * known, self.target.shape[1]), -1, np.int32)
                    wider[:known] = self.target
                    self.target = wider
            self._continuation_of[key] = known
        return known


def _records(stored: PartialMaskTable, lexeme_masks: LexemeMasks) -> tuple[Growing, Growing, NDArray[np.int32]]:
    """The records of what is stored, the ids of long lists, and where the record of each begins."""
    ids_start, ids, is_list = lexeme_masks.pool.lists()
    at = np.zeros(len(stored), np.int32)
    row = stored.groups[:, 1]
    count = np.where(is_list, np.diff(ids_start), 1)[row]
    size = 2 * len(at) + 2 * len(stored.ends) + len(row) + int(np.where(count > kernels.MOST_IDS, 2, count).sum())
    if size >= 1 << 31 or len(stored.sets) >= 1 << 26:  # a record has the number of a set in 27 bits
        raise FormatError("the partial masks have too many groups")
    records = np.zeros(size, np.int32)
    kernels.lay_out_places(
        stored.group_start, stored.groups, stored.end_start, stored.ends, ids_start, ids, is_list, records, at
    )
    return Growing(records), Growing(ids), at


class SetsOfEndings:
    """Sets as the kernel reads them; there is room behind the last.

    Attributes
    ----------
    sets:
        ``uint32[2 * room, words]``: two for each set, the terminals of unconstrained endings, and those of others.
    tight:
        ``int32[room, *]``. Flags first: whether there are others (1), and whether there are columns among the first
        (2) and the second (4), with 8 times the number of the first set that has the same of them; and these others
        as `structgen.runtime.grammar.completability.completion_tables.asked_of` counts them, in words.
    """

    def __init__(self, words: NDArray[np.uint32], tables: GrammarTables) -> None:
        self._tables = tables
        self._first_of: dict[bytes, int] = {}
        self._n = 0
        self.sets, self.tight = np.zeros((0, 0), np.uint32), np.zeros((0, 0), np.int32)
        self._append(words)

    def extend(self, sets: list[int]) -> None:
        """Have all sets of a list, which begins with those that are there."""
        if len(sets) > self._n:
            self._append(words_of(sets[self._n :], self._tables.set_members))

    def _append(self, words: NDArray[np.uint32]) -> None:
        found, tight = _as_read(words, self._tables)
        known, self._n = self._n, self._n + len(words)
        if not known or self._n > len(self.tight):
            room = self._n + (self._n if known else 0)
            self.sets, before = np.zeros((2 * room, found.shape[1]), np.uint32), self.sets
            self.tight, flags = np.zeros((room, tight.shape[1]), np.int32), self.tight
            if known:
                self.sets[: 2 * known], self.tight[:known] = before[: 2 * known], flags[:known]
        others = np.ascontiguousarray(tight[:, 1:])
        for number in range(len(words)):
            first = self._first_of.setdefault(others[number].tobytes(), known + number)
            tight[number, 0] |= 8 * first
        self.sets[2 * known : 2 * self._n], self.tight[known : self._n] = found, tight


def _as_read(words: NDArray[np.uint32], tables: GrammarTables) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """`SetsOfEndings` of some sets, but for the number of the first one that has the same."""
    others = np.zeros((len(words), 0), np.uint32)
    found = np.zeros((2 * len(words), -(-tables.members // 32)), np.uint32)
    if tables.endings.is_unconstrained:
        found[::2] = words
    else:
        endings = bits_of(words, tables.set_members)
        which, _ = asked_of(tables.endings, tables.end)
        found[::2] = _terminals(tables, endings, np.flatnonzero(tables.endings.ends[:, 2]))
        found[1::2] = _terminals(tables, endings, which)
        others = from_bits(np.ascontiguousarray(endings[:, which]))
    columns = np.asarray(bits_of(found, tables.members)[:, tables.end + 1 :].any(axis=1))
    flags = [found[1::2].any(axis=1), columns[::2], columns[1::2]]
    asked = np.packbits(flags, axis=0, bitorder="little")[0].astype(np.int32)
    return found, np.concatenate([asked[:, None], others.view(np.int32)], axis=1)


def _terminals(tables: GrammarTables, endings: NDArray[np.bool_], which: NDArray[np.intp]) -> NDArray[np.uint32]:
    """The terminals of some of the endings of sets, ``bool[sets, endings]``."""
    terminal = tables.endings.ends[which, 0]
    order = np.argsort(terminal, kind="stable")
    distinct, first = np.unique(terminal[order], return_index=True)
    found = np.zeros((len(endings), tables.members), np.bool_)
    there = endings[:, which[order]]
    found[:, distinct] = there if len(distinct) == len(which) else np.logical_or.reduceat(there, first, axis=1)
    return from_bits(found)
