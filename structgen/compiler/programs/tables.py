"""The converter from a pushdown program to the tables that are stored and run: whole passes over columns."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import NamedTuple, TypeAlias

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


class _Nodes(NamedTuple):
    """What is reached or left out: ``states``, then groups of moves, then ``records``.

    Of groups there are sizes; of moves, one group's after the other's, record (0 for none), length, and all sequences.
    """

    states: int
    sizes: _Numbers
    record: _Numbers
    lengths: _Numbers
    sequence: _Numbers
    records: NDArray[np.int32]

    @property
    def number(self) -> int:
        """Of all nodes."""
        return self.states + len(self.sizes) + len(self.records)


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
        new = range(before, len(program.edges))
        found = self._in_order(program.columns([*states, *new] if states else new, self._blocks).astype(np.int64))
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

    # -- what the start leads to ---------------------------------------------------------------------------

    def order(self) -> list[State]:
        """The states that the start leads to."""
        found: list[State] = np.flatnonzero(self._reached(self._nodes())[: len(self._like)]).tolist()
        return found

    def tables(self) -> PushdownTables:
        """The tables of what the start leads to."""
        nodes = self._nodes()
        return self._tables(nodes, self._reached(nodes))

    def all_tables(self) -> PushdownTables:
        """The tables of all states so far."""
        nodes = self._nodes()
        return self._tables(nodes, np.ones(nodes.number, np.bool_))

    def _nodes(self) -> _Nodes:
        moves, together = self._program.moves, self._together
        if together:
            sizes = [1] * len(moves) + [*map(len, together)]
            several = chain.from_iterable(together)
            moves = [*moves, *(moves[-1 - target] if target < 0 else (0, target - 1) for target in several)]
        lengths = np.fromiter(map(len, moves), np.int64, len(moves))
        found = np.fromiter(chain.from_iterable(moves), np.int64, int(lengths.sum()))
        is_record = np.zeros(len(found), np.bool_)
        is_record[np.cumsum(lengths) - lengths] = True
        return _Nodes(
            len(self._like),
            np.array(sizes) if together else np.ones(len(moves), np.int64),
            found[is_record],
            lengths - 1,
            found[~is_record],
            np.array([*self._program.records], np.int32).reshape(-1, 5),
        )

    def _heads(self, target: _Numbers, states: int) -> _Numbers:
        """The nodes that are targets, -1 where there is none."""
        found = np.where(target > 0, target, np.where(target < 0, states - target, 0)) - 1
        if self._together:
            found[target <= _TOGETHER] += len(self._program.moves) + _TOGETHER + 1
        return found

    def _tables(self, nodes: _Nodes, kept: NDArray[np.bool_]) -> PushdownTables:
        """The tables of some nodes."""
        program, groups, records = self._program, len(nodes.sizes), nodes.records
        states = kept[: nodes.states]
        state, low, high, target = self._columns
        #: By node, and of none, its target in tables, which is 1 more than the number of a state.
        to = np.append(np.cumsum(kept[: nodes.states + groups]), 0)
        record_to = np.append(np.cumsum(kept[nodes.states + groups :]), 0)
        edges, moves = states[state], np.repeat(kept[nodes.states : nodes.states + groups], nodes.sizes)
        if len(records):
            is_state = _states_in(records)
            records[is_state] = to[records[is_state]] - 1
            records = records[kept[nodes.states + groups :]]
        return PushdownTables(
            edge_start=smallest(np.cumsum(np.bincount(to[state[edges]], minlength=int(states.sum()) + 1))),
            edge_low=low[edges].astype(np.uint8),
            edge_high=high[edges].astype(np.uint8),
            edge_target=smallest(to[self._heads(target[edges], nodes.states)]),
            like=smallest(to[self._like[states]]),
            group_start=smallest(_starts(nodes.sizes[kept[nodes.states : nodes.states + groups]])),
            move_record=smallest(record_to[nodes.record[moves] - 1]),
            move_start=smallest(_starts(nodes.lengths[moves])),
            sequence=smallest(to[nodes.sequence[np.repeat(moves, nodes.lengths)]] - 1),
            returns=np.array(program.returns, np.uint8)[states],
            records=records,
            loops=np.array(program.loops, np.int32).reshape(-1, 2),
            tests=np.array(program.test_rows, np.int32).reshape(-1, 4),
            live=np.array(program.live, np.int32)[states],
            start=int(to[program.start]) - 1,
            distinct=self._marks()[states] if program.distinct else np.zeros(0, np.uint8),
            tokens=self._token_tables(states, to),
            interiors={
                int(to[state]) - 1: (int(to[interior]) - 1, int(to[behind]) - 1)
                for state, (interior, behind) in program.interiors.items()
                if states[state]
            },
            labels=StateLabels(
                tuple(
                    LabelledState(int(to[state]) - 1, label)
                    for state, label in sorted(program.labels.items(), key=itemgetter(0))
                    if states[state]
                )
            ),
        )

    def _token_tables(self, states: NDArray[np.bool_], to: _Numbers) -> TokenTables | None:
        """Token edges and bounds of some states; ``to`` has the target that each node is."""
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
        number, targets = to - 1, to[self._heads(target, len(self._like))]
        return TokenTables(
            np.array([1 if each.complement else 2 * each.without_eos for each in self._token_sets], np.uint8),
            within, ids, number[owner], sets, targets, number[bounded], most, number[exhausted], counts=bool(counts),
        )  # fmt: skip

    def _marks(self) -> NDArray[np.uint8]:
        """The marks of all states."""
        marks = np.zeros(len(self._like), np.uint8)
        marks[list(self._program.distinct)] = list(self._program.distinct.values())
        return marks

    def _reached(self, nodes: _Nodes) -> NDArray[np.bool_]:
        """Which nodes the start leads to."""
        state, heads = self._columns[0], self._heads(self._columns[3], nodes.states)
        alike = np.flatnonzero(self._like >= 0)
        owner = nodes.states + np.repeat(np.arange(len(nodes.sizes)), nodes.sizes)
        pairs = [
            (state[heads >= 0], heads[heads >= 0]),
            (alike, self._like[alike]),
            (np.repeat(owner, nodes.lengths), nodes.sequence),
            *self._other_pairs(),
        ]
        if len(nodes.records):
            counting, zone = np.nonzero(_states_in(nodes.records))
            first, counts = nodes.states + len(nodes.sizes), nodes.record > 0
            pairs.append((owner[counts], first - 1 + nodes.record[counts]))
            pairs.append((first + counting, nodes.records[counting, zone].astype(np.int64)))
        tails, heads = map(np.concatenate, zip(*pairs, strict=True))
        begin = np.zeros(nodes.number, np.bool_)
        begin[self._program.start] = True
        return reaching(heads, tails, begin)

    def _other_pairs(self) -> Iterator[tuple[_Numbers, _Numbers]]:
        """Where interiors, token edges and token bounds lead, by state, as nodes."""
        program = self._program
        if program.interiors:
            states = np.array([*program.interiors])
            yield np.repeat(states, 2), np.array([*program.interiors.values()]).ravel()
        if self._token_edges:
            state, _, target = np.array(self._token_edges, np.int64).T
            yield state, self._heads(target, len(self._like))
        if program.token_bounds:
            bounds = program.token_bounds
            yield np.array([*bounds]), np.array([bound.exhausted for bound in bounds.values()])


def _starts(lengths: _Numbers) -> _Numbers:
    """Where each of some pieces begins, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _states_in(records: NDArray[np.int32]) -> NDArray[np.bool_]:
    """``bool[records, 5]``: which fields are states."""
    found = np.zeros(records.shape, np.bool_)
    found[:, 2:] = records[:, 2:] >= 0
    found[records[:, 0] == MARK, 3:] = False
    return found
