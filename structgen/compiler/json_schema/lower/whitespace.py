"""The text between values: brackets, commas and colons, with the whitespace that a `TextOptions` lets stand there.

Two ways to write, one interface: `Gaps`, where a pattern says what may stand wherever JSON allows whitespace, and
`Indented`, the fixed lines of ``json.dumps(indent=...)``. An ``inside`` is a state whose edges begin a member or an
item, without the whitespace before it. ``level`` is the nesting depth of the brackets, 0 for the outermost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ....errors import UnsupportedError
from ....system.properties import branch, remembered
from ...automata.edge_lists import EdgeLists
from ...programs.fragments import MOST_FRAGMENTS, Fragments
from ...programs.program import NO_EDGES, POP, Condition, Edge, First, MarkedEdge, Program, State, edge_of
from .embed import embedded

SPACE, NEWLINE = b" \n"
WHITESPACE = " \t\n\r"


#: What is written between items or members, or behind names: a text, or a pattern's automaton, without counts.
Separator: TypeAlias = str | EdgeLists

COMMON: tuple[Separator, Separator] = (",", ":")


#: A text as a separator: the bytes before its mark, last first, the mark, and the bytes behind it, last first.
_Parts: TypeAlias = tuple[bytes, int, bytes]


class Conditions(NamedTuple):
    """What the set of a tail that is live in a register must be like for a comma, and for the closing bracket."""

    more: Condition
    end: Condition


class Whitespace(ABC):
    """How the pieces of arrays and objects are joined.

    ``separators``: what is written between items or members, and behind names.
    """

    def __init__(self, program: Program, separators: tuple[Separator, Separator] = COMMON) -> None:
        self._program = program
        self._are_texts = all(isinstance(each, str) for each in separators)
        self._item, self._key = (
            _parts(each) if isinstance(each, str) else embedded(program, each, "separator") for each in separators
        )
        #: The states behind names.
        self.colons: list[State] = []
        #: What is copied when it is there once; None where that depends on the level.
        self.fragments: Fragments | None = None

    def continued(self, program: Program) -> Whitespace:
        """One to go on with from here, for a program that goes on from this one."""
        found = branch(self)
        found._program = program
        return found

    def put_above(self, state: State, tail: State, edges: tuple[Edge, ...]) -> None:
        """Give a state edges that do not count, above a tail."""
        self._put(Whitespace._above, (edges,), (state, tail), edges)

    def _above(self, edges: tuple[Edge, ...], state: State, tail: State) -> State:
        self._program.give(state, First(self._program.all_above(tail, edges)))
        return state

    def _put(
        self,
        make: Callable[..., State],
        options: tuple[object, ...],
        given: tuple[State, ...],
        edges: tuple[Edge, ...] = NO_EDGES,
    ) -> State:
        """The state that a method makes with some options, and with other states, which can be any.

        A copy, unless ``edges`` among the options lead to states that are not in all programs with these fragments,
        or there are many fragments.
        """
        fragments = self.fragments
        if fragments is None or (edges and not POP <= min(edges) >> 16 <= max(edges) >> 16 <= fragments.common):
            return make(self, *options, *given)
        key = make, options, len(given)
        known = fragments.known.get(key)
        if known is None:
            if len(fragments.known) >= MOST_FRAGMENTS:
                return make(self, *options, *given)
            known = fragments.known[key] = self._program.continued().fragment(
                lambda program, *given: make(self.continued(program), *options, *given), len(given)
            )
        return self._program.copy(known, *given)

    @abstractmethod
    def opening(self, start: State, inside: State | None, close: int | None, level: int) -> None:
        """Give the state after an opening bracket its edges; ``close`` is the bracket that may follow at once."""

    @remembered
    def tail(
        self,
        inside: State | None,
        close: int | None,
        level: int,
        live: int = -1,
        conditions: Conditions | None = None,
        mark: int = 0,
    ) -> State:
        """A state after a member or an item: a comma and ``inside``, or the closing bracket.

        ``live`` is the loop or register of the state; of a register, with ``conditions``. ``mark`` is that of
        `structgen.runtime.pushdown.distinct`, where items or names must differ.
        """
        given = () if inside is None else (inside,)
        if live < 0:
            tail = self._put(Whitespace._new_tail, (close, self._matters(level)), given)
        else:
            tail = self._new_tail(close, level, *given, live=live, conditions=conditions)
        if mark and not self._are_texts:
            raise UnsupportedError(
                "items and names are compared as they are written, where separators are those of JSON",
                remedy="Leave uniqueItems and unique_names out, or have commas and colons as separators.",
            )
        if mark:
            self._program.distinct[tail] = mark
        return tail

    def tail_before(self, edge: Edge, close: int | None, level: int) -> State:
        """A tail before an item or a member that one edge begins."""
        return self._put(Whitespace._new_tail_before, (close, self._matters(level), edge & 0xFF), ((edge >> 16) - 1,))

    def _matters(self, level: int) -> int:
        """The level where it says how lines are indented, which is where nothing is copied."""
        return level if self.fragments is None else 0

    def _new_tail_before(self, close: int | None, level: int, byte: int, to: int) -> State:
        return self._new_tail(close, level, self._program.state("member", (edge_of(byte, byte, 1 + to),)))

    def _new_tail(
        self, close: int | None, level: int, *inside: State, live: int = -1, conditions: Conditions | None = None
    ) -> State:
        edges: list[Edge] = []
        tail = self._program.state("tail", edges, live=live)
        if close is not None:
            byte, end = self._closing(close, level, conditions is not None)
            edges += self._under([edge_of(byte, byte, end)], conditions and conditions.end)
        for each in inside:
            then = self._line(level + 1, each)
            edges += self._separating(self._item, then, live, conditions and conditions.more)
        return self._behind_gap(tail, edges)

    def _separating(
        self, text: _Parts | list[Edge], then: State, live: int = -1, condition: Condition | None = None
    ) -> list[Edge]:
        """The edges that begin a separator; where there is a condition, that is one on a live register."""
        if isinstance(text, list):
            return self._under(self._program.all_above(then, text), condition)
        before, mark, after = text
        for byte in after:
            then = self._read(byte, then, "separator")
        edges = self._under([edge_of(mark, mark, 1 + then)], condition)
        for byte in before:
            edges = [edge_of(byte, byte, 1 + self._program.state("separator", edges, live=live))]
        return edges

    def _under(self, edges: list[Edge], condition: Condition | None) -> list[Edge]:
        """Edges under a condition on the set of a register that their state is live in, if there is one."""
        if condition is None:
            return edges
        found = []
        for edge in edges:
            first, *others = self._program.sequence(edge >> 16)
            target = self._program.target(tuple(others), MarkedEdge(first, condition=condition))
            found.append(target << 16 | edge & 0xFFFF)
        return found

    @remembered
    def _read(self, byte: int, state: State, name: str) -> State:
        """A state that reads a byte and goes on to ``state``."""
        return self._program.state(name, [edge_of(byte, byte, 1 + state)], live=self._program.live.get(state, -1))

    def colon(self, value: State) -> State:
        """The state after a key: a colon, then ``value``."""
        colon = self._put(Whitespace._new_colon, (), (value,))
        self.colons.append(colon)
        return colon

    def colon_above(self, edges: tuple[Edge, ...], tail: State) -> State:
        """The same before edges that do not count, above a tail."""
        colon = self._put(Whitespace._new_colon_above, (edges,), (tail,), edges)
        self.colons.append(colon)
        return colon

    def _new_colon_above(self, edges: tuple[Edge, ...], tail: State) -> State:
        return self._new_colon(self._above(edges, self._program.state("value"), tail))

    def _new_colon(self, value: State) -> State:
        edges: list[Edge] = []
        colon = self._program.state("colon", edges)
        edges += self._separating(self._key, self.spaced_value(value))
        return self._behind_gap(colon, edges)

    @remembered
    def spaced(self, state: State) -> State:
        """The state before a comma, a colon, a closing bracket or a tag."""
        return self._behind_gap(state)

    @abstractmethod
    def _behind_gap(self, state: State, edges: Sequence[Edge] = NO_EDGES) -> State:
        """The same of a state that is asked about once; ``edges`` are all that it has, if they are there."""

    @abstractmethod
    def spaced_value(self, value: State) -> State:
        """The state before a member's value, behind the separator."""

    @abstractmethod
    def _line(self, level: int, inside: State) -> State:
        """The state after a comma."""

    @abstractmethod
    def _closing(self, close: int, level: int, is_conditional: bool) -> tuple[int, int]:
        """The byte and the target that end an array or an object; where they are conditional that is no pop."""


