"""``%regex {"substring_...": ...}``: Python's own ``in`` judges, of texts and runs of units; so does llguidance."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence

import pytest
from judges.guides import BYTES, EOS, allowed

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.automata.dfa import Dfa
from structgen.compiler.automata.factors import factors_dfa
from structgen.definitions.structured_regexes import units_of
from structgen.errors import BudgetExceededError, DefinitionError


def accepts(dfa: Dfa, text: str) -> bool:
    state = dfa.start
    for byte in text.encode():
        state = int(dfa.table[state, dfa.classes[byte]]) if state >= 0 else -1
    return state >= 0 and bool(dfa.accepting[state])


def runs(units: Sequence[str]) -> set[str]:
    return {"".join(units[i:j]) for i in range(len(units) + 1) for j in range(i, len(units) + 1)}


def test_characters_in_a_row_are_those_that_are_in_the_text() -> None:
    drawn = random.Random(3)
    for _ in range(60):
        text = "".join(drawn.choices("abé日", k=drawn.randrange(14)))
        dfa = factors_dfa([*text], Meter(Budget()))
        for n in range(4):
            for letters in itertools.product("abé日", repeat=n):
                assert accepts(dfa, "".join(letters)) is ("".join(letters) in text)
        assert dfa.states <= max(1, 2 * 3 * len(text))


def test_chunks_in_a_row_are_read_whole() -> None:
    """Chunks may begin like others, be others joined, or be empty."""
    drawn = random.Random(4)
    for _ in range(150):
        chunks = drawn.choices(["a", "ab", "b", "abc", "ca", "", "é", "ê"], k=drawn.randrange(8))
        dfa, expected = factors_dfa(chunks, Meter(Budget())), runs(chunks)
        for text in expected | {"a", "abca", "bc", "cab", "ab" * 4, "éa", "aê"}:
            assert accepts(dfa, text) is (text in expected), (chunks, text)
        texts = ["".join(drawn.choices("abcéê", k=drawn.randrange(6))) for _ in range(40)]
        assert [accepts(dfa, text) for text in texts] == [text in expected for text in texts]


def test_a_long_text_and_its_parts() -> None:
    drawn = random.Random(5)
    words = ["".join(drawn.choices("abcdefgh", k=drawn.randrange(1, 8))) for _ in range(300)]
    text = "".join(drawn.choice(words) + drawn.choice([" ", ", ", ".\n"]) for _ in range(2_500))
    dfa = factors_dfa([*text], Meter(Budget()))
    for _ in range(300):
        begin = drawn.randrange(len(text))
        part = text[begin : begin + drawn.randrange(400)]
        assert accepts(dfa, part)
        changed = part[: len(part) // 2] + drawn.choice("abcxyz .") + part[len(part) // 2 + 1 :]
        assert accepts(dfa, changed) is (changed in text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo bar. baz", ["foo", " ", "bar", ".", " ", "baz"]),
        ("a--b_1\n\n c", ["a", "--", "b_1", "\n\n ", "c"]),
        ("it's  日本語!?", ["it", "'", "s", "  ", "日本語", "!?"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert units_of(json.dumps({"substring_words": text})) == words


def grammar_of(text: str, key: str, source: object) -> str:
    return text.replace("SUB", "%regex " + json.dumps({key: source}, ensure_ascii=False))


CASES = [
    ('start: "<" SUB ">"', "substring_words", "the cat, the dog", ["the cat", ", the", "th", "cat,", "dog", "", " "]),
    ('start: A "!"\nA: "x" SUB "y"', "substring_chunks", ["ab", "c", "abc"], ["xaby!", "xcabcy!", "xacy!", "xy!"]),
    ("start: A B\nA: SUB & /[^é]*/\nB: /[0-9]?/", "substring_chars", "abéba1", ["ab", "bé", "ba1", "a2", "", "é"]),
    ('start: A\nA: SUB & ~"aa" | "-"', "substring_chars", "baab", ["aa", "baa", "-", "bb", ""]),
    ("start: WORD ws WORD\nws: SUB\nWORD: /[a-z]+/", "substring_chunks", [" ", "\n", " "], ["a b", "a \nb", "a  b"]),
]


@pytest.mark.parametrize(("text", "key", "source", "texts"), CASES)
def test_llguidance_reads_grammars_alike(text: str, key: str, source: object, texts: list[str]) -> None:
    llguidance = pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")
    tokens, grammar = llguidance.LLTokenizer("byte"), grammar_of(text, key, source)
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    for each in [*texts, *(f"<{each}>" for each in texts)]:
        matcher = llguidance.LLMatcher(tokens, grammar, log_level=0)
        expected = matcher.try_consume_tokens([*each.encode()]) == len(each.encode()) and matcher.is_accepting()
        assert index.match(each.encode()).accepted is expected, each


def test_masks_say_what_stands_next_somewhere() -> None:
    source = "the theme of then"
    index = sg.compile(sg.Grammar(grammar_of("start: SUB", "substring_chars", source)), BYTES, eager=False)
    for begin, end in itertools.combinations(range(len(source) + 1), 2):
        guide, part = sg.Guide(index), source[begin:end]
        assert all(map(guide.advance, part.encode()))
        after = {ord(c) for c in map(chr, range(128)) if part + c in source}
        assert set(allowed(guide)) == after | {EOS}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{}", "has one member"),
        ('{"substring_chars": "a", "substring_words": "a"}', "has one member"),
        ('{"substring_lines": "a"}', "does not know substring_lines"),
        ('{"substring_chars": 5}', "substring_chars is a text"),
        ('{"substring_chunks": ["a", 1]}', "is a list of texts"),
        ("[1]", "followed by no object"),
        ("{", "followed by no JSON"),
    ],
)
def test_what_is_refused(given: str, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        sg.compile(sg.Grammar(f"start: A\nA: %regex {given}"), BYTES, eager=False)


def test_a_text_that_is_too_long_keeps_to_the_budget() -> None:
    source = "".join(random.Random(6).choices("ab", k=5_000))
    grammar = sg.Grammar(grammar_of("start: SUB", "substring_chars", source))
    with pytest.raises(BudgetExceededError):
        sg.compile(grammar, BYTES, eager=False, budget=Budget(states=1_000))


def test_explanations_name_the_terminals() -> None:
    index = sg.compile(sg.Grammar('start: "a" WORD{2}\nWORD: %regex {"substring_chars": "xy"} & ~""'), BYTES)
    assert index.match(b"ax").expected
