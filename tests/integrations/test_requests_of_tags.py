"""Structural tags as servers are sent them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import structgen as sg
from structgen.errors import StructgenError
from structgen.integrations.requests import check_definition, read_engine_request, read_request
from structgen.tools import reasoning_after, tool_style

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
TAG = {"begin": "<f>", "content": {"type": "json_schema", "json_schema": SCHEMA}, "end": "</f>"}
FORMAT = {"type": "triggered_tags", "triggers": ["<f"], "tags": [TAG]}
SHAPES: list[dict[str, Any]] = [
    {"type": "structural_tag", "format": FORMAT},
    {"type": "structural_tag", "structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}], "triggers": ["<f"]},
    FORMAT,
]
BYTES = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


@pytest.mark.parametrize("shape", SHAPES, ids=["format", "structures", "bare"])
def test_every_shape_means_the_same(shape: dict[str, Any]) -> None:
    asked = read_request({"structural_tag": shape})
    assert isinstance(asked, sg.StructuralTag)
    for definition in (read_engine_request("STRUCTURAL_TAG", json.dumps(shape)), asked):
        check_definition(definition)
        machine = sg.compile(definition, BYTES, eager=False).machine
        assert machine.match(b'Yes. <f>{"a": 1}</f> And').accepted
        assert machine.match(b"Yes. <f>[]").consumed == len(b"Yes. <f>")


def test_whitespace_is_as_servers_have_it() -> None:
    definition = read_engine_request("STRUCTURAL_TAG", json.dumps(FORMAT))
    assert sg.compile(definition, BYTES).machine.match(b'<f>{\n  "a": 1\n}</f>').accepted
    compact = read_request({"structural_tag": FORMAT, "whitespace": "compact"})
    assert not sg.compile(compact, BYTES).machine.match(b'<f>{"a": 1}</f>').accepted


def test_requests_are_checked_without_the_tokenizer_that_has_their_tokens() -> None:
    named = {"type": "sequence", "elements": [
        {"type": "token", "token": "<|call|>"}, {"type": "any_tokens", "exclude_tokens": [128009, "<|end|>"]},
        {"type": "token_dispatch", "rules": [["<|x|>", {"type": "const_string", "value": "a"}]]},
    ]}  # fmt: skip
    check_definition(sg.StructuralTag(named))


@pytest.mark.parametrize(
    "format",
    [{}, {"type": "tag"}, {"type": "token", "token": 1 << 25}, {"type": "regex", "pattern": "("}, {"structures": 1}],
    ids=str,
)
def test_what_is_no_tag_is_refused(format: dict[str, Any]) -> None:
    with pytest.raises(StructgenError) as caught:
        check_definition(read_engine_request("STRUCTURAL_TAG", json.dumps(format)))
    assert caught.value.what


def test_the_older_form_as_sglang_makes_it_of_tools() -> None:
    """A tool without parameters has no schema; a call that is required is one that must come first."""
    structure = {"begin": "<f>", "schema": None, "end": "!"}
    asked = {"type": "structural_tag", "triggers": ["<f"], "structures": [structure]}
    for required in (False, True):
        definition = read_engine_request("STRUCTURAL_TAG", json.dumps({**asked, "at_least_one": required}))
        machine = sg.compile(definition, BYTES, eager=False).machine
        assert machine.match(b'<f>{"any": [1]}!').accepted
        assert machine.match(b"Well.").accepted is not required


@pytest.mark.parametrize(("style", "prompt", "reasons"), [
    ("qwen_3", "user: Why?\nassistant: <think>\n", True),
    ("qwen_3", "assistant: <think>\nold</think> So.\nuser: Why?\nassistant: ", "auto"),
    ("qwen_3", "assistant: <think>\n\n</think>\n\n", False),
    ("hermes", "assistant: <think>", False),
    ("harmony", "<|start|>assistant", True),
    ("gemma", "<|turn>model\n", "auto"),
])  # fmt: skip
def test_the_prompt_says_whether_a_reply_reasons(style: str, prompt: str, reasons: bool | str) -> None:
    assert reasoning_after(prompt, tool_style(style)) == reasons
