"""Members and items written in the tags of a style, and their values, up to the closing tag.

After a name comes the text of a kind of values, and then one state that reads a value, the closing tag, and pops. An
unbounded string runs to the first closing tag: one automaton. Where a text can be a string and something else, or may
have whitespace around it, both ways are followed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from ....budget import Unremembered
from ....errors import UnsupportedError
from ....system.properties import remembered
from ...automata.edge_lists import EdgeLists, of_dfa
from ...programs.program import Edge, State
from ..layout.styles import ARRAYS, BOOLEANS, GAP, NULL, NUMBERS, OBJECTS, STRINGS, Kind, Style
from ..normal_form.shapes import ArrayShape, ObjectShape, Value
from ..strings.strings import StringSet
from .builder import Builder, MemberText, Refs, over
from .embed import Embedding, embedded
from .keys import Others
from .whitespace import TagGaps

#: Texts that may come next, each with the sequence behind it.
_Ways: TypeAlias = tuple[tuple[bytes, tuple[State, ...]], ...]


class Tags(MemberText):
    """The tags of a program; ``gap`` is the whitespace that may stand around them and their values."""

    def __init__(self, builder: Builder, style: Style, gap: EdgeLists) -> None:
        self._builder = builder
        self._style = style
        self.opening = style.opening
        self._program = program = builder.program
        self.whitespace: TagGaps = TagGaps(program, gap)
        name_end = (Edge(style.name_end, style.name_end, ()),)
        self._names = Embedding(program, "raw", builder.meter, name_end)
        self._closing = {
            padded: self._reading(((GAP + style.closing if padded else style.closing, ()),))
            for padded in (True, False)
        }
        ends = {padded: self._edges(state) for padded, state in self._closing.items()}
        self._texts = {
            padded: Embedding(program, "raw", builder.meter, tuple(edges)) for padded, edges in ends.items()
        }
        self._roots: dict[State, list[State]] = {}

    # -- the root --------------------------------------------------------------------------------------------

    def root(self, value: Value) -> State:
        """The state where the members of one of some shapes begin."""
        starts = [self._builder.start(shape, value, -1) for shape in value.objects]
        if len(starts) == 1:
            return starts[0]
        root = self._program.state("object")
        self._roots[root] = starts
        return root

    def finish(self) -> None:
        """Give the root of several shapes its edges, when theirs are there."""
        program = self._program
        for root, starts in self._roots.items():
            program.edges[root] = list(dict.fromkeys(edge for start in starts for edge in self._edges(start)))
            program.returns[root] = any(program.returns[start] for start in starts)

    def _edges(self, state: State) -> list[Edge]:
        """The edges of a state, with those of the state that it is like."""
        like = self._program.like[state]
        return self._program.edges[state] + ([] if like < 0 else self._program.edges[like])

    # -- tags ------------------------------------------------------------------------------------------------

    @remembered
    def _reading(self, ways: _Ways) -> State:
        """The state that reads one of some texts."""
        if all(text.startswith(GAP) for text, _ in ways):
            return self.whitespace.spaced(self._reading(tuple((text[1:], way) for text, way in ways)))
        state = self._program.state("tag")
        self._program.edges[state] = self._first(ways)
        return state

    def _first(self, ways: _Ways) -> list[Edge]:
        rests: dict[int, list[tuple[bytes, tuple[State, ...]]]] = {}
        for text, way in ways:
            rests.setdefault(text[0], []).append((text[1:], way))
        edges = []
        for byte, following in rests.items():
            longer = tuple((rest, way) for rest, way in following if rest)
            edges += [Edge(byte, byte, way) for rest, way in following if not rest]
            edges += [Edge(byte, byte, (self._reading(longer),))] if longer else []
        return edges

    # -- names -----------------------------------------------------------------------------------------------

    def spelling(self, name: str) -> bytes | None:
        """See `MemberText`."""
        return self._style.spelled(name)

    def begin_name(self, sequence: tuple[State, ...]) -> Edge:
        """See `MemberText`."""
        (edge,) = self._first(((self._style.opening, sequence),))
        return edge

    @remembered
    def key(self, sequence: tuple[State, ...]) -> State | None:
        """See `MemberText`."""
        return self._reading(((self._style.opening, sequence),)) if sequence else None

    def end_name(self, tails: dict[State, Refs], level: int) -> tuple[Edge, ...]:
        """See `MemberText`."""
        return tuple(self._first(self._ways(tails)))

    def others(self, classes: list[tuple[StringSet, dict[State, Refs]]], level: int) -> Others | None:
        """See `MemberText`."""
        bodies = tuple(self._names.body(keys) for keys, _ in classes)
        afters = tuple(self._after_name(tails) for _, tails in classes)
        return Others(bodies, afters, self._style.name_end) if bodies else None

    def _after_name(self, tails: dict[State, Refs]) -> tuple[State, ...]:
        """The sequence that reads what comes behind the byte that ends a name."""
        ways = tuple((text[1:], way) for text, way in self._ways(tails))
        if all(text for text, _ in ways):
            return (self._reading(ways),)
        if len(ways) > 1:
            raise UnsupportedError(
                "members with names that are not declared must be told apart by their values",
                remedy="Use another style, or ask less of members that are not declared.",
            )
        return ways[0][1]

    def _ways(self, tails: dict[State, Refs]) -> _Ways:
        """The texts after a name, to the values that these announce above the tails that go with them."""
        return tuple(
            (kind.before, over(tail, value))
            for tail, refs in tails.items()
            for kind in self._style.kinds
            for value in self._values(refs, kind)
        )

    # -- items -----------------------------------------------------------------------------------------------

    def item(self, refs: Refs, level: int) -> list[Edge]:
        """See `MemberText`."""
        ways = [(kind, value) for kind in self._style.kinds for value in self._values(refs, kind)]
        return self._first(tuple((self._style.item + kind.before[1:], value) for kind, value in ways))

    def above(self, tails: dict[State, Refs], level: int) -> list[Edge]:
        """See `MemberText`."""
        return self._first(tuple((self._style.item + text[1:], way) for text, way in self._ways(tails)))

    # -- values ----------------------------------------------------------------------------------------------

    @remembered
    def _values(self, refs: Refs, kind: Kind) -> tuple[tuple[State, ...], ...]:
        """The sequences that read values of a kind, each with the closing tag."""
        within = frozenset({ARRAYS, OBJECTS} if self._style.item else ())
        value = self._value(refs, kind._replace(types=kind.types - within))
        found: list[tuple[State, ...]] = [] if value is None else [(value,)]
        for each in (_of_types(self._builder.values[ref], kind.types & within) for ref in refs):
            shapes: list[ArrayShape | ObjectShape] = [*each.arrays, *each.objects]
            found += [(self._closing[False], self._builder.start(shape, each, -1)) for shape in shapes]
        return tuple(dict.fromkeys(found))

    @remembered
    def _value(self, refs: Refs, kind: Kind) -> State | None:
        """The state that reads a value of a kind with the closing tag; None where there is none."""
        builder, program = self._builder, self._program
        strings = builder.strings(refs) if STRINGS in kind.types else None
        if strings == self._any:
            return self._any_string()
        values = [_of_types(builder.values[ref], kind.types) for ref in refs]
        edges = [
            Edge(e.low, e.high, (self._closing[True], *e.sequence))
            for value in values
            for e in builder.first_edges(value, 0, False)
        ]
        if strings is not None:
            edges += program.edges[self._texts[kind.padded].body(strings).start]
        if not edges:
            return None
        edges = list(dict.fromkeys(edges))
        state = program.state("tagged value")
        program.edges[state] = self.whitespace.padded(edges) if kind.padded else edges
        return state

    @property
    def _any(self) -> StringSet:
        """The strings of which nothing is asked."""
        return StringSet.ANY.without(self._builder.layout.forbidden, self._builder.meter)

    @remembered
    def _any_string(self) -> State:
        state = self._program.state("any text")
        closed = _closed if len(self._builder.layout.forbidden) == 1 else _closed.__wrapped__
        meter = self._builder.meter
        automaton = closed(self._any, self._style.closing, Unremembered(meter))
        meter.check_states(len(self._program.edges) + len(automaton.edges), "lowering strings")
        self._program.edges[state] = embedded(self._program, automaton, "text")
        return state


@lru_cache(maxsize=32)
def _closed(strings: StringSet, closing: bytes, by: Unremembered) -> EdgeLists:
    """The automaton of strings with a closing tag behind them."""
    return of_dfa(strings.followed_by(closing, by.meter), by.meter)


def _of_types(value: Value, types: frozenset[str]) -> Value:
    """A value without strings, of some types only."""
    return Value(
        null=value.null and NULL in types,
        booleans=value.booleans if BOOLEANS in types else frozenset(),
        numbers=value.numbers if NUMBERS in types else None,
        arrays=value.arrays if ARRAYS in types else (),
        objects=value.objects if OBJECTS in types else (),
        pointer=value.pointer,
    )
