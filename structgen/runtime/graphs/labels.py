"""Sequences of sets of bytes as a person would write them: ``"name"``, ``[0-9]``, ``[^"\\]``, ``é``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

from ...system.byteranges import describe

#: Inclusive ranges of bytes, ascending and apart from one another.
Ranges: TypeAlias = tuple[tuple[int, int], ...]

#: Bytes one after the other.
Spelling: TypeAlias = tuple[Ranges, ...]

_LAST_ASCII, _FIRST_LEAD, _CONTINUATION = 0x7F, 0xC2, (0x80, 0xBF)
_LAST = 0x10FFFF

#: Ranges of characters that are spelled out; more are only counted.
_FEW = 6

#: What means something else in a class.
_SPECIAL = r"\]^-"

#: Pieces of a set of characters that are looked at.
_MOST_PIECES = 256


def is_inside_character(spelling: Spelling) -> bool:
    """Whether all bytes continue a character beyond ASCII."""
    low, high = _CONTINUATION
    return all(low <= first and last <= high for ranges in spelling for first, last in ranges)


def starts_character(spelling: Spelling) -> bool:
    """Whether the first byte begins a character beyond ASCII, whatever it is, and the others continue it."""
    return all(first >= _FIRST_LEAD for first, _ in spelling[0]) and is_inside_character(spelling[1:])


def label_of(spellings: Iterable[Spelling]) -> str:
    """A label for moves between the same states: what they read, one after the other."""
    characters: list[tuple[int, int]] = []
    others: list[str] = []
    rough = False
    for spelling in spellings:
        found = _characters(spelling)
        if found is not None:
            characters += found
        elif starts_character(spelling):
            rough = True
        else:
            others.append(_sequence(spelling))
    parts = [_class(_merged(characters))] if characters else []
    if rough:
        parts.append("characters beyond ASCII")
    return ", or ".join([*parts, *dict.fromkeys(others)])


def _characters(spelling: Spelling) -> list[tuple[int, int]] | None:
    """The characters that a spelling spells, as ranges; None for several in a row, for parts, and for many pieces."""
    if len(spelling) == 1:
        is_ascii = all(last <= _LAST_ASCII for _, last in spelling[0])
        return list(spelling[0]) if is_ascii else None
    if not starts_character(spelling):
        return None
    lengths = {2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 for span in spelling[0] for byte in span}
    if lengths != {len(spelling)}:
        return None
    pieces = _pieces(spelling)
    try:
        return None if pieces is None else [(ord(low.decode()), ord(high.decode())) for low, high in pieces]
    except UnicodeDecodeError:
        return None


def _pieces(spelling: Spelling) -> list[tuple[bytes, bytes]] | None:
    """First and last strings of runs in which all strings of bytes are consecutive in UTF-8."""
    found = [(b"", b"")]
    for number, ranges in enumerate(spelling):
        is_full = all(rest == (_CONTINUATION,) for rest in spelling[number + 1 :])
        spans = [
            span
            for low, high in ranges
            for span in ([(low, high)] if is_full else [(byte, byte) for byte in range(low, high + 1)])
        ]
        if len(found) * len(spans) > _MOST_PIECES:
            return None
        found = [(low + bytes([first]), high + bytes([last])) for low, high in found for first, last in spans]
    return found


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        elif merged and (merged[-1][1], low) == (0xD7FF, 0xE000):  # between them are no characters
            merged[-1] = merged[-1][0], high
        else:
            merged.append((low, high))
    return merged


def _class(ranges: list[tuple[int, int]]) -> str:
    """A class of characters, or what it leaves out where that is shorter."""
    if ranges == [(0, _LAST)]:
        return "any character"
    gaps = [(a[1] + 1, b[0] - 1) for a, b in pairwise([(-1, -1), *ranges, (_LAST + 1, _LAST + 1)])]
    gaps = [(low, high) for low, high in gaps if low <= high]
    if ranges[-1][1] == _LAST and len(gaps) <= _FEW and gaps[-1][1] <= _LAST_ASCII:
        return f"[^{''.join(_span(low, high) for low, high in gaps)}]"
    narrow = [(low, high) for low, high in ranges if low <= _LAST_ASCII]
    wide = [(max(low, _LAST_ASCII + 1), high) for low, high in ranges if high > _LAST_ASCII]
    parts = [describe([(low, min(high, _LAST_ASCII)) for low, high in narrow])] if narrow else []
    if len(wide) > _FEW:
        surrogates = sum(low < 0xD800 and high > 0xDFFF for low, high in wide) * 0x800
        parts.append(f"{sum(high - low + 1 for low, high in wide) - surrogates:,} characters beyond ASCII")
    elif wide == [(_LAST_ASCII + 1, _LAST)]:
        parts.append("a character beyond ASCII")
    elif wide:
        text = "".join(_span(low, high) for low, high in wide)
        parts.append(text if len(text) == 1 else f"[{text}]")
    return ", or ".join(parts)


def _span(low: int, high: int) -> str:
    first, last = _spelled(low), _spelled(high)
    return first if low == high else f"{first}-{last}" if high - low > 1 else first + last


def _spelled(number: int) -> str:
    if number <= _LAST_ASCII:
        inner = describe([(number, number)])
        escape = "\\" if chr(number) in _SPECIAL else ""
        return {"a space": " ", r"'\''": "'"}.get(inner, escape + inner.strip("'"))
    character = chr(number)
    return character if character.isprintable() else f"\\u{{{number:x}}}"


def _sequence(spelling: Spelling) -> str:
    """Bytes one after the other: what is one text in quotes, classes between."""
    parts: list[str] = []
    text = bytearray()
    for ranges in spelling:
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            text.append(ranges[0][0])
            continue
        if text:
            parts.append(_quoted(bytes(text)))
            text.clear()
        parts.append(describe(ranges))
    if text:
        parts.append(_quoted(bytes(text)))
    return " ".join(parts)


def _quoted(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    return f"‘{''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)}’"
