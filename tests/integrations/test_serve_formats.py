"""The indexes of ``transformers serve``: each schema is compiled once for a model, under a budget, and cached."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("transformers")

from fakes.tiny_models import byte_tokenizer

import structgen as sg
from structgen.integrations import requests
from structgen.integrations.transformers import serve as transformers_serve
from structgen.integrations.transformers.serve import Formats

TOKENIZER = byte_tokenizer()
MODEL = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=TOKENIZER.eos_token_id))


def schema(number: int) -> sg.JsonSchema:
    return sg.JsonSchema({"type": "object", "properties": {f"p{number}": {"type": "integer"}}})


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of each compile."""
    calls: list[dict[str, Any]] = []
    compile = requests.compile  # type: ignore[attr-defined]

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(options)
        return compile(*arguments, **options)

    monkeypatch.setattr(requests, "compile", counted)
    return calls


def test_a_schema_is_compiled_once(compiles: list[dict[str, Any]], tmp_path: Any) -> None:
    formats = Formats({"cache": str(tmp_path)})
    indexes = [formats.index(schema(number % 2), "model", MODEL, TOKENIZER) for number in range(6)]
    assert len(compiles) == 2
    assert indexes[0] is indexes[2]
    assert indexes[0] is not indexes[1]
    budget = compiles[0]["budget"]
    assert budget.seconds <= 5
    assert budget.memory <= 256 << 20
    # Another process finds them in the cache, and may be told to compile nothing.
    other = Formats({"cache": str(tmp_path), "on_miss": "refuse"})
    assert other.index(schema(0), "model", MODEL, TOKENIZER).match(b"{}").accepted
    with pytest.raises(sg.errors.MissingIndexError):
        other.index(schema(2), "model", MODEL, TOKENIZER)


def test_models_have_their_own_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers_serve, "_MOST_MODELS", 2)
    formats = Formats({"cache": False})
    backwards = byte_tokenizer(backwards=True)
    first = formats.index(schema(0), "a", MODEL, TOKENIZER)
    assert formats.index(schema(0), "b", MODEL, backwards).vocabulary.fingerprint != first.vocabulary.fingerprint
    assert formats.index(schema(0), "a", MODEL, TOKENIZER) is first
    formats.index(schema(0), "c", MODEL, backwards)  # b goes
    assert formats.index(schema(0), "a", MODEL, TOKENIZER) is first
    assert list(formats._by_model) == ["c", "a"]


class Asked:
    """A compile that goes on until its event is set, or it is told to end."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.cancelled = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, *arguments: Any, cancel: Any, **options: Any) -> Any:
        self.begun.set()
        while not self.go_on.wait(0.001):
            if cancel.is_set():
                self.cancelled.set()
                raise sg.errors.CancelledError("the compile was cancelled")
        return sg.compile(*arguments, **options)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()
    monkeypatch.setattr(requests, "compile", found)
    return found


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("first", [0, 1])
def test_a_compile_goes_on_while_anybody_waits_for_it(asked: Asked, stays: bool, first: int) -> None:
    """Two requests for the same: one's client goes away, and the other's as well unless it ``stays``."""
    formats, events = Formats({"cache": False}), [threading.Event(), threading.Event()]
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(formats.index, schema(0), "model", MODEL, TOKENIZER, events[0])]
        asked.begun.wait()
        both.append(pool.submit(formats.index, schema(0), "model", MODEL, TOKENIZER, events[1]))
        pending = next(iter(formats._indexes("model", MODEL, TOKENIZER)._pending.values()))
        while len(pending.cancels) < 2:
            threading.Event().wait(0.001)
        events[first].set()
        if stays:
            if first:  # the one that compiles is in its compile, whoever it is for
                assert isinstance(both[1].exception(), sg.errors.CancelledError)
            asked.go_on.set()
            assert both[1 - first].result().match(b"{}").accepted
            assert not asked.cancelled.is_set()
        else:
            events[1 - first].set()
            assert all(isinstance(each.exception(), sg.errors.CancelledError) for each in both)
            assert asked.cancelled.is_set()
            asked.go_on.set()  # what nobody waited for is compiled for who asks next
            assert formats.index(schema(0), "model", MODEL, TOKENIZER).match(b"{}").accepted


def test_a_client_that_goes_away_ends_its_compile(asked: Asked) -> None:
    """By ASGI: what a server says of a connection that was closed before there was an answer."""
    formats, sent = Formats({"cache": False}), list[Any]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        gone = threading.Event()
        assert (await receive())["body"] == b"{}"
        try:
            await asyncio.to_thread(formats.index, schema(0), "model", MODEL, TOKENIZER, gone)
        finally:
            gone.set()
        await send({"type": "http.response.start"})

    async def serve(*, leaves: bool) -> None:
        async def receive() -> Any:
            if body:
                return body.pop()
            while not (asked.begun.is_set() and leaves):
                await asyncio.sleep(0.001)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        body = [{"type": "http.request", "body": b"{}"}]
        await transformers_serve.CancelGone(app)({"type": "http"}, receive, send)

    asyncio.run(serve(leaves=True))
    assert asked.cancelled.wait(10)
    assert not sent
    asked.go_on.set()
    asyncio.run(serve(leaves=False))
    assert sent


def test_settings_are_checked_before_there_is_a_request() -> None:
    with pytest.raises(sg.errors.DefinitionError, match="on_miss"):
        Formats({"on_miss": "guess"})
