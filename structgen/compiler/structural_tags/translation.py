"""From formats to the nodes of a grammar, which is lowered as GBNF is.

What a token or a definition of another kind describes is external to such a grammar. So is what stands behind a
trigger: it is translated by itself, when a text first comes to it.

A tag's ends are handed down to the free text that its content ends with, as exits; of other free text in it they are
excluded. Special tokens: wherever the name of one stands in a text, the token may stand in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ...budget import Meter
from ...system.depth_first import fold
from ..automata.edge_lists import EdgeLists
from ..gbnf.bounded_text import BoundedExit, bounded_text
from ..gbnf.syntax import (
    Choice,
    Exit,
    External,
    FreeText,
    GbnfGrammar,
    Node,
    NodeId,
    QuotedText,
    Repetition,
    Rule,
    Sequence,
    repeated,
)
from ..programs.program import TokenSet
from .formats import AnyText, AnyTokens, ConstText, Format, Inner, InRow, OneOf, OneToken, Repeated, Tagged
from .marks import Label, Marks
from .stops import Stops, texts_of
from .tokens import TokenNames

#: The ends of a tag; None where there is none.
Ends: TypeAlias = "tuple[ConstText | OneToken, ...] | None"

#: The states of free tokens with a bound.
_NONE_YET, _SOME, _NO_MORE, _END = range(4)


class Part(NamedTuple):
    """A format, and what ends the tag around it where the format is to end with that."""

    format: Format
    ends: Ends = None


class ExternalTable:
    """What grammars call that is not part of them, by number: tokens, and parts that are lowered by themselves."""

    def __init__(self, names: TokenNames, stops: Mapping[Format, Stops], marks: Marks | None = None) -> None:
        self.names = names
        self.stops = stops
        self.marks = marks
        self.all: list[TokenSet | Part] = []
        self._tokens: dict[TokenSet, int] = {}
        self._parts: dict[Part, int] = {}

    def token(self, tokens: TokenSet) -> int:
        """The number of some tokens."""
        number = self._tokens.setdefault(tokens, len(self.all))
        if number == len(self.all):
            self.all.append(tokens)
        return number

    def part(self, part: Part) -> int:
        """The number of a part."""
        number = self._parts.setdefault(part, len(self.all))
        if number == len(self.all):
            self.all.append(part)
        return number


def translate(root: Part, externals: ExternalTable, nullable: Callable[[Format], bool]) -> GbnfGrammar:
    """The grammar of a part, of one rule; ``nullable`` says of formats whether they may be empty, marks aside.

    Raises `VocabularyError` for tokens that the vocabulary lacks.
    """
    translation = _Translation(externals, nullable)
    number = fold(root, translation.expand)
    return GbnfGrammar(tuple(translation.nodes), (Rule(root.format.where or "/", root.format.where, 0, number),))


class _Translation:
    """The nodes made so far, and the plans for `fold`."""

    def __init__(self, externals: ExternalTable, nullable: Callable[[Format], bool]) -> None:
        self.nodes: list[Node] = []
        self._externals = externals
        self._nullable = nullable

    def _add(self, node: Node) -> NodeId:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def expand(self, part: Part) -> tuple[Iterable[Part], Callable[[list[NodeId]], NodeId]]:
        """The parts of a format, and what makes its node of theirs."""
        format_, ends = part
        parts, make = self._expand(part)
        if not self._is_marked(format_) or isinstance(format_, Tagged) or (ends and not format_.ends_free):
            return parts, make
        return parts, lambda nodes: self._marked(self._label(part), make(nodes))

    def _expand(self, part: Part) -> tuple[Iterable[Part], Callable[[list[NodeId]], NodeId]]:
        format_, ends = part
        if ends is not None and not format_.ends_free:
            return [Part(format_)], lambda nodes: self._row([nodes[0], self._ends(ends)])
        if isinstance(format_, ConstText):
            return [], lambda _: self._text(format_.value)
        if isinstance(format_, OneToken):
            return [], lambda _: self._token(free_tokens(format_, self._externals) if format_.complement else format_)
        if isinstance(format_, Inner):
            return [], lambda _: self._part(part)
        if isinstance(format_, InRow):
            *before, last = format_.parts
            return [*map(Part, before), Part(last, ends)], self._row
        if isinstance(format_, OneOf):
            return [Part(option, ends) for option in format_.options], self._choice
        if isinstance(format_, Repeated):
            return self._repeated(format_, ends)
        if isinstance(format_, Tagged):
            within = Part(format_.content, format_.ends)
            if not self._is_marked(format_):
                return [Part(format_.begin), within], self._row
            label = self._label(Part(format_, format_.ends))
            return [Part(format_.begin), within], lambda nodes: self._row([nodes[0], self._marked(label, nodes[1])])
        if isinstance(format_, AnyText):
            return self._free_text(format_, ends)
        assert isinstance(format_, AnyTokens)
        return self._free_tokens(format_, ends)

    # -- nodes -----------------------------------------------------------------------------------------

    def _row(self, nodes: list[NodeId]) -> NodeId:
        return nodes[0] if len(nodes) == 1 else self._add(Sequence(tuple(nodes)))

    def _choice(self, nodes: list[NodeId]) -> NodeId:
        return nodes[0] if len(nodes) == 1 else self._add(Choice(tuple(nodes)))

    def _text(self, value: str) -> NodeId:
        """A text, special tokens in it as such or by their names."""
        parts = []
        for text, token in self._externals.names.split(value):
            node = self._add(QuotedText(text.encode()) if text else Sequence(()))
            if token is not None:
                taken = self._add(External(self._externals.token(token), is_token=True))
                node = self._choice([node, taken])
            parts.append(node)
        return self._row(parts)

    def _token(self, format_: OneToken) -> NodeId:
        tokens = self._externals.names.tokens(format_)
        return self._add(External(self._externals.token(tokens), is_token=True))

    def _part(self, part: Part, *, marked: bool = False) -> NodeId:
        """A part; ``marked`` where its marks are part of it."""
        nullable = _may_end(part.ends) and self._nullable(part.format)
        nullable = nullable and not (marked and self._is_marked(part.format))
        return self._add(External(self._externals.part(part), nullable))

    # -- marks -----------------------------------------------------------------------------------------

    def _is_marked(self, format_: Format) -> bool:
        return bool(format_.label) and self._externals.marks is not None

    def _label(self, part: Part) -> Label:
        triggers = [str(trigger) for trigger, _ in getattr(part.format, "triggers", ())]
        ends = [self._externals.names.text(end) for end in part.ends or ()]
        return Label(part.format.label, tuple(filter(None, ends)), tuple(triggers))

    def _marked(self, label: Label, node: NodeId) -> NodeId:
        """A node between marks."""
        marks = self._externals.marks
        assert marks is not None
        numbers = map(self._externals.token, marks.around(label))
        first, last = (self._add(External(number, is_token=True)) for number in numbers)
        return self._row([first, node, last])

    def _ends(self, ends: tuple[ConstText | OneToken, ...]) -> NodeId:
        nodes = (self._text(end.value) if isinstance(end, ConstText) else self._token(end) for end in ends)
        return self._choice([*nodes])

    # -- formats of several parts ----------------------------------------------------------------------

    def _repeated(self, format_: Repeated, ends: Ends) -> tuple[list[Part], Callable[[list[NodeId]], NodeId]]:
        if ends is None:
            return [Part(format_.item)], lambda nodes: self._add(
                repeated(self.nodes, nodes[0], format_.min, format_.max)
            )
        return [Part(format_.item, ends)], lambda nodes: self._choice([nodes[0], self._ends(ends)])

    def _free_text(self, format_: AnyText, ends: Ends) -> tuple[list[Part], Callable[[list[NodeId]], NodeId]]:
        if format_.is_bounded:
            return [], lambda _: self._part(Part(format_, ends))
        behind = [Part(inner, None if format_.again else ends) for _, inner in format_.triggers]

        def make(_: list[NodeId]) -> NodeId:
            exits: list[Exit] = []
            for (trigger, _format), inner in zip(format_.triggers, behind, strict=True):
                exits += self._exits(
                    ConstText(format_.where, trigger), self._behind(format_, inner), again=format_.again
                )
            nothing = self._add(Sequence(()))
            for end in _written(ends):
                exits += self._exits(end, nothing, is_end=True)
            excludes = excludes_of(Part(format_, ends), self._externals)
            return self._add(FreeText(tuple(dict.fromkeys(exits)), excludes, _may_end(ends)))

        return [], make

    def _behind(self, format_: Format, part: Part) -> NodeId:
        """What stands behind a trigger of a format, and is not its text."""
        node = self._part(part, marked=True)
        return self._marked(Label(""), node) if self._is_marked(format_) else node

    def _exits(
        self, end: ConstText | OneToken, behind: NodeId, *, again: bool = False, is_end: bool = False
    ) -> Iterator[Exit]:
        """The exits that an end or a trigger is, each with what is written behind it, and then ``behind``."""
        for before, token, after in exits_of(end, self._externals):
            there = self._row([self._text(after), behind]) if after else behind
            yield Exit(before, there, token, again, is_end)

    def _free_tokens(self, format_: AnyTokens, ends: Ends) -> tuple[list[Part], Callable[[list[NodeId]], NodeId]]:
        """A loop of single tokens; those that trigger something, and those that end the tag, are not among them."""
        if format_.is_bounded:
            return [], lambda _: self._part(Part(format_, ends))
        free = free_tokens(format_, self._externals)

        def make(_: list[NodeId]) -> NodeId:
            turn = self._token(free)
            rules = [
                self._row([self._token(OneToken(format_.where, (trigger,))), self._behind(format_, Part(inner))])
                for trigger, inner in format_.triggers
            ]
            ended = [self._ends(ends)] if ends is not None else []
            if format_.again:
                turns = self._add(Repetition(self._choice([turn, *rules]), 0, None))
                return self._row([turns, *ended])
            turns = self._add(Repetition(turn, 0, None))
            if not rules:
                return self._row([turns, *ended])
            once = self._add(Repetition(self._choice(rules), 0, 1))
            return self._row([turns, once, *ended])

        return [], make


def exits_of(end: ConstText | OneToken, externals: ExternalTable) -> Iterator[tuple[str, int, str]]:
    """How a text comes to its end: by all of it, or by a token behind a part of it, and what is left to be written.

    Yields that part, the number of the token among the externals or -1, and the rest.
    """
    if isinstance(end, OneToken):
        yield "", externals.token(externals.names.tokens(end)), ""
        return
    yield end.value, -1, ""
    before = ""
    for piece, token in externals.names.split(end.value):
        if token is not None:
            yield before, externals.token(token), end.value[len(before) + len(piece) :]
        before += piece


def excludes_of(part: Part, externals: ExternalTable) -> tuple[str, ...]:
    """What free text does not hold, but for what it ends with."""
    assert isinstance(part.format, AnyText)
    stops = externals.stops[part.format] if part.ends is None else ()
    return (*part.format.excludes, *texts_of(stops))


def free_tokens(format_: AnyTokens | OneToken, externals: ExternalTable) -> OneToken:
    """The tokens that are free, or one of them: none that triggers something, and none that ends the tag around."""
    stops = externals.stops.get(format_, ())
    ending = [name for stop in stops if isinstance(stop, OneToken) for name in stop.names]
    if isinstance(format_, OneToken):
        return OneToken(format_.where, (*format_.names, *ending), complement=True)
    triggers = [trigger for trigger, _ in format_.triggers]
    return OneToken(format_.where, (*format_.excludes, *triggers, *ending), complement=True)


def bounded_rule(part: Part, externals: ExternalTable, meter: Meter) -> EdgeLists:
    """The automaton of free text or tokens with a bound, as a rule of its own."""
    format_, ends = part
    if isinstance(format_, AnyText):
        exits = [
            BoundedExit(before, token, externals.part(Part(ConstText(end.where, after))) if after else -1)
            for end in _written(ends)
            for before, token, after in exits_of(end, externals)
        ]
        return bounded_text(
            exits, excludes_of(part, externals), may_end=_may_end(ends), characters=format_.max_chars,
            tokens=format_.max_tokens, meter=meter,
        )  # fmt: skip
    assert isinstance(format_, AnyTokens)
    assert format_.max_tokens is not None
    token = externals.token(externals.names.tokens(free_tokens(format_, externals)))
    ended = tuple((-1 - externals.part(Part(end)), _END) for end in _written(ends))
    going_on = ((-1 - token, _SOME), *ended)
    calls: list[tuple[tuple[int, int], ...]] = [going_on, going_on, ended, ()]
    accepting = [_may_end(ends)] * 3 + [True]
    bounds = {_SOME: (format_.max_tokens, _NO_MORE)}
    start = _NONE_YET if format_.max_tokens else _NO_MORE
    return EdgeLists([(), (), (), ()], calls, accepting, [-1] * 4, [], [], start, bounds)


def _written(ends: Ends) -> Stops:
    """The ends that are not empty."""
    return tuple(end for end in ends or () if not isinstance(end, ConstText) or end.value)


def _may_end(ends: Ends) -> bool:
    """Whether nothing has to be written at the end."""
    return ends is None or len(_written(ends)) < len(ends)
