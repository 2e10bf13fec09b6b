"""The converter from a pushdown program to the tables that are stored and run."""

from __future__ import annotations

from itertools import accumulate, chain, islice, pairwise
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...budget import Budget, Meter
from ...errors import InternalError
from ...runtime.pushdown.captures.labels import NO_LABELS, LabelledState, StateLabels
from ...runtime.pushdown.tables import PushdownTables
from ...runtime.pushdown.token_edges import TokenTables
from ...system.properties import branch
from .program import Program, State, TokenSet, packed

_Numbers: TypeAlias = NDArray[np.int32]

#: A range of bytes and its target.
_Range: TypeAlias = tuple[int, int, int]

_DOING = "putting the program into tables"

#: What an edge takes in all columns at once, and what a state in a move does.
_BYTES_OF_EDGE, _BYTES_OF_MOVE = 160, 40

#: The columns of tables that are numbers of states and of moves, as `structgen.kernels.flatten` has them.
_COLUMNS = (
    "edge_start", "edge_target", "like", "live", "group_start", "move_record", "move_start", "sequence", "records",
)  # fmt: skip


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

    ``_edges`` is as `structgen.kernels.flatten` takes them.
    """

    def __init__(self, program: Program, meter: Meter) -> None:
        self._program = program
        self._meter = meter
        self._states = 0  # whose edges are in the columns
        self._edges = np.zeros((4, 0), np.int32)
        self._blocks = 0  # how many of the program's blocks are in the columns
        #: The targets that moves are made together at, by theirs.
        self._together: dict[tuple[int, ...], int] = {}
        self._token_sets: dict[TokenSet, int] = {}
        self._token_edges: list[tuple[State, int, int]] = []  # state, set, target
        self._with_tokens = 0  # how many states these are of
        self.grow([])

    def continued(self, program: Program, meter: Meter) -> Flattener:
        """One to go on with from here, for a program that goes on from this one."""
        found = branch(self)
        found._program, found._meter = program, meter
        return found

    def grow(self, states: list[State]) -> None:
        """Add the edges of states that the program had without any, and of those that it has gained."""
        program, before = self._program, self._states
        self._states = len(program.edges)
        found = self._in_order(program.columns(before, self._blocks, states))
        self._edges = np.concatenate([self._edges, found], axis=1) if before else found
        self._blocks = len(program.blocks)
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
        if any(state in program.token_bounds or program.live.get(state, -1) >= 0 for state in exhausted):
            raise InternalError("an exhausted state counts in a loop, or has a token bound")

    def _check(self) -> None:
        held = _BYTES_OF_MOVE * len(self._program.moves) + _BYTES_OF_EDGE * self._edges.shape[1]
        self._meter.check_memory(held + _BYTES_OF_EDGE * len(self._token_edges), _DOING)

    # -- edges ---------------------------------------------------------------------------------------------

    def _in_order(self, edges: _Numbers) -> _Numbers:
        """Edges by state and byte, those that overlap cut."""
        number = edges.shape[1]
        room, ordered = np.empty(number + max(256, self._states) + 1, np.int32), np.empty_like(edges)
        overlapping = np.zeros(self._states, np.uint8)
        if kernels.order_edges(edges, room[number:], room[:number], ordered, overlapping):
            return self._in_order(self._without_overlaps(ordered, overlapping))
        return ordered

    def _without_overlaps(self, edges: _Numbers, overlapping: NDArray[np.uint8]) -> _Numbers:
        """The same in any order, where edges of some states overlap."""
        which = overlapping[edges[0]] > 0
        here = edges[:, which]
        cut = [
            (int(columns[0, 0]), *found)
            for columns in np.split(here, np.flatnonzero(np.diff(here[0])) + 1, axis=1)
            for found in self._disjoint(columns[1:])
        ]
        return np.ascontiguousarray(np.concatenate([edges[:, ~which], np.array(cut, np.int32).T], axis=1))

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
        return self._together.setdefault(targets, kernels.TOGETHER - len(self._together))

    # -- what the start leads to ---------------------------------------------------------------------------

    def order(self) -> list[State]:
        """The states that the start leads to."""
        found: list[State] = np.flatnonzero(self._flatten(self._program.start)[0][: self._states]).tolist()
        return found

    def tables(self) -> PushdownTables:
        """The tables of what the start leads to."""
        return self._tables(*self._flatten(self._program.start))

    def all_tables(self) -> PushdownTables:
        """The tables of all states so far."""
        return self._tables(*self._flatten(-1))

    def _flatten(self, start: State) -> tuple[_Numbers, dict[str, NDArray[Any]]]:
        """The target that each node is in tables, 0 for what is left out, and columns of these.

        See `structgen.kernels.flatten`.
        """
        program, singles = self._program, len(self._program.moves)
        moves = [*program.moves, *map(program.move, chain.from_iterable(self._together))]
        lengths, flat = packed([*map(len, moves)]), packed([*chain.from_iterable(moves)])
        sizes = np.ones(singles + len(self._together), np.int32)
        if self._together:
            sizes[singles:] = [*map(len, self._together)]
        n = self._states
        of_states = np.zeros(3 * n, np.int32)
        of_states[: 2 * n] = -1
        which = [*program.like, *[n + state for state in program.live], *[2 * n + state for state in program.returns]]
        of_states[packed(which)] = packed([*program.like.values(), *program.live.values(), *[1] * len(program.returns)])
        records = np.array([*program.records], np.int32).reshape(-1, 5)
        pairs = self._pairs()
        nodes, edges = self._states + len(sizes) + len(records), self._edges.shape[1]
        begins = np.zeros((6, 1 + max(nodes, len(lengths), pairs.shape[1])), np.int32)
        stack, to = np.empty(nodes, np.int32), np.zeros(nodes, np.int32)
        read = np.empty(2 * edges + self._states, np.uint8)
        columns = np.empty(3 + edges + 2 * len(lengths) + len(flat) + 5 * nodes, np.int32)
        states, edges, groups, made, sequence, counts = kernels.flatten(
            self._edges, of_states.reshape(3, n), sizes, lengths, flat, records, pairs, singles, start, begins, stack,
            to, read, columns,
        )  # fmt: skip
        sizes_of = 1 + states, edges, states, states, 1 + groups, made, 1 + made, sequence, 5 * counts
        ends = [*accumulate(sizes_of)]
        columns, read = columns[: ends[-1]].copy(), read[: 2 * edges + states].copy()  # room was there for all
        found = dict(
            zip(_COLUMNS, [columns[end - size : end] for size, end in zip(sizes_of, ends, strict=True)], strict=True)
        )
        found["records"] = found["records"].reshape(-1, 5)
        low, high, returns = read[:edges], read[edges : 2 * edges], read[2 * edges : 2 * edges + states]
        return to, found | {"edge_low": low, "edge_high": high, "returns": returns}

    def _tables(self, to: _Numbers, columns: dict[str, NDArray[Any]]) -> PushdownTables:
        """The tables with some columns; ``to`` has the target that each node is."""
        program = self._program
        return PushdownTables(
            **columns,
            loops=np.array(program.loops, np.int32).reshape(-1, 2),
            tests=np.array(program.test_rows, np.int32).reshape(-1, 4),
            start=int(to[program.start]) - 1,
            distinct=self._marks()[to[: self._states] > 0] if program.distinct else np.zeros(0, np.uint8),
            tokens=self._token_tables(to),
            interiors={
                int(to[state]) - 1: (int(to[interior]) - 1, int(to[behind]) - 1)
                for state, (interior, behind) in program.interiors.items()
                if to[state]
            },
            labels=StateLabels(labels) if (labels := self._labels(to)) else NO_LABELS,
        )

    def _labels(self, to: _Numbers) -> tuple[LabelledState, ...]:
        """The labelled states; ``to`` as `_token_tables` has it."""
        labels = sorted(self._program.labels.items(), key=itemgetter(0))
        return tuple([LabelledState(int(to[state]) - 1, label) for state, label in labels if to[state]])

    def _token_tables(self, to: _Numbers) -> TokenTables | None:
        """Token edges and bounds; ``to`` has the target that each node is, 0 for states that are left out."""
        program = self._program
        reads, counts = program.reads_tokens or program.token_edges, program.counts_tokens or program.token_bounds
        if not reads and not counts:
            return None
        edges = np.array(sorted(self._token_edges, key=itemgetter(0)), np.int64).reshape(-1, 3)
        owner, sets, target = edges[to[edges[:, 0]] > 0].T
        bounds = [(state, *bound) for state, bound in sorted(program.token_bounds.items()) if to[state]]
        bounded, most, exhausted = np.array(bounds, np.int64).reshape(-1, 3).T
        members = [(k, i) for k, tokens in enumerate(self._token_sets) for i in tokens.ids]
        within, ids = np.array(members, np.int64).reshape(-1, 2).T
        number = to.astype(np.int64) - 1
        return TokenTables(
            np.array([1 if each.complement else 2 * each.without_eos for each in self._token_sets], np.uint8),
            within, ids, number[owner], sets, number[self._heads(target)] + 1, number[bounded], most,
            number[exhausted], counts=bool(counts),
        )  # fmt: skip

    def _marks(self) -> NDArray[np.uint8]:
        """The marks of all states."""
        marks = np.zeros(self._states, np.uint8)
        marks[list(self._program.distinct)] = list(self._program.distinct.values())
        return marks

    def _heads(self, targets: NDArray[np.int64]) -> NDArray[np.int64]:
        """The nodes that targets are."""
        together = self._states + len(self._program.moves) + kernels.TOGETHER - targets
        groups = np.where(targets > kernels.TOGETHER, self._states - 1 - targets, together)
        return np.where(targets > 0, targets - 1, groups)

    def _pairs(self) -> _Numbers:
        """Where interiors, token edges and token bounds lead, by state, as nodes, ``int32[2, *]``."""
        program = self._program
        found = [(state, other) for state, others in program.interiors.items() for other in others]
        found += [(state, bound.exhausted) for state, bound in program.token_bounds.items()]
        pairs = np.array(found, np.int64).reshape(-1, 2).T
        if self._token_edges:
            state, _, target = np.array(self._token_edges, np.int64).T
            pairs = np.concatenate([pairs, [state, self._heads(target)]], axis=1)
        return np.ascontiguousarray(pairs, np.int32)
