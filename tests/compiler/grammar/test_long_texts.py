"""Parts of texts that are too long for the lexer: `in`, and lists of all runs of units, judge texts and masks."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest
from judges.guides import BYTES, EOS, allowed, with_bytes, with_end

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.definitions import structured_regexes
from structgen.definitions.structured_regexes import LONG, units_of
from structgen.errors import (
    BudgetExceededError,
    DefinitionError,
    FormatError,
    GrammarWarning,
    UnsupportedError,
    VocabularyError,
)
from structgen.runtime.grammar.substrings.machine import SubstringMachine
from structgen.runtime.grammar.substrings.suffixes import suffixes_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is not lexed:structgen.errors.GrammarWarning")

#: Tokens that begin, go on with, and end what is quoted, and hold parts of characters.
TOKENS = with_bytes(
    "ab", "ba", "a,", ",b", "<a", "b>", "<>", "a>", "é>", ",,", "a b", " b", "bé", "aba", b"\xa9", b"\xc3\xa9a",
    b"a\xc3", b"<\xc3", "<a,b>", ">",
)  # fmt: skip


@pytest.fixture
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_regexes, "LONG", 0)


def runs(units: Sequence[str]) -> set[str]:
    return {"".join(units[i:j]) for i in range(len(units) + 1) for j in range(i, len(units) + 1)}


def grammar_of(rules: str, key: str, source: object) -> sg.Grammar:
    return sg.Grammar(rules.replace("SUB", "%regex " + json.dumps({key: source}, ensure_ascii=False)))


def drawn_source(drawn: random.Random) -> tuple[str, object]:
    key = drawn.choice(["substring_chars", "substring_words", "substring_chunks"])
    if key == "substring_chunks":
        chunks = ["a", "ab", "b", "aba", ",", "", "é", "a b", ">"]
        return key, [*drawn.choices(chunks, k=drawn.randrange(1, 7)), "a"]
    return key, "a" + "".join(drawn.choices("aab,é ", k=drawn.randrange(1, 9)))


def test_suffixes_are_in_order() -> None:
    drawn = random.Random(1)
    for text in ["a", "aaaaaaaaaaaaaaaaaaaaaaaa", "abababababababababababab", "éa\0\0é\0"] + [
        "".join(drawn.choices("ab\0é", k=drawn.randrange(1, 60))) for _ in range(200)
    ]:
        found, data = suffixes_of([*text], lambda: None), text.encode()
        begins = [len(text[:i].encode()) for i in range(len(text))]
        assert found.order.tolist() == sorted(begins, key=lambda at: data[at:])


@pytest.mark.parametrize(
    ("rules", "parts"),
    [
        ('start: "<" SUB ">"', ["<", None, ">"]),
        ("start: SUB", [None]),
        ('start: SUB "," SUB', [None, ",", None]),
        ('start: "a" SUB /[ab]/', ["a", None, "ab"]),
    ],
)
@pytest.mark.usefixtures("everything_is_long")
def test_masks_are_those_of_all_texts(rules: str, parts: list[str | None]) -> None:
    """A token is in the mask where some text begins with it; every prefix of a text and random others are asked."""
    drawn = random.Random(rules)
    for _ in range(8):
        key, source = drawn_source(drawn)
        quoted = runs(units_of(json.dumps({key: source})))
        texts = {""}
        for part in parts:
            texts = {text + more for text in texts for more in (quoted if part is None else part)}
        whole = {text.encode() for text in texts}
        beginnings = {text[:n] for text in whole for n in range(len(text) + 1)}
        index = sg.compile(grammar_of(rules, key, source), TOKENS, eager=drawn.random() < 0.5)
        for written in drawn.sample(sorted(beginnings), min(len(beginnings), 25)):
            guide = sg.Guide(index)
            assert all(map(guide.advance, written)), (key, source, written)
            expected = {t for t in range(TOKENS.size) if (b := TOKENS.token(t)) and written + b in beginnings}
            if written in whole:
                expected |= {*TOKENS.eos_ids}
            assert set(allowed(guide)) == expected, (key, source, written)
        for text in chain(whole, (bytes(drawn.choices(b"<>ab, \xc3\xa9", k=drawn.randrange(5))) for _ in range(50))):
            assert index.match(text).accepted is (text in whole), (key, source, text)


@pytest.mark.usefixtures("everything_is_long")
def test_stored_ones_go_on_alike_and_damaged_ones_are_refused() -> None:
    index = sg.compile(grammar_of('start: "<" SUB ">"', "substring_words", "ab a, é ab a b"), TOKENS)
    again = sg.Index.from_buffer(index.to_bytes())
    for text in (b"<ab a", b"<", b"<\xc3", b"<a, \xc3\xa9 "):
        guides = [sg.Guide(each) for each in (index, again)]
        assert all(guide.advance(byte) for guide in guides for byte in text)
        masks = [allowed(guide) for guide in guides]
        assert masks[0] == masks[1] != []
    machine = SubstringMachine(suffixes_of(["ab", "c"], lambda: None), BYTES)
    meta, sections = machine.to_meta(), machine.to_sections()
    SubstringMachine.from_sections(meta, sections, BYTES, "here")
    for name, damaged in (
        ("suffixes", np.array([0, 3], np.uint32)),
        ("unit_ends", np.zeros(0, np.uint8)),
        ("text", np.zeros(2, np.uint8)),
    ):
        with pytest.raises(FormatError):
            SubstringMachine.from_sections(meta, {**sections, name: damaged}, BYTES, "here")


@pytest.fixture(scope="module")
def long_text() -> str:
    drawn = random.Random(5)
    words = ["".join(drawn.choices("abcdefghé", k=drawn.randrange(1, 8))) for _ in range(500)]
    return "".join(drawn.choice(words) + drawn.choice([" ", ", ", ".\n"]) for _ in range(45_000))


@pytest.fixture(scope="module")
def long_index(long_text: str) -> sg.Index:
    assert len(long_text) > LONG
    return sg.compile(grammar_of('start: "<" SUB ">"', "substring_chars", long_text), BYTES, eager=False)


def test_a_long_text_and_its_parts(long_text: str, long_index: sg.Index) -> None:
    drawn = random.Random(6)
    for _ in range(60):
        begin = drawn.randrange(len(long_text))
        part = long_text[begin : begin + drawn.randrange(120)]
        assert long_index.match(f"<{part}>".encode()).accepted
        changed = part[: len(part) // 2] + drawn.choice("abcxyz .") + part[len(part) // 2 + 1 :]
        assert long_index.match(f"<{changed}>".encode()).accepted is (changed in long_text)


def test_masks_in_a_long_text(long_text: str, long_index: sg.Index) -> None:
    drawn, data = random.Random(7), long_text.encode()
    for _ in range(4):
        begin = drawn.randrange(len(long_text) - 20)
        guide, part = sg.Guide(long_index), long_text[begin : begin + 9].encode()
        guide.advance(ord("<"))
        for n in range(len(part) + 1):
            # Where a part begins with a whole character, bytes that stand in it stand there as characters.
            goes_on = {b for b in range(256) if part[:n] + bytes([b]) in data and (n or not 0x80 <= b < 0xC0)}
            is_whole = not part[n : n + 1] or not 0x80 <= part[n] < 0xC0
            assert set(allowed(guide)) == goes_on | ({ord(">")} if is_whole else set())
            assert n == len(part) or guide.advance(part[n])
    assert EOS not in allowed(sg.Guide(long_index))


def test_it_is_told_that_these_are_not_lexed(long_text: str) -> None:
    with pytest.warns(GrammarWarning, match="is not lexed"):
        sg.compile(grammar_of("start: SUB", "substring_words", long_text), BYTES, eager=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.compile(grammar_of("start: SUB", "substring_words", long_text[:900]), BYTES, eager=False)


@pytest.mark.parametrize(
    ("rules", "error", "what"),
    [
        ("start: A\nA.2: SUB", UnsupportedError, "has a priority"),
        ('start: "a"\nA: SUB\n%ignore A', UnsupportedError, "is ignored"),
        ("start: a\na[max_chars=5]: SUB", UnsupportedError, "bounds it"),
        ("start: a\na[max_tokens=5]: SUB", UnsupportedError, "bounds it"),
        ("start: a\na[lazy]: SUB", UnsupportedError, "bounds it"),
    ],
)
@pytest.mark.usefixtures("everything_is_long")
def test_what_is_refused(rules: str, error: type[DefinitionError], what: str) -> None:
    with pytest.raises(error, match=what):
        sg.compile(grammar_of(rules, "substring_chars", "abc"), BYTES, eager=False)


@pytest.mark.usefixtures("everything_is_long")
def test_what_cannot_be_finished_is_refused() -> None:
    with pytest.raises(VocabularyError, match="0x62"):
        sg.compile(grammar_of("start: SUB", "substring_chars", "ab"), with_end([b"a", b"ab"]), eager=False)
    tag = sg.StructuralTag(
        {"type": "grammar", "grammar": grammar_of("start: SUB", "substring_chars", "ab").text, "syntax": "lark"}
    )
    with pytest.raises(UnsupportedError, match="part of another definition"):
        sg.compile(tag, BYTES, eager=False)


def test_long_ones_keep_to_the_budget(long_text: str) -> None:
    with pytest.raises(BudgetExceededError):
        sg.compile(
            grammar_of("start: SUB", "substring_chars", long_text), BYTES, eager=False, budget=Budget(memory=8 << 20)
        )
    with pytest.raises(BudgetExceededError):
        suffixes_of([*"ab"], lambda: Meter(Budget(seconds=1e-9)).check_time("here"))


@pytest.mark.parametrize(("letters", "characters"), [("abcdefghij", 150_000), ("éèàâôîûëïç", 75_000)])
def test_texts_that_no_automaton_within_the_budget_has(letters: str, characters: int) -> None:
    """Bytes count: past what is always within the usual budget of states, texts are looked up."""
    drawn = random.Random(9)
    words = ["".join(drawn.choices(letters, k=drawn.randrange(2, 9))) for _ in range(3_000)]
    text = " ".join(drawn.choices(words, k=characters // 4))[:characters]
    index = sg.compile(grammar_of('start: "<" SUB ">"', "substring_words", text), BYTES, eager=False)
    for _ in range(20):
        begin = text.index(" ", drawn.randrange(characters // 2))
        part = text[begin : text.index(" ", begin + drawn.randrange(1, 300))]
        assert index.match(f"<{part}>".encode()).accepted
        assert not index.match(f"<{part}zz>".encode()).accepted
