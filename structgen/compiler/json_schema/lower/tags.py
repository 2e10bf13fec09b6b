"""Members and items written in the tags of a style, and their values, up to the closing tag.

After a name comes the text of a kind of values, and then one state that reads a value, the closing tag, and pops. An
unbounded string runs to the first closing tag: one automaton, and so does one with bounds on its length alone
(`strings/closed.py`). Where a text can be a string and something else, or may have whitespace around it, both ways
are followed.

Where the name of a special token stands in what a tag says, that token may be written in its place. No value has
special tokens, so one that a tag begins to end with ends the value at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import TypeAlias

import numpy as np

from ....budget import Unremembered
from ....definitions.styles import ARRAYS, BOOLEANS, GAP, NULL, NUMBERS, OBJECTS, STRINGS, Kind, Style
from ....system.properties import remembered
from ...automata.edge_lists import EdgeLists, of_dfa
from ...programs.program import POP, CountedEdge, Edge, First, State, TokenEdge, TokenSet, bytes_of, edge_of
from ..normal_form.shapes import ArrayShape, ObjectShape, Value
from ..strings.closed import closed_string
from ..strings.lengths import COUNT_FROM
from ..strings.strings import StringSet
from .builder import BELOW, Builder, MemberText, Refs, Text, over
from .embed import Embedding, embedded
from .keys import Others
from .whitespace import TagGaps

#: Texts that may come next, each with the sequence behind it.
_Ways: TypeAlias = tuple[tuple[Text, tuple[State, ...]], ...]

#: What strings exclude, up to so many characters, has automata that are remembered.
_SHORT = 100

#: In a text: whitespace may stand here.
_GAP = (GAP, None)


class Tags(MemberText):
    """The tags of a program; ``gap`` is the whitespace that may stand around them and their values.

    `finish` comes behind the values of a schema, and `begin` before those of the next one.
    """

    def __init__(self, builder: Builder, style: Style, gap: EdgeLists) -> None:
        self.begin(builder)
        self._style = style
        #: The first bytes of the names of special tokens.
        self._first_bytes: dict[TokenSet, int] = {}
        self._gap = gap
        self.opening = self._text(style.opening)
        self._program = program = builder.program
        self.whitespace: TagGaps = TagGaps(program, gap)
        name_end = First((edge_of(style.name_end, style.name_end, POP),))
        self._names = Embedding(program, "raw", builder.meter, name_end)
        closing = self._text(style.closing)
        self._closing = {
            padded: self._reading(((((_GAP, *closing) if padded else closing), ()),)) for padded in (True, False)
        }
        self._texts = {
            padded: Embedding(program, "raw", builder.meter, First(self._edges(state), self._tokens(state)))
            for padded, state in self._closing.items()
        }
        self._plain: dict[Hashable, State | None] = {}  # see `_value`

    def begin(self, builder: Builder) -> None:
        """Begin the values of a schema; those of others may be in the program."""
        self._builder = builder
        self._sequences: dict[tuple[Refs, Kind], tuple[tuple[State, ...], ...]] = {}
        self._roots: dict[State, list[State]] = {}
        self._begin = len(builder.program.like), len(builder.program.blocks)

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
        """Give states what they have of others, when it is there: token edges; the root of several shapes all."""
        program = self._program
        if program.token_edges:
            self._take_over_tokens()
        for root, starts in self._roots.items():
            edges = dict.fromkeys(edge for start in starts for edge in self._edges(start))
            tokens = dict.fromkeys(edge for start in starts for edge in program.token_edges.get(start, ()))
            program.give(root, First([*edges], [*tokens]))
            if not program.returns.isdisjoint(starts):
                program.returns.add(root)

    def _take_over_tokens(self) -> None:
        """Give states that are like others the token edges of these, by the first bytes of their names."""
        program, (begin, blocks) = self._program, self._begin
        alike = [state for state, like in islice(program.like.items(), begin, None) if like in program.token_edges]
        own = {state: bytes_of(program.edges[state]) for state in alike}
        for block in program.blocks[blocks:]:
            for state, low, high, _ in block[:, np.isin(block[0], alike)].T.tolist():
                own[state].update(range(low, high + 1))
        for state in self._builder.meter.each(alike, "lowering tags"):
            edges = program.token_edges[program.like[state]]
            found = [edge for edge in edges if self._first_bytes[edge.tokens] not in own[state]]
            program.give(state, First((), found))

    def _edges(self, state: State) -> list[Edge]:
        """The edges of a state, with those of the state that it is like."""
        like = self._program.like.get(state, -1)
        return [*self._program.edges[state], *(() if like < 0 else self._program.edges[like])]

    def _tokens(self, state: State) -> Sequence[TokenEdge]:
        """The token edges of a state, or of the state that it is like."""
        like = self._program.like.get(state, -1)
        return self._program.token_edges.get(state if like < 0 else like, ())

    # -- tags ------------------------------------------------------------------------------------------------

    def _text(self, text: bytes) -> Text:
        """A text in pieces; whitespace is one."""
        pieces: list[tuple[bytes, TokenSet | None]] = []
        for number, part in enumerate(text.split(GAP)):
            pieces += [_GAP] if number else []
            named = self._builder.layout.special.split(part.decode()) if part else []
            pieces += [(piece.encode(), token) for piece, token in named]
        self._first_bytes |= {token: piece[0] for piece, token in pieces if token is not None}
        return tuple(pieces)

    @remembered
    def _reading(self, ways: _Ways) -> State:
        """The state that reads one of some texts."""
        if all(text[0] == _GAP for text, _ in ways):
            return self.whitespace.spaced(self._reading(tuple((text[1:], way) for text, way in ways)))
        if len(ways) == 1 and len(ways[0][0]) == 1 and ways[0][0][0][1] is None:
            return self._reading_one(ways[0][0][0][0], ways[0][1])
        state = self._program.state("tag")
        self._program.give(state, self._first(ways))
        return state

    def _reading_one(self, text: bytes, way: tuple[State, ...]) -> State:
        first = self._program.states("tag", len(text))
        for state, byte in enumerate(text[:-1], first):
            self._program.edge(state, byte, byte, state + 1)
        self._program.edge(first + len(text) - 1, text[-1], text[-1], *way)
        return first

    def _first(self, ways: _Ways) -> First:
        """The first edges of texts, by bytes and by special tokens."""
        by_byte: dict[int, list[tuple[Text, tuple[State, ...]]]] = {}
        by_token: dict[TokenSet, list[tuple[Text, tuple[State, ...]]]] = {}
        for ((piece, token), *others), way in ways:
            rest = ((piece[1:], None), *others) if len(piece) > 1 else tuple(others)
            by_byte.setdefault(piece[0], []).append((rest, way))
            if token is not None:
                by_token.setdefault(token, []).append((tuple(others), way))
        edges = [edge_of(byte, byte, to) for byte, rests in by_byte.items() for to in self._behind(rests)]
        return First(edges, [TokenEdge(token, to) for token, rests in by_token.items() for to in self._behind(rests)])

    def _behind(self, rests: list[tuple[Text, tuple[State, ...]]]) -> list[int]:
        """The targets that read what is left of texts."""
        longer = tuple((rest, way) for rest, way in rests if rest)
        found = [self._program.target(way) for rest, way in rests if not rest]
        return [*found, 1 + self._reading(longer)] if longer else found

    # -- names -----------------------------------------------------------------------------------------------

    def spelling(self, name: str) -> bytes | None:
        """See `MemberText`."""
        return self._style.spelled(name)

    def begin_name(self, target: int) -> First:
        """See `MemberText`."""
        return self._first(((self.opening, self._program.sequence(target)),))

    @remembered
    def key(self, target: int) -> State | None:
        """See `MemberText`."""
        return self._reading(((self.opening, self._program.sequence(target)),)) if target else None

    def end_name(self, name: bytes | EdgeLists, tails: dict[State, Refs], level: int) -> int:
        """See `MemberText`."""
        assert isinstance(name, bytes)
        edges, tokens = self._first(self._ways(tails, name))
        return self._builder.keys.action(tuple(edges), tokens)

    def others(self, classes: list[tuple[StringSet, dict[State, Refs]]], level: int) -> Others | None:
        """See `MemberText`."""
        if not classes:
            return None
        bodies = tuple(self._names.body(keys) for keys, _ in classes)
        ends = [self._first(self._ways(tails)) for _, tails in classes]
        if all(len(end.edges) == 1 and not end.tokens for end in ends):
            afters = tuple(self._program.sequence(end.edges[0] >> 16) for end in ends)
            return Others(bodies, tuple(ends), afters)
        return Others(bodies, tuple(ends), ())

    def _ways(self, tails: dict[State, Refs], name: bytes = b"", item: bytes = b"") -> _Ways:
        """The texts after a name, or before an ``item``, to the values that these announce above the tails that go
        with them."""
        again = self._again(name)
        return tuple(
            (self._text(item + kind.before[1:] if item else kind.before), over(tail, again + value))
            for tail, refs in tails.items()
            for kind in self._style.kinds
            for value in self._values(refs, kind)
        )

    @remembered
    def _again(self, name: bytes) -> tuple[State, ...]:
        """What comes behind a closing tag."""
        if self._style.again is None:
            return ()
        before, after = map(self._text, self._style.again)
        return (self._reading((((*before, (name, None), *after), ()),)),)

    # -- items -----------------------------------------------------------------------------------------------

    def item(self, refs: Refs, level: int) -> First:
        """See `MemberText`."""
        return self._first(self._ways({BELOW: refs}, self._style.item_name, self._style.item))

    def begin_items(self, state: State, tails: dict[State, Refs], level: int) -> None:
        """See `MemberText`."""
        self._program.give(state, self._first(self._ways(tails, self._style.item_name, self._style.item)))

    # -- values ----------------------------------------------------------------------------------------------

    def _values(self, refs: Refs, kind: Kind) -> tuple[tuple[State, ...], ...]:
        """The sequences that read values of a kind, each with the closing tag."""
        known = self._sequences.get((refs, kind))
        if known is None:
            known = self._sequences[refs, kind] = self._new_values(refs, kind)
        return known

    def _new_values(self, refs: Refs, kind: Kind) -> tuple[tuple[State, ...], ...]:
        within = frozenset({ARRAYS, OBJECTS} if self._style.item else ())
        value = self._value(refs, kind._replace(types=kind.types - within))
        found: list[tuple[State, ...]] = [] if value is None else [(value,)]
        for each in (_of_types(self._builder.values[ref], kind.types & within) for ref in refs):
            shapes: list[ArrayShape | ObjectShape] = [*each.arrays, *each.objects]
            found += [(self._closing[False], self._builder.start(shape, each, -1)) for shape in shapes]
        return tuple(dict.fromkeys(found))

    def _value(self, refs: Refs, kind: Kind) -> State | None:
        """The state that reads a value of a kind with the closing tag; None where there is none.

        It is the same for all schemas where there are no arrays and objects.
        """
        strings = self._builder.strings(refs) if STRINGS in kind.types else None
        if strings == self._any:
            return self._any_string()
        values = [_of_types(self._builder.values[ref], kind.types) for ref in refs]
        if any(value.arrays or value.objects for value in values):
            return self._new_value(strings, values, padded=kind.padded)
        key = strings, kind.padded, *[value._replace(pointer="") for value in values]
        if key not in self._plain:
            self._plain[key] = self._new_value(strings, values, padded=kind.padded)
        return self._plain[key]

    def _new_value(self, strings: StringSet | None, values: list[Value], *, padded: bool) -> State | None:
        builder, program = self._builder, self._program
        first_edges = chain.from_iterable(builder.first_edges(value, 0, False) for value in values)
        edges = program.all_above(self._closing[padded], first_edges)
        tokens: list[TokenEdge] = []
        bounded = None if strings is None else self._bounded_string(strings, padded)
        if strings is not None and bounded is None:
            texts = self._texts[padded]
            begin = texts.first(texts.body(strings))
            edges += begin.edges
            tokens += begin.tokens
        if not edges and not bounded:
            return None
        first = First(list(dict.fromkeys(edges)), tokens)
        state = program.state("tagged value")
        program.give(state, self.whitespace.padded(first) if padded and edges else first)
        program.give(state, First(bounded or ()))
        return state

    @remembered
    def _bounded_string(self, strings: StringSet, padded: bool) -> Sequence[Edge] | None:
        """The first edges of strings up to a length with the closing tag, all around them included; None for others."""
        meter, closing = self._builder.meter, self._style.closing
        least, most = strings.lengths or (0, 0)
        if most <= COUNT_FROM or least > COUNT_FROM or strings != self._of_length(least, most) or any(
            token is not None for _, token in self._text(closing)
        ):  # fmt: skip
            return None
        counted = _counted if self._is_remembered else _counted.__wrapped__
        free, text = self._closed_texts(0), self._closed_texts(least)
        automaton = counted(free, text, closing, self._gap if padded else None, least)
        if automaton is None:
            return None
        meter.check_states(len(self._program.edges) + len(automaton.edges), "lowering strings")
        return self._embed_counted(automaton, most - max(1, least) + 1)

    def _embed_counted(self, automaton: EdgeLists, most: int) -> Sequence[Edge]:
        """The first edges of a deterministic automaton with one loop, up to ``most``, which pops where it accepts."""
        program = self._program
        loop = program.loop(1, most)
        to = [
            POP if accepting else 1 + program.state("text", live=loop if live >= 0 else -1)
            for accepting, live in zip(automaton.accepting, automaton.live, strict=True)
        ]
        for operation, _, *targets in reversed(automaton.records):
            counted = CountedEdge(operation, loop, *(to[q] - 1 if q >= 0 else -1 for q in targets))
            to.append(program.target((), counted))
        to.append(POP)  # so that the target -2 - r is there for record r
        for target, edges in zip(to, automaton.edges, strict=False):
            if target > 0:
                program.edges[target - 1] = [edge_of(low, high, to[q]) for low, high, q in edges]
        return program.edges[to[automaton.start] - 1]

    @property
    def _any(self) -> StringSet:
        """The strings of which nothing is asked."""
        return StringSet.ANY.without(self._builder.layout.forbidden, self._builder.meter)

    def _of_length(self, least: int, most: int | None) -> StringSet:
        """The strings of which nothing is asked but their length."""
        return StringSet.length(least, most).without(self._builder.layout.forbidden, self._builder.meter)

    @property
    def _is_remembered(self) -> bool:
        """Whether automata of strings and the closing tag are kept for the process."""
        return sum(map(len, self._builder.layout.forbidden)) <= _SHORT

    @remembered
    def _closed_texts(self, least: int) -> EdgeLists:
        """The automaton of strings of so many characters at least, with the closing tag behind them."""
        closed = _closed if self._is_remembered else _closed.__wrapped__
        strings = self._of_length(least, None) if least else self._any
        return closed(strings, self._style.closing, Unremembered(self._builder.meter))

    @remembered
    def _any_string(self) -> State:
        state = self._program.state("any text")
        meter = self._builder.meter
        automaton = self._closed_texts(0)
        meter.check_states(len(self._program.edges) + len(automaton.edges), "lowering strings")
        tokens = self._ends(automaton)
        first = embedded(self._program, automaton, "text", tokens)
        self._program.give(state, First(first, tokens[automaton.start] if tokens else ()))
        return state

    def _ends(self, automaton: EdgeLists) -> list[list[TokenEdge]]:
        """The token edges of the states of strings with a closing tag behind them; none where none has any.

        Where the rest of the tag would be right, a token that it begins with may stand in the place of its name.
        """
        rests = [text for text in _ends_of(self._text(self._style.closing)) if text[0][1] is not None]
        found: list[list[TokenEdge]] = [[] for _ in automaton.edges] if rests else []
        for rest in rests:
            self._builder.meter.check_time("lowering tags")
            right = automaton.accepting
            for byte in reversed(b"".join(piece for piece, _ in rest)):
                right = [
                    any(low <= byte <= high and right[target] for low, high, target in edges)
                    for edges in automaton.edges
                ]
            for edges, is_right in zip(found, right, strict=True):
                if is_right:
                    edges += self._first(((rest, ()),)).tokens
        return found


@lru_cache(maxsize=32)
def _closed(strings: StringSet, closing: bytes, by: Unremembered) -> EdgeLists:
    """The automaton of strings with a closing tag behind them."""
    return of_dfa(strings.followed_by(closing, by.meter), by.meter)


@lru_cache(maxsize=32)
def _counted(free: EdgeLists, text: EdgeLists, closing: bytes, gap: EdgeLists | None, least: int) -> EdgeLists | None:
    """The automaton of `closed_string`, which is the same for all upper bounds, but for its loop's."""
    return closed_string(free, text, closing, gap, least, max(1, least) + 1)


def _ends_of(text: Text) -> list[Text]:
    """A text without some pieces at its beginning, and as it is."""
    return [text[number:] for number in range(len(text))]


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
