"""Free text with bounds on characters and on tokens, judged by brute force over all short rows of tokens."""

from __future__ import annotations

from itertools import product

import pytest
from judges.guides import allowed, with_end

import structgen as sg

TOKENS = [b"a", "é".encode()[:1], "é".encode()[1:], b"a<", b">", b"<>", "aé<>".encode()]
VOCABULARY = with_end(TOKENS)
END = len(TOKENS)
#: What can be written behind two tokens and a third one is written within two more.
ROWS = [row for n in range(6) for row in product(range(END), repeat=n)]
SHORT = ROWS[: END**2 + END + 1]


def has(tokens: tuple[int, ...], end: bytes, characters: int | None, most: int | None) -> bool:
    """Whether a row of tokens is such text and its end."""
    whole = b"".join(TOKENS[token] for token in tokens)
    places = [len(b"".join(TOKENS[token] for token in tokens[:n])) for n in range(1, len(tokens) + 1)]
    if not whole.endswith(end):
        return False
    data = whole[: len(whole) - len(end)]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    if (end and end in data) or (characters is not None and len(text) > characters):
        return False
    if most is None:
        return True
    behind = [len(text[:n].encode()) for n in range(len(text) + 1)]
    # A character that the last token begins may be written to its end; nothing of it counts.
    counted = [place for place in places if place <= len(data)]
    last = 0 if most == 0 else counted[most - 1] if len(counted) >= most else len(data)
    return len(data) <= next(place for place in behind if place >= last)


@pytest.mark.parametrize(("characters", "most"), list(product((None, 0, 1, 2, 3), (None, 0, 1, 2))))
def test_masks_behind_all_short_rows(characters: int | None, most: int | None) -> None:
    bounds = {name: n for name, n in (("max_chars", characters), ("max_tokens", most)) if n is not None}
    for end, eager in ((b"<>", False), (b"<>", True), (b"", False)):
        tag = {"type": "tag", "begin": "", "content": {"type": "any_text", **bounds}, "end": end.decode()}
        index = sg.compile(sg.StructuralTag(tag), VOCABULARY, eager=eager, base_rows=False)
        texts = {row for row in ROWS if has(row, end, characters, most)}
        beginnings = {row[:n] for row in texts for n in range(len(row) + 1)}
        for row in SHORT:
            guide = sg.Guide(index)
            assert all(map(guide.advance, row)) == (row in beginnings), row
            if row in beginnings:
                expected = {each[len(row)] for each in beginnings if each[: len(row)] == row and len(each) > len(row)}
                assert set(allowed(guide)) - {END} == expected, row
                assert (END in allowed(guide)) == (row in texts), row