class Gaps(Whitespace):
    """Whitespace by a pattern: a state with a gap before it is like that state, but for the whitespace.

    Parameters
    ----------
    program:
        Where the states go.
    gap:
        The pattern's automaton, without counts.
    separators:
        As of `Whitespace`.
    """

    def __init__(self, program: Program, gap: EdgeLists, separators: tuple[Separator, Separator] = COMMON) -> None:
        super().__init__(program, separators)
        self._skips = gap.accepting[gap.start]
        self._first = embedded(program, gap, "whitespace")
        self.fragments = Fragments(len(program.edges))
        self._end: State | None = None

    def _behind_gap(self, state: State, edges: Sequence[Edge] = NO_EDGES) -> State:
        if not self._first:
            return state
        program = self._program
        like = state if self._skips else -1
        gap = program.all_above(state, self._first)
        if edges and self._skips and min(edge & 0xFF for edge in edges) > SPACE:
            gap, like = [*gap, *edges], -1
        return program.state(program.names[state] + " gap", gap, live=program.live.get(state, -1), like=like)

    def opening(self, start: State, inside: State | None, close: int | None, level: int) -> None:
        """See `Whitespace`."""
        self._put(Gaps._open, (close,), (start,) if inside is None else (start, inside))

    def _open(self, close: int | None, start: State, *inside: State) -> State:
        program = self._program
        then, end = inside[0] if inside else -1, NO_EDGES if close is None else (edge_of(close, close, POP),)
        if self._skips and inside:
            program.like[start] = then
        if self._first and end:
            then = program.state("open", end, like=then)
        program.edges[start] = *(end if self._skips else ()), *program.all_above(then, self._first)
        return start

    def spaced_value(self, value: State) -> State:
        """See `Whitespace`."""
        return self.spaced(value)

    def _line(self, level: int, inside: State) -> State:
        edges = self._program.edges[inside]
        return self._behind_gap(inside, edges) if edges else self.spaced(inside)

    def _closing(self, close: int, level: int, is_conditional: bool) -> tuple[int, int]:
        if is_conditional and self._end is None:  # a state that leaves whatever comes to the one below
            self._end = self._program.state("end", returns=True)
        return close, POP if self._end is None or not is_conditional else 1 + self._end


