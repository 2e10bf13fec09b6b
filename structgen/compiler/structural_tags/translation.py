"""From formats to the nodes of a grammar, which is lowered as GBNF is.

What a token or a definition of another kind describes is external to such a grammar. So is what stands behind a
trigger: it is translated by itself, when a text first comes to it.

The ends of the nearest tag around free text are excluded from it. Special tokens: wherever the name of one stands in
a text, the token may stand in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from ...budget import Meter
from ...system.depth_first import fold
from ..automata.edge_lists import EdgeLists, in_columns
from ..gbnf.bounded_text import End, bounded_text
from ..gbnf.syntax import (
    Choice,
    External,
    FreeText,
    GbnfGrammar,
    Node,
    NodeId,
    QuotedText,
    Repetition,
    Rule,
    Sequence,
    Trigger,
    repeated,
)
from ..programs.program import TokenSet
from .common_begins import by_begins
from .formats import (
    AnyText,
    AnyTokens,
    ConstText,
    Ended,
    Format,
    InRow,
    Later,
    OneOf,
    OneToken,
    PlainTag,
    Repeated,
    Tagged,
)
from .marks import Label, Marks
from .reader import read_tag
from .stops import Stops, texts_of
from .tokens import TokenNames
from .work import MOST_LATE

#: The states of free tokens with a bound.
_NONE_YET, _SOME, _NO_MORE = range(3)


class ExternalTable:
    """What grammars call that is not part of them, by number: tokens, and parts that are lowered by themselves."""

    def __init__(
        self,
        names: TokenNames,
        stops: Mapping[Format, Stops],
        meter: Meter,
        marks: Marks | None = None,
        taking: Collection[Format] = frozenset(),
    ) -> None:
        self.names = names
        self.stops = stops
        self.marks = marks
        self.taking = taking  # definitions of other kinds that may begin with tokens
        self.all: list[TokenSet | Format] = []
        self._tokens: dict[TokenSet, int] = {}
        self._parts: dict[Format, int] = {}
        self._ended: dict[Tagged, Ended] = {}
        self._options: dict[OneOf, list[Format]] = {}
        self._whole: dict[PlainTag, Tagged] = {}
        self._meter = meter

    def options(self, format_: OneOf, work: Mapping[Format, int] = MappingProxyType({})) -> list[Format]:
        """What a format is one of, tags that begin alike together, but for those that are much ``work``."""
        if format_ not in self._options:
            large = [option for option in format_.options if work.get(option, 0) > MOST_LATE]
            others = [option for option in format_.options if option not in large] if large else format_.options
            self._options[format_] = [*large, *by_begins(others, self.names)]
        return self._options[format_]

    def whole(self, tag: PlainTag) -> Tagged:
        """A tag that was not read yet."""
        if tag not in self._whole:
            self._whole[tag] = read_tag(tag, self._meter)
        return self._whole[tag]

    def token(self, tokens: TokenSet) -> int:
        """The number of some tokens."""
        number = self._tokens.setdefault(tokens, len(self.all))
        if number == len(self.all):
            self.all.append(tokens)
        return number

    def ended(self, tag: Tagged) -> int:
        """The number of a tag's content and ends, where the content counts."""
        text = tag.content
        assert isinstance(text, AnyText)
        return self.part(self._ended.setdefault(tag, Ended(text.where, text, tag.ends)))

    def part(self, part: Format) -> int:
        """The number of a part."""
        number = self._parts.setdefault(part, len(self.all))
        if number == len(self.all):
            self.all.append(part)
        return number


def translate(root: Format, externals: ExternalTable, nullable: Callable[[Format], bool]) -> GbnfGrammar:
    """The grammar of a part, of one rule; ``nullable`` says of formats whether they may be empty, marks aside.

    Raises `VocabularyError` for tokens that the vocabulary lacks.
    """
    translation = _Translation(externals, nullable)
    number = fold(root, translation.expand)
    return GbnfGrammar(tuple(translation.nodes), (Rule(root.where or "/", root.where, 0, number),))


