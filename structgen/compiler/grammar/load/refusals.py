"""Why Lark does not load a grammar: what is wrong, its place in the author's text, and what to write instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ....budget import Meter
from ....errors import BudgetExceededError, DefinitionError, StructgenError
from .dialects import blanked, foreign_notation

if TYPE_CHECKING:
    from lark import Token
    from lark.load_grammar import Definition


#: How names of rules end that were made of one with a parameter.
_INSTANCE = re.compile(r"__p+[0-9a-f]+\Z")


class Places(NamedTuple):
    """A text whose lines are those that its author wrote, but for rewriting within them and rules at its end."""

    text: str
    written: str

    def of(self, line: int, column: int) -> str:
        """Where a place in the text is for its author: the line alone, or the rule, where more would be wrong."""
        ours, theirs = (each.split("\n")[line - 1 : line] for each in self)
        if ours == theirs:
            return f"line {line}, column {column}"
        name = re.match(r"[?!]*(\w+)", ours[0]) if ours and line > self.written.count("\n") + 1 else None
        if name is None:
            return f"line {line}"
        return f"rule {name[1] if name[1] in self.written else _INSTANCE.sub('', name[1])}"

    def of_token(self, token: Token) -> str:
        """Where a token of Lark's is; empty where it is one of another file, which was imported."""
        line, column = token.line or 0, token.column or 0
        there = self.text.split("\n")[line - 1 : line]
        is_there = there and there[0].startswith(token.split("\n")[0], column - 1)
        return self.of(line, column) if is_there else ""

    def of_definition(self, name: str) -> str:
        """Where a rule or a terminal is defined; empty where that is in another file."""
        return self.of_match(_DEFINED.format(re.escape(name)))

    def of_match(self, pattern: str, *, last: bool = False) -> str:
        """Where what matches outside of strings, regexes and comments is; empty where nothing does."""
        found = [*re.finditer(pattern, blanked(self.text), re.MULTILINE)]
        if not found:
            return ""
        at = found[-1 if last else 0].start()
        return self.of(self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at))


def refusal(
    error: Exception,
    definitions: Mapping[str, Definition],
    declared: Collection[str],
    source: str,
    places: Places,
    meter: Meter,
) -> StructgenError:
    """The error in place of one of Lark's.

    Parameters
    ----------
    definitions:
        What Lark had read until then.
    declared:
        Terminals without a definition.
    source:
        The file that the grammar is from.

    Raises `BudgetExceededError`.
    """
    return (
        _bad_literal(definitions, places, meter)
        or _declared_rule(definitions, places)
        or (_given_in_terminal(definitions, declared, places) if isinstance(error, AssertionError) else None)
        or foreign_notation(places.text, places.of)
        or _as_ours(error, source, places)
    )


def no_start(start: str, definitions: Mapping[str, Definition], places: Places) -> DefinitionError:
    """The error for a grammar without the rule that a whole text is; its place is that of the first rule."""
    names = [name for name, each in definitions.items() if not each.is_term and not each.params and "__" not in name]
    remedy = f"Name the rule that a whole text is: start=..., one of {', '.join(names[:_MOST_NAMES])}."
    where = places.of_definition(names[0]) if names else ""
    return DefinitionError(
        f"there is no rule {start!r}",
        where=where or "line 1, column 1",
        remedy=remedy if names else f"Write one: {start}: ...",
    )


#: Rules that a message names.
_MOST_NAMES = 20

#: Where a rule or a terminal is defined, by its name.
_DEFINED = r"^[ \t]*[?!]*{}\b"


def _joined(place: str, what: str) -> str:
    return f"{place}: {what}" if place else what


def _declared_rule(definitions: Mapping[str, Definition], places: Places) -> DefinitionError | None:
    """What is wrong with the first rule that is declared."""
    for name, definition in definitions.items():
        if not definition.is_term and definition.tree is None:
            return DefinitionError(
                f"the rule {name} is declared and not defined",
                where=places.of_match(rf"%declare\b.*(?<!\w){re.escape(name)}"),
                remedy="Terminals are declared, by names in capital letters.",
            )
    return None


