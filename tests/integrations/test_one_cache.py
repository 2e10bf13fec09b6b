"""The servers' integrations beside one another: one cache of indexes, one budget, typed errors."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import fake_sglang, fake_tensorrt_llm, fake_vllm
from fakes.fake_modules import fake_modules
from judges.guides import EACH_BYTE

import structgen as sg
from structgen import errors

pytest.importorskip("torch")

EOS, WIDTH = 256, 288
VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, None], eos_ids=[EOS], size=WIDTH)
TAG = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]"}, "end": "</f>"}
SHAPE = {"type": "structural_tag", "format": TAG}

#: What a server's own call makes of a structural tag, as text: an index, or an error.
Server = Callable[[str], sg.Index]


@pytest.fixture(scope="module", autouse=True)
def _engines() -> Iterator[None]:
    integrations = "structgen.integrations."
    with ExitStack() as stack:
        for fake, *users in (
            (fake_vllm, "vllm", "vllm_backend"),
            (fake_sglang, "sglang"),
            (fake_tensorrt_llm, "tensorrt_llm"),
        ):
            stack.enter_context(fake_modules(fake.MODULES, *(integrations + user for user in users)))
        yield


def of_vllm_backend(settings: dict[str, Any], patch: pytest.MonkeyPatch) -> Server:
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    from structgen.integrations import vllm_backend

    patch.setattr(vllm_backend, "vocabulary_of", lambda model, tokenizer: VOCABULARY)
    config = SimpleNamespace(
        model_config=None,
        additional_config={"structgen": settings},
        structured_outputs_config=SimpleNamespace(disable_any_whitespace=False),
    )
    backend = vllm_backend.StructgenBackend(config, None, WIDTH)
    return lambda text: backend.compile_grammar(StructuredOutputOptions.STRUCTURAL_TAG, text)._matcher.index


def of_vllm_processor(settings: dict[str, Any], patch: pytest.MonkeyPatch) -> Server:
    import torch

    from structgen.integrations import vllm

    patch.setattr(vllm, "vocabulary_of", lambda model, tokenizer: VOCABULARY)
    patch.setattr(vllm, "_tokenizer_of", lambda model: None)
    model = SimpleNamespace(get_vocab_size=lambda: WIDTH)
    config = SimpleNamespace(model_config=model, additional_config={"structgen": settings})
    processor = vllm.StructgenLogitsProcessor(config, torch.device("cpu"))
    return lambda text: processor._indexes.of({"structural_tag": text})


def of_sglang(settings: dict[str, Any], patch: pytest.MonkeyPatch) -> Server:
    from structgen.integrations import sglang

    patch.setenv(sglang.SETTINGS_VARIABLE, json.dumps(settings))
    patch.setattr(sg.Vocabulary, "from_transformers", lambda *_, **__: VOCABULARY)
    backend: Any = sglang.create_backend(None, None, WIDTH, EOS)

    def index(text: str) -> sg.Index:
        grammar = backend.dispatch_structural_tag(text)
        if isinstance(grammar, fake_sglang.InvalidGrammarObject):
            raise errors.StructgenError(grammar.error_message)
        return grammar._matcher.index  # type: ignore[no-any-return]

    return index


def of_tensorrt_llm(settings: dict[str, Any], patch: pytest.MonkeyPatch) -> Server:
    from structgen.integrations import tensorrt_llm

    patch.setenv(tensorrt_llm.SETTINGS_VARIABLE, json.dumps(settings))
    patch.setattr(tensorrt_llm, "_vocabulary_of", lambda config, size, tokenizer: VOCABULARY)
    factory = tensorrt_llm.StructgenMatcherFactory(None, WIDTH)
    kind = enum.Enum("GuideType", "STRUCTURAL_TAG").STRUCTURAL_TAG  # type: ignore[attr-defined]
    return lambda text: factory.create(SimpleNamespace(guide_type=kind, guide=text))._matcher.index


def of_transformers_serve(settings: dict[str, Any], patch: pytest.MonkeyPatch) -> Server:
    from structgen.integrations.transformers.serve import Formats, definition_of

    patch.setattr(sg.Vocabulary, "from_transformers", lambda *_, **__: VOCABULARY)
    formats = Formats(settings)
    model = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=EOS))

    def index(text: str) -> sg.Index:
        definition = definition_of({"response_format": json.loads(text)}, None, str, formats.door)
        assert definition is not None
        return formats.index(definition, "a model", model, None)

    return index


SERVERS = [of_vllm_backend, of_vllm_processor, of_sglang, of_tensorrt_llm, of_transformers_serve]


@pytest.mark.parametrize("first", SERVERS, ids=lambda each: each.__name__)
def test_what_one_server_compiled_the_others_find(first: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(SHAPE)
    assert first({"cache": str(tmp_path)}, monkeypatch)(text).machine.match(b"<f>7</f>").accepted
    for other in SERVERS:
        index = other({"cache": str(tmp_path), "on_miss": "refuse"}, monkeypatch)
        assert index(text).machine.match(b"<f>7</f>").accepted
        with pytest.raises(errors.StructgenError, match="not in the cache"):
            index(text.replace("[0-9]", "[a-f]"))


@pytest.mark.parametrize("server", SERVERS, ids=lambda each: each.__name__)
def test_what_is_over_the_budget_is_refused(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nested: Any = TAG
    for _ in range(600):  # the budget of requests has 500 levels
        nested = {"type": "optional", "content": nested}
    asked = server({"cache": False}, monkeypatch)
    with pytest.raises(errors.StructgenError, match="nested deeper than 500 levels"):
        asked(json.dumps({**SHAPE, "format": nested}))
    assert asked(json.dumps(SHAPE)).machine.match(b"<f>7</f>").accepted
