"""The tokens of ``generate``, waited for in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

from ...system.types import Foreign


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
