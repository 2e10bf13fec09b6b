"""String sets: their algebra by brute force, their JSON texts by `json`.

A set is described twice: as a `StringSet` and as a Python predicate. Whatever is done to one is done to the other.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import draws

from structgen import kernels
from structgen.budget import Budget, Meter
from structgen.compiler.automata.dfa import LOOP, OPERATION, TARGET_LOW, Dfa
from structgen.compiler.json_schema.strings.json_escapes import json_text
from structgen.compiler.json_schema.strings.lengths import bounded
from structgen.compiler.json_schema.strings.strings import StringSet
from structgen.errors import BudgetExceededError, DefinitionError

METER = Meter(Budget(seconds=100_000))  # from when the module is imported
ALPHABET = 'ab"\\\n\x01\x7fé€\U0001f600'
SAMPLES = [
    *("".join(p) for n in range(4) for p in itertools.product('ab"\n', repeat=n)),
    *("".join(p) for n in range(3) for p in itertools.product(ALPHABET, repeat=n)),
    *("ab" * n for n in (2, 12, 13, 20, 30)),
    *("a" * n for n in (23, 24, 25, 26, 29, 30, 31, 40)),
]


class Both(NamedTuple):
    """A set and its judge."""

    set: StringSet
    holds: Callable[[str], bool]


def pattern(text: str) -> Both:
    r"""`re` is the judge, of what ECMA-262 means by ``$``, ``.`` and ``\S``."""
    spaces = "\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    ecma = text.replace("$", r"\Z").replace(r"\S", f"[^{spaces}]").replace(".", "[^\n\r\u2028\u2029]")
    judge = re.compile(ecma, re.ASCII)
    return Both(StringSet.pattern(text, METER, ""), lambda sample: judge.search(sample) is not None)


def length(low: int, high: int | None) -> Both:
    highest = 1_000 if high is None else high
    return Both(StringSet.length(low, high), lambda sample: low <= len(sample) <= highest)


def literal(words: list[str]) -> Both:
    return Both(StringSet.literal(words), lambda sample: sample in words)


PATTERN_TEXTS = ["^a", "b$", "^[ab]+$", "^[ab]*$", "^[^a]{2,}$", "^(ab)*$", "a|é", "^a.*b$", "^(a|b|aba)$",
                 "^[ab]{1,30}$", "^(a[^a]){0,26}a?$", "^(?!ab)", r"^\S+$", "^.{3}"]  # fmt: skip
LEAVES = st.one_of(
    st.sampled_from(PATTERN_TEXTS).map(pattern),
    st.tuples(st.integers(0, 3), st.sampled_from([None, 0, 1, 2, 3, 26, 30])).map(lambda b: length(*b)),
    st.lists(st.sampled_from(SAMPLES), max_size=4).map(literal),
)


def both(a: Both, b: Both) -> Both:
    return Both(a.set.intersect(b.set, METER), lambda sample: a.holds(sample) and b.holds(sample))


def either(a: Both, b: Both) -> Both:
    return Both(a.set.union(b.set, METER), lambda sample: a.holds(sample) or b.holds(sample))


def neither(a: Both) -> Both:
    return Both(a.set.complement(METER), lambda sample: not a.holds(sample))


SETS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: both(*p)),
        st.tuples(inner, inner).map(lambda p: either(*p)),
        inner.map(neither),
    ),
    max_leaves=5,
)


def accepts(dfa: Dfa, text: str) -> bool:
    """Run an automaton by its definition; its count is checked against the loop's bounds."""
    state, count = dfa.start, 0
    if not dfa.states:
        return False
    for byte in text.encode():
        following = step(dfa, state, count, byte)
        if following is None:
            return False
        state, count = following
    return bool(dfa.accepting[state])


def random_walk(dfa: Dfa, rng: random.Random, longest: int) -> str | None:
    """A text that the automaton accepts; every step must be able to go on. None if it would be long."""
    state, count, text = dfa.start, 0, bytearray()
    while True:
        moves = [byte for byte in range(256) if step(dfa, state, count, byte) is not None]
        assert moves or dfa.accepting[state], "a walk got stuck"
        if dfa.accepting[state] and (not moves or rng.random() < 0.2):
            return text.decode()
        if len(text) > longest:
            return None
        byte = rng.choice(moves)
        text.append(byte)
        following = step(dfa, state, count, byte)
        assert following is not None
        state, count = following


