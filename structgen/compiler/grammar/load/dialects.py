"""Notations of other engines' grammars that are not Lark's: what an error says where one of them is met."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ....definitions.grammar_marks import REGEX, STRING
from ....errors import DefinitionError


class Notation(NamedTuple):
    """What it looks like outside strings, regexes and comments; what it is; and how it is said here."""

    pattern: str
    name: str
    remedy: str


_NAME = "Give it a name in capital letters, A: B & ~C, and use that."
_NAMES_OF_ATTRIBUTES = "lazy|suffix|stop|max_tokens|max_chars|temperature|capture"
_ATTRIBUTES = rf"(?<=[\w}}])\[[^\]:\n]{{0,80}}\b(?:{_NAMES_OF_ATTRIBUTES})\b[^\]:\n]{{0,80}}\]\s{{0,8}}:"

#: The one that stands first in a text is told.
NOTATIONS = (
    Notation(r"::=", "the ::= of GBNF and EBNF", "Use sg.Gbnf for such grammars, or write name: ... as Lark has it."),
    Notation(
        _ATTRIBUTES,
        "an attribute of llguidance's where it can't be",
        "Give attributes to rules of the grammar's own text, not to terminals, templates and what is imported.",
    ),
    Notation(r"%lark\b", "%lark without braces", "Write %lark { start: ... }."),
    Notation(r"&", "& outside of a terminal", _NAME),
    Notation(r"~\s{0,8}[A-Z_(/\".]", "~ outside of a terminal", _NAME),
)

_OTHER = re.compile(rf"//[^\n]*|#[^\n]*|{STRING}|{REGEX}")
_ANY = re.compile("|".join(f"(?P<n{i}>{notation.pattern})" for i, notation in enumerate(NOTATIONS)))


#: The option by which what is ignored stands once between two lexemes.
IGNORE_ONCE = "ignore_once"

#: Options of llguidance's, with the values by which a grammar here keeps to them. (No tokens are forced on a caller.)
_KEPT: dict[str, tuple[object, ...]] = {
    "no_forcing": (True, False), "allow_invalid_utf8": (False,), "allow_initial_skip": (True,),
    "no_initial_skip": (False,), IGNORE_ONCE: (True, False),
}  # fmt: skip

_SKIPPED = "What is ignored may stand before the first lexeme: where it may not, have rules say where it may."
_INSTEAD = {
    "allow_invalid_utf8": "Texts are UTF-8: leave it out.",
    "allow_initial_skip": _SKIPPED,
    "no_initial_skip": _SKIPPED,
    "skip_repetition": "What is ignored may come again: give it a name, and have rules say where it may stand.",
}


def read_options(objects: Iterable[str]) -> dict[str, object]:
    """What ``%llguidance`` asks for, by name; of an option the last value counts. What is not kept to is refused.

    XGrammar calls it ``%grammar_options``. Raises `DefinitionError`.
    """
    given: dict[str, object] = {}
    for text in objects:
        found = json.loads(text)
        given |= found if isinstance(found, dict) else {}
    for name, value in given.items():
        if not any(value is each for each in _KEPT.get(name, ())):
            raise DefinitionError(
                f"llguidance's option {name!r} with {json.dumps(value)[:40]} is not honoured",
                where="%llguidance",
                remedy=_INSTEAD.get(name, "Leave it out."),
            )
    return given


def blanked(text: str) -> str:
    """A text with dots in place of its strings, regexes and comments."""
    return _OTHER.sub(lambda other: "." * len(other[0]), text)


def _place(line: int, column: int) -> str:
    return f"line {line}, column {column}"


def foreign_notation(text: str, place: Callable[[int, int], str] = _place) -> DefinitionError | None:
    """The error for the first notation of another engine's in a text; None without one.

    ``place`` says where a line and a column are.
    """
    found = _ANY.search(blanked(text))
    if found is None:
        return None
    notation = NOTATIONS[int((found.lastgroup or "")[1:])]
    line = text.count("\n", 0, found.start()) + 1
    column = found.start() - text.rfind("\n", 0, found.start())
    return DefinitionError(f"{notation.name} is not read", where=place(line, column), remedy=notation.remedy)
