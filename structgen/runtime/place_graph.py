"""Settled places in flat arrays, as `structgen.kernels.walk_stack_masks` reads them; they grow as more settle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .grammar_tables import GrammarTables
from .lexer_places import LexerPlaces, Watched
from .place_table import PlaceTable
from .words import bits_of, from_bits, sets_of, words_of


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


class PlaceGraph:
    """The places of one index, their groups and ends, by number.

    It begins with those that were stored, as they are: places, ways and sets have the numbers of the `PlaceTable`,
    lists those of the pool's rows. Others come behind them as they are needed.
    """

    def __init__(self, places: LexerPlaces) -> None:
        self._places = places
        self._stored = stored = places.stored if places.stored is not None else PlaceTable.empty(places)
        self._number: dict[tuple[int, int, Watched], int] = {}
        self._way_of: dict[tuple[int, Watched], int] = {}
        self._new_ways: list[tuple[int, Watched]] = []
        self._sets: list[int] | None = None
        self._set_of: dict[int, int] = {}
        self.sets, self.tight = _sets(stored.sets, places)
        ids_start, ids, is_list = places.pool.lists()
        self._list_of: dict[int, int] = {}  # by row, of those that the pool did not hold then
        self._rows: NDArray[np.int32] = np.where(is_list, np.arange(len(is_list)), -2 - np.arange(len(is_list)))
        self.ids_start, self.ids = Growing(ids_start), Growing(ids)
        self.group_start, self.end_start = Growing(stored.group_start), Growing(stored.end_start)
        self.groups = Growing(np.stack([stored.groups[:, 0], self._rows[stored.groups[:, 1]]], axis=1))
        self.ends = Growing(stored.ends)
        self._context_of = np.full(stored.states, -1, np.int32)
        self._context_of[places.tables.starts] = np.arange(len(places.tables.starts))
        self.target = np.full((len(stored.ways) + 64, len(places.tables.starts)), -1, np.int32)
        way, context = stored.places[:, 0], self._context_of[stored.places[:, 1]]
        begins = np.flatnonzero(context >= 0)
        self.target[way[begins], context[begins]] = begins

    def number(self, resume: int, state: int, watched: Watched) -> int:
        """The number of a place, which is settled if it was not."""
        key = resume, state, watched
        known = self._number.get(key)
        if known is None:
            known = self._stored.find(*key)
            if known < 0:
                known = self._add(*key)
            self._number[key] = known
        return known

    def group(self, number: int) -> tuple[int, int]:
        """The set of a group, as places have it, and its list, as in `groups`."""
        set_of, listed = self.groups.data[number].tolist()
        return self._all_sets()[set_of], listed

    def follow(self, way: int, context: int) -> None:
        """Have the place at hand that goes on from a way in a context."""
        known = len(self._stored.ways)
        resume, watched = self._stored.way_at(way) if way < known else self._new_ways[way - known]
        number = self.number(resume, int(self._places.tables.starts[context]), watched)
        # In a damaged file two ways can be the same; the kernel asked for this one.
        self.target[way, context] = number

    def _add(self, resume: int, state: int, watched: Watched) -> int:
        settled = self._places.settle(resume, state, watched)
        number = len(self.group_start) - 1
        self.groups.extend([(self._set(terminals), self._list(row)) for terminals, row in settled.groups])
        self.group_start.extend([len(self.groups)])
        self.ends.extend([(end.terminal, self._way(end.resume, end.watched)) for end in settled.ends])
        self.end_start.extend([len(self.ends)])
        context = int(self._context_of[state])
        if context >= 0:
            self.target[self._way(resume, watched), context] = number
        return number

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

    def _list(self, row: int) -> int:
        """The number of the list of a row's ids; ``-2 - row`` for a row that is no list."""
        if row < len(self._rows):
            return int(self._rows[row])
        known = self._list_of.get(row)
        if known is None:
            ids = self._places.pool.listed(row)
            if ids is None:
                known = -2 - row
            else:
                known = len(self.ids_start) - 1
                self.ids.extend(ids)
                self.ids_start.extend([len(self.ids)])
            self._list_of[row] = known
        return known

    def _way(self, resume: int, watched: Watched) -> int:
        key = resume, watched
        known = self._way_of.get(key)
        if known is None:
            known = self._stored.way(resume, watched)
            if known < 0:
                known = len(self._stored.ways) + len(self._new_ways)
                self._new_ways.append(key)
                if known == len(self.target):
                    wider = np.full((2 * known, self.target.shape[1]), -1, np.int32)
                    wider[:known] = self.target
                    self.target = wider
            self._way_of[key] = known
        return known


def _sets(words: NDArray[np.uint32], places: LexerPlaces) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
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
