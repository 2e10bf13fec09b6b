"""The text between values: brackets, commas and colons, with the whitespace that a `TextOptions` lets stand there.

Two ways to write, one interface: `Gaps`, where a pattern says what may stand wherever JSON allows whitespace, and
`Indented`, the fixed lines of ``json.dumps(indent=...)``. An ``inside`` is a state whose edges begin a member or an
item, without the whitespace before it. ``level`` is the nesting depth of the brackets, 0 for the outermost.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...automata.edge_lists import EdgeLists
from ...programs.program import Condition, Edge, MarkedEdge, Program, State

COLON, COMMA, SPACE, NEWLINE = b":, \n"


class Conditions(NamedTuple):
    """What the set of a tail that is live in a register must be like for a comma, and for the closing bracket."""

    more: Condition
    end: Condition


class Whitespace(Protocol):
    """How the pieces of arrays and objects are joined."""

    def opening(self, start: State, inside: State | None, close: int | None, level: int) -> None:
        """Give the state after an opening bracket its edges; ``close`` is the bracket that may follow at once."""

    def tail(
        self,
        inside: State | None,
        close: int | None,
        level: int,
        live: int = -1,
        conditions: Conditions | None = None,
    ) -> State:
        """A state after a member or an item: a comma and ``inside``, or the closing bracket.

        ``live`` is the loop or register of the state; of a register, with ``conditions``.
        """

    def colon(self, value: State) -> State:
        """The state after a key: a colon, then ``value``."""


class Gaps:
    """Whitespace by a pattern: a state with a gap before it is like that state, but for the whitespace.

    Parameters
    ----------
    program:
        Where the states go.
    gap:
        The pattern's automaton, without counts.
    """

    def __init__(self, program: Program, gap: EdgeLists) -> None:
        self._program = program
        self._skips = gap.accepting[gap.start]
        self._gapped: dict[State, State] = {}
        self._colons: dict[State, State] = {}
        self._tails: dict[tuple[State | None, int | None, int, Conditions | None], State] = {}
        self._end: State | None = None
        self._first = self._embed(gap)

    def _embed(self, gap: EdgeLists) -> list[Edge]:
        """The automaton's states, which return, and its first edges; popping where nothing can follow."""
        program = self._program
        entered = {target for edges in gap.edges for _, _, target in edges}
        moves: list[tuple[State, ...]] = [
            (program.state("whitespace", returns=gap.accepting[q]),) if edges and q in entered else ()
            for q, edges in enumerate(gap.edges)
        ]
        for q, edges in enumerate(gap.edges):
            if moves[q]:
                program.edges[moves[q][0]].extend(Edge(low, high, moves[target]) for low, high, target in edges)
        return [Edge(low, high, moves[target]) for low, high, target in gap.edges[gap.start]]

    def _after_gap(self, state: State) -> State:
        """A state that reads a gap and then what ``state`` reads."""
        if not self._first:
            return state
        known = self._gapped.get(state)
        if known is None:
            program = self._program
            known = self._gapped[state] = program.state(program.names[state] + " gap", live=program.live[state])
            self._begin_with_gap(known, state)
        return known

    def _begin_with_gap(self, gapped: State, state: State) -> None:
        program = self._program
        program.like[gapped] = state if self._skips else -1
        program.edges[gapped] = [Edge(e.low, e.high, (state, *e.sequence)) for e in self._first]

    def opening(self, start: State, inside: State | None, close: int | None, level: int) -> None:
        """See `Whitespace`."""
        program = self._program
        then = inside
        if then is None or close is not None:
            then = program.state("open")
            if close is not None:
                program.edge(then, close, close)
            if inside is not None:
                program.edges[then].extend(program.edges[inside])
        if self._first:
            self._begin_with_gap(start, then)
        else:
            program.edges[start] = list(program.edges[then])

    def tail(
        self,
        inside: State | None,
        close: int | None,
        level: int,
        live: int = -1,
        conditions: Conditions | None = None,
    ) -> State:
        """See `Whitespace`."""
        key = (inside, close, live, conditions)
        known = self._tails.get(key)
        if known is None:
            program = self._program
            bare = program.state("tail", live=live)
            if close is not None:
                end = () if conditions is None else (self._ended(),)
                program.edges[bare].append(_edge(close, end, live, conditions and conditions.end))
            if inside is not None:
                more = (self._after_gap(inside),)
                program.edges[bare].append(_edge(COMMA, more, live, conditions and conditions.more))
            known = self._tails[key] = self._after_gap(bare)
        return known

    def _ended(self) -> State:
        """A state that leaves whatever comes to the one below: what a conditional edge pops by."""
        if self._end is None:
            self._end = self._program.state("end", returns=True)
        return self._end

    def colon(self, value: State) -> State:
        """See `Whitespace`."""
        known = self._colons.get(value)
        if known is None:
            bare = self._program.state("colon")
            self._program.edge(bare, COLON, COLON, self._after_gap(value))
            known = self._colons[value] = self._after_gap(bare)
        return known