class _Translation:
    """The nodes made so far, and the plans for `fold`."""

    def __init__(self, externals: ExternalTable, nullable: Callable[[Format], bool]) -> None:
        self.nodes: list[Node] = []
        self._externals = externals
        self._nullable = nullable

    def _add(self, node: Node) -> NodeId:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def expand(self, format_: Format) -> tuple[Iterable[Format], Callable[[list[NodeId]], NodeId]]:
        """The parts of a format, and what makes its node of theirs."""
        parts, make = self._expand(format_)
        if isinstance(format_, Tagged):
            return parts, make
        return parts, lambda nodes: self._marked(format_, make(nodes))

    def _expand(self, format_: Format) -> tuple[Iterable[Format], Callable[[list[NodeId]], NodeId]]:
        if isinstance(format_, ConstText):
            return [], lambda _: self._text(format_.value)
        if isinstance(format_, OneToken):
            return [], lambda _: self._token(free_tokens(format_, self._externals) if format_.complement else format_)
        if isinstance(format_, InRow):
            return format_.parts, self._row
        if isinstance(format_, OneOf):
            return self._externals.options(format_), self._choice
        if isinstance(format_, Later):
            return [], lambda _: self._later(format_.inner)
        if isinstance(format_, PlainTag):
            return [self._externals.whole(format_)], self._row
        if isinstance(format_, Repeated):
            return [format_.item], lambda nodes: self._add(repeated(self.nodes, nodes[0], format_.min, format_.max))
        if isinstance(format_, Tagged) and format_.is_bounded and self._externals.marks is None:
            return [format_.begin], lambda nodes: self._row([*nodes, self._ended(format_)])
        if isinstance(format_, Tagged):
            parts = format_.begin, format_.content, *format_.ends
            return parts, lambda nodes: self._row([nodes[0], self._marked(format_, nodes[1]), self._choice(nodes[2:])])
        return [], lambda _: self._leaf(format_)

    def _leaf(self, format_: Format) -> NodeId:
        if isinstance(format_, AnyText) and not format_.is_bounded:
            return self._free_text(format_)
        if isinstance(format_, AnyTokens) and not format_.is_bounded:
            return self._free_tokens(format_)
        return self._part(format_)

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
                taken = self._add(External(self._externals.token(token), takes_tokens=True))
                node = self._choice([node, taken])
            parts.append(node)
        return self._row(parts)

    def _token(self, format_: OneToken) -> NodeId:
        tokens = self._externals.names.tokens(format_)
        return self._add(External(self._externals.token(tokens), takes_tokens=True))

    def _part(self, part: Format) -> NodeId:
        """A part without its marks."""
        takes_tokens = part in self._externals.taking
        return self._add(External(self._externals.part(part), self._nullable(part), takes_tokens))

    def _later(self, part: Format) -> NodeId:
        """A part that is translated with its marks."""
        return self._add(External(self._externals.part(part), self._nullable(part) and not self._has_marks(part)))

    def _behind(self, format_: AnyText | AnyTokens, part: Format) -> NodeId:
        """What stands behind a trigger of a format, and is not its text."""
        node = self._later(part)
        return self._between(Label(""), node) if self._has_marks(format_) else node

    # -- marks -----------------------------------------------------------------------------------------

    def _has_marks(self, format_: Format) -> bool:
        return bool(format_.label) and self._externals.marks is not None

    def _marked(self, format_: Format, node: NodeId) -> NodeId:
        """A format's node between its marks, if it has any."""
        if not self._has_marks(format_):
            return node
        texts: list[str] = []
        if isinstance(format_, AnyText):
            texts += (trigger for trigger, _ in format_.triggers)
        elif isinstance(format_, AnyTokens):
            texts += (self._externals.names.text(trigger) for trigger, _ in format_.triggers)
        return self._between(Label(format_.label, tuple(texts)), node)

    def _between(self, label: Label, node: NodeId) -> NodeId:
        marks = self._externals.marks
        assert marks is not None
        numbers = map(self._externals.token, marks.around(label))
        first, last = (self._add(External(number, takes_tokens=True)) for number in numbers)
        return self._row([first, node, last])

    def _ended(self, tag: Tagged) -> NodeId:
        """Free text with a bound, and its ends. (For masks: behind it each count would have to hand tokens down.)"""
        return self._add(External(self._externals.ended(tag), any(map(self._nullable, tag.ends))))

    def _free_text(self, format_: AnyText) -> NodeId:
        triggers: list[Trigger] = []
        for trigger, behind in format_.triggers:
            part = self._behind(format_, behind)
            for before, token, after in self._writings(trigger):
                there = self._row([self._text(after), part]) if after else part
                triggers.append(Trigger(before, there, token, format_.again))
        return self._add(FreeText(tuple(triggers), excludes_of(format_, self._externals)))

    def _writings(self, trigger: str) -> Iterator[tuple[str, int, str]]:
        """How free text comes to a trigger: by all of it, or by a token behind a part of it, and what is left then.

        Yields that part, the number of the token among the externals or -1, and the rest.
        """
        yield trigger, -1, ""
        before = ""
        for piece, token in self._externals.names.split(trigger):
            if token is not None:
                yield before, self._externals.token(token), trigger[len(before) + len(piece) :]
            before += piece

    def _free_tokens(self, format_: AnyTokens) -> NodeId:
        """A loop of single tokens; those that trigger something, and those that end the tag, are not among them."""
        turn = self._token(free_tokens(format_, self._externals))
        rules = [
            self._row([self._token(OneToken(format_.where, (trigger,))), self._behind(format_, inner)])
            for trigger, inner in format_.triggers
        ]
        if format_.again:
            return self._add(Repetition(self._choice([turn, *rules]), 0, None))
        turns = self._add(Repetition(turn, 0, None))
        return self._row([turns, self._add(Repetition(self._choice(rules), 0, 1))]) if rules else turns