class TagGaps(Gaps):
    """The same around members in tags, which no byte begins or ends: ``close`` only says that no more need come."""

    def opening(self, start: State, inside: State | None, close: int | None, level: int) -> None:
        """See `Whitespace`."""
        program = self._program
        if self._skips:
            if inside is not None:
                program.like[start] = inside
            program.returns |= set() if close is None else {start}
        if self._first:
            then = inside
            if then is None or close is not None:
                then = self._after_gap(inside, program.live.get(start, -1))
            program.edges[start] = program.all_above(then, self._first)

    @remembered
    def _after_gap(self, inside: State | None, live: int) -> State:
        return self._program.state("tail", returns=True, live=live, like=-1 if inside is None else inside)

    @remembered
    def tail(
        self,
        inside: State | None,
        close: int | None,
        level: int,
        live: int = -1,
        conditions: Conditions | None = None,
        mark: int = 0,
    ) -> State:
        """See `Whitespace`; there can be no conditions, nor items or names that must differ."""
        tail = self._program.state("tail", live=live)
        self.opening(tail, inside, close, level)
        return tail

    def padded(self, first: First) -> First:
        """Edges, and the same behind whitespace."""
        if not self._first:
            return first
        program = self._program
        then = program.state("padded")
        program.give(then, first)
        behind = program.all_above(then, self._first)
        return First([*first.edges, *behind], first.tokens) if self._skips else First(behind)


class Indented(Whitespace):
    """The lines of ``json.dumps(indent=...)``; empty brackets have nothing between them."""

    def __init__(self, program: Program, indent: int, separators: tuple[Separator, Separator] = (",", ": ")) -> None:
        super().__init__(program, separators)
        self._indent = indent

    def _behind_gap(self, state: State, edges: Sequence[Edge] = NO_EDGES) -> State:
        return state

    def spaced_value(self, value: State) -> State:
        """See `Whitespace`."""
        return value

    def _indented(self, level: int, state: State) -> State:
        """A state that reads a line's indentation and goes on to ``state``."""
        for _ in range(self._indent * level):
            state = self._read(SPACE, state, "indentation")
        return state

    def _line(self, level: int, inside: State) -> State:
        return self._read(NEWLINE, self._indented(level, inside), "line")

    def _closing(self, close: int, level: int, is_conditional: bool) -> tuple[int, int]:
        return NEWLINE, 1 + self._indented(level, self._bracket(close))

    @remembered
    def _bracket(self, close: int) -> State:
        return self._program.state("close", [edge_of(close, close, POP)])

    def opening(self, start: State, inside: State | None, close: int | None, level: int) -> None:
        """See `Whitespace`."""
        if close is not None:
            self._program.edge(start, close, close)
        if inside is not None:
            self._program.edge(start, NEWLINE, NEWLINE, self._indented(level + 1, inside))


def _parts(text: str) -> _Parts:
    """The parts of a separator."""
    mark = text.strip(WHITESPACE)
    before, _, after = text.encode().partition(mark.encode())
    return before[::-1], ord(mark), after[::-1]
