"""The converter from a pushdown program to the tables that are stored and run."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ...budget import Budget, Meter
from ...runtime.automaton.tables import DEAD, MARK
from ...runtime.pushdown.tables import PushdownTables
from ...storage.container import smallest
from .program import REFUSED, Condition, CountedEdge, Edge, MarkedEdge, Program, State

#: A move: the record's number plus one (0: none), and its sequence.
_Move: TypeAlias = tuple[int, tuple[int, ...]]

#: A range of bytes and its target: 0, or 1 plus a state, or -1 minus a group.
_Flat: TypeAlias = tuple[int, int, int]


_DOING = "putting the program into tables"

#: What a move of a group takes, and a range of bytes with its target.
_BYTES_OF_MOVE, _BYTES_OF_RANGE = 40, 24

#: Edges of a state from which on the meter is looked at between them.
_MANY = 1024


def to_tables(program: Program, meter: Meter | None = None) -> PushdownTables:
    """Make ranges disjoint, number records and groups of moves, and flatten.

    States that cannot be reached from the start are left out; the others are numbered breadth first.

    Raises `BudgetExceededError`.
    """
    flat = _Flattener(program, meter or Meter(Budget()))
    flat.run()
    states = np.array(flat.states)
    target = np.array(flat.target, np.int64)
    like = np.array(program.like)[states]
    return PushdownTables(
        edge_start=smallest(np.array(flat.edge_start)),
        edge_low=np.array(flat.low, np.uint8),
        edge_high=np.array(flat.high, np.uint8),
        edge_target=smallest(np.where(target >= 0, target, len(states) - target)),
        like=smallest(np.where(like < 0, 0, 1 + np.array(flat.number)[like])),
        group_start=smallest(np.array(flat.group_start)),
        move_record=smallest(np.array(flat.move_record, np.int64)),
        move_start=smallest(np.array(flat.move_start, np.int64)),
        sequence=smallest(np.array(flat.sequence, np.int64)),
        returns=np.array(program.returns, np.uint8)[states],
        records=np.array(list(flat.records), np.int32).reshape(-1, 5),
        loops=np.array(program.loops, np.int32).reshape(-1, 2),
        tests=np.array([_words(test) for test in flat.tests], np.int32).reshape(-1, 4),
        live=np.array(program.live, np.int32)[states],
        start=0,
    )


def state_order(program: Program, meter: Meter) -> list[State]:
    """The program's states in the order of their numbers in its tables."""
    flat = _Flattener(program, meter)
    flat.run()
    return flat.states


def _words(test: Condition) -> tuple[int, int, int, int]:
    """The bounds of a test, and its mask in words of 31 bits."""
    return test.low, test.high, test.mask & 0x7FFFFFFF, test.mask >> 31