def excludes_of(format_: AnyText, externals: ExternalTable) -> tuple[str, ...]:
    """What free text does not hold, but for its triggers."""
    return (*format_.excludes, *texts_of(externals.stops[format_]))


def free_tokens(format_: AnyTokens | OneToken, externals: ExternalTable) -> OneToken:
    """The tokens that are free, or one of them: none that triggers something, and none that ends the tag around."""
    stops = externals.stops.get(format_, ())
    ending = [name for stop in stops if isinstance(stop, OneToken) for name in stop.names]
    if isinstance(format_, OneToken):
        return OneToken(format_.where, (*format_.names, *ending), complement=True)
    triggers = [trigger for trigger, _ in format_.triggers]
    return OneToken(format_.where, (*format_.excludes, *triggers, *ending), complement=True)


def bounded_rule(format_: Ended | AnyText | AnyTokens, externals: ExternalTable, meter: Meter) -> EdgeLists:
    """The automaton of free text or tokens with a bound, as a rule of its own."""
    if isinstance(format_, Ended | AnyText):
        text, ends = (format_.text, format_.ends) if isinstance(format_, Ended) else (format_, (ConstText("", ""),))
        return bounded_text(
            FreeText((), excludes_of(text, externals)), [_end(end, externals) for end in ends],
            characters=text.max_chars, tokens=text.max_tokens, meter=meter,
        )  # fmt: skip
    assert format_.max_tokens is not None
    token = externals.token(externals.names.tokens(free_tokens(format_, externals)))
    calls: list[tuple[tuple[int, int], ...]] = [((-1 - token, _SOME),)] * 2 + [()]
    start, bounds = _NONE_YET if format_.max_tokens else _NO_MORE, {_SOME: (format_.max_tokens, _NO_MORE)}
    return EdgeLists(in_columns([]), calls, [True] * 3, [-1] * 3, [], [], start, bounds)


def _end(end: ConstText | OneToken, externals: ExternalTable) -> End:
    """What free text with a bound ends with."""
    if isinstance(end, OneToken):
        return [("", externals.token(externals.names.tokens(end)))]
    pieces = externals.names.split(end.value)
    return [(text, -1 if token is None else externals.token(token)) for text, token in pieces]
