"""Random structural tags: texts as a plain interpreter has them, masks by brute force, the same however made."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judges.guides import check_walk
from judges.json_tokens import Speller, masks, takes
from judges.random_tags import LEAVES, PHASES, SHORT, VOCABULARY, compiled, drawn, formats, mutated, texts_of
from judges.structural_tags import Format, Interpreter

import structgen as sg


def check_texts(format_: Format, rng: Random) -> None:
    """Compare which texts the index and the interpreter accept: those of walks, near these, and short ones."""
    index, judge = drawn(format_, eager=False), Interpreter(format_, LEAVES)
    accepted = texts_of(index, rng, 8)
    for text in accepted:
        assert judge.accepts(text), text
    for text in [*rng.sample(SHORT, 60), *(mutated(text, rng) for text in accepted for _ in range(4))]:
        match = index.match(text.encode())
        assert match.accepted == judge.accepts(text), text
        if match.accepted:
            assert all(index.match(data := text[:end].encode()).consumed == len(data) for end in range(len(text)))


@given(formats, st.randoms(use_true_random=False))
@settings(max_examples=100, phases=PHASES)
def test_texts_are_the_interpreters(format_: Format, rng: Random) -> None:
    check_texts(format_, rng)


@given(formats, st.randoms(use_true_random=False))
@settings(max_examples=20, phases=PHASES)
def test_masks_are_what_advance_and_the_bytes_of_each_token_say(format_: Format, rng: Random) -> None:
    check_walk(drawn(format_, eager=rng.random() < 0.5), rng)


@given(formats, st.randoms(use_true_random=False))
@settings(
    max_examples=30, phases=PHASES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@pytest.mark.usefixtures("_widths")
def test_the_same_masks_eagerly_on_demand_from_a_file_and_from_the_cache(
    tmp_path_factory: pytest.TempPathFactory, format_: Format, rng: Random
) -> None:
    folder, speller = tmp_path_factory.mktemp("tags"), Speller(VOCABULARY)
    eager, lazy = drawn(format_), compiled(format_, eager=False)
    spelled = [speller.spell(text.encode(), rng) for text in texts_of(eager, rng, 4)]
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
