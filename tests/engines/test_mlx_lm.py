"""The mlx-lm integration in mlx-lm's own loops, with tiny random Llamas on whatever device MLX has.

Judges: `re.fullmatch` for texts that ended, `regex`'s partial match for those cut off, NumPy for masks.
"""

from __future__ import annotations

import json
import re
import runpy
import time
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import regex
from tiny_tokenizer import byte_tokenizer

mx = pytest.importorskip("mlx.core", reason="mlx is not installed")
mlx_generate = pytest.importorskip("mlx_lm.generate", reason="mlx-lm is not installed")

from mlx_lm.models import llama  # noqa: E402
from mlx_lm.sample_utils import make_sampler  # noqa: E402
from mlx_lm.tokenizer_utils import TokenizerWrapper  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import BitmaskError, TokenIdError  # noqa: E402
from structgen.integrations.mlx_lm import LogitsProcessor  # noqa: E402
from structgen.integrations.mlx_lm import vocabulary as vocabulary_of  # noqa: E402
from structgen.runtime.rows import bitmask as numpy_bitmask  # noqa: E402

#: Logits are padded beyond the vocabulary's 266 ids, and beyond its 9 words.
WIDTH = 333
EXAMPLES = Path(__file__).resolve().parents[2] / "examples/engines"

DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
OBJECT = r'\{"(a|ab|the)":(true|false|[0-9]{1,4})(,"(b|c)":"[a-z ]{0,12}"){0,3}\}'


def tiny_llama(seed: int = 0, dtype: Any = mx.float32) -> Any:
    mx.random.seed(seed)
    args = llama.ModelArgs(
        model_type="llama", hidden_size=32, num_hidden_layers=1, intermediate_size=64, num_attention_heads=2,
        rms_norm_eps=1e-5, vocab_size=WIDTH, tie_word_embeddings=False,
    )  # fmt: skip
    model = llama.Model(args)
    model.set_dtype(dtype)
    mx.eval(model.parameters())
    return model


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return byte_tokenizer()


@pytest.fixture(scope="module")
def vocabulary(tokenizer: Any) -> sg.Vocabulary:
    return sg.Vocabulary.from_transformers(tokenizer)


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama()


def index_of(pattern: str, vocabulary: sg.Vocabulary) -> Any:
    return sg.compile(sg.Regex(pattern), vocabulary)


def stepped(model: Any, prompt: list[int], processor: Any, vocabulary: sg.Vocabulary, **options: Any) -> list[int]:
    """The generated ids, up to the EOS, from the loop that never stops by itself."""
    options = {"max_tokens": 60, **options}
    draft = options.pop("draft_model", None)
    if draft is None:
        steps = mlx_generate.generate_step(mx.array(prompt), model, logits_processors=[processor], **options)
    else:
        steps = mlx_generate.speculative_generate_step(
            mx.array(prompt), model, draft, logits_processors=[processor], **options
        )
    found = []
    for token, *_ in steps:
        if int(token) in vocabulary.eos_ids:
            break
        found.append(int(token))
    return found


def check(pattern: str, tokens: list[int], vocabulary: sg.Vocabulary) -> bool:
    """Assert that ids are a match or the beginning of one; whether they are a match."""
    text = b"".join(vocabulary.token(t) or b"?" for t in tokens).decode()
    assert regex.fullmatch(pattern, text, partial=True), text
    return re.fullmatch(pattern, text) is not None


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("pattern", [DATE, OBJECT])
def test_generate_step(model: Any, vocabulary: sg.Vocabulary, pattern: str, temperature: float) -> None:
    """One processor for one generation after another: other prompts, the same again, cut off, in small pieces."""
    processor = LogitsProcessor(index_of(pattern, vocabulary))
    sampler = make_sampler(temp=temperature)
    for prompt in ([1], [1], [5, 6, 7], [5, 6, 9], list(range(40, 90))):
        for tokens, prefill in ((3, 2048), (80, 8)):
            found = stepped(
                model, prompt, processor, vocabulary, sampler=sampler, max_tokens=tokens, prefill_step_size=prefill
            )
            ended = check(pattern, found, vocabulary)
            assert ended or len(found) == tokens


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(vocabulary: sg.Vocabulary, dtype: str) -> None:
    model = tiny_llama(dtype=getattr(mx, dtype))
    assert check(DATE, stepped(model, [3, 4], LogitsProcessor(index_of(DATE, vocabulary)), vocabulary), vocabulary)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("drafted", [1, 2, 4])