class _Flattener:
    """Numbers the states as it comes to them, and collects their edges into flat lists.

    Memory is what counts here, a program has many small objects: columns are lists of integers that exist anyway.

    ``states`` are the program's, in the order of their numbers; ``number`` is the inverse, -1 where a state has none.
    """

    def __init__(self, program: Program, meter: Meter) -> None:
        self._program = program
        self._meter = meter
        self.states = [program.start]
        self.number = [-1] * len(program.edges)
        self.number[program.start] = 0
        self.edge_start = [0]
        self.low: list[int] = []
        self.high: list[int] = []
        self.target: list[int] = []
        self.group_start = [0]
        self.move_record = array("q")
        self.move_start = array("q", [0])
        self.sequence = array("q")
        self.records: dict[tuple[int, ...], int] = {}
        self.tests: dict[Condition, int] = {}
        self._moves: dict[_Move, int] = {}  # those that are made together with others, each with a number
        self._groups: dict[tuple[int, ...] | _Move, int] = {}  # by these numbers; by the move, if it is one
        self._targets: dict[int, int] = {}  # by id of the edge

    def run(self) -> None:
        """Flatten all states that the start leads to."""
        program, edge_start, low = self._program, self.edge_start, self.low
        for number, state in enumerate(self.states):  # grows while it is read
            if not number % 64:
                self._check()
            like = program.like[state]
            if like >= 0:
                self._numbered(like)
            own = program.edges[state]
            if not self._add(own):
                self._put_in_order(edge_start[-1], own, like >= 0)
            edge_start.append(len(low))

    def _check(self) -> None:
        self._meter.check_time(_DOING)
        held = _BYTES_OF_MOVE * len(self.sequence) + _BYTES_OF_RANGE * len(self.low)
        self._meter.check_memory(held, _DOING)

    def _add(self, edges: list[Edge]) -> bool:
        """Append a state's edges; False if they are not in order, or overlap, or if one is refused."""
        states, number, targets = self.states, self.number, self.target
        in_order, end = True, -1
        for edge in edges if len(edges) <= _MANY else self._meter.each(edges, _DOING):
            low, high, sequence, counted = edge
            if len(sequence) == 1 and counted is None and (head := sequence[0]) >= 0:
                target = number[head]  # nearly all edges are like this
                if target < 0:
                    target = number[head] = len(states)
                    states.append(head)
                target += 1
            else:
                target = self._target(edge)
            if low <= end or not target:
                in_order = False
            end = high
            self.low.append(low)
            self.high.append(high)
            targets.append(target)
        return in_order

    def _numbered(self, state: State) -> int:
        """The number of a state, the next one if it is new."""
        number = self.number[state]
        if number < 0:
            number = self.number[state] = len(self.states)
            self.states.append(state)
        return number

    def _put_in_order(self, begin: int, own: list[Edge], alike: bool) -> None:
        """Make a state's edges ascending and disjoint; refused bytes are kept where it is like another one."""
        columns = self.low, self.high, self.target
        found = sorted(zip(*(column[begin:] for column in columns), strict=True))
        if any(low <= end for (_, end, _), (low, _, _) in pairwise(found)):
            found = self._disjoint(own)
        if not alike:
            found = [flat for flat in found if flat[2]]
        for i, column in enumerate(columns):
            column[begin:] = [flat[i] for flat in found]

    def _disjoint(self, edges: list[Edge]) -> list[_Flat]:
        """Ascending ranges without overlap, each with all the moves that a byte in it can make."""
        moves = [(edge.low, edge.high, self._move(edge)) for edge in self._meter.each(edges, _DOING)]
        cuts = sorted({low for low, _, _ in moves} | {high + 1 for _, high, _ in moves})
        found: list[_Flat] = []
        for low, after in pairwise(cuts):
            self._check()
            here = tuple(dict.fromkeys(m for a, b, m in moves if a <= low <= b))
            if not here:
                continue
            target = self._target_of(here)
            if found and found[-1][1] + 1 == low and found[-1][2] == target:
                low = found.pop()[0]
            found.append((low, after - 1, target))
        return found

    def _target(self, edge: Edge) -> int:
        """Where an edge leads if no other one overlaps it. Edges are often shared: each is looked at once."""
        target = self._targets.get(id(edge))
        if target is None:
            target = self._targets[id(edge)] = self._target_of((self._move(edge),))
        return target

    def _move(self, edge: Edge) -> _Move:
        if edge.sequence == REFUSED:
            return 0, REFUSED
        record = 0 if edge.counted is None else 1 + self._record(edge.counted)
        return record, tuple([self._numbered(s) for s in edge.sequence])

    def _record(self, counted: CountedEdge | MarkedEdge) -> int:
        if isinstance(counted, MarkedEdge):
            test = self.tests.setdefault(counted.condition, len(self.tests))
            marking = (MARK, test, self._numbered(counted.state), counted.member, DEAD)
            return self.records.setdefault(marking, len(self.records))
        targets = (s if s < 0 else self._numbered(s) for s in (counted.low, counted.mid, counted.high))
        key = (counted.operation, counted.loop, *targets)
        return self.records.setdefault(key, len(self.records))

    def _target_of(self, moves: tuple[_Move, ...]) -> int:
        key: tuple[int, ...] | _Move = moves[0]
        if len(moves) > 1:
            key = tuple([self._moves.setdefault(move, len(self._moves)) for move in moves])
        elif moves[0][0] == 0 and len(moves[0][1]) == 1:
            return 1 + moves[0][1][0]  # a state; or, of `REFUSED`, nothing
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = len(self._groups)
            for record, sequence in moves:
                self.move_record.append(record)
                self.sequence.extend(sequence)
                self.move_start.append(len(self.sequence))
            self.group_start.append(len(self.move_record))
        return -1 - group
