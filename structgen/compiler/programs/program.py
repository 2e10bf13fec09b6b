"""Pushdown programs over bytes: the readable form of what schemas are lowered to.

A program is a real-time pushdown automaton in Greibach-like form (Greibach 1965): every edge reads one byte, and
then pops, or moves, or calls. A configuration is a state with a stack of states to return to. An edge's
*sequence* of states replaces the state it leaves: all but the last are pushed, the first lowest, and the last
becomes the current one. So ``()`` pops, ``(s,)`` moves to ``s`` and ``(r, s)`` goes to ``s`` and will come back to
``r``. The only move that reads nothing is that a state which *returns* may hand the next byte to the state
below it (a number ends where something follows that is no part of it).

Edges of one state may overlap: each of them is followed, and the configuration becomes a set of stacks. A
program accepts when the text is read and every state on a stack returns, down to an empty stack.

A state may be *like* another one: it takes the bytes that none of its own edges mentions as that one does. (At every
letter of every key of an open object the key may become another one: nearly all edges are the same.)

Counts. A state that is *live* in a loop has a count beside it, on the stack as well. A `CountedEdge` edge sets it to
1 or adds 1, then picks the first state of the sequence by comparing the count with the loop's bounds. A plain move
to a live state keeps the count, and so does pushing one as the first of a sequence; otherwise there is none.
A state that is live in a loop counts in no other loop, and does not hand its count to one.

Registers. In place of a count a state can have a set of up to `MOST_MEMBERS` members, empty where nothing was marked
yet; it is kept and left behind as counts are. A `MarkedEdge` edge adds a member that is not there yet, and tests
which are. (Which names an object has had when they come in any order.)

Tokens. A `TokenEdge` takes one whole token of a set, with bytes or without, in place of its bytes: where a token ends
and the next begins, never within one. (A state has its own alone, not those of the state that it is like.) A token
leads where its bytes lead, and where token edges that take it lead. A `TokenBound` counts tokens: whenever one ends
in the state, and that is not below another one, its count goes up by 1, and at ``most`` the state ``exhausted`` takes
its place. Such a count is kept and left behind as others are, beside the count or set of the state if it is live. An
exhausted state is live in no loop and has no bound. To exhaust a state must take possibilities away and add none:
what an exhausted state does with a byte or a token, the state does too, whatever its counts, and comes to the same
states with the same counts, or to states that are exhausted to those. Texts that are followed by bytes alone
(`Index.match`, a healed prefix) meet no token edge, and count nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from struct import pack
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...runtime.automaton.tables import DEAD, MARK
from ...runtime.pushdown.captures.labels import RuleLabel
from ...runtime.pushdown.tables import MOST_MEMBERS, PAIR
from ...system.properties import branch
from .fragments import FIRST, GIVEN, MOVES, NOTHING, Fragment, Number, numbers_of, put_together

State: TypeAlias = int


class CountedEdge(NamedTuple):
    """How an edge counts, and the state that comes first in its sequence for each outcome.

    Parameters
    ----------
    operation:
        `SET` makes the count 1, `INC` adds 1.
    loop:
        Whose bounds the new count is compared with.
    low, mid, high:
        The state for a count below the minimum, from there to below the maximum, and at the maximum; -1 where the
        edge is dead then. `SET` takes ``low`` whatever the bounds are.
    """

    operation: int
    loop: int
    low: State
    mid: State
    high: State


class Condition(NamedTuple):
    """What a set must be like: from ``low`` to ``high`` of the members in ``mask`` (a bit each) are in it."""

    mask: int = 0
    low: int = 0
    high: int = MOST_MEMBERS


class MarkedEdge(NamedTuple):
    """How an edge changes and tests a set, and the state that comes first in its sequence.

    Parameters
    ----------
    state:
        The first state of the sequence.
    member:
        The member to add; the edge is dead where it is there already. -1 adds none.
    test:
        The edge is dead, too, where the new set does not pass.
    """

    state: State
    member: int = -1
    condition: Condition = Condition()


#: An edge, which reads one byte: its lowest, its highest in the bits from 8 on, and its target in those from 16 on.
Edge: TypeAlias = int

#: In place of a target: these bytes are dead, although the state is like another one that takes them.
REFUSED = 0

#: The target of edges that pop, in every program.
POP = -1

#: The edges of a state that has none, or has them in blocks.
NO_EDGES: tuple[Edge, ...] = ()


def edge_of(low: int, high: int, target: int) -> Edge:
    """An edge that reads a byte from ``low`` to ``high``; see `Program.target`."""
    return target << 16 | high << 8 | low


def bytes_of(edges: Iterable[Edge]) -> set[int]:
    """The bytes that edges read, or refuse."""
    return {byte for edge in edges for byte in range(edge & 0xFF, (edge >> 8 & 0xFF) + 1)}


def in_block(states: NDArray[np.integer], edges: Sequence[Sequence[Edge]]) -> NDArray[np.int32]:
    """The block of the edges of some states."""
    owners = states.repeat(np.fromiter(map(len, edges), np.int64, len(edges)))
    every = np.fromiter(chain.from_iterable(edges), np.int64, len(owners))
    found = np.empty((4, len(owners)), np.int32)
    found[0], found[1], found[2], found[3] = owners, every & 0xFF, every >> 8 & 0xFF, every >> 16
    return found


def packed(numbers: Collection[int]) -> NDArray[np.int32]:
    """Numbers as an array, faster than NumPy makes it."""
    return np.frombuffer(pack(f"{len(numbers)}i", *numbers), np.int32)


class TokenSet(NamedTuple):
    """Tokens by their ids, ascending, each in the vocabulary; or all others. Never empty.

    EOS ids are in no complement and, ``without_eos``, not in the set either: guides know them, indexes do not.
    """

    ids: tuple[int, ...]
    complement: bool = False
    without_eos: bool = False


class TokenEdge(NamedTuple):
    """Takes one token; see the module."""

    tokens: TokenSet
    target: int


class First(NamedTuple):
    """What a state does, for use in other places."""

    edges: Sequence[Edge]
    tokens: Sequence[TokenEdge] = ()


class TokenBound(NamedTuple):
    """So many tokens may end in a state, ``1 <= most``; see the module."""

    most: int
    exhausted: State


@dataclass
class Program:
    """A pushdown program under construction; state numbers are handed out by `state`.

    Edges of a state are in ``edges``, or in ``blocks``, or some here and some there. A block has many of them, also of
    several states, in ``int32[4, edges]``: state, lowest and highest byte, target.

    The target of an edge is 0 where it is dead, 1 plus a state to which it moves, or -1 minus the number of a move of
    another kind. A *move* is a record, 0 for none and else 1 plus its number, and then the sequence behind the state
    that the record has.

    Every state must be able to finish: some bytes or tokens lead from it to a pop or a return. Whoever builds one
    sees to that; the tests' `pushdown_oracle` checks it.

    Some states at the bottom of the stack have ``interiors``: a state for each, and the one behind it. They do with
    every byte as that interior above that other one does. What they decide is found by way of it, and shared as it
    is.

    One that is lowered on demand says from the beginning, in ``reads_tokens`` and ``counts_tokens``, whether any of
    its states will have token edges or bounds. A bound is there as soon as its state is, also where that is open.
    """

    start: State = 0
    edges: list[Sequence[Edge]] = field(default_factory=list)
    returns: set[State] = field(default_factory=set)
    live: dict[State, int] = field(default_factory=dict)  # the loop whose count a state has, or the register; or -1
    loops: list[tuple[int, int]] = field(default_factory=list)  # (minimum, maximum); of a register (-1, its size)
    names: list[str] = field(default_factory=list)
    like: dict[State, State] = field(default_factory=dict)  # the state, itself like none, that one is like; or -1
    blocks: list[NDArray[np.int32]] = field(default_factory=list)
    moves: list[tuple[int, ...]] = field(default_factory=lambda: [(0,)])  # the first one pops
    records: dict[tuple[int, ...], int] = field(default_factory=dict)  # as of `PushdownTables`
    tests: dict[Condition, int] = field(default_factory=dict)  # the first of the rows that each has
    test_rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    token_edges: dict[State, Sequence[TokenEdge]] = field(default_factory=dict)
    token_bounds: dict[State, TokenBound] = field(default_factory=dict)
    interiors: dict[State, tuple[State, State]] = field(default_factory=dict)
    reads_tokens: bool = False
    counts_tokens: bool = False
    #: The marks of states in and around arrays whose items, and objects whose names, must differ; see
    #: `structgen.runtime.pushdown.distinct`.
    distinct: dict[State, int] = field(default_factory=dict)
    #: What is said of the rules that states without edges stand for on the stack; see `runtime.pushdown.captures`.
    labels: dict[State, RuleLabel] = field(default_factory=dict)
    #: What the author of the definition may not expect.
    notes: list[str] = field(default_factory=list)
    _targets: dict[tuple[int, ...], int] = field(default_factory=lambda: {(0,): POP})  # by move
    _copies: list[tuple[Fragment, list[int]]] = field(default_factory=list)  # whose edges are still to be made

    def state(
        self,
        name: str = "",
        edges: Sequence[Edge] = NO_EDGES,
        *,
        returns: bool = False,
        live: int = -1,
        like: State = -1,
    ) -> State:
        """A new state; ``name`` is for whoever reads the program."""
        state = len(self.edges)
        self.edges.append(edges)
        self.names.append(name)
        if returns:
            self.returns.add(state)
        if live >= 0:
            self.live[state] = live
        if like >= 0:
            self.like[state] = like
        return state

    def states(self, name: str, number: int) -> State:
        """So many new states without edges; returns the first."""
        first = len(self.edges)
        self.edges += repeat(NO_EDGES, number)
        self.names += repeat(name, number)
        return first

    def copy(self, fragment: Fragment, *arguments: int) -> State:
        """The state that others lead to in another copy of a fragment, which has edges when all copies `settle`."""
        first = len(self.edges)
        added = [0, first, 0, *arguments]
        self.names += fragment.names
        self.edges += fragment.no_edges
        for state, which, like, of_like in fragment.like:
            self.like[state + added[which]] = like + added[of_like]
        self._copies.append((fragment, added))
        return first + fragment.result

    def settle(self) -> None:
        """Give all copies their edges."""
        if self._copies:
            block, moves = put_together(self._copies, len(self.moves))
            self.blocks.append(block)
            self.moves += map(tuple, moves)
            self._copies = []

    def fragment(self, make: Callable[..., State], arguments: int) -> Fragment:
        """What a function puts into this program, given with so many states, whatever these are.

        The program is for that alone. The function returns the state that others lead to.
        """
        self.settle()
        blocks, moves, given = len(self.blocks), len(self.moves), self.states("", arguments)
        first = given + arguments
        result = make(self, *range(given, first)) - first

        def beside(state: State) -> Number:
            if state < given:
                return state, NOTHING
            return (0, GIVEN + state - given) if state < first else (state - first, FIRST)

        def target(number: int) -> Number:
            if number <= 0:
                return (number + moves, MOVES) if number <= -1 - moves else (number, NOTHING)
            state, added = beside(number - 1)
            return 1 + state, added

        edges = self.columns(given, blocks).T.tolist()
        rows = [[beside(state), (low, NOTHING), (high, NOTHING), target(to)] for state, low, high, to in edges]
        sequences = [[(0, NOTHING), beside(below), beside(above)] for _, below, above in self.moves[moves:]]
        like = [(*beside(state), *beside(other)) for state, other in self.like.items() if state >= given]
        return Fragment(
            self.names[first:], numbers_of(rows), numbers_of(sequences) if sequences else None, like, result
        )

    # -- targets ---------------------------------------------------------------------------------------------

    def target(self, sequence: tuple[State, ...], counted: CountedEdge | MarkedEdge | None = None) -> int:
        """The target of an edge with a sequence; ``counted`` has the state before it."""
        if counted is not None:
            return self._target((1 + self._record(counted), *sequence))
        return 1 + sequence[0] if len(sequence) == 1 else self._target((0, *sequence))

    def _target(self, move: tuple[int, ...]) -> int:
        found = self._targets.get(move)
        if found is None:
            self.moves.append(move)
            found = self._targets[move] = -len(self.moves)
        return found

    def targets(self, moves: Iterable[tuple[int, ...]]) -> list[int]:
        """The targets that stand for some moves."""
        return [*map(self._target, moves)]

    def _record(self, counted: CountedEdge | MarkedEdge) -> int:
        if isinstance(counted, CountedEdge):
            return self.records.setdefault(counted, len(self.records))
        record = (MARK, self._test(counted.condition), counted.state, counted.member, DEAD)
        return self.records.setdefault(record, len(self.records))

    def _test(self, condition: Condition) -> int:
        test = self.tests.get(condition)
        if test is None:
            test = self.tests[condition] = len(self.test_rows)
            self.test_rows += _words(condition)
        return test

    def sequence(self, target: int) -> tuple[State, ...]:
        """The sequence of a target; of one that counts, without its first state."""
        return self.move(target)[1:]

    def move(self, target: int) -> tuple[int, ...]:
        """The move that a target stands for."""
        return (0, target - 1) if target > 0 else self.moves[-1 - target]

    def above(self, state: State, target: int) -> int:
        """A target that does not count, above a state more."""
        return self.target((state, *self.sequence(target)))

    def all_above(self, state: State, edges: Iterable[Edge]) -> list[Edge]:
        """Edges that do not count, with a state more below what they lead to."""
        return [
            (1 + state if edge >> 16 == POP else self.above(state, edge >> 16)) << 16 | edge & 0xFFFF for edge in edges
        ]

    # -- edges -----------------------------------------------------------------------------------------------

    def edge(self, state: State, low: int, high: int, *sequence: State) -> None:
        """An edge that does not count."""
        self.edges[state] = *self.edges[state], edge_of(low, high, self.target(sequence))

    def token_edge(self, state: State, tokens: TokenSet, *sequence: State) -> None:
        """An edge that takes a token."""
        self.give(state, First((), (TokenEdge(tokens, self.target(sequence)),)))

    def give(self, state: State, first: First) -> None:
        """More edges of a state."""
        own = self.edges[state]
        self.edges[state] = (*own, *first.edges) if own else first.edges
        if first.tokens:
            self.token_edges[state] = *self.token_edges.get(state, ()), *first.tokens

    def columns(self, first: State = 0, block: int = 0, others: Sequence[State] = ()) -> NDArray[np.int32]:
        """``int32[4, edges]``: the edges of states from one on, and of others, and those in blocks from a number on."""
        states = np.arange(first - len(others), len(self.edges))
        states[: len(others)] = others
        edges = [*map(self.edges.__getitem__, others), *self.edges[first:]]
        return np.concatenate([in_block(states, edges), *self.blocks[block:]], axis=1)

    def first(self, state: State, begin: int = 0) -> First:
        """What a state does; blocks before number ``begin`` have no edges of it."""
        return First(self.edges_at(state, begin), self.token_edges.get(state, ()))

    def edges_at(self, state: State, begin: int = 0) -> list[Edge]:
        """All edges of a state, with those that it has by being like another one, but for refused bytes."""
        edges = self._own_edges(state, begin)
        if self.like.get(state, -1) >= 0:
            known = bytes_of(edges)
            for edge in self._own_edges(self.like[state], begin):
                edges += (edge_of(byte, byte, edge >> 16) for byte in sorted(bytes_of([edge]) - known))
        return [edge for edge in edges if edge >> 16 != REFUSED]

    def _own_edges(self, state: State, begin: int) -> list[Edge]:
        found = [block[1:, block[0] == state].T.tolist() for block in self.blocks[begin:]]
        return [*self.edges[state], *(edge_of(*edge) for edge in chain.from_iterable(found))]

    # -- whole programs --------------------------------------------------------------------------------------

    def loop(self, minimum: int, maximum: int) -> int:
        """Bounds to count against; ``1 <= maximum`` and ``minimum <= maximum``."""
        self.loops.append((minimum, maximum))
        return len(self.loops) - 1

    def register(self, size: int) -> int:
        """A register for sets of the members 0 to ``size - 1``; ``1 <= size <= MOST_MEMBERS``."""
        return self.loop(-1, size)

    def leave_out_empty(self) -> bool:
        """Begin with what reads something, so that the empty text is none any more. False where there is no other."""
        edges = self.edges_at(self.start)
        self.start = self.state(self.names[self.start], edges)
        return bool(edges)

    def append(self, other: Program) -> State:
        """Take over another program, its states and loops renumbered; returns what is its start here."""
        by, loops = len(self.edges), len(self.loops)
        tests = {row: self._test(condition) for condition, row in other.tests.items()}
        records = [0]
        for operation, which, *states in other.records:
            moved = [state + by if state >= 0 else -1 for state in states]
            is_mark = operation == MARK
            record = (MARK, tests[which], moved[0], *states[1:]) if is_mark else (operation, which + loops, *moved)
            records.append(1 + self.records.setdefault(record, len(self.records)))
        targets = [self._target((records[record], *(s + by for s in sequence))) for record, *sequence in other.moves]
        columns = other.columns()
        columns[0] += by
        columns[3] = _moved(columns[3], by, targets)
        self.states("", len(other.edges))
        self.blocks.append(columns)
        self.names[by:] = other.names
        self.returns |= {state + by for state in other.returns}
        self.live |= {state + by: loop + loops for state, loop in other.live.items()}
        self.like |= {state + by: like + by for state, like in other.like.items()}
        self.loops += other.loops
        for state, tokens in other.token_edges.items():
            found = _moved(np.array([edge.target for edge in tokens]), by, targets).tolist()
            self.token_edges[state + by] = [
                TokenEdge(edge.tokens, target) for edge, target in zip(tokens, found, strict=True)
            ]
        self.distinct |= {state + by: mark for state, mark in other.distinct.items()}
        return other.start + by

    def continued(self) -> Program:
        """A program to go on with from here. The two share the edges of the states so far, which are final."""
        return branch(self)


def _moved(found: NDArray[np.integer], by: int, targets: list[int]) -> NDArray[np.integer]:
    """Targets in a program whose states are so many higher; ``targets`` are those of the moves."""
    return np.where(found > 0, found + by, np.array([*targets, 0])[np.maximum(-1 - found, -1)])


def _words(test: Condition) -> list[tuple[int, int, int, int]]:
    """The bounds of a test, and its mask in words of 31 bits; see `PushdownTables.tests`."""
    masks = [test.mask >> begin for begin in range(0, max(1, test.mask.bit_length()), PAIR)]
    words = [(mask & 0x7FFFFFFF, mask >> 31 & 0x7FFFFFFF) for mask in masks]
    return [(test.low, test.high, *words[0]), *[(-1, 0, *each) for each in words[1:]]]
