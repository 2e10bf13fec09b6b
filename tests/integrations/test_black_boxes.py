"""The adapters of APIs that give text, through their real clients, against a server here that misbehaves."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import structgen as sg
from structgen.correction.values import CorrectionError
from structgen.errors import ArgumentError

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

from structgen.integrations.apis.anthropic import MessagesModel  # noqa: E402
from structgen.integrations.apis.openai import GO_ON, ChatModel, CompletionModel  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples/correct_openai.py"

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "role": {"enum": ["admin", "user"]}},
    "required": ["name", "role"],
    "additionalProperties": False,
}
GOOD = '{"name": "Ada é", "role": "admin"}'

#: Seconds that are waited for what comes for certain, on a machine that is slow and does much else.
PATIENCE = 600


class Server(ThreadingHTTPServer):
    """Answers with the next of some scripts, over any of the three protocols; keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts: list[Callable[[Handler], None]] = []
        self.requests: list[dict[str, Any]] = []
        self.begun = threading.Semaphore(0)  # released for each script
        self.release = threading.Event()  # those that hang may end
        self.abandoned = threading.Event()  # a client has closed a reply that was not at its end

    def has_begun(self, scripts: int) -> bool:
        """Whether so many scripts are begun, in the end: a client that gives up may be ahead of the server."""
        return all(self.begun.acquire(timeout=PATIENCE) for _ in range(scripts))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback into the output under test when a client hung up: dropping a reply does so."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(json.loads(body))
        script = self.server.scripts.pop(0)
        self.server.begun.release()
        script(self)

    def log_message(self, *_: object) -> None:
        return

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def piece(self, text: str) -> None:
        """A chunk of the protocol that was asked."""
        if self.path.endswith("/messages"):
            delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            self.wfile.write(f"event: content_block_delta\ndata: {json.dumps(delta)}\n\n".encode())
        else:
            choice: dict[str, Any] = {"index": 0, "finish_reason": None}
            choice |= {"text": text} if "/chat/" not in self.path else {"delta": {"content": text}}
            chunk = {"id": "1", "object": "chunk", "created": 0, "model": "m", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())

    def end(self) -> None:
        if not self.path.endswith("/messages"):
            self.wfile.write(b"data: [DONE]\n\n")


def says(text: str, size: int = 3) -> Callable[[Handler], None]:
    def script(handler: Handler) -> None:
        handler.begin()
        for begin in range(0, len(text), size):
            handler.piece(text[begin : begin + size])
        handler.end()

    return script


def says_endlessly(text: str) -> Callable[[Handler], None]:
    def script(handler: Handler) -> None:
        handler.begin()
        try:
            handler.piece(text)
            while True:
                handler.piece("y" * 1000)
        except OSError:  # the client has gone
            handler.server.abandoned.set()

    return script


def breaks_off(text: str) -> Callable[[Handler], None]:
    def script(handler: Handler) -> None:
        handler.begin()
        handler.piece(text)
        handler.wfile.write(b'data: {"choices": [{"del')
        handler.wfile.flush()
        handler.connection.close()

    return script


