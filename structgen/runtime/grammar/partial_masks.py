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
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.values import LONG_GAP
from ...system.memo import first
from ...system.properties import cached_property
from ...system.types import Array
from ...vocabulary.vocabulary import Vocabulary
from ..core.bitsets import sets_of
from ..rows.residuals import NOTHING, ROOT, Residuals
from ..rows.row_pool import MOST_GROWN, RowPool
from .byte_kinds import kinds_below, kinds_of
from .completability.obligations import Watched, WatchedSets
from .lexeme_futures import LexemeFutures
from .mask_table import LexemeEnd, PartialMask, PartialMaskTable
from .tables import GrammarTables

__all__ = ["NOTHING", "ROOT", "LexemeEnd", "LexemeMasks", "PartialMask", "Walked", "Watched"]


#: Nodes of the trie that a slice of a walk looks at: a millisecond or two.
_NODES = 1 << 19

#: Runs and nodes that walks have room for at first; rows that are put together at once, and so few tokens of a walk
#: that they are put in order one by one.
_ROOM, _ROWS, _FEW = 1 << 15, 32, 64

#: Numbers of which so many times as many are possible as are there are sorted; of others there is a table.
_SPARSE = 8

#: A lexer state, the obligations there, and the tokens or nodes that lead there.
Walked: TypeAlias = tuple[int, Watched, NDArray[np.int32]]


#: A residual list, the lexer state that it is entered in, and the obligations there.
Key: TypeAlias = tuple[int, int, Watched]


