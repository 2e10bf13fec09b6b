"""A server's process for each engine: its adapter, asked for definitions that nobody may compile there.

``python -m fakes.serving FOLDER TOKENIZER EXTRA ENGINE...``: the definitions of `DEFINITIONS` in a folder, a
tokenizer as ``structgen warm`` takes it, ids by which the model's logits are wider, engines. The settings are the
operator's, from the environment. Prints, by engine and question, ``"hit"`` or the error, as JSON.
"""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structgen as sg
from fakes import fake_outlines, fake_sglang, fake_tensorrt_llm, fake_vllm
from fakes.fake_modules import fake_modules

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "find", "parameters": {
        "type": "object", "properties": {"place": {"type": "string"}, "most": {"type": "integer"}},
        "required": ["place"], "additionalProperties": False,
    }}},
]  # fmt: skip
PERSON: Any = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "tags": {"type": "array"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
UNKNOWN: Any = {"type": "object", "properties": {"unknown": {"type": "null"}}}
WORDS = ["yes", "no", "may be"]
LARK = 'start: number ("+" number)*\nnumber: /[0-9]+/\n'
LIST = 'root ::= "- " [a-z]+ ("\\n- " [a-z]+)*\n'
DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
TAG = sg.tool_calls(TOOLS, "hermes", reasoning="auto").text

#: Tools whose schema holds where the operator says so, and a manifest for the engines that are asked for tools.
LOOSE_TOOLS: Any = [{**TOOLS[0], "function": {**TOOLS[0]["function"], "name": "ask", "strict": False}}]
ASKED = """for = ["vllm", "transformers", "llama-cpp", "mlx", "onnxruntime-genai"]
[definitions]
required = { file = "../ask.tools.json", style = "hermes", tool_choice = "required" }
"""

#: What a build step is given, by name of the file.
DEFINITIONS = {
    "person.json": json.dumps(PERSON, indent=2), "date.regex": DATE + "\n", "answer.words": "\n".join(WORDS),
    "sum.lark": LARK, "list.gbnf": LIST, "calls.tag.json": TAG,
    "asked.toml": ASKED, "../ask.tools.json": json.dumps(LOOSE_TOOLS),
}  # fmt: skip

#: The same as requests, and one that nobody has compiled.
REQUESTS: dict[str, Any] = {
    "json": {"json_schema": PERSON}, "regex": {"regex": DATE}, "choice": {"choice": WORDS},
    "grammar": {"grammar": LARK}, "gbnf": {"gbnf": LIST}, "tag": {"structural_tag": TAG},
    "tools": {"tools": TOOLS, "style": "hermes", "reasoning": "auto"},
    "tools required": {"tools": LOOSE_TOOLS, "style": "hermes", "tool_choice": "required"},
    "unknown": {"json_schema": UNKNOWN},
}  # fmt: skip

#: As engines have them that have definitions as texts.
TEXTS = {
    "json": ("JSON", json.dumps(PERSON)), "regex": ("REGEX", DATE), "grammar": ("EBNF", LARK),
    "gbnf": ("EBNF", LIST), "tag": ("STRUCTURAL_TAG", TAG), "unknown": ("JSON", json.dumps(UNKNOWN)),
}  # fmt: skip

GuideType = enum.Enum("GuideType", "JSON_SCHEMA REGEX EBNF_GRAMMAR STRUCTURAL_TAG")

Questions = Iterator[tuple[str, Callable[[], object]]]


class Model:
    """What adapters are handed: the tokenizer, and how wide its logits are."""

    def __init__(self, tokenizer: Any, extra: int) -> None:
        self.tokenizer = tokenizer
        self.width = sg.Vocabulary.from_transformers(tokenizer).size + extra
        self.eos_ids = [tokenizer.eos_token_id, *([tokenizer.eos_token_id + 1] if extra else [])]

    def get_vocab_size(self) -> int:
        return self.width

    def try_get_generation_config(self) -> Any:
        return {"eos_token_id": self.eos_ids}


def _vllm(model: Model) -> Questions:
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions as Options

    from structgen.integrations import vllm, vllm_backend

    config = SimpleNamespace(
        model_config=model,
        additional_config=None,
        structured_outputs_config=SimpleNamespace(disable_any_whitespace=False),
    )
    backend = vllm_backend.StructgenBackend(config, model.tokenizer, model.width)
    names = {"EBNF": "GRAMMAR"}
    texts = {**TEXTS, "choice": ("CHOICE", json.dumps(WORDS))}
    for name, (kind, text) in texts.items():
        option = Options[names.get(kind, kind)]
        yield name, lambda option=option, text=text: backend.compile_grammar(option, text)  # type: ignore[misc]
    vllm._tokenizer_of = lambda model_config: model.tokenizer
    processor = vllm.StructgenLogitsProcessor(config, None)
    for name, request in REQUESTS.items():
        yield f"processor: {name}", lambda request=request: processor._indexes.of(request)  # type: ignore[misc]


def _sglang(model: Model) -> Questions:
    from structgen.integrations import sglang

    backend: Any = sglang.create_backend(None, model.tokenizer, model.width, model.eos_ids)

    def ask(kind: str, text: str) -> None:
        grammar = getattr(backend, f"dispatch_{kind.lower()}")(text)
        if isinstance(grammar, fake_sglang.InvalidGrammarObject):
            raise sg.Error(grammar.error_message)

    for name, (kind, text) in TEXTS.items():
        yield name, lambda kind=kind, text=text: ask(kind, text)  # type: ignore[misc]


def _tensorrt_llm(model: Model) -> Questions:
    from structgen.integrations import tensorrt_llm

    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    config = SimpleNamespace(tokenizer_str=backend and backend.to_str(), stop_token_ids=model.eos_ids)
    tokenizer = None if backend else SimpleNamespace(tokenizer=model.tokenizer)
    factory = tensorrt_llm.StructgenMatcherFactory(config, model.width, tokenizer=tokenizer)
    names = {"JSON": "JSON_SCHEMA", "EBNF": "EBNF_GRAMMAR"}
    for name, (kind, text) in TEXTS.items():
        params = SimpleNamespace(guide_type=GuideType[names.get(kind, kind)], guide=text)
        yield name, lambda params=params: factory.create(params)  # type: ignore[misc]


def _program(engine: str, vocabulary: sg.Vocabulary, processor: Callable[[sg.Index], object]) -> Questions:
    """What a program asks for over an engine, with the operator's settings."""
    from structgen.integrations.requests import indexes_for

    indexes = indexes_for(engine, vocabulary)
    for name, request in REQUESTS.items():
        yield name, lambda request=request: processor(indexes.of(request))  # type: ignore[misc]


def _transformers(model: Model) -> Questions:
    from structgen.integrations.transformers import LogitsProcessor
    from structgen.integrations.transformers.serve import Formats, definition_of

    vocabulary = sg.Vocabulary.from_transformers(model.tokenizer, eos_ids=model.eos_ids)
    yield from _program("transformers", vocabulary, LogitsProcessor)
    from structgen.integrations.settings import settings_for

    loaded = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=model.eos_ids))

    def ask(body: Any, prompt: str, **settings: str) -> None:
        formats = Formats(settings_for("transformers", settings))
        definition = definition_of(body, model.tokenizer, lambda: prompt, formats.door)
        assert definition is not None
        formats.index(definition, "a model", loaded, model.tokenizer)

    tag = {"response_format": {"type": "structural_tag", "format": json.loads(TAG)}}
    yield "serve: tag", lambda: ask(tag, "")
    yield "serve: tools", lambda: ask({"tools": TOOLS}, "", tool_style="hermes")
    for prompt in ("", "<think>", "<think>\n\n</think>"):
        required = {"tools": LOOSE_TOOLS, "tool_choice": "required", "parallel_tool_calls": True}
        yield (
            f"serve after {prompt!r}: tools",
            lambda prompt=prompt, required=required: ask(  # type: ignore[misc]
                required, prompt, tool_style="hermes"
            ),
        )
    for name, schema in {"json": PERSON, "unknown": UNKNOWN}.items():
        body = {"response_format": {"type": "json_schema", "json_schema": {"name": "it", "schema": schema}}}
        for prompt in ("", "<think>", "<think>\n\n</think>"):
            yield (
                f"serve after {prompt!r}: {name}",
                lambda body=body, prompt=prompt: ask(  # type: ignore[misc]
                    body, prompt
                ),
            )


