"""An automaton as columns of edges, and as lists for code that looks at single ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...system.properties import cached_property
from .dfa import Dfa, to_tables
from .nfa import BYTES, Nfa

#: What a move takes.
_BYTES_OF_MOVE = 100


@dataclass(frozen=True, eq=False)
class EdgeLists:
    """An automaton over bytes and calls of rules. Edges of one state are in order and may overlap.

    Parameters
    ----------
    columns:
        ``int32[4, edges]``: state, lowest and highest byte, target; a target ``-2 - r`` is record ``r``.
    calls:
        By state: ``(rule, target)``.
    accepting, live:
        By state: whether the rule may end; the loop whose count it depends on, or -1.
    records, loops:
        As in `Dfa`.
    start:
        The initial state.
    bounds:
        By state that a bound on tokens is for: how many may end there, and the state that takes its place then.
    """

    columns: NDArray[np.int32]
    calls: Sequence[tuple[tuple[int, int], ...]]
    accepting: Sequence[bool]
    live: Sequence[int]
    records: Sequence[tuple[int, int, int, int, int]]
    loops: Sequence[tuple[int, int]]
    start: int
    bounds: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.accepting)

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """``int64[states + 1]``: where the edges of each state begin."""
        return np.searchsorted(self.columns[0], np.arange(self.states + 1))

    @cached_property
    def edges(self) -> list[tuple[tuple[int, int, int], ...]]:
        """By state: ``(lowest byte, highest byte, target)``."""
        edges = [*zip(*self.columns[1:].tolist(), strict=True)]
        return [tuple(edges[begin:end]) for begin, end in pairwise(self.begins.tolist())]

    @cached_property
    def dense(self) -> NDArray[np.int32]:
        """``int32[states, 256]``: the target of each byte, -1 where there is none; where no edges overlap."""
        table = np.full((self.states, BYTES), -1, np.int32)
        for state, low, high, target in self.columns.T.tolist():
            table[state, low : high + 1] = target
        return table

    def row(self, state: int) -> tuple[tuple[int, int, int], ...]:
        """The edges of one state, where those of the others are not asked for."""
        begin, end = self.begins[state : state + 2]
        return tuple(zip(*self.columns[1:, begin:end].tolist(), strict=True))

    def is_end(self, state: int) -> bool:
        """Whether nothing but the end can follow."""
        return self.accepting[state] and not self.edges[state] and not self.calls[state]

    def targets(self, target: int) -> tuple[int, ...]:
        """The states that an edge's target stands for: itself, or those of a record."""
        if target >= 0:
            return (target,)
        return tuple(state for state in self.records[-2 - target][2:] if state >= 0)


def in_columns(edges: Sequence[Iterable[tuple[int, int, int]]]) -> NDArray[np.int32]:
    """The columns of edges by state."""
    found = [(state, *edge) for state, here in enumerate(edges) for edge in here]
    columns: NDArray[np.int32] = np.array(found, np.int32).reshape(-1, 4).T
    return columns


def of_dfa(dfa: Dfa, meter: Meter, rules: Sequence[int] = ()) -> EdgeLists:
    """The lists of an automaton whose symbol ``256 + k`` is a call of ``rules[k]``."""
    calls: list[tuple[tuple[int, int], ...]] = [()] * dfa.states
    state, low, high, target = columns = np.stack(dfa.edges(meter)).astype(np.int32)
    called = columns[:, high >= BYTES].T.tolist()
    for tail, first, last, head in meter.each(called, "listing edges", every=4096):
        calls[tail] += tuple((rules[symbol - BYTES], head) for symbol in range(max(first, BYTES), last + 1))
    counts = len(dfa.records) > 0
    return EdgeLists(
        # A range may hold bytes and calls alike, where all of them lead to one state.
        columns=np.stack([state, low, np.minimum(high, BYTES - 1), target])[:, low < BYTES],
        calls=tuple(calls),  # automata are kept, and the garbage collector looks at lists
        accepting=tuple(map(bool, dfa.accepting.tolist())),
        live=tuple(to_tables(dfa).live.tolist()) if counts else (-1,) * dfa.states,
        records=tuple(map(tuple, dfa.records.tolist())) if counts else (),
        loops=tuple(map(tuple, dfa.loops.tolist())) if counts else (),
        start=dfa.start,
    )


def of_nfa(nfa: Nfa, rules: Sequence[int], meter: Meter, doing: str) -> EdgeLists:
    """The same of one that is not deterministic and counts nothing: each state with what its empty moves lead to.

    Raises `BudgetExceededError`.
    """
    last = np.flatnonzero(np.append(np.diff(nfa.classes), 1))
    first = np.append(0, last[:-1] + 1)
    begin, low, high, to = nfa.t_start.tolist(), first[nfa.t_lo].tolist(), last[nfa.t_hi].tolist(), nfa.t_to.tolist()
    e_begin, e_to = nfa.e_start.tolist(), nfa.e_to.tolist()
    number = {nfa.start: 0}
    edges: list[tuple[tuple[int, int, int], ...]] = []
    calls: list[tuple[tuple[int, int], ...]] = []
    accepting: list[bool] = []
    found = 0
    for state in (queue := [nfa.start]):
        closure = {state}
        for here in (todo := [state]):
            fresh = [there for there in e_to[e_begin[here] : e_begin[here + 1]] if there not in closure]
            closure.update(fresh)
            todo += fresh
        moves: set[tuple[int, int, int]] = set()
        for here in closure:
            for edge in range(begin[here], begin[here + 1]):
                if to[edge] not in number:
                    number[to[edge]] = len(number)
                    queue.append(to[edge])
                moves.add((low[edge], high[edge], number[to[edge]]))
        found += len(moves)
        meter.check_memory(found * _BYTES_OF_MOVE, doing)
        meter.check_time(doing)
        edges.append(tuple(sorted(move for move in moves if move[0] < BYTES)))
        called = [(rules[symbol - BYTES], target) for symbol, _, target in sorted(moves) if symbol >= BYTES]
        calls.append(tuple(called))
        accepting.append(nfa.accept in closure)
    return EdgeLists(in_columns(edges), calls, accepting, [-1] * len(edges), [], [], 0)
