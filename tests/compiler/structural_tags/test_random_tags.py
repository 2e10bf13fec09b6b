"""Random structural tags: what a plain interpreter accepts, masks by brute force, the same however made."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judges.guides import allowed
from judges.json_tokens import masks, takes
from judges.random_tags import (
    IDS,
    LEAVES,
    PHASES,
    PLAIN,
    SHORT,
    TASTE,
    TOKENS,
    VOCABULARY,
    compiled,
    drawn,
    formats,
    mutated,
    mutated_row,
    row_behind,
    rows_of,
    texts_of,
    token_formats,
)
from judges.structural_tags import Format, Interpreter
from tiers import draws

import structgen as sg


def check_texts(format_: Format, rng: Random) -> None:
    """Compare which texts the index and the interpreter accept: those of walks, near these, and short ones."""
    index, judge = drawn(format_, PLAIN, eager=False), Interpreter(format_, LEAVES)
    accepted = texts_of(index, rng, 8)
    for text in accepted:
        assert judge.accepts(text), text
    for text in [*rng.sample(SHORT, 60), *(mutated(text, rng) for text in accepted for _ in range(4))]:
        match = index.match(text.encode())
        assert match.accepted == judge.accepts(text), text
        if match.accepted:
            assert all(index.match(data := text[:end].encode()).consumed == len(data) for end in range(len(text)))


@given(formats, st.randoms(use_true_random=False))
@settings(max_examples=draws(100), phases=PHASES)
def test_texts_are_the_interpreters(format_: Format, rng: Random) -> None:
    check_texts(format_, rng)


def check_rows(format_: Format, rng: Random) -> None:
    """Compare which rows of tokens they accept; the mask in a few places by brute force over the vocabulary."""
    index, judge = drawn(format_, eager=rng.random() < 0.3), Interpreter(format_, LEAVES, TOKENS, IDS)
    accepted = rows_of(index, rng, 6)
    for row in accepted:
        assert judge.accepts_row(row), row
    near = [mutated_row(row, rng) for row in accepted for _ in range(6)]
    short = [rng.choices(TASTE, k=rng.randrange(4)) for _ in range(60)]
    for row in near + short:
        guide = sg.Guide(index)
        verdict = all(map(guide.advance, row)) and guide.is_accepting()
        assert verdict == judge.accepts_row(row), row
    for row in rng.sample(accepted, min(2, len(accepted))):
        check_mask(index, judge, row[: rng.randrange(len(row) + 1)], rng)


def check_mask(index: sg.Index, judge: Interpreter, row: list[int], rng: Random) -> None:
    """Behind a row: what the mask allows goes on to a row that is accepted, what it does not is in none."""
    guide = sg.Guide(index)
    assert all(map(guide.advance, row))
    ids = set(allowed(guide))
    ends = [*rows_of(index, rng, 2), []]
    for token in range(VOCABULARY.size - 1):
        assert guide.fork().advance(token) == (token in ids), token
        if token not in ids:
            assert not any(judge.accepts_row([*row, token, *end]) for end in ends), token
        elif token in TASTE:
            whole = row_behind(index, [*row, token], rng)
            assert whole is None or judge.accepts_row(whole), whole
    assert (VOCABULARY.eos_ids[0] in ids) == judge.accepts_row(row)


@given(token_formats, st.randoms(use_true_random=False))
@settings(max_examples=draws(100), phases=PHASES)
def test_rows_of_tokens_are_the_interpreters(format_: Format, rng: Random) -> None:
    check_rows(format_, rng)


@given(token_formats, st.randoms(use_true_random=False))
@settings(
    max_examples=draws(30),
    phases=PHASES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@pytest.mark.usefixtures("_widths")
def test_the_same_masks_eagerly_on_demand_from_a_file_and_from_the_cache(
    tmp_path_factory: pytest.TempPathFactory, format_: Format, rng: Random
) -> None:
    folder = tmp_path_factory.mktemp("tags")
    eager, lazy = drawn(format_), compiled(format_, eager=False)
    spelled = rows_of(eager, rng, 4)
    expected = [masks(eager, tokens) for tokens in spelled]
    assert all(takes(lazy, tokens) for tokens in spelled)
    cache = sg.Cache(folder)
    others = [lazy]
    for index in (eager, lazy):
        index.save(folder / "index")
        VOCABULARY.shared_rows.clear()  # as in another process
        others.append(sg.Index.load(folder / "index", VOCABULARY))
    for is_eager in (False, True):
        compiled(format_, eager=is_eager, cache=cache)
        others.append(compiled(format_, eager=is_eager, cache=sg.Cache(folder)))
        assert others[-1].origin == "cache"
    assert all([masks(index, tokens) for tokens in spelled] == expected for index in others)
