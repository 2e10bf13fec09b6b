"""Tools and formats in ``transformers serve``, asked over HTTP, with a tiny random model."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="pip install 'transformers[serving]' httpx")
pytest.importorskip("openai", reason="pip install 'transformers[serving]' httpx")
pytest.importorskip("httpx")
pytest.importorskip("transformers.cli.serving.chat_completion", reason="transformers < 5.10")

sys.path.append(str(Path(__file__).parents[1]))

from fakes.tiny_models import byte_tokenizer, tiny_llama
from fastapi.testclient import TestClient
from transformers import AutoTokenizer
from transformers.cli.serving.model_manager import ModelManager
from transformers.cli.serving.server import build_server
from transformers.cli.serving.utils import GenerationState

import structgen as sg
from structgen.integrations.transformers.serve import handler_class, responses_class

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 4}, "ok": {"type": "boolean"}},
    "required": ["name", "ok"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}


#: What a template of Hermes' style holds, for those who look for that, and what it renders.
TEMPLATE = """{%- if false %}<tool_call>{"name": ..., "arguments": ...}{% endif -%}
{% for message in messages %}{{ message.content }}\n{% endfor %}"""
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}, "on": {"type": "boolean"}},
        "required": ["n", "on"], "additionalProperties": False,
    }}}
    for name in ("lamp", "clock")
]  # fmt: skip


@pytest.fixture(scope="module", params=[(), ("<tool_call>", "</tool_call>")], ids=["bytes", "special_tokens"])
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    path = str(tmp_path_factory.mktemp("model"))
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": list(request.param)})
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(path)
    tiny_llama(len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id).save_pretrained(path)
    return path


def client_of(settings: dict[str, Any] | None = None, **options: Any) -> Any:
    manager, state = ModelManager(device="cpu"), GenerationState(**options)
    handler = handler_class(settings)(model_manager=manager, generation_state=state)
    responses, nothing = responses_class()(model_manager=manager, generation_state=state), None
    server: Any = build_server
    return TestClient(server(manager, handler, nothing, responses, nothing, nothing, generation_state=state))


def ask(client: Any, folder: str, **body: Any) -> Any:
    messages = [{"role": "user", "content": "Who?"}]
    return client.post("/v1/chat/completions", json={"model": folder, "messages": messages, "seed": 1, **body})


def test_answers_match_the_schema(folder: str) -> None:
    client = client_of()
    for response_format in (FORMAT, FORMAT):  # compiled and read again
        reply = ask(client, folder, response_format=response_format, max_tokens=60)
        assert reply.status_code == 200, reply.text
        value = json.loads(reply.json()["choices"][0]["message"]["content"])
        assert list(value) == ["name", "ok"]


def test_streams_match_the_schema(folder: str) -> None:
    reply = ask(client_of(), folder, response_format=FORMAT, max_tokens=60, stream=True)
    chunks = [json.loads(line.removeprefix("data: ")) for line in reply.text.split("\n") if line.startswith("data: {")]
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
    assert list(json.loads(text)) == ["name", "ok"]


#: What a template of Qwen3's style holds and renders: it begins the reasoning, or leaves that to the model.
REASONING = """{%- if false %}<tool_call>{"name": ..., "arguments": ...}<think></think>{% endif -%}
{% for message in messages %}{{ message.content }}\n{% endfor %}{% if opened %}<think>\n{% endif %}"""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("opened", [False, True])
def test_answers_stand_behind_the_reasoning(folder: str, tmp_path: Path, opened: bool, stream: bool) -> None:
    path = str(shutil.copytree(folder, tmp_path / "model"))
    tokenizer = AutoTokenizer.from_pretrained(path)
    tokenizer.chat_template = REASONING
    tokenizer.save_pretrained(path)
    asked = {"response_format": FORMAT, "max_tokens": 90, "chat_template_kwargs": {"opened": opened}}
    reply = ask(client_of({"max_tokens": True}), path, **asked, stream=stream)
    assert reply.status_code == 200, reply.text
    if stream:
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks_of(reply)]
        said = {key: "".join(delta.get(key) or "" for delta in deltas) for key in ("content", "reasoning_content")}
    else:
        said = reply.json()["choices"][0]["message"]
    assert list(json.loads(said["content"])) == ["name", "ok"]
    assert said.get("reasoning_content") or not opened


def test_free_text_stays_free(folder: str) -> None:
    for options in ({}, {"response_format": {"type": "text"}}):
        reply = ask(client_of(), folder, max_tokens=5, **options)
        assert reply.status_code == 200, reply.text


def is_a_call(call: dict[str, Any], names: tuple[str, ...] = ("lamp", "clock")) -> bool:
    """Whether an entry of ``tool_calls`` is a whole call of one of some tools, under its schema."""
    arguments = json.loads(call["function"]["arguments"])
    return (
        call["type"] == "function" and call["id"] != "" and call["function"]["name"] in names
        and arguments.keys() == {"n", "on"} and type(arguments["on"]) is bool and 0 <= arguments["n"] <= 99
    )  # fmt: skip


ASKED = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 200, "temperature": 1.0}
CLOCK = {"type": "function", "function": {"name": "clock"}}


@pytest.mark.parametrize("parallel", [True, False, None])
@pytest.mark.parametrize(("choice", "names"), [("required", ("lamp", "clock")), (CLOCK, ("clock",))], ids=str)
def test_tools_are_called_as_was_asked(folder: str, choice: Any, names: tuple[str, ...], parallel: bool | None) -> None:
    asked = {**ASKED, "tool_choice": choice, "parallel_tool_calls": parallel}
    reply = ask(client_of({"max_tokens": True}), folder, **asked)
    assert reply.status_code == 200, reply.text
    answer = reply.json()["choices"][0]
    assert answer["finish_reason"] == "tool_calls"
    calls = answer["message"]["tool_calls"]
    assert calls
    assert all(is_a_call(call, names) for call in calls)
    assert len(calls) == 1 or (parallel is not False and choice == "required")
    assert "<tool_call>" not in (answer["message"].get("content") or "")


@pytest.mark.parametrize("choice", ["none", "auto", None])
def test_replies_without_calls(folder: str, choice: str | None) -> None:
    reply = ask(client_of(), folder, tools=TOOLS, tool_choice=choice, max_tokens=12)
    assert reply.status_code == 200, reply.text
    answer = reply.json()["choices"][0]
    assert answer["message"]["content"]
    assert "tool_calls" not in answer["message"]
    assert answer["finish_reason"] == ("length" if reply.json()["usage"]["completion_tokens"] == 12 else "stop")


def chunks_of(reply: Any) -> list[dict[str, Any]]:
    assert reply.status_code == 200, reply.text
    return [json.loads(line.removeprefix("data: ")) for line in reply.text.split("\n") if line.startswith("data: {")]


def test_streams_have_deltas_of_calls(folder: str) -> None:
    first, *middle, last = chunks_of(ask(client_of({"max_tokens": True}), folder, stream=True, **ASKED))
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert last["usage"]["total_tokens"] == last["usage"]["prompt_tokens"] + last["usage"]["completion_tokens"]
    calls: dict[int, list[dict[str, Any]]] = {}
    for chunk in middle:
        for call in chunk["choices"][0]["delta"].get("tool_calls") or ():
            calls.setdefault(call["index"], []).append(call)
    assert list(calls) == [*range(len(calls))] != []
    for head, *rest in calls.values():
        assert len(rest) > 3  # arguments come as they are written
        arguments = "".join(call["function"]["arguments"] for call in (head, *rest))
        assert is_a_call({**head, "function": {"name": head["function"]["name"], "arguments": arguments}})
        assert not any("id" in call or "name" in call["function"] for call in rest)


def test_an_error_ends_a_stream_and_not_the_server(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Any, tokens: Any) -> Any:
        raise sg.errors.TokenIdError('a "bad" token')

    client = client_of()
    with monkeypatch.context() as patch:
        patch.setattr(sg.ToolCallReader, "feed", failing)
        *_, last = chunks_of(ask(client, folder, stream=True, **ASKED))
        assert last == {"error": 'a "bad" token'}
    assert ask(client, folder, max_tokens=2).status_code == 200


TAG = {"type": "tag", "begin": "<tool_call>", "content": {"type": "regex", "pattern": "[0-9]{3}"}, "end": "!"}


@pytest.mark.parametrize("format", [{"format": TAG}, {
    "structures": [{"begin": "<tool_call>", "schema": {"type": "boolean"}, "end": "!"}],
    "triggers": ["<tool_call>"], "at_least_one": True,
}], ids=["format", "structures"])  # fmt: skip
def test_structural_tags(folder: str, format: dict[str, Any]) -> None:
    asked = {"response_format": {"type": "structural_tag", **format}, "max_tokens": 40}
    reply = ask(client_of({"max_tokens": True}), folder, **asked)
    assert reply.status_code == 200, reply.text
    text = reply.json()["choices"][0]["message"]["content"].replace("<tool_call>", "")
    assert text[:3].isdigit() or text.strip().startswith(("true", "false"))


@pytest.mark.parametrize(("body", "said"), [
    ({"response_format": {"type": "poem"}}, "none that is known"),
    ({"response_format": {"type": "json_schema"}}, "no object json_schema"),
    ({"response_format": "json"}, "none that is known"),
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "thing"}}}}, "thing"),
    ({"response_format": {"type": "structural_tag", "format": {"type": "tag"}}}, "a format has no begin"),
    ({"response_format": FORMAT, "tools": TOOLS}, "either tools"),
    ({"tools": [{"type": "function", "function": {"name": 3}}]}, "tools[0]"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "door"}}}, "lamp, clock"),
    ({"tools": [], "tool_choice": "required"}, "there is none"),
])  # fmt: skip
def test_what_cannot_be_honoured_is_refused(folder: str, body: dict[str, Any], said: str) -> None:
    reply = ask(client_of(), folder, **body)
    assert reply.status_code == 400
    assert said in reply.json()["detail"]


def test_templates_of_no_known_style_are_refused_for_tools_alone(folder: str, tmp_path: Path) -> None:
    path = str(shutil.copytree(folder, tmp_path / "model"))
    tokenizer = AutoTokenizer.from_pretrained(path)
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    tokenizer.save_pretrained(path)
    reply = ask(client_of(), path, **ASKED)
    assert reply.status_code == 400
    assert "chat template" in reply.json()["detail"]
    assert ask(client_of({"tool_style": "hermes", "max_tokens": True}), path, **ASKED).status_code == 200
    assert ask(client_of(), path, response_format=FORMAT, max_tokens=60).status_code == 200


@pytest.mark.parametrize(("body", "field"), [
    ({"tools": TOOLS}, "tools"), ({"tool_choice": "required"}, "tool_choice"),
    ({"text": {"format": {"type": "json_object"}}}, "text.format"),
])  # fmt: skip
def test_responses_are_of_free_text(folder: str, body: dict[str, Any], field: str) -> None:
    asked = {"model": folder, "input": "Who?", "max_output_tokens": 4, "stream": False}
    reply = client_of().post("/v1/responses", json={**asked, **body})
    assert reply.status_code == 400
    assert reply.json()["detail"].startswith(f"{field}: no reply of /v1/responses is kept")
    assert client_of().post("/v1/responses", json={**asked, "text": {"format": {"type": "text"}}}).status_code == 200


def test_too_few_tokens_are_refused(folder: str) -> None:
    for stream in (False, True):
        reply = ask(client_of({"max_tokens": True}), folder, **{**ASKED, "max_tokens": 7, "stream": stream})
        assert reply.status_code == 400
        assert "max_tokens is 7" in reply.json()["detail"]


def test_continuous_batching_is_refused(folder: str) -> None:
    for body in ({"response_format": FORMAT}, {"tools": TOOLS}):
        reply = ask(client_of(continuous_batching=True), folder, **body)
        assert reply.status_code == 400
        assert "continuous batching" in reply.json()["detail"]