def _llama_cpp(model: Model) -> Questions:
    from fakes.fake_llama_cpp import FakeLlama
    from structgen.integrations.llama_cpp import LogitsProcessor, tokens

    llama = FakeLlama(0)
    tokens._vocabularies[llama] = sg.Vocabulary.from_transformers(model.tokenizer, eos_ids=model.eos_ids)
    yield from _program("llama-cpp", tokens.vocabulary(llama), lambda index: LogitsProcessor(index, llama))


def _mlx(model: Model) -> Questions:
    from structgen.integrations.mlx_lm import LogitsProcessor, vocabulary

    wrapper = SimpleNamespace(_tokenizer=model.tokenizer, eos_token_ids=set(model.eos_ids))
    yield from _program("mlx", vocabulary(wrapper), LogitsProcessor)


def _onnxruntime_genai(model: Model) -> Questions:
    from fakes.fake_onnxruntime_genai import FakeGenerator
    from structgen.integrations.onnxruntime_genai import GuidedGenerator

    vocabulary = sg.Vocabulary.from_transformers(model.tokenizer, eos_ids=model.eos_ids)
    generator = FakeGenerator([[1]])
    yield from _program("onnxruntime-genai", vocabulary, lambda index: GuidedGenerator(generator, index))


def _outlines(model: Model) -> Questions:
    from structgen.integrations.outlines import backend

    made = backend(_OverTransformers(model.tokenizer))
    yield "json", lambda: made.get_json_schema_logits_processor(json.dumps(PERSON))
    yield "regex", lambda: made.get_regex_logits_processor(DATE)
    yield "grammar", lambda: made.get_cfg_logits_processor(LARK)
    yield "unknown", lambda: made.get_json_schema_logits_processor(json.dumps(UNKNOWN))


