"""From formats to the nodes of a grammar, which is lowered as GBNF is.

What a token or a definition of another kind describes is external to such a grammar. So is what stands behind a
trigger: it is translated by itself, when a text first comes to it.

A tag's ends are handed down to the free text that its content ends with: the first of them ends that text, and with
it the tag. Special tokens: wherever the name of one stands in a text, the token may stand in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from ...errors import UnsupportedError
from ...system.depth_first import fold
from ..gbnf.syntax import (
    Choice,
    Exit,
    External,
    GbnfGrammar,
    Node,
    NodeId,
    QuotedText,
    Repetition,
    Rule,
    Sequence,
    repeated,
)
from ..gbnf.syntax import FreeText as FreeTextNode
from ..programs.program import TokenSet
from .formats import Format, FreeText, FreeTokens, Inner, InRow, OneOf, OneToken, Repeated, Tag, Text
from .tokens import TokenNames

#: What may end a tag; None where nothing has to.
Ends: TypeAlias = "tuple[Text | OneToken, ...] | None"


class Part(NamedTuple):
    """A format, and what ends the tag around it where the format is to end with that."""

    format: Format
    ends: Ends = None


class Externals:
    """What grammars call that is not part of them, by number: tokens, and parts that are lowered by themselves."""

    def __init__(self, names: TokenNames) -> None:
        self.names = names
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


def translate(root: Part, externals: Externals, nullable: Callable[[Format], bool]) -> GbnfGrammar:
    """The grammar of a part, of one rule.

    Raises `VocabularyError` for tokens that the vocabulary lacks.
    """
    translation = _Translation(externals, nullable)
    number = fold(root, translation.expand)
    return GbnfGrammar(tuple(translation.nodes), (Rule(root.format.where or "/", root.format.where, 0, number),))


class _Translation:
    """The nodes made so far, and the plans for `fold`."""

    def __init__(self, externals: Externals, nullable: Callable[[Format], bool]) -> None:
        self.nodes: list[Node] = []
        self._externals = externals
        self._nullable = nullable

    def _add(self, node: Node) -> NodeId:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def expand(self, part: Part) -> tuple[Iterable[Part], Callable[[list[NodeId]], NodeId]]:
        """The parts of a format, and what makes its node of theirs."""
        format_, ends = part
        if ends is not None and not format_.ends_free:
            return [Part(format_)], lambda nodes: self._row([nodes[0], self._ends(ends)])
        if isinstance(format_, Text):
            return [], lambda _: self._text(format_.value)
        if isinstance(format_, OneToken):
            return [], lambda _: self._token(format_)
        if isinstance(format_, Inner):
            return [], lambda _: self._part(part)
        if isinstance(format_, InRow):
            *before, last = format_.parts
            return [*map(Part, before), Part(last, ends)], self._row
        if isinstance(format_, OneOf):
            return [Part(option, ends) for option in format_.options], self._choice
        if isinstance(format_, Repeated):
            return self._repeated(format_, ends)
        if isinstance(format_, Tag):
            return [Part(format_.begin), Part(format_.content, _without_empty(format_.ends))], self._row
        if isinstance(format_, FreeText):
            return self._free_text(format_, ends)
        assert isinstance(format_, FreeTokens)
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
                taken = self._add(External(self._externals.token(token)))
                node = self._choice([node, taken])
            parts.append(node)
        return self._row(parts)

    def _token(self, format_: OneToken) -> NodeId:
        tokens = self._externals.names.tokens(format_)
        return self._add(External(self._externals.token(tokens)))

    def _part(self, part: Part) -> NodeId:
        return self._add(External(self._externals.part(part), part.ends is None and self._nullable(part.format)))

    def _ends(self, ends: tuple[Text | OneToken, ...]) -> NodeId:
        return self._choice([self._text(end.value) if isinstance(end, Text) else self._token(end) for end in ends])

    # -- formats of several parts ----------------------------------------------------------------------

    def _repeated(self, format_: Repeated, ends: Ends) -> tuple[list[Part], Callable[[list[NodeId]], NodeId]]:
        if ends is None:
            return [Part(format_.item)], lambda nodes: self._add(
                repeated(self.nodes, nodes[0], format_.min, format_.max)
            )
        return [Part(format_.item, ends)], lambda nodes: self._choice([nodes[0], self._ends(ends)])

    def _free_text(self, format_: FreeText, ends: Ends) -> tuple[list[Part], Callable[[list[NodeId]], NodeId]]:
        if format_.max_chars is not None or format_.max_tokens is not None:
            raise UnsupportedError("free text with a bound is not supported", where=format_.where)
        behind = [Part(inner, None if format_.again else ends) for _, inner in format_.triggers]

        def make(_: list[NodeId]) -> NodeId:
            exits: list[Exit] = []
            for (trigger, _format), inner in zip(format_.triggers, behind, strict=True):
                exits += self._exits(trigger, self._part(inner), format_.again)
            nothing = self._add(Sequence(()))
            for end in ends or ():
                if isinstance(end, Text):
                    exits += self._exits(end.value, nothing, False)
                else:
                    exits.append(Exit("", nothing, self._externals.token(self._externals.names.tokens(end))))
            return self._add(FreeTextNode(tuple(dict.fromkeys(exits)), format_.excludes, ends is None))

        return [], make

    def _exits(self, text: str, behind: NodeId, again: bool) -> list[Exit]:
        """The exits that a text is: with its last byte, or with a special token that stands for its name in it."""
        exits = [Exit(text, behind, again=again)]
        pieces = self._externals.names.split(text)
        before = ""
        for number, (piece, token) in enumerate(pieces):
            if token is not None:
                rest = self._text("".join([after for after, _ in pieces[number + 1 :]]))
                exits.append(Exit(before, self._row([rest, behind]), self._externals.token(token), again))
            before += piece
        return exits

    def _free_tokens(self, format_: FreeTokens, ends: Ends) -> tuple[list[Part], Callable[[list[NodeId]], NodeId]]:
        """A loop of single tokens; those that trigger something, and those that end the tag, are not among them."""
        most, names = format_.max_tokens, self._externals.names
        taken = [trigger for trigger, _ in format_.triggers]
        ending = [name for end in ends or () if isinstance(end, OneToken) for name in end.names]
        free = OneToken(format_.where, (*format_.excludes, *taken, *ending), complement=True)

        def make(_: list[NodeId]) -> NodeId:
            turn = self._add(External(self._externals.token(names.tokens(free))))
            rules = []
            for trigger, inner in format_.triggers:
                token = self._add(External(self._externals.token(names.tokens(OneToken(format_.where, (trigger,))))))
                rules.append(self._row([token, self._part(Part(inner))]))
            ended = [self._ends(ends)] if ends is not None else []
            if format_.again:
                turns = self._add(Repetition(self._choice([turn, *rules]), 0, most))
                return self._row([turns, *ended])
            turns = self._add(Repetition(turn, 0, most))
            if not rules:
                return self._row([turns, *ended])
            once = self._add(Repetition(self._choice(rules), 0, 1))
            return self._row([turns, once, *ended])

        return [], make


def _without_empty(ends: tuple[Text | OneToken, ...]) -> Ends:
    """The ends, or None where one is the empty text: then the tag may end wherever its content does."""
    return None if any(isinstance(end, Text) and not end.value for end in ends) else ends