def step(dfa: Dfa, state: int, count: int, byte: int) -> tuple[int, int] | None:
    entry = int(dfa.table[state, dfa.classes[byte]])
    if entry < -1:
        record = dfa.records[-2 - entry].tolist()
        low, high = dfa.loops[record[LOOP]].tolist()
        count = 1 if record[OPERATION] == kernels.SET else count + 1
        zone = 1 if record[OPERATION] == kernels.SET else 2 if count >= high else 1 if count >= low else 0
        entry = record[TARGET_LOW + zone]
    return None if entry == -1 else (entry, count)


def spellings(text: str, escapes: str, rng: random.Random) -> list[str]:
    """Ways to write a text under a policy, without the quotes."""
    written = {"minimal": json.dumps(text, ensure_ascii=False), "ascii": json.dumps(text)}
    if escapes in written:
        found = [written[escapes][1:-1]]
        return [*found, re.sub(r"\\u[0-9a-f]{4}", lambda m: "\\u" + m[0][2:].upper(), found[0])]
    return [*(w[1:-1] for w in written.values()), "".join(rng.choice(list(any_spelling(c))) for c in text)]


def any_spelling(char: str) -> set[str]:
    units = char.encode("utf-16-be")
    escaped = "".join(f"\\u{units[i]:02X}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    found = {escaped, json.dumps(char)[1:-1]} | ({r"\/", "/"} if char == "/" else set())
    return found | ({char} if char >= " " and char not in '"\\' else set())


@settings(max_examples=draws(300))
@given(SETS)
def test_algebra(sets: Both) -> None:
    found, holds = sets
    members = [sample for sample in SAMPLES if holds(sample)]
    assert [sample for sample in SAMPLES if sample in found] == members
    assert not (found.is_empty() and members)
    assert not (found.is_any() and len(members) < len(SAMPLES))
    listed = found.texts(40)
    if listed is not None:
        assert listed == sorted(listed)
        assert all(map(holds, listed))
        assert set(members) <= set(listed)
    assert found.intersect(found.complement(METER), METER).is_empty()
    assert found.union(found.complement(METER), METER).is_any()


@settings(max_examples=draws(200))
@given(SETS, st.sampled_from(["minimal", "ascii", "any"]), st.randoms(use_true_random=False))
def test_bodies(sets: Both, escapes: str, rng: random.Random) -> None:
    found, holds = sets
    body = found.body(escapes, METER)
    assert bool(body.states) == (not found.is_empty())
    for sample in rng.sample(SAMPLES, 40):
        for written in spellings(sample, escapes, rng):
            assert accepts(body, written) == holds(sample), (sample, written)
    for _ in range(5 if body.states else 0):
        text = random_walk(body, rng, 200)
        if text is not None:
            decoded = json.loads(f'"{text}"')
            assert holds(decoded)
            if escapes == "ascii":
                assert text.lower() == json.dumps(decoded)[1:-1].lower()
            if escapes == "minimal":
                assert text.lower() == json.dumps(decoded, ensure_ascii=False)[1:-1].lower()


@settings(max_examples=draws(100))
@given(
    st.sampled_from(
        [
            "^[ab]+é[ab]+$",
            r"^(\S+\s)*\S+$",
            "^a*b$",
            "^(ab)*$",
            "^(?:ab|é)+$",
            "^x{3}[ab]*y{2}$",
            ".",
            "^[^a]*a?$",
            "^[ab]{1,20}(-[ab]{1,20}){0,2}$",
            "^(ab){0,20}é?$",
        ]
    ),
    st.integers(0, 12),
    st.integers(0, 40),
    st.randoms(use_true_random=False),
)
def test_lengths_counted(text: str, low: int, more: int, rng: random.Random) -> None:
    """The counted form against the spelled-out one, and no walk in it gets stuck."""
    language = StringSet.pattern(text, METER, "")._plain(METER)
    counted = bounded(language, low, low + more, METER)
    spelled = bounded(language, low, low + more, METER, count=False)
    assert not len(spelled.records)
    assert bool(counted.states) == bool(spelled.states)
    for dfa, other in ((counted, spelled), (spelled, counted)):
        for _ in range(10 if dfa.states else 0):
            walked = random_walk(dfa, rng, 400)
            assert walked is None or (low <= len(walked) <= low + more and accepts(other, walked))


def test_counted_bounds_are_few_states() -> None:
    """A large maximum doesn't multiply the states."""
    for text in (
        r"^\S+@\S+\.\S+$",
        r"^(?:\S+\s+){0,9}\S+$",
        "^data:[a-z]+;base64,[0-9a-zA-Z+/=]*$",
        "^([a-z]|[a-z][a-z-]*[a-z])$",
    ):
        words = StringSet.pattern(text, METER, "")
        some = words.body("minimal", METER)
        most = words.intersect(StringSet.length(1, 30_000), METER).body("minimal", METER)
        assert len(most.records)
        assert most.states < 5 * some.states + 30


def test_cheap_forms() -> None:
    """What needs no automaton: equality by key, runs, words, lengths."""
    assert StringSet.pattern("^.*", METER, "") is StringSet.ANY
    assert StringSet.pattern("^[^]*$", METER, "") is StringSet.ANY
    assert StringSet.length(0, None) is StringSet.ANY
    assert StringSet.length(3, 2) is StringSet.EMPTY
    assert StringSet.length(0, 0) == StringSet.literal([""])
    assert StringSet.pattern("^(?:a|bc?)$", METER, "") == StringSet.literal(["a", "b", "bc"])
    assert StringSet.pattern("^....$", METER, "") == StringSet.pattern("^.{4}$", METER, "")
    runs = StringSet.pattern("^[a-z]+$", METER, ""), StringSet.pattern("^[a-f0-9]{1,40}$", METER, "")
    assert runs[0].intersect(runs[1], METER) == StringSet.pattern("^[a-f]{1,40}$", METER, "")
    assert runs[1].intersect(StringSet.length(5, 90), METER) == StringSet.pattern("^[a-f0-9]{5,40}$", METER, "")
    assert StringSet.length(5, None).complement(METER) == StringSet.length(0, 4)
    some = StringSet.pattern("^x-", METER, "")
    assert some.intersect(StringSet.length(2, None), METER) == some
    assert some == StringSet.pattern("^x-", METER, "")
    assert hash(some) == hash(StringSet.pattern("^x-", METER, ""))
    no_x = some.complement(METER)
    assert no_x == StringSet.pattern("^(?!x-)", METER, "").complement(METER).complement(METER)


def test_emptiness_and_universality_are_found_out() -> None:
    assert StringSet.pattern("^(?!a)a", METER, "").is_empty()
    assert StringSet.pattern("a^", METER, "").is_empty()
    a = StringSet.pattern("^[ab]+c$", METER, "")
    assert a.intersect(StringSet.pattern("^c", METER, ""), METER) is StringSet.EMPTY
    assert a.union(a.complement(METER), METER) is StringSet.ANY
    assert StringSet.pattern("^(ab)+$", METER, "").intersect(StringSet.length(3, 3), METER).is_empty()
    assert not StringSet.pattern("^(ab)+$", METER, "").intersect(StringSet.length(3, 5), METER).is_empty()


def test_unions_keep_their_upper_bound() -> None:
    """It would be spelled out otherwise."""
    some = StringSet.pattern("^a.*b$", METER, "").intersect(StringSet.length(3, 50_000), METER)
    with_empty = some.union(StringSet.literal(["", "x"]), METER)
    more = with_empty.union(StringSet.pattern("^x+$", METER, "").intersect(StringSet.length(0, 99), METER), METER)
    same = some.union(StringSet.pattern("^c", METER, "").intersect(StringSet.length(3, 50_000), METER), METER)
    for words, yes, no in (
        (with_empty, ["", "x", "acb"], ["ab", "xx"]),
        (more, ["", "x" * 99, "acb"], ["ab", "x" * 100]),
        (same, ["cde", "acb"], ["cd", "ab"]),
    ):
        assert all(text in words for text in yes)
        assert not any(text in words for text in [*no, f"a{'b' * 50_000}"])
        assert f"a{'b' * 49_999}" in words
        assert words.body("minimal", METER).states < 300


def test_unions_with_a_set_that_turns_out_empty() -> None:
    """That it has no text is not known before its automaton is there."""
    short, none = (
        StringSet.length(0, 3),
        StringSet.pattern("(?=a)b", METER, "").intersect(StringSet.length(1, None), METER),
    )
    for union in (short.union(none, METER), none.union(short, METER)):
        assert all(text in union for text in ("", "b", "abc"))
        assert "abcd" not in union


def test_lone_surrogates_are_no_members() -> None:
    assert StringSet.literal(["a\ud800", "b"]) == StringSet.literal(["b"])
    assert StringSet.literal(["\udfff"]) is StringSet.EMPTY
    for some in (StringSet.ANY, StringSet.length(1, 5), StringSet.pattern("^[^x]y*$", METER, "")):
        assert "\ud800" not in some
        assert not accepts(some.body("any", METER), "\\ud800")
        assert not accepts(some.body("any", METER), "\\udc00")
        assert accepts(some.body("any", METER), "\\ud83d\\uDE00")


@pytest.mark.parametrize("escapes", ["minimal", "ascii", "any"])
def test_every_character(escapes: str) -> None:
    body = StringSet.ANY.body(escapes, METER)
    for code in [*range(0x300), 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x103FF, 0x10400, 0x10FFFF]:
        char = chr(code)
        written = {"minimal": json.dumps(char, ensure_ascii=False)[1:-1], "ascii": json.dumps(char)[1:-1]}
        same = len(set(written.values())) == 1
        for style, text in written.items():
            assert accepts(body, text) == (escapes in (style, "any") or same), (code, style)
        if escapes == "any":
            assert all(accepts(body, spelling) for spelling in any_spelling(char))
    assert not accepts(body, '"')
    assert not accepts(body, "\n")
    assert not accepts(body, "\\x")
    assert accepts(body, "\\/") == (escapes == "any")


def test_one_character_classes_in_every_spelling() -> None:
    """The hex digits of classes whose edges are odd."""
    rng = random.Random(0)
    for text in ("^[\u0100-\u2fab]$", "^[^\U0001f3fb-\U0002f3fb]$", "^[\u00ff\U00010000\U0010ffff]+$", r"^\W$"):
        some, holds = pattern(text)
        body = some.body("any", METER)
        codes = [rng.randrange(0x110000) for _ in range(300)]
        edges = 0xFF, 0x100, 0x2FAB, 0x1F3FB, 0x2F3FB, 0xFFFF, 0x10000, 0x10FFFE
        codes += [code + more for code in edges for more in (-1, 0, 1)]
        for char in map(chr, codes):
            if not 0xD800 <= ord(char) <= 0xDFFF:
                for spelling in any_spelling(char):
                    assert accepts(body, spelling) == holds(char), (text, char)


def test_large_enumerations_and_long_texts() -> None:
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghij-é", k=20)) for _ in range(10_000)]
    body = StringSet.literal(words).body("minimal", Meter(Budget(seconds=5)))
    assert all(accepts(body, word) for word in words[:50])
    assert not accepts(body, words[0][:-1])
    long = StringSet.literal(["x" * 100_000, "\0" * 1000])
    assert accepts(long.body("minimal", METER), "\\u0000" * 1000)
    with pytest.raises(BudgetExceededError):
        StringSet.literal(["x" * 10_000_000]).body("minimal", METER)


def test_bodies_respect_the_budget() -> None:
    small = Meter(Budget(states=2_000))
    for text in ("a.{20}$", "^(?:[a-z]{1,200}-){1,200}x$", "^(?:.{1,100}a){50}$"):
        with pytest.raises(BudgetExceededError):
            StringSet.pattern(text, small, "").complement(small)


def test_json_text_of_nothing() -> None:
    assert not StringSet.EMPTY.body("minimal", METER).states
    assert not json_text(StringSet.EMPTY._plain(METER), "any", METER).states


def test_formats() -> None:
    assert StringSet.format("no-such-format", METER) is None
    date = StringSet.format("date", METER)
    assert date is not None
    assert date is StringSet.format("date", METER)
    assert "2024-02-29" in date
    assert "2023-02-29" not in date
    host = StringSet.format("hostname", METER)
    assert host is not None
    label = "a" * 63
    assert ".".join([label] * 3 + ["a" * 61]) in host
    assert ".".join([label] * 3 + ["a" * 62]) not in host
    assert accepts(host.body("minimal", METER), "a.example")


def test_errors_say_where() -> None:
    with pytest.raises(DefinitionError) as caught:
        StringSet.pattern("a(", METER, "/properties/a/pattern")
    assert caught.value.where == "/properties/a/pattern, column 2"


@pytest.mark.parametrize("text", ["", "^data:[a-z/]{3,9};base64,", "é+$"])
def test_what_a_long_bound_leaves_out_is_counted(text: str) -> None:
    """Spelled out, it would have a state for each number of characters."""
    bounded_ = StringSet.pattern(text, METER, "").intersect(StringSet.length(1, 32_767), METER)
    others = bounded_.complement(METER)
    body = others.body("minimal", METER)
    assert body.states < 150
    for sample in ("", "x", "é", "x" * 40, "é" * 32_767, "é" * 32_768, "data:ab/;base64," + "x" * 32_751 + "é"):
        assert (sample in others) != (sample in bounded_)
        assert accepts(body, sample) == (sample in others)
    assert others.complement(METER) == bounded_
    assert not others.is_empty()