class _Walks(NamedTuple):
    """What walks found, one after the other, as `structgen.kernels.walk_lexer` has it."""

    sets: WatchedSets
    run_starts: NDArray[np.int64]  # by walk
    runs: NDArray[np.int32]
    below_starts: NDArray[np.int64]
    below: NDArray[np.int32]

    @property
    def watched(self) -> Callable[[int], Watched]:
        """Obligations, by number."""
        return self.sets.watched


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
        stored = stored or KnownMasks(RowPool(vocabulary.spelled), Residuals(), PartialMaskTable.empty(tables))
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
        self._kept = self.pool.mark(), self.residuals.mark()
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
        self.__dict__.pop("_distinct", None)

    def __len__(self) -> int:
        return self._fresh + len(self.stored)

    @cached_property
    def distinct(self) -> tuple[list[int], NDArray[np.int32]]:
        """The futures of lexer states, each once, and which of them is each state's."""
        words, number = self.tables.distinct_futures
        return sets_of(words), number

    @cached_property
    def _distinct(self) -> tuple[list[int], dict[int, int]]:
        """The same futures with those under obligations that walks came to, and the number of each."""
        sets, _ = self.distinct
        return sets.copy(), {each: number for number, each in enumerate(sets)}

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
        width, found = len(walks.sets) + 1, list[list[Walked]]()
        first, last, states, watches = walks.runs
        many = last - first
        at = np.repeat(first - np.cumsum(many) + many, many) + np.arange(many.sum())
        runs = self.vocabulary.trie.token_ids[at], np.repeat(states, many), np.repeat(watches, many)
        for (there, at, numbers), size in ((runs, self.vocabulary.spelled), (walks.below, self._nodes)):
            keys, bounds, members = _by_value(at.astype(np.int64) * width + numbers + 1, there, size)
            found.append(
                [
                    (key // width, walks.watched(key % width - 1), members[i:j])
                    for key, (i, j) in zip(keys, pairwise(bounds), strict=True)
                ]
            )
        return found[0], found[1]

    def _groups(self, walks: _Walks) -> list[list[tuple[int, int]]]:
        """By walk: its tokens by what the lexeme at their end can become, a set and a row each."""
        sets, number_of = self._distinct
        _, _, states, watch = walks.runs
        numbers = self.distinct[1][states]
        owing = np.flatnonzero(watch >= 0)
        if len(owing):
            width = len(walks.sets)
            keys = states[owing].astype(np.int64) * width + watch[owing]
            distinct, which = _numbered(keys, len(self.tables.table) * width)
            futures = (self._futures(key // width, walks.watched(key % width)) for key in distinct.tolist())
            found = []
            for each in futures:
                found.append(number_of.setdefault(each, len(sets)))
                if found[-1] == len(sets):
                    sets.append(each)
            numbers[owing] = np.array(found)[which]
        return self._all_rows(walks, numbers, sets)

    def _all_rows(self, walks: _Walks, numbers: NDArray[np.int32], sets: list[int]) -> list[list[tuple[int, int]]]:
        """By walk: the rows of its runs, by set, whose number each run has; those of the empty set left out."""
        pool, starts, end = self.pool, walks.run_starts, len(walks.run_starts) - 1
        few = min(_FEW, pool.longest_list)
        room = max(1, few) * end
        gaps = np.empty(room * (1 + self.vocabulary.spelled // LONG_GAP), np.uint16)
        found, few_ids = np.empty((room, 3), np.int32), np.empty(few, np.int32)
        groups: list[list[tuple[int, int]]] = [[] for _ in range(end)]
        n = kernels.lists_of_runs(
            self.vocabulary.trie.token_ids, walks.runs, starts, numbers, few, few_ids, gaps, found
        )
        slot_of, begins = np.zeros(0, np.int32), 0
        for walk, number, ends in found[:n].tolist():
            if number < 0:
                if not len(slot_of):
                    slot_of = np.full(len(sets), -1, np.int32)
                rows = self._rows(walks.runs, int(starts[walk]), int(starts[walk + 1]), numbers, slot_of)
                groups[walk] = [(sets[each], row) for each, row in rows if sets[each]]
            elif sets[number]:
                groups[walk].append((sets[number], pool.add_gaps(gaps[begins:ends])))
            begins = ends
        return groups

    def _rows(
        self, runs: NDArray[np.int32], begin: int, end: int, numbers: NDArray[np.int32], slot_of: NDArray[np.int32]
    ) -> Iterator[tuple[int, int]]:
        """The rows of a walk's runs, by number."""
        pool, done, many = self.pool, 0, 1
        rows, gaps, found = self._rows_scratch
        while done < many:
            many = kernels.rows_of_runs(
                self.vocabulary.trie.token_ids, runs, begin, end, numbers, done, slot_of, rows, pool.longest_list,
                gaps, found,
            )  # fmt: skip
            begins = 0
            for slot, (number, count, ends) in enumerate(found.T[: many - done].tolist()):
                is_list = count <= pool.longest_list
                yield number, pool.add_gaps(gaps[begins:ends]) if is_list else pool.add_dense(rows[slot])
                begins = ends
            done += len(rows)

    @cached_property
    def _rows_scratch(self) -> tuple[NDArray[np.uint32], NDArray[np.uint16], NDArray[np.int32]]:
        """Room for some rows of a walk."""
        words, longest = self.pool.words, self.pool.longest_list
        gaps = np.empty(_ROWS * (longest + 1 + self.vocabulary.spelled // LONG_GAP), np.uint16)
        return np.empty((_ROWS, words), np.uint32), gaps, np.empty((3, _ROWS), np.int32)

    def _ends(self, keys: list[Key], walks: _Walks) -> list[list[LexemeEnd]]:
        """By walk: where lexemes end."""
        ends_of, with_state = self.tables.ends_of, self.tables.obligations.with_state
        found = [
            [
                LexemeEnd(terminal, residual, watched if watch < 0 else with_state(watch, watched))
                for terminal, watch in ends_of[state]
            ]
            for residual, state, watched in keys
        ]
        # Lexemes that end in several states as one terminal go on alike.
        nodes: dict[tuple[int, int, Watched], list[NDArray[np.int32]]] = {}
        for number, terminal, watch, before, where in self._all_ends(walks):
            end = number, terminal, before if watch < 0 else with_state(watch, before)
            nodes.setdefault(end, []).append(where)
        add = self.residuals.add
        for (number, terminal, watched), parts in nodes.items():
            where = parts[0] if len(parts) == 1 else _united(parts, self._nodes)
            found[number].append(LexemeEnd(terminal, add(where), watched))
        return found

    def _all_ends(self, walks: _Walks) -> Iterator[tuple[int, int, int, Watched, NDArray[np.int32]]]:
        """The walk, the terminal, what is watched from then on, what was before, and the nodes, part by part."""
        tables, watched, room = self.tables, walks.watched, _FEW * (len(walks.below_starts) - 1)
        nodes, found = np.empty(room, np.int32), np.empty((room, 5), np.int32)
        n = kernels.lists_of_ends(walks.below, walks.below_starts, tables.end_starts, tables.ends, _FEW, nodes, found)
        wide, begins = list[int](), 0
        for walk, terminal, watch, before, ends in found[:n].tolist():
            if terminal < 0:
                wide.append(walk)
            else:
                yield walk, terminal, watch, watched(before), nodes[begins:ends]
            begins = ends
        if wide:
            yield from self._many_ends(walks, wide)

    def _many_ends(
        self, walks: _Walks, numbers: list[int]
    ) -> Iterator[tuple[int, int, int, Watched, NDArray[np.int32]]]:
        """`_all_ends` of some walks."""
        states, many = len(self.tables.table), np.diff(walks.below_starts)
        chosen = np.zeros(len(many), bool)
        chosen[numbers] = True
        walk, is_chosen = np.repeat(np.arange(len(many)), many), np.repeat(chosen, many)
        below, state, watch = walks.below[:, is_chosen]
        names, before = np.unique(watch, return_inverse=True)
        wheres = (walk[is_chosen] * states + state) * len(names) + before.reshape(-1)
        keys, bounds, nodes = _by_value(wheres, below, self._nodes)
        for key, (i, j) in zip(keys, pairwise(bounds), strict=True):
            number, state = divmod(key // len(names), states)
            for terminal, watch in self.tables.ends_of[state]:
                yield number, terminal, watch, walks.watched(int(names[key % len(names)])), nodes[i:j]

    def _walk(self, starts: list[tuple[NDArray[np.int32], int, Watched]]) -> _Walks:
        """The kernel's walks, in slices. Obligations are numbered: states, then sets of them."""
        trie, tables = self.vocabulary.trie, self.tables
        if self._sets.is_full():
            self._sets = self._new_sets()
            self.__dict__.pop("_distinct", None)
        sets = self._sets  # others may begin new ones meanwhile
        kinds = kinds_below(self.vocabulary)
        progress, path = np.zeros(kernels.LEXER_PROGRESS, np.int64), np.empty((2, trie.max_depth + 2), np.int32)
        progress[kernels.L_NODE] = -1
        residuals = starts[0][0] if len(starts) == 1 else np.concatenate([nodes for nodes, _, _ in starts])
        ends = accumulate(len(nodes) for nodes, _, _ in starts)
        where = [(end, state, sets.number(watched)) for end, (_, state, watched) in zip(ends, starts, strict=True)]
        begins, counts = np.array(where, np.int32), np.zeros((2, len(starts) + 1), np.int64)
        found, self._scratch = self._scratch, None  # others have none, or theirs
        if found is None:
            found = np.empty((7, _ROOM), np.int32)
        status = kernels.TOO_MUCH_WORK
        while status != kernels.OK:
            status = kernels.walk_lexer(
                trie.byte, trie.depth, trie.skip, trie.first_token, kinds, tables.class_of, tables.table,
                tables.goes_on, tables.beats, self._loops, sets.table, sets.row_of, sets.lives, residuals, begins,
                _NODES, progress, path, found[:4], found[4:], counts,
            )  # fmt: skip
            if status == kernels.NO_ROOM:
                found = np.concatenate([found, np.empty(found.shape, np.int32)], axis=1)
            elif status == kernels.CONFLICT:
                number, at = progress[[kernels.L_SET, kernels.L_STATE]].tolist()
                if at < 0:
                    sets.follow(number)
                else:
                    sets.ask(at, number)
            else:
                self._pause()
        self._scratch = found
        run_starts, below_starts = counts
        runs, below = found[:4, : run_starts[-1]].copy(), found[4:, : below_starts[-1]].copy()
        return _Walks(sets, run_starts, runs, below_starts, below)

    @cached_property
    def _loops(self) -> NDArray[np.uint64]:
        """By lexer state: the kinds of bytes that all lead back to it and begin nothing else."""
        tables, kinds = self.tables, kinds_of(self.tables.class_of)
        found = np.empty(len(tables.table), np.uint64)
        kernels.looping_kinds(tables.table, tables.goes_on, kinds, found)
        return found

    def _new_sets(self) -> WatchedSets:
        return WatchedSets(self.tables.obligations, self.tables.rows, self._futures, *self.tables.table.shape)


def _numbered(values: NDArray[np.int64], end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The values, all below ``end``, ascending and each once; and which of them each is."""
    if end > _SPARSE * len(values):
        distinct, which = np.unique(values, return_inverse=True)
        return distinct, which.reshape(-1)
    is_there = np.zeros(end, bool)
    is_there[values] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[values]


def _united(parts: list[NDArray[np.int32]], end: int) -> NDArray[np.int32]:
    """Numbers below ``end`` that some of several lists have, ascending."""
    found = np.concatenate(parts)
    if end > _SPARSE * len(found):
        return np.unique(found)
    is_there = np.zeros(end, bool)
    is_there[found] = True
    return np.flatnonzero(is_there).astype(np.int32)


def _by_value(values: Array, things: NDArray[np.int32], size: int) -> tuple[list[int], list[int], NDArray[np.int32]]:
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
