"""The five invariants, over whole vocabularies."""

from __future__ import annotations

import random
import re
from itertools import count

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from judges.guides import ids_of_bits
from judges.naive import allowed_tokens, is_viable, small_vocabulary
from tiers import draws

import structgen as sg
from structgen import kernels
from structgen.runtime.automaton.machine import AutomatonMachine

VOCABULARY = small_vocabulary()

PATTERNS = [
    r"\d{4}-\d{2}",
    r"(?:ab|ba)*a?",
    r"[^\"]{0,40}\"",
    r"(?:[a-z]{1,3} ){2,30}",
    r"a{30,33}b?",
    r"(?:é|a\n)+",
    r"[😀-😎b]{1,40}",
    r"the|foo|ab{26,}",
    r"\w+ \w+",
]


def check_invariants(index: sg.Index, guide: sg.Guide, text: bytes, pattern: str | None) -> set[int]:
    """Invariants 1 to 4 at one configuration; returns the allowed ids."""
    vocabulary = index.vocabulary
    allowed = allowed_tokens(guide.bitmask(), vocabulary.size)
    for token_id in range(vocabulary.size):
        twin = guide.fork()
        advanced = twin.advance(token_id)
        assert advanced == (token_id in allowed), (text, token_id)  # one truth
        token = vocabulary.token(token_id)
        if token_id in vocabulary.eos_ids:
            assert advanced == guide.is_accepting()  # the end
        elif token is None:
            assert not advanced
        elif pattern is not None:
            assert advanced == is_viable(pattern, text + token), (text, token)  # exact
    assert allowed  # never stuck
    return allowed


@pytest.mark.parametrize("pattern", PATTERNS)
def test_exact_along_random_walks(pattern: str) -> None:
    index = sg.compile(sg.Regex(pattern), VOCABULARY)
    random_source = random.Random(pattern)
    for _ in range(2):
        guide, text = sg.Guide(index), b""
        for _ in range(12):
            allowed = check_invariants(index, guide, text, pattern)
            token_id = random_source.choice(sorted(allowed))
            assert guide.advance(token_id)
            if guide.is_finished():
                assert re.fullmatch(pattern, text.decode()) is not None
                break
            text += VOCABULARY.token(token_id) or b""


@pytest.mark.nightly
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("pattern", [r"[^\"]{3,60}\"", r"(?:a{1,2} ){2,26}", r"a{30,33}b?", r"(?:ab){25}(?:a|é){0,40}"])
def test_exact_near_the_bounds_of_counts(pattern: str, eager: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole walks by the longest tokens, so that every count near a bound is met. A step works out one count."""
    if not eager:
        monkeypatch.delattr(kernels, "walk_counted")
    index = sg.compile(sg.Regex(pattern), VOCABULARY, eager=eager)
    assert isinstance(index.machine, AutomatonMachine)
    assert len(index.machine.tables.loops)
    random_source = random.Random(pattern)
    guide, text = sg.Guide(index), b""
    for step in count():
        # Far from the bounds one look in eight is enough; within reach of them, every step.
        near = step % 8 == 0 or len(text) < 12 or len(text) > 24
        allowed = (
            check_invariants(index, guide, text, pattern) if near else allowed_tokens(guide.bitmask(), VOCABULARY.size)
        )
        going_on = sorted(allowed - set(VOCABULARY.eos_ids), key=lambda t: -len(VOCABULARY.token(t) or b""))
        if not going_on:
            break
        token_id = random_source.choice(going_on[:3])
        guide.advance(token_id)
        text += VOCABULARY.token(token_id) or b""
    assert guide.is_accepting()


ATOMS = st.sampled_from(["a", "b", "é", "1", "[ab]", "[^a]", r"\w", r"\d", "(?:a|b)", "."])


def _combine(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bounds = st.tuples(st.integers(0, 3), st.integers(0, 40)).map(lambda b: f"{{{b[0]},{b[0] + b[1]}}}")
    quantifier = st.one_of(st.sampled_from(["*", "+", "?"]), bounds)
    return st.one_of(
        st.tuples(children, children).map("".join),
        st.tuples(children, children).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        st.tuples(children, quantifier).map(lambda p: f"(?:{p[0]}){p[1]}"),
    )


@settings(max_examples=draws(40))
@given(st.recursive(ATOMS, _combine, max_leaves=6), st.randoms(use_true_random=False))
def test_random_regexes_are_exact(pattern: str, random_source: random.Random) -> None:
    try:
        index = sg.compile(sg.Regex(pattern), VOCABULARY, eager=False, budget=sg.Budget(states=20_000))
    except sg.errors.BudgetExceededError:
        reject()
    guide, text = sg.Guide(index), b""
    for _ in range(6):
        allowed = allowed_tokens(guide.bitmask(), VOCABULARY.size)
        assert guide.is_accepting() == (VOCABULARY.eos_ids[0] in allowed)
        for token_id in random_source.sample(range(VOCABULARY.size), 60):
            token = VOCABULARY.token(token_id)
            if token is not None:
                assert (token_id in allowed) == is_viable(pattern, text + token), (pattern, text, token)
        token_id = random_source.choice(sorted(allowed))
        assert guide.advance(token_id)
        if guide.is_finished():
            assert re.fullmatch(pattern, text.decode())
            return
        text += VOCABULARY.token(token_id) or b""


DATE, STRING = r"\d{4}-\d{2}-\d{2}", r"[^\"\\]{0,200}\""


@pytest.mark.parametrize(("name", "pattern"), [("llama3", STRING), ("gemma", STRING), ("tekken", DATE)])
def test_real_vocabularies(name: str, pattern: str, request: pytest.FixtureRequest) -> None:
    """Every token of a real vocabulary, on a few configurations: the mask, `advance` and plain bytes agree."""
    vocabulary: sg.Vocabulary = request.getfixturevalue(name)
    index = sg.compile(sg.Regex(pattern), vocabulary)
    random_source = random.Random(name + pattern)
    guide, text = sg.Guide(index), b""
    for _ in range(2):
        row = guide.bitmask()
        allowed = set(ids_of_bits(row))
        assert {t for t in range(vocabulary.size) if guide.allows(t)} == allowed
        for token_id in range(0, vocabulary.size, 7):
            assert guide.fork().advance(token_id) == (token_id in allowed)
            token = vocabulary.token(token_id)
            if token is None:
                assert (token_id in allowed) == (token_id in vocabulary.eos_ids and guide.is_accepting())
            elif token_id % 61 == 0:
                assert (token_id in allowed) == is_viable(pattern, text + token), (text, token)
        choices = sorted(allowed - set(vocabulary.eos_ids))
        token_id = random_source.choice(choices)
        guide.advance(token_id)
        text += vocabulary.token(token_id) or b""


def test_a_vocabulary_that_would_get_stuck_is_refused() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"bb", b"c", None], [3])
    with pytest.raises(sg.errors.VocabularyError, match="0x62"):
        sg.compile(sg.Regex("bbb|a"), vocabulary)
    index = sg.compile(sg.Regex("(bb)+|a"), vocabulary)
    assert [t for t in range(4) if sg.Guide(index).allows(t)] == [0, 1]


def test_no_eos_means_no_eos() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a"], [])
    guide = sg.Guide(sg.compile(sg.Regex("a"), vocabulary))
    assert guide.advance(0)
    assert guide.is_accepting()
    assert not guide.is_finished()
    assert not guide.bitmask().any()
