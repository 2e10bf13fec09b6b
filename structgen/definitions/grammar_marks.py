"""What a grammar's text may hold besides Lark's syntax: special tokens, JSON Schemas, counts, and nothing at all.

``<|eom_id|>`` is a special token by its name, ``<[128008]>`` any token by its id (see `token_sets`), ``%json {...}``
any text of a schema, ``%regex {...}`` a regex (see `structured_regexes`). Lark doesn't know these, so each becomes
the name of a terminal that is only declared, or a regex of noncharacters. ``x{2,5}`` is ``x~2..5`` to Lark, and
``""`` an empty group. (The notation is llguidance's.)
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ..errors import BudgetExceededError, DefinitionError, StructgenError
from .token_sets import ids_of

#: What Lark skips or reads as one: comments, strings, regexes. Then the marks.
_PIECE = re.compile(
    r"""(?P<other>//[^\n]*|\#[^\n]*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|/(?!/)[^/\\]*(?:\\(?s:.)[^/\\]*)*/[imslux]*)"""
    r"""|(?P<token><[^<>\s"/]+>)|(?P<json>%(?:json|regex|llguidance|grammar_options)\b\s*)|(?P<lark>%lark\s*\{)|@(?P<name>[A-Za-z_][\w-]*)|(?P<unclosed>["/])"""
)

#: How a string, a regex, and a count in braces are written.
STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"i?'
REGEX = r"/(?!/)[^/\\]*(?:\\(?s:.)[^/\\]*)*/[imslux]*"
COUNT = r"\{\s*(?:\d{1,18}\s*(?:,\s*(?:\d{1,18}\s*)?)?|,\s*\d{1,18}\s*)\}"

_BRACES = re.compile(rf"//[^\n]*|#[^\n]*|{STRING}|{REGEX}|[{{}}\"/]")

#: A regex of a grammar, and what else may hold slashes.
_A_REGEX = re.compile(rf"(?://|#)[^\n]*|{STRING}|<[^<>\s]*>|(?P<regex>{REGEX})")
_FLAGS = re.compile(r"(?:\(\?[a-zA-Z]+\))*")

#: Characters of a text with marks, and marks in it: a quarter of a second's work.
_MOST_CHARACTERS, _MOST_MARKS = 1 << 21, 1 << 16

#: A mark, or what looks like one within a string or a comment.
_MARK = re.compile(r'<[^<>\s"/]+>|%(?:json|regex|llguidance|grammar_options|lark)\b|@\w')

#: A count, or the empty string, or what looks like one of these.
_SPELLED = re.compile(rf'{COUNT}|(?<![\\"])""(?!")')

#: What may be counted, and counts; what stands between the two without being part of either.
_COUNTED = re.compile(
    rf"(?P<atom>{STRING}(?:\s*\.\.\s*{STRING})?|{REGEX}|\w+)"
    rf"|(?P<between>\s+|//[^\n]*|\#[^\n]*)|(?P<count>{COUNT})|(?P<opening>[(\[{{])|(?P<closing>[)\]}}])|(?s:.)"
)

#: Noncharacters of Unicode that stand for operators in regexes; see `structgen.compiler.grammar.load.operators`.
MARKS = "\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5"
MARKED = frozenset(MARKS)

#: Characters that are written for counts, those of counts within counts each time.
_MOST_WRITTEN = 1 << 23

#: Where `json` found an error, counted from where nobody sees.
_JSON_PLACE = re.compile(r": line \d+ column \d+ \(char \d+\)$")

_UNNAMED = re.compile(r"\W+", re.ASCII)


class MarkedText(NamedTuple):
    """A grammar for Lark, but for what `spelled` does.

    Parameters
    ----------
    text:
        With names in place of the marks, which it declares.
    tokens:
        By name of a terminal: the tokens as they are written, ``<|eom_id|>``, ``<[128008]>`` or ``<[^1-3,5]>``.
    schemas:
        By name of a terminal: the text of a schema.
    structured:
        Regexes in JSON, by what stands for them in the text: a number between two noncharacters.
    grammars:
        By name of a terminal: the text of a grammar within the grammar.
    references:
        By name of a terminal: the definition that is named, ``@name``.
    options:
        Objects with llguidance's options, as JSON.
    """

    text: str
    tokens: dict[str, str]
    schemas: dict[str, str]
    grammars: dict[str, str]
    references: dict[str, str]
    structured: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def placed(self, error: StructgenError, name: str, written: str) -> StructgenError:
        """An error of what a terminal stands for, with the line of the text, as it was ``written``."""
        found = {**self.tokens, **self.schemas, **self.grammars, **self.references}.get(name)
        if found is None:
            place = f"definition {name}"
        else:
            keyword = "%json" if name in self.schemas else "%lark" if name in self.grammars else found
            place = f"{line_of(found, written)}{'' if name in self.tokens else f': {keyword}'}"
        return error.within(f"{place} " if error.where.startswith("/") else place)