def _given_in_terminal(
    definitions: Mapping[str, Definition], declared: Collection[str], places: Places
) -> DefinitionError | None:
    """What is wrong with the first terminal that holds another one without a pattern."""
    for name, definition in definitions.items():
        if definition.is_term and definition.tree is not None:
            names = definition.tree.scan_values(lambda each: getattr(each, "name", each) in declared)
            if (inner := next((getattr(each, "name", each) for each in names), None)) is not None:
                holder = f"the terminal {name}" if name in places.written else "a suffix or a stop"
                return DefinitionError(
                    f"{holder} holds {inner}, which is no text for a lexer: a special token, a schema, or"
                    " another definition",
                    where=_joined(places.of_definition(name), f"terminal {name}"),
                    remedy="Name it in a rule; names of rules are in small letters.",
                )
    return None


def _bad_literal(definitions: Mapping[str, Definition], places: Places, meter: Meter) -> DefinitionError | None:
    """What is wrong with the first range, string or regex that can't be read; Lark says of it what `re` does.

    Raises `BudgetExceededError`.
    """
    for name, definition in definitions.items():
        for parts in definition.tree.find_data("range") if definition.tree is not None else ():
            if (error := _bad_range(parts.children, name, places)) is not None:
                return error
        for literal in definition.tree.find_data("literal") if definition.tree is not None else ():
            meter.check_time("loading the grammar")
            if (error := _bad_token(literal.children[0], name, places)) is not None:
                return error
    return None


def _bad_range(ends: list[Token], name: str, places: Places) -> DefinitionError | None:
    what = f"the range {ends[0]}..{ends[1]}"
    where = _joined(places.of_token(ends[0]), name)
    if any(end.endswith("i") for end in ends):
        return DefinitionError(f"{what} has a flag", where=where, remedy="Write a class, such as /[a-z]/i.")
    try:
        first, last = map(ast.literal_eval, ends)
    except (SyntaxError, ValueError) as error:
        reason = _ESCAPE.search(str(error))
        what = f"{what} cannot be read: {reason[0].strip() if reason else _first_line(error)}"
        return DefinitionError(what, where=where, remedy=_ESCAPES)
    if len(first) != 1 or len(last) != 1:
        return DefinitionError(f"{what} has ends that are not one character", where=where, remedy='Write "a".."z".')
    if first > last:
        return DefinitionError(f"{what} ends before it begins", where=where, remedy="Turn it round.")
    return None


#: What Python says of a literal, without the codec's name and the place in it.
_ESCAPE = re.compile(r"(?:truncated|malformed|illegal|unknown) [^('\"]*")
_ESCAPES = r"Escapes are \x0a, \u000a and \U0000000a, with as many digits."


def _bad_token(token: Token, name: str, places: Places) -> DefinitionError | None:
    """What is wrong with a string or a regex."""
    from lark.load_grammar import _literal_to_pattern
    from lark.utils import sre_parse  # type: ignore[attr-defined]

    of = f"{token if len(token) < _MOST_SHOWN else token[:_MOST_SHOWN] + '...'} of {name}"
    place = places.of_token(token)
    if token.type == "REGEXP" and "\n" in token and "x" not in token[token.rindex("/") :]:
        what = "newlines in regular expressions are for those with the flag x"
        remedy = r"Write \n for a line end; with the flag x, line ends and spaces mean nothing."
        return DefinitionError(what, where=_joined(place, name), remedy=remedy)
    try:
        pattern = _literal_to_pattern(token)  # type: ignore[no-untyped-call]
    except Exception as error:
        # Of flags and of empty strings Lark has its own words.
        reason = _ESCAPE.search(str(error.args[-1] if error.args else ""))
        what = f"an escape cannot be read: {reason[0].strip()}" if reason else ""
        return DefinitionError(what, where=_joined(place, of), remedy=_ESCAPES) if reason else None
    if token.type != "REGEXP":
        return None
    try:
        sre_parse.parse(pattern.to_regexp())
    except re.error as error:
        column = (error.pos or 0) + 1 - len("(?i:") * len(pattern.flags)
        if column < 1:
            what = f"the regex has a flag that is none: {error.msg}"
            return DefinitionError(what, where=_joined(place, of), remedy="Flags are i, m, s, u and x.")
        what = f"the regex cannot be read: {error.msg}"
        remedy = "Terminals are regexes of Python's re; a backslash before a character has it stand for itself."
        return DefinitionError(what, where=_joined(place, f"{of}, column {column}"), remedy=remedy)
    except Exception:  # what is wrong with it has been said
        return None
    return None


#: Characters of a string or a regex in a message.
_MOST_SHOWN = 80


class _Advice(NamedTuple):
    """What Lark says without a place: as what to look for it in the text, whether its last one, and the remedy."""

    says: str
    pattern: str
    remedy: str
    last: bool = False


