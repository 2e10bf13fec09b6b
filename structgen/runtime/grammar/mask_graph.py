"""Partial masks in flat arrays, as `structgen.kernels.walk_stack_masks` reads them; they grow as more decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ..core.bitsets import bits_of, from_bits, sets_of, words_of
from .mask_table import PartialMaskTable
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

    def extend(self, values: Any) -> None:
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
    """The places of one index, with their groups and ends: each is a record, and what lies together is read together.

    It begins with those that were stored: ways and sets have the numbers of the `PartialMaskTable`. Others come
    behind them as they are needed.
    """

    def __init__(self, places: LexemeMasks) -> None:
        self._places = places
        stored = places.stored
        if stored is None:
            stored = PartialMaskTable.empty(len(places.tables.table), places.members)
        self._stored = stored
        self._number: dict[tuple[int, int, Watched], int] = {}
        self._way_of: dict[tuple[int, Watched], int] = {}
        self._new_ways: list[tuple[int, Watched]] = []
        self._sets: list[int] | None = None
        self._set_of: dict[int, int] = {}
        self._first_of: dict[int, int] = {}  # by row: where its ids begin, of those that were added
        self.sets, self.tight = _sets(stored.sets, places)
        self.records, self.ids, at = _records(stored, places)
        self._at = at.tolist()
        self._context_of = np.full(stored.states, -1, np.int32)
        self._context_of[places.tables.starts] = np.arange(len(places.tables.starts))
        self.target = np.full((len(stored.ways) + 64, len(places.tables.starts)), -1, np.int32)
        way, context = stored.places[:, 0], self._context_of[stored.places[:, 1]]
        begins = np.flatnonzero(context >= 0)
        self.target[way[begins], context[begins]] = at[begins]

    def number(self, residual: int, state: int, watched: Watched) -> int:
        """Where the record of a place begins; it is decided if it was not."""
        key = residual, state, watched
        known = self._number.get(key)
        if known is None:
            stored = self._stored.find(*key)
            known = self._at[stored] if stored >= 0 else self._add(*key)
            self._number[key] = known
        return known

    def wanted(self, group: int) -> int:
        """The set of a group, given by where it lies in `records`, as places have it."""
        return self._all_sets()[int(self.records.data[group]) >> 5]

    def follow(self, way: int, context: int) -> None:
        """Have the place at hand that goes on from a way in a context."""
        known = len(self._stored.ways)
        residual, watched = self._stored.way_at(way) if way < known else self._new_ways[way - known]
        number = self.number(residual, int(self._places.tables.starts[context]), watched)
        # In a damaged file two ways can be the same; the kernel asked for this one.
        self.target[way, context] = number

    def _add(self, residual: int, state: int, watched: Watched) -> int:
        decided = self._places.decide(residual, state, watched)
        record = [len(decided.ends), len(decided.groups)]
        for end in decided.ends:
            record += end.terminal, self._way(end.residual, end.watched)
        for terminals, row in decided.groups:
            record += self._group(self._set(terminals), row)
        at = len(self.records)
        self.records.extend(record)
        context = int(self._context_of[state])
        if context >= 0:
            self.target[self._way(residual, watched), context] = at
        return at

    def _group(self, number: int, row: int) -> list[int]:
        from ... import kernels

        ids = self._places.pool.listed(row)
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
            # All that lexer states can become, at once; where something is watched, lexemes can become less.
            for each in (*self._places.distinct[0], terminals):
                if self._set_of.setdefault(each, len(sets)) == len(sets):
                    sets.append(each)
            self.sets, self.tight = _sets(words_of(sets, self._places.members), self._places)
        return self._set_of[terminals]

    def _way(self, residual: int, watched: Watched) -> int:
        key = residual, watched
        known = self._way_of.get(key)
        if known is None:
            known = self._stored.way(residual, watched)
            if known < 0:
                known = len(self._stored.ways) + len(self._new_ways)
                self._new_ways.append(key)
                if known == len(self.target):
                    wider = np.full((2 * known, self.target.shape[1]), -1, np.int32)
                    wider[:known] = self.target
                    self.target = wider
            self._way_of[key] = known
        return known


def _records(stored: PartialMaskTable, places: LexemeMasks) -> tuple[Growing, Growing, NDArray[np.int32]]:
    """The records of what is stored, the ids of long lists, and where the record of each place begins."""
    from ... import kernels

    ids_start, ids, is_list = places.pool.lists()
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


def _sets(words: NDArray[np.uint32], places: LexemeMasks) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Sets as the kernel reads them: two for each, the terminals with which loose endings end, and those of others.

    The flags say whether there are others (1), and whether there are columns among the first (2) and the second (4).
    """
    tables = places.tables
    found = np.zeros((2 * len(words), -(-tables.members // 32)), np.uint32)
    if tables.endings.is_loose:
        found[::2] = words
    else:
        endings = bits_of(words, places.members)
        loose = np.array(tables.endings.loose, np.bool_)
        found[::2] = _terminals(tables, endings & loose)
        found[1::2] = _terminals(tables, endings & ~loose)
    columns = np.asarray(bits_of(found, tables.members)[:, tables.end + 1 :].any(axis=1))
    flags = [found[1::2].any(axis=1), columns[::2], columns[1::2]]
    return found, np.packbits(flags, axis=0, bitorder="little")[0]


def _terminals(tables: GrammarTables, endings: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """The terminals of sets of endings, ``bool[sets, endings]``."""
    terminal = np.array(tables.endings.terminal, np.int32)
    order = np.argsort(terminal, kind="stable")
    distinct, first = np.unique(terminal[order], return_index=True)
    found = np.zeros((len(endings), tables.members), np.bool_)
    found[:, distinct] = np.logical_or.reduceat(endings[:, order], first, axis=1)
    return from_bits(found)
