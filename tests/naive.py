"""Plain oracles: slow, obvious, and independent of structgen's automata."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import regex

from structgen import Vocabulary


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern, regex.VERSION0)


def is_viable(pattern: str, data: bytes) -> bool:
    """Whether some text that ``pattern`` matches entirely begins with these bytes.

    The regex module's partial matching judges whole characters. Where the bytes end inside a character, one
    matching each way to go on is tried; the patterns of these tests treat most characters alike, so a sample of
    the completions, with every character that a pattern names, is enough.
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


@lru_cache(maxsize=1024)
def _completions(tail: bytes) -> tuple[str, ...]:
    """The characters of `_SAMPLE` whose UTF-8 begins with ``tail``."""
    return tuple(c for c in _SAMPLE if c.encode().startswith(tail))


#: Every character up to U+0800, the decimal digits and a few words' worth of each script, the named emoji.
_SAMPLE = [
    chr(code)
    for code in (*range(0x80, 0xD800), *range(0xE000, 0x1FC00), *range(0x1FC00, 0x110000, 997))
    if code < 0x800 or chr(code).isdecimal() or code % 61 == 0 or 0x1F600 <= code < 0x1F640
]


def allowed_tokens(row: np.ndarray[tuple[int], np.dtype[np.int32]], size: int) -> set[int]:
    """The ids whose bit is set in a bitmask row, read bit by bit."""
    return {t for t in range(size) if int(row[t // 32]) >> (t % 32) & 1}


def small_vocabulary(extra: tuple[bytes, ...] = ()) -> Vocabulary:
    """All single bytes, some longer tokens, one of them twice, pieces of characters, a special token, two EOS."""
    words = [b"ab", b"ba", b"aa", b"bb", b"abab", b"aaaaaaa", b"12", b"20", b"-0", b' "', b'"', b"the", b"foo",
             b"\xc3", b"\xa9b", "é".encode(), "éa".encode(), b"a\xf0\x9f", b"\x98\x80", b"\n\n", b"a\n", b"ab",
             b" ", b"  "]  # fmt: skip
    tokens = [*(bytes([i]) for i in range(256)), *words, *extra]
    return Vocabulary.from_bytes([*tokens, None, None, None], [len(tokens) + 1, len(tokens) + 2])
