"""`sg.correct` over real servers, through the real client: ``transformers serve``, and llama-cpp-python's.

Their models are tiny and random, so what they say is nearly all mistakes. Outside judges look at what comes out.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from fakes import tiny_gguf
from fakes.servers import serving
from fakes.tiny_models import byte_tokenizer, tiny_llama
from judges.adversaries import SHIPPED

import structgen as sg

openai = pytest.importorskip("openai")
for package in ("fastapi", "uvicorn"):
    pytest.importorskip(package)
if os.name != "posix":
    pytest.skip("needs POSIX pipes", allow_module_level=True)

from structgen.integrations.apis.openai import ChatModel, CompletionModel  # noqa: E402

TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "roles": {"type": "array", "items": {"enum": ["admin", "user"]}, "minItems": 1},
        "age": {"type": "integer", "minimum": 0},
    },
    "required": ["name", "roles", "age"],
    "additionalProperties": False,
}


class Server(NamedTuple):
    """Where a server listens, and the name of its model."""

    address: str
    model: str

    def client(self, kind: Any = openai.OpenAI) -> Any:
        return kind(base_url=f"{self.address}/v1", api_key="none", max_retries=0, timeout=600)


def transformers_serve(folder: Path) -> list[str]:
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers.cli.serving.completion", reason="this version of transformers does not serve")
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    model = tiny_llama(len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id)
    model.generation_config.do_sample = True  # requests have a temperature, and can't say that
    model.save_pretrained(folder)
    return ["-m", "transformers.cli.transformers", "serve", str(folder), "--device", "cpu"]


def llama_cpp_server(folder: Path) -> list[str]:
    for package in ("llama_cpp", "gguf", "sse_starlette", "starlette_context", "pydantic_settings"):
        pytest.importorskip(package)
    merges = ["a b", "Ġ t", "Ġt h", "Ġth e", "1 2", '" :', '{ "']
    pieces = tiny_gguf.byte_level_pieces(merges)
    path = tiny_gguf.write(folder / "model.gguf", "gpt2", pieces, merges=merges, eos=len(pieces) - 1)
    return ["-m", "llama_cpp.server", "--model", str(path), "--n_ctx", "2048"]


@pytest.fixture(scope="module", params=[transformers_serve, llama_cpp_server], ids=lambda each: each.__name__)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("model")
    command = [sys.executable, *request.param(folder), "--host", "127.0.0.1", "--port", "0"]
    with serving(command, tmp_path_factory.mktemp("log") / "log.txt") as address:
        yield Server(address, str(folder))


def schema_error(text: str) -> str:
    jsonschema.validate(json.loads(text), SCHEMA)
    return ""


@cache
def target(name: str) -> tuple[sg.Index, Callable[[str], str]]:
    """A definition, and what an outside judge finds wrong with a text of it."""
    found = SHIPPED.get(name)
    definition = sg.JsonSchema(SCHEMA) if found is None else found.definition()
    index = sg.compile(
        definition, sg.Vocabulary.bytewise(), eager=False, base_rows=False, budget=sg.Budget(seconds=600)
    )
    return index, schema_error if found is None else found.judge


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["schema", *SHIPPED])
def test_whatever_models_say_becomes_valid(server: Server, name: str) -> None:
    index, judge = target(name)
    client = server.client()
    ways: list[tuple[Any, Any]] = [
        (ChatModel(client, server.model, system="Be brief.", max_tokens=16), None),
        (ChatModel(client, server.model, max_tokens=16), "ask"),
        (CompletionModel(client, server.model, max_tokens=16), None),
    ]
    for model, draft in ways:
        result = sg.correct(
            model, index, f"Some {name}: ", draft=draft, temperature=1.0, seed=5, max_corrections=5, max_bytes=500
        )
        assert result.complete
        assert any(result.replies)
        assert not judge(result.text), result.text


@pytest.mark.parametrize("kind", [ChatModel, CompletionModel])
def test_a_seed_says_what_is_drawn(server: Server, kind: Any) -> None:
    index = sg.compile(sg.Regex("(?s).*"), sg.Vocabulary.bytewise(), eager=False)

    def said(seed: int, temperature: float = 1.0) -> str:
        model = kind(server.client(), server.model, max_tokens=12)
        result = sg.correct(model, index, "Say: ", temperature=temperature, seed=seed, max_calls=1)
        assert result.text == result.replies[0]
        return result.text

    drawn = [said(seed) for seed in range(4)]
    assert drawn == [said(seed) for seed in range(4)]
    assert len({*drawn}) > 1
    assert said(1, 0.0) == said(2, 0.0)


def test_asynchronous_clients(server: Server) -> None:
    index, judge = target("schema")

    async def test() -> None:
        async with server.client(openai.AsyncOpenAI) as client:
            models = [
                kind(client, server.model, max_tokens=16, temperature=1.0) for kind in (ChatModel, CompletionModel)
            ]
            results = await asyncio.gather(*(sg.acorrect(each, index, "Who? ", max_corrections=3) for each in models))
        for result in results:
            assert result.complete
            assert not judge(result.text), result.text

    asyncio.run(test())
