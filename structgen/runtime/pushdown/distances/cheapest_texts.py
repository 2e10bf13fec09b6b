"""The cheapest text of each state of an automaton with a stack: what takes it off the stack in the fewest bytes.

Which byte comes next is a function of the state and its count alone, so what follows a beginning of a cheapest text
is the cheapest text of where it leads.

A token edge costs one token, and one byte. Where tokens are counted, the cheapest text of a state is that of the
exhausted one: it can be taken whatever the count is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....errors import BudgetExceededError, FormatError, UnsupportedError
from ....system.memo import Memo
from ...automaton.distances import MEMO_ENTRIES
from ...automaton.tables import DEAD, MARK, SET
from ..stacks import LOOP_COUNT, Fork, Stack, Stacks, Thread
from ..tables import Moves, PushdownTables, Record
from ..token_edges import TokenMoves

#: Pairs of a state and a count, sweeps over all pairs, and pairs in all sweeps: some seconds.
_MOST_OFFSETS, _MOST_SWEEPS, _MOST_VISITS = 1 << 23, 1 << 10, 1 << 27

#: Bytes of a text.
_MOST_BYTES = 1 << 16

#: In place of a byte: a token edge is taken.
TOKEN = -1


class StackAutomaton(Protocol):
    """What cheapest texts need of a `structgen.runtime.pushdown.machine.PushdownMachine`."""

    tables: PushdownTables
    stacks: Stacks
    _token_moves: TokenMoves | None

    def _move(self, state: int, byte: int) -> int | Moves: ...

    def make(
        self, record: Record, sequence: tuple[int, ...], count: int, frame: Stack, found: dict[Thread, None]
    ) -> None:
        """Make one move of one thread."""

    def _token_edges(self, threads: tuple[Thread, ...]) -> list[tuple[Thread, int, Moves]]: ...


class CheapestTexts:
    """The cheapest texts of one automaton, all of whose states were lowered.

    Parameters
    ----------
    machine:
        The automaton.
    arena:
        The same for kernels; see `structgen.runtime.pushdown.tables.PushdownTables.arena`.
    order:
        The bytes that may be used; of those that do as well as each other the first is taken.

    Raises
    ------
    UnsupportedError
        Where it has registers.
    BudgetExceededError
        Where there are too many counts.
    """

    def __init__(self, machine: StackAutomaton, arena: NDArray[np.int32], order: Iterable[int]) -> None:
        tables = machine.tables
        if (tables.loops[:, 0] < 0).any() or (tables.records[:, 0] == MARK).any():
            raise UnsupportedError(
                "max_tokens is not supported for objects whose members come in any order",
                remedy="Leave property_order at its default, or max_tokens out.",
            )
        self._machine = machine
        #: What a text costs that there is none of.
        self.far = kernels.FAR
        bounds = tables.tokens.bounds if tables.tokens is not None else {}
        self._stands_for = {state: exhausted for state, (_, exhausted) in bounds.items()}
        self._returns = tables.returns.tobytes()
        table, classes = tables.dense()
        #: The bytes that are used, one of each class.
        self.bytes = by_class(order, classes)
        counts = np.append(tables.loops[:, 1], 0)[tables.live].astype(np.int64) + 1
        #: Where the costs of each state begin, ``int64[states + 1]``; one for each count.
        self.offsets = np.concatenate([[0], np.cumsum(counts)])
        #: The bytes of each cheapest text, `far` where there is none.
        self.costs = self._find_costs(arena, table[:, classes[self.bytes]])
        self._next: Memo[tuple[int, int], tuple[int, Record, tuple[int, ...]]] = Memo(MEMO_ENTRIES)

    def _find_costs(self, arena: NDArray[np.int32], table: NDArray[np.int32]) -> NDArray[np.int64]:
        """By offset the fewest bytes up to the pop of a state; see `kernels.cheapest_pops`."""
        if self.offsets[-1] > _MOST_OFFSETS:
            raise too_long(f"{self.offsets[-1]:,} states with counts")
        table[list(self._stands_for)] = DEAD
        table.sort(axis=1)
        is_entry = table != DEAD
        is_entry[:, 1:] &= table[:, 1:] != table[:, :-1]  # each once
        begins = np.concatenate([[0], np.cumsum(is_entry.sum(axis=1))]).astype(np.int64)
        costs = np.full(int(self.offsets[-1]), self.far, np.int64)
        returns = np.frombuffer(self._returns, np.uint8).copy()
        returns[list(self._stands_for)] = 0
        costs[np.repeat(returns, np.diff(self.offsets)) > 0] = 0
        entries = table[is_entry]
        most = min(_MOST_SWEEPS, _MOST_VISITS // len(costs))
        for _ in range(_MOST_SWEEPS):
            if not kernels.cheapest_pops(arena, begins, entries, self.offsets, costs, most):
                break
            if not self._takes_less(costs):
                return costs
        raise too_long("too many turns")

    def _takes_less(self, costs: NDArray[np.int64]) -> bool:
        """Lower costs to those of token edges, and whether there were any that are lower."""
        if self._machine.tables.tokens is None:
            return False
        before, begins = costs.copy(), self.offsets.tolist()
        for state, record, sequence in self.moves_by_tokens():
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
        counts = np.arange(self.offsets[state + 1] - self.offsets[state])
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
        places = np.minimum(self.offsets[firsts] + counts, self.offsets[firsts + 1] - 1)
        above = sum(int(costs[self.offsets[each]]) for each in sequence)
        return np.where(firsts < 0, self.far, costs[places] + above)

    def moves_by_tokens(self) -> Iterator[tuple[int, Record, tuple[int, ...]]]:
        """The moves of token edges, each with the state that it takes the place of."""
        tables = self._machine.tables
        if tables.tokens is not None and self._machine._token_moves is not None:
            for state in np.unique(tables.tokens.states).tolist():
                for _, moves in self._machine._token_moves.at(state):
                    yield from ((state, *move) for move in moves)

    # -- texts -----------------------------------------------------------------------------------------

    def cost(self, state: int, count: int) -> int:
        """The bytes of the cheapest text of a state with a count."""
        begin, end = self.offsets[state], self.offsets[state + 1]
        return int(self.costs[min(begin + (count & LOOP_COUNT), end - 1)])

    def decided(self, threads: Iterable[Thread]) -> tuple[Thread | None, ...]:
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

    def follow(self, thread: Thread) -> tuple[int, tuple[Thread | None, ...]]:
        """The first byte of the cheapest texts of a decided thread, or `TOKEN`, and the decided threads behind it."""
        state, count, frame = thread
        move = self._next.get((state, count))
        if move is None:
            move = self._next[state, count] = self._choose(state, count)
        byte, record, sequence = move
        after: dict[Thread, None] = {}
        self._machine.make(record, sequence, count, frame, after)
        return byte, self.decided(after)

    def _choose(self, state: int, count: int) -> tuple[int, Record, tuple[int, ...]]:
        """The byte that begins the cheapest text of a state, with its record and sequence: the first among equals."""
        wanted = self.cost(state, count)
        for byte in self.bytes:
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
        self._machine.make(record, sequence, count, None, after)
        for top, n, frame in after:
            cost = 1 + (0 if top < 0 else self.cost(top, n))
            while frame is not None:  # one stack, of what was pushed
                cost += self.cost(frame.state, frame.count)
                frame = frame.below
            if cost == wanted:
                return True
        return False

    def text(self, threads: tuple[Thread, ...]) -> bytes:
        """The fewest bytes that take all off the stack of some threads, of which no token is more than its bytes.

        Raises `BudgetExceededError` where they are too many.
        """
        found = bytearray()
        sums: dict[Stack, int] = {None: 0}

        def left(thread: Thread | None) -> int:
            if thread is None:
                return 0
            state, count, stack = thread
            return self.cost(state, count) + summed(stack, sums, self.cost, min)

        here = min(self.decided(threads), key=left)
        while here is not None:
            if left(here) > _MOST_BYTES:
                raise too_long("a text of more than 65,536 bytes")
            byte, after = self.follow(here)
            found.append(byte)
            here = min(after, key=left)
        return bytes(found)


def summed(
    stack: Stack,
    sums: dict[Stack, int],
    of_frame: Callable[[int, int], int],
    of_members: Callable[[Iterable[int]], int],
) -> int:
    """What the frames of a stack come to together, and what one of the members of a fork does.

    ``sums`` has what is known of stacks, and what is found out.
    """
    todo = [stack]
    while todo:
        here = todo[-1]
        if here is None or here in sums:
            todo.pop()
            continue
        lower = list(here.members) if isinstance(here, Fork) else [here.below]
        missing = [each for each in lower if each not in sums]
        if not missing:
            own = 0 if isinstance(here, Fork) else of_frame(here.state, here.count)
            sums[here] = own + of_members(sums[each] for each in lower)
        todo += missing
    return sums[stack]


def by_class(order: Iterable[int], classes: NDArray[np.integer]) -> list[int]:
    """The first byte of each class, in an order of bytes."""
    chosen: dict[int, int] = {}
    for byte in order:
        chosen.setdefault(int(classes[byte]), byte)
    return list(chosen.values())


def too_long(what: str) -> BudgetExceededError:
    """An error that says what would take too long."""
    return BudgetExceededError(
        f"the distances that max_tokens needs take too long: {what}",
        remedy="Use smaller bounds in the definition, or leave max_tokens out.",
    )