def read_marks(text: str) -> MarkedText:
    """Take the marks out of a grammar's text.

    Raises `DefinitionError` for a schema that is no JSON object, `BudgetExceededError` for a text without end.
    """
    tokens: dict[str, str] = {}
    schemas: dict[str, str] = {}
    structured: list[str] = []
    grammars: dict[str, str] = {}
    references: dict[str, str] = {}
    options: list[str] = []
    parts: list[str] = []
    if _MARK.search(text) is None:
        return MarkedText(text, tokens, schemas, {}, {})
    if len(text) > _MOST_CHARACTERS:
        raise _too_large()
    names: _Names | None = None
    at = marks = 0
    while (found := _PIECE.search(text, at)) is not None:
        parts.append(text[at : found.start()])
        at = found.end()
        if found["unclosed"] is not None:  # a string or a regex, which is Lark's to refuse
            at = found.start()
            break
        if found["other"] is not None:
            parts.append(found[0])
            continue
        marks += 1
        if marks > _MOST_MARKS:
            raise _too_large()
        names = names or _Names(text)
        if found["token"] is not None:
            _check_token(found[0], text, found.start())
            name = names.of("TOKEN_" + (_UNNAMED.sub("_", found[0]).strip("_").upper() or "ANY"), found[0])
            tokens[name] = found[0]
            parts.append(name)
        elif found["name"] is not None:
            name = found["name"].replace("-", "_").upper()
            references[name] = found[0]
            parts.append(name)
        elif found["lark"] is not None:
            inner, at = _braces(text, at)
            name = names.of("LARK", inner)
            grammars[name] = inner
            parts.append(f" {name} {_lines(inner)}")
        elif found["json"].startswith(("%llguidance", "%grammar_options")):
            value, at = _json(text, at, found["json"].strip())
            options.append(value)
            parts.append("\n" * value.count("\n"))
        elif found["json"].startswith("%regex"):
            value, at = _json(text, at, "%regex")
            parts.append(f" /{MARKS[4]}{len(structured)}{MARKS[5]}/ {_lines(found[0] + value)}")
            structured.append(value)
        else:
            value, at = _json(text, at, "%json")
            name = names.of("JSON", value)
            schemas[name] = value
            parts.append(f" {name} {_lines(found[0] + value)}")
    parts.append(text[at:])
    declared = [*tokens, *schemas, *grammars]
    declares = f"\n%declare {' '.join(declared)}\n" if declared else ""
    return MarkedText(
        "".join(parts) + declares, tokens, schemas, grammars, references, tuple(structured), tuple(options)
    )