_DEFINE = "Define it, or correct its name."
_RENAME = "Give one of them another name."
_ADVICE = (
    _Advice(
        r"(?:Rule|Terminal) '(\w+)' defined more than once", _DEFINED,
        "Give one of them another name, or make one of both, with | between what they are.", last=True,
    ),
    _Advice(r"(?:Rule|Template) '(\w+)' used but not defined", r"(?<![\w%@]){}(?!\w)", _DEFINE),
    _Advice(r"Terminal used but not defined: (\w+)", r"(?<!\w){}(?!\w)", _DEFINE),
    _Advice(
        r"Rules aren't allowed inside terminals \(NonTerminal\('(\w+)'\)",
        r"(?<!\w){}(?!\w)(?!\s*(?:\[[^\]\n]*\])?\s*:)",
        "Terminals, and rules with attributes that say where they end, are of terminals alone: give it a name in"
        " capital letters, or let a rule put the parts together.",
    ),
    _Advice(r"Recursion in terminal '(\w+)'", _DEFINED, "Make it a rule, in small letters; it may hold itself."),
    _Advice(r"Bad Range .*\((-?\d+)\.\.", r"(?:~\s*{0}\s*\.\.|\{{\s*{0}\s*,)", "Write the smaller count first."),
    _Advice(
        r"Terminals cannot be empty \(__IGNORE_\d+()\)", r"%ignore[ \t]*$", "Name what is ignored, or leave it out."
    ),
    _Advice(r"Terminals cannot be empty \((\w+)\)", _DEFINED, 'Write "" where nothing is meant.'),
    _Advice(r"Terminals \{'(\w+)'", r"%ignore\s+{}\b", _DEFINE),
    _Advice(r"Aliasing not allowed in terminals()", r"^[ \t]*_?[A-Z]\w*[^:\n]*:[^\n]*->",
            "Names behind -> are for alternatives of rules: leave it out."),
    _Advice(r"Rule _\w+ is marked for expansion .*\(alias=(\w+)\)", r"->\s*{}\b",
            "Leave out the name behind ->, or the rule's first _."),
    _Advice(r"Inlined rules()", r"^[ \t]*!?\?!?_\w", "Leave out the ? or the _ before the rule's name."),
    _Advice(r"Rules defined twice: .*<(\w+) :", _DEFINED,
            "Two of its alternatives are the same where parts are left out: let what may be missing stand in one."),
    _Advice(r"Nothing was imported from grammar `([\w.]+)`", r"%import\s+\.?{}\b", "Correct the name."),
    _Advice(r"Inconsistent base_path for (\w+)", r"%import\W+{}\b", "Import it in one way: with a dot, or without."),
    _Advice(r"Cannot import '(\w+)'", r"%import\b.*\b{}\b", "Give it another name: %import ... -> OTHER"),
    _Advice(r"(?:Duplicate )?Template Parameter (?:conflicts with rule )?(\w+)", r"\w\{{[^}}:\n]*\b{}\b", _RENAME),
    _Advice(r"Conflicting flags for the same terminal()", r"^(?=[\s\S])", "Give the same text the same flags."),
    _Advice(
        r"Wrong number of template arguments used for (\w+)", _DEFINED,
        "Give it as many as its definition has, or give that {...}.",
    ),
    _Advice(
        r"Cannot (?:extend|override) a nonexisting \w+ (\w+)", r"%(?:extend|override)\s+{}\b",
        "Define it before, or import it.",
    ),
    _Advice(
        r"Can't (?:extend|override) \w+ (\w+)", r"%(?:extend|override)\s+{}\b", "Define it before, or import it."
    ),
)  # fmt: skip


def _advised(what: str, places: Places) -> DefinitionError:
    """The error for what Lark has no place for."""
    for advice in _ADVICE:
        if (found := re.match(advice.says, what)) is not None:
            pattern = advice.pattern.format(re.escape(found[1]))
            place = places.of_match(pattern, last=advice.last)
            place = place or places.of_match(re.escape(found[1]))  # Lark reads Ab as two names
            if what.startswith("Terminals cannot be empty") and found[1] and found[1] not in places.written:
                what = "nothing stands behind the colon of a rule with attributes"
            return DefinitionError(what, where=place, remedy=advice.remedy)
    return DefinitionError(what, remedy=_SYNTAX["Unexpected input"])


