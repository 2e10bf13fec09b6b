"""What people see of texts. Of strangers' texts, what is not seen or turns its surroundings around is spelled out."""

from __future__ import annotations

import unicodedata
from binascii import b2a_base64

_SIGNS = {"\n": "↵\n", "\r": "␍", "\t": "⇥"}

#: Controls, formats (directions among them), surrogates, private and unassigned characters, separators of lines.
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def visible(text: str | bytes) -> str:
    """A text without characters that do something: the end of a line is ``↵`` and that, a tab is ``⇥``, others are
    ``⟨U+202E⟩``, and bytes that are no UTF-8 ``⟨C3⟩``."""
    decoded = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    if decoded.isascii() and decoded.isprintable():
        return decoded
    return "".join(map(_spelled, decoded))


def legibility(byte: int) -> tuple[int, int]:
    """Sorts bytes that do as well as each other by how well they read."""
    character = chr(byte)
    if character.isascii() and character.isalnum():
        return 0, byte
    return (1 if 0x20 <= byte < 0x7F else 2), byte


def data_url(svg: bytes) -> str:
    """SVG for an ``img`` element, in which it runs nothing and loads nothing."""
    return f"data:image/svg+xml;base64,{b2a_base64(svg, newline=False).decode()}"


def _spelled(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if unicodedata.category(character) not in _UNSEEN:
        return character
    number = ord(character)
    return f"⟨{number - 0xDC00:02X}⟩" if 0xDC80 <= number <= 0xDCFF else f"⟨U+{number:04X}⟩"