class _OverTransformers:
    """An Outlines model over one of transformers."""

    tensor_library_name = "torch"

    def __init__(self, tokenizer: Any) -> None:
        self.hf_tokenizer = tokenizer
        self.model: Any = SimpleNamespace(generation_config=None)


ENGINES: dict[str, Callable[[Model], Questions]] = {
    "vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _tensorrt_llm, "transformers": _transformers,
    "llama-cpp": _llama_cpp, "mlx": _mlx, "onnxruntime-genai": _onnxruntime_genai, "outlines": _outlines,
}  # fmt: skip


def tokenizer_of(spec: str) -> Any:
    """As an engine loads it, beside ``structgen warm -t SPEC``."""
    import transformers

    if spec == "tekken":
        from structgen.vocabulary.tekken import _newest_shipped

        kind: Any = transformers
        kind = getattr(kind, "MistralCommonBackend", None) or kind.MistralCommonTokenizer
        return kind(tokenizer_path=str(_newest_shipped()))
    return transformers.AutoTokenizer.from_pretrained(spec)


def main(folder: str, tokenizer: str, extra: str, *engines: str) -> None:
    model = Model(tokenizer_of(tokenizer), int(extra))
    found: dict[str, dict[str, str]] = {}
    with ExitStack() as stack:
        for fake in (fake_vllm, fake_sglang, fake_tensorrt_llm, fake_outlines):
            stack.enter_context(fake_modules(fake.MODULES))
        for engine in engines:
            answers = found[engine] = {}
            for name, ask in ENGINES[engine](model):
                try:
                    ask()
                    answers[name] = "hit"
                except sg.Error as error:
                    answers[name] = str(error)
    Path(folder, "answers.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
