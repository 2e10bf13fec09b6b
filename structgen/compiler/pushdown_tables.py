"""The converter from a pushdown program to the tables that are stored and run."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ..runtime.container import smallest
from ..runtime.pushdown_tables import PushdownTables
from .pushdown import REFUSED, Counted, Edge, Program

#: A move: the record's number plus one (0: none), and its sequence.
_Move: TypeAlias = tuple[int, tuple[int, ...]]

#: A range of bytes and its target.
_Flat: TypeAlias = tuple[int, int, int]


def to_tables(program: Program) -> PushdownTables:
    """Make ranges disjoint, number records and groups of moves, and flatten.

    States that cannot be reached from the start are left out; the others are numbered breadth first.
    """
    states = _reachable(program)
    number = [-1] * len(program.edges)
    for i, state in enumerate(states):
        number[state] = i
    flat = _Flattener(number, len(states))
    for state in states:
        flat.add(program.edges[state], program.like[state] >= 0)
    low, high, target = zip(*flat.edges, strict=True) if flat.edges else ((), (), ())
    return PushdownTables(
        edge_start=smallest(np.array(flat.edge_start)),
        edge_low=np.array(low, np.uint8),
        edge_high=np.array(high, np.uint8),
        edge_target=smallest(np.array(target, np.int64)),
        like=smallest(np.array([0 if (t := program.like[s]) < 0 else 1 + number[t] for s in states])),
        group_start=smallest(np.array(flat.group_start)),
        move_record=smallest(np.array([m[0] for m in flat.moves], np.int64)),
        move_start=smallest(np.cumsum([0] + [len(m[1]) for m in flat.moves])),
        sequence=smallest(np.array([s for m in flat.moves for s in m[1]], np.int64)),
        returns=np.array([program.returns[s] for s in states], np.uint8),
        records=np.array(list(flat.records), np.int32).reshape(-1, 5),
        loops=np.array(program.loops, np.int32).reshape(-1, 2),
        live=np.array([program.live[s] for s in states], np.int32),
        start=number[program.start],
    )


class _Flattener:
    """Collects states' edges into flat lists. Edges are often shared between states: each is looked at once."""

    def __init__(self, number: list[int], states: int) -> None:
        self._number = number
        self._n = states
        self.edge_start = [0]
        self.edges: list[_Flat] = []
        self.group_start = [0]
        self.moves: list[_Move] = []
        self.records: dict[tuple[int, ...], int] = {}
        self._groups: dict[tuple[_Move, ...], int] = {}
        self._known: dict[int, _Flat] = {}  # by id of the edge

    def add(self, edges: list[Edge], alike: bool) -> None:
        """The next state's edges; refused bytes are kept where the state is like another one."""
        known = self._known
        found = []
        for edge in edges:
            flat = known.get(id(edge))
            if flat is None:
                flat = known[id(edge)] = edge.low, edge.high, self._target((self._move(edge),))
            found.append(flat)
        found.sort()
        end = -1
        for low, high, _ in found:
            if low <= end:
                found = self._disjoint(edges)
                break
            end = high
        if not alike:
            found = [flat for flat in found if flat[2]]
        self.edges += found
        self.edge_start.append(len(self.edges))

    def _disjoint(self, edges: list[Edge]) -> list[_Flat]:
        """Ascending ranges without overlap, each with all the moves that a byte in it can make."""
        moves = [(edge.low, edge.high, self._move(edge)) for edge in edges]
        cuts = sorted({low for low, _, _ in moves} | {high + 1 for _, high, _ in moves})
        found: list[_Flat] = []
        for low, after in pairwise(cuts):
            here = tuple(dict.fromkeys(m for a, b, m in moves if a <= low <= b))
            if not here:
                continue
            target = self._target(here)
            if found and found[-1][1] + 1 == low and found[-1][2] == target:
                found[-1] = found[-1][0], after - 1, target
            else:
                found.append((low, after - 1, target))
        return found

    def _move(self, edge: Edge) -> _Move:
        if edge.sequence == REFUSED:
            return 0, REFUSED
        record = 0 if edge.counted is None else 1 + self._record(edge.counted)
        return record, tuple([self._number[s] for s in edge.sequence])

    def _record(self, counted: Counted) -> int:
        targets = (s if s < 0 else self._number[s] for s in (counted.low, counted.mid, counted.high))
        key = (counted.operation, counted.loop, *targets)
        return self.records.setdefault(key, len(self.records))

    def _target(self, moves: tuple[_Move, ...]) -> int:
        if len(moves) == 1 and moves[0][0] == 0 and len(moves[0][1]) == 1:
            return 1 + moves[0][1][0]  # a state; or, of `REFUSED`, nothing
        group = self._groups.get(moves)
        if group is None:
            group = self._groups[moves] = len(self._groups)
            self.moves += moves
            self.group_start.append(len(self.moves))
        return 1 + self._n + group


def _reachable(program: Program) -> list[int]:
    """The states that the start leads to, in breadth-first order."""
    seen = bytearray(len(program.edges))
    seen[program.start] = 1
    looked_at: set[int] = set()  # edges, by id
    for state in (queue := [program.start]):
        like = program.like[state]
        if like >= 0 and not seen[like]:
            seen[like] = 1
            queue.append(like)
        for edge in program.edges[state]:
            if id(edge) in looked_at:
                continue
            looked_at.add(id(edge))
            for target in edge.sequence if edge.counted is None else edge.successors():
                if target >= 0 and not seen[target]:
                    seen[target] = 1
                    queue.append(target)
    return queue