def with_names(text: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """A grammar with ``@name`` in place of each ``%json`` and ``%lark``, and the schemas and the grammars by name.

    Raises `DefinitionError` for a schema that is no JSON object, `BudgetExceededError` for a text without end.
    """
    schemas: dict[str, str] = {}
    grammars: dict[str, str] = {}
    if "%json" not in text and "%lark" not in text:
        return text, schemas, grammars
    if len(text) > _MOST_CHARACTERS:
        raise _too_large()
    names, parts, written, at = _Names(text.upper()), list[str](), 0, 0
    while (found := _PIECE.search(text, at)) is not None and found["unclosed"] is None:
        at = found.end()
        if found["lark"] is not None:
            value, at = _braces(text, at)
            name = names.of("LARK", value)
            grammars[name] = value
        elif found["json"] is None:
            continue
        else:
            keyword = found["json"].strip()
            value, at = _json(text, at, keyword)
            if keyword != "%json":
                continue
            name = names.of("JSON", value)
            schemas[name] = value
        if len(parts) > _MOST_MARKS:
            raise _too_large()
        parts.append(f"{text[written : found.start()]} @{name} {_lines(text[found.start() : at])}")
        written = at
    return "".join([*parts, text[written:]]), schemas, grammars


def in_groups(text: str) -> str:
    """A grammar whose regexes with | are groups: Lark puts terminals together as texts, ``"x" /a|b/`` as ``xa|b``."""

    def piece(found: re.Match[str]) -> str:
        if found["regex"] is None or "|" not in found[0]:
            return found[0]
        regex, _, flags = found[0][1:].rpartition("/")
        begin = _FLAGS.match(regex)
        at = begin.end() if begin is not None else 0
        return f"/{regex[:at]}(?:{regex[at:]}{'' if 'x' not in flags else chr(10)})/{flags}"

    return _A_REGEX.sub(piece, text)


def spelled(text: str) -> str:
    """A text with counts and empty strings as Lark spells them. Raises `BudgetExceededError`.

    It takes 0.1 µs a character where there may be some, and is for compiles alone.
    """
    if _SPELLED.search(text) is None:
        return text
    if len(text) > _MOST_CHARACTERS:
        raise _too_large()
    parts: list[str] = []
    opened: list[int | None] = []  # by bracket: where what it belongs to begins
    atom: int | None = None  # where what a count would belong to begins
    written = 0
    for found in _COUNTED.finditer(text):
        piece, kind = found[0], found.lastgroup
        if kind == "count" and atom is not None:
            parts[atom:] = [_counted("".join(parts[atom:]), piece)]
            written += len(parts[atom])
            if written > _MOST_WRITTEN:
                raise _too_large()
            continue
        if kind == "opening":
            opened.append(atom if piece == "{" else len(parts))  # in braces are the arguments of a template
        elif kind == "closing":
            atom = opened.pop() if opened else None
        if kind == "atom":
            atom = len(parts)
        elif kind not in ("between", "closing"):
            atom = None
        parts.append("()" if piece == '""' else piece)
    return "".join(parts)


def _counted(item: str, count: str) -> str:
    """What Lark has for an item that comes so often: ``{2}``, ``{2,}``, ``{2,5}`` or ``{,5}``."""
    least, comma, most = (part.strip() for part in count[1:-1].partition(","))
    fewest = int(least or 0)
    if comma and not most:
        return f"({item}*)" if fewest == 0 else f"({item}+)" if fewest == 1 else f"({item}~{fewest - 1} {item}+)"
    return f"({item}~{fewest}..{int(most)})" if comma else f"({item}~{fewest})"


def _too_large() -> BudgetExceededError:
    return BudgetExceededError(
        f"the grammar has more than {_MOST_CHARACTERS:,} characters with special tokens and schemas among them, or"
        f" {_MOST_MARKS:,} of these",
        where="reading the grammar",
        remedy="%import its larger parts, or leave some out.",
    )


def _lines(text: str) -> str:
    """The line ends of what is left out, as Lark passes over them, so that lines keep their numbers."""
    return "\\\n" * text.count("\n")


def line_of(part: str, text: str) -> str:
    """The line on which a part of a text begins."""
    return f"line {text.count(chr(10), 0, text.find(part)) + 1}"


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


def _check_token(mark: str, text: str, at: int) -> None:
    """Raise `DefinitionError` for a set of ids that can't be read."""
    try:
        ids_of(mark)
    except DefinitionError as error:
        raise DefinitionError(error.what, where=_place(text, at), remedy=error.remedy) from error


def _json(text: str, at: int, keyword: str) -> tuple[str, int]:
    """The text of what stands behind a keyword, a schema or an object of options, and where it ends."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        what = f"{keyword} is followed by no JSON: {_JSON_PLACE.sub('', str(error))}"
        remedy = f"Write {keyword} {{...}}, as JSON has it."
        raise DefinitionError(what, where=_place(text, getattr(error, "pos", at)), remedy=remedy) from error
    if not isinstance(value, dict | bool):
        what = "schema" if keyword == "%json" else "object"
        raise DefinitionError(f"{keyword} is followed by no {what}", where=_place(text, at), remedy="Use an object.")
    return text[at:end], end


def _braces(text: str, at: int) -> tuple[str, int]:
    """The text up to the brace that closes one, and where it ends."""
    depth, begin = 1, at
    for found in _BRACES.finditer(text, at):
        if found[0] in ('"', "/"):  # a string or a regex without an end
            break
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return text[begin : found.start()], found.end()
    raise DefinitionError("%lark { is never closed", where=_place(text, begin - 1), remedy="Close it with }")


class _Names:
    """Names for what was marked: the same for the same, and none that the text uses."""

    def __init__(self, text: str) -> None:
        self._taken = set(re.findall(r"\w+", text))
        self._known: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}

    def of(self, stem: str, content: str) -> str:
        """The name of some content, which begins with a stem."""
        known = self._known.get((stem, content))
        if known is not None:
            return known
        n = self._last.get(stem, 0) + 1
        while (name := f"{stem}_{n}" if n > 1 else stem) in self._taken:
            n += 1
        self._last[stem] = n
        self._known[stem, content] = name
        self._taken.add(name)
        return name
