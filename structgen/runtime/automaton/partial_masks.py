"""Working out rows: which tokens a state of a byte automaton allows, by walking the vocabulary's trie.

One algorithm, used for everything at once when an index is compiled eagerly, and for one state at a time when it
is touched first. The kernels release the GIL, so states are walked by several threads.

Wide states (inside a string, nearly every token is allowed) cost most. States that lead to the same places have
nearly the same rows, so a wide state is walked only where it differs from an earlier one; docs/internals/walks.md
derives the cost estimate and gives the measurements.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...budget import Meter
from ...progress import Progress, silent
from ...system.locks import Lock
from ...vocabulary.vocabulary import Vocabulary
from ..rows.row_pool import RowPool, Segments
from .reaching import reaching
from .tables import DEAD, Tables, events, representative

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

#: Trie nodes below which starting threads costs more than it saves (a node takes some 10 ns).
_WORTH_THREADS = 500_000

#: A walk rarely visits more nodes than this, however many lie below the bytes that a state takes.
_NARROW_NODES = 20_000

#: States walked between two looks at the clock.
_CHUNK = 64

#: A difference is walked only where it is expected to visit at most this share of the nodes of a full walk.
_WORTH_DIFFERENCE = 0.7

#: How many earlier wide states are compared with the next one.
_CANDIDATES = 64

#: States with their counts that are told apart to walk one of them.
_MOST_SPELLED = 1 << 12


class TokenMapper:
    """Computes rows of one automaton over one vocabulary, and puts them into a pool.

    Several threads may walk at once; the pool is only touched under its owner's lock.
    """

    def __init__(self, tables: Tables, vocabulary: Vocabulary, pool: RowPool, lock: Lock) -> None:
        self.tables = tables
        self.pool = pool
        self._lock = lock
        self.vocabulary = vocabulary
        trie = vocabulary.trie
        self._trie = (trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids)
        self._trie_of_nodes = (trie.byte, trie.depth, trie.skip, trie.token, trie.twins)
        self._max_depth = trie.max_depth
        classes = tables.classes()
        self._table = tables.dense(classes)
        self._automaton = (self._table.reshape(-1), classes, self._table.shape[1])
        self._counters = tuple(np.array(a) for a in (tables.records, tables.loops, tables.live))
        self._counting = _reaches_a_count(tables)
        self._weights = trie.nodes_below(classes)

    def segments(self, state: int) -> Segments:
        """The rows of one state."""
        row = None if self.tables.live[state] >= 0 else self.row_at(state, 0)
        if row is not None:
            return self._dense(row)
        ((_, found),) = self.all_segments([state])
        return found

    def row_at(self, state: int, count: int) -> NDArray[np.uint32] | None:
        """The row of a state at a count, ``uint32[words]`` of the pool: a walk of its automaton with a state for each
        of both.

        None where no counter is reached from it, or that would be too large.
        """
        if not self._counting[state]:
            return None
        members, slots = np.empty((_MOST_SPELLED, 2), np.int64), np.full(4 * _MOST_SPELLED, -1, np.int32)
        table, classes, n_classes = self._automaton
        spelled = np.empty((_MOST_SPELLED, n_classes), np.int32)
        found = kernels.spell_regex_counts(
            table, n_classes, *self._counters, state, count, self._max_depth, members, slots, spelled
        )
        if not found:
            return None
        row = np.zeros(self.pool.words + 1, np.uint32)  # the last word takes the spare bit
        nothing = np.empty(0, np.int32)  # pops
        kernels.walk_row(
            *self._trie_of_nodes, spelled.reshape(-1), classes, n_classes, 0, self._path(), row, _MOST_SPELLED, nothing
        )
        return row[:-1]

    def _path(self) -> NDArray[np.int32]:
        """Scratch of a walk, which threads do not share: a state for each depth."""
        return np.empty(self._max_depth + 1, np.int32)

    def representative(self, state: int, count: int) -> int:
        """A count from which every token fares as from ``count``: no token counts further than it has bytes."""
        loop = self.tables.live[state]
        return representative(self.tables.loops[loop], count, self._max_depth) if loop >= 0 else 0

    def all_segments(
        self,
        states: Sequence[int],
        *,
        threads: int | None = None,
        meter: Meter | None = None,
        progress: Progress = silent,
    ) -> Iterable[tuple[int, Segments]]:
        """The rows of many states, as ``(state, segments)`` in no particular order.

        ``threads``: how many walk at once; None means one for each processor where there is enough to do.
        """
        alive = self._table[np.asarray(states, np.int64)] != DEAD
        nodes = float(np.minimum(alive @ self._weights, _NARROW_NODES).sum())
        workers = _processors() if threads is None else max(1, threads)
        if nodes < _WORTH_THREADS and threads is None:
            workers = 1
        plain = [state for state in states if not self._counting[state]]
        counting = [state for state in states if self._counting[state]]
        with _Walkers(workers, meter) as walkers:
            found = chain(self._plain_segments(plain, walkers), self._counted_segments(counting, walkers))
            for done, (state, segments) in enumerate(found, 1):
                if done == len(states) or done % 16 == 0:
                    progress("token maps", done, len(states))
                yield state, segments
                if meter and done % _CHUNK == 0:
                    meter.check_memory(self.pool.nbytes, "token rows")

    # -- states from which no counter is reached -------------------------------------------------------

    def _plain_segments(self, states: Sequence[int], walkers: _Walkers) -> Iterable[tuple[int, Segments]]:
        wide: list[int] = []
        chunks = [states[i : i + _CHUNK] for i in range(0, len(states), _CHUNK)]
        for chunk, (counts, ids) in walkers.map(self._walk_narrow, chunks):
            ends = np.cumsum(np.maximum(counts, 0)).tolist()
            for state, count, end in zip(chunk, counts.tolist(), ends, strict=True):
                if count < 0:
                    wide.append(state)
                else:
                    yield state, self._sparse(ids[end - count : end])
        yield from self._wide_segments(wide, walkers)

    def _walk_narrow(self, states: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        limit = self.pool.longest_list
        counts, ids = np.empty(len(states), np.int32), np.empty(len(states) * limit, np.int32)
        n = kernels.walk_narrow(
            *self._trie, *self._automaton, np.array(states, np.int32), limit, self._path(), counts, ids
        )
        return counts, ids[:n]

    def _sparse(self, ids: NDArray[np.int32]) -> Segments:
        with self._lock:
            return Segments((0,), (self.pool.add_ids(ids),))

    def _wide_segments(self, states: list[int], walkers: _Walkers) -> Iterable[tuple[int, Segments]]:
        """Wave after wave: first the states walked in full, then those that differ from one of these."""
        rows: dict[int, NDArray[np.uint32]] = {}
        waves = self._plan(states, walkers)
        for number, wave in enumerate(waves):
            jobs = [(state, base, rows.get(base)) for state, base in wave]
            needed = {base for later in waves[number + 1 :] for _, base in later}
            rows = {state: row for state, row in rows.items() if state in needed}
            for (state, _, _), row in walkers.map(self._walk_wide, jobs):
                if state in needed:
                    rows[state] = row.copy()
                yield state, self._dense(row)

    def _plan(self, states: list[int], walkers: _Walkers) -> list[list[tuple[int, int]]]:
        """Waves of ``(state, base)``; base -1 is a full walk, others were walked in an earlier wave."""
        table = self._table
        waves: list[list[tuple[int, int]]] = []
        wave_of: dict[int, int] = {}
        for number, state in enumerate(states):
            known = states[max(0, number - _CANDIDATES) : number]
            walkers.check()
            base = -1
            if known:
                cost = (table[known] != table[state]) @ self._weights
                best = int(np.argmin(cost))
                if cost[best] < _WORTH_DIFFERENCE * float((table[state] != DEAD) @ self._weights):
                    base = known[best]
            wave = wave_of[base] + 1 if base >= 0 else 0
            wave_of[state] = wave
            waves.extend([] for _ in range(wave + 1 - len(waves)))
            waves[wave].append((state, base))
        return waves

    def _walk_wide(self, job: tuple[int, int, NDArray[np.uint32] | None]) -> NDArray[np.uint32]:
        state, base, base_row = job
        row = np.zeros(self.pool.words + 1, np.uint32)  # the last word takes the spare bit
        if base_row is None:
            nothing = np.empty(0, np.int32)  # pops
            kernels.walk_row(
                *self._trie_of_nodes, *self._automaton, state, self._path(), row, self.tables.states, nothing
            )
        else:
            row[:-1] = base_row
            paths = self._path(), self._path()
            kernels.walk_difference(*self._trie_of_nodes, *self._automaton, state, base, *paths, row)
        return row[:-1]

    def _dense(self, row: NDArray[np.uint32]) -> Segments:
        with self._lock:
            return Segments((0,), (self.pool.add_dense(row),))

    # -- states whose tokens may count -----------------------------------------------------------------

    def _counted_segments(self, states: Sequence[int], walkers: _Walkers) -> Iterable[tuple[int, Segments]]:
        for state, found in walkers.map(self._walk_counted, list(states)):
            yield state, self._cut(state, *found, walkers)

    def _counts(self, state: int) -> tuple[int, int]:
        """The counts that a state can have."""
        loop = int(self.tables.live[state])
        return (0, 0) if loop < 0 else (1, int(self.tables.loops[loop, 1]))

    def _walk_counted(
        self, state: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """The row that holds for every count, and the tokens that some counts allow, with their intervals."""
        size = 256 + 2 * len(self.vocabulary.trie.token_ids)
        while True:
            row = np.zeros(self.pool.words, np.uint32)
            tokens, first, last = np.empty((3, size), np.int32)
            begins, pieces = np.empty(self._max_depth + 2, np.int64), np.empty((size, 4), np.int64)
            written = kernels.walk_counted(
                *self._trie, *self._automaton, *self._counters, state, *self._counts(state), begins, pieces, row,
                tokens, first, last,
            )  # fmt: skip
            if written >= 0:
                return row, tokens[:written], first[:written], last[:written]
            size *= 2

    def _cut(
        self,
        state: int,
        row: NDArray[np.uint32],
        tokens: NDArray[np.int32],
        first: NDArray[np.int32],
        last: NDArray[np.int32],
        walkers: _Walkers,
    ) -> Segments:
        """Sweep over the counts: a row for each stretch in which no token comes or goes."""
        when, which = events(tokens, first, last)
        low, high = self._counts(state)
        cuts = np.unique(np.append(when[when <= high], low))
        bounds = np.searchsorted(when, np.append(cuts, high + 1))
        begins: list[int] = []
        rows: list[int] = []
        for begin, (i, j) in zip(cuts.tolist(), pairwise(bounds.tolist()), strict=True):
            walkers.check()
            kernels.flip_ids(row, which[i:j])
            with self._lock:
                number = self.pool.add_dense(row)
            if not rows or rows[-1] != number:
                begins.append(begin)
                rows.append(number)
        return Segments((0, *begins[1:]), tuple(rows))


def _reaches_a_count(tables: Tables) -> NDArray[np.bool_]:
    """``bool[states]``: where some bytes lead to a transition that sets or increments a counter."""
    counts = np.zeros(tables.states, np.bool_)
    if len(tables.records):
        target = tables.edge_target.astype(np.int64)
        source = np.repeat(np.arange(tables.states), np.diff(tables.edge_start.astype(np.int64)))
        plain = target < tables.states
        counts[source[~plain]] = True
        counts = reaching(source[plain], target[plain], counts)
    return counts


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _Walkers:
    """Maps a function over jobs with a few threads (none, where one is enough), looking at the clock."""

    def __init__(self, threads: int, meter: Meter | None) -> None:
        self._pool: ThreadPoolExecutor | None = None
        if threads > 1:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(threads)
        self._process = os.getpid()
        self._meter = meter
        self._ahead = 4 * threads

    def __enter__(self) -> _Walkers:
        return self

    def check(self) -> None:
        """Raise `BudgetExceededError` when the time is up."""
        if self._meter:
            self._meter.check_time("token maps")

    def __exit__(self, *_: object) -> None:
        if pool := self._threads():
            pool.shutdown(cancel_futures=True)

    def map(self, walk: Callable[[T], R], jobs: list[T]) -> Iterable[tuple[T, R]]:
        """``(job, walk(job))`` in order; at most a few results wait at any time."""
        for i in range(0, len(jobs), self._ahead):
            batch = jobs[i : i + self._ahead]
            pool = self._threads()
            futures = [pool.submit(walk, job) for job in batch] if pool else []
            for number, job in enumerate(batch):
                result = futures[number].result() if futures and self._threads() else walk(job)
                self.check()
                yield job, result

    def _threads(self) -> ThreadPoolExecutor | None:
        """What walks, if there is any; a child that is forked meanwhile goes on without."""
        return self._pool if self._process == os.getpid() else None
