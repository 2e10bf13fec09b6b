"""``transformers serve`` with tools and formats: ``python -m structgen.integrations.transformers.serve``.

transformers 5.24 renders a request's ``tools`` into the prompt, and reads calls back for models with a response
template; ``tool_choice``, ``parallel_tool_calls`` and ``response_format`` it ignores, and nothing keeps a reply to
the tools. Here the handler of ``/v1/chat/completions`` is replaced by one that compiles what is asked for, hands
``generate`` a `LogitsProcessor`, and reads replies with tools or reasoning by a `ToolCallReader`, and that of
``/v1/responses`` by one that refuses these; everything else, command line included, is that of
``transformers serve``.

What cannot be honoured is answered with an error, status 400: nothing is ignored in silence. Settings are JSON in
``STRUCTGEN_TRANSFORMERS``, or in the operator's file; see `structgen.integrations.settings`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module

from ...budget import Cancel
from ...definitions import Definition, StructuralTag
from ...definitions.structural_tag import STRUCTURAL_TAG
from ...errors import DefinitionError, StructgenError, UnsupportedError
from ...replies.reader import ToolCallReader
from ...runtime.index.index import Index
from ...system.locks import Lock, Rank
from ...system.types import Foreign, JsonMap
from ...tools import ToolStyle, behind_reasoning, detect_tool_style, reasoning_after, tool_style
from ...vocabulary.token_table import eos_ids_of
from ...vocabulary.vocabulary import Vocabulary
from ..engine_names import check_engine
from ..engines import Door, door
from ..requests import Indexes, Named, indexes_with, read_request, read_response_format
from ..settings import Settings, settings_for, variable_of
from . import LogitsProcessor
from .token_stream import TokenStream

#: The environment variable with the settings, a JSON object.
SETTINGS_VARIABLE = variable_of("transformers")

#: Models whose indexes are kept, least recently used first to go.
_MOST_MODELS = 4

#: The number of this server among the doors of transformers.
_SERVE = 1

#: What of a request is honoured here, and ignored by transformers.
_FIELDS = {"response_format", "tool_choice", "parallel_tool_calls"}


def definition_of(body: JsonMap, processor: Foreign, prompt: Callable[[], str], at: Door) -> Definition | None:
    """What a request asks for; None for free text.

    Parameters
    ----------
    body:
        The request.
    processor:
        Of the model: a tokenizer, or what has one, with a chat template.
    prompt:
        Gives the rendered prompt, which may have begun the reasoning.
    at:
        That of the server, with the operator's settings.

    Raises
    ------
    DefinitionError
        For formats, tools and choices that are malformed, and tools together with a format.
    """
    style = at.settings.tool_style
    wanted = read_response_format(body.get("response_format"), at)
    tools, choice, parallel = body.get("tools"), body.get("tool_choice"), body.get("parallel_tool_calls")
    if tools in (None, []) and choice in (None, "auto", "none"):
        return wanted if wanted is None else _behind_reasoning(wanted, processor, prompt, style)
    if wanted is not None:
        raise DefinitionError("a request has either tools or a response_format", remedy="Leave one of them out.")
    if parallel is not None and not isinstance(parallel, bool):
        raise DefinitionError(f"parallel_tool_calls is true or false, got {parallel!r}")
    found = _style_of(processor, style)
    request = {"tools": [] if tools is None else tools, "style": found, "tool_choice": choice}
    request |= {"parallel": parallel is not False, "reasoning": reasoning_after(prompt(), found)}
    calls = read_request(request, at)
    assert not isinstance(calls, Named)
    return calls


def _style_of(processor: Foreign, style: str) -> ToolStyle:
    """The style of a model's replies. Raises `DefinitionError` for templates of none that is known."""
    templated = processor if getattr(processor, "chat_template", None) else getattr(processor, "tokenizer", processor)
    return detect_tool_style(templated) if style == "auto" else tool_style(style)


