"""Plain oracles: slow, obvious, and independent of structgen's automata."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

import numpy as np
import regex

from judges.guides import EACH_BYTE, ids_of_bits
from structgen import Vocabulary


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> regex.Pattern[str]:
    # The regex module has its own Unicode version, and combining marks in \w; what `re` means is spelled out.
    for shorthand in (r"\w", r"\d"):
        pattern = pattern.replace(shorthand, _class_of(shorthand))
    return regex.compile(pattern, regex.VERSION0)


@lru_cache(maxsize=2)
def _class_of(shorthand: str) -> str:
    """What `re` means by a shorthand, character by character, as a class."""
    everything = "".join(map(chr, range(0x110000)))
    spans = (match.span() for match in re.finditer(f"{shorthand}+", everything))
    return "[" + "".join(f"{everything[i]}-{everything[j - 1]}" for i, j in spans) + "]"


def is_viable(pattern: str, data: bytes) -> bool:
    """Whether some text that ``pattern`` matches entirely begins with these bytes.

    The regex module's partial matching judges whole characters. Where the bytes end inside a character, the
    characters that they can become are tried, all of them or a sample that has every digit.
    """
    compiled = _compiled(pattern)
    try:
        return compiled.fullmatch(data.decode(), partial=True) is not None
    except UnicodeDecodeError as error:
        head, tail = data[: error.start], data[error.start :]
        if error.end != len(data) or "unexpected end" not in error.reason:
            return False
    text = head.decode()
    if compiled.fullmatch(text, partial=True) is None:
        return False
    return any(compiled.fullmatch(text + c, partial=True) is not None for c in _completions(tail))


@lru_cache(maxsize=4096)
def _completions(tail: bytes) -> tuple[str, ...]:
    """Characters whose UTF-8 begins with ``tail``: all, where one byte is missing, else a good sample."""
    missing = 1 + (tail[0] >= 0xE0) + (tail[0] >= 0xF0) - len(tail) + 1
    few = (0x80, 0x8E, 0x90, 0x98, 0xA0, 0xA5, 0xB1, 0xBF)
    endings = product(range(0x80, 0xC0), *[few] * (missing - 1))
    sample = (_decoded(tail + bytes(ending)) for ending in endings)
    return (*(c for c in sample if c), *(c for c in _DIGITS if c.encode().startswith(tail)))


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


_DIGITS = [chr(code) for code in range(0x80, 0x20000) if chr(code).isdecimal()]


def allowed_tokens(row: np.ndarray[tuple[int], np.dtype[np.int32]], size: int) -> set[int]:
    """The ids below ``size`` whose bit is set in a bitmask row."""
    return {t for t in ids_of_bits(row) if t < size}


def small_vocabulary(extra: tuple[bytes, ...] = ()) -> Vocabulary:
    """All single bytes, some longer tokens, one of them twice, pieces of characters, a special token, two EOS."""
    words = [b"ab", b"ba", b"aa", b"bb", b"abab", b"aaaaaaa", b"12", b"20", b"-0", b' "', b'"', b"the", b"foo",
             b"\xc3", b"\xa9b", "é".encode(), "éa".encode(), b"a\xf0\x9f", b"\x98\x80", b"\n\n", b"a\n", b"ab",
             b" ", b"  "]  # fmt: skip
    tokens = [*EACH_BYTE, *words, *extra]
    return Vocabulary.from_bytes([*tokens, None, None, None], [len(tokens) + 1, len(tokens) + 2])
