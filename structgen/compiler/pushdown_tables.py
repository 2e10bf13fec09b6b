"""The converter from a pushdown program to the tables that are stored and run."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ..runtime.container import smallest
from ..runtime.pushdown_tables import PushdownTables
from .pushdown import REFUSED, Counted, Edge, Program, State

#: A move: the record's number plus one (0: none), and its sequence.
_Move: TypeAlias = tuple[int, tuple[int, ...]]

#: A range of bytes and its target as one integer, since integers are sorted and stored fastest:
#: ``low << _LOW | high << _HIGH | target``. A target is 0, or 1 plus a state, or `_GROUP` plus a group.
_Flat: TypeAlias = int

_LOW, _HIGH = 48, 40
_GROUP = 1 << 32
_TARGET = (1 << _HIGH) - 1


def to_tables(program: Program) -> PushdownTables:
    """Make ranges disjoint, number records and groups of moves, and flatten.

    States that cannot be reached from the start are left out; the others are numbered breadth first.
    """
    flat = _Flattener(program)
    flat.run()
    states = np.array(flat.states)
    edges = np.array(flat.edges, np.int64)
    target = edges & _TARGET
    like = np.array(program.like)[states]
    return PushdownTables(
        edge_start=smallest(np.array(flat.edge_start)),
        edge_low=(edges >> _LOW).astype(np.uint8),
        edge_high=(edges >> _HIGH & 0xFF).astype(np.uint8),
        edge_target=smallest(np.where(target < _GROUP, target, target - _GROUP + 1 + len(states))),
        like=smallest(np.where(like < 0, 0, 1 + np.array(flat.number)[like])),
        group_start=smallest(np.array(flat.group_start)),
        move_record=smallest(np.array([m[0] for m in flat.moves], np.int64)),
        move_start=smallest(np.cumsum([0] + [len(m[1]) for m in flat.moves])),
        sequence=smallest(np.array([s for m in flat.moves for s in m[1]], np.int64)),
        returns=np.array(program.returns, np.uint8)[states],
        records=np.array(list(flat.records), np.int32).reshape(-1, 5),
        loops=np.array(program.loops, np.int32).reshape(-1, 2),
        live=np.array(program.live, np.int32)[states],
        start=0,
    )


class _Flattener:
    """Numbers the states as it comes to them, and collects their edges into flat lists.

    Edges are often shared between states: each is looked at once.

    ``states`` are the program's, in the order of their numbers; ``number`` is the inverse, -1 where a state has none.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self.states = [program.start]
        self.number = [-1] * len(program.edges)
        self.number[program.start] = 0
        self.edge_start = [0]
        self.edges: list[_Flat] = []
        self.group_start = [0]
        self.moves: list[_Move] = []
        self.records: dict[tuple[int, ...], int] = {}
        self._groups: dict[tuple[_Move, ...], int] = {}
        self._known: dict[int, _Flat] = {}  # by id of the edge

    def run(self) -> None:
        """Flatten all states that the start leads to."""
        program, known, edges = self._program, self._known, self.edges
        states, number = self.states, self.number
        for state in states:  # grows while it is read
            like = program.like[state]
            if like >= 0:
                self._numbered(like)
            own = program.edges[state]
            found = []
            for edge in own:
                flat = known.get(id(edge))
                if flat is None:
                    low, high, sequence, counted = edge
                    if len(sequence) == 1 and counted is None and (head := sequence[0]) >= 0:
                        target = number[head]  # as `_target` does it; nearly all edges are like this
                        if target < 0:
                            target = number[head] = len(states)
                            states.append(head)
                        flat = low << _LOW | high << _HIGH | target + 1
                    else:
                        flat = low << _LOW | high << _HIGH | self._target(edge)
                    known[id(edge)] = flat
                found.append(flat)
            is_plain = len(found) == 1 and found[0] & _TARGET
            edges += found if is_plain else self._in_order(found, own, like >= 0)
            self.edge_start.append(len(edges))

    def _numbered(self, state: State) -> int:
        """The number of a state, the next one if it is new."""
        number = self.number[state]
        if number < 0:
            number = self.number[state] = len(self.states)
            self.states.append(state)
        return number

    def _in_order(self, found: list[_Flat], own: list[Edge], alike: bool) -> list[_Flat]:
        """A state's edges, ascending and disjoint; refused bytes are kept where the state is like another one."""
        found.sort()
        end, refused = -1, False
        for flat in found:
            if flat >> _LOW <= end:
                found = self._disjoint(own)
                refused = True
                break
            end = flat >> _HIGH & 0xFF
            refused = refused or not flat & _TARGET
        return [flat for flat in found if flat & _TARGET] if refused and not alike else found

    def _disjoint(self, edges: list[Edge]) -> list[_Flat]:
        """Ascending ranges without overlap, each with all the moves that a byte in it can make."""
        moves = [(edge.low, edge.high, self._move(edge)) for edge in edges]
        cuts = sorted({low for low, _, _ in moves} | {high + 1 for _, high, _ in moves})
        found: list[_Flat] = []
        for low, after in pairwise(cuts):
            here = tuple(dict.fromkeys(m for a, b, m in moves if a <= low <= b))
            if not here:
                continue
            target = self._target_of(here)
            if found and (found[-1] >> _HIGH & 0xFF) + 1 == low and found[-1] & _TARGET == target:
                low = found.pop() >> _LOW
            found.append(low << _LOW | after - 1 << _HIGH | target)
        return found

    def _target(self, edge: Edge) -> int:
        """Where an edge leads if no other one overlaps it."""
        sequence = edge.sequence
        if len(sequence) == 1 and edge.counted is None:
            return 0 if sequence == REFUSED else 1 + self._numbered(sequence[0])
        return self._target_of((self._move(edge),))

    def _move(self, edge: Edge) -> _Move:
        if edge.sequence == REFUSED:
            return 0, REFUSED
        record = 0 if edge.counted is None else 1 + self._record(edge.counted)
        return record, tuple([self._numbered(s) for s in edge.sequence])

    def _record(self, counted: Counted) -> int:
        targets = (s if s < 0 else self._numbered(s) for s in (counted.low, counted.mid, counted.high))
        key = (counted.operation, counted.loop, *targets)
        return self.records.setdefault(key, len(self.records))

    def _target_of(self, moves: tuple[_Move, ...]) -> int:
        if len(moves) == 1 and moves[0][0] == 0 and len(moves[0][1]) == 1:
            return 1 + moves[0][1][0]  # a state; or, of `REFUSED`, nothing
        group = self._groups.get(moves)
        if group is None:
            group = self._groups[moves] = len(self._groups)
            self.moves += moves
            self.group_start.append(len(self.moves))
        return _GROUP + group
