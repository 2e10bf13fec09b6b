"""The llama-cpp-python processor, called as ``Llama.generate`` of 0.3.36 calls it; needs no llama.cpp.

The fake below is that loop with random scores for a model: a sampler for each generation, all drafted ids behind the
ids of each call, and exceptions of a processor swallowed.
"""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest
from fakes.fake_llama_cpp import VOCABULARY, WIDTH, FakeLlama, Sampler
from fakes.fakes import EOS, PAD, fake_index
from tiers import draws

import structgen as sg
from structgen.errors import BitmaskError, StructgenError, TokenIdError, VocabularyError, VocabularyMismatchError
from structgen.integrations.checks import tell_of_precedence
from structgen.integrations.llama_cpp import LogitsProcessor
from structgen.runtime.rows.bitmask import ids_of

PATTERN = r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?;(ab|cd)*"
INDEX = fake_index(PATTERN, VOCABULARY)


def check(tokens: list[int], limit: int = 40) -> None:
    text = b"".join(VOCABULARY.token(t) or b"?" for t in tokens).decode()
    assert re.fullmatch(PATTERN, text) or len(tokens) == limit, text


@pytest.mark.parametrize("draft", [0, 1, 2, 7])
@pytest.mark.parametrize("seed", range(draws(5)))
def test_generations_with_and_without_drafts(draft: int, seed: int) -> None:
    llama = FakeLlama(seed, draft)
    processor = LogitsProcessor(INDEX, llama)
    for prompt in ([1, 2], [1, 2], [1, 2, 120], [9], list(range(60, 90)), [1, 2]):
        for tokens in (3, 40):
            check(llama.generate(prompt, processor, tokens), tokens)
            processor.check()


def test_a_draft_that_is_taken() -> None:
    """The same ids, call after call: each asks for the token behind the one before."""
    llama = FakeLlama(0)
    processor = LogitsProcessor(INDEX, llama)
    llama._sampler = Sampler()
    prompt, draft = [1, 2], [50, 46, 51, 59]
    expected: list[list[int]] = []
    guide = sg.Guide(INDEX)
    for token in [None, *draft]:
        if token is not None:
            guide.advance(token)
        expected.append(ids_of(guide.bitmask()).tolist())
    found = [allowed(processor, prompt)]
    found += [allowed(processor, prompt + draft) for _ in draft]
    assert found == expected


def allowed(processor: LogitsProcessor, ids: list[int]) -> list[int]:
    scores = processor(np.array(ids, np.intc), np.zeros(WIDTH, np.single))
    return [int(i) for i in np.flatnonzero(np.isfinite(scores))]


def test_a_loop_of_ones_own() -> None:
    """Each call with a sampler of its own, gone when the next is made."""
    llama = FakeLlama(3)
    processor = LogitsProcessor(INDEX, llama)
    for prompt in ([4, 5], [4, 6]):
        ids = list(prompt)
        while (token := llama.sample(ids, processor)) != EOS:
            ids.append(token)
        processor.check()
        check(ids[2:])


def test_an_error_ends_the_text_and_is_kept() -> None:
    llama = FakeLlama(1)
    processor = LogitsProcessor(INDEX, llama)
    calls = 0

    def forcing(ids: Any, scores: Any) -> Any:
        nonlocal calls
        calls += 1
        scores = processor(ids, scores)
        if calls == 2:
            scores[PAD] = 1e9
        return scores

    tokens = llama.generate([1, 2], forcing)
    assert len(tokens) == 2  # and then the EOS, the only score left
    assert tokens[1] == PAD
    with pytest.raises(TokenIdError, match=rf"token {PAD} is not allowed .*\(1 tokens after a prompt of 2\)"):
        processor.check()
    with pytest.raises(StructgenError, match="was not called"):
        processor.check()
    check(llama.generate([1, 2], processor))
    llama._width = 40
    assert llama.generate([1, 2], processor, 1) != []
    with pytest.raises(BitmaskError, match="logits of width 40 need 2"):
        processor.check()


