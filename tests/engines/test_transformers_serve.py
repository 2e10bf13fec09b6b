"""``response_format`` in ``transformers serve``, asked over HTTP, with a tiny random model."""

from __future__ import annotations

import json
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
from transformers.cli.serving.model_manager import ModelManager
from transformers.cli.serving.server import build_server
from transformers.cli.serving.utils import GenerationState

from structgen.integrations.transformers.serve import handler_class

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 4}, "ok": {"type": "boolean"}},
    "required": ["name", "ok"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("model"))
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
    tokenizer.save_pretrained(path)
    tiny_llama(len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id).save_pretrained(path)
    return path


def client_of(**options: Any) -> Any:
    manager, state = ModelManager(device="cpu"), GenerationState(**options)
    handler = handler_class()(model_manager=manager, generation_state=state)
    nothing: Any = None
    return TestClient(build_server(manager, handler, nothing, nothing, nothing, nothing, generation_state=state))


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
    chunks = [
        json.loads(line.removeprefix("data: ")) for line in reply.text.split("\n") if line.startswith("data: {")
    ]
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
    assert list(json.loads(text)) == ["name", "ok"]


def test_free_text_stays_free(folder: str) -> None:
    for options in ({}, {"response_format": {"type": "text"}}):
        reply = ask(client_of(), folder, max_tokens=5, **options)
        assert reply.status_code == 200, reply.text


@pytest.mark.parametrize(("body", "said"), [
    ({"response_format": {"type": "poem"}}, "none that is known"),
    ({"response_format": {"type": "json_schema"}}, "none that is known"),
    ({"response_format": "json"}, "none that is known"),
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "thing"}}}}, "thing"),
    ({"response_format": FORMAT, "tools": [{"type": "function", "function": {"name": "f"}}]}, "either tools"),
])  # fmt: skip
def test_what_cannot_be_honoured_is_refused(folder: str, body: dict[str, Any], said: str) -> None:
    reply = ask(client_of(), folder, **body)
    assert reply.status_code == 400
    assert said in reply.json()["detail"]


def test_continuous_batching_is_refused(folder: str) -> None:
    reply = ask(client_of(continuous_batching=True), folder, response_format=FORMAT)
    assert reply.status_code == 400
    assert "continuous batching" in reply.json()["detail"]
