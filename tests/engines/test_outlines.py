"""The Outlines integration in Outlines' own generators, over transformers, llama-cpp-python and mlx-lm.

Judges: `re.fullmatch`, `jsonschema`, Lark.
"""

from __future__ import annotations

import json
import re
import runpy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import lark
import pytest
from conftest import tokenizer_folder
from fakes import tiny_gguf
from pydantic import BaseModel, Field
from tiny_tokenizer import byte_tokenizer

outlines = pytest.importorskip("outlines", reason="Outlines is not installed")
torch = pytest.importorskip("torch", reason="Outlines' models of transformers need torch, which is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from outlines.types import CFG, JsonSchema  # noqa: E402
from outlines.types import Regex as OutlinesRegex  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import BudgetExceededError, CacheError, UnsupportedError, VocabularyMismatchError  # noqa: E402
from structgen.integrations.outlines import backend, logits_processor, register, vocabulary  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/engines"

DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
SUM = 'start: NUMBER (("+" | "-") NUMBER)~1..3 ";"\nNUMBER: /[1-9][0-9]?/'


class Pet(BaseModel, extra="forbid"):
    """What a generator is asked for; other members could go on for ever."""

    name: str = Field(max_length=8)
    legs: int = Field(ge=0, le=8)
    tame: bool


def of_transformers(tokenizer: Any, width: int) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=width, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        max_position_embeddings=512, initializer_range=0.5,
    )  # fmt: skip
    return outlines.from_transformers(transformers.LlamaForCausalLM(config).eval(), tokenizer)


def of_llama_cpp(folder: Path) -> Any:
    if find_spec("llama_cpp") is None or find_spec("gguf") is None:
        pytest.skip("llama-cpp-python, or gguf, is not installed")
    import llama_cpp

    path = tiny_gguf.write(folder / "tiny.gguf", "llama", tiny_gguf.sentencepiece_pieces(), bos=1, eos=2, unk=0)
    return outlines.from_llamacpp(llama_cpp.Llama(str(path), n_ctx=512, verbose=False), chat_mode=False)


def of_mlx_lm() -> Any:
    if find_spec("mlx_lm") is None:
        pytest.skip("mlx-lm is not installed")
    import mlx.core as mx
    from mlx_lm.models import llama
    from mlx_lm.tokenizer_utils import TokenizerWrapper

    mx.random.seed(0)
    args = llama.ModelArgs(
        model_type="llama", hidden_size=32, num_hidden_layers=1, intermediate_size=64, num_attention_heads=2,
        rms_norm_eps=1e-5, vocab_size=333, tie_word_embeddings=False,
    )  # fmt: skip
    return outlines.from_mlxlm(llama.Model(args), TokenizerWrapper(byte_tokenizer()))


@pytest.fixture(scope="module", params=["transformers", "real tokenizer", "llama_cpp", "mlx_lm"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "transformers":
        return of_transformers(byte_tokenizer(), 333)
    if request.param == "real tokenizer":
        tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_folder("qwen2_5"))
        return of_transformers(tokenizer, 151_936)
    return of_llama_cpp(tmp_path_factory.mktemp("models")) if request.param == "llama_cpp" else of_mlx_lm()


@pytest.fixture(scope="module")
def local() -> Any:
    return of_transformers(byte_tokenizer(), 333)


def limit(model: Any, tokens: int = 120) -> dict[str, int]:
    return {"max_new_tokens" if model.tensor_library_name == "torch" else "max_tokens": tokens}


def test_processors(model: Any) -> None:
    """A generator is used again and again, and so is its processor."""
    processor = logits_processor(sg.compile(sg.Regex(DATE), vocabulary(model)), model)
    generator = outlines.Generator(model, processor=processor)
    for prompt in ("When?", "When?", "When? 1", "And"):
        text = generator(prompt, **limit(model))
        processor.check()
        assert re.fullmatch(DATE, text), text


def test_output_types(model: Any) -> None:
    """Outlines' own types, through a registered backend."""
    register()
    register("structgen")  # once more changes nothing
    pet = Pet.model_validate_json(model("A pet: ", Pet, backend="structgen", **limit(model)))
    assert 0 <= pet.legs <= 8
    assert re.fullmatch(DATE, model("When? ", OutlinesRegex(DATE), backend="structgen", **limit(model)))
    text = outlines.Generator(model, CFG(SUM), backend="structgen")("Add: ", **limit(model))
    lark.Lark(SUM, parser="lalr").parse(text)
    with pytest.raises(ValueError, match="Backend other not supported"):
        outlines.Generator(model, Pet, backend="other")


def test_streams(tmp_path: Path) -> None:
    for model in (of_mlx_lm(), of_llama_cpp(tmp_path)):
        index = sg.compile(sg.Regex(DATE), vocabulary(model))
        generator = outlines.Generator(model, processor=logits_processor(index, model))
        for _ in range(2):
            assert re.fullmatch(DATE, "".join(generator.stream("When? ", **limit(model))))


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 3}])
def test_batches(local: Any, options: dict[str, Any]) -> None:
    own = vocabulary(local)
    date, number = sg.compile(sg.Regex(DATE), own), sg.compile(sg.Regex("[0-9]{1,3}"), own)
    generator = outlines.Generator(local, processor=logits_processor(date, local))
    for prompts in (["a", "a longer prompt"], ["b"] * 3):
        for texts in generator.batch(prompts, max_new_tokens=40, **options):
            for text in [texts] if isinstance(texts, str) else texts:
                assert re.fullmatch(DATE, text), text
    generator = outlines.Generator(local, processor=logits_processor([date, None, number], local))
    first, _, last = generator.batch(["a", "b", "c"], max_new_tokens=40)
    assert re.fullmatch(DATE, first)
    assert re.fullmatch("[0-9]{1,3}", last)


