"""The match of a regex at the beginning of a text that `re` prefers, and the one that an automaton finds."""

from __future__ import annotations

import re
from random import Random

from structgen.budget import Budget, Meter
from structgen.compiler.grammar.lexer.leftmost_dfa import LeftmostDfa
from structgen.compiler.grammar.lexer.ordered import preferred
from structgen.compiler.grammar.lexer.program import LexerProgram
from structgen.compiler.patterns.parser import parse


def automaton(pattern: str) -> LeftmostDfa:
    made, meter = LexerProgram(), Meter(Budget(seconds=3600))
    made.add(parse(pattern), meter)
    return preferred(made, meter)[0]


def matched(matcher: LeftmostDfa, data: bytes) -> int:
    """Where the match at the beginning of a text ends; -1 for none. All that could be are followed, and watched."""
    ends = [(0, watch) for watch in matcher.ends[0]] if matcher.states else []
    watched = ends[:]
    state = 0 if matcher.states else -1
    for i, byte in enumerate(data):
        watched = [(end, after) for end, watch in watched if not beaten(after := follow(matcher, watch, byte), matcher)]
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


def random_regex(rng: Random, depth: int) -> str:
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
