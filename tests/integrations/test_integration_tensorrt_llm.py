"""TensorRT-LLM's grammar matchers, driven as its guided decoder drives them."""

from __future__ import annotations

import enum
import json
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.fake_modules import fake_modules
from fakes.fake_tensorrt_llm import MODULES, GuidedDecoder
from fakes.tiny_models import byte_tokenizer
from judges.guides import EACH_BYTE

import structgen as sg
from structgen import errors
from structgen.runtime.rows.bitmask import ids_of

EOS, WIDTH = 256, 320
VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, None, b"12", b"ab"], eos_ids=[EOS], size=WIDTH)
GuideType = enum.Enum("GuideType", "JSON JSON_SCHEMA REGEX EBNF_GRAMMAR STRUCTURAL_TAG")


@pytest.fixture(scope="module", autouse=True)
def _tensorrt_llm() -> Iterator[None]:
    with fake_modules(MODULES, "structgen.integrations.tensorrt_llm"):
        yield


def guide(kind: str, text: str | None = None) -> Any:
    return SimpleNamespace(guide_type=GuideType[kind], guide=text)


@pytest.fixture
def factory(monkeypatch: pytest.MonkeyPatch) -> Any:
    from structgen.integrations import tensorrt_llm

    monkeypatch.setattr(tensorrt_llm, "_vocabulary_of", lambda config, size, tokenizer: VOCABULARY)
    monkeypatch.setenv(tensorrt_llm.SETTINGS_VARIABLE, '{"cache": false}')
    return tensorrt_llm.StructgenMatcherFactory(None, WIDTH, max_num_draft_tokens=4)


GUIDES = [
    ("REGEX", "(ab|12){3,30}!?"),
    ("JSON_SCHEMA", '{"enum": ["ab", 12, ["a"]]}'),
    ("EBNF_GRAMMAR", 'root ::= "(" root ")" | "12"'),
    ("EBNF_GRAMMAR", 'start: "(" start ")" | "ab"'),
]


@pytest.mark.parametrize(("kind", "text"), GUIDES)
def test_drafts_are_followed_and_rolled_back(factory: Any, kind: str, text: str) -> None:
    from structgen.integrations.requests import read_engine_request

    rng = random.Random(11)
    index = sg.compile(read_engine_request(kind, text), VOCABULARY, eager=False)
    for _ in range(12):
        decoder, output, drafts = GuidedDecoder(factory, WIDTH, 4), list[int](), list[int]()
        guided = decoder.begin(guide(kind, text))
        while True:
            after = sg.Guide(index)
            assert all(map(after.advance, output))
            for i in range(guided):
                assert ids_of(decoder.bitmask[i].numpy()).tolist() == [t for t in range(WIDTH) if after.allows(t)]
                assert i == guided - 1 or after.advance(drafts[i])
            kept = rng.randint(0, max(0, guided - 1))
            decoder.rollback_rejected(kept)
            output += drafts[:kept]
            after = sg.Guide(index)
            assert all(map(after.advance, output))
            token = rng.choice([t for t in range(WIDTH) if after.allows(t)])
            output.append(token)
            assert after.advance(token)
            drafts = []
            for _ in range(rng.randint(0, 4)):
                likely = [t for t in range(WIDTH) if after.allows(t)]
                drafts.append(rng.choice([*likely, rng.randrange(-1, WIDTH + 5)]))
                after.advance(drafts[-1]) if drafts[-1] in likely else None
            guided = decoder.step(token, drafts)
            if token == EOS:
                assert decoder.matcher.is_terminated()
                break


CONTENTS: list[tuple[dict[str, Any], bytes]] = [
    ({"type": "json_schema", "json_schema": {"type": "integer"}}, b"12"),
    ({"type": "regex", "pattern": "(ab)+"}, b"abab"),
    ({"type": "grammar", "grammar": 'root ::= "ab" [0-9]'}, b"ab1"),
]


