"""``transformers serve`` with OpenAI's ``response_format``: ``python -m structgen.integrations.transformers_serve``.

transformers 5.23 reads ``response_format`` and ignores it. Here the handler of ``/v1/chat/completions`` is replaced
by one that compiles it and hands ``generate`` a `LogitsProcessor`; everything else, command line included, is that of
``transformers serve``.

Requests with continuous batching, or with tools besides a format, are answered with an error, status 400, and so are
schemas that cannot be compiled: nothing is ignored in silence. A chat template that has the model reason before it
answers leaves no room for that: ``--reasoning off``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from ..api import compile
from ..budget import Budget
from ..definitions import JsonSchema
from ..errors import DefinitionError, StructgenError
from ..runtime.index import Index
from ..vocabulary.vocabulary import Vocabulary
from .transformers import LogitsProcessor

#: What a request may spend on compiling its schema.
BUDGET = Budget(states=100_000, memory=256 << 20, seconds=5.0, depth=500)


def schema_of(response_format: Any) -> JsonSchema | None:
    """The definition that a request's ``response_format`` asks for; None for free text.

    ``{"type": "json_schema", "json_schema": {"name", "schema"}}`` as OpenAI has it; ``{"type": "json_object"}`` for
    any object. Raises `DefinitionError` for anything else.
    """
    kind = response_format.get("type") if isinstance(response_format, Mapping) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return JsonSchema({"type": "object"})
    described = response_format.get("json_schema") if kind == "json_schema" else None
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if not isinstance(schema, Mapping):
        raise DefinitionError(
            "the response_format is none that is known",
            remedy='Known are {"type": "text"}, {"type": "json_object"}, and {"type": "json_schema", "json_schema": '
            '{"name": ..., "schema": {...}}}.',
        )
    return JsonSchema(dict(schema))


def handler_class() -> Any:
    """``ChatCompletionHandler`` with ``response_format``; needs ``transformers[serving]``."""
    from fastapi import HTTPException
    from transformers.cli.serving.chat_completion import ChatCompletionHandler

    #: The index for the request that is being answered, in its task.
    current: ContextVar[Index | None] = ContextVar("response_format", default=None)
    vocabularies: dict[str, Vocabulary] = {}

    def compiled(schema: JsonSchema, model_id: str, model: Any, processor: Any) -> Index:
        vocabulary = vocabularies.get(model_id)
        if vocabulary is None:
            ends = model.generation_config.eos_token_id
            vocabulary = vocabularies[model_id] = Vocabulary.from_transformers(
                getattr(processor, "tokenizer", processor),
                eos_ids=None if ends is None else [ends] if isinstance(ends, int) else ends,
            )
        return compile(schema, vocabulary, budget=BUDGET, eager=False)

    class Handler(ChatCompletionHandler):  # type: ignore[misc, unused-ignore]
        """The handler of ``/v1/chat/completions``, with ``response_format``."""

        _unused_fields = ChatCompletionHandler._unused_fields - {"response_format"}

        async def handle_request(self, body: dict[str, Any], request_id: str) -> Any:
            """Answer a request; with status 400 where its format cannot be honoured."""
            self._validate_request(body)
            try:
                index = await self._index(body)
            except StructgenError as error:
                raise HTTPException(status_code=400, detail=f"response_format: {error}") from error
            token = current.set(index)
            try:
                return await super().handle_request(body, request_id)
            finally:
                current.reset(token)

        async def _index(self, body: dict[str, Any]) -> Index | None:
            schema = schema_of(body["response_format"]) if body.get("response_format") is not None else None
            if schema is None:
                return None
            if body.get("tools"):
                raise DefinitionError("a request has either tools or a response_format")
            model_id, model, processor = self._resolve_model(dict(body))
            modality = self.model_manager.get_model_modality(model, processor=processor)
            if self.generation_state.use_continuous_batching(model, modality):
                raise DefinitionError("it needs a server without continuous batching")
            return await asyncio.to_thread(compiled, schema, model_id, model, processor)

        def _streaming(self, request_id: str, model: Any, processor: Any, model_id: str, inputs: Any, *rest: Any,
                       **options: Any) -> Any:  # fmt: skip
            inputs = _with(inputs, current.get())
            return super()._streaming(request_id, model, processor, model_id, inputs, *rest, **options)

        async def _non_streaming(self, request_id: str, model: Any, processor: Any, model_id: str, inputs: Any,
                                 *rest: Any, **options: Any) -> Any:  # fmt: skip
            inputs = _with(inputs, current.get())
            return await super()._non_streaming(request_id, model, processor, model_id, inputs, *rest, **options)

    return Handler


def _with(inputs: Any, index: Index | None) -> Any:
    """What ``generate`` is called with."""
    return inputs if index is None else {**inputs, "logits_processor": [LogitsProcessor(index)]}


def main() -> None:
    """Run ``transformers serve``."""
    import typer
    from transformers.cli import serve

    chats: Any = import_module("transformers.cli.serving.chat_completion")
    chats.ChatCompletionHandler = handler_class()  # looked up there when the server is made
    app = typer.Typer()
    app.command()(serve.Serve)
    app()


if __name__ == "__main__":
    main()
