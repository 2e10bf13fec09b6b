"""An automaton as lists, for code that looks at single edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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

    Many are remembered: tuples of numbers alone are nothing that the collector of garbage looks at.

    Parameters
    ----------
    edges:
        By state: ``(lowest byte, highest byte, target)``; a target ``-2 - r`` is record ``r``.
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

    edges: list[tuple[tuple[int, int, int], ...]]
    calls: list[tuple[tuple[int, int], ...]]
    accepting: list[bool]
    live: list[int]
    records: list[tuple[int, int, int, int, int]]
    loops: list[tuple[int, int]]
    start: int
    bounds: dict[int, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def dense(self) -> NDArray[np.int32]:
        """``int32[states, 256]``: the target of each byte, -1 where there is none; where no edges overlap."""
        table = np.full((len(self.edges), BYTES), -1, np.int32)
        for row, edges in zip(table, self.edges, strict=True):
            for low, high, target in edges:
                row[low : high + 1] = target
        return table

    @cached_property
    def columns(self) -> EdgeColumns:
        """The same as columns, without the calls."""
        edges = [(state, *edge) for state, found in enumerate(self.edges) for edge in found]
        return EdgeColumns(
            np.array(edges, np.int32).reshape(-1, 4).T,
            np.array(self.accepting, np.bool_), self.live, self.records, self.loops, self.start,
        )  # fmt: skip

    def is_end(self, state: int) -> bool:
        """Whether nothing but the end can follow."""
        return self.accepting[state] and not self.edges[state] and not self.calls[state]

    def targets(self, target: int) -> tuple[int, ...]:
        """The states that an edge's target stands for: itself, or those of a record."""
        if target >= 0:
            return (target,)
        return tuple(state for state in self.records[-2 - target][2:] if state >= 0)


@dataclass(frozen=True, eq=False)
class EdgeColumns:
    """An automaton over bytes as columns, for code that takes all edges at once; ``lists`` has the same as lists.

    Parameters
    ----------
    edges:
        ``int32[4, edges]``: state, lowest and highest byte, target as in `EdgeLists`; in order.
    accepting:
        ``bool[states]``.
    live, records, loops, start:
        As in `EdgeLists`.
    """

    edges: NDArray[np.int32]
    accepting: NDArray[np.bool_]
    live: list[int]
    records: list[tuple[int, int, int, int, int]]
    loops: list[tuple[int, int]]
    start: int

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.accepting)

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """``int64[states + 1]``: where the edges of each state begin."""
        return np.searchsorted(self.edges[0], np.arange(self.states + 1))

    @cached_property
    def lists(self) -> EdgeLists:
        """The same as lists."""
        columns = self.edges[1:].tolist()
        each, begins = [*zip(*columns, strict=True)], self.begins.tolist()
        edges = [tuple(each[begin:end]) for begin, end in pairwise(begins)]
        accepting, calls = self.accepting.tolist(), [()] * self.states
        return EdgeLists(edges, [*calls], accepting, self.live, self.records, self.loops, self.start)

    def row(self, state: int) -> tuple[tuple[int, int, int], ...]:
        """The edges of one state."""
        begin, end = self.begins[state : state + 2]
        return tuple(zip(*self.edges[1:, begin:end].tolist(), strict=True))


def columns_of(dfa: Dfa, meter: Meter) -> EdgeColumns:
    """The columns of an automaton over bytes."""
    counts = len(dfa.records) > 0
    return EdgeColumns(
        edges=np.stack(dfa.edges(meter)).astype(np.int32),
        accepting=dfa.accepting.astype(np.bool_),
        live=to_tables(dfa).live.tolist() if counts else [-1] * dfa.states,
        records=[tuple(record) for record in dfa.records.tolist()] if counts else [],
        loops=[tuple(loop) for loop in dfa.loops.tolist()] if counts else [],
        start=dfa.start,
    )


def of_dfa(dfa: Dfa, meter: Meter, rules: Sequence[int] = ()) -> EdgeLists:
    """The lists of an automaton whose symbol ``256 + k`` is a call of ``rules[k]``."""
    columns = columns_of(dfa, meter)
    if not rules:
        return columns.lists
    # A range may hold bytes and calls alike, where all of them lead to one state.
    state, low, high, target = columns.edges
    inside = np.stack([state, low, np.minimum(high, BYTES - 1), target])[:, low < BYTES]
    found, called = replace(columns, edges=inside).lists, columns.edges[:, high >= BYTES]
    calls: list[list[tuple[int, int]]] = [[] for _ in found.calls]
    for tail, first, last, head in meter.each(zip(*called.tolist(), strict=True), "listing edges", every=4096):
        calls[tail].extend((rules[symbol - BYTES], head) for symbol in range(max(first, BYTES), last + 1))
    return replace(found, calls=[*map(tuple, calls)])


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
    return EdgeLists(edges, calls, accepting, [-1] * len(edges), [], [], 0)
