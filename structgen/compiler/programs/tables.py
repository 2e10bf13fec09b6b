"""The converter from a pushdown program to the tables that are stored and run: whole passes over columns."""

from __future__ import annotations

from copy import copy
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...budget import Budget, Meter
from ...errors import InternalError
from ...runtime.automaton.reaching import reaching
from ...runtime.automaton.tables import DEAD, MARK
from ...runtime.pushdown.captures.labels import LabelledState, StateLabels
from ...runtime.pushdown.tables import PAIR, PushdownTables
from ...runtime.pushdown.token_edges import TokenTables
from ...storage.container import smallest
from .program import Condition, CountedEdge, MarkedEdge, Program, State, TokenSet

_Numbers: TypeAlias = NDArray[np.int64]

#: A range of bytes and its target: 0 for nothing, 1 plus a state, or -1 minus a group.
_Range: TypeAlias = tuple[int, int, int]

_DOING = "putting the program into tables"

#: What an edge takes in all columns at once, and what a state in a move does.
_BYTES_OF_EDGE, _BYTES_OF_MOVE = 160, 40

#: Edges between two looks at the meter.
_EDGES = 4096


def to_tables(program: Program, meter: Meter | None = None) -> PushdownTables:
    """Make ranges disjoint, number records and groups of moves, and flatten.

    States that cannot be reached from the start are left out; the others keep their order.

    Raises `BudgetExceededError`.
    """
    return Flattener(program, meter or Meter(Budget())).tables()


def state_order(program: Program, meter: Meter) -> list[State]:
    """The program's states in the order of their numbers in its tables."""
    return Flattener(program, meter).order()


