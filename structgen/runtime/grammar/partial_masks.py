"""What a lexeme in progress decides, whatever the parser's stack is: the tokens, by what the lexeme can become.

A token goes on with the lexeme, and may complete it, and begin others. Walk the vocabulary's trie from a lexer state.
A token that ends while the lexeme goes on is right if the parser's stack accepts some terminal that the lexeme can
become: tokens with the same set of those are one *group*. Where the lexeme can be complete, as a terminal ``T``, the
rest of the token is up to the lexer after ``T``: the trie node goes on the *residual list* of ``T``. So ::

    decide(R, q) = groups: a set of terminals and a row each
                   ends:   a terminal T and a residual list R' each

    mask(S, q) = the rows of the groups that the stack S accepts some terminal of,
                 and for each end whose T is accepted: mask(S after T, lexer start there) from R' on

Neither depends on the stack, and both are finite tables. Where a lexeme is complete it may also go on; if it comes to
be complete again, it has been the longer one all the time. So what begins after it *watches* the old lexeme, and ends
where that one is complete once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...system.memo import first
from ...system.properties import cached_property
from ...system.types import Array
from ...vocabulary.vocabulary import Vocabulary
from ..core.bitsets import sets_of
from ..rows.residuals import NOTHING, ROOT, Residuals
from ..rows.row_pool import MOST_GROWN, RowPool
from .completability.obligations import Watched, WatchedSets
from .lexeme_futures import LexemeFutures
from .mask_table import LexemeEnd, PartialMask, PartialMaskTable
from .tables import GrammarTables

__all__ = ["NOTHING", "ROOT", "LexemeEnd", "LexemeMasks", "PartialMask", "Walked", "Watched"]


#: Nodes of the trie that a slice of a walk looks at: a millisecond or two.
_NODES = 1 << 19

#: A lexer state, the obligations there, and the tokens or nodes that lead there.
Walked: TypeAlias = tuple[int, Watched, NDArray[np.int32]]


class _Walk(NamedTuple):
    """What a walk found, as `structgen.kernels.walk_lexer` does; obligations by number, () is the first."""

    watches: list[Watched]
    ids: NDArray[np.int32]
    ends: NDArray[np.int32]
    end_watch: Array  # nothing where nothing was watched to begin with
    below: NDArray[np.int32]
    below_state: NDArray[np.int32]
    below_watch: Array


class KnownMasks(NamedTuple):
    """What a file holds."""

    pool: RowPool
    residuals: Residuals
    masks: PartialMaskTable


class LexemeMasks:
    """The partial masks of a lexer's states over one vocabulary, each worked out once.

    Parameters
    ----------
    tables, vocabulary:
        What to walk.
    futures:
        What lexemes can become.
    stored:
        What is there already.
    pause:
        Called between the slices of long walks.
    """

    def __init__(
        self,
        tables: GrammarTables,
        vocabulary: Vocabulary,
        futures: LexemeFutures,
        stored: KnownMasks | None,
        pause: Callable[[], object],
    ) -> None:
        self.tables = tables
        self.vocabulary = vocabulary
        stored = stored or KnownMasks(RowPool(vocabulary.size), Residuals(), PartialMaskTable.empty(tables))
        self.pool, self.residuals, self.stored = stored
        self._futures = futures
        self._pause = pause
        #: What was decided or looked up here.
        self.decided: dict[tuple[int, int, Watched], PartialMask] = {}
        self._fresh = 0  # how many were decided here
        self._sets = self._new_sets()
        self._scratch: NDArray[np.int32] | None = None
        self.mark()

    def mark(self) -> None:
        """Keep all that is known now, whatever `forget` forgets later."""
        self._kept = self.pool.mark(), len(self.residuals)
        self._entries = len(self.decided), self._fresh

    def is_full(self) -> bool:
        """Whether it is time to `forget`."""
        return self.pool.grown + self.residuals.grown + 1000 * (self._fresh - self._entries[1]) > MOST_GROWN

    def forget(self) -> None:
        """Forget what came since the last mark: other rows and residual lists will have those numbers."""
        rows, residuals = self._kept
        decided, self._fresh = self._entries
        self.pool.cut(rows)
        self.residuals.cut(residuals)
        self.decided = first(self.decided, decided)

    def __len__(self) -> int:
        return self._fresh + len(self.stored)

    @cached_property
    def distinct(self) -> tuple[list[int], NDArray[np.int32]]:
        """The futures of lexer states, each once, and which of them is each state's."""
        tables = self.tables
        futures = sets_of(tables.future if tables.endings.is_loose else tables.endings.words)
        number = {each: i for i, each in enumerate(dict.fromkeys(futures))}
        return list(number), np.array([number[each] for each in futures], np.int32)

    def decide(self, residual: int, state: int, watched: Watched) -> PartialMask:
        """The partial mask of a lexer state that is entered at the nodes of a residual list."""
        key = residual, state, watched
        found = self.decided.get(key)
        if found is None and (number := self.stored.find(*key)) >= 0:
            found = self.decided[key] = self.stored.decided(number)
        if found is None:
            found = self._decide(*key)
            self._fresh += key not in self.decided  # another thread may have had its turn
            self.decided[key] = found
        return found

    def all_decided(self) -> dict[tuple[int, int, Watched], PartialMask]:
        """Every partial mask."""
        return self.stored.items() | self.decided

    def _decide(self, residual: int, state: int, watched: Watched) -> PartialMask:
        found = self._walk(self.residuals[residual], state, watched)
        groups = []
        for number, members in self._by_future(found):
            if number:
                groups.append((number, self.row(_ascending(members))))
        ends_of, with_state = self.tables.ends_of, self.tables.obligations.with_state
        ends = [LexemeEnd(terminal, residual, with_state(watch, watched)) for terminal, watch in ends_of[state]]
        names = found.watches
        for key, where in _by_value(found.below_state.astype(np.int64) * len(names) + found.below_watch, found.below):
            rest, before = self.residuals.add(_ascending(where)), names[key % len(names)]
            ends += (
                LexemeEnd(terminal, rest, with_state(watch, before)) for terminal, watch in ends_of[key // len(names)]
            )
        return PartialMask(tuple(groups), tuple(ends))

    def walk(self, nodes: NDArray[np.int32], state: int, watched: Watched) -> tuple[list[Walked], list[Walked]]:
        """By lexer state and obligations: the tokens that end there, and the nodes at which a lexeme may end."""
        names, ids, states, watches, below, below_state, below_watch = self._walk(nodes, state, watched)
        if not len(watches):
            watches = np.zeros(len(states), np.int64)
        found: list[list[Walked]] = []
        for there, at, numbers in ((ids, states, watches), (below, below_state, below_watch)):
            keyed = _by_value(at.astype(np.int64) * len(names) + numbers, there)
            found.append([(key // len(names), names[key % len(names)], members) for key, members in keyed])
        return found[0], found[1]

    def _by_future(self, walk: _Walk) -> Iterator[tuple[int, NDArray[np.int32]]]:
        """Tokens by what the lexeme at their end can become."""
        if not len(walk.end_watch):
            sets, set_of = self.distinct
            for number, members in _by_value(set_of[walk.ends], walk.ids):
                yield sets[number], members
            return
        names = walk.watches
        found: dict[int, list[NDArray[np.int32]]] = {}
        for key, members in _by_value(walk.ends.astype(np.int64) * len(names) + walk.end_watch, walk.ids):
            found.setdefault(self._futures(key // len(names), names[key % len(names)]), []).append(members)
        for future, parts in found.items():
            yield future, np.concatenate(parts)

    def row(self, ids: NDArray[np.int32]) -> int:
        """The number of a row of ids, ascending."""
        if len(ids) <= self.pool.longest_list:
            return self.pool.add_ids(ids)
        from ... import kernels

        row = np.zeros(self.vocabulary.words, np.uint32)
        kernels.flip_ids(row, ids)
        return self.pool.add_dense(row)

    def _walk(self, nodes: NDArray[np.int32], state: int, watched: Watched) -> _Walk:
        """The kernel's walk, in slices. Obligations are numbered: states, then sets of them."""
        from ... import kernels

        trie, tables = self.vocabulary.trie, self.tables
        if self._sets.is_full():
            self._sets = self._new_sets()
        sets = self._sets  # others may begin new ones meanwhile
        watch = sets.number(watched)
        size = max(len(trie.token_ids), len(trie.byte)) + 64
        progress, path = np.zeros(kernels.LEXER_PROGRESS, np.int64), np.empty((2, trie.max_depth + 2), np.int32)
        progress[kernels.L_NODE] = -1
        found, self._scratch = self._scratch, None  # others have none, or theirs
        if found is None:
            found = np.empty((6, size), np.int32)
        status = kernels.TOO_MUCH_WORK
        while status != kernels.OK:
            status = kernels.walk_lexer(
                trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids, tables.class_of, tables.table,
                tables.goes_on, tables.beats, sets.table, nodes, state, watch, _NODES, progress, path, found[:3],
                found[3:],
            )  # fmt: skip
            if status == kernels.NO_ROOM:
                found = np.concatenate([found, np.empty((6, 3 * found.shape[1]), np.int32)], axis=1)
            elif status == kernels.CONFLICT:
                sets.follow(int(progress[kernels.L_SET]))
            elif status == kernels.TOO_MUCH_WORK:
                self._pause()
        self._scratch = found
        n, m = progress[[kernels.L_IDS, kernels.L_BELOW]].tolist()
        ids, ends, end_watch = found[:3, : n]
        below, below_state, below_watch = found[3:, : m]
        watches = end_watch if watched else end_watch[:0]
        names = np.unique(np.concatenate([below_watch, watches, [-1]]))
        numbers = [np.searchsorted(names, each) for each in (watches, below_watch)]
        return _Walk(
            [sets.watched(name) for name in names.tolist()],
            ids.copy(), ends.copy(), numbers[0], below.copy(), below_state.copy(), numbers[1],
        )  # fmt: skip

    def _new_sets(self) -> WatchedSets:
        return WatchedSets(self.tables.obligations, self.tables.rows, *self.tables.table.shape)


def _ascending(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """The values in order, each once. (`numpy.unique` hashes, which takes four times as long here.)"""
    values = np.sort(values)
    again = values[1:] == values[:-1]
    return values[np.concatenate([[True], ~again])] if again.any() else values


def _by_value(values: Array, things: NDArray[np.int32]) -> list[tuple[int, NDArray[np.int32]]]:
    """Things that have the same value, value by value."""
    if not len(values):
        return []
    if int(values.max()) < 1 << 16:
        values = values.astype(np.uint16)  # NumPy sorts by digits then, in a tenth of the time
    order = np.argsort(values, kind="stable")
    values, things = values[order], things[order]
    cuts = np.flatnonzero(values[1:] != values[:-1]) + 1
    return list(zip(values[np.concatenate([[0], cuts])].tolist(), np.split(things, cuts), strict=True))
