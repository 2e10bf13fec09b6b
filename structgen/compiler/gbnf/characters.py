"""One character of a quoted text or a class, escapes resolved."""

from __future__ import annotations

import re
from typing import NamedTuple

from .dialects import Escapes

_HEXADECIMAL = re.compile("[0-9a-fA-F]+")

#: Digits of a character's number, where there may be any.
_MOST_DIGITS = 8


class Character(NamedTuple):
    """A code point, and the offset behind it."""

    code: int
    end: int


class Malformed(NamedTuple):
    """Why there is none."""

    what: str
    remedy: str


def read_character(text: str, at: int, escapes: Escapes) -> Character | Malformed:
    """The character at ``at``, which lies inside the text."""
    character = text[at]
    if character != "\\":
        return _checked(ord(character), at + 1, "\\x00 stands for it" if character == "\0" else "")
    kind = text[at + 1 : at + 2]
    if kind in escapes.simple:
        return Character(escapes.simple[kind], at + 2)
    if kind not in escapes.digits:
        return Malformed(
            f"the escape \\{kind} is unknown" if kind else "the grammar ends within an escape",
            f"Use {escapes.said}; other characters stand for themselves.",
        )
    count = escapes.digits[kind]
    found = _HEXADECIMAL.match(text, at + 2, at + 2 + (count or _MOST_DIGITS))
    if found is None or len(found[0]) < count:
        return Malformed(f"the escape \\{kind} takes {count} hexadecimal digits", "Fill up with zeros: \\u000A.")
    return _checked(int(found[0], 16), found.end(), "")


def _checked(code: int, end: int, instead: str) -> Character | Malformed:
    if instead:
        return Malformed("a NUL stands in the grammar", f"Escape it: {instead}.")
    if 0xD800 <= code <= 0xDFFF:
        return Malformed(
            f"U+{code:04X} is half of a character (a surrogate), which no UTF-8 text holds",
            "Write the whole one: \\U0001F600 for what JSON spells \\ud83d\\ude00.",
        )
    if code > 0x10FFFF:
        return Malformed(f"there is no character U+{code:X}", "The last one is U+10FFFF.")
    return Character(code, end)
