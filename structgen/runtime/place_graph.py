"""Settled places in flat arrays, as `structgen.kernels.walk_stack_masks` reads them; they grow as places are settled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .closure import bits
from .grammar_tables import GrammarTables, words_of
from .lexer_places import LexerPlaces, Watched


class Growing:
    """An ``int32`` array with room at its end."""

    def __init__(self, columns: int = 0) -> None:
        self._data = np.zeros((64, columns) if columns else 64, np.int32)
        self._n = 0

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
    """The places of one index, their groups and ends, by number."""

    def __init__(self, places: LexerPlaces) -> None:
        self._places = places
        tables = places.tables
        self._context_of = {int(start): context for context, start in enumerate(tables.starts.tolist())}
        self._number: dict[tuple[int, int, Watched], int] = {}
        self._continuations: dict[tuple[int, Watched], int] = {}
        self._keys: list[tuple[int, Watched]] = []  # of the continuations
        self._set_of: dict[int, int] = {each: i for i, each in enumerate(dict.fromkeys(places.futures))}
        self._list_of: dict[int, int] = {}  # by row
        self._sets = list(self._set_of)
        self.sets, self.tight = _sets(self._sets, tables)
        self.group_start, self.end_start, self.ids_start = Growing(), Growing(), Growing()
        for starts in (self.group_start, self.end_start, self.ids_start):
            starts.extend([0])
        self.groups, self.ends, self.ids = Growing(2), Growing(2), Growing()
        self.target = np.full((64, len(tables.starts)), -1, np.int32)

    def number(self, resume: int, state: int, watched: Watched) -> int:
        """The number of a place, which is settled if it was not."""
        key = resume, state, watched
        known = self._number.get(key)
        if known is None:
            known = self._add(*key)
        return known

    def group(self, number: int) -> tuple[int, int]:
        """The set of a group, as places have it, and its list, as in `groups`."""
        set_of, listed = self.groups.data[number].tolist()
        return self._sets[set_of], listed

    def follow(self, continuation: int, context: int) -> None:
        """Have the place at hand that goes on in a context."""
        resume, watched = self._keys[continuation]
        self.number(resume, int(self._places.tables.starts[context]), watched)

    def _add(self, resume: int, state: int, watched: Watched) -> int:
        settled = self._places.settle(resume, state, watched)
        number = self._number[resume, state, watched] = len(self._number)
        self.groups.extend([(self._set(terminals), self._list(row)) for terminals, row in settled.groups])
        self.group_start.extend([len(self.groups)])
        self.ends.extend([(end.terminal, self._continuation(end.resume, end.watched)) for end in settled.ends])
        self.end_start.extend([len(self.ends)])
        context = self._context_of.get(state)
        if context is not None:
            continuation = self._continuation(resume, watched)
            self.target[continuation, context] = number
        return number

    def _set(self, terminals: int) -> int:
        """The number of a set."""
        known = self._set_of.get(terminals)
        if known is None:  # a lexeme within which something is watched can become less
            known = self._set_of[terminals] = len(self._sets)
            self._sets.append(terminals)
            self.sets, self.tight = _sets(self._sets, self._places.tables)
        return known

    def _list(self, row: int) -> int:
        """The number of the list of a row's ids; ``-2 - row`` for a row that is no list."""
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

    def _continuation(self, resume: int, watched: Watched) -> int:
        key = resume, watched
        known = self._continuations.get(key)
        if known is None:
            known = self._continuations[key] = len(self._keys)
            self._keys.append(key)
            if known == len(self.target):
                wider = np.full((2 * known, self.target.shape[1]), -1, np.int32)
                wider[:known] = self.target
                self.target = wider
        return known


def _sets(futures: list[int], tables: GrammarTables) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Sets as the kernel reads them: two for each, the terminals with which loose endings end, and those of the others.

    The flags say whether there are others (1), and whether there are columns among the first (2) and the second (4).
    """
    endings = tables.endings
    if endings.is_loose:
        pairs = [(future, 0) for future in futures]
    else:
        tight = sum(1 << e for e, loose in enumerate(endings.loose) if not loose)
        pairs = [(_terminals(tables, future & ~tight), _terminals(tables, future & tight)) for future in futures]
    column = -1 << tables.end + 1
    flags = [bool(b) | bool(a & column) << 1 | bool(b & column) << 2 for a, b in pairs]
    return words_of([each for pair in pairs for each in pair], tables.members), np.array(flags, np.uint8)


def _terminals(tables: GrammarTables, endings: int) -> int:
    return sum({1 << tables.endings.terminal[e] for e in bits(endings)})