def test_backend_options(local: Any, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"b": {"const": 1}, "a": {"const": [2]}}, "required": ["a", "b"],
              "additionalProperties": False}  # fmt: skip
    with sg.Cache(tmp_path) as cache:
        made = backend(local, cache=cache, property_order="any")
        for whitespace, pattern in ((None, "[ ]?"), (r"\n?", r"\n?")):
            processor = made.get_json_schema_logits_processor(json.dumps(schema), whitespace)
            text = outlines.Generator(local, processor=processor)("x", do_sample=True, max_new_tokens=60)
            jsonschema.validate(json.loads(text), schema)
            assert set(re.sub(pattern, "", text)) <= set('{}[]",:ab12')
        assert len(cache) == 2
        served = backend(local, cache=cache, property_order="any", compile_missing=False)
        served.get_json_schema_logits_processor(json.dumps(schema))
        with pytest.raises(CacheError, match="not in the cache"):
            served.get_json_schema_logits_processor("true")
    with pytest.raises(CacheError, match="needs a cache"):
        backend(local, compile_missing=False)
    with pytest.raises(BudgetExceededError):
        backend(local, budget=sg.Budget(states=4)).get_regex_logits_processor(DATE)


def test_whitespace_of_outlines_type(local: Any) -> None:
    register()
    type_ = JsonSchema({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}, r"\t")
    text = outlines.Generator(local, type_, backend="structgen")("x", max_new_tokens=60)
    assert "\t" in text
    assert " " not in text


def test_refusals(local: Any, tmp_path: Path) -> None:
    other = sg.Vocabulary.from_bytes([b"1", b"-"], eos_ids=[2])
    with pytest.raises(VocabularyMismatchError, match="b'1', the model's is b'!'"):
        logits_processor(sg.compile(sg.Regex("1-"), other), local)
    with pytest.raises(UnsupportedError, match="type object is masked"):
        vocabulary(object())
    llama = of_llama_cpp(tmp_path)
    index = sg.compile(sg.Regex(DATE), vocabulary(llama))
    with pytest.raises(UnsupportedError, match="one text at a time"):
        logits_processor([index], llama)


def test_example(local: Any) -> None:
    example = runpy.run_path(str(EXAMPLES / "with_outlines.py"))
    assert isinstance(example["main"](local), example["Pet"])


@pytest.mark.parametrize("special", [True, False], ids=["special_tokens", "bytes"])
def test_a_definition_of_tool_calls(special: bool) -> None:
    """The definition itself is taken; its marks may be special tokens, whether Outlines leaves those out or not."""
    tokenizer = byte_tokenizer()
    if special:
        tokenizer.add_special_tokens({"additional_special_tokens": ["<tool_call>", "</tool_call>"]})
    model = of_transformers(tokenizer, len(tokenizer))
    tool = {"name": "pet", "parameters": Pet.model_json_schema()}
    choice = {"type": "function", "function": {"name": "pet"}}
    definition = sg.tool_calls([tool], "hermes", tool_choice=choice, whitespace="compact")
    generator = outlines.Generator(model, processor=logits_processor(definition, model))
    for seed in range(3):
        torch.manual_seed(seed)
        text = generator("A pet: ", max_new_tokens=300, do_sample=True)
        call = json.loads(text.replace("<tool_call>", "").replace("</tool_call>", ""))
        assert call["name"] == "pet"
        Pet.model_validate(call["arguments"])
