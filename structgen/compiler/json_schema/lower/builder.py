"""What the phases of the lowering share: the program, and every part of it that is there only once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ....budget import Meter
from ....errors import UnsupportedError
from ....system.properties import remembered
from ...automata.edge_lists import EdgeLists
from ...programs.program import REFUSED, Edge, First, Program, State, TokenSet, edge_of
from ..layout.options import TextOptions
from ..normal_form.shapes import ArrayShape, Choice, KeyClass, ObjectShape, Option, Ref, Value, Values
from ..numbers.numbers import NumberSet
from ..read.blame import placed
from ..strings.strings import StringSet
from .embed import QUOTE, Body, Embedding
from .keys import KeyStates, Others
from .tallies import Tally
from .trie import NONE, ONE_WAY, Trie, Tries, spelling
from .whitespace import Whitespace

#: A text in pieces, each with the special token that may be written in its place, or None.
Text: TypeAlias = tuple[tuple[bytes, "TokenSet | None"], ...]

#: Values that may stand at one place, as sorted references.
Refs: TypeAlias = tuple[Ref, ...]

#: Up to so many strings of a set are told apart letter by letter; larger sets go through their automaton.
_LISTED = 64

#: Arrays of so few kinds of items, nested so deep, are lowered where they are needed and not on demand.
_FEW, _DEPTH = 4, 2

#: What an edge of a quote reads.
_QUOTE = edge_of(QUOTE, QUOTE, 0)

OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE = b"[]{}"


#: A tail that lies below already.
BELOW: State = -1


def any_value(ref: Ref, pointer: str = "") -> Value:
    """Any value; ``ref`` is its own reference."""
    items = (Option(ref),)
    arrays, objects = (ArrayShape(rest=items),), (ObjectShape(others=(KeyClass(StringSet.ANY, items),)),)
    return Value(True, frozenset((False, True)), NumberSet.ANY, StringSet.ANY, arrays, objects, pointer)


def over(tail: State, sequence: tuple[State, ...]) -> tuple[State, ...]:
    """A sequence with a tail below it."""
    return sequence if tail == BELOW else (tail, *sequence)


@dataclass(frozen=True)
class MemberEnd:
    """The last place of a shape, by tally: the tails, what keys are possible, and the states before them."""

    tails: dict[Tally, State]
    tries: dict[Tally, tuple[Trie, Others | None]]
    inside: dict[Tally, State | None]


class MemberText(ABC):
    """How the members of objects, and the items of arrays, are written; ``level`` is that of their values."""

    whitespace: Whitespace
    opening: Text  #: what stands before a name

    @abstractmethod
    def spelling(self, name: str) -> bytes | EdgeLists | None:
        """How a declared name is written; None where it can't be."""

    @abstractmethod
    def begin_name(self, target: int) -> First:
        """The edges that begin a member: to a target behind what stands before its name."""

    @abstractmethod
    def end_name(self, name: bytes | EdgeLists, tails: dict[State, Refs], level: int) -> int:
        """The action of `KeyStates` at the end of a declared name, spelled so: the values, above the tail of each.

        The one tail may be `BELOW`, here and in `others`.
        """

    @abstractmethod
    def others(self, classes: list[tuple[StringSet, dict[State, Refs]]], level: int) -> Others | None:
        """The classes of other names, each with the values of its members and their tails; None where it is none."""

    @abstractmethod
    def key(self, target: int) -> State | None:
        """The state before a member that `begin_name` begins; None where no name is possible: `REFUSED`."""

    def tail(self, target: int, close: int | None, level: int) -> State:
        """The state behind a member and before another one, ``level`` being that of the object."""
        return self.whitespace.tail(self.key(target), close, level)

    @abstractmethod
    def item(self, refs: Refs, level: int) -> First:
        """The first edges of an item, for use above other frames."""

    @abstractmethod
    def begin_items(self, state: State, tails: dict[State, Refs], level: int) -> None:
        """Give a state the first edges of items, each above the tail that goes with it."""


