"""Models behind Anthropic's Messages API, for `structgen.correct`; see `structgen.integrations.apis.openai`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from ...system.types import Foreign
from .openai import GO_ON, streamed


class MessagesModel:
    """A model behind ``/v1/messages``, whose requests say nothing of how tokens are drawn.

    Parameters
    ----------
    client:
        An ``anthropic.Anthropic``, or an ``anthropic.AsyncAnthropic`` for `structgen.acorrect`.
    model:
        Its name there.
    max_tokens:
        Of each reply; the API asks for it.
    prefill:
        Whether the model goes on with an answer that the last message begins; some refuse that, and are asked to.
        What it begins with must not end in blanks, which are left out.
    request:
        What else each request has: ``system``, ``stop_sequences``, ``extra_body``.
    """

    def __init__(
        self, client: Foreign, model: str, *, max_tokens: int = 4096, prefill: bool = True, **request: Foreign
    ) -> None:
        self._create = client.messages.create
        self._request = {**request, "model": model, "max_tokens": max_tokens, "stream": True}
        self._prefill = prefill

    def reply(self, prompt: str, text: str) -> Iterator[str] | AsyncIterator[str]:
        """What comes behind ``text`` in the answer to ``prompt``."""
        messages = [{"role": "user", "content": prompt}]
        if text.strip():
            messages.append({"role": "assistant", "content": text.rstrip()})
        if text.strip() and not self._prefill:
            messages.append({"role": "user", "content": GO_ON})
        return streamed(self._create(**self._request, messages=messages), _text)


def _text(event: Foreign) -> str:
    found = event.delta.text if event.type == "content_block_delta" and event.delta.type == "text_delta" else ""
    return str(found)