def test_speculative(model: Any, vocabulary: sg.Vocabulary, drafted: int, seed: int) -> None:
    """The draft of the model itself is taken whole, that of another is not; the text is that without a draft."""
    index = index_of(OBJECT, vocabulary)
    plain = stepped(model, [9, 8, 7], LogitsProcessor(index), vocabulary)
    for draft in (tiny_llama(seed), tiny_llama(seed + 7)):
        found = stepped(
            model, [9, 8, 7], LogitsProcessor(index), vocabulary, draft_model=draft, num_draft_tokens=drafted
        )
        assert check(OBJECT, found, vocabulary) or len(found) == 60
        assert found == plain


def test_generate_gives_the_text(model: Any, tokenizer: Any, vocabulary: sg.Vocabulary) -> None:
    wrapped = TokenizerWrapper(tokenizer)
    assert vocabulary_of(wrapped).fingerprint == vocabulary.fingerprint
    processor = LogitsProcessor(index_of(DATE, vocabulary))
    for prompt in ("When? ", "And then? "):
        text = mlx_generate.generate(model, wrapped, prompt, logits_processors=[processor], max_tokens=40)
        assert re.fullmatch(DATE, text), text


@pytest.mark.parametrize("shared", [True, False])
def test_batches(model: Any, vocabulary: sg.Vocabulary, shared: bool) -> None:
    """Rows of different lengths, more of them than run at once, with a processor for all or one for each."""
    prompts = [[1, 2, 3], [4], [1, 2, 3], [9, 8, 7, 6, 5, 4, 3], [30, 31], [1, 2, 90]]
    one = LogitsProcessor(index_of(OBJECT, vocabulary))
    processors = [[one if shared else LogitsProcessor(index_of(OBJECT, vocabulary))] for _ in prompts]
    generator = mlx_generate.BatchGenerator(
        model, stop_tokens=[list(vocabulary.eos_ids)], completion_batch_size=4, prefill_batch_size=2,
        sampler=make_sampler(temp=1.0),
    )  # fmt: skip
    uids = generator.insert(prompts, [60] * len(prompts), logits_processors=processors)
    texts: dict[int, list[int]] = {uid: [] for uid in uids}
    ended = set()
    while responses := generator.next_generated():
        for response in responses:
            if response.finish_reason == "stop":
                ended.add(response.uid)
            else:
                texts[response.uid].append(response.token)
    generator.close()
    assert ended
    for uid, tokens in texts.items():
        assert check(OBJECT, tokens, vocabulary) or uid not in ended


def test_the_token_is_read_before_the_model_is_done(vocabulary: sg.Vocabulary) -> None:
    """What a step waits for is its token: a processor returns long before slow logits are there."""
    processor = LogitsProcessor(index_of(DATE, vocabulary))
    matrix = mx.random.normal((WIDTH * 3, WIDTH * 3)) * 0.01
    tokens = mx.array([1, 2, 3])
    mx.eval(processor(tokens, mx.zeros((1, WIDTH))), matrix)
    slow = matrix
    for _ in range(12):
        slow = slow @ matrix
    longer = mx.concatenate([tokens, mx.array([vocabulary_id(vocabulary, b"1")])])
    began = time.perf_counter()
    masked = processor(longer, slow[:1, :WIDTH])
    returned = time.perf_counter() - began
    mx.eval(masked)
    assert returned < 0.5 * (time.perf_counter() - began)


def vocabulary_id(vocabulary: sg.Vocabulary, token: bytes) -> int:
    return next(i for i in range(vocabulary.size) if vocabulary.token(i) == token)


