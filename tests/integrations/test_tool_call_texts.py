"""Replies with tool calls through the loops of engines, with marks that are special tokens: each is read back.

One loop for each way of finding a row's text: batches of rows (transformers), one row at a time (llama.cpp, as
mlx-lm), and a matcher, which servers drive.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from fakes.fake_llama_cpp import WIDTH, FakeLlama  # noqa: E402
from fakes.fakes import EOS, MERGES, PAD  # noqa: E402
from fakes.tiny_models import byte_tokenizer, tiny_llama  # noqa: E402
from judges.guides import EACH_BYTE  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.integrations import llama_cpp  # noqa: E402
from structgen.integrations.llama_cpp import tokens as of_llama  # noqa: E402
from structgen.integrations.matcher import Matcher  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor, generate  # noqa: E402
from structgen.runtime.rows.bitmask import ids_of  # noqa: E402

MARKS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}, "on": {"type": "boolean"}},
        "required": ["n", "on"], "additionalProperties": False,
    }}}
    for name in ("lamp", "clock")
]  # fmt: skip
STYLES = ["qwen_3", "qwen_3_coder"]
MOST = 120


def reply_of(style: str, **options: Any) -> sg.StructuralTag:
    options = {"tool_choice": "required", "parallel": False, "reasoning": False, **options}
    return sg.tool_calls(TOOLS, style, **options)


def check(definition: sg.StructuralTag, vocabulary: sg.Vocabulary, tokens: Iterable[int]) -> None:
    """The tokens are a whole reply, with one call, whose marks are the special tokens."""
    ids = list(tokens)
    reader = sg.ToolCallReader(definition, vocabulary)
    reader.feed(ids)
    assert reader.is_complete()
    [call] = reader.message()["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    assert call["function"]["name"] in ("lamp", "clock")
    assert arguments.keys() == {"n", "on"}
    assert type(arguments["on"]) is bool
    assert type(arguments["n"]) is int


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    made = byte_tokenizer()
    made.add_special_tokens({"additional_special_tokens": MARKS})
    return made


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return tiny_llama(len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id)


@pytest.mark.parametrize("mode", [
    {}, {"do_sample": True}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2},
    {"custom_generate": generate},
], ids=" ".join)  # fmt: skip
@pytest.mark.parametrize("style", STYLES)
def test_transformers(model: Any, tokenizer: Any, style: str, mode: dict[str, Any]) -> None:
    vocabulary = sg.Vocabulary.from_transformers(tokenizer)
    definition = reply_of(style)
    index = sg.compile(definition, vocabulary, eager=False)
    prompt = tokenizer("the name", return_tensors="pt")
    torch.manual_seed(1)
    if "custom_generate" in mode:  # a model of its own ends when it likes
        definition = reply_of(style, tool_choice={"type": "function", "function": {"name": "clock"}})
        index = sg.compile(definition, vocabulary, eager=False)
        mode = {**mode, "index": index}
        output = model.generate(**prompt, max_new_tokens=400, do_sample=True, **mode)
    else:
        masks = LogitsProcessor(index, max_tokens=MOST)
        output = model.generate(**prompt, max_new_tokens=MOST, logits_processor=[masks], **mode)
    for row in output[:, prompt.input_ids.shape[1] :].tolist():
        ids = row[: row.index(tokenizer.eos_token_id) + 1]
        check(definition, vocabulary, ids)


SPECIAL = {"<pad>": PAD, **{name: PAD + 1 + number for number, name in enumerate(MARKS)}}
VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, *MERGES], [EOS], special_tokens=SPECIAL, size=WIDTH)


@pytest.mark.parametrize("draft", [0, 3])
@pytest.mark.parametrize("style", STYLES)
def test_llama_cpp(style: str, draft: int) -> None:
    definition = reply_of(style, tool_choice={"type": "function", "function": {"name": "lamp"}}, whitespace="compact")
    index = sg.compile(definition, VOCABULARY)
    for seed in range(4):
        llama = FakeLlama(seed, draft)
        of_llama._vocabularies[llama] = VOCABULARY
        processor = llama_cpp.LogitsProcessor(index, llama)
        ids = llama.generate([1, 2], processor, 3_000)
        processor.check()
        check(definition, VOCABULARY, ids)


@pytest.mark.parametrize("style", STYLES)
def test_a_matcher(style: str) -> None:
    definition = reply_of(style, reasoning=True)
    matcher = Matcher(sg.compile(definition, VOCABULARY, eager=False), max_tokens=MOST)
    rng = random.Random(5)
    bitmask = np.zeros((1, -(-WIDTH // 32)), np.int32)
    tokens: list[int] = []
    while not matcher.is_terminated():
        matcher.fill(bitmask, 0)
        tokens.append(rng.choice(ids_of(bitmask[0]).tolist()))
        assert matcher.accept(tokens[-1])
    assert len(tokens) <= MOST
    check(definition, VOCABULARY, tokens)
