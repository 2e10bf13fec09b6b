"""``transformers serve`` with OpenAI's ``response_format``: ``python -m structgen.integrations.transformers.serve``.

transformers 5.23 reads ``response_format`` and ignores it. Here the handler of ``/v1/chat/completions`` is replaced
by one that compiles it and hands ``generate`` a `LogitsProcessor`; everything else, command line included, is that of
``transformers serve``.

Requests with continuous batching, or with tools besides a format, are answered with an error, status 400, and so are
schemas that cannot be compiled: nothing is ignored in silence. A chat template that has the model reason before it
answers leaves no room for that: ``--reasoning off``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from importlib import import_module

from ...definitions import JsonSchema
from ...errors import DefinitionError, StructgenError
from ...runtime.index.index import Index
from ...system.locks import Lock, Rank
from ...system.types import Foreign, JsonMap
from ...vocabulary.token_table import eos_ids_of
from ...vocabulary.vocabulary import Vocabulary
from ..engine_names import check_engine
from ..requests import Indexes, Settings, indexes_with
from . import LogitsProcessor

#: Models whose indexes are kept, least recently used first to go.
_MOST_MODELS = 4


def schema_of(response_format: object) -> JsonSchema | None:
    """The definition that a request's ``response_format`` asks for; None for free text.

    ``{"type": "json_schema", "json_schema": {"name", "schema"}}`` as OpenAI has it; ``{"type": "json_object"}`` for
    any object. Raises `DefinitionError` for anything else.
    """
    given: JsonMap = response_format if isinstance(response_format, Mapping) else {}
    kind = given.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return JsonSchema({"type": "object"})
    described = given.get("json_schema") if kind == "json_schema" else None
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if not isinstance(schema, Mapping):
        raise DefinitionError(
            "the response_format is none that is known",
            remedy='Known are {"type": "text"}, {"type": "json_object"}, and {"type": "json_schema", "json_schema": '
            '{"name": ..., "schema": {...}}}.',
        )
    return JsonSchema(dict(schema))


class Formats:
    """The indexes that requests ask for, by model. Safe to use from several threads.

    Parameters
    ----------
    settings:
        The operator's; see `structgen.integrations.requests.SETTINGS`. Raises `DefinitionError` for wrong ones.
    """

    def __init__(self, settings: JsonMap) -> None:
        Settings.read(settings)
        self._settings = settings
        self._by_model: OrderedDict[str, Indexes] = OrderedDict()
        self._lock = Lock(Rank.REQUESTS)

    def index(self, schema: JsonSchema, model_id: str, model: Foreign, processor: Foreign) -> Index:
        """The index of a schema for a model: one of those that are kept, from the cache, or compiled under a budget.

        Raises what `structgen.integrations.requests.Indexes.of` does.
        """
        return self._indexes(model_id, model, processor).of(schema)

    def _indexes(self, model_id: str, model: Foreign, processor: Foreign) -> Indexes:
        with self._lock:
            found = self._by_model.get(model_id)
            if found is None:
                eos_ids = eos_ids_of(model.generation_config.eos_token_id) or None
                tokenizer = getattr(processor, "tokenizer", processor)
                vocabulary = Vocabulary.from_transformers(tokenizer, eos_ids=eos_ids)
                found = self._by_model[model_id] = indexes_with(vocabulary, self._settings)
            self._by_model.move_to_end(model_id)
            while len(self._by_model) > _MOST_MODELS:
                self._by_model.popitem(last=False)
        return found


def handler_class(settings: JsonMap | None = None) -> type[Foreign]:
    """``ChatCompletionHandler`` with ``response_format``; needs ``transformers[serving]``. See `Formats`."""
    from fastapi import HTTPException
    from transformers.cli.serving.chat_completion import ChatCompletionHandler

    check_engine("transformers.serve")
    #: The index for the request that is being answered, in its task.
    current: ContextVar[Index | None] = ContextVar("response_format", default=None)
    formats = Formats(settings or {})

    class Handler(ChatCompletionHandler):  # type: ignore[misc, unused-ignore]
        """The handler of ``/v1/chat/completions``, with ``response_format``."""

        _unused_fields = ChatCompletionHandler._unused_fields - {"response_format"}

        async def handle_request(self, body: dict[str, Foreign], request_id: str) -> Foreign:
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

        async def _index(self, body: dict[str, Foreign]) -> Index | None:
            schema = schema_of(body["response_format"]) if body.get("response_format") is not None else None
            if schema is None:
                return None
            if body.get("tools"):
                raise DefinitionError("a request has either tools or a response_format")
            model_id, model, processor = self._resolve_model(dict(body))
            modality = self.model_manager.get_model_modality(model, processor=processor)
            if self.generation_state.use_continuous_batching(model, modality):
                raise DefinitionError("it needs a server without continuous batching")
            return await asyncio.to_thread(formats.index, schema, model_id, model, processor)

        def _streaming(self, *arguments: Foreign, **options: Foreign) -> Foreign:
            return super()._streaming(*_masked(arguments, current.get()), **options)

        async def _non_streaming(self, *arguments: Foreign, **options: Foreign) -> Foreign:
            return await super()._non_streaming(*_masked(arguments, current.get()), **options)

    return Handler


def _masked(arguments: tuple[Foreign, ...], index: Index | None) -> tuple[Foreign, ...]:
    """The arguments of a handler's method, of which the fifth is what ``generate`` is called with."""
    if index is None:
        return arguments
    inputs = {**arguments[4], "logits_processor": [LogitsProcessor(index)]}
    return (*arguments[:4], inputs, *arguments[5:])


def main() -> None:
    """Run ``transformers serve``."""
    import typer
    from transformers.cli import serve

    chats: Foreign = import_module("transformers.cli.serving.chat_completion")
    chats.ChatCompletionHandler = handler_class()  # looked up there when the server is made
    app = typer.Typer()
    app.command()(serve.Serve)
    app()


if __name__ == "__main__":
    main()