def _behind_reasoning(wanted: Definition, processor: Foreign, prompt: Callable[[], str], style: str) -> Definition:
    """A format behind the reasoning that the prompt leaves room for; a structural tag describes all of a reply."""
    if isinstance(wanted, StructuralTag):
        return wanted
    try:
        found = _style_of(processor, style)
    except DefinitionError:  # the template of no style, so of no reasoning that is known
        return wanted
    reasoning = reasoning_after(prompt(), found)
    return (behind_reasoning(wanted, found, reasoning) if reasoning else None) or wanted


class Formats:
    """The indexes that requests ask for, by model. Safe to use from several threads.

    Parameters
    ----------
    settings:
        The operator's; see `structgen.integrations.settings`. Raises `DefinitionError` for wrong ones.
    """

    def __init__(self, settings: JsonMap | Settings) -> None:
        self.settings = Settings.read(settings)
        self.door = door("transformers", self.settings, _SERVE)
        self._by_model: OrderedDict[str, Indexes] = OrderedDict()
        self._lock = Lock(Rank.REQUESTS)

    def index(
        self, definition: Definition, model_id: str, model: Foreign, processor: Foreign, cancel: Cancel | None = None
    ) -> Index:
        """A definition's index for a model: one of those that are kept, from the cache, or compiled under a budget.

        Takes ``cancel``, and raises, as `structgen.integrations.requests.Indexes.of` does.
        """
        return self._indexes(model_id, model, processor).of(definition, cancel)

    def _indexes(self, model_id: str, model: Foreign, processor: Foreign) -> Indexes:
        with self._lock:
            found = self._by_model.get(model_id)
            if found is None:
                eos_ids = eos_ids_of(model.generation_config.eos_token_id) or None
                # Some tokenizers have one inside, as processors of other inputs have.
                is_tokenizer = hasattr(processor, "convert_ids_to_tokens")
                tokenizer = processor if is_tokenizer else getattr(processor, "tokenizer", processor)
                vocabulary = Vocabulary.from_transformers(tokenizer, eos_ids=eos_ids)
                found = self._by_model[model_id] = indexes_with(vocabulary, self.settings, self.door)
            self._by_model.move_to_end(model_id)
            while len(self._by_model) > _MOST_MODELS:
                self._by_model.popitem(last=False)
        return found


@dataclass(frozen=True)
class _Reply:
    """What masks a reply, and what reads it; None where transformers does."""

    masks: LogitsProcessor | None = None
    reader: ToolCallReader | None = None


_FREE = _Reply()


