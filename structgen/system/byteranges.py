"""Sets of bytes as a person would write them: ``[0-9A-F]``, ``'-'``, ``a character beyond ASCII``."""

from __future__ import annotations

from collections.abc import Iterable

_NAMES = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
_SPECIAL = frozenset(rb"\]^-")


def describe(ranges: Iterable[tuple[int, int]]) -> str:
    """Describe inclusive byte ranges; the empty string for none.

    ASCII bytes become one character class, or a quoted character where there is only one. Above ASCII a byte
    is not a character, so these are told apart by their part in UTF-8: a first byte (0xC2 to 0xF4) means that
    some character beyond ASCII fits, a continuation byte (0x80 to 0xBF) that one has been begun.
    """
    spans = sorted(ranges)
    ascii_spans = [(low, min(high, 0x7F)) for low, high in spans if low <= 0x7F]
    parts = [_character_class(ascii_spans)] if ascii_spans else []
    if any(low <= 0xBF and high >= 0x80 for low, high in spans):
        parts.append("the rest of a character beyond ASCII")
    if any(high >= 0xC0 for _, high in spans):
        parts.append("a character beyond ASCII")
    return ", or ".join(parts)


def _character_class(spans: list[tuple[int, int]]) -> str:
    if spans == [(0, 0x7F)]:
        return "any ASCII character"
    if len(spans) == 1 and spans[0][0] == spans[0][1]:
        return "a space" if spans[0][0] == 0x20 else f"'{_spell(spans[0][0], quoted=True)}'"
    return f"[{''.join(_spell_range(low, high) for low, high in spans)}]"


def _spell_range(low: int, high: int) -> str:
    if high - low < 2:
        return "".join(_spell(byte) for byte in range(low, high + 1))
    return f"{_spell(low)}-{_spell(high)}"


def _spell(byte: int, *, quoted: bool = False) -> str:
    if byte in _NAMES:
        return _NAMES[byte]
    if not 0x20 <= byte < 0x7F:
        return f"\\x{byte:02x}"
    if quoted:
        return "\\'" if byte == ord("'") else chr(byte)
    return f"\\{chr(byte)}" if byte in _SPECIAL else chr(byte)
