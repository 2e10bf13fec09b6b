"""Notations of other engines' grammars that are not Lark's: what an error says where one of them is met."""

from __future__ import annotations

import re
from typing import NamedTuple

from ....errors import DefinitionError


class Notation(NamedTuple):
    """What it looks like outside strings, regexes and comments; what it is; and how it is said here."""

    pattern: str
    name: str
    remedy: str


_OPTIONS = "Say options as arguments of sg.Grammar and sg.JsonSchema."
_DECLARE = "Declare a terminal, and give its definition by name: sg.Grammar(definitions={...})."
_NAME = "Give it a name in capital letters, A: B & ~C, and use that."
_ATTRIBUTES = r"(?<=\w)\[[^\]:\n]{0,80}\b(?:%s)\b[^\]:\n]{0,80}\]\s{0,8}:"

#: The one that stands first in a text is told.
NOTATIONS = (
    Notation(r"::=", "the ::= of GBNF and EBNF", "Use sg.Gbnf for such grammars, or write name: ... as Lark has it."),
    Notation(
        _ATTRIBUTES % "lazy|suffix|stop", "llguidance's attribute lazy, suffix or stop",
        "Write a regex that ends there: /[^;]*;/ in place of /.*/ with [stop=\";\"].",
    ),
    Notation(
        _ATTRIBUTES % "max_tokens|max_chars|temperature|capture",
        "llguidance's attribute max_tokens, max_chars, temperature or capture",
        "Leave it out; bound a text by its regex, as in /[^\\n]{0,200}/, and all of it by sg.Guide(max_tokens=...).",
    ),
    Notation(r"%lark\b", "llguidance's %lark", _DECLARE),
    Notation(r"%llguidance\b", "llguidance's %llguidance", _OPTIONS),
    Notation(r"%grammar_options\b", "%grammar_options", _OPTIONS),
    Notation(r"@\w", "llguidance's reference to another grammar", _DECLARE),
    Notation(r"&", "& outside of a terminal", _NAME),
    Notation(r"~\s{0,8}[A-Z_(/\".]", "~ outside of a terminal", _NAME),
)  # fmt: skip

_OTHER = re.compile(r"""//[^\n]*|#[^\n]*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|/(?!/)[^/\\\n]*(?:\\.[^/\\\n]*)*/[imslux]*""")
_ANY = re.compile("|".join(f"(?P<n{i}>{notation.pattern})" for i, notation in enumerate(NOTATIONS)))


def foreign_notation(text: str) -> DefinitionError | None:
    """The error for the first notation of another engine's in a text, with its line and column; None without one."""
    found = _ANY.search(_OTHER.sub(lambda other: "." * len(other[0]), text))
    if found is None:
        return None
    notation = NOTATIONS[int((found.lastgroup or "")[1:])]
    line = text.count("\n", 0, found.start()) + 1
    column = found.start() - text.rfind("\n", 0, found.start())
    return DefinitionError(
        f"{notation.name} is not read", where=f"line {line}, column {column}", remedy=notation.remedy
    )
