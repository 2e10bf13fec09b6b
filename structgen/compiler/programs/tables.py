"""The converter from a pushdown program to the tables that are stored and run: whole passes over columns."""

from __future__ import annotations

from copy import copy
from itertools import chain, islice, pairwise, repeat
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...budget import Budget, Meter
from ...errors import InternalError
from ...runtime.automaton.reaching import reaching
from ...runtime.automaton.tables import MARK
from ...runtime.pushdown.captures.labels import LabelledState, StateLabels
from ...runtime.pushdown.tables import PushdownTables
from ...runtime.pushdown.token_edges import TokenTables
from ...storage.container import smallest
from .program import Program, State, TokenSet

_Numbers: TypeAlias = NDArray[np.int64]

#: A range of bytes and its target.
_Range: TypeAlias = tuple[int, int, int]

_DOING = "putting the program into tables"

#: What an edge takes in all columns at once, and what a state in a move does.
_BYTES_OF_EDGE, _BYTES_OF_MOVE = 160, 40

#: The target of the first several moves that are made together; those of single ones are above it.
_TOGETHER = -1 << 40


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

    ``_columns`` are ``int64[4, edges]``: state, lowest and highest byte, target. Ranges of a state ascend and are
    disjoint. Where several moves are made the target is `_TOGETHER` minus their number.
    """

    def __init__(self, program: Program, meter: Meter) -> None:
        self._program = program
        self._meter = meter
        self._like = np.zeros(0, np.int64)
        self._columns = np.zeros((4, 0), np.int64)
        self._blocks = 0  # how many of the program's blocks are in the columns
        #: The targets that moves are made together at, by theirs.
        self._together: dict[tuple[int, ...], int] = {}
        self._token_sets: dict[TokenSet, int] = {}
        self._token_edges: list[tuple[State, int, int]] = []  # state, set, target
        self._with_tokens = 0  # how many states these are of
        self.grow([])

    def continued(self, program: Program, meter: Meter) -> Flattener:
        """One to go on with from here, for a program that goes on from this one."""
        found = copy(self)
        found._program, found._meter = program, meter
        found._together, found._token_sets = self._together.copy(), self._token_sets.copy()
        found._token_edges = self._token_edges[:]
        return found

    def grow(self, states: list[State]) -> None:
        """Add the edges of states that the program had without any, and of those that it has gained."""
        program, before = self._program, len(self._like)
        self._like = np.concatenate([self._like, np.array(program.like[before:], np.int64)])
        self._like[states] = [program.like[state] for state in states]
        states += range(before, len(program.edges))
        found = self._in_order(program.columns(states, self._blocks).astype(np.int64))
        self._blocks = len(program.blocks)
        if before:
            found = np.concatenate([self._columns, found], axis=1)
            found = found[:, np.argsort(found[0], kind="stable")]
        self._columns = found
        if program.token_edges or program.token_bounds:
            self._add_token_edges()
        self._check()

    def _add_token_edges(self) -> None:
        """Those of states that had none. Raises `InternalError` where they or bounds are not as they must be."""
        program = self._program
        for state, edges in islice(program.token_edges.items(), self._with_tokens, None):
            for tokens, target in edges:
                number = self._token_sets.setdefault(tokens, len(self._token_sets))
                self._token_edges.append((state, number, target))
        self._with_tokens = len(program.token_edges)
        exhausted = [bound.exhausted for bound in program.token_bounds.values()]
        if any(state in program.token_bounds or program.live[state] >= 0 for state in exhausted):
            raise InternalError("an exhausted state counts in a loop, or has a token bound")

    def _check(self) -> None:
        held = _BYTES_OF_MOVE * len(self._program.moves) + _BYTES_OF_EDGE * self._columns.shape[1]
        self._meter.check_memory(held + _BYTES_OF_EDGE * len(self._token_edges), _DOING)

    # -- edges ---------------------------------------------------------------------------------------------

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
            self._check()
            here = dict.fromkeys(target[(low <= first) & (first <= high)].tolist())
            if not here:
                continue
            together = self._at_once(tuple(here))
            if found and found[-1][1] + 1 == first and found[-1][2] == together:
                first = found.pop()[0]
            found.append((first, after - 1, together))
        return found

    def _at_once(self, targets: tuple[int, ...]) -> int:
        """The target at which the moves of several are made."""
        if len(targets) == 1:
            return targets[0]
        return self._together.setdefault(targets, _TOGETHER - len(self._together))

    def _groups(self) -> tuple[_Numbers, ...]:
        """Of all groups of moves: the size of each; of all moves: record, length, and all sequences."""
        moves = self._program.moves
        several = [moves[-1 - target] if target < 0 else (0, target - 1) for each in self._together for target in each]
        sizes = np.fromiter(chain(repeat(1, len(moves)), map(len, self._together)), np.int64)
        lengths = np.fromiter(map(len, chain(moves, several)), np.int64, len(moves) + len(several))
        found = np.fromiter(chain.from_iterable(chain(moves, several)), np.int64, int(lengths.sum()))
        is_record = np.zeros(len(found), np.bool_)
        is_record[np.cumsum(lengths) - lengths] = True
        return sizes, found[is_record], lengths - 1, found[~is_record]

    def _group_of(self, target: _Numbers) -> _Numbers:
        """The groups that targets below 0 stand for."""
        return np.where(target > _TOGETHER, -1 - target, len(self._program.moves) + _TOGETHER - target)

    # -- what the start leads to ---------------------------------------------------------------------------

    def order(self) -> list[State]:
        """The states that the start leads to."""
        found: list[State] = np.flatnonzero(self._reached(self._all_records(), *self._groups())[0]).tolist()
        return found

    def tables(self) -> PushdownTables:
        """The tables of what the start leads to."""
        program, records = self._program, self._all_records()
        group_sizes, record, lengths, sequence = groups = self._groups()
        states, reached, kept_records = self._reached(records, *groups)
        number = np.cumsum(states) - 1
        state, low, high, target = self._columns[:, states[self._columns[0]]]
        of_group = np.int64(states.sum()) + np.cumsum(reached)
        moves = np.repeat(reached, group_sizes)
        record, sequence = record[moves], sequence[np.repeat(moves, lengths)]
        record[record > 0] = np.cumsum(kept_records)[record[record > 0] - 1]
        like = self._like[states]
        return PushdownTables(
            edge_start=smallest(_starts(np.bincount(number[state], minlength=len(like)))),
            edge_low=low.astype(np.uint8),
            edge_high=high.astype(np.uint8),
            edge_target=smallest(self._numbered(target, number, of_group)),
            like=smallest(np.where(like < 0, 0, 1 + number[like])),
            group_start=smallest(_starts(group_sizes[reached])),
            move_record=smallest(record),
            move_start=smallest(_starts(lengths[moves])),
            sequence=smallest(number[sequence]),
            returns=np.array(program.returns, np.uint8)[states],
            records=self._renumbered(records[kept_records], number),
            loops=np.array(program.loops, np.int32).reshape(-1, 2),
            tests=self._all_tests(),
            live=np.array(program.live, np.int32)[states],
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
        group_sizes, record, lengths, sequence = self._groups()
        number, of_group = np.arange(states), states + 1 + np.arange(len(group_sizes))
        return PushdownTables(
            edge_start=smallest(_starts(np.bincount(state, minlength=states))),
            edge_low=low.astype(np.uint8),
            edge_high=high.astype(np.uint8),
            edge_target=smallest(self._numbered(target, number, of_group)),
            like=smallest(self._like + 1),
            group_start=smallest(_starts(group_sizes)),
            move_record=smallest(record),
            move_start=smallest(_starts(lengths)),
            sequence=smallest(sequence),
            returns=np.array(program.returns, np.uint8),
            records=self._all_records(),
            loops=np.array(program.loops, np.int32).reshape(-1, 2),
            tests=self._all_tests(),
            live=np.array(program.live, np.int32),
            start=program.start,
            distinct=self._marks() if program.distinct else np.zeros(0, np.uint8),
            tokens=self._token_tables(np.ones(states, np.bool_), number, of_group),
            interiors=program.interiors,
        )

    def _numbered(self, target: _Numbers, number: _Numbers, of_group: _Numbers) -> _Numbers:
        """Targets as tables have them, by the numbers of states and groups there."""
        found = np.zeros(len(target), np.int64)
        found[target > 0] = 1 + number[target[target > 0] - 1]
        found[target < 0] = of_group[self._group_of(target[target < 0])]
        return found

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
        targets = self._numbered(target, number, of_group)
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
        return np.array(self._program.test_rows, np.int32).reshape(-1, 4)

    def _all_records(self) -> NDArray[np.int32]:
        return np.array(list(self._program.records), np.int32).reshape(-1, 5)

    def _renumbered(self, records: NDArray[np.int32], number: _Numbers) -> NDArray[np.int32]:
        is_state = _states_in(records)
        records[is_state] = number[records[is_state]]
        return records

    def _reached(
        self, records: NDArray[np.int32], sizes: _Numbers, record: _Numbers, lengths: _Numbers, sequence: _Numbers
    ) -> list[NDArray[np.bool_]]:
        """Which states, groups and records the start leads to, as nodes of one graph."""
        first_group = len(self._like)
        first_record = first_group + len(sizes)
        state, _, _, target = self._columns
        owner = first_group + np.repeat(np.arange(len(sizes)), sizes)
        counting, zone = np.nonzero(_states_in(records))
        pairs = [
            (state[target > 0], target[target > 0] - 1),
            (state[target < 0], first_group + self._group_of(target[target < 0])),
            (np.flatnonzero(self._like >= 0), self._like[self._like >= 0]),
            (np.repeat(owner, lengths), sequence),
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
