"""Decoding over ``Llama.eval``: optimistic token for token what masks give, over a key-value cache cut to a prefix.

The fake's scores depend on every id in its cache, so that one that should not be there shows.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fakes.fake_llama_cpp import VOCABULARY, WIDTH, FakeLlama
from judges.chi_square import is_homogeneous

import structgen as sg
from structgen.errors import ArgumentError, UnsupportedError, VocabularyMismatchError
from structgen.integrations.llama_cpp import generate
from structgen.integrations.llama_cpp.reader import LlamaReader
from structgen.integrations.local.pace import Pace

PATTERNS = {
    "anything": r"[^x]{3,40}",
    "half": r"[\x00-\x60]{3,30}",
    "letters": r"[a-z ]{5,40}\.",
    "number": r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?;(ab|cd)*",
}
INDEXES = {name: sg.compile(sg.Regex(pattern), VOCABULARY) for name, pattern in PATTERNS.items()}


def scores_of(seed: int, ids: Sequence[int]) -> Any:
    """What the fake's scores are, without a cache."""
    return np.random.default_rng([seed, *ids]).standard_normal(WIDTH).astype(np.single)


@pytest.mark.parametrize("can_cut", [True, False])
@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("kind", PATTERNS)
def test_optimistic_is_what_masks_give(kind: str, temperature: float, can_cut: bool) -> None:
    for seed, prompt in enumerate(([1, 2], "a text", [5] * 30)):
        found = []
        for mode, ahead in (("masked", 1), ("optimistic", 1), ("optimistic", 3), ("optimistic", 16)):
            llama = FakeLlama(7)
            llama._ctx.can_cut = can_cut
            tokens = list(
                generate(llama, prompt, INDEXES[kind], mode=mode, temperature=temperature, seed=seed,  # type: ignore[arg-type]
                         max_tokens=60, ahead=ahead)
            )  # fmt: skip
            found.append(tokens)
            text = b"".join(VOCABULARY.token(token) or b"" for token in tokens)
            if tokens[-1] in VOCABULARY.eos_ids:
                assert re.fullmatch(PATTERNS[kind], text.decode())
            else:
                assert len(tokens) == 60
        assert found[1:] == [found[0]] * 3


def test_greedy_tokens_are_the_best_that_are_allowed() -> None:
    """By a judge that reads all ids anew for each token, and asks the guide about each id in turn."""
    for kind, index in INDEXES.items():
        for ahead in (1, 8):
            tokens = list(generate(FakeLlama(3), [9], index, max_tokens=20, ahead=ahead))
            guide = sg.Guide(index)
            for place, token in enumerate(tokens):
                order = np.argsort(-scores_of(3, [9, *tokens[:place]]))
                best = next(i for i in order.tolist() if i < VOCABULARY.size and guide.allows(i))
                assert token == best, kind
                guide.advance(token)


def test_draws_are_distributed_as_masked_sampling() -> None:
    index = INDEXES["number"]
    scores = scores_of(5, [1]).astype(np.float64)[: VOCABULARY.size]
    guide = sg.Guide(index)
    allowed = [i for i in range(VOCABULARY.size) if guide.allows(i)]
    weights = np.exp(scores[allowed] / 0.8)
    expected = Counter(np.random.default_rng(0).choice(allowed, 2000, p=weights / weights.sum()).tolist())
    other = Counter(np.random.default_rng(0).choice(allowed, 2000).tolist())
    for ahead in (1, 4):
        found = Counter(
            next(generate(FakeLlama(5), [1], index, temperature=0.8, seed=seed, ahead=ahead, max_tokens=4))
            for seed in range(2000)
        )
        assert is_homogeneous(found, expected)
        assert not is_homogeneous(found, other)


def test_what_was_read_is_not_read_again() -> None:
    llama = FakeLlama(1)
    prompt = list(range(60, 90))
    first = list(generate(llama, prompt, INDEXES["anything"], max_tokens=20, ahead=8))
    read = llama._ctx.read
    assert read < 30 + 3 * 20
    assert list(generate(llama, prompt, INDEXES["anything"], max_tokens=20, ahead=8)) == first
    assert llama._ctx.read - read < 3 * 20


def test_scores_behind_a_cache_that_was_cut() -> None:
    for can_cut in (True, False):
        llama = FakeLlama(2)
        llama._ctx.can_cut = can_cut
        reader = LlamaReader(llama)
        order = np.random.default_rng(4)
        ids = [1]
        for _ in range(200):
            ids = [*ids[: order.integers(1, len(ids) + 1)], *order.integers(0, 9, order.integers(0, 4)).tolist()]
            assert np.array_equal(reader.read(ids), scores_of(2, ids))


def test_a_generator_that_is_left_early() -> None:
    llama = FakeLlama(2)
    tokens = list(itertools.islice(generate(llama, [1], INDEXES["anything"], ahead=8), 3))
    assert list(generate(llama, [1], INDEXES["anything"], max_tokens=3)) == tokens


def test_a_pace_follows_mistakes() -> None:
    pace = Pace(16)
    assert pace.ahead == 4
    while pace.ahead < 16:
        pace.right(pace.ahead)
    pace.wrong(5)
    assert (pace.ahead < 8, pace.is_masked()) == (True, False)
    for masked in (16, 32, 64):  # longer each time, as long as nothing is right
        for _ in range(2 if masked > 16 else 1):
            pace.wrong(0)
        assert [pace.is_masked() for _ in range(masked + 2)] == [True] * masked + [False] * 2
    assert (pace.ahead <= 2, pace.mistakes) == (True, 6)
    pace.right(1)
    pace.wrong(0)
    pace.wrong(0)
    assert [pace.is_masked() for _ in range(18)] == [True] * 16 + [False] * 2


@pytest.mark.parametrize("rate", [0.0, 0.002, 0.01, 0.05, 0.25, 0.5, 1.0])
def test_mistakes_cost_few_passes(rate: float) -> None:
    """A model with mistakes at random places: passes behind them, and attempts that were wrong."""
    for seed in range(20):
        draw, pace = random.Random(seed), Pace(16)
        done, lost, unmasked = 0, 0, 0
        while done < 1000:
            if pace.is_masked():
                done += 1
                continue
            ahead = pace.ahead
            allowed = next((k for k in range(ahead) if draw.random() < rate), ahead)
            if allowed == ahead:
                pace.right(ahead)
                unmasked += ahead
            else:
                pace.wrong(allowed)
                lost += ahead - 1 - allowed
                unmasked += allowed
                done += 1
            done += allowed
        assert lost <= 4 + 0.03 * done
        assert rate > 0.01 or unmasked >= 0.9 * done
        assert rate < 1 or pace.mistakes <= 20
    assert rate or pace.ahead == 16


def test_arguments_that_mean_nothing() -> None:
    llama, index = FakeLlama(0), INDEXES["number"]
    wrong: list[dict[str, Any]] = [
        {"temperature": -1.0}, {"temperature": float("nan")}, {"seed": -1}, {"max_tokens": -1}, {"ahead": 0},
        {"mode": "best"},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(ArgumentError):
            generate(llama, [1], index, **options)
    with pytest.raises(ArgumentError, match="empty"):
        generate(llama, [], index)
    with pytest.raises(VocabularyMismatchError):
        generate(llama, [1], sg.compile(sg.Regex("a"), sg.Vocabulary.from_bytes([b"a", None], eos_ids=[1])))
    del llama.n_tokens
    with pytest.raises(UnsupportedError, match="n_tokens"):
        generate(llama, [1], index)
