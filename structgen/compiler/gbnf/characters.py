"""One character of a quoted text or a class, escapes resolved."""

from __future__ import annotations

from typing import NamedTuple

#: Escapes that stand for one character.
_SIMPLE = {"n": 0x0A, "r": 0x0D, "t": 0x09, **{c: ord(c) for c in '\\"[]-'}}

#: Escapes with a code point in so many hexadecimal digits.
_DIGITS = {"x": 2, "u": 4, "U": 8}

_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


class Character(NamedTuple):
    """A code point, and the offset behind it."""

    code: int
    end: int


class Malformed(NamedTuple):
    """Why there is none."""

    what: str
    remedy: str


def read_character(text: str, at: int) -> Character | Malformed:
    """The character at ``at``, which lies inside the text."""
    character = text[at]
    if character != "\\":
        return _checked(ord(character), at + 1, "\\x00 stands for it" if character == "\0" else "")
    kind = text[at + 1 : at + 2]
    if kind in _SIMPLE:
        return Character(_SIMPLE[kind], at + 2)
    if kind not in _DIGITS:
        return Malformed(
            f"the escape \\{kind} is unknown" if kind else "the grammar ends within an escape",
            'Use \\n \\r \\t \\\\ \\" \\[ \\] \\- \\xHH \\uHHHH \\UHHHHHHHH; other characters stand for themselves.',
        )
    count = _DIGITS[kind]
    digits = text[at + 2 : at + 2 + count]
    if len(digits) < count or not _HEXADECIMAL.issuperset(digits):
        return Malformed(f"the escape \\{kind} takes {count} hexadecimal digits", "Fill up with zeros: \\u000A.")
    return _checked(int(digits, 16), at + 2 + count, "")


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
