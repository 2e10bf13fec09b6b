"""Distances of automata with a stack to the end of a text, in tokens: upper bounds, each with a text to show for it.

Every configuration has a *cheapest text* (`structgen.runtime.pushdown.distances.cheapest_texts`), and what follows a
beginning of that is the cheapest text of where it leads. A configuration's distance is the number of tokens of the
best way to split it, across frames; it is at most one more than that behind the first of these tokens. (A text of
more bytes may take fewer tokens; so this is a bound.)

Whether a token can lead too far is seen without following any: the tokens of cheapest texts, split frame by frame,
add up along the stack, and one walk of the trie from all states at once finds by how much a token can raise that sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....errors import UnsupportedError
from ....system.memo import Memo
from ....vocabulary.vocabulary import Vocabulary
from ...automaton.distances import MEMO_ENTRIES, NEVER
from ...automaton.tables import bytes_in
from ...core.lazy_table import LazyTable
from ...rows.row_pool import row_of
from ..counts import zones_of
from ..partial_masks import StateMasks
from ..stacks import Stack, Thread, laid_out
from ..store.configuration import StoredConfiguration
from .cheapest_texts import TOKEN, CheapestTexts, StackAutomaton, summed, too_long

#: Bytes of a cheapest text.
_MOST_BYTES = 1 << 20

#: Up to so many pairs, what each costs in tokens is worked out to bound what a token can add.
_FEW_PLACES = 1 << 14

#: Steps of the walk that bounds what a token can add, two seconds or so; past that it is looked at everywhere.
_MOST_STEPS = 1 << 26


#: Configurations for which it is remembered where tokens lead, a megabyte each at most with Llama-3's vocabulary.
_MOST_CONFIGS = 16


#: Tokens, and how far from the end each leads.
_Successors: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32]]


class TokenAutomaton(StackAutomaton, Protocol):
    """What distances need of a `structgen.runtime.pushdown.machine.PushdownMachine`."""

    vocabulary: Vocabulary
    rows: StateMasks

    @property
    def start(self) -> StoredConfiguration:
        """The initial configuration."""


class StackDistances:
    """Distances of one pushdown automaton.

    Parameters
    ----------
    machine:
        The automaton and the vocabulary.

    Raises
    ------
    UnsupportedError
        Where it has registers, or needs bytes that are no tokens.
    BudgetExceededError
        Where there are too many counts.
    """

    def __init__(self, machine: TokenAutomaton) -> None:
        tables, vocabulary = machine.tables, machine.vocabulary
        self._machine = machine
        self._trie = trie = vocabulary.trie
        self._children = LazyTable(lambda node: dict(trie.children(node)))
        self._ends = np.diff(self._trie.first_token).astype(np.bool_).tobytes()
        self._words = vocabulary.words
        self._working = 0  # how many threads of the process rely on what is remembered
        self._end = int(bool(vocabulary.eos_ids))
        arena = tables.arena()
        self._texts = texts = CheapestTexts(machine, arena, by_runs(vocabulary))
        read = bytes_in(tables.edge_low, tables.edge_high)
        if (texts.costs >= texts.far).any() and not vocabulary.single_bytes[read].all():
            raise UnsupportedError(
                "max_tokens is not supported for a vocabulary without a token for each single byte",
                remedy="Use a vocabulary with all single bytes, or leave max_tokens out.",
            )
        self._after: dict[Thread, tuple[int, tuple[Thread | None, ...]]] = {}
        self._tokens: dict[Thread | None, int] = {None: self._end}
        self._sums: dict[Stack, int] = {None: 0}
        self._known: Memo[tuple[Thread, ...], int] = Memo(MEMO_ENTRIES)
        self._successors: Memo[tuple[Thread, ...], _Successors] = Memo(_MOST_CONFIGS)
        self._farthest: Memo[tuple[Thread, ...], int] = Memo(MEMO_ENTRIES)
        self._potential = self._find_potential(arena)
        if self.distance(machine.start) == NEVER - 1:
            raise too_long("a text of more than a million bytes")

    def _find_potential(self, arena: NDArray[np.int32]) -> int:
        """The most that a token can add to `_sum`."""
        offsets, far = self._texts.offsets, self._texts.far
        lengths, is_far = np.diff(offsets), self._texts.costs >= far
        costs = np.where(is_far, 0, self._texts.costs)
        if len(costs) <= _FEW_PLACES:
            of = np.repeat(np.arange(len(lengths)), lengths).tolist()
            for offset in np.flatnonzero((costs > 0) & (costs <= _MOST_BYTES)).tolist():
                state = of[offset]
                costs[offset] = self._of_frame(state, offset - int(offsets[state]))
            least = np.minimum.reduceat(np.where(is_far, far, costs), offsets[:-1])
        else:
            least = np.zeros(len(lengths), np.int64)
        most = np.maximum.reduceat(costs, offsets[:-1])
        below: set[int] = set()
        for group in self._machine.tables.all_moves():
            for record, sequence in group:
                below.update(sequence[:-1])
                if record is not None and sequence:
                    below.update(state for state in record[2:] if state >= 0)
        trie = self._trie
        gained, room = -1, 4 * len(most) + 64
        while gained < 0:
            gained = kernels.most_gained(
                trie.byte, trie.depth, trie.skip, trie.first_token, arena, np.array(sorted(below), np.int32),
                np.where(least >= far, 0, least), most, _MOST_STEPS, np.empty(trie.max_depth + 3, np.int64),
                *np.empty((2, room), np.int64), *np.empty((2, len(most)), np.int64),
            )  # fmt: skip
            room *= 2
        by_tokens = [
            most[list(first + sequence)].sum() - least[state]
            for state, record, sequence in self._texts.moves_by_tokens()
            for first in ([()] if record is None else [(zone,) for zone in zones_of(record)])
        ]
        return int(max([gained, *by_tokens]))

    # -- cheapest texts --------------------------------------------------------------------------------

    def _follow(self, thread: Thread) -> tuple[int, tuple[Thread | None, ...]]:
        """`CheapestTexts.follow`, remembered."""
        found = self._after.get(thread)
        if found is None:
            found = self._after[thread] = self._texts.follow(thread)
        return found

    def _split(self, thread: Thread | None) -> int:
        """The fewest tokens that a decided thread's cheapest texts can be split into, with the EOS token."""
        tokens = self._tokens
        todo = [thread]
        while todo:
            here = todo[-1]
            if here is None or here in tokens:
                todo.pop()
                continue
            self.give_way()
            missing = [each for each in self._follow(here)[1] if each not in tokens]
            if not missing:
                tokens[here] = self._best(here)
            elif len(todo) > _MOST_BYTES:
                tokens[thread] = self._texts.far
                break
            todo += missing
        return tokens[thread]

    def _best(self, start: Thread) -> int:
        """`_split`, where that of all threads that follow is known: by the best first token."""
        tokens, children, ends = self._tokens, self._children, self._ends
        best = self._texts.far
        reached: dict[tuple[int, Thread], None] = {(0, start): None}
        while reached:
            after: dict[tuple[int, Thread], None] = {}
            for node, here in reached:
                byte, threads = self._after.get(here) or self._follow(here)
                if byte == TOKEN and not node:
                    best = min(best, *[tokens[each] + 1 for each in threads])
                child = children[node].get(byte, 0)
                for each in threads if child else ():
                    if ends[child]:
                        best = min(best, tokens[each] + 1)
                    if each is not None:
                        after[child, each] = None
            reached = after
        return best

    def _of_frame(self, state: int, count: int) -> int:
        """The tokens of the cheapest text of a frame alone."""
        return min(map(self._split, self._texts.decided([(state, count, None)]))) - self._end

    def _sum(self, thread: Thread) -> int:
        """The tokens of a thread's cheapest text, split frame by frame; the most that one of its stacks takes."""
        state, count, stack = thread
        top = self._of_frame(state, count) if state >= 0 else 0
        return summed(stack, self._sums, self._of_frame, max) + top + self._end

    # -- what guides ask for ---------------------------------------------------------------------------

    def distance(self, config: StoredConfiguration) -> int:
        """So many tokens, the EOS token included, complete a text."""
        found = self._known.get(config.threads)
        if found is None:
            with self._work():
                found = self._known[config.threads] = self.of_threads(config.threads)
        return found

    def of_threads(self, threads: tuple[Thread, ...]) -> int:
        """The distance of the nearest of some threads; `NEVER` less one for texts of more than a million bytes."""
        return min(NEVER - 1, *map(self._split, self._texts.decided(threads)))

    @contextmanager
    def _work(self) -> Iterator[None]:
        """Hold the lock of the machine's rows, and keep what is remembered while it is passed on."""
        lock = self._machine.rows.lock
        with lock:
            lock.begin()
            if not self._working:
                self._trim()
            self._working += 1
            try:
                yield
            finally:
                self._working -= 1

    def give_way(self) -> None:
        """Let others have the lock for a moment, if this has taken long."""
        self._machine.rows.lock.give_way()

    def _trim(self) -> None:
        """Forget, where much is remembered."""
        if len(self._after) >= MEMO_ENTRIES:
            self._after, self._tokens = {}, {None: self._end}
        if len(self._sums) >= MEMO_ENTRIES:
            self._sums = {None: 0}

    def near(self, config: StoredConfiguration, left: int) -> int:
        """A number of tokens left above which every token leaves enough of them to complete the text."""
        with self._work():
            least = max(map(self._sum, config.threads))
        return left - max(0, (left - least) // (self._potential + 1))

    def farthest(self, config: StoredConfiguration) -> int:
        """The largest distance that a single token leads to."""
        found = self._farthest.get(config.threads)
        if found is None:
            with self._work():
                found = self._farthest[config.threads] = int(self._behind_tokens(config)[1].max(initial=0))
        return found

    def row(self, config: StoredConfiguration, most: int) -> NDArray[np.int32]:
        """The tokens that lead to a distance of at most ``most``, without EOS ids; read-only ``int32[words]``."""
        with self._work():
            tokens, far = self._behind_tokens(config)
        row = row_of(tokens[far <= most], self._words).view(np.int32)
        row.flags.writeable = False
        return row

    def _behind_tokens(self, config: StoredConfiguration) -> _Successors:
        """The tokens that are allowed, without EOS ids, and the distance behind each: ``int32[allowed]``."""
        found = self._successors.get(config.threads)
        if found is None:
            tokens, far = [], []
            for ids, which, sets, cells, _ in self._machine.rows.reached(*laid_out(config.threads)):
                stacks: dict[int, Stack] = {-1: None}
                of_cell = self._machine.stacks.of_cell
                behind = [
                    self.of_threads(tuple([(s, count, of_cell(cell, cells, stacks)) for s, count, cell in threads]))
                    for threads in sets
                ]
                tokens.append(ids)
                far.append(np.array(behind, np.int32)[which])
            for tokens_of, distance in self._behind_token_edges(config.threads):
                tokens.append(tokens_of)
                far.append(np.full(len(tokens_of), distance, np.int32))
            found = np.concatenate(tokens), np.concatenate(far)
            if self._machine._token_moves is not None:
                found = _nearest(*found)
            self._successors[config.threads] = found
        return found

    def _behind_token_edges(self, threads: tuple[Thread, ...]) -> Iterator[tuple[NDArray[np.int32], int]]:
        """The tokens of each token edge, ``int32[*]``, and the distance behind them."""
        token_moves = self._machine._token_moves
        if token_moves is None:
            return
        for (_, _, frame), tokens, moves in self._machine._token_edges(threads):
            after: dict[Thread, None] = {}
            for record, sequence in moves:
                self._machine.make(record, sequence, 0, frame, after)
            yield token_moves.ids(tokens).astype(np.int32), self.of_threads(tuple(after))


def _nearest(tokens: NDArray[np.int32], far: NDArray[np.int32]) -> _Successors:
    """Each token once, with its least distance."""
    order = np.lexsort((far, tokens))
    found, first = np.unique(tokens[order], return_index=True)
    return found, far[order][first]


def by_runs(vocabulary: Vocabulary) -> list[int]:
    """The bytes that are tokens; those of which most are a token together (blanks, as a rule) come first."""
    runs = vocabulary.trie.runs
    return sorted(np.flatnonzero(vocabulary.single_bytes).tolist(), key=lambda byte: -runs[byte])
