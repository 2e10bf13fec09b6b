"""The characters of a text in UTF-8, the last of which may be cut off."""

from __future__ import annotations

from typing import NamedTuple

#: By the first byte of a character: the bounds of its second byte, where they are not those of any.
_SECOND = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}


class TextCharacter(NamedTuple):
    """A character, or where it is cut off, the first and the last one that it may be."""

    first: int
    last: int

    def is_in(self, ranges: tuple[tuple[int, int], ...]) -> bool:
        """Whether it is, or may be, in a set."""
        return any(low <= self.last and self.first <= high for low, high in ranges)


def characters(data: bytes) -> list[TextCharacter] | None:
    """The characters of a text; None where it is not UTF-8."""
    length = len(data)
    while length and length > len(data) - 4 and data[length - 1] & 0xC0 == 0x80:
        length -= 1
    at = length - 1 if length and data[length - 1] >= 0xC0 else len(data)
    try:
        found = [TextCharacter(ord(c), ord(c)) for c in data.decode()]
    except UnicodeDecodeError:
        try:
            found = [TextCharacter(ord(c), ord(c)) for c in data[:at].decode()]
            found.append(_cut(data[at:]))
        except UnicodeDecodeError:
            return None
    return found


def _cut(begun: bytes) -> TextCharacter:
    """What a character may be of which only the first bytes are there. Raises `UnicodeDecodeError`."""
    size = 2 if begun[:1] < b"\xe0" else 3 if begun[:1] < b"\xf0" else 4
    low, high = bytearray(begun), bytearray(begun)
    while len(low) < size:
        first, last = _SECOND.get(begun[0], (0x80, 0xBF)) if len(low) == 1 else (0x80, 0xBF)
        low.append(first)
        high.append(last)
    return TextCharacter(ord(low.decode()), ord(high.decode()))
