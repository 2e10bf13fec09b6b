"""From the text of a GBNF grammar to its syntax tree.

The syntax is llama.cpp's (``grammars/README.md`` and ``src/llama-grammar.cpp`` there), but for what a dialect says
otherwise (`dialects`). A rule ends with its line, but for line ends inside of parentheses, after ``::=`` and after
``|``. What llama.cpp lets pass and hardly anyone means is refused: a rule that is defined twice (there the last one
counts), an empty class (there the empty text), a range from high to low. What it refuses to keep its memory small is
read: more than 2,000 turns of a repeat.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from ...budget import Meter
from ...definitions import Regex
from ...definitions.token_sets import MARK, ids_of
from ...errors import BudgetExceededError, DefinitionError, StructgenError
from ...system.depth_first import fold
from ..automata.charset import Ranges, complement, normalise
from ..automata.dfa import Dfa
from ..automata.edge_lists import of_dfa
from ..automata.factors import factors_dfa
from ..patterns.dialects import read as read_regex
from ..patterns.lower import counts_far, language
from ..patterns.measures import children
from ..patterns.syntax import BYTES_OF_RANGE, Alternate, Chars, Repeat
from ..patterns.syntax import Node as RegexNode
from .attributes.attributed import WrittenAttributes, attributed
from .automata import network_of
from .characters import Character, read_character
from .dialects import GBNF, Escapes, GbnfDialect
from .macros import MacroReader
from .syntax import (
    MAX_COUNT,
    CharacterSet,
    Choice,
    External,
    FreeText,
    GbnfGrammar,
    Node,
    NodeId,
    QuotedText,
    Reference,
    Repetition,
    Rule,
    Sequence,
    Trigger,
    repeated,
)

_SPACE = re.compile(r"(?:[ \t]+|#[^\r\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_NUMBER = re.compile(r"[0-9]+")
_LINE_END = re.compile(r"\r\n?|\n")
_PLAIN = re.compile(r'[^"\\\0\ud800-\udfff]+')

#: All bytes; and those of characters that JSON's strings hold as they are.
_BYTES: Ranges = ((0, 0xFF),)
_IN_JSON: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xFF))

#: What ``*``, ``+`` and ``?`` stand for.
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass
class _Group:
    """Parentheses, or a whole rule, as far as they were read: whole options, and the items of the one at hand."""

    offset: int
    options: list[NodeId] = field(default_factory=list)
    items: list[NodeId] = field(default_factory=list)


#: Nodes between two looks at the clock, and what one takes.
_CHUNK, _BYTES_OF_NODE = 1024, 250


def read(text: str, meter: Meter, dialect: GbnfDialect = GBNF) -> GbnfGrammar:
    """Read a grammar.

    Raises
    ------
    DefinitionError
        For what is not GBNF, with its line and column; rules that are missing, or defined twice.
    UnsupportedError
        For what XGrammar has and is not read.
    BudgetExceededError
        For groups that are nested too deeply, and for repeats that count too far.
    """
    return _Reader(text, meter, dialect).read()


def read_with_places(text: str, meter: Meter, dialect: GbnfDialect = GBNF) -> tuple[GbnfGrammar, dict[NodeId, str]]:
    """The same, and the line and column of each text, class and name of a rule. Raises as `read` does."""
    reader = _Reader(text, meter, dialect)
    grammar = reader.read()
    return grammar, {node: reader.where(offset) for node, offset in reader.offsets.items()}


class _Reader:
    """Reads rule after rule; open groups are a list."""

    def __init__(self, text: str, meter: Meter, dialect: GbnfDialect) -> None:
        self._text = text
        self._dialect = dialect
        self._meter = meter
        self._at = 0
        self._lines = [0, *(found.end() for found in _LINE_END.finditer(text))]
        self._nodes: list[Node] = []
        self._numbers: dict[str, int] = {}
        self._mentioned: list[int] = []  # the offset at which each rule is named first
        self._rules: dict[int, Rule] = {}
        self._tokens: dict[str, int] = {}  # by how each is written: its number
        self._attributes: dict[int, WrittenAttributes] = {}  # by rule that has some
        #: Where each text, class and name of a rule begins.
        self.offsets: dict[NodeId, int] = {}

    def read(self) -> GbnfGrammar:
        """All rules."""
        self._at = 1 if self._text.startswith("\ufeff") else 0
        self._skip(lines=True)
        while self._at < len(self._text):
            self._meter.check_time("reading the grammar")
            self._rule()
        if not self._rules:
            raise self._error("the grammar has no rules", 'Write one: root ::= "yes" | "no".', 0)
        for name, number in self._numbers.items():
            if number not in self._rules:
                raise self._error(f"the rule {name} is not defined", f"Add {name} ::= ...", self._mentioned[number])
        rules = tuple(self._rules[number] for number in range(len(self._rules)))
        grammar = GbnfGrammar(tuple(self._nodes), rules, tuple(self._tokens))
        return attributed(grammar, self._attributes, [*self._rules], self._meter) if self._attributes else grammar

    # -- places ----------------------------------------------------------------------------------------

    def where(self, offset: int) -> str:
        """Line and column of an offset."""
        line = bisect_right(self._lines, offset)
        return f"line {line}, column {offset - self._lines[line - 1] + 1}"

    def _error(self, what: str, remedy: str, offset: int | None = None) -> DefinitionError:
        return DefinitionError(what, where=self.where(self._at if offset is None else offset), remedy=remedy)

    def _found(self) -> str:
        """What stands here, for a message."""
        return repr(self._text[self._at]) if self._at < len(self._text) else "the end of the grammar"

    def _skip(self, *, lines: bool) -> None:
        found = (_SPACE_AND_LINES if lines else _SPACE).match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    # -- rules -----------------------------------------------------------------------------------------

    def _rule(self) -> None:
        """``name ::= alternates``, to the end of the line."""
        begin, first = self._at, len(self._nodes)
        name = self._dialect.name.match(self._text, begin)
        if name is None:
            remedy = "Write NAME ::= ALTERNATES, each on a line of its own."
            if self._dialect.by_lines:
                remedy = "Rules end with their line: put what goes on in the next into parentheses, or end it with |."
            raise self._error(f"expected the name of a rule, found {self._found()}", remedy)
        number = self._number(name[0], begin)
        if number in self._rules:
            raise self._error(
                f"the rule {name[0]} is defined twice, first at {self._rules[number].where}",
                "Join the two with |, or rename one.",
            )
        self._at = name.end()
        if self._dialect.macros and self._next() == "[":
            macro = MacroReader(self._text, self._at, self._dialect.escapes, self.where, self._meter)
            self._attributes[number] = macro.attributes(name[0])
            self._at = macro.at
        self._skip(lines=not self._dialect.by_lines)
        if not self._text.startswith("::=", self._at):
            raise self._error(f"expected ::= after {name[0]}, found {self._found()}", "Write NAME ::= ALTERNATES.")
        self._at += 3
        self._skip(lines=True)
        root = self._alternates()
        if self._dialect.macros and self._text.startswith("(=", self._at):
            self._look_ahead()
        self._rules[number] = Rule(name[0], self.where(begin), first, root)
        self._skip(lines=True)

    def _look_ahead(self) -> None:
        """What is said to follow a rule. XGrammar takes it for a hint: it changes no text, and is read over."""
        begin = self._at
        self._at += 2
        self._alternates(begin)
        self._skip(lines=True)
        if self._at < len(self._text) and self._head() is None:
            raise self._error("something stands behind a look-ahead", "A look-ahead ends its rule.")

    def _head(self) -> re.Match[str] | None:
        """The beginning of a rule, where one comes next."""
        return self._dialect.head.match(self._text, self._at)

    def _is_over(self, character: str) -> bool:
        """Whether a rule ends here, outside of parentheses."""
        if self._dialect.by_lines or not character:
            return character in ("", "\r", "\n")
        if self._text.startswith("(=", self._at):
            return True
        if self._head() is None:
            return False
        line = self._text[self._lines[bisect_right(self._lines, self._at) - 1] : self._at]
        if line.strip(" \t"):
            raise self._error("a rule begins within a line", "Begin it on a line of its own.")
        return True

    def _number(self, name: str, offset: int) -> int:
        number = self._numbers.setdefault(name, len(self._mentioned))
        if number == len(self._mentioned):
            self._mentioned.append(offset)
        return number

    def _alternates(self, opened: int = -1) -> NodeId:
        """The right side of a rule; or what stands in parentheses, which begin at ``opened``."""
        groups = [_Group(self._at)] if opened < 0 else [_Group(opened), _Group(opened)]
        while len(groups) > 1 or opened < 0:
            nested = len(groups) > 1
            self._skip(lines=nested or not self._dialect.by_lines)
            character, group = self._next(), groups[-1]
            if not nested and self._is_over(character):
                self._end_option(group)
                return self._add(Choice(tuple(group.options)))
            if character == "|":
                self._at += 1
                self._skip(lines=True)
                self._end_option(group)
            elif character == "(":
                self._open(groups)
            elif character == ")" and nested:
                self._at += 1
                self._end_option(group)
                groups.pop()
                groups[-1].items.append(self._choice(group.options))
            elif not character:
                raise self._error("a parenthesis is never closed", "Add the missing ).", group.offset)
            else:
                self._item(group, character)
        return groups[0].items[0]

    def _open(self, groups: list[_Group]) -> None:
        groups.append(_Group(self._at))
        depth = self._meter.budget.depth
        if len(groups) > depth + 1:
            raise BudgetExceededError(
                f"the grammar nests more than depth={depth:,} groups",
                where=self.where(self._at),
                remedy="Remove parentheses that group nothing, or pass a larger budget=Budget(depth=...).",
            )
        self._at += 1

    def _end_option(self, group: _Group) -> None:
        items, group.items = group.items, []
        if not items and not self._dialect.may_be_empty and (group.options or self._text[self._at - 1] != ")"):
            raise self._error(f"expected a part of a rule, found {self._found()}", 'Write "" for the empty text.')
        group.options.append(items[0] if len(items) == 1 else self._add(Sequence(tuple(items))))

    def _choice(self, options: list[NodeId]) -> NodeId:
        return options[0] if len(options) == 1 else self._add(Choice(tuple(options)))

    def _add(self, node: Node) -> NodeId:
        self._nodes.append(node)
        if len(self._nodes) % _CHUNK == 0:
            self._meter.check_time("reading the grammar")
            self._meter.hold(_CHUNK * _BYTES_OF_NODE, "reading the grammar")
        return len(self._nodes) - 1

    # -- items -----------------------------------------------------------------------------------------

    def _item(self, group: _Group, character: str) -> None:
        """What is neither ``|`` nor a parenthesis."""
        begin, before = self._at, len(group.items)
        if character == '"':
            group.items.append(self._literal())
        elif character == "[":
            group.items.append(self._add(self._class()))
        elif character == "." and self._dialect.dot is not None:
            self._at += 1
            group.items.append(self._add(CharacterSet(self._dialect.dot)))
        elif character in _SIGNS or character == "{":
            self._repeat(group, character)
        elif name := self._dialect.name.match(self._text, self._at):
            if self._dialect.macros and name[0] in _MACROS:
                group.items.append(self._macro(name[0]))
            else:
                group.items.append(self._add(Reference(self._number(name[0], self._at))))
                self._at = name.end()
        elif character in "<!" and self._dialect.tokens:
            group.items.append(self._token())
        else:
            raise self._error(
                f"found {self._found()} where a rule goes on or ends",
                'Text goes between quotes: "...". Each rule needs a line of its own.',
            )
        if len(group.items) > before:
            self.offsets[group.items[-1]] = begin

    def _token(self) -> NodeId:
        """A token by its name or its id, or all others."""
        mark = MARK.match(self._text, self._at)
        if mark is None:
            raise self._error("no token is named here", "Write <think>, <[123]>, !<think>; quote a < that is text.")
        return self._taken(mark[0], mark.end())

    def _taken(self, mark: str, end: int) -> NodeId:
        """A token as it would be written in GBNF, of which something up to ``end`` was read."""
        try:
            ids_of(mark)
        except DefinitionError as error:
            raise error.within(self.where(self._at)) from None
        self._at = end
        return self._add(External(self._tokens.setdefault(mark, len(self._tokens)), takes_tokens=True))

    def _macro(self, name: str) -> NodeId:
        """One of XGrammar's macros."""
        begin = self._at
        macro = MacroReader(self._text, begin, self._dialect.escapes, self.where, self._meter)
        found = _MACROS[name](self, macro)
        self._at = macro.at
        return found

    def _tag_dispatch(self, macro: MacroReader) -> NodeId:
        dispatch = macro.tag_dispatch()
        triggers = [
            Trigger(text, self._add(Reference(self._number(rule, offset))), again=dispatch.again)
            for text, rule, offset in dispatch.tags
        ]
        return self._add(FreeText(tuple(triggers), tuple(dict.fromkeys(dispatch.excludes))))

    def _token_tag_dispatch(self, macro: MacroReader) -> NodeId:
        """Tokens that are no tags and not excluded; and tags, each with its rule."""
        dispatch = macro.token_tag_dispatch()
        turn = self._among([*(tag for tag, _, _ in dispatch.tags), *dispatch.excludes], others=True)
        rules = [
            self._add(Sequence((self._among([tag]), self._add(Reference(self._number(rule, offset))))))
            for tag, rule, offset in dispatch.tags
        ]
        if dispatch.again:
            return self._add(Repetition(self._choice([turn, *rules]), 0, None))
        turns = self._add(Repetition(turn, 0, None))
        if not rules:
            return turns
        return self._add(Sequence((turns, self._add(Repetition(self._choice(rules), 0, 1)))))

    def _among(self, ids: list[int], *, others: bool = False) -> NodeId:
        """One token of some, or one of all others."""
        listed = ",".join(map(str, sorted({*ids})))
        mark = f"<[{'^' if others else ''}{listed}]>" if ids else "<[*]>"
        return self._taken(mark, self._at)

    def _regex(self, macro: MacroReader) -> NodeId:
        """The automaton of a regex, as JavaScript has it."""
        begin, found = self._at, macro.regex()
        try:
            tree = read_regex(Regex(found.pattern, found.flags, "ecma"), self._meter)
            if not found.in_json and counts_far(tree, self._meter):
                return self._counting(tree)
            return self._network(language(tree, self._meter, count=False), only=_IN_JSON if found.in_json else _BYTES)
        except StructgenError as error:
            raise error.within(self.where(begin)) from None

    def _substring(self, macro: MacroReader) -> NodeId:
        """Any run of some texts."""
        begin, texts = self._at, macro.texts()
        try:
            return self._network(factors_dfa(texts, self._meter))
        except BudgetExceededError as error:
            raise BudgetExceededError(
                error.what,
                where=self.where(begin),
                remedy="Pass a larger budget=Budget(states=...), twice its characters will do; or use sg.Grammar, in"
                ' Lark\'s syntax, whose %regex {"substring_chars": ...} spells out no text of megabytes.',
            ) from error

    def _network(self, dfa: Dfa, only: Ranges = _BYTES) -> NodeId:
        return self._add(network_of(of_dfa(dfa, self._meter), only))

    def _counting(self, tree: RegexNode) -> NodeId:
        """The nodes of a regex that looks nowhere, whose repeats are counted as those of rules."""

        def expand(node: RegexNode) -> tuple[tuple[RegexNode, ...], Callable[[list[NodeId]], NodeId]]:
            if isinstance(node, Chars):
                return (), lambda _: self._add(CharacterSet(node.ranges))
            if isinstance(node, Alternate):
                return node.options, lambda below: self._add(Choice(tuple(below)))
            if isinstance(node, Repeat):
                return (node.item,), lambda below: self._add(self._repeated(below[0], node.min, node.max, self._at))
            return children(node), lambda below: self._add(Sequence(tuple(below)))

        return fold(tree, expand)

    def _literal(self) -> NodeId:
        begin = self._at
        self._at += 1
        parts: list[str] = []
        while (character := self._next()) != '"':
            if plain := _PLAIN.match(self._text, self._at):
                parts.append(plain[0])
                if not self._dialect.by_lines and (broken := _LINE_END.search(plain[0])):
                    raise self._error("a quoted text goes over a line", "Write \\n.", plain.start() + broken.start())
                self._at = plain.end()
            elif character:
                parts.append(chr(self._character(self._dialect.escapes)))
            else:
                raise self._error("a quoted text never ends", 'Add the missing ".', begin)
        self._at += 1
        data = "".join(parts).encode()
        return self._add(QuotedText(data) if data else Sequence(()))

    def _character(self, escapes: Escapes) -> int:
        """A character or an escape; not the end."""
        found = read_character(self._text, self._at, escapes)
        if not isinstance(found, Character):
            raise self._error(found.what, found.remedy)
        self._at = found.end
        return found.code

    def _class(self) -> CharacterSet:
        begin = self._at
        self._at += 1
        negated = self._next() == "^"
        self._at += negated
        spans: list[tuple[int, int]] = []
        while (character := self._next()) != "]":
            if not character or (character in "\r\n" and not self._dialect.by_lines):
                raise self._error("a class of characters never ends", "Add the missing ].", begin)
            place = self._at
            low = high = self._character(self._dialect.in_classes)
            if self._next() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._character(self._dialect.in_classes)
            if low > high:
                raise self._error(f"the range goes from U+{low:04X} down to U+{high:04X}", "Swap its ends.", place)
            if not len(spans) % _CHUNK:
                self._meter.check_time("reading the grammar")
                self._meter.check_memory(BYTES_OF_RANGE * len(spans), "reading the grammar")
            spans.append((low, high))
        if not spans and not self._dialect.macros:
            raise self._error(
                "an empty class of characters", 'Write "" for the empty text, . for any character.', begin
            )
        self._at += 1
        ranges = normalise(spans)
        return CharacterSet(complement(ranges) if negated else ranges)

    # -- repetition ------------------------------------------------------------------------------------

    def _repeat(self, group: _Group, sign: str) -> None:
        """What stands after an item: a sign, or bounds in braces."""
        if not group.items:
            raise self._error(f"there is nothing before {sign} to repeat", "Quote it if it is meant as text.")
        place = self._at
        self._at += 1
        low, high = self._bounds(place) if sign == "{" else _SIGNS[sign]
        group.items[-1] = self._add(self._repeated(group.items[-1], low, high, place))

    def _repeated(self, item: NodeId, low: int, high: int | None, place: int) -> Repetition:
        found = repeated(self._nodes, item, low, high)
        if max(found.min, found.max or 0) > MAX_COUNT:
            raise self._too_many(place)
        return found

    def _bounds(self, place: int) -> tuple[int, int | None]:
        """``m}``, ``m,}`` or ``m,n}``."""
        low = 0 if self._dialect.open_bounds and self._next() == "," else self._count(place)
        high: int | None = low
        if self._next() == ",":
            self._at += 1
            self._skip(lines=False)
            self._at += 2 if self._dialect.macros and self._text.startswith("-1", self._at) else 0
            self._skip(lines=False)
            high = None if self._next() == "}" else self._count(place)
        if self._next() != "}":
            raise self._error(f"expected }} after the bounds, found {self._found()}", "Write {m}, {m,} or {m,n}.")
        self._at += 1
        if high is not None and high < low:
            raise self._error(f"the bounds {low} to {high} leave no number of turns", "Swap them.", place)
        return low, high

    def _count(self, place: int) -> int:
        self._skip(lines=False)
        digits = _NUMBER.match(self._text, self._at)
        if digits is None:
            raise self._error(
                f"expected a number, found {self._found()}", "Write {m}, {m,} or {m,n}; {0,n} for up to n."
            )
        self._at = digits.end()
        self._skip(lines=False)
        significant = digits[0].lstrip("0")
        if len(significant) > len(str(MAX_COUNT)):
            raise self._too_many(place)
        return int(significant or "0")

    def _too_many(self, place: int) -> BudgetExceededError:
        return BudgetExceededError(
            f"a repeat counts further than {MAX_COUNT:,}",
            where=self.where(place),
            remedy="Use * or + where any number will do.",
        )


#: XGrammar's macros by name: what makes the node of each.
_MACROS: dict[str, Callable[[_Reader, MacroReader], NodeId]] = {
    "TagDispatch": _Reader._tag_dispatch,
    "TokenTagDispatch": _Reader._token_tag_dispatch,
    "Token": lambda reader, macro: reader._among(macro.ids()),
    "ExcludeToken": lambda reader, macro: reader._among(macro.ids(), others=True),
    "Regex": _Reader._regex,
    "Substring": _Reader._substring,
}
