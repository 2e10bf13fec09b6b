"""Walks of the vocabulary's trie through an automaton with a stack: the kernels, with what they need around them."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..memo import Memo
from ..vocabulary.vocabulary import Vocabulary
from .pushdown_tables import PushdownTables
from .tables import DEAD, INC, SET

#: A base must take at least this share of all trie nodes, and of those below the bytes that a state takes.
_WORTH_A_BASE = 0.5

#: How far the widest edges are followed to a configuration that stays in place, and with how many frames.
_LONGEST_APPROACH, _MOST_FRAMES = 40, 8

#: Sizes of vocabularies that a thread keeps arrays for.
_MOST_SIZES = 4

#: Threads and stack cells that a walk has room for at first.
ROOM = 1 << 10


class _Scratch(threading.local):
    """Arrays that the kernels write to, one set for each thread and size of vocabulary."""

    def __init__(self) -> None:
        self._arrays: Memo[tuple[int, int], tuple[NDArray[np.int32], NDArray[np.int32]]] = Memo(_MOST_SIZES)
        self._intervals = np.empty((6, 1 << 12), np.int32)

    def intervals(self, size: int) -> NDArray[np.int32]:
        """Six rows of at least ``size``."""
        if self._intervals.shape[1] < size:
            self._intervals = np.empty((6, size), np.int32)
        return self._intervals

    def of(self, tokens: int, nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        found = self._arrays.get((tokens, nodes))
        if found is None:
            found = np.empty(tokens + 64, np.int32), np.empty(nodes + 64, np.int32)
            self._arrays[tokens, nodes] = found
        return found


_scratch = _Scratch()


class Counted(NamedTuple):
    """What `kernels.walk_stack_counted` found: ids and nodes for every count, and those with intervals."""

    ids: NDArray[np.int32]
    tokens: tuple[NDArray[np.int32], ...]
    below: NDArray[np.int32]
    nodes: tuple[NDArray[np.int32], ...]


class StackWalker:
    """The kernels' form of an automaton, and the walks over the vocabulary's trie."""

    def __init__(self, tables: PushdownTables, vocabulary: Vocabulary) -> None:
        from .. import kernels

        self._kernels: Any = kernels
        trie = vocabulary.trie
        self._tables = tables
        self._trie = (trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids, trie.max_depth)
        self._ends = trie.token, trie.twins
        self._sizes = len(trie.token_ids), len(trie.byte)
        self._words = vocabulary.words
        self._arena = tables.arena()
        self._n = tables.states
        classes = self._arena[self._arena[kernels.A_CLASS_OF] :][:256]
        begin, width = int(self._arena[kernels.A_TABLE]), int(self._arena[kernels.A_CLASSES])
        self._table = self._arena[begin : begin + self._n * width].reshape(self._n, width)
        self._weights = trie.nodes_below(classes)
        self._moves = tables.moves
        self._far: NDArray[np.int32] | None = None
        #: Trie nodes below the bytes that each state takes.
        self.weight = (self._table != DEAD) @ self._weights
        self._narrowest_base = _WORTH_A_BASE * self._weights.sum()

    def narrow(
        self, resume: NDArray[np.int32], config: tuple[int, ...]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Allowed ids in the trie's order and ascending resume nodes: views that the next walk overwrites."""
        ids, below = _scratch.of(*self._sizes)
        here, room = np.array(config, np.int64), ROOM
        while True:
            n, m = self._kernels.walk_stack(*self._trie, self._arena, resume, here, room, ids, below)
            if n >= 0:
                return ids[:n], below[:m]
            room *= 8

    def difference(
        self, config: tuple[int, ...], base: tuple[int, ...], limit: int | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """Ids and nodes in which two configurations differ; views, as in `narrow`. None after ``limit`` nodes."""
        ids, below = _scratch.of(*self._sizes)
        limit = self._sizes[1] if limit is None else limit
        here, there, room = np.array(config, np.int64), np.array(base, np.int64), ROOM
        while True:
            n, m = self._kernels.walk_stack_difference(
                *self._trie, self._arena, here, there, room, limit, ids, below
            )
            if n != self._kernels.OVERFLOW:
                return None if n < 0 else (ids[:n], below[:m])
            room *= 8

    def closed(self, state: int, *, far: bool = False) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The row and the resume list of a state whose automaton only moves and pops.

        ``far`` lets it count as well, and takes all counts as far from their bounds.
        """
        row = np.zeros(self._words + 1, np.uint32)  # the last word takes the spare bit
        _, below = _scratch.of(*self._sizes)
        byte, depth, skip, *_, max_depth = self._trie
        arena = self._uncounted() if far else self._arena
        m = self._kernels.walk_closed(byte, depth, skip, *self._ends, max_depth, arena, state, row, below)
        return row[:-1], below[:m].copy()

    def _uncounted(self) -> NDArray[np.int32]:
        """The arena with plain moves in place of those that add to a count, as if no bound were near."""
        if self._far is None:
            follow = np.arange(self._n + len(self._moves) + 1)  # the last for the dead
            for group, moves in enumerate(self._moves, self._n):
                record, sequence = moves[0]
                if len(moves) == 1 and record is not None and record[0] == INC and not sequence:
                    follow[group] = record[3]
            follow[-1] = DEAD
            self._far = self._arena.copy()
            begin = int(self._arena[self._kernels.A_TABLE])
            self._far[begin : begin + self._table.size] = follow[self._table.reshape(-1)]
        return self._far

    def place(self, state: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The row and the resume list of a state, entered without a count."""
        ids, below = self.narrow(np.zeros(1, np.int32), (state, 0))
        return self.bits(ids), below.copy()

    def bits(self, ids: NDArray[np.int32]) -> NDArray[np.uint32]:
        """The row of some ids, ``uint32[words]``."""
        row = np.zeros(self._words, np.uint32)
        self._kernels.flip_ids(row, ids)
        return row

    def counted(self, state: int, bounds: tuple[int, int]) -> Counted | None:
        """All counts of a state at once, in a loop with these bounds; None where that is too much."""
        arena, loop = self._arena.copy(), int(self._tables.live[state])
        where = int(arena[self._kernels.A_LOOPS]) + 2 * loop
        arena[where : where + 2] = bounds
        size = 1 << 12
        ids, below = _scratch.of(*self._sizes)
        while True:
            rows = _scratch.intervals(size)
            found = self._kernels.walk_stack_counted(
                *self._trie, arena, state, 1, bounds[1], ids, *rows[:3], below, *rows[3:]
            )
            if found[0] >= 0:
                a, b, c, d = found
                tokens, nodes = tuple(rows[:3, :b].copy()), tuple(rows[3:, :d].copy())
                return Counted(ids[:a].copy(), tokens, below[:c].copy(), nodes)
            if size > 128 * self._sizes[0]:
                return None
            size *= 8

    # -- choosing what to compare with -----------------------------------------------------------------

    def base(self, state: int) -> tuple[int, ...] | None:
        """The configuration that the widest edges lead to and that they stay in; None where that is the state."""
        here = state
        frames: tuple[int, ...] = ()
        for _ in range(_LONGEST_APPROACH):
            if self.weight[here] < self._narrowest_base:
                return None
            entry, share = self._widest(here)
            if entry < self._n:
                if entry == here:
                    return None if here == state and not frames else _config(here, frames)
                sequence: tuple[int, ...] = (entry,)
            else:
                moves = self._moves[entry - self._n]
                if len(moves) != 1 or moves[0][0] is not None or not moves[0][1]:
                    return None
                sequence = moves[0][1]
            depth = len(frames) + len(sequence) - 1
            if share < _WORTH_A_BASE or self._tables.live[sequence[-1]] >= 0 or depth > _MOST_FRAMES:
                return None
            frames = (*reversed(sequence[:-1]), *frames)
            here = sequence[-1]
        return None

    def counts_in(self, state: int) -> int | None:
        """The state in which the widest edge of another one, itself without a count, sets a count to 1."""
        if self._tables.live[state] >= 0 or self.weight[state] < self._narrowest_base:
            return None
        entry, share = self._widest(state)
        moves = self._moves[entry - self._n] if entry >= self._n else []
        if share < _WORTH_A_BASE or len(moves) != 1 or moves[0][0] is None or moves[0][1]:
            return None
        operation, _, inside, *_ = moves[0][0]
        return inside if operation == SET and self._tables.live[inside] >= 0 else None

    def _widest(self, state: int) -> tuple[int, float]:
        """The entry that takes the most trie nodes, and its share of what the state takes."""
        sums = np.bincount(self._table[state] + 1, self._weights)  # entry -1, dead, comes first
        best = int(sums[1:].argmax())
        return best, float(sums[best + 1] / max(1.0, self.weight[state]))


def _config(state: int, frames: tuple[int, ...]) -> tuple[int, ...]:
    """State and frames, none with a count, as the kernels read them."""
    return tuple(x for s in (state, *frames) for x in (s, 0))


def stretches(
    always: NDArray[np.int32], some: tuple[NDArray[np.int32], ...], high: int
) -> tuple[list[int], list[NDArray[np.int32]]]:
    """The counts at which something comes or goes, and what is there from each of them on, ascending."""
    what, first, last = some
    order = np.argsort(what, kind="stable")
    what, first, last = what[order], first[order], last[order]
    begins = np.unique(np.concatenate([[1], first, last + 1]))
    begins = begins[begins <= high]
    fixed = np.sort(always)
    found = []
    for begin in begins.tolist():
        here = what[(first <= begin) & (begin <= last)]
        found.append(np.sort(np.concatenate([fixed, here])) if len(fixed) else here)
    return begins.tolist(), found


def events(
    what: NDArray[np.int32], first: NDArray[np.int32], last: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """When something comes or goes, in order, and what."""
    when = np.concatenate([first, last + 1])
    order = np.argsort(when, kind="stable")
    return when[order], np.concatenate([what, what])[order]
