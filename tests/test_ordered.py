"""The match that `re` prefers, judged by `re`: random regexes, with lazy quantifiers and look-around."""

from __future__ import annotations

import random
import re

import pytest

from structgen.budget import Budget, Meter
from structgen.compiler.automata.dfa import Dfa
from structgen.compiler.grammar.ordered import preferred
from structgen.compiler.regex.parser import parse
from structgen.errors import UnsupportedError


def automaton(pattern: str) -> Dfa:
    return preferred(parse(pattern), Meter(Budget()))


def matched(dfa: Dfa, data: bytes) -> int:
    """Where the match at the beginning of a text ends; -1 for none."""
    if not dfa.states:
        return -1
    state, end = dfa.start, 0 if dfa.accepting[dfa.start] else -1
    for i, byte in enumerate(data):
        state = int(dfa.table[state, dfa.classes[byte]])
        if state < 0:
            break
        if dfa.accepting[state]:
            end = i + 1
    return end


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
    ],
)
def test_known_matches(pattern: str, texts: list[str]) -> None:
    dfa = automaton(pattern)
    for text in texts:
        assert matched(dfa, text.encode()) == expected(pattern, text), text


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
            dfa = automaton(pattern)
        except UnsupportedError:
            continue
        honoured += 1
        for _ in range(15):
            text = "".join(rng.choices("abcé", k=rng.randint(0, 8)))
            assert matched(dfa, text.encode()) == expected(pattern, text), (pattern, text)
    assert honoured > 40


@pytest.mark.parametrize(
    "pattern", [r"(?<!a)b", r"a(?=b)", r"^a", r"a$", r"\ba", r"a(?=(?:é)*(?<=b))."], ids=lambda pattern: pattern
)
def test_look_around_beyond_the_match_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError):
        automaton(pattern)
