"""What an explanation says of patterns: the pieces that it names are judged by `regex`'s partial matching."""

from __future__ import annotations

import random
import re

import pytest
import regex

import structgen as sg

VOCABULARY = sg.Vocabulary.bytewise()

PATTERNS = {
    r"[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}": "2024-05-19",
    r"(?i:get|post) /\w+(\?\w=\d+(&\w=\d+)*)? HTTP/1\.[01]": "GET /abc?x=1&y=22 HTTP/1.1",
    r"(a|ab)(c|bcd)(d*)|xy{2,3}z?": "abcdd",
    r"é[à-ü]+😀?\u00e9{2}": "éàüéé",
    r".{3,5};\s*[^;]+": "abcd; efg",
    r"(?x) a  b # words" "\n c+ ": "abccc",
    r"(\((\d|\((\d|x)*\))*\))+": "(1(2x)3)(4)",
}


def changed(text: str, draw: random.Random) -> str:
    letters = text + "09azAZ-;é😀 \n("
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(["", draw.choice(letters), draw.choice(letters)]) + text[at + draw.randrange(2) :]


@pytest.mark.parametrize("number", range(len(PATTERNS)))
def test_any_character_in_place_of_a_named_piece_lets_the_text_go_on(number: int) -> None:
    pattern, text = list(PATTERNS.items())[number]
    index = sg.compile(sg.Regex(pattern), VOCABULARY)
    draw, judged = random.Random(number), 0
    for _ in range(200):
        mutant = changed(text, draw)
        found = sg.explain(index, mutant)
        assert found.accepted == bool(re.fullmatch(pattern, mutant)), mutant
        if found.accepted:
            continue
        data = mutant.encode()
        before = data[: found.consumed].decode("utf-8", "ignore")
        assert regex.fullmatch(pattern, before, partial=True)
        after = mutant[len(before) : len(before) + 1]
        if found.consumed < len(data):
            assert not regex.fullmatch(pattern, before + after, partial=True)
        (reason,) = found.reasons
        assert reason.kind == "pattern"
        for place in reason.where:
            first, *last = map(int, re.findall(r"\d+", place))
            loose = pattern[: first - 1] + r"(?s:.)" + pattern[(last or [first])[0] :]
            assert regex.fullmatch(loose, before + (after or "?"), partial=True), (mutant, place)
            judged += 1
    assert judged > 10


def test_columns_and_pieces() -> None:
    index = sg.compile(sg.Regex(r"[0-9]{4}-(0[1-9]|1[0-2])"), VOCABULARY)
    found = sg.explain(index, "2024-13")
    (reason,) = found.reasons
    assert reason.where == ("columns 19-23",)
    assert "'[0-2]'" in reason.what
    assert (found.consumed, found.column, found.expected) == (6, 7, ("[0-2]",))
    assert sg.explain(index, "2024-0").reasons[0].where == ("columns 12-16",)
    assert "its end" in sg.explain(index, "2024-011").reasons[0].what


def test_an_assertion_that_alone_stands_against_a_text_is_named() -> None:
    index = sg.compile(sg.Regex("(?!ab)[a-c]+"), VOCABULARY)
    found = sg.explain(index, "ab")
    assert found.consumed == 1
    assert found.reasons[0].where == ("column 1",)


def test_bytes_that_are_no_characters() -> None:
    index = sg.compile(sg.Regex("[à-ü]+"), VOCABULARY)
    assert "not UTF-8" in sg.explain(index, b"\xc3\xa0\xff").reasons[0].what
    assert sg.explain(index, b"\xc3\xa0\xc4").reasons[0].where == ("columns 1-5",)


def test_a_pattern_with_many_positions_is_left_out_aloud() -> None:
    index = sg.compile(sg.Regex("[ab]{30000}"), VOCABULARY, eager=False)
    found = sg.explain(index, "ac")
    assert (found.accepted, found.consumed, found.reasons[0].kind) == (False, 1, "unknown")
    assert "not looked into" in found.notes[0]
