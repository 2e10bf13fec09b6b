"""The onnxruntime-genai helper over a fake ``Generator``; needs no onnxruntime.

The fake follows ``onnxruntime_genai.Generator`` 0.18: rows that have ended are padded, the end of a single row is not
appended, logits after ``rewind_to`` are those of the place that was left, and longer batches do not rewind.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
import regex
from fakes.fake_onnxruntime_genai import FakeGenerator
from fakes.fakes import EOS, PAD, byte_vocabulary, fake_index
from tiers import draws

from structgen.errors import BitmaskError, RollbackError, TokenIdError
from structgen.integrations.onnxruntime_genai import GuidedGenerator

VOCABULARY = byte_vocabulary()
PATTERNS = [r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?;", "the (cat|dog)|ab{2,9}", r'\{"a":(true|false)\}']


def check(pattern: str, ids: list[int], ended: bool) -> None:
    ids = ids[: ids.index(EOS)] if EOS in ids else ids
    text = b"".join(VOCABULARY.token(t) or b"?" for t in ids).decode()
    assert regex.fullmatch(pattern, text, partial=not ended), text


@pytest.mark.parametrize("seed", range(draws(5)))
def test_batches(seed: int) -> None:
    generator = FakeGenerator([[1, 2], [PAD, 3], [4, 5], [6, 7]], seed)
    indexes = [*(fake_index(pattern, VOCABULARY) for pattern in PATTERNS), None]
    guided = GuidedGenerator(generator, indexes)
    while not guided.is_done():
        guided.generate_next_token()
    for row, pattern in enumerate(PATTERNS):
        ids = generator.get_sequence(row)[2:].tolist()
        check(pattern, ids, EOS in ids or generator._ended[row])


@pytest.mark.parametrize("seed", range(draws(5)))
def test_rewinding_and_appending(seed: int) -> None:
    rng = random.Random(seed)
    generator = FakeGenerator([[1, 2, 3]], seed)
    index = fake_index(PATTERNS[0], VOCABULARY)
    guided = GuidedGenerator(generator, index)
    for _ in range(60):
        if guided.is_done() or rng.random() < 0.2:
            guided.rewind_to(rng.randint(3, generator.token_count()))
        elif rng.random() < 0.1 and generator.token_count() == 3:
            guided.append_tokens([49, 50])
        else:
            guided.generate_next_token()
        check(PATTERNS[0], generator.get_sequence(0)[3:].tolist(), guided.is_done())


def test_refusals() -> None:
    index = fake_index(PATTERNS[0], VOCABULARY)
    batch = FakeGenerator([[1], [2]])
    with pytest.raises(BitmaskError, match=r"for 1 rows, got float32\[2, 1, 300\]"):
        GuidedGenerator(batch, index).generate_next_token()
    with pytest.raises(BitmaskError, match="rewind_to is for a batch of one, this one has 2"):
        GuidedGenerator(batch, [index, None]).rewind_to(1)
    single = FakeGenerator([[1, 2]])
    guided = GuidedGenerator(single, index)
    for length in (0, 1, 3):
        with pytest.raises(RollbackError, match=f"cannot rewind to {length} tokens: there are 2, 2 of them"):
            guided.rewind_to(length)
    with pytest.raises(TokenIdError, match=r"token 97 .*\(token 1 of these\)"):
        guided.append_tokens([49, 97])
    assert single.token_count() == 2
    single.append_tokens([97])
    with pytest.raises(TokenIdError, match=r"token 97 is not allowed .*row 0"):
        guided.generate_next_token()
    lenient = GuidedGenerator(single, index, prompt_length=2, strict=False)
    lenient.generate_next_token()
    assert lenient.is_done()  # its text has ended: the EOS was all that was allowed


def test_a_definition_that_ends_early_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime-genai has forbidden the EOS, for min_length, and a byte."""
    generator = FakeGenerator([[1]])
    logits = generator.get_logits

    def forbidding() -> object:
        found = logits()
        found[..., [EOS, 97]] = -np.inf
        return found

    monkeypatch.setattr(generator, "get_logits", forbidding)
    guided = GuidedGenerator(generator, fake_index("ab{2}", VOCABULARY))
    while not guided.is_done():
        guided.generate_next_token()
    ids = generator.get_sequence(0)[1:].tolist()
    assert generator._ended == [True]
    check("ab{2}", ids, ended=True)