def refuses(status: int) -> Callable[[Handler], None]:
    def script(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Retry-After", "0")
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")

    return script


def hangs(handler: Handler) -> None:
    handler.begin()
    handler.piece('{"name": "')
    handler.server.release.wait()


def is_no_text(handler: Handler) -> None:
    handler.begin()
    handler.wfile.write(b"data: \xff\xfe{\n\n")


@pytest.fixture(scope="module")
def index() -> sg.Index:
    return sg.compile(SCHEMA, sg.Vocabulary.bytewise(), eager=False, base_rows=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


def client(server: Server, **options: Any) -> Any:
    options = {"max_retries": 0, "timeout": PATIENCE, **options}
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", **options)


def messages_client(server: Server, timeout: float = PATIENCE) -> Any:
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=timeout)


#: Models of each protocol, by how long their clients wait.
MODELS: dict[str, Callable[[Server, float], Any]] = {
    "chat": lambda server, timeout: ChatModel(client(server, timeout=timeout), "m", temperature=0),
    "prefilled": lambda server, timeout: ChatModel(
        client(server, timeout=timeout), "m", prefill=True, system="Be brief."
    ),
    "completions": lambda server, timeout: CompletionModel(client(server, timeout=timeout), "m"),
    "messages": lambda server, timeout: MessagesModel(messages_client(server, timeout), "m"),
}


class Impatient:
    """A model whose client waits for the first reply, and not for another."""

    def __init__(self, kind: str, server: Server) -> None:
        self._first, self._others = MODELS[kind](server, PATIENCE), MODELS[kind](server, 1)

    def reply(self, prompt: str, text: str) -> Any:
        return (self._others if text else self._first).reply(prompt, text)


@pytest.mark.parametrize("kind", MODELS)
def test_answers_are_corrected(kind: str, server: Server, index: sg.Index) -> None:
    server.scripts = [says('{"name": "Ada é", "role": [1]}'), says('admin"}')]
    result = sg.correct(MODELS[kind](server, PATIENCE), index, "Who?")
    assert json.loads(result.text) == json.loads(GOOD)
    assert result.calls == len(server.requests) <= 2
    assert all(request["stream"] for request in server.requests)


def test_how_chats_are_asked_to_go_on(server: Server, index: sg.Index) -> None:
    for kind, more in (("chat", [{"role": "user", "content": GO_ON}]), ("prefilled", [])):
        server.scripts, server.requests = [says('{"name": "Ada '), says('é", "role": "admin"}')], []
        assert sg.correct(MODELS[kind](server, PATIENCE), index, "Who?").text == GOOD
        first, second = (request["messages"] for request in server.requests)
        assert first[-1] == {"role": "user", "content": "Who?"}
        assert second[len(first) :] == [{"role": "assistant", "content": '{"name": "Ada '}, *more]


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_of_no_use_is_not_paid_for(kind: str, server: Server, index: sg.Index) -> None:
    server.scripts = [says_endlessly('{"name": "Ada é", "role": xyz'), says('user"}')]
    result = sg.correct(MODELS[kind](server, PATIENCE), index, "Who?", max_corrections=1)
    assert result.complete
    assert server.abandoned.wait(PATIENCE)  # the connection was closed


@pytest.mark.nightly
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    "script",
    [breaks_off('{"name": "Ada é'), refuses(429), refuses(500), hangs, is_no_text],
    ids=["breaks off", "429", "500", "hangs", "no text"],
)
def test_failures_lose_nothing(kind: str, script: Callable[[Handler], None], server: Server, index: sg.Index) -> None:
    server.scripts = [says('{"name": '), script]
    model = Impatient(kind, server) if script is hangs else MODELS[kind](server, PATIENCE)
    with pytest.raises(CorrectionError) as caught:
        sg.correct(model, index, "Who?")
    so_far = caught.value.correction
    assert so_far.text.startswith('{"name": ')
    assert server.has_begun(2), "a request that began late would take the next script"
    server.scripts = [says(GOOD)]
    result = sg.correct(MODELS[kind](server, PATIENCE), index, "Who?", resume=so_far)
    assert result.complete
    assert index.match(result.text.encode()).accepted


def test_rate_limits_are_the_clients(server: Server, index: sg.Index) -> None:
    server.scripts = [refuses(429), says(GOOD)]
    assert sg.correct(ChatModel(client(server, max_retries=2), "m"), index, "Who?").text == GOOD


def test_async_clients(server: Server, index: sg.Index) -> None:
    async def test() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as asking:
            server.scripts = [says_endlessly('{"name": "Ada é", "role": xyz'), says('admin"}')]
            result = await sg.acorrect(ChatModel(asking, "m"), index, "Who?", max_corrections=1)
            assert result.complete
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=0) as messages:
            server.scripts = [says(GOOD)]
            assert (await sg.acorrect(MessagesModel(messages, "m"), index, "Who?")).text == GOOD

    asyncio.run(test())


@pytest.mark.parametrize("kind", ["chat", "prefilled", "completions"])
def test_requests_say_how_tokens_are_drawn(kind: str, server: Server, index: sg.Index) -> None:
    model = MODELS[kind](server, PATIENCE)
    given: dict[str, Any] = {"temperature": 0.7, "seed": 3}
    server.scripts = [says('{"name": "Ada'), says(' é", "role": "boss"}'), says("2")]
    result = sg.correct(model, index, "Who?", draft="ask", **given)
    assert result.text == GOOD.replace("admin", "user")
    assert len(server.requests) == 3
    assert all(given.items() <= request.items() for request in server.requests)
    server.scripts, server.requests = [says(GOOD)], []
    assert sg.correct(model, index, "Who?").complete  # which knows nothing of that
    assert server.requests[0].get("temperature") == (0 if kind == "chat" else None)
    assert "seed" not in server.requests[0]


def test_what_a_request_cannot_say_is_refused(server: Server, index: sg.Index) -> None:
    for name, value in {"temperature": 0.7, "seed": 3}.items():
        with pytest.raises(ArgumentError, match=f"{name} means nothing to this model"):
            sg.correct(MODELS["messages"](server, PATIENCE), index, "Who?", **{name: value})  # type: ignore[arg-type]
    assert server.requests == []


@pytest.mark.parametrize("completions", [False, True])
def test_the_example_asks_any_server(
    completions: bool, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    schema, page = tmp_path / "who.json", tmp_path / "page.html"
    schema.write_text(json.dumps(SCHEMA))
    server.scripts = [says('{"name": "Ada é", "role": "amdin"}')]
    options = ["--page", str(page), *(["--completions"] if completions else [])]
    monkeypatch.setattr(sys, "argv", ["correct_openai.py", f"{server.url}/v1", "m", str(schema), "Who?", *options])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    written = capsys.readouterr()
    assert written.out == GOOD + "\n"
    assert written.err.startswith("1. ")
    assert "was dropped (struck out)" in page.read_text(encoding="utf-8")
    assert ("prompt" in server.requests[0]) is completions