@pytest.mark.parametrize("width", [1, 31, 32, 33, 270, 1000])
def test_bits_as_numpy_unpacks_them(width: int) -> None:
    words = np.random.default_rng(width).integers(-(2**31), 2**31, (3, -(-width // 32)), np.int64).astype(np.int32)
    expected = numpy_bitmask.unpack(words, width)

    def allowed(mask: Any, width: int, *rows: int) -> Any:
        return np.array(sg.apply_bitmask(mx.zeros((*rows, width)), mx.array(mask))) == 0

    assert np.array_equal(allowed(words, width, 3), expected)
    assert np.array_equal(allowed(words[1], width), expected[1])
    wider = allowed(words, width + 100, 3)
    known = 32 * words.shape[1]
    assert np.array_equal(wider[:, :known], numpy_bitmask.unpack(words, known)[:, : width + 100])
    assert not wider[:, known:].any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_masks_as_numpy_applies_them(dtype: str) -> None:
    random = np.random.default_rng(1)
    words = random.integers(-(2**31), 2**31, (2, 9), np.int64).astype(np.int32)
    logits = mx.array(random.standard_normal((2, WIDTH)).astype(np.float32)).astype(getattr(mx, dtype))
    before = np.array(logits.astype(mx.float32))
    for mask, rows in ((words, None), (words[0], None), (words, [1, 0]), (words[:1], [1]), (words[0], [1])):
        for given in (mask, mx.array(mask)):
            found = sg.apply_bitmask(logits, given, rows=rows, backend="mlx")
            assert found is not logits
            assert found.dtype == logits.dtype
            expected = sg.apply_bitmask(before.copy(), mask, rows=rows)
            assert np.array_equal(np.array(found.astype(mx.float32)), expected)
    assert np.array_equal(np.array(logits.astype(mx.float32)), before)


def test_refusals(vocabulary: sg.Vocabulary) -> None:
    index = index_of(DATE, vocabulary)
    tokens = mx.array([1, 2])
    with pytest.raises(BitmaskError, match="has 9 words, logits of width 200 need 7"):
        LogitsProcessor(index)(tokens, mx.zeros((1, 200)))
    with pytest.raises(BitmaskError, match="float32, float16 or bfloat16"):
        LogitsProcessor(index)(tokens, mx.zeros((1, WIDTH), mx.int32))
    with pytest.raises(BitmaskError, match=r"integers \[length\]"):
        LogitsProcessor(index)(mx.array([[1, 2]]), mx.zeros((1, WIDTH)))
    with pytest.raises(BitmaskError, match="3 rows of bitmask for 2 rows"):
        sg.apply_bitmask(mx.zeros((2, WIDTH)), mx.zeros((3, 9), mx.int32))
    for name in ("kernel", "torch", "triton", "metal"):
        with pytest.raises(BitmaskError, match=f"backend='{name}'"):
            sg.apply_bitmask(mx.zeros((2, WIDTH)), mx.zeros(9, mx.int32), backend=name)  # type: ignore[arg-type]
    processor = LogitsProcessor(index)
    processor(tokens, mx.zeros((1, WIDTH)))
    with pytest.raises(TokenIdError, match=r"token 5 is not allowed .*\(0 tokens after a prompt of 2\)"):
        processor(mx.array([1, 2, 5]), mx.zeros((1, WIDTH)))


def test_example(model: Any, tokenizer: Any) -> None:
    example = runpy.run_path(str(EXAMPLES / "with_mlx_lm.py"))
    jsonschema.validate(json.loads(example["main"](model, TokenizerWrapper(tokenizer))), example["PET"])


def test_a_definition_that_ends_early_wins() -> None:
    """A processor before this one has forbidden the EOS ids."""
    vocabulary = vocabulary_of(TokenizerWrapper(byte_tokenizer()))
    ends = list(vocabulary.eos_ids)
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        for pattern, expected in (("", set(ends)), ("a", None)):
            logits = np.zeros((1, WIDTH), np.float32)
            logits[0, ends] = -np.inf
            found = LogitsProcessor(sg.compile(sg.Regex(pattern), vocabulary))(
                mx.array([1, 2]), mx.array(logits).astype(dtype)
            )
            left = set(np.flatnonzero(np.array(found.astype(mx.float32))[0] > -np.inf).tolist())
            assert left == expected if expected else left.isdisjoint(ends)