class Flattener:
    """Collects the edges of all states into columns; what the start does not lead to is left out at the end.

    A program may grow: `grow` adds to the columns, `all_tables` has all states, under their own numbers.

    ``_columns`` are ``int64[4, edges]``: state, lowest and highest byte, target (see `_Range`). Ranges of a state
    ascend and are disjoint.
    """

    def __init__(self, program: Program, meter: Meter) -> None:
        self._program = program
        self._meter = meter
        self._like = np.zeros(0, np.int64)
        self._group_start = [0]
        self._move_record: list[int] = []
        self._move_start = [0]
        self._sequence: list[State] = []
        self._records: dict[tuple[int, ...], int] = {}
        self._tests: dict[Condition, int] = {}
        self._test_rows: list[tuple[int, int, int, int]] = []
        #: By the move, where there is one; by the targets of those that are made together.
        self._groups: dict[tuple[tuple[State, ...], CountedEdge | MarkedEdge | None] | tuple[int, ...], int] = {}
        self._columns = np.zeros((4, 0), np.int64)
        self._arrays: dict[int, _Numbers] = {}  # of lists, by their `id`, as far as they had grown
        self._plain = 0  # how many plain edges are in the columns
        self._token_sets: dict[TokenSet, int] = {}
        self._token_edges: list[tuple[State, int, int]] = []  # state, set, target as in ``_columns``
        self._with_tokens = 0  # how many states these are of
        self.grow([])

    def continued(self, program: Program, meter: Meter) -> Flattener:
        """One to go on with from here, for a program that goes on from this one."""
        found = copy(self)
        found._program, found._meter, found._arrays = program, meter, {}
        found._group_start, found._token_edges = self._group_start[:], self._token_edges[:]
        found._move_record, found._move_start, found._sequence = (
            self._move_record[:],
            self._move_start[:],
            self._sequence[:],
        )
        found._records, found._tests = self._records.copy(), self._tests.copy()
        found._test_rows = self._test_rows[:]
        found._groups, found._token_sets = self._groups.copy(), self._token_sets.copy()
        return found

    def grow(self, states: list[State]) -> None:
        """Add the edges of states that the program had without any, and of those that it has gained."""
        program, before = self._program, len(self._like)
        self._like = np.concatenate([self._like, np.array(program.like[before:], np.int64)])
        self._like[states] = [program.like[state] for state in states]
        states = [*states, *range(before, len(program.edges))]
        columns = [self._listed(states), program.plain.columns(self._plain)]
        self._plain = len(program.plain.states)
        found = self._in_order(np.concatenate(columns, axis=1))
        if before:
            found = np.concatenate([self._columns, found], axis=1)
            found = found[:, np.argsort(found[0], kind="stable")]
        self._columns = found
        if program.token_edges or program.token_bounds:
            self._add_token_edges()
        self._check(self._columns.shape[1] + len(self._token_edges))

    def _add_token_edges(self) -> None:
        """Those of states that had none. Raises `InternalError` where they or bounds are not as they must be."""
        program = self._program
        for state, edges in islice(program.token_edges.items(), self._with_tokens, None):
            for tokens, sequence, counted in edges:
                target = self._target(sequence, counted)
                number = self._token_sets.setdefault(tokens, len(self._token_sets))
                self._token_edges.append((state, number, target))
        self._with_tokens = len(program.token_edges)
        exhausted = [bound.exhausted for bound in program.token_bounds.values()]
        if any(state in program.token_bounds or program.live[state] >= 0 for state in exhausted):
            raise InternalError("an exhausted state counts in a loop, or has a token bound")

    def _check(self, edges: int) -> None:
        held = _BYTES_OF_MOVE * len(self._sequence) + _BYTES_OF_EDGE * edges
        self._meter.check_memory(held, _DOING)

    # -- edges ---------------------------------------------------------------------------------------------

    def _listed(self, states: list[State]) -> _Numbers:
        """The columns of the edges of some states that are listed one by one."""
        edges = [self._program.edges[state] for state in states]
        listed = list(chain.from_iterable(edges))
        columns = np.empty((4, len(listed)), np.int64)
        columns[0] = np.repeat(np.array(states, np.int64), np.fromiter(map(len, edges), np.int64, len(edges)))
        for begin in range(0, len(listed), _EDGES):
            self._check(begin)
            some = listed[begin : begin + _EDGES]
            columns[1, begin : begin + _EDGES] = [edge.low for edge in some]
            columns[2, begin : begin + _EDGES] = [edge.high for edge in some]
            columns[3, begin : begin + _EDGES] = [self._target(sequence, counted) for _, _, sequence, counted in some]
        return columns

    def _target(self, sequence: tuple[State, ...], counted: CountedEdge | MarkedEdge | None) -> int:
        """The target of an edge; see `_Range`."""
        return 1 + sequence[0] if counted is None and len(sequence) == 1 else self._group(sequence, counted)

    def _group(self, sequence: tuple[State, ...], counted: CountedEdge | MarkedEdge | None) -> int:
        """The target of an edge that makes one move."""
        key = sequence, counted
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = len(self._groups)
            self._add_move(0 if counted is None else 1 + self._record(counted), sequence)
            self._group_start.append(len(self._move_record))
        return -1 - group

    def _add_move(self, record: int, sequence: list[State] | tuple[State, ...]) -> None:
        self._move_record.append(record)
        self._sequence.extend(sequence)
        self._move_start.append(len(self._sequence))

    def _record(self, counted: CountedEdge | MarkedEdge) -> int:
        if isinstance(counted, MarkedEdge):
            test = self._tests.get(counted.condition)
            if test is None:
                test = self._tests[counted.condition] = len(self._test_rows)
                self._test_rows += _words(counted.condition)
            key = (MARK, test, counted.state, counted.member, DEAD)
        else:
            key = counted.operation, counted.loop, counted.low, counted.mid, counted.high
        return self._records.setdefault(key, len(self._records))

    def _in_order(self, columns: _Numbers) -> _Numbers:
        """Edges by state and byte, those that overlap cut; refused bytes only where a state is like another one."""
        columns = columns[:, np.argsort(columns[0] << 8 | columns[1], kind="stable")]
        state, low, high, target = columns
        overlaps = (state[1:] == state[:-1]) & (low[1:] <= high[:-1])
        if overlaps.any():
            columns = self._without_overlaps(columns, np.unique(state[1:][overlaps]))
            state, _, _, target = columns
        return columns if target.all() else columns[:, (target != 0) | (self._like[state] >= 0)]

    def _without_overlaps(self, columns: _Numbers, overlapping: _Numbers) -> _Numbers:
        """The same, where the edges of some states overlap."""
        state = columns[0]
        begins, ends = np.searchsorted(state, overlapping), np.searchsorted(state, overlapping, side="right")
        cut = [
            (here, *found)
            for here, begin, end in zip(overlapping.tolist(), begins.tolist(), ends.tolist(), strict=True)
            for found in self._disjoint(columns[1:, begin:end])
        ]
        columns = np.concatenate([columns[:, ~np.isin(state, overlapping)], np.array(cut, np.int64).T], axis=1)
        return columns[:, np.argsort(columns[0], kind="stable")]

    def _disjoint(self, columns: _Numbers) -> list[_Range]:
        """Ascending ranges without overlap, each with all the moves that a byte in it can make."""
        low, high, target = columns
        cuts = np.unique(np.concatenate([low, high + 1])).tolist()
        found: list[_Range] = []
        for first, after in pairwise(cuts):
            self._check(0)
            here = dict.fromkeys(target[(low <= first) & (first <= high)].tolist())
            if not here:
                continue
            together = self._together(tuple(here))
            if found and found[-1][1] + 1 == first and found[-1][2] == together:
                first = found.pop()[0]
            found.append((first, after - 1, together))
        return found

    def _together(self, targets: tuple[int, ...]) -> int:
        """The target at which the moves of several are made."""
        if len(targets) == 1:
            return targets[0]
        group = self._groups.get(targets)
        if group is None:
            group = self._groups[targets] = len(self._groups)
            for target in targets:
                if target >= 0:
                    self._add_move(0, (target - 1,))
                else:
                    move = self._group_start[-1 - target]
                    begin, end = self._move_start[move : move + 2]
                    self._add_move(self._move_record[move], self._sequence[begin:end])
            self._group_start.append(len(self._move_record))
        return -1 - group

    # -- what the start leads to ---------------------------------------------------------------------------

    def order(self) -> list[State]:
        """The states that the start leads to."""
        found: list[State] = np.flatnonzero(self._reached(self._all_records())[0]).tolist()
        return found

    def tables(self) -> PushdownTables:
        """The tables of what the start leads to."""
        program, records = self._program, self._all_records()
        states, groups, kept_records = self._reached(records)
        number = np.cumsum(states) - 1
        state, low, high, target = self._columns[:, states[self._columns[0]]]
        of_group = np.int64(states.sum()) + np.cumsum(groups)
        group_sizes = np.diff(self._array(self._group_start))
        moves = np.repeat(groups, group_sizes)
        lengths = np.diff(self._array(self._move_start))
        record = self._array(self._move_record)[moves]
        record[record > 0] = np.cumsum(kept_records)[record[record > 0] - 1]
        is_state, is_group = target > 0, target < 0
        edge_target = np.zeros(len(target), np.int64)
        edge_target[is_state] = 1 + number[target[is_state] - 1]
        edge_target[is_group] = of_group[-1 - target[is_group]]
        like = self._like[states]
        sequence = self._array(self._sequence)[np.repeat(moves, lengths)]
        return PushdownTables(
            edge_start=smallest(_starts(np.bincount(number[state], minlength=len(like)))),
            edge_low=low.astype(np.uint8),
            edge_high=high.astype(np.uint8),
            edge_target=smallest(edge_target),
            like=smallest(np.where(like < 0, 0, 1 + number[like])),
            group_start=smallest(_starts(group_sizes[groups])),
            move_record=smallest(record),
            move_start=smallest(_starts(lengths[moves])),
            sequence=smallest(number[sequence]),
            returns=self._array(program.returns)[states].astype(np.uint8),
            records=self._renumbered(records[kept_records], number),
            loops=np.array(program.loops, np.int32).reshape(-1, 2),
            tests=self._all_tests(),
            live=self._array(program.live)[states].astype(np.int32),
            start=int(number[program.start]),
            distinct=self._marks()[states] if program.distinct else np.zeros(0, np.uint8),
            tokens=self._token_tables(states, number, of_group),
            interiors={
                int(number[state]): (int(number[interior]), int(number[behind]))
                for state, (interior, behind) in program.interiors.items()
                if states[state]
            },
            labels=StateLabels(
                tuple(
                    LabelledState(int(number[state]), label)
                    for state, label in sorted(program.labels.items(), key=itemgetter(0))
                    if states[state]
                )
            ),
        )

    def all_tables(self) -> PushdownTables:
        """The tables of all states so far."""
        program, states = self._program, len(self._like)
        state, low, high, target = self._columns
        return PushdownTables(
            edge_start=smallest(_starts(np.bincount(state, minlength=states))),
            edge_low=low.astype(np.uint8),
            edge_high=high.astype(np.uint8),
            edge_target=smallest(np.where(target < 0, states - target, target)),
            like=smallest(self._like + 1),
            group_start=smallest(self._array(self._group_start)),
            move_record=smallest(self._array(self._move_record)),
            move_start=smallest(self._array(self._move_start)),
            sequence=smallest(self._array(self._sequence)),
            returns=self._array(program.returns).astype(np.uint8),
            records=self._all_records(),
            loops=np.array(program.loops, np.int32).reshape(-1, 2),
            tests=self._all_tests(),
            live=self._array(program.live).astype(np.int32),
            start=program.start,
            distinct=self._marks() if program.distinct else np.zeros(0, np.uint8),
            tokens=self._token_tables(
                np.ones(states, np.bool_), np.arange(states), states + 1 + np.arange(len(self._groups))
            ),
            interiors=program.interiors,
        )

    def _token_tables(self, states: NDArray[np.bool_], number: _Numbers, of_group: _Numbers) -> TokenTables | None:
        """Token edges and bounds of some states; ``number`` and ``of_group`` have their numbers as targets."""
        program = self._program
        reads, counts = program.reads_tokens or program.token_edges, program.counts_tokens or program.token_bounds
        if not reads and not counts:
            return None
        edges = np.array(sorted(self._token_edges, key=itemgetter(0)), np.int64).reshape(-1, 3)
        owner, sets, target = edges[states[edges[:, 0]]].T
        bounds = [(state, *bound) for state, bound in sorted(program.token_bounds.items()) if states[state]]
        bounded, most, exhausted = np.array(bounds, np.int64).reshape(-1, 3).T
        members = [(k, i) for k, tokens in enumerate(self._token_sets) for i in tokens.ids]
        within, ids = np.array(members, np.int64).reshape(-1, 2).T
        targets = np.empty(len(target), np.int64)
        targets[target > 0] = 1 + number[target[target > 0] - 1]
        targets[target < 0] = of_group[-1 - target[target < 0]]
        return TokenTables(
            np.array([1 if each.complement else 2 * each.without_eos for each in self._token_sets], np.uint8),
            within, ids, number[owner], sets, targets, number[bounded], most, number[exhausted], counts=bool(counts),
        )  # fmt: skip

    def _marks(self) -> NDArray[np.uint8]:
        """The marks of all states."""
        marks = np.zeros(len(self._like), np.uint8)
        marks[list(self._program.distinct)] = list(self._program.distinct.values())
        return marks

    def _all_tests(self) -> NDArray[np.int32]:
        return np.array(self._test_rows, np.int32).reshape(-1, 4)

    def _array(self, numbers: list[int] | list[bool]) -> _Numbers:
        """A list that grows, as an array."""
        known = self._arrays.get(id(numbers), np.zeros(0, np.int64))
        if len(known) < len(numbers):
            known = self._arrays[id(numbers)] = np.concatenate([known, np.array(numbers[len(known) :], np.int64)])
        return known

    def _all_records(self) -> NDArray[np.int32]:
        return np.array(list(self._records), np.int32).reshape(-1, 5)

    def _renumbered(self, records: NDArray[np.int32], number: _Numbers) -> NDArray[np.int32]:
        is_state = _states_in(records)
        records[is_state] = number[records[is_state]]
        return records

    def _reached(self, records: NDArray[np.int32]) -> list[NDArray[np.bool_]]:
        """Which states, groups and records the start leads to, as nodes of one graph."""
        first_group = len(self._like)
        first_record = first_group + len(self._groups)
        state, _, _, target = self._columns
        owner = first_group + np.repeat(np.arange(len(self._groups)), np.diff(self._array(self._group_start)))
        record = self._array(self._move_record)
        counting, zone = np.nonzero(_states_in(records))
        pairs = [
            (state[target > 0], target[target > 0] - 1),
            (state[target < 0], first_group - 1 - target[target < 0]),
            (np.flatnonzero(self._like >= 0), self._like[self._like >= 0]),
            (np.repeat(owner, np.diff(self._array(self._move_start))), self._array(self._sequence)),
            (owner[record > 0], first_record - 1 + record[record > 0]),
            (first_record + counting, records[counting, zone]),
            *self._token_pairs(first_group),
            *self._interior_pairs(),
        ]
        tails, heads = map(np.concatenate, zip(*pairs, strict=True))
        begin = np.zeros(first_record + len(records), np.bool_)
        begin[self._program.start] = True
        return np.split(reaching(heads, tails, begin), [first_group, first_record])

    def _interior_pairs(self) -> list[tuple[_Numbers, _Numbers]]:
        """Which states have interiors, and the states of these, as nodes of the graph."""
        found = [(state, *there) for state, there in self._program.interiors.items()]
        state, interior, behind = np.array(found, np.int64).reshape(-1, 3).T
        return [(state, interior), (state, behind)]

    def _token_pairs(self, first_group: int) -> list[tuple[_Numbers, _Numbers]]:
        """Where token edges and bounds lead, by state, as nodes of the graph."""
        state, _, target = np.array(self._token_edges, np.int64).reshape(-1, 3).T
        bounds = [(state, bound.exhausted) for state, bound in self._program.token_bounds.items()]
        bounded, exhausted = np.array(bounds, np.int64).reshape(-1, 2).T
        return [(state, np.where(target > 0, target, first_group - target) - 1), (bounded, exhausted)]


def _starts(lengths: _Numbers) -> _Numbers:
    """Where each of some pieces begins, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _states_in(records: NDArray[np.int32]) -> NDArray[np.bool_]:
    """``bool[records, 5]``: which fields are states."""
    found = np.zeros(records.shape, np.bool_)
    found[:, 2:] = records[:, 2:] >= 0
    found[records[:, 0] == MARK, 3:] = False
    return found


def _words(test: Condition) -> list[tuple[int, int, int, int]]:
    """The bounds of a test, and its mask in words of 31 bits; see `PushdownTables.tests`."""
    masks = [test.mask >> begin for begin in range(0, max(1, test.mask.bit_length()), PAIR)]
    words = [(mask & 0x7FFFFFFF, mask >> 31 & 0x7FFFFFFF) for mask in masks]
    return [(test.low, test.high, *words[0]), *[(-1, 0, *each) for each in words[1:]]]
