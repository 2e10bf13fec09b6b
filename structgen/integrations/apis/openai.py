"""Models behind the OpenAI protocol, for `structgen.correct`: OpenAI's own, and those of vLLM, llama.cpp, Ollama.

>>> from openai import OpenAI  # doctest: +SKIP
>>> model = ChatModel(OpenAI(base_url="http://localhost:8000/v1"), "my-model", temperature=0)  # doctest: +SKIP
>>> structgen.correct(model, definition, "What is asked")  # doctest: +SKIP

Replies are streamed, and closed where their text goes wrong. Retries, rate limits and time-outs are the client's.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from copy import copy
from typing import TypeVar

from ...system.types import Foreign

M = TypeVar("M")

#: What a model is asked that can't be made to continue an answer: in a message behind what it has of its answer.
GO_ON = (
    "Your answer was cut off. Go on exactly where it ends, with the next character. Repeat nothing of it, "
    "explain nothing, and open no fence."
)


class ChatModel:
    """A model behind OpenAI's ``/v1/chat/completions``, for `structgen.correct`.

    Parameters
    ----------
    client:
        An ``openai.OpenAI``, or an ``openai.AsyncOpenAI`` for `structgen.acorrect`.
    model:
        The name of the model.
    system:
        A system message.
    prefill:
        Whether the server continues an answer that the last message begins. llama.cpp's server does; vLLM's and
        SGLang's do with ``extra_body={"continue_final_message": True, "add_generation_prompt": False}``. Otherwise
        the model is asked to continue: ``transformers serve`` and llama-cpp-python begin another answer.
    request:
        Other fields of each request: ``temperature``, ``max_tokens``, ``seed``, ``extra_body``.
    """

    takes = frozenset({"temperature", "seed"})

    def __init__(
        self, client: Foreign, model: str, *, system: str = "", prefill: bool = False, **request: Foreign
    ) -> None:
        self._create = client.chat.completions.create
        self._request = {**request, "model": model, "stream": True}
        self._system, self._prefill = system, prefill

    def sampled(self, **options: float) -> ChatModel:
        """The same with a temperature, or a seed, in each request."""
        return _with_request(self, options)

    def reply(self, prompt: str, text: str) -> Iterator[str] | AsyncIterator[str]:
        """What comes behind ``text`` in the answer to ``prompt``."""
        messages = [{"role": "system", "content": self._system}] if self._system else []
        messages.append({"role": "user", "content": prompt})
        if text:
            messages.append({"role": "assistant", "content": text})
        if text and not self._prefill:
            messages.append({"role": "user", "content": GO_ON})
        return streamed(self._create(**self._request, messages=messages), _delta)


class CompletionModel:
    """A model behind OpenAI's ``/v1/completions``, which continues any text, for `structgen.correct`.

    Parameters
    ----------
    client:
        As in `ChatModel`.
    model:
        The name of the model.
    request:
        Other fields of each request, as in `ChatModel`.
    """

    takes = frozenset({"temperature", "seed"})

    def __init__(self, client: Foreign, model: str, **request: Foreign) -> None:
        self._create = client.completions.create
        self._request = {**request, "model": model, "stream": True}

    def sampled(self, **options: float) -> CompletionModel:
        """The same with a temperature, or a seed, in each request."""
        return _with_request(self, options)

    def reply(self, prompt: str, text: str) -> Iterator[str] | AsyncIterator[str]:
        """What comes behind ``text`` in the answer to ``prompt``."""
        return streamed(self._create(**self._request, prompt=prompt + text), _text)


def _delta(chunk: Foreign) -> str:
    return (chunk.choices[0].delta.content or "") if chunk.choices else ""


def _text(chunk: Foreign) -> str:
    return (chunk.choices[0].text or "") if chunk.choices else ""


def _with_request(model: M, options: dict[str, float]) -> M:
    """A model with more in each of its requests."""
    twin = copy(model)
    vars(twin)["_request"] = vars(model)["_request"] | options
    return twin


def streamed(stream: Foreign, text_of: Callable[[Foreign], str]) -> Iterator[str] | AsyncIterator[str]:
    """The texts of a stream's chunks, which is closed with the iterator. It may have to be awaited."""
    return _later(stream, text_of) if inspect.isawaitable(stream) else _now(stream, text_of)


def _now(stream: Foreign, text_of: Callable[[Foreign], str]) -> Iterator[str]:
    with stream:
        yield from map(text_of, stream)


async def _later(stream: Foreign, text_of: Callable[[Foreign], str]) -> AsyncIterator[str]:
    async with await stream as chunks:
        async for chunk in chunks:
            yield text_of(chunk)
