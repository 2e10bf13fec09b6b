"""Distances of automata with a stack to the end of a text, in tokens: upper bounds, each with a text to show for it.

Every configuration has a *cheapest text*: what takes it off the stack in the fewest bytes, frame by frame. Which byte
comes next is a function of the state and its count alone, so what follows a beginning of a cheapest text is the
cheapest text of where it leads. A configuration's distance is the number of tokens of the best way to split its
cheapest text, across frames; it is at most one more than that behind the first of these tokens. (A text of more bytes
may take fewer tokens; so this is a bound.)

Whether a token can lead too far is seen without following any: the tokens of cheapest texts, split frame by frame,
add up along the stack, and one walk of the trie from all states at once finds by how much a token can raise that sum.

A token edge costs one token, and one byte. Where tokens are counted, the cheapest text of a state is that of the
exhausted one: it can be taken whatever the count is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import BudgetExceededError, FormatError, UnsupportedError
from ...system.memo import Memo
from ...vocabulary.trie import Trie
from ...vocabulary.vocabulary import Vocabulary
from ..automaton.distances import MEMO_ENTRIES, NEVER
from ..automaton.tables import DEAD, MARK, SET, bytes_in
from ..core.interned_machine import Configuration
from ..core.lazy_table import LazyTable
from .counts import zones_of
from .partial_masks import StateMasks
from .stacks import LOOP_COUNT, Fork, Stack, Stacks, Thread, laid_out
from .tables import Moves, PushdownTables, Record
from .token_edges import TokenMoves

#: Pairs of a state and a count, bytes of a cheapest text, and sweeps over all pairs.
_MOST_OFFSETS, _MOST_BYTES, _MOST_SWEEPS = 1 << 23, 1 << 20, 1 << 10

#: Up to so many pairs, what each costs in tokens is worked out to bound what a token can add.
_FEW_PLACES = 1 << 14

#: Steps of the walk that bounds what a token can add, two seconds or so; past that it is looked at everywhere.
_MOST_STEPS = 1 << 26


#: Configurations for which it is remembered where tokens lead, a megabyte each at most with Llama-3's vocabulary.
_MOST_CONFIGS = 16


#: In place of a byte: a token edge is taken.
TOKEN = -1

#: Tokens, and how far from the end each leads.
_Successors: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32]]


class StackAutomaton(Protocol):
    """What distances need of a `structgen.runtime.pushdown.machine.PushdownMachine`."""

    vocabulary: Vocabulary
    tables: PushdownTables
    rows: StateMasks
    stacks: Stacks
    _token_moves: TokenMoves | None

    @property
    def start(self) -> Configuration[Thread]:
        """The initial configuration."""

    def _move(self, state: int, byte: int) -> int | Moves: ...

    def _make(
        self, record: Record, sequence: tuple[int, ...], count: int, frame: Stack, found: dict[Thread, None]
    ) -> None: ...

    def _token_edges(self, threads: tuple[Thread, ...]) -> list[tuple[Thread, int, Moves]]: ...


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

    def __init__(self, machine: StackAutomaton) -> None:
        from ... import kernels

        tables, vocabulary = machine.tables, machine.vocabulary
        if (tables.loops[:, 0] < 0).any() or (tables.records[:, 0] == MARK).any():
            raise UnsupportedError(
                "max_tokens is not supported for objects whose members come in any order",
                remedy="Leave property_order at its default, or max_tokens out.",
            )
        self._machine = machine
        self._far = kernels.FAR
        self._trie = vocabulary.trie
        self._children = LazyTable(children_of(self._trie))
        self._ends = np.diff(self._trie.first_token).astype(np.bool_).tobytes()
        self._words = vocabulary.words
        self._working = 0  # how many threads of the process rely on what is remembered
        self._end = int(bool(vocabulary.eos_ids))
        bounds = tables.tokens.bounds if tables.tokens is not None else {}
        self._stands_for = {state: exhausted for state, (_, exhausted) in bounds.items()}
        self._returns = tables.returns.tobytes()
        arena = tables.arena()
        table, classes = _table(arena)
        self._bytes = preferred(vocabulary.single_bytes, classes, self._trie)
        counts = np.append(tables.loops[:, 1], 0)[tables.live].astype(np.int64) + 1
        self._offsets = np.concatenate([[0], np.cumsum(counts)])
        self._costs = self._find_costs(arena, table[:, classes[self._bytes]])
        read = bytes_in(tables.edge_low, tables.edge_high)
        if (self._costs >= self._far).any() and not vocabulary.single_bytes[read].all():
            raise UnsupportedError(
                "max_tokens is not supported for a vocabulary without a token for each single byte",
                remedy="Use a vocabulary with all single bytes, or leave max_tokens out.",
            )
        self._next: Memo[tuple[int, int], tuple[int, Record, tuple[int, ...]]] = Memo(MEMO_ENTRIES)
        self._after: dict[Thread, tuple[int, tuple[Thread | None, ...]]] = {}
        self._tokens: dict[Thread | None, int] = {None: self._end}
        self._sums: dict[Stack, int] = {None: 0}
        self._known: Memo[Configuration[Thread], int] = Memo(MEMO_ENTRIES)
        self._successors: Memo[Configuration[Thread], _Successors] = Memo(_MOST_CONFIGS)
        self._farthest: Memo[Configuration[Thread], int] = Memo(MEMO_ENTRIES)
        self._potential = self._find_potential(arena)
        if self.distance(machine.start) == NEVER - 1:
            raise _too_long("a text of more than a million bytes")

    def _find_costs(self, arena: NDArray[np.int32], table: NDArray[np.int32]) -> NDArray[np.int64]:
        """By offset the fewest bytes up to the pop of a state; see `kernels.cheapest_pops`."""
        from ... import kernels

        if self._offsets[-1] > _MOST_OFFSETS:
            raise _too_long(f"{self._offsets[-1]:,} states with counts")
        entries = [np.unique(row[row != DEAD]) for row in table]
        for state in self._stands_for:
            entries[state] = entries[state][:0]
        begins = np.concatenate([[0], np.cumsum([len(each) for each in entries])]).astype(np.int64)
        costs = np.full(int(self._offsets[-1]), self._far, np.int64)
        counts = np.diff(self._offsets)
        returns = np.frombuffer(self._returns, np.uint8).copy()
        returns[list(self._stands_for)] = 0
        costs[np.repeat(returns, counts) > 0] = 0
        whole = np.concatenate(entries).astype(np.int32)
        for _ in range(_MOST_SWEEPS):
            if not kernels.cheapest_pops(arena, begins, whole, self._offsets, costs, _MOST_SWEEPS):
                break
            if not self._takes_less(costs):
                return costs
        raise _too_long("too many turns")

    def _takes_less(self, costs: NDArray[np.int64]) -> bool:
        """Lower costs to those of token edges, and whether there were any that are lower."""
        if self._machine.tables.tokens is None:
            return False
        before, begins = costs.copy(), self._offsets.tolist()
        for state, record, sequence in self._moves_by_tokens():
            if state not in self._stands_for:
                own = costs[begins[state] : begins[state + 1]]
                np.minimum(own, 1 + self._costs_behind(costs, state, record, sequence), out=own)
        for state, exhausted in self._stands_for.items():
            costs[begins[state] : begins[state + 1]] = costs[begins[exhausted]]
        return bool((costs < before).any())

    def _costs_behind(
        self, costs: NDArray[np.int64], state: int, record: Record, sequence: tuple[int, ...]
    ) -> NDArray[np.int64]:
        """What is left behind a move of a state, by its count."""
        counts = np.arange(self._offsets[state + 1] - self._offsets[state])
        if record is None:
            if not sequence:
                return np.zeros(len(counts), np.int64)
            firsts, sequence = np.full(len(counts), sequence[0]), sequence[1:]
        else:
            operation, loop, low, mid, high = record
            least, most = self._machine.tables.loops[loop].tolist()
            counts = np.ones_like(counts) if operation == SET else counts + 1
            zone = low if operation == SET else np.where(counts >= most, high, np.where(counts >= least, mid, low))
            firsts = np.broadcast_to(zone, counts.shape)
        # A state without a count has one place.
        places = np.minimum(self._offsets[firsts] + counts, self._offsets[firsts + 1] - 1)
        above = sum(int(costs[self._offsets[each]]) for each in sequence)
        return np.where(firsts < 0, self._far, costs[places] + above)

    def _moves_by_tokens(self) -> Iterator[tuple[int, Record, tuple[int, ...]]]:
        """The moves of token edges, each with the state that it takes the place of."""
        tables = self._machine.tables
        if tables.tokens is not None and self._machine._token_moves is not None:
            for state in np.unique(tables.tokens.states).tolist():
                for _, moves in self._machine._token_moves.at(state):
                    yield from ((state, *move) for move in moves)

    def _find_potential(self, arena: NDArray[np.int32]) -> int:
        """The most that a token can add to `_sum`."""
        from ... import kernels

        lengths = np.diff(self._offsets)
        costs = np.where(self._costs >= self._far, 0, self._costs)
        if len(costs) <= _FEW_PLACES:
            of = np.repeat(np.arange(len(lengths)), lengths).tolist()
            for offset in np.flatnonzero((costs > 0) & (costs <= _MOST_BYTES)).tolist():
                state = of[offset]
                costs[offset] = self._of_frame(state, offset - int(self._offsets[state]))
            least = np.minimum.reduceat(np.where(self._costs >= self._far, self._far, costs), self._offsets[:-1])
        else:
            least = np.zeros(len(lengths), np.int64)
        most = np.maximum.reduceat(costs, self._offsets[:-1])
        below: set[int] = set()
        for group in self._machine.tables.all_moves():
            for record, sequence in group:
                below.update(sequence[:-1])
                if record is not None and sequence:
                    below.update(state for state in record[2:] if state >= 0)
        trie = self._trie
        gained = kernels.most_gained(
            trie.byte, trie.depth, trie.skip, trie.first_token, trie.max_depth, arena,
            np.array(sorted(below), np.int32), np.where(least >= self._far, 0, least), most, _MOST_STEPS,
        )  # fmt: skip
        by_tokens = [
            most[list(first + sequence)].sum() - least[state]
            for state, record, sequence in self._moves_by_tokens()
            for first in ([()] if record is None else [(zone,) for zone in zones_of(record)])
        ]
        return int(max([gained, *by_tokens]))

    # -- cheapest texts --------------------------------------------------------------------------------

    def _cost(self, state: int, count: int) -> int:
        begin, end = self._offsets[state], self._offsets[state + 1]
        return int(self._costs[min(begin + (count & LOOP_COUNT), end - 1)])

    def _decided(self, threads: Iterable[Thread]) -> tuple[Thread | None, ...]:
        """Threads without the states on top that may return; None where the text is complete."""
        found: dict[Thread | None, None] = {}
        todo = dict.fromkeys(threads)
        while todo:
            thread = next(iter(todo))
            del todo[thread]
            state, _, frame = thread
            if state in self._stands_for:
                state = self._stands_for[state]
                thread = state, 0, frame
            if state < 0 or (self._returns[state] and frame is None):
                found[None] = None
            elif self._returns[state]:
                todo.update(dict.fromkeys(self._machine.stacks.opened(frame)))
            else:
                found[thread] = None
        return tuple(found)

    def _follow(self, thread: Thread) -> tuple[int, tuple[Thread | None, ...]]:
        """The first byte of the cheapest texts of a decided thread, or `TOKEN`, and the decided threads behind it."""
        found = self._after.get(thread)
        if found is None:
            state, count, frame = thread
            move = self._next.get((state, count))
            if move is None:
                move = self._next[state, count] = self._choose(state, count)
            byte, record, sequence = move
            after: dict[Thread, None] = {}
            self._machine._make(record, sequence, count, frame, after)
            found = self._after[thread] = byte, self._decided(after)
        return found

    def _choose(self, state: int, count: int) -> tuple[int, Record, tuple[int, ...]]:
        """The byte that begins the cheapest text of a state, with its record and sequence: the first among equals."""
        wanted = self._cost(state, count)
        for byte in self._bytes:
            moves = self._machine._move(state, byte)
            if moves == DEAD:
                continue
            for record, sequence in [(None, (moves,))] if isinstance(moves, int) else moves:
                if self._takes(record, sequence, count, wanted):
                    return byte, record, sequence
        for _, _, edges in self._machine._token_edges(((state, count, None),)):
            for record, sequence in edges:
                if self._takes(record, sequence, count, wanted):
                    return TOKEN, record, sequence
        raise FormatError("the automaton's tables contradict themselves: a state leads to no complete text")

    def _takes(self, record: Record, sequence: tuple[int, ...], count: int, wanted: int) -> bool:
        """Whether a move of a state with a count is the first of so many bytes."""
        after: dict[Thread, None] = {}
        self._machine._make(record, sequence, count, None, after)
        for top, n, frame in after:
            cost = 1 + (0 if top < 0 else self._cost(top, n))
            while frame is not None:  # one stack, of what was pushed
                cost += self._cost(frame.state, frame.count)
                frame = frame.below
            if cost == wanted:
                return True
        return False

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
                tokens[thread] = self._far
                break
            todo += missing
        return tokens[thread]

    def _best(self, start: Thread) -> int:
        """`_split`, where that of all threads that follow is known: by the best first token."""
        tokens, children, ends = self._tokens, self._children, self._ends
        best = self._far
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
        return min(map(self._split, self._decided([(state, count, None)]))) - self._end

    def _sum(self, thread: Thread) -> int:
        """The tokens of a thread's cheapest text, split frame by frame; the most that one of its stacks takes."""
        sums = self._sums
        state, count, stack = thread
        todo = [stack]
        while todo:
            here = todo[-1]
            if here is None or here in sums:
                todo.pop()
                continue
            lower = list(here.members) if isinstance(here, Fork) else [here.below]
            missing = [each for each in lower if each not in sums]
            if not missing:
                own = 0 if isinstance(here, Fork) else self._of_frame(here.state, here.count)
                sums[here] = own + max(sums[each] for each in lower)
            todo += missing
        return sums[stack] + (self._of_frame(state, count) if state >= 0 else 0) + self._end

    # -- what guides ask for ---------------------------------------------------------------------------

    def distance(self, config: Configuration[Thread]) -> int:
        """So many tokens, the EOS token included, complete a text."""
        found = self._known.get(config)
        if found is None:
            with self._work():
                found = self._known[config] = self.of_threads(config.threads)
        return found

    def of_threads(self, threads: tuple[Thread, ...]) -> int:
        """The distance of the nearest of some threads; `NEVER` less one for texts of more than a million bytes."""
        return min(NEVER - 1, *map(self._split, self._decided(threads)))

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

    def near(self, config: Configuration[Thread], left: int) -> int:
        """A number of tokens left above which every token leaves enough of them to complete the text."""
        with self._work():
            least = max(map(self._sum, config.threads))
        return left - max(0, (left - least) // (self._potential + 1))

    def farthest(self, config: Configuration[Thread]) -> int:
        """The largest distance that a single token leads to."""
        found = self._farthest.get(config)
        if found is None:
            with self._work():
                found = self._farthest[config] = int(self._behind_tokens(config)[1].max(initial=0))
        return found

    def row(self, config: Configuration[Thread], most: int) -> NDArray[np.int32]:
        """The tokens that lead to a distance of at most ``most``, without EOS ids; read-only ``int32[words]``."""
        with self._work():
            tokens, far = self._behind_tokens(config)
        return row_of(tokens[far <= most], self._words)

    def _behind_tokens(self, config: Configuration[Thread]) -> _Successors:
        """The tokens that are allowed, without EOS ids, and the distance behind each: ``int32[allowed]``."""
        found = self._successors.get(config)
        if found is None:
            tokens, far = [], []
            for ids, which, sets, cells in self._machine.rows.reached(*laid_out(config.threads)):
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
            self._successors[config] = found
        return found

    def _behind_token_edges(self, threads: tuple[Thread, ...]) -> Iterator[tuple[NDArray[np.int32], int]]:
        """The tokens of each token edge, ``int32[*]``, and the distance behind them."""
        token_moves = self._machine._token_moves
        if token_moves is None:
            return
        for (_, _, frame), tokens, moves in self._machine._token_edges(threads):
            after: dict[Thread, None] = {}
            for record, sequence in moves:
                self._machine._make(record, sequence, 0, frame, after)
            yield token_moves.ids(tokens).astype(np.int32), self.of_threads(tuple(after))


def _nearest(tokens: NDArray[np.int32], far: NDArray[np.int32]) -> _Successors:
    """Each token once, with its least distance."""
    order = np.lexsort((far, tokens))
    found, first = np.unique(tokens[order], return_index=True)
    return found, far[order][first]


def children_of(trie: Trie) -> Callable[[int], dict[int, int]]:
    """By node its children by byte."""
    skip, byte = trie.skip, trie.byte

    def of(node: int) -> dict[int, int]:
        found, child, end = {}, node + 1, int(skip[node])
        while child < end:
            found[int(byte[child])] = child
            child = int(skip[child])
        return found

    return of


def _table(arena: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The transitions, ``int32[states, classes]``, and the class of each byte, of an arena without any row."""
    from ... import kernels

    states, width = int(arena[kernels.A_STATES]), int(arena[kernels.A_CLASSES])
    begin, classes = int(arena[kernels.A_FREE]), int(arena[kernels.A_CLASS_OF])
    weightless = np.zeros(width)
    for state in range(states):
        kernels.widest_entry(arena, state, weightless)
    return arena[begin : begin + states * width].reshape(states, width), arena[classes : classes + 256]


def preferred(single: NDArray[np.bool_], classes: NDArray[np.int32], trie: Trie) -> list[int]:
    """A byte of each class that is a token: the one of which most are a token together (blanks, as a rule)."""
    chosen: dict[int, int] = {}
    for byte in sorted(np.flatnonzero(single).tolist(), key=lambda byte: -trie.runs[byte]):
        chosen.setdefault(int(classes[byte]), byte)
    return list(chosen.values())


def _too_long(what: str) -> BudgetExceededError:
    return BudgetExceededError(
        f"the distances that max_tokens needs take too long: {what}",
        remedy="Use smaller bounds in the definition, or leave max_tokens out.",
    )


def row_of(tokens: NDArray[np.int32], words: int) -> NDArray[np.int32]:
    """Tokens as a row: read-only ``int32[words]``."""
    from ... import kernels

    row = np.zeros(words, np.uint32)
    kernels.flip_ids(row, tokens)
    found = row.view(np.int32)
    found.flags.writeable = False
    return found