class Builder(MemberText):
    """The program under construction, in which members are written as JSON.

    Parameters
    ----------
    values:
        The system to lower; the lowering of unique items adds to it.
    program:
        Where the states go.
    whole:
        Whether all is lowered together; else what can wait is kept in `open`.
    keeps_sets:
        Whether who follows a text can keep a set of an array's items.
    begun:
        One for the same layout, whose states the program has, too: those of strings, numbers, and of any value, if
        that was lowered.
    """

    def __init__(
        self,
        values: Values,
        layout: TextOptions,
        meter: Meter,
        lenient: list[str] | None,
        program: Program,
        *,
        whole: bool = True,
        keeps_sets: bool = False,
        begun: Builder | None = None,
    ) -> None:
        self.values: list[Value] = list(values.values)
        self.layout = layout
        self.meter = meter
        self.opening = ((b'"', None),)
        self.program = program
        self.embedding: Embedding = (
            begun.embedding.continued(program, meter) if begun else Embedding(program, layout.escapes, meter)
        )
        #: How members are written at level -1; None: as at all others.
        self.tags: MemberText | None = None
        #: States that have no edges yet, each with the values that begin there, and their level.
        self.open: dict[State, tuple[Refs, int]] = {}
        self._whole = whole
        self._keeps_sets = keeps_sets
        #: Arrays and objects whose start state has no edges yet, with the values that they belong to and their level.
        self.todo: list[tuple[ArrayShape | ObjectShape, State, Value, int]] = []
        self._starts: dict[tuple[ArrayShape | ObjectShape, int], State] = {}
        self._states: dict[tuple[Refs, int], State] = {}
        self._lenient = lenient
        self._any = None if begun is None else begun.any_states
        #: The states before a colon with a value that many schemas have, by its types other than arrays and objects.
        self.plain: dict[tuple[object, ...], State] = {} if begun is None else begun.plain
        if begun is not None:
            self.whitespace = begun.whitespace.continued(program)
        if self._any is not None:
            for ref, value in self._any_values():
                self._states[(ref,), 0], array, object_ = self._any
                self._starts |= {(value.arrays[0], 0): array, (value.objects[0], 0): object_}
        self.begin_part()

    @property
    def any_states(self) -> tuple[State, State, State] | None:
        """The states before any value, and behind the brackets of an array and an object of any, where there are."""
        for ref, value in self._any_values():
            if ((ref,), 0) in self._states:
                return self._states[(ref,), 0], self._starts[value.arrays[0], 0], self._starts[value.objects[0], 0]
        return self._any

    def _any_values(self) -> Iterator[tuple[Ref, Value]]:
        """The values that may be any, as a rule one at most."""
        for ref, value in enumerate(self.values):
            if value.null and value.objects and value == any_value(ref, value.pointer):
                yield ref, value

    def begin_part(self) -> None:
        """Begin what is lowered together, with names of its own."""
        self.tries = Tries(self.meter)
        self.keys = KeyStates(self.program, self.tries, self.meter)
        #: The last places of objects, by what they depend on; kept by `structgen.compiler.json_schema.lower.members`.
        self.ends: dict[Hashable, MemberEnd] = {}
        #: The number of members of the largest object, and where that stands in the schema.
        self.widest: tuple[int, str] = (0, "")

    def inner(self, level: int) -> int:
        """The level of what stands inside brackets of a level; always 0 where the layout doesn't depend on it."""
        return 0 if self.layout.indent is None or level < 0 else level + 1

    def keeps_sets(self, level: int) -> bool:
        """Whether who follows a text can keep a set of the items, or names, that are written at a level: as JSON."""
        return self._keeps_sets and self.text(level) is self

    def relax(self, keyword: str, pointer: str, why: str, remedy: str) -> None:
        """Note that a keyword is not honoured; raises `UnsupportedError` where nothing may be relaxed."""
        if self._lenient is None:
            raise UnsupportedError(f"{keyword}: {why}", where=pointer or "#", remedy=remedy)
        self._lenient.append(f"{pointer or '#'}: {keyword}: {why}")

    @remembered
    def single(self, value: Value) -> Ref:
        """The reference of a value that the system lacks."""
        self.values.append(value)
        return len(self.values) - 1

    # -- values --------------------------------------------------------------------------------------------

    def value(self, refs: Refs, level: int) -> State:
        """The state where one of some values begins."""
        known = self._states.get((refs, level))
        if known is None:
            known = self._states[refs, level] = self.program.state("value")
            if self._whole or all(self._is_small(self.values[ref]) for ref in refs):
                self.program.edges[known] = self.value_edges(refs, level)
            else:
                self.open[known] = refs, level
        return known

    def begin(self, state: State) -> None:
        """Give an open state its edges."""
        self.program.edges[state] = self.value_edges(*self.open.pop(state))

    def _is_small(self, value: Value, depth: int = _DEPTH) -> bool:
        """Whether little has to be lowered for a value: no objects, and no strings or numbers that are not there."""
        shapes = [shape for shape in value.arrays if (shape, 0) not in self._starts]
        items = {option.value for shape in shapes for choice in shape.choices() for option in choice}
        return (
            self.embedding.has(value.strings, value.numbers)
            and all((shape, 0) in self._starts for shape in value.objects)
            and (not items or (depth > 0 and len(items) < _FEW))
            and all(self._is_small(self.values[ref], depth - 1) for ref in items)
        )

    @remembered
    def value_edges(self, refs: Refs, level: int, strings: bool = True) -> tuple[Edge, ...]:
        """The first edges of some values, for use above other frames; of strings only if asked for."""
        edges = [edge for ref in refs for edge in self.first_edges(self.values[ref], level, strings)]
        return tuple(edges if len(refs) == 1 else dict.fromkeys(edges))

    def first_edges(self, value: Value, level: int, strings: bool) -> list[Edge]:
        """The first edges of a value, for use above other frames; of strings only if asked for."""
        edges: list[Edge] = []
        with placed(value.pointer):
            if value.strings is not None and strings:
                edges.append(edge_of(QUOTE, QUOTE, 1 + self._string(value.strings)))
            if value.numbers is not None:
                edges += self.embedding.number(value.numbers)
        for array in value.arrays:
            edges.append(edge_of(OPEN_BRACKET, OPEN_BRACKET, 1 + self.start(array, value, level)))
        for object_ in value.objects:
            edges.append(edge_of(OPEN_BRACE, OPEN_BRACE, 1 + self.start(object_, value, level)))
        for flag in sorted(value.booleans):
            edges.append(self.embedding.word(b"true" if flag else b"false"))
        if value.null:
            edges.append(self.embedding.word(b"null"))
        return edges

    @remembered
    def _string(self, strings: StringSet) -> State:
        """The state after the opening quote of strings; few texts are told apart like keys."""
        is_listed = strings.is_listed() and self.layout.escapes in ONE_WAY
        texts = strings.texts(_LISTED) if is_listed else None
        way = self.keys.after_quote(self._with_texts(NONE, texts, ()), None) if texts else REFUSED
        return way - 1 if way else self.embedding.body(strings).start

    def _with_texts(self, names: Trie, texts: list[str], after: tuple[State, ...]) -> Trie:
        """A trie in which texts may come as well, and a sequence behind each of them and the quote."""
        end = self.keys.action((self._quote(after),))
        for text in texts:
            spelled = spelling(text, self.layout.escapes, self.meter)
            if spelled is not None:
                names = self.tries.insert(names, spelled, end)
        return names

    def start(self, shape: ArrayShape | ObjectShape, value: Value, level: int) -> State:
        """The state after a shape's opening bracket, to be given its edges later."""
        known = self._starts.get((shape, level))
        if known is None:
            name = "object" if isinstance(shape, ObjectShape) else "array"
            known = self._starts[shape, level] = self.program.state(name)
            self.todo.append((shape, known, value, level))
        return known

    # -- members -------------------------------------------------------------------------------------------

    def text(self, level: int) -> MemberText:
        """How members and items of a level are written."""
        return self if self.tags is None or level >= 0 else self.tags

    def spelling(self, name: str) -> bytes | EdgeLists | None:
        """See `MemberText`."""
        return spelling(name, self.layout.escapes, self.meter)

    def begin_name(self, target: int) -> First:
        """See `MemberText`."""
        return First((target << 16 | _QUOTE,))

    @remembered
    def key(self, target: int) -> State | None:
        """See `MemberText`."""
        return self.program.state("member", (target << 16 | _QUOTE,)) if target else None

    @remembered
    def tail(self, target: int, close: int | None, level: int) -> State:
        """See `MemberText`."""
        if target:
            return self.whitespace.tail_before(target << 16 | _QUOTE, close, level)
        return self.whitespace.tail(None, close, level)

    def item(self, refs: Refs, level: int) -> First:
        """See `MemberText`."""
        return First(self.value_edges(refs, level))

    def others(self, classes: list[tuple[StringSet, dict[State, Refs]]], level: int) -> Others | None:
        """See `MemberText`."""
        bodies = tuple(self.embedding.body(keys) for keys, _ in classes)
        afters = [  # states of their own: where the tail lay below shared ones, steps would decide twice as much
            self._after_key(tails, level) if BELOW in tails else (self._values_after_key(tuple(tails.items()), level),)
            for _, tails in classes
        ]
        return self._others(bodies, tuple(afters)) if bodies else None

    def _after_key(self, tails: dict[State, Refs], level: int) -> tuple[State, ...]:
        """The sequence after a key's closing quote: a colon, one of the values, and then the tail that goes with it."""
        if len(tails) > 1:
            return (self._values_after_key(tuple(tails.items()), level),)
        ((tail, refs),) = tails.items()
        value = self._value_after_key(refs, level)
        return (value,) if tail == BELOW else (tail, value)

    @remembered
    def _values_after_key(self, tails: tuple[tuple[State, Refs], ...], level: int) -> State:
        if len(tails) == 1:
            ((tail, refs),) = tails
            return self.whitespace.colon_above(self.value_edges(refs, level), tail)
        begin = self.program.state("value")
        self.begin_items(begin, dict(tails), level)
        return self.whitespace.colon(begin)

    @remembered
    def _value_after_key(self, refs: Refs, level: int) -> State:
        value = self.values[refs[0]]
        usual = self.plain.get(value[:4]) if self.plain and len(refs) == 1 and value[4:6] == ((), ()) else None
        return self.whitespace.colon(self.value(refs, level)) if usual is None else usual

    def begin_items(self, state: State, tails: dict[State, Refs], level: int) -> None:
        """See `MemberText`.

        Values with different tails have nothing in common, so strings are told apart like keys: by one path.
        """
        strings = {}
        if len(tails) > 1:
            strings = {tail: found for tail, refs in tails.items() if (found := self.strings(refs)) is not None}
        way = self._way_to_tails(strings) if len(strings) > 1 else REFUSED
        if way:
            self.program.give(state, self.begin_name(way))
        for tail, refs in tails.items():
            self.whitespace.put_above(state, tail, self.value_edges(refs, level, not way))

    def strings(self, refs: Refs) -> StringSet | None:
        """The strings among some values."""
        found: StringSet | None = None
        for ref in refs:
            strings = self.values[ref].strings
            if strings is not None:
                found = strings if found is None else found.union(strings, self.meter)
        return found

    def _way_to_tails(self, strings: dict[State, StringSet]) -> int:
        """The target behind the opening quote of strings that lead to different tails; `REFUSED` if several count."""
        names = NONE
        bodies, afters = [], []
        for tail, members in strings.items():
            texts = members.texts(_LISTED)
            if texts is None:
                bodies.append(self.embedding.body(members))
                afters.append((tail,))
            names = self._with_texts(names, texts or [], (tail,))
        if sum(body.is_counted for body in bodies) > 1:
            return REFUSED
        return self.keys.after_quote(names, self._others(tuple(bodies), tuple(afters)) if bodies else None)

    def end_name(self, name: bytes | EdgeLists, tails: dict[State, Refs], level: int) -> int:
        """See `MemberText`."""
        return self.keys.action((self.program.target(self._after_key(tails, level)) << 16 | _QUOTE,))

    def _quote(self, after: tuple[State, ...]) -> Edge:
        """The edge of a quote to a sequence."""
        return self.program.target(after) << 16 | _QUOTE

    def _others(self, bodies: tuple[Body, ...], afters: tuple[tuple[State, ...], ...]) -> Others:
        return Others(bodies, tuple([First((self._quote(after),)) for after in afters]), afters)


def references(choice: Choice) -> Refs:
    """The values of a choice."""
    return (choice[0].value,) if len(choice) == 1 else tuple(sorted({option.value for option in choice}))


def grouped(choice: Choice, tail: Callable[[int], State | None]) -> dict[State, Refs]:
    """The values of a choice by the tail that each's marks lead to; None leads nowhere."""
    groups: dict[State, list[Option]] = {}
    for option in choice:
        state = tail(option.marks)
        if state is not None:
            groups.setdefault(state, []).append(option)
    return {state: references(tuple(options)) for state, options in groups.items()}
