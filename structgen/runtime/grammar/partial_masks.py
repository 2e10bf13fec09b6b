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

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...system.memo import first
from ...system.properties import cached_property
from ...system.types import Array
from ...vocabulary.vocabulary import Vocabulary
from ..core.bitsets import sets_of
from ..rows.residuals import NOTHING, ROOT, Residuals
from ..rows.row_pool import MOST_GROWN, RowPool, encode_lists
from .completability.obligations import Watched, WatchedSets
from .lexeme_futures import LexemeFutures
from .mask_table import LexemeEnd, PartialMask, PartialMaskTable
from .tables import GrammarTables

__all__ = ["NOTHING", "ROOT", "LexemeEnd", "LexemeMasks", "PartialMask", "Walked", "Watched"]


#: Nodes of the trie that a slice of a walk looks at: a millisecond or two.
_NODES = 1 << 19

#: Numbers of which so many times as many are possible as are there are sorted; of others there is a table.
_SPARSE = 8

#: A lexer state, the obligations there, and the tokens or nodes that lead there.
Walked: TypeAlias = tuple[int, Watched, NDArray[np.int32]]


#: A residual list, the lexer state that it is entered in, and the obligations there.
Key: TypeAlias = tuple[int, int, Watched]


class _Walks(NamedTuple):
    """What walks found, one after the other, as `structgen.kernels.walk_lexer` does; obligations by number."""

    watches: list[Watched]
    id_starts: NDArray[np.int64]  # by walk
    ids: NDArray[np.int32]
    ends: NDArray[np.int32]
    end_watch: Array
    below_starts: NDArray[np.int64]
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
        words, number = self.tables.distinct_futures
        return sets_of(words), number

    @property
    def _nodes(self) -> int:
        return len(self.vocabulary.trie.byte)

    def decide(self, residual: int, state: int, watched: Watched) -> PartialMask:
        """The partial mask of a lexer state that is entered at the nodes of a residual list."""
        key = residual, state, watched
        if not self._is_known(key):
            self.decide_all([key])
        return self.decided[key]

    def _is_known(self, key: Key) -> bool:
        if key in self.decided:
            return True
        number = self.stored.find(*key)
        if number >= 0:
            self.decided[key] = self.stored.decided(number)
        return number >= 0

    def decide_all(self, keys: list[Key]) -> None:
        """Decide partial masks, if they are not known."""
        keys = [key for key in keys if not self._is_known(key)]
        if not keys:
            return
        walks = self._walk([(self.residuals[residual], state, watched) for residual, state, watched in keys])
        groups = self._groups(walks)
        ends = self._ends(keys, walks)
        for key, its_groups, its_ends in zip(keys, groups, ends, strict=True):
            self._fresh += key not in self.decided  # another thread may have had its turn
            self.decided[key] = PartialMask(tuple(its_groups), tuple(its_ends))

    def work(self, residual: int) -> int:
        """How many nodes of the trie lie below those of a residual list."""
        nodes = self.residuals[residual]
        return int((self.vocabulary.trie.skip[nodes] - nodes).sum())

    def all_decided(self) -> dict[tuple[int, int, Watched], PartialMask]:
        """Every partial mask."""
        return self.stored.items() | self.decided

    def walk(self, nodes: NDArray[np.int32], state: int, watched: Watched) -> tuple[list[Walked], list[Walked]]:
        """By lexer state and obligations: the tokens that end there, and the nodes at which a lexeme may end."""
        walks = self._walk([(nodes, state, watched)])
        names, found = walks.watches, list[list[Walked]]()
        for there, at, numbers, size in (
            (walks.ids, walks.ends, walks.end_watch, self.vocabulary.size),
            (walks.below, walks.below_state, walks.below_watch, self._nodes),
        ):  # fmt: skip
            keys, bounds, members = _by_value(at.astype(np.int64) * len(names) + numbers, there, size)
            found.append([
                (key // len(names), names[key % len(names)], members[i:j])
                for key, (i, j) in zip(keys, pairwise(bounds), strict=True)
            ])  # fmt: skip
        return found[0], found[1]

    def _groups(self, walks: _Walks) -> list[list[tuple[int, int]]]:
        """By walk: its tokens by what the lexeme at their end can become, a set and a row each."""
        sets, set_of = self.distinct
        names, numbers = walks.watches, set_of[walks.ends]
        owing = np.flatnonzero(walks.end_watch != names.index(()))
        if len(owing):
            keys = walks.ends[owing].astype(np.int64) * len(names) + walks.end_watch[owing]
            distinct, which = _numbered(keys, len(self.tables.table) * len(names))
            futures = (self._futures(key // len(names), names[key % len(names)]) for key in distinct.tolist())
            known = {each: number for number, each in enumerate(sets)}
            numbers[owing] = np.array([known.setdefault(each, len(known)) for each in futures])[which]
            sets = list(known)
        found: list[list[tuple[int, int]]] = [[] for _ in walks.id_starts[1:]]
        narrow = np.int32 if len(found) * len(sets) < 1 << 31 else np.int64
        place = np.repeat(np.arange(len(found), dtype=narrow) * len(sets), np.diff(walks.id_starts))
        place += numbers
        keyed, bounds, ids = _by_value(place, walks.ids, self.vocabulary.size)
        gaps, places = encode_lists(ids, bounds)
        for key, (i, j), (begin, end) in zip(keyed, pairwise(bounds), pairwise(places), strict=True):
            future = sets[key % len(sets)]
            if future:
                is_list = j - i <= self.pool.longest_list
                row = self.pool.add_gaps(gaps[begin:end]) if is_list else self.row(ids[i:j])
                found[key // len(sets)].append((future, row))
        return found

    def _ends(self, keys: list[Key], walks: _Walks) -> list[list[LexemeEnd]]:
        """By walk: where lexemes end."""
        ends_of, with_state = self.tables.ends_of, self.tables.obligations.with_state
        found = [
            [LexemeEnd(terminal, residual, with_state(watch, watched)) for terminal, watch in ends_of[state]]
            for residual, state, watched in keys
        ]
        names, states = walks.watches, len(self.tables.table)
        walk = np.repeat(np.arange(len(keys)), np.diff(walks.below_starts))
        wheres = (walk * states + walks.below_state) * len(names) + walks.below_watch
        # Lexemes that end in several states as one terminal go on alike.
        nodes: dict[tuple[int, int, Watched], list[NDArray[np.int32]]] = {}
        keyed, bounds, below = _by_value(wheres, walks.below, self._nodes)
        for key, (i, j) in zip(keyed, pairwise(bounds), strict=True):
            where, before = below[i:j], names[key % len(names)]
            number, state = divmod(key // len(names), states)
            for terminal, watch in ends_of[state]:
                nodes.setdefault((number, terminal, with_state(watch, before)), []).append(where)
        for (number, terminal, watched), parts in nodes.items():
            where = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
            found[number].append(LexemeEnd(terminal, self.residuals.add(where), watched))
        return found

    def row(self, ids: NDArray[np.int32]) -> int:
        """The number of a row of ids, ascending."""
        if len(ids) <= self.pool.longest_list:
            return self.pool.add_ids(ids)
        from ... import kernels

        row = np.zeros(self.vocabulary.words, np.uint32)
        kernels.flip_ids(row, ids)
        return self.pool.add_dense(row)

    def _walk(self, starts: list[tuple[NDArray[np.int32], int, Watched]]) -> _Walks:
        """The kernel's walks, in slices. Obligations are numbered: states, then sets of them."""
        from ... import kernels

        trie, tables = self.vocabulary.trie, self.tables
        if self._sets.is_full():
            self._sets = self._new_sets()
        sets = self._sets  # others may begin new ones meanwhile
        size = max(len(trie.token_ids), len(trie.byte)) + 64
        progress, path = np.zeros(kernels.LEXER_PROGRESS, np.int64), np.empty((2, trie.max_depth + 2), np.int32)
        found, self._scratch = self._scratch, None  # others have none, or theirs
        if found is None:
            found = np.empty((6, size), np.int32)
        counts = [(0, 0)]
        for nodes, state, watched in starts:
            watch, status = sets.number(watched), kernels.TOO_MUCH_WORK
            progress[[kernels.L_NODE, kernels.L_RESIDUAL]] = -1, 0
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
            counts.append((int(progress[kernels.L_IDS]), int(progress[kernels.L_BELOW])))
        self._scratch = found
        id_starts, below_starts = np.array(counts, np.int64).T
        ids, ends, end_watch = found[:3, : id_starts[-1]]
        below, below_state, below_watch = found[3:, : below_starts[-1]]
        names = np.unique(np.concatenate([_distinct(below_watch), _distinct(end_watch), [-1]]))
        numbers = [
            np.searchsorted(names, each) if len(names) > 1 else np.broadcast_to(np.int64(0), each.shape)
            for each in (end_watch, below_watch)
        ]  # fmt: skip
        return _Walks(
            [sets.watched(name) for name in names.tolist()], id_starts, ids.copy(), ends.copy(), numbers[0],
            below_starts, below.copy(), below_state.copy(), numbers[1],
        )  # fmt: skip

    def _new_sets(self) -> WatchedSets:
        return WatchedSets(self.tables.obligations, self.tables.rows, *self.tables.table.shape)


def _distinct(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """The values, each at least once: mostly all are the same."""
    return values[:1] if not len(values) or (values == values[0]).all() else np.unique(values)


def _numbered(values: NDArray[np.int64], end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The values, all below ``end``, ascending and each once; and which of them each is."""
    if end > _SPARSE * len(values):
        distinct, which = np.unique(values, return_inverse=True)
        return distinct, which.reshape(-1)
    is_there = np.zeros(end, bool)
    is_there[values] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[values]


def _by_value(
    values: Array, things: NDArray[np.int32], size: int
) -> tuple[list[int], list[int], NDArray[np.int32]]:
    """Things, all below ``size``, by value.

    The values that are there, where the things of each begin and end, and these, ascending, each once.
    """
    width = size.bit_length()
    is_narrow = (int(values.max(initial=0)) + 1) << width <= 1 << 31
    both = values.astype(np.int32 if is_narrow else np.int64)
    both <<= width
    both |= things
    both.sort()
    again = both[1:] == both[:-1]
    if again.any():
        both = both[np.append(True, ~again)]
    values = both >> width
    bounds = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)] if len(values) else [0]
    return values[bounds[:-1]].tolist(), bounds, (both & ((1 << width) - 1)).astype(np.int32)