def test_what_the_ids_cannot_tell_apart() -> None:
    llama = FakeLlama(2)
    processor = LogitsProcessor(INDEX, llama)
    start = allowed(processor, [1, 2])
    assert allowed(processor, [1, 2, 49]) != start
    processor.reset()
    assert allowed(processor, [1, 2, 49]) == start
    assert allowed(LogitsProcessor(INDEX, llama, prompt_length=2), [1, 2, 49]) != start


def test_an_index_for_other_tokens() -> None:
    llama = FakeLlama(0)
    tokens = [VOCABULARY.token(i) for i in range(VOCABULARY.size)]
    other = sg.Vocabulary.from_bytes([*tokens[:97], b"~~", *tokens[98:]], [EOS])
    longer = sg.Vocabulary.from_bytes([*tokens, b"more"], [EOS])
    for vocabulary, error, message in (
        (other, VocabularyMismatchError, r"token b'~~', the model's is b'a' \(token 97\)"),
        (longer, VocabularyMismatchError, "compiled for 271 token ids, the model has 270"),
    ):
        with pytest.raises(error, match=message):
            LogitsProcessor(fake_index("1", vocabulary), llama)
    with pytest.raises(VocabularyError, match=rf"ends a text at the ids \[199\], the model at \[{EOS}\]"):
        LogitsProcessor(fake_index("1", sg.Vocabulary.from_bytes([*tokens[:199], None], [199])), llama)
    fewer = sg.Vocabulary.from_bytes(tokens[:200], [EOS], size=VOCABULARY.size)
    assert LogitsProcessor(fake_index("1", fewer), llama).error is None


def test_texts_end_where_the_model_ends_them() -> None:
    """An index is for the tokens, whatever ids ended a text where it was compiled."""
    tokens = [VOCABULARY.token(i) for i in range(VOCABULARY.size)]
    index = sg.compile(sg.Regex("1"), sg.Vocabulary.from_bytes(tokens, [PAD]))
    processor = LogitsProcessor(index, FakeLlama(0))
    for ids, expected in (([1, 2], [ord("1")]), ([1, 2, ord("1")], [EOS])):
        scores = processor(np.array(ids, np.intc), np.zeros(WIDTH, np.single))
        assert np.flatnonzero(scores > -np.inf).tolist() == expected


@pytest.mark.parametrize("draft", [0, 2])
def test_copies_go_on_where_it_is(draft: int) -> None:
    """Calls in the middle of a generation, for one model; a pickled one begins anew, with another."""
    llama = FakeLlama(3, draft)
    processor = LogitsProcessor(INDEX, llama)
    calls = 0

    def compared(ids: Any, scores: Any) -> Any:
        nonlocal calls
        calls += 1
        wanted, found = scores.copy(), scores.copy()
        twin = copy.deepcopy(processor)
        processor(ids, wanted)
        twin(ids, found)
        assert np.array_equal(wanted, found)
        return wanted

    check(llama.generate([1, 2], compared))
    assert calls > 2
    processor.check()
    twin = pickle.loads(pickle.dumps(processor))
    assert twin._llama is not llama
    check(twin._llama.generate([1, 2], twin))
    twin.check()
    check(llama.generate([1, 2], processor))
    processor.check()


def test_a_definition_that_ends_early_wins(caplog: pytest.LogCaptureFixture) -> None:
    """A processor before this one, such as llama-cpp-python's for min_tokens, has forbidden the EOS, or a byte."""
    tell_of_precedence.cache_clear()
    for pattern, forbidden, expected in (("", [EOS], [EOS]), ("a", [97], [97]), ("a|b", [97], [98])):
        scores = np.zeros(WIDTH, np.single)
        scores[forbidden] = -np.inf
        LogitsProcessor(fake_index(pattern, VOCABULARY), FakeLlama(0))(np.array([1, 2], np.intc), scores)
        assert np.flatnonzero(scores > -np.inf).tolist() == expected
    assert len([each for each in caplog.records if "the definition wins" in each.message]) == 1
