"""The onnxruntime-genai integration, with a tiny random Llama that the package's own builder converts.

Judges: `re.fullmatch` for texts that ended, `regex`'s partial match for those cut off, and the generator's own
logits before it was rewound.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
from tiny_tokenizer import byte_tokenizer

transformers = pytest.importorskip("transformers", reason="the model is made by transformers, which is not installed")
torch = pytest.importorskip("torch", reason="the model is made by torch, which is not installed")
for needed in ("onnxruntime", "onnx_ir", "onnxruntime_genai"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")

import onnxruntime_genai as og  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import BitmaskError, RollbackError, TokenIdError, VocabularyMismatchError  # noqa: E402
from structgen.integrations.onnxruntime_genai import GuidedGenerator  # noqa: E402

WIDTH = 333
EXAMPLES = Path(__file__).resolve().parents[2] / "examples/engines"

DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
OBJECT = r'\{"(a|ab|the)":(true|false|[0-9]{1,4})(,"(b|c)":"[a-z ]{0,12}"){0,3}\}'


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return byte_tokenizer()


@pytest.fixture(scope="module")
def vocabulary(tokenizer: Any) -> sg.Vocabulary:
    return sg.Vocabulary.from_transformers(tokenizer)


@pytest.fixture(scope="module")
def folder(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, target = tmp_path_factory.mktemp("torch"), tmp_path_factory.mktemp("onnx")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, bos_token_id=0, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id, max_position_embeddings=512, initializer_range=0.5,
        tie_word_embeddings=False,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(source)
    tokenizer.save_pretrained(source)
    options = ["-i", str(source), "-o", str(target), "-p", "fp32", "-e", "cpu", "-c", str(target / "cache")]
    subprocess.run(
        [sys.executable, "-m", "onnxruntime_genai.models.builder", *options], check=True, capture_output=True
    )
    return target


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return og.Model(str(folder))


def begun(model: Any, prompts: list[list[int]], **options: Any) -> Any:
    """A generator with a batch of prompts, padded on the left."""
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(**{"max_length": 90, "batch_size": len(prompts), "do_sample": True, **options})
    generator = og.Generator(model, parameters)
    longest = max(map(len, prompts))
    generator.append_tokens(np.array([[265] * (longest - len(p)) + p for p in prompts], np.int32))
    return generator


def text_of(generator: Any, row: int, start: int, vocabulary: sg.Vocabulary) -> str:
    ids = generator.get_sequence(row)[start:].tolist()
    ids = ids[: next((i for i, t in enumerate(ids) if t in vocabulary.eos_ids), len(ids))]
    return b"".join(vocabulary.token(t) or b"?" for t in ids).decode()


def index_of(pattern: str, vocabulary: sg.Vocabulary) -> Any:
    return sg.compile(sg.Regex(pattern), vocabulary)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("pattern", [DATE, OBJECT])
def test_one_row(model: Any, vocabulary: sg.Vocabulary, pattern: str, sampled: bool) -> None:
    index = index_of(pattern, vocabulary)
    ended = 0
    for seed, prompt in enumerate([[1, 2, 3], [4], [1, 2, 3]]):
        generator = begun(model, [prompt], do_sample=sampled, random_seed=seed)
        guided = GuidedGenerator(generator, index)
        while not guided.is_done():
            guided.generate_next_token()
        text = text_of(generator, 0, len(prompt), vocabulary)
        assert regex.fullmatch(pattern, text, partial=True), text
        ended += re.fullmatch(pattern, text) is not None
        guided.generate_next_token()  # nothing, after the end
        assert text_of(generator, 0, len(prompt), vocabulary) == text
    assert ended >= 2


def test_a_definition_for_each_row(model: Any, vocabulary: sg.Vocabulary) -> None:
    """Rows end at different times; what the generator pads them with is not looked at."""
    patterns = [DATE, None, "ab|12", OBJECT]
    indexes = [None if p is None else index_of(p, vocabulary) for p in patterns]
    prompts = [[1, 2, 3], [4], [5, 6], [7, 8, 9]]
    generator = begun(model, prompts, max_length=60, do_sample=False)
    free = begun(model, prompts, max_length=60, do_sample=False)
    guided = GuidedGenerator(generator, indexes)
    while not guided.is_done():
        guided.generate_next_token()
    while not free.is_done():
        free.generate_next_token()
    texts = ["" if patterns[row] is None else text_of(generator, row, 3, vocabulary) for row in range(4)]
    assert re.fullmatch(DATE, texts[0])
    assert re.fullmatch("ab|12", texts[2])
    assert regex.fullmatch(OBJECT, texts[3], partial=True)
    alone, beside = free.get_sequence(1).tolist(), generator.get_sequence(1).tolist()
    length = min(len(alone), len(beside))
    assert length > 20
    assert beside[:length] == alone[:length]


def test_rewinding(model: Any, vocabulary: sg.Vocabulary) -> None:
    """Each length it came by, again: the same logits, and a text that matches."""
    generator = begun(model, [[1, 2, 3]], random_seed=1)
    guided = GuidedGenerator(generator, index_of(OBJECT, vocabulary))
    seen = {}
    while not guided.is_done():
        seen[generator.token_count()] = generator.get_logits().copy()
        guided.generate_next_token()
    ids = generator.get_sequence(0).tolist()
    for length in sorted(seen, reverse=True)[::3]:
        guided.rewind_to(length)
        assert not guided.is_done()
        assert generator.get_sequence(0).tolist() == ids[:length]
        assert np.allclose(generator.get_logits(), seen[length], atol=1e-4)
    while not guided.is_done():
        guided.generate_next_token()
    for length in (5, 4, 3):
        guided.rewind_to(length)
        while not guided.is_done():
            guided.generate_next_token()
        text = text_of(generator, 0, 3, vocabulary)
        assert regex.fullmatch(OBJECT, text, partial=True), text
    for length in (2, 1000):
        with pytest.raises(RollbackError, match=f"cannot rewind to {length} tokens"):
            guided.rewind_to(length)


def test_appending_text(model: Any, vocabulary: sg.Vocabulary) -> None:
    ids = {vocabulary.token(i): i for i in range(vocabulary.size)}
    generator = begun(model, [[1, 2, 3]])
    guided = GuidedGenerator(generator, index_of(DATE, vocabulary))
    guided.generate_next_token()
    with pytest.raises(TokenIdError, match="token 1 of these"):
        guided.append_tokens([ids[b"1"], ids[b"x"]])
    assert generator.token_count() == 4
    guided.append_tokens([ids[b"0"], ids[b"1"]])
    generator.append_tokens(np.array([ids[b"9"], ids[b"-"]], np.int32))  # behind its back
    while not guided.is_done():
        guided.generate_next_token()
    text = text_of(generator, 0, 3, vocabulary)
    assert re.fullmatch(DATE, text)
    assert text[1:5] == "019-"


def test_a_conversation(model: Any, vocabulary: sg.Vocabulary) -> None:
    generator = begun(model, [[1, 2, 3]])
    for pattern in (DATE, "ab|12", OBJECT):
        start = generator.token_count()
        guided = GuidedGenerator(generator, index_of(pattern, vocabulary))
        while not guided.is_done():
            guided.generate_next_token()
        assert regex.fullmatch(pattern, text_of(generator, 0, start, vocabulary), partial=True)
        generator.append_tokens(np.array([30, 31], np.int32))


def test_refusals(model: Any, vocabulary: sg.Vocabulary) -> None:
    index = index_of(DATE, vocabulary)
    generator = begun(model, [[1, 2], [3, 4]])
    with pytest.raises(BitmaskError, match="for 1 rows"):
        GuidedGenerator(generator, index).generate_next_token()
    guided = GuidedGenerator(generator, [index, None])
    with pytest.raises(BitmaskError, match="append_tokens is for a batch of one, this one has 2 rows"):
        guided.append_tokens([1])
    with pytest.raises(BitmaskError, match="rewind_to is for a batch of one"):
        guided.rewind_to(2)
    tokens = [bytes([48 + i % 10]) * (i // 10 + 1) for i in range(400)]
    wide = sg.Vocabulary.from_bytes([*tokens, b"-"], eos_ids=[401])
    with pytest.raises(BitmaskError, match="logits of width 333 need 11"):
        GuidedGenerator(generator, [index_of(DATE, wide), None]).generate_next_token()
    with pytest.raises(VocabularyMismatchError, match="rows 0 and 1"):
        GuidedGenerator(generator, [index, index_of(DATE, wide)])
    single = begun(model, [[1, 2]])
    guided = GuidedGenerator(single, index)
    single.append_tokens(np.array([40], np.int32))
    with pytest.raises(TokenIdError, match=r"token 40 is not allowed .*row 0"):
        guided.generate_next_token()


def test_example(folder: Path) -> None:
    example = runpy.run_path(str(EXAMPLES / "with_onnxruntime_genai.py"))
    assert re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", example["main"](str(folder)))
