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

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...runtime.pushdown.captures.labels import RuleLabel
from ...runtime.pushdown.tables import MOST_MEMBERS

State: TypeAlias = int

#: In place of a sequence: these bytes are dead, although the state is like another one that takes them.
REFUSED: tuple[State, ...] = (-1,)


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
    register:
        What `Program.register` gave.
    state:
        The first state of the sequence.
    member:
        The member to add; the edge is dead where it is there already. -1 adds none.
    test:
        The edge is dead, too, where the new set does not pass.
    """

    register: int
    state: State
    member: int = -1
    condition: Condition = Condition()


class Edge(NamedTuple):
    """Reads one byte from ``low`` to ``high``; see the module for ``sequence``."""

    low: int
    high: int
    sequence: tuple[State, ...]
    counted: CountedEdge | MarkedEdge | None = None  # its state comes before the sequence's


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
    sequence: tuple[State, ...]
    counted: CountedEdge | MarkedEdge | None = None  # its state comes before the sequence's


class First(NamedTuple):
    """What a state does, for use in other places."""

    edges: list[Edge]
    tokens: Sequence[TokenEdge] = ()


class TokenBound(NamedTuple):
    """So many tokens may end in a state, ``1 <= most``; see the module."""

    most: int
    exhausted: State


def _column() -> array[int]:
    return array("i")


@dataclass
class PlainEdges:
    """Edges that move to one state and do not count, in columns: nearly all of a large program.

    They are states, the lowest and the highest byte that each takes, and the state that it leads to, or -1 where
    these bytes are refused.
    """

    states: array[int] = field(default_factory=_column)
    lows: array[int] = field(default_factory=_column)
    highs: array[int] = field(default_factory=_column)
    targets: array[int] = field(default_factory=_column)

    def add(self, edges: NDArray[np.integer]) -> None:
        """More edges, ``int[4, edges]``: state, lowest and highest byte, target."""
        for column, found in zip((self.states, self.lows, self.highs, self.targets), edges, strict=True):
            column.frombytes(found.astype(np.int32).tobytes())

    def columns(self, begin: int = 0) -> NDArray[np.int64]:
        """``int64[4, edges]`` from edge ``begin`` on; the last is 1 plus the target."""
        columns = self.states, self.lows, self.highs, self.targets
        found = np.array([column[begin:] for column in columns], np.int64)
        found[3] += 1
        return found

    def append(self, other: PlainEdges, by: int) -> None:
        """The edges of other states, whose numbers are so many higher here."""
        states, low, high, targets = other.columns()
        self.add(np.stack([states + by, low, high, np.where(targets > 0, targets + by, targets) - 1]))

    def copy(self) -> PlainEdges:
        """The same, to go on with."""
        return PlainEdges(self.states[:], self.lows[:], self.highs[:], self.targets[:])


@dataclass
class Program:
    """A pushdown program under construction; state numbers are handed out by `state`.

    Edges of a state are in ``edges``, or in ``plain``, or some here and some there.

    Every state must be able to finish: some bytes or tokens lead from it to a pop or a return. Whoever builds one
    sees to that; the tests' `pushdown_oracle` checks it.

    Some states at the bottom of the stack have ``interiors``: a state for each, and the one behind it. They do with
    every byte as that interior above that other one does. What they decide is found by way of it, and shared as it
    is.

    One that is lowered on demand says from the beginning, in ``reads_tokens`` and ``counts_tokens``, whether any of
    its states will have token edges or bounds. A bound is there as soon as its state is, also where that is open.
    """

    start: State = 0
    edges: list[list[Edge]] = field(default_factory=list)
    returns: list[bool] = field(default_factory=list)
    live: list[int] = field(default_factory=list)  # the loop whose count the state has, or the register, or -1
    loops: list[tuple[int, int]] = field(default_factory=list)  # (minimum, maximum); of a register (-1, its size)
    names: list[str] = field(default_factory=list)
    like: list[State] = field(default_factory=list)  # the state that it is like, itself like none; or -1
    plain: PlainEdges = field(default_factory=PlainEdges)
    token_edges: dict[State, list[TokenEdge]] = field(default_factory=dict)
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

    def state(self, name: str = "", *, returns: bool = False, live: int = -1, like: State = -1) -> State:
        """A new state without edges; ``name`` is for whoever reads the program."""
        self.edges.append([])
        self.returns.append(returns)
        self.live.append(live)
        self.names.append(name)
        self.like.append(like)
        return len(self.edges) - 1

    def states(self, name: str, number: int) -> State:
        """So many new states without edges; returns the first."""
        first = len(self.edges)
        self.edges.extend([] for _ in range(number))
        self.returns.extend(repeat(False, number))
        self.live.extend(repeat(-1, number))
        self.names.extend(repeat(name, number))
        self.like.extend(repeat(-1, number))
        return first

    def edge(self, state: State, low: int, high: int, *sequence: State) -> None:
        """An edge that does not count."""
        self.edges[state].append(Edge(low, high, sequence))

    def token_edge(self, state: State, tokens: TokenSet, *sequence: State) -> None:
        """An edge that takes a token."""
        self.token_edges.setdefault(state, []).append(TokenEdge(tokens, sequence))

    def give(self, state: State, first: First) -> None:
        """More edges of a state."""
        self.edges[state] += first.edges
        if first.tokens:
            self.token_edges[state] = [*self.token_edges.get(state, ()), *first.tokens]

    def loop(self, minimum: int, maximum: int) -> int:
        """Bounds to count against; ``1 <= maximum`` and ``minimum <= maximum``."""
        self.loops.append((minimum, maximum))
        return len(self.loops) - 1

    def register(self, size: int) -> int:
        """A register for sets of the members 0 to ``size - 1``; ``1 <= size <= MOST_MEMBERS``."""
        self.loops.append((-1, size))
        return len(self.loops) - 1

    def edges_at(self, state: State) -> list[Edge]:
        """All edges of a state, with those that it has by being like another one, but for refused bytes."""
        edges = self._own_edges(state)
        if self.like[state] >= 0:
            known = {byte for edge in edges for byte in range(edge.low, edge.high + 1)}
            for edge in self._own_edges(self.like[state]):
                others = [byte for byte in range(edge.low, edge.high + 1) if byte not in known]
                edges += (edge._replace(low=byte, high=byte) for byte in others)
        return [edge for edge in edges if edge.sequence != REFUSED]

    def _own_edges(self, state: State) -> list[Edge]:
        plain = self.plain
        if state not in plain.states:
            return self.edges[state][:]
        columns = zip(plain.states, plain.lows, plain.highs, plain.targets, strict=True)
        return self.edges[state] + [Edge(low, high, (there,)) for here, low, high, there in columns if here == state]

    def leave_out_empty(self) -> bool:
        """Begin with what reads something, so that the empty text is none any more. False where there is no other."""
        edges = self.edges_at(self.start)
        self.start = self.state(self.names[self.start])
        self.edges[self.start] = edges
        return bool(edges)

    def append(self, other: Program) -> State:
        """Take over another program, its states and loops renumbered; returns what is its start here."""
        by, loops = len(self.edges), len(self.loops)
        sequences, counts = _Sequences(by), _Counts(by, loops)
        self.edges += [
            [Edge(low, high, sequences[sequence], counts[counted]) for low, high, sequence, counted in edges]
            for edges in other.edges
        ]
        self.returns += other.returns
        self.live += [loop + loops if loop >= 0 else -1 for loop in other.live]
        self.loops += other.loops
        self.names += other.names
        self.like += [state + by if state >= 0 else -1 for state in other.like]
        self.plain.append(other.plain, by)
        for state, tokens in other.token_edges.items():
            self.token_edges[state + by] = [
                TokenEdge(edge.tokens, sequences[edge.sequence], counts[edge.counted]) for edge in tokens
            ]
        self.distinct |= {state + by: mark for state, mark in other.distinct.items()}
        return other.start + by

    def continued(self) -> Program:
        """A program to go on with from here. The two share the edges of the states so far, which are final."""
        return Program(
            self.start, self.edges[:], self.returns[:], self.live[:], self.loops[:], self.names[:], self.like[:],
            self.plain.copy(), {state: edges[:] for state, edges in self.token_edges.items()},
            self.token_bounds.copy(), self.interiors.copy(), self.reads_tokens, self.counts_tokens,
            self.distinct.copy(), self.labels.copy(),
        )  # fmt: skip


class _Sequences(dict[tuple[State, ...], tuple[State, ...]]):
    """The sequences of a program that becomes part of another one, by what they were."""

    def __init__(self, by: int) -> None:
        super().__init__({REFUSED: REFUSED})
        self._by = by

    def __missing__(self, sequence: tuple[State, ...]) -> tuple[State, ...]:
        found = self[sequence] = tuple([state + self._by for state in sequence])
        return found


_Counted: TypeAlias = "CountedEdge | MarkedEdge | None"


class _Counts(dict[_Counted, _Counted]):
    """How the edges of a program that becomes part of another one count, by how they did."""

    def __init__(self, by: int, loops: int) -> None:
        super().__init__({None: None})
        self._by, self._loops = by, loops

    def __missing__(self, counted: CountedEdge | MarkedEdge) -> CountedEdge | MarkedEdge:
        by, loops = self._by, self._loops
        found: CountedEdge | MarkedEdge
        if isinstance(counted, CountedEdge):
            states = (state + by if state >= 0 else -1 for state in counted[2:])
            found = CountedEdge(counted.operation, counted.loop + loops, *states)
        else:
            found = counted._replace(register=counted.register + loops, state=counted.state + by)
        self[counted] = found
        return found