def handler_class(settings: JsonMap | Settings | None = None) -> type[Foreign]:
    """``ChatCompletionHandler`` with tools and formats; needs ``transformers[serving]``. See `Formats`."""
    from fastapi import HTTPException
    from fastapi.responses import JSONResponse, StreamingResponse
    from transformers.cli.serving.chat_completion import ChatCompletionHandler

    check_engine("transformers.serve")
    #: Of the request that is being answered, in its task.
    current: ContextVar[_Reply] = ContextVar("reply", default=_FREE)
    formats = Formats(settings or {})

    class Handler(ChatCompletionHandler):  # type: ignore[misc, unused-ignore]
        """The handler of ``/v1/chat/completions``, with ``tools``, ``tool_choice`` and ``response_format``."""

        _unused_fields = ChatCompletionHandler._unused_fields - _FIELDS

        async def handle_request(self, body: dict[str, Foreign], request_id: str) -> Foreign:
            """Answer a request; with status 400 where what it asks for cannot be honoured."""
            self._validate_request(body)
            try:
                reply = await self._reply(body)
            except StructgenError as error:
                field = "response_format" if body.get("tools") is None else "tools"
                raise HTTPException(status_code=400, detail=f"{field}: {error}") from error
            token = current.set(reply)
            try:
                return await super().handle_request(body, request_id)
            finally:
                current.reset(token)

        async def _reply(self, body: dict[str, Foreign]) -> _Reply:
            if not body.keys() & {"tools", *_FIELDS}:
                return _FREE
            gone = threading.Event()
            model_id, model, processor = self._resolve_model(dict(body))
            modality = self.model_manager.get_model_modality(model, processor=processor)
            messages = self.get_processor_inputs_from_messages(body["messages"], modality)

            def prompt() -> str:
                options = {**self.chat_template_kwargs, **body.get("chat_template_kwargs", {})}
                text: Foreign = processor.apply_chat_template(
                    messages, add_generation_prompt=True, tools=body.get("tools"), tokenize=False, **options
                )
                return str(text)

            def masked() -> _Reply:
                definition = definition_of(body, processor, prompt, formats.door)
                if definition is None:
                    return _FREE
                if self.generation_state.use_continuous_batching(model, modality):
                    raise DefinitionError("it needs a server without continuous batching")
                index = formats.index(definition, model_id, model, processor, gone)
                most = self._build_generation_config(body, model.generation_config).max_new_tokens
                masks = LogitsProcessor(index, max_tokens=most if formats.settings.max_tokens else None)
                described = body.get("response_format") or {}
                if not isinstance(definition, StructuralTag) or described.get("type") == STRUCTURAL_TAG:
                    return _Reply(masks)
                return _Reply(masks, ToolCallReader(definition, index.vocabulary, budget=formats.settings.budget))

            try:
                return await asyncio.to_thread(masked)
            finally:
                gone.set()  # where the task was cancelled

        def _streaming(
            self, request_id: str, model: Foreign, processor: Foreign, model_id: str, inputs: Foreign,
            gen_config: Foreign, gen_manager: Foreign, tools: Foreign = None,
        ) -> Foreign:  # fmt: skip
            reply, inputs = current.get(), _masked(inputs, current.get())
            if reply.reader is None:
                return super()._streaming(
                    request_id, model, processor, model_id, inputs, gen_config, gen_manager=gen_manager, tools=tools
                )
            chunks = self._chunks(request_id, model, processor, model_id, inputs, gen_config, gen_manager, reply.reader)
            return StreamingResponse(chunks, media_type="text/event-stream")

        async def _chunks(
            self, request_id: str, model: Foreign, processor: Foreign, model_id: str, inputs: Foreign,
            gen_config: Foreign, gen_manager: Foreign, reader: ToolCallReader,
        ) -> AsyncIterator[str]:  # fmt: skip
            stream = TokenStream()
            options = {"generation_mode": "text"} if hasattr(model, "has_talker") else {}

            def run() -> None:
                try:
                    model.generate(
                        **inputs, **options, streamer=stream, generation_config=gen_config, tokenizer=processor
                    )
                except Exception as error:
                    stream.fail(error)

            def chunk(**delta: Foreign) -> str:
                text: str = self._build_chunk_sse(request_id, model=model_id, **delta)
                return text

            gen_manager.submit(run)
            try:
                yield chunk(role="assistant")
                async for tokens in stream.tokens():
                    for event in reader.feed(tokens):
                        if event.delta:
                            yield chunk(**event.delta)
                for event in reader.close(cut_off=not reader.is_complete()):
                    if event.delta:
                        yield chunk(**event.delta)
                usage = _usage(inputs, stream.count)
                yield chunk(finish_reason=_finish(reader, stream.count, gen_config), usage=usage)
            except Exception as error:  # as transformers tells it, whatever it is
                yield f"data: {json.dumps({'error': str(error)})}\n\n"
            finally:
                stream.cancel()

        async def _non_streaming(
            self, request_id: str, model: Foreign, processor: Foreign, model_id: str, inputs: Foreign,
            gen_config: Foreign, gen_manager: Foreign, tools: Foreign = None,
        ) -> Foreign:  # fmt: skip
            reply, inputs = current.get(), _masked(inputs, current.get())
            if reply.reader is None:
                return await super()._non_streaming(
                    request_id, model, processor, model_id, inputs, gen_config, gen_manager=gen_manager, tools=tools
                )
            _, _, ids = await gen_manager.generate_non_streaming(
                model, processor, inputs, gen_config, request_id=request_id
            )
            reader = reply.reader
            reader.feed(ids.tolist())
            reader.close(cut_off=not reader.is_complete())
            said = reader.message()
            content: Foreign = said["content"] or None
            completion = self._build_completion(
                request_id, content, model_id, finish_reason=_finish(reader, len(ids), gen_config),
                usage=_usage(inputs, len(ids)), tool_calls=said.get("tool_calls"),
                reasoning_content=said.get("reasoning_content"),
            )  # fmt: skip
            return JSONResponse(completion, media_type="application/json")

    return Handler