class Indented:
    """The lines of ``json.dumps(indent=...)``; empty brackets have nothing between them."""

    def __init__(self, program: Program, indent: int) -> None:
        self._program = program
        self._indent = indent
        self._lines: dict[tuple[int, State], State] = {}
        self._closings: dict[tuple[int, int], State] = {}
        self._colons: dict[State, State] = {}
        self._tails: dict[tuple[State | None, int | None, int, int, Conditions | None], State] = {}

    def _indented(self, level: int, state: State) -> State:
        """A state that reads a line's indentation and goes on to ``state``."""
        program = self._program
        for width in range(1, self._indent * level + 1):
            known = self._lines.get((width, state))
            if known is None:
                known = self._lines[width, state] = program.state("indentation", live=program.live[state])
                program.edge(known, SPACE, SPACE, self._lines.get((width - 1, state), state))
        return self._lines.get((self._indent * level, state), state)

    def _line(self, level: int, state: State) -> State:
        """A state that reads a line's end, the next one's indentation, and goes on to ``state``."""
        program = self._program
        known = self._lines.get((-1 - level, state))
        if known is None:
            known = self._lines[-1 - level, state] = program.state("line", live=program.live[state])
            program.edge(known, NEWLINE, NEWLINE, self._indented(level, state))
        return known

    def _closing(self, close: int, level: int) -> State:
        """A state that reads the indentation before a closing bracket and the bracket."""
        known = self._closings.get((close, level))
        if known is None:
            bracket = self._program.state("close")
            self._program.edge(bracket, close, close)
            known = self._closings[close, level] = self._indented(level, bracket)
        return known

    def opening(self, start: State, inside: State | None, close: int | None, level: int) -> None:
        """See `Whitespace`."""
        if close is not None:
            self._program.edge(start, close, close)
        if inside is not None:
            self._program.edge(start, NEWLINE, NEWLINE, self._indented(level + 1, inside))

    def tail(
        self,
        inside: State | None,
        close: int | None,
        level: int,
        live: int = -1,
        conditions: Conditions | None = None,
    ) -> State:
        """See `Whitespace`."""
        key = (inside, close, level, live, conditions)
        known = self._tails.get(key)
        if known is None:
            program = self._program
            known = self._tails[key] = program.state("tail", live=live)
            if close is not None:
                end = (self._closing(close, level),)
                program.edges[known].append(_edge(NEWLINE, end, live, conditions and conditions.end))
            if inside is not None:
                more = (self._line(level + 1, inside),)
                program.edges[known].append(_edge(COMMA, more, live, conditions and conditions.more))
        return known

    def colon(self, value: State) -> State:
        """See `Whitespace`."""
        known = self._colons.get(value)
        if known is None:
            program = self._program
            space = program.state("space")
            program.edge(space, SPACE, SPACE, value)
            known = self._colons[value] = program.state("colon")
            program.edge(known, COLON, COLON, space)
        return known


def _edge(byte: int, sequence: tuple[State, ...], register: int, condition: Condition | None) -> Edge:
    """An edge, under a condition on a register's set if there is one."""
    if condition is None:
        return Edge(byte, byte, sequence)
    return Edge(byte, byte, sequence[1:], MarkedEdge(register, sequence[0], condition=condition))
