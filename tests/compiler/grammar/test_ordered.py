"""The match that `re` prefers, judged by `re`: random regexes, with lazy quantifiers and look-around."""

from __future__ import annotations

import random
import re

import pytest

from structgen.budget import Budget, Meter
from structgen.compiler.grammar.lexer.leftmost_dfa import LeftmostDfa
from structgen.compiler.grammar.lexer.ordered import preferred
from structgen.compiler.patterns.parser import parse
from structgen.errors import UnsupportedError


def automaton(pattern: str) -> LeftmostDfa:
    return preferred(parse(pattern), Meter(Budget()))


def matched(matcher: LeftmostDfa, data: bytes) -> int:
    """Where the match at the beginning of a text ends; -1 for none. All that could be are followed, and watched."""
    ends = [(0, watch) for watch in matcher.ends[0]] if matcher.states else []
    watched = ends[:]
    state = 0 if matcher.states else -1
    for i, byte in enumerate(data):
        watched = [
            (end, after) for end, watch in watched if not beaten(after := follow(matcher, watch, byte), matcher)
        ]
        state = follow(matcher, state, byte)
        watched += [(i + 1, watch) for watch in matcher.ends[state]] if state >= 0 else []
    left = [end for end, watch in watched if watch < 0 or not matcher.lapses[watch]]
    assert len(left) < 2, "two matches are preferred at once"
    assert matcher.states == 0 or state < 0 or matcher.whole[state] == (left == [len(data)])
    return left[0] if left else -1


def follow(matcher: LeftmostDfa, state: int, byte: int) -> int:
    return -1 if state < 0 else matcher.next(state, byte)


def beaten(state: int, matcher: LeftmostDfa) -> bool:
    return state >= 0 and bool(matcher.beats[state])


def expected(pattern: str, text: str) -> int:
    found = re.match(pattern, text)
    return len(found.group().encode()) if found else -1


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


def random_regex(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(["a", "b", "c", "[ab]", ".", "[^a]", "é"])
    inner = random_regex(rng, depth - 1)
    if kind < 0.5:
        return inner + random_regex(rng, depth - 1)
    if kind < 0.7:
        return f"(?:{inner}|{random_regex(rng, depth - 1)})"
    if kind < 0.9:
        return f"(?:{inner}){rng.choice(['*', '+', '?', '*?', '+?', '??', '{1,2}', '{2}', '{0,2}?', '{1,}?'])}"
    if rng.random() < 0.3:
        return f"{inner}({rng.choice(['?=', '?!'])}{random_regex(rng, depth - 1)})"
    if rng.random() < 0.6:
        return f"({rng.choice(['?=', '?!'])}{inner}){random_regex(rng, depth - 1)}"
    return f"{inner}({rng.choice(['?<=', '?<!'])}{rng.choice('abc')})"


@pytest.mark.parametrize("seed", range(20))
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