@pytest.mark.parametrize(("content", "answer"), CONTENTS, ids=lambda each: str(each)[:25])
def test_the_reasoning_is_part_of_what_a_server_asks_for(factory: Any, content: Any, answer: bytes) -> None:
    """Nothing is skipped: with a parser of reasoning, a request's format becomes one of these structural tags."""
    final = "<|start|>assistant<|channel|>final<|message|>"
    thinking = {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"}
    for format, before in (
        ({"type": "sequence", "elements": [thinking, content]}, "<think>Is it {?</think>"),
        ({"type": "sequence", "elements": [{**thinking, "begin": ""}, content]}, "Is it {?</think>"),
        ({"type": "triggered_tags", "triggers": [final], "stop_after_first": True,
          "tags": [{"begin": final, "content": content, "end": ""}]}, f"<|channel|>analysis<|message|>So.{final}"),
    ):  # fmt: skip
        decoder = GuidedDecoder(factory, WIDTH, 4)
        decoder.begin(guide("STRUCTURAL_TAG", json.dumps({"type": "structural_tag", "format": format})))
        for token in before.encode():
            may_end = bool(int(decoder.bitmask[0, EOS // 32]) >> EOS % 32 & 1)
            assert may_end == (final in before)  # the answer may never begin there
            assert decoder.step(token, []) == 1
        assert not decoder.matcher.accept_token(EOS)
        assert all(decoder.step(token, []) for token in answer)
        assert decoder.matcher.accept_token(EOS)


def test_any_json(factory: Any) -> None:
    matcher = factory.create(guide("JSON"))
    assert all(map(matcher.accept_token, [*b'{ "a": [true,\n12]}', EOS]))
    assert matcher.is_terminated()
    assert not matcher.accept_token(EOS)


@pytest.mark.parametrize(("drafts", "level"), [(0, "ERROR"), (4, "DEBUG")])
def test_why_a_token_is_refused_is_logged(
    factory: Any, caplog: pytest.LogCaptureFixture, drafts: int, level: str
) -> None:
    """The engine's error is its own, and has no place for it; among drafts, refusals are everyday."""
    matcher = type(factory)(None, WIDTH, max_num_draft_tokens=drafts).create(
        guide("JSON_SCHEMA", '{"type": "integer", "maximum": 12}')
    )
    assert matcher.accept_token(ord("1"))
    assert not matcher.accept_token(ord("5"))
    assert len(caplog.records) == (not drafts)
    with caplog.at_level("DEBUG"):
        assert not matcher.accept_token(ord("5"))
    record = caplog.records[-1]
    assert record.levelname == level
    assert "/maximum" in record.getMessage()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("STRUCTURAL_TAG", "{}"), ("REGEX", r"(a)\1"), ("JSON_SCHEMA", "{"), ("EBNF_GRAMMAR", "root ::= x"),
        ("REGEX", None),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused(factory: Any, kind: str, text: str | None) -> None:
    with pytest.raises(errors.DefinitionError):
        factory.create(guide(kind, text))


def test_no_more_than_the_drafts_can_be_taken_back(factory: Any) -> None:
    matcher = factory.create(guide("REGEX", "a*"))
    assert all(map(matcher.accept_token, [97] * 300))
    with pytest.raises(errors.RollbackError):
        matcher.rollback(200)
    matcher.rollback(5)


def test_registering_replaces_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorrt_llm._torch.pyexecutor import guided_decoder

    from structgen.integrations import tensorrt_llm

    monkeypatch.setattr(guided_decoder, "XGrammarMatcherFactory", guided_decoder.XGrammarMatcherFactory)
    tensorrt_llm.register()
    tensorrt_llm.register()
    assert guided_decoder.XGrammarMatcherFactory is tensorrt_llm.StructgenMatcherFactory


def test_the_vocabulary_is_the_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    from structgen.integrations import tensorrt_llm

    monkeypatch.setenv(tensorrt_llm.SETTINGS_VARIABLE, '{"cache": false}')
    made = byte_tokenizer()
    text, known, eos = made.backend_tokenizer.to_str(), sg.Vocabulary.from_transformers(made), made.eos_token_id
    config = SimpleNamespace(tokenizer_str=text, stop_token_ids=[eos], encoded_vocab=[])
    factory = tensorrt_llm.StructgenMatcherFactory(config, 512)
    matcher = factory.create(guide("REGEX", "Zürich"))
    ids = [t for t in range(known.size) if known.token(t) == b"Z"]
    assert any(map(matcher.accept_token, ids))
    config.tokenizer_str = None
    tokenizer = SimpleNamespace(tokenizer="a tokenizer")
    calls: list[Any] = []

    def vocabulary(tokenizer: Any, *, eos_ids: list[int], size: int) -> sg.Vocabulary:
        calls.append((tokenizer, eos_ids, size))
        return VOCABULARY

    with monkeypatch.context() as patch:
        patch.setattr(sg.Vocabulary, "from_transformers", vocabulary)
        tensorrt_llm.StructgenMatcherFactory(config, WIDTH, max_num_draft_tokens=2, tokenizer=tokenizer)
    assert calls == [("a tokenizer", [eos], WIDTH)]
    with pytest.raises(errors.VocabularyError, match=r"tokenizer\.json"):
        tensorrt_llm.StructgenMatcherFactory(config, 512)
    monkeypatch.setenv(tensorrt_llm.SETTINGS_VARIABLE, "{")
    config.tokenizer_str = text
    with pytest.raises(errors.DefinitionError, match="JSON"):
        tensorrt_llm.StructgenMatcherFactory(config, 512)