def responses_class() -> type[Foreign]:
    """``ResponseHandler``, with an error for tools and formats, which are of ``/v1/chat/completions`` here."""
    from fastapi import HTTPException
    from transformers.cli.serving.response import ResponseHandler

    class Handler(ResponseHandler):  # type: ignore[misc, unused-ignore]
        """The handler of ``/v1/responses``, for free text."""

        async def handle_request(self, body: dict[str, Foreign], request_id: str) -> Foreign:
            """Answer a request; with status 400 where it asks for more than free text."""
            text = body.get("text")
            described = text.get("format") if isinstance(text, dict) else None
            asked = {"tools": body.get("tools"), "tool_choice": body.get("tool_choice") not in (None, "auto", "none")}
            asked["text.format"] = described not in (None, {"type": "text"})
            for field in (field for field, value in asked.items() if value):
                what = f"{field}: no reply of /v1/responses is kept to what it says"
                error = UnsupportedError(what, remedy="Ask /v1/chat/completions.")
                raise HTTPException(status_code=400, detail=str(error))
            return await super().handle_request(body, request_id)

    return Handler


class CancelGone:
    """Cancels the task of a request whose client goes away before its answer begins. Around an ASGI application."""

    def __init__(self, app: Foreign) -> None:
        self.app = app

    async def __call__(self, scope: JsonMap, receive: Foreign, send: Foreign) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        messages: asyncio.Queue[JsonMap] = asyncio.Queue()
        has_begun = False

        async def begin(message: JsonMap) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        async def watch() -> None:
            message: JsonMap = {}
            while message.get("type") != "http.disconnect":
                messages.put_nowait(message := await receive())
            if not has_begun:
                answer.cancel()

        answer = asyncio.ensure_future(self.app(scope, messages.get, begin))
        watcher = asyncio.ensure_future(watch())
        try:
            await asyncio.wait([answer])
            if not answer.cancelled():
                answer.result()
        finally:
            answer.cancel()
            watcher.cancel()


def _masked(inputs: Foreign, reply: _Reply) -> Foreign:
    """What ``generate`` is called with."""
    return inputs if reply.masks is None else {**inputs, "logits_processor": [reply.masks]}


def _finish(reader: ToolCallReader, count: int, gen_config: Foreign) -> str:
    """OpenAI's ``finish_reason``."""
    if "tool_calls" in reader.message():
        return "tool_calls"
    return "stop" if gen_config.max_new_tokens is None or count < gen_config.max_new_tokens else "length"


def _usage(inputs: Foreign, count: int) -> Foreign:
    """OpenAI's ``usage``."""
    before: int = inputs["input_ids"].shape[-1]
    return {"prompt_tokens": before, "completion_tokens": count, "total_tokens": before + count}


def main() -> None:
    """Run ``transformers serve``."""
    import typer
    from transformers.cli import serve

    chats: Foreign = import_module("transformers.cli.serving.chat_completion")
    responses: Foreign = import_module("transformers.cli.serving.response")
    server: Foreign = import_module("transformers.cli.serving.server")
    build = server.build_server

    def build_server(*arguments: Foreign, **options: Foreign) -> Foreign:
        app = build(*arguments, **options)
        app.add_middleware(CancelGone)
        return app

    # Looked up there when the server is made.
    server.build_server = build_server
    chats.ChatCompletionHandler = handler_class(settings_for("transformers"))
    responses.ResponseHandler = responses_class()
    app = typer.Typer()
    app.command()(serve.Serve)
    app()


if __name__ == "__main__":
    main()
