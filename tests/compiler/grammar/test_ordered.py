"""The match that `re` prefers, judged by `re`: random regexes, with lazy quantifiers and look-around."""

from __future__ import annotations

import random

import pytest
from judges.preferred_matches import automaton, expected, matched, random_regex
from tiers import draws

from structgen.errors import UnsupportedError


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"/\*(.|\n)*?\*/", ["/* a */ b */", "/**/", "/*", "/*/"]),
        ("a|ab", ["ab", "a", "b"]),
        ("(?:a|ab)(?:c|bcd)", ["abcd", "abc", "ac"]),
        ("a+?b??", ["aab", "ab"]),
        ('"(?:[^"\\\\]|\\\\.)*?"', ['"a\\"b" "', '""', '"']),
        (r"[ab]+(?<!b)", ["aab", "bb", "ba"]),
        ("(?:a(?!b)c|ab)x?", ["abx", "acx", "a"]),
        ("(?:(?:é)??)*x", ["ééx", "x"]),
        ("(?:a??){2,3}b", ["aaab", "b", "aaaab"]),
        ('"(?!"").*?"', ['""', '"""', '"a"', '""a', '"""a"""']),
        (r"a+(?=b)", ["aab", "aa", "aac", "b"]),
        (r"a(?=bc)|ab?|abcd(?!e)", ["a", "ab", "abc", "abcd", "abcde"]),
        (r"(?:ab(?!cd)|a)(?:c(?=d))?", ["ab", "abcd", "abcx", "acd", "abc"]),
        (r"if\b|i", ["if", "ifx", "if ", "ié", "ifé"]),
        (r"if(?![a-z\x80-\U0010ffff])|if.x", ["if", "ifx", "if ", "ifé", "if蟒", "if🐍x", "if\x7f", "ifèx"]),
        (r"a(?=[b\x80-\uffff])[^b]?", ["ab", "aé", "a蟒", "a🐍", "a\uffff", "a"]),
        (r"a(?![\u4000-\u9fff])(?:蟒|)", ["a", "a蟒", "a가", "aé", "a䀀"]),
        (r"a(?=(?:a|b)*c)b*", ["abbc", "abb", "ac", "aac", "abbabc"]),
        (r"(?:a??|(?:b?c){2,4}){3,6}é", ["abcbcaé", "é", "aaaaé", "bcbcé"]),
        (r"(?:(?:a?b?)*?c?){0,5}(?=é)", ["abcabcé", "é", "ccbaé", "ab"]),
        (r"\w{0,9}?(?!\w)", ["abc", "é蟒 a", "a" * 9, "a" * 10]),
    ],
)
def test_known_matches(pattern: str, texts: list[str]) -> None:
    matcher = automaton(pattern)
    for text in texts:
        assert matched(matcher, text.encode()) == expected(pattern, text), text


@pytest.mark.parametrize(
    ("pattern", "lead", "settled"),
    [
        (r"if(?![a-z\x80-\U0010ffff])", 0xC3, True),
        (r"if(?![a-z\x80-\U0010ffff])", 0xED, True),
        (r"if(?![a-z\x80-\U0010ffff])", 0xF4, True),
        (r"if(?![a-z\u1000-\U0010ffff])", 0xE1, True),
        (r"if(?![a-z\u1000-\U0010ffff])", 0xC3, True),
        (r"if(?![a-z\x80-\ufffe])", 0xEF, False),
        (r"if(?=[a-z\x81-\U0010ffff])", 0xC2, False),
        (r"if(?=[a-z\x81-\U0010ffff])", 0xC3, True),
    ],
)
def test_first_bytes_of_characters_settle_look_ahead(pattern: str, lead: int, settled: bool) -> None:
    matcher = automaton(pattern)
    state = 0
    for byte in (*b"if", lead):
        state = matcher.next(state, byte)
    assert (state < 0 or bool(matcher.beats[state])) is settled


@pytest.mark.parametrize("seed", range(draws(20)))
def test_random_regexes(seed: int) -> None:
    rng = random.Random(seed)
    honoured = 0
    for _ in range(60):
        pattern = random_regex(rng, 4)
        try:
            matcher = automaton(pattern)
        except UnsupportedError:
            continue
        honoured += 1
        for _ in range(15):
            text = "".join(rng.choices("abcé", k=rng.randint(0, 8)))
            assert matched(matcher, text.encode()) == expected(pattern, text), (pattern, text)
    assert honoured > 40


@pytest.mark.parametrize(
    "pattern", [r"(?<!a)b", r"^a", r"a$", r"\ba", r"a(?=(?:é)*(?<=b))."], ids=lambda pattern: pattern
)
def test_look_around_before_the_match_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError):
        automaton(pattern)
