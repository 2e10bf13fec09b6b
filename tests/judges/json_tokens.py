"""Schemas as data, vocabularies to spell their texts in, and the configurations that guides come to on the way."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import structgen as sg
from judges.guides import EACH_BYTE
from structgen.runtime.rows.bitmask import unpack

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: ``name``, ``schema`` (JSON text), the texts ``accept`` and ``reject``, and perhaps ``layout``; see the file.
CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[1] / "cases" / "json_schemas.toml").read_text("utf-8")
)["case"]

#: Tokens that end a string and go on, pieces of names, of characters and of escapes, and long ones.
_PIECES: list[bytes] = [
    *(text.encode() for text in (
        "the", "then", " the", "id", "ab", "abc", "12", "000", "-1", ".5", "1e", "null", "true", "fal", "é", "éa",
        "日本", "😀", '":', '": ', '": "', '",', '", "', '"},', '"}', '"]', '"]}', '"], [', '""', '""]', '{"', '[{"',
        '["', '[["', "[]", "{}", "{}]", '{"": ', ', "', "}, {", "}}", "]]", "]}", "]]]}", "],[", "0,0",
        "0,0,0,0,0,0,0", '","","', '", ""]', '"kind": "c', "1]}", "1}, ", r"\n", r"\"", r"\\", r"\u", r"\u00", "u00",
        r"\u001", '\\"}', r"\"\"", "  ", "\n", "\n  ", ",\n", ' "', '  "', "     ",
    )),
    b" " * 24, b"a" * 33, b'"bbbbbbb', b'bbbbbbb"', b"\xc3", b'\xa9"', b"a\xf0\x9f", b"\x98\x80", b"\xe6\x97", b"ab",
]  # fmt: skip


def small_vocabulary() -> sg.Vocabulary:
    """All bytes, `_PIECES` (one of them twice), a special token and two EOS ids."""
    tokens: list[bytes | None] = [*EACH_BYTE, *_PIECES, None, None, None]
    return sg.Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 2, len(tokens) - 1])


class Speller:
    """Spells texts in the tokens of a vocabulary that has every byte."""

    def __init__(self, vocabulary: sg.Vocabulary) -> None:
        tokens = [vocabulary.token(i) for i in range(vocabulary.size)]
        self._ids = {token: i for i, token in reversed(list(enumerate(tokens))) if token}
        self._longest = max(map(len, self._ids))

    def spell(self, text: bytes, random: Random | None = None) -> list[int]:
        """By the longest tokens, or by random ones of those that go on with the text."""
        found, position = [], 0
        while position < len(text):
            pieces = (text[position : position + n] for n in range(self._longest, 0, -1))
            fitting = [piece for piece in pieces if piece in self._ids]
            piece = random.choice(fitting) if random else fitting[0]
            found.append(self._ids[piece])
            position += len(piece)
        return found


def takes(index: sg.Index, tokens: list[int]) -> bool:
    """Whether mask after mask allows the tokens and then exactly the end; `advance` has to agree every time."""
    guide = sg.Guide(index)
    for token in tokens:
        allowed = bool(mask_of(guide)[token])
        assert guide.advance(token) == allowed, (guide, index.vocabulary.token(token))
        if not allowed:
            return False
    ends = mask_of(guide)[list(index.vocabulary.eos_ids)]
    assert ends.all() == ends.any() == guide.is_accepting()
    return guide.is_accepting()


def guides_along(index: sg.Index, tokens: list[int]) -> Iterator[sg.Guide]:
    """One guide, before each of the tokens and after the last; they have to be let through."""
    guide = sg.Guide(index)
    for token in tokens:
        yield guide
        assert guide.advance(token), (guide, index.vocabulary.token(token))
    yield guide


def mask_of(guide: sg.Guide) -> NDArray[np.bool_]:
    """The mask, ``bool[size]``; bits past the last id have to be zero."""
    row, size = guide.bitmask(), guide.index.vocabulary.size
    assert not np.unpackbits(row.view(np.uint8), bitorder="little")[size:].any()
    return unpack(row, size).astype(np.bool_)


def masks(index: sg.Index, tokens: list[int]) -> list[bytes]:
    """The masks along a text."""
    return [guide.bitmask().tobytes() for guide in guides_along(index, tokens)]


def random_text(
    index: sg.Index, taste: list[int], closing: list[int], random: Random, tokens: int = 12
) -> bytes | None:
    """What an index lets through from beginning to end, by tokens drawn from its masks.

    Every other token is one of ``taste``, where any of these is allowed. After so many ``tokens`` it is mostly the
    first possible one of ``closing``; None where that leads nowhere in thirty times as many.
    """
    guide, text = sg.Guide(index), bytearray()
    for step in range(30 * tokens):
        mask = mask_of(guide)
        assert mask.any(), f"nothing may follow {bytes(text)!r}"
        ends = [token for token in closing if mask[token]] if step >= tokens and random.random() < 0.7 else []
        liked = [token for token in taste if mask[token]] if random.random() < 0.5 else []
        token = ends[0] if ends else int(random.choice(liked or np.flatnonzero(mask)))
        assert guide.advance(token), f"the mask allows {token} after {bytes(text)!r}"
        if guide.is_finished():
            return bytes(text)
        text += index.vocabulary.token(token) or b""
    return None