#: What Lark says with a place, by how it begins, and what to write instead.
_SYNTAX = {
    "Incorrect type of value": "Behind the colon come names, strings, regexes and groups, and a line holds one rule.",
    "Unclosed parenthesis": "Close it before the line ends, or begin the next line with |.",
    "Unmatched closing parenthesis": "Leave it out, or open it before: ( ) for groups, [ ] for what may be missing.",
    "Expecting rule or terminal definition (missing colon)": "Write name: ... for a rule, NAME: ... for a terminal.",
    "Expecting rule or terminal definition": "A line begins with name:, NAME:, | or a statement such as %ignore.",
    "Illegal name": "Rules are in small letters, terminals in capitals.",
    "Alias expects": "Behind -> comes a name in small letters, which texts do not depend on.",
    "Unexpected colon": 'A colon stands behind the name of what a line defines; as text it is ":".',
    "Misplaced operator": "Write ?, * and + once, behind what they are of; as text they are in quotes.",
    "Expecting option": "Begin the line with |, or give it a name: name: ...",
    "Terminal names cannot": "A dot behind a terminal's name is for its priority, NAME.2: ...",
    "%import expects": "Write %import common.WS, or %import .file.NAME.",
    "%ignore expects": "Write %ignore NAME, or a string or a regex behind it.",
    "Unexpected input": (
        "Names are of letters, digits and _, rules in small letters, terminals in capitals; // begins a comment."
    ),
    "Expecting a value": "Behind the colon, |, ( and [ come names, strings, regexes and groups.",
}
_NEXT_LINE = "Close what is open before the line ends, or begin the next line with |."


def _spelled(what: str) -> str:
    """The remedy for what Lark says with a place."""
    if "Token('_NL'" in what:
        return _NEXT_LINE
    return next((remedy for says, remedy in _SYNTAX.items() if what.startswith(says)), _SYNTAX["Unexpected input"])


#: Lark's messages with a place: an empty line and an excerpt follow.
_PLACE = re.compile(r"(?P<what>.*?),? at line (?P<line>\d+),? col(?:umn)? (?P<column>\d+)(?: in (?P<file>.*):)?")


#: What stands before a rule's attributes.
_RULE_ALONE = re.compile(r"\s*[?!]*_?[a-z]\w*\s*")


def _as_ours(error: Exception, source: str, places: Places) -> StructgenError:
    """What Lark raised, with its place as `where`; that names the file as well, if it is an imported one."""
    from lark.exceptions import GrammarError, LarkError, VisitError

    if isinstance(error, VisitError):  # around what went wrong in a part
        error = error.orig_exc
    if isinstance(error, GrammarError) and len(error.args) > 1:  # what it is about, and why
        what = f"{error.args[1]}, in {error.args[0]!r}"
        return DefinitionError(what, where=f"terminal {error.args[0]}", remedy=_SYNTAX["Unexpected input"])
    if isinstance(error, RecursionError):
        return BudgetExceededError(
            "the grammar is nested too deeply, or imports itself", remedy="Give inner groups rules of their own."
        )
    line = _first_line(error)
    if not isinstance(error, LarkError):  # of `re`, or an assertion: Lark does not foresee all that a text can hold
        advised = _advised(line, places)
        remedy = advised.remedy if advised.where else "Leave out rules until it loads, to see which one it is about."
        return DefinitionError(f"the grammar does not load: {line}", where=advised.where, remedy=remedy)
    found = _PLACE.match(line)
    if found is None:
        return _advised(line, places)
    if found["file"] not in (None, source):
        where = f"{found['file']}, line {found['line']}, column {found['column']}"
        return DefinitionError(found["what"], where=where, remedy=_spelled(found["what"]))
    row, column = int(found["line"]), int(found["column"])
    place = places.of(row, column)
    before = "".join(places.text.split("\n")[row - 1 : row])[: column - 1]
    if "Token('_LBRA'" in found["what"] and _RULE_ALONE.fullmatch(before) is not None:
        what = f"the attributes of the rule {before.strip()} are not closed, or no colon follows them"
        return DefinitionError(what, where=place, remedy='Write name[lazy]: ..., name[suffix="end", capture]: ...')
    return DefinitionError(found["what"], where=place, remedy=_spelled(found["what"]))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for part in (str(error), *map(str, error.args)) for line in part.splitlines()]
    return next((line.rstrip(".") for line in lines if len(line) > 1), type(error).__name__)
