"""Replies with tool calls, read back while they are generated, in the shape of OpenAI's API.

`reader_of` is where a reader is made: what is fed the tokens of a reply and gives *deltas*, the ``delta`` objects of
OpenAI's streams: ``{"content": text}``, ``{"reasoning_content": text}``, ``{"tool_calls": [{"index", "id",
"function": {"name", "arguments"}}]}``, of which ``id`` and ``name`` come once and arguments piece by piece.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Protocol

from ...runtime.index.index import Index
from ...system.types import Foreign, JsonMap


class Reader(Protocol):
    """Reads one reply."""

    def feed(self, tokens: Sequence[int]) -> Sequence[JsonMap]:
        """The deltas that some tokens bring."""

    def close(self) -> Sequence[JsonMap]:
        """What is left where the reply ends."""


def reader_of(index: Index) -> Reader | None:
    """What reads the replies of tools; None leaves it to transformers, which knows some models' templates."""
    return None


class Stopped(Exception):
    """Raised within ``generate`` where nobody waits for its tokens any more."""


class TokenStream:
    """A streamer for ``generate``, whose tokens are waited for in the event loop that made it.

    The first tokens that it is handed are the prompt's, and are dropped.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[list[int] | Exception | None] = asyncio.Queue()
        self._cancelled = threading.Event()
        self._has_prompt = False
        self.count = 0

    def put(self, value: Foreign) -> None:
        """Tokens, from the thread of ``generate``. Raises `Stopped`."""
        if self._cancelled.is_set():
            raise Stopped
        if self._has_prompt:
            self._send(value.tolist())
        self._has_prompt = True

    def end(self) -> None:
        """The end of the text."""
        self._send(None)

    def fail(self, error: Exception) -> None:
        """What ended ``generate``."""
        self._send(error)

    def cancel(self) -> None:
        """Stop ``generate`` at its next token."""
        self._cancelled.set()

    def _send(self, item: list[int] | Exception | None) -> None:
        self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    async def tokens(self) -> AsyncIterator[list[int]]:
        """Tokens as they come. Raises what ended ``generate``."""
        while (item := await self._queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            self.count += len(item)
            yield item


def message_of(deltas: Iterable[JsonMap]) -> tuple[str, str | None, list[dict[str, object]]]:
    """The content, the reasoning and the tool calls that deltas make together."""
    content, reasoning = "", ""
    calls: dict[int, dict[str, str]] = {}
    for delta in deltas:
        content += delta.get("content") or ""
        reasoning += delta.get("reasoning_content") or ""
        for call in delta.get("tool_calls") or ():
            whole = calls.setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
            function = call.get("function") or {}
            whole["id"] += call.get("id") or ""
            whole["name"] += function.get("name") or ""
            whole["arguments"] += function.get("arguments") or ""
    return content, reasoning or None, [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for _, call in sorted(calls.items())
    ]  # fmt: skip
