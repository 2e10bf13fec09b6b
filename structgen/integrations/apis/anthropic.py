"""Models behind Anthropic's Messages API, for `structgen.correct`; see `structgen.integrations.apis.openai`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from ...system.types import Foreign
from .openai import GO_ON, streamed


class MessagesModel:
    """A model behind Anthropic's ``/v1/messages``, for `structgen.correct`.

    Parameters
    ----------
    client:
        An ``anthropic.Anthropic``, or an ``anthropic.AsyncAnthropic`` for `structgen.acorrect`.
    model:
        The name of the model.
    max_tokens:
        The most tokens of each reply, which the API requires.
    prefill:
        Whether the model continues an answer that the last message begins. Models that refuse this are asked to
        continue instead. Trailing whitespace of the answer is left out.
    request:
        Other fields of each request: ``system``, ``stop_sequences``, ``extra_body``.
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
