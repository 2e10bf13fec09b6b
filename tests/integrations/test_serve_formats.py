"""The indexes of ``transformers serve``: each schema is compiled once for a model, under a budget, and cached."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("transformers")

from fakes.tiny_models import byte_tokenizer

import structgen as sg
from structgen.integrations import requests
from structgen.integrations.transformers import serve as transformers_serve
from structgen.integrations.transformers.serve import Formats

TOKENIZER = byte_tokenizer()
MODEL = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=TOKENIZER.eos_token_id))


def schema(number: int) -> sg.JsonSchema:
    return sg.JsonSchema({"type": "object", "properties": {f"p{number}": {"type": "integer"}}})


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of each compile."""
    calls: list[dict[str, Any]] = []
    compile = requests.compile  # type: ignore[attr-defined]

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(options)
        return compile(*arguments, **options)

    monkeypatch.setattr(requests, "compile", counted)
    return calls


def test_a_schema_is_compiled_once(compiles: list[dict[str, Any]], tmp_path: Any) -> None:
    formats = Formats({"cache": str(tmp_path)})
    indexes = [formats.index(schema(number % 2), "model", MODEL, TOKENIZER) for number in range(6)]
    assert len(compiles) == 2
    assert indexes[0] is indexes[2]
    assert indexes[0] is not indexes[1]
    budget = compiles[0]["budget"]
    assert budget.seconds <= 5
    assert budget.memory <= 256 << 20
    # Another process finds them in the cache, and may be told to compile nothing.
    other = Formats({"cache": str(tmp_path), "on_miss": "refuse"})
    assert other.index(schema(0), "model", MODEL, TOKENIZER).match(b"{}").accepted
    with pytest.raises(sg.errors.MissingIndexError):
        other.index(schema(2), "model", MODEL, TOKENIZER)


def test_models_have_their_own_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers_serve, "_MOST_MODELS", 2)
    formats = Formats({"cache": False})
    backwards = byte_tokenizer(backwards=True)
    first = formats.index(schema(0), "a", MODEL, TOKENIZER)
    assert formats.index(schema(0), "b", MODEL, backwards).vocabulary.fingerprint != first.vocabulary.fingerprint
    assert formats.index(schema(0), "a", MODEL, TOKENIZER) is first
    formats.index(schema(0), "c", MODEL, backwards)  # b goes
    assert formats.index(schema(0), "a", MODEL, TOKENIZER) is first
    assert list(formats._by_model) == ["c", "a"]


def test_settings_are_checked_before_there_is_a_request() -> None:
    with pytest.raises(sg.errors.DefinitionError, match="on_miss"):
        Formats({"on_miss": "guess"})
