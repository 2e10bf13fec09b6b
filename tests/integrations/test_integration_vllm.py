"""vLLM's two interfaces for logits processors, and its backends, driven as its engine drives them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fakes.fake_modules import fake_modules
from fakes.fake_vllm import MODULES
from judges.guides import EACH_BYTE

import structgen as sg
from structgen import errors

EOS, WIDTH = 256, 300
VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, None, b"ab", b"12"], eos_ids=[EOS], size=WIDTH)
REQUESTS: list[Any] = [
    {"regex": "(ab|12)+x?"},
    {"choice": ["abba", "12ab"]},
    None,
    {"grammar": 'start: ("a" "b" | "12")+ ";"'},
    {"json_schema": {"enum": ["ab", 12]}},
]


@pytest.fixture(scope="module", autouse=True)
def _vllm() -> Iterator[None]:
    with fake_modules(MODULES, "structgen.integrations.vllm", "structgen.integrations.vllm_backend"):
        yield


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Any:
    from structgen.integrations import vllm, vllm_backend

    def vocabulary(model: Any, tokenizer: Any) -> sg.Vocabulary:
        assert tokenizer == "the tokenizer"
        return VOCABULARY

    monkeypatch.setattr(vllm, "vocabulary_of", vocabulary)
    monkeypatch.setattr(vllm_backend, "vocabulary_of", vocabulary)
    monkeypatch.setattr(vllm, "_tokenizer_of", lambda model: "the tokenizer")
    model = SimpleNamespace(get_vocab_size=lambda: WIDTH)
    return SimpleNamespace(
        model_config=model,
        additional_config={"structgen": {"cache": False}},
        structured_outputs_config=SimpleNamespace(disable_any_whitespace=True),
    )


def params(request: Any, stop: tuple[int, ...] = (EOS,), **others: Any) -> Any:
    extra = None if request is None else {"structgen": request}
    return SimpleNamespace(
        extra_args=extra, all_stop_token_ids=set(stop), structured_outputs=others.get("structured_outputs"),
        max_tokens=others.get("max_tokens"), min_tokens=others.get("min_tokens", 0),
        bad_words=others.get("bad_words", []),
    )  # fmt: skip


def expected(request: Any, tokens: list[int]) -> list[int] | None:
    """The ids that a request may go on with after some tokens, found by a new guide."""
    from structgen.integrations.requests import read_request

    if request is None:
        return None
    definition = read_request(request)
    assert isinstance(definition, sg.Definition)
    if definition not in _INDEXES:
        _INDEXES[definition] = sg.compile(definition, VOCABULARY, eager=False)
    guide = sg.Guide(_INDEXES[definition])
    assert all(map(guide.advance, tokens))
    return [token for token in range(VOCABULARY.size) if guide.allows(token)]


_INDEXES: dict[Any, sg.Index] = {}


def allowed(logits: torch.Tensor) -> list[list[int]]:
    return [torch.nonzero(row > float("-inf")).flatten().tolist() for row in logits]


@dataclass
class Request:
    spec: Any
    output: list[int] = field(default_factory=list)

    def grow(self, rng: random.Random) -> None:
        self.output.append(self.draw(rng, self.output))

    def draw(self, rng: random.Random, tokens: list[int]) -> int:
        ids = expected(self.spec, tokens)
        return rng.choice(ids) if ids else rng.randrange(256)

    def check(self, found: list[int], tokens: list[int] | None = None) -> None:
        ids = expected(self.spec, self.output if tokens is None else tokens)
        assert found == (list(range(WIDTH)) if ids is None else ids)


def test_rows_come_go_and_change_places(config: Any) -> None:
    """The first model runner: its persistent batch, with preemption."""
    from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality

    from structgen.integrations.vllm import StructgenLogitsProcessor

    rng = random.Random(1)
    processor = StructgenLogitsProcessor(config, torch.device("cpu"), False)
    assert not processor.is_argmax_invariant()
    batch: list[Request | None] = []
    waiting = [Request(rng.choice(REQUESTS)) for _ in range(40)]
    for _ in range(150):
        removed, added, moved = [], [], []
        for row, request in enumerate(batch):
            assert request is not None
            if rng.random() < 0.15 or EOS in request.output:
                removed.append(row)
                batch[row] = None
                if rng.random() < 0.5 and EOS not in request.output:  # preempted: it comes again with what it has
                    waiting.append(Request(request.spec, list(request.output)))
        free = sorted(removed)
        while waiting and len(batch) < 6 and rng.random() < 0.6:
            request = waiting.pop(0)
            row = free.pop(0) if free else len(batch)
            if row == len(batch):
                batch.append(None)
            batch[row] = request
            added.append((row, params(request.spec), [1, 2], request.output))
        removed = free
        for hole in list(free):  # the last rows fill the holes
            while batch and batch[-1] is None:
                batch.pop()
            if hole < len(batch):
                moved.append((len(batch) - 1, hole, MoveDirectionality.UNIDIRECTIONAL))
                batch[hole] = batch.pop()
        if len(batch) > 1 and rng.random() < 0.5:
            a, b = rng.sample(range(len(batch)), 2)
            moved.append((a, b, MoveDirectionality.SWAP))
            batch[a], batch[b] = batch[b], batch[a]
        changed = removed or added or moved
        processor.update_state(BatchUpdate(len(batch), removed, added, moved) if changed else None)
        logits = torch.zeros(len(batch), WIDTH)
        for _ in range(rng.choice([1, 1, 2])):  # a call may be repeated
            assert processor.apply(logits) is logits
        for request, found in zip(batch, allowed(logits), strict=True):
            assert request is not None
            request.check(found)
            request.grow(rng)
    assert not waiting


def test_tokens_that_vanish_are_taken_back(config: Any) -> None:
    from vllm.v1.sample.logits_processor.interface import BatchUpdate

    from structgen.integrations.vllm import StructgenLogitsProcessor

    processor = StructgenLogitsProcessor(config, torch.device("cpu"), False)
    request = Request(REQUESTS[0])
    processor.update_state(BatchUpdate(1, [], [(0, params(request.spec), None, request.output)], []))
    for tokens in ([97, 98], [97, 98, 257, 120, EOS], [97, 98, 257], [], [258], [97], [97, 98, 49]):
        request.output[:] = tokens
        request.check(allowed(processor.apply(torch.zeros(1, WIDTH)))[0])


def test_a_definition_that_ends_early_wins(config: Any, caplog: pytest.LogCaptureFixture) -> None:
    """vLLM has forbidden the EOS, for min_tokens, and a word, for bad_words, before the masks."""
    from vllm.v1.sample.logits_processor.interface import BatchUpdate

    from structgen.integrations.checks import tell_of_precedence
    from structgen.integrations.vllm import StructgenLogitsProcessor

    tell_of_precedence.cache_clear()
    processor = StructgenLogitsProcessor(config, torch.device("cpu"), False)
    outputs: list[list[int]] = [[], [], []]
    specs = [{"choice": ["ab"]}, {"regex": "(ab)*"}, {"choice": ["ab"]}]
    rivals: list[dict[str, Any]] = [{"min_tokens": 9}, {"min_tokens": 9}, {"bad_words": ["a"]}]
    rows = [(i, params(specs[i], **rivals[i]), None, outputs[i]) for i in range(3)]
    processor.update_state(BatchUpdate(3, [], rows, []))
    for step in range(6):
        logits = torch.randn(3, WIDTH)
        logits[:2, EOS] = logits[2, ord("a")] = logits[2, 257] = float("-inf")
        processor.apply(logits)
        assert torch.isfinite(torch.log_softmax(logits, -1)).any(-1).all()
        for row, output in enumerate(outputs):
            output.append(int(torch.multinomial(torch.softmax(logits[row] / 0.1, -1), 1)))
            assert row == 1 or step < 2 or output[-1] == EOS
    assert EOS not in outputs[1]
    assert [token for token in outputs[2] if token != EOS] in ([257], list(b"ab"))
    assert len([each for each in caplog.records if "the definition wins" in each.message]) == 1


def test_the_backend_is_left_what_it_masks(caplog: pytest.LogCaptureFixture) -> None:
    """vLLM forbids after the backend's masks, and masks nothing behind the end, up to min_tokens."""
    from structgen.integrations.vllm_backend import _tell, validate

    _tell.cache_clear()
    for _ in range(2):
        outputs = SimpleNamespace(regex="ab", structural_tag=None)
        asked = params(None, structured_outputs=outputs, min_tokens=9, bad_words=["a"])
        validate(asked)
        assert (asked.min_tokens, asked.bad_words) == (0, [])
    assert [each.message.split()[1] for each in caplog.records] == ["min_tokens", "bad_words"]
    free = params(None, min_tokens=9)
    validate(free)
    assert free.min_tokens == 9


@pytest.mark.parametrize("slots", [3, 5])
def test_slots_with_draft_tokens(config: Any, slots: int) -> None:
    """The second model runner: tokens on the device, a row for each draft, drafts that are dropped, preemption."""
    from structgen.integrations.vllm import StructgenLogitsProcessor

    rng = random.Random(slots)
    prompt = 4
    states = SimpleNamespace(
        prompt_len=SimpleNamespace(np=np.full(slots, prompt, np.int32)),
        all_token_ids=SimpleNamespace(gpu=torch.full((slots, 200), 7, dtype=torch.int32)),
    )
    processor = StructgenLogitsProcessor(config, states)
    running: dict[int, Request] = {}
    for _ in range(120):
        for slot in list(running):
            if EOS in running[slot].output or rng.random() < 0.1:
                request = running.pop(slot)
                if EOS not in request.output and rng.random() < 0.7:  # again, in this slot or another
                    slot = rng.choice([s for s in range(slots) if s not in running])
                    running[slot] = request
                    assert processor.add_request(slot, params(request.spec)) == (request.spec is not None)
        for slot in range(slots):
            if slot not in running and rng.random() < 0.5:
                running[slot] = Request(rng.choice(REQUESTS))
                processor.add_request(slot, params(running[slot].spec))
        order = rng.sample(list(running), rng.randint(0, len(running)))
        rows: list[tuple[int, int, int, int]] = []
        texts: list[tuple[Request, list[int]]] = []
        for slot in order:
            request = running[slot]
            history = states.all_token_ids.gpu[slot]
            history[prompt : prompt + len(request.output)] = torch.tensor(request.output, dtype=torch.int32)
            drafts: list[int] = []
            for local in range(rng.randint(1, 4)):
                if local:
                    drafts.append(request.draw(rng, request.output + drafts))
                    if EOS in drafts:
                        drafts.pop()
                        break
                text = request.output + drafts
                rows.append((slot, local, prompt + len(text) - 1, text[-1] if text else 7))
                texts.append((request, text))
        layout = torch.tensor(rows, dtype=torch.int32).reshape(-1, 4).T
        context = SimpleNamespace(
            expanded_idx_mapping=layout[0], idx_mapping_np=np.array(order, np.int32), expanded_local_pos=layout[1],
            pos=layout[2].to(torch.int64), input_ids=torch.cat([layout[3], torch.full((3,), 9, dtype=torch.int32)]),
        )  # fmt: skip
        logits = processor.apply(torch.zeros(len(rows), WIDTH), context)
        for (request, text), found in zip(texts, allowed(logits), strict=True):
            request.check(found, text)
        for slot in order:  # some of the drafts are right, then comes one more token
            request = running[slot]
            kept = rng.choice([text for each, text in texts if each is request])
            request.output[:] = [*kept, request.draw(rng, kept)]


@pytest.mark.parametrize(
    "bad", [{"regex": "("}, {"index": "missing"}, {"nonsense": 1}, {"regex": r"(a)\1"}, {"regex": "é{1,3}\ud800"}, 17]
)
def test_one_bad_request_ends_alone(config: Any, bad: Any, caplog: pytest.LogCaptureFixture) -> None:
    from vllm.v1.sample.logits_processor.interface import BatchUpdate

    from structgen.integrations.vllm import StructgenLogitsProcessor

    if bad != {"index": "missing"}:  # which is up to the engine
        with pytest.raises(ValueError, match="structgen"):
            StructgenLogitsProcessor.validate_params(params(bad))
    processor = StructgenLogitsProcessor(config, torch.device("cpu"), False)
    good = Request(REQUESTS[0])
    added = [(0, params(bad, (EOS, 5)), None, []), (1, params(good.spec), None, good.output)]
    processor.update_state(BatchUpdate(2, [], added, []))
    found = allowed(processor.apply(torch.zeros(2, WIDTH)))
    assert found[0] == [5, EOS]
    good.check(found[1])
    assert "row 0 cannot be served" in caplog.text


@pytest.mark.parametrize("token", [ord("z"), -1, WIDTH - 1, 10**6])
def test_a_token_that_is_not_allowed_ends_the_request(
    config: Any, token: int, caplog: pytest.LogCaptureFixture
) -> None:
    from vllm.v1.sample.logits_processor.interface import BatchUpdate

    from structgen.integrations.vllm import StructgenLogitsProcessor

    processor = StructgenLogitsProcessor(config, torch.device("cpu"), False)
    request = Request(REQUESTS[0])
    processor.update_state(BatchUpdate(1, [], [(0, params(request.spec), None, request.output)], []))
    request.output[:] = [97, token]
    assert allowed(processor.apply(torch.zeros(1, WIDTH))) == [[EOS]]
    assert f"token {token} is not allowed" in caplog.text
    assert ("async_scheduling" in caplog.text) == (token < 0)
    request.output.append(97)
    assert allowed(processor.apply(torch.zeros(1, WIDTH))) == [[EOS]]
    assert caplog.text.count("is not allowed by the definition") == 1
    request.output[:] = [97, 98]
    request.check(allowed(processor.apply(torch.zeros(1, WIDTH)))[0])


def test_requests_are_checked_where_they_are_admitted(config: Any) -> None:
    from structgen.integrations.vllm import StructgenLogitsProcessor

    for request in REQUESTS:
        StructgenLogitsProcessor.validate_params(params(request))
    with pytest.raises(ValueError, match="structured_outputs"):
        StructgenLogitsProcessor.validate_params(params({"regex": "a"}, structured_outputs=SimpleNamespace()))
    config.additional_config = {"structgen": {"cash": False}}
    with pytest.raises(errors.DefinitionError, match="cash"):
        StructgenLogitsProcessor(config, torch.device("cpu"), False)


@pytest.mark.parametrize(
    "settings",
    [
        [], {"seconds": 0}, {"seconds": True}, {"on_miss": "x"}, {"cache": 3}, {"indexes": 3}, {"store": 3},
        {"store": "s3://bucket", "cache": False}, {"verify_keys": "key.pem"}, {"store_writes": "yes"},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(settings: Any) -> None:
    from structgen.integrations.requests import indexes_with

    with pytest.raises(errors.DefinitionError):
        indexes_with(VOCABULARY, settings)


# -- the backend -------------------------------------------------------------------------------------------


def test_the_backend_follows_drafts(config: Any) -> None:
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    from structgen.integrations.vllm_backend import StructgenBackend

    backend = StructgenBackend(config, "the tokenizer", WIDTH)
    grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, "(ab|12)+x?", stop_token_ids={EOS, 5})
    bitmask = backend.allocate_token_bitmask(3)
    assert bitmask.shape == (3, -(-WIDTH // 32))
    assert bool((bitmask == -1).all())
    request, tokens = Request(REQUESTS[0]), [97, 98, 258]
    for i, token in enumerate(tokens):
        assert grammar.accept_tokens("r", [token])
        grammar.fill_bitmask(bitmask, i)
        request.check(torch.nonzero(_bits(bitmask[i])).flatten().tolist(), tokens[: i + 1])
    grammar.rollback(2)
    assert grammar.validate_tokens([98, 258, ord("z"), 97]) == [98, 258]
    assert grammar.validate_tokens([]) == []
    assert not grammar.accept_tokens("r", [98, ord("z")])
    assert grammar.accept_tokens("r", [120, EOS, 5, 5])
    assert grammar.is_terminated()
    assert grammar.validate_tokens([EOS]) == []
    assert grammar.accept_tokens("r", [120])  # behind the end, ignored
    grammar.reset()
    assert grammar.validate_tokens([98, 97]) == []
    with pytest.raises(errors.BitmaskError, match="row 3"):
        grammar.fill_bitmask(bitmask, 3)
    backend.destroy()


def _bits(row: torch.Tensor) -> torch.Tensor:
    return ((row.unsqueeze(-1) >> torch.arange(32)) & 1).flatten()


def test_the_backend_honours_each_kind(config: Any) -> None:
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions as Options

    from structgen.integrations.requests import read_engine_request
    from structgen.integrations.vllm_backend import StructgenBackend

    backend = StructgenBackend(config, "the tokenizer", WIDTH)
    for kind, spec, text in [
        (Options.JSON, '{"type": "integer"}', "12"),
        (Options.JSON_OBJECT, "", '{"a":[12]}'),
        (Options.CHOICE, '["ab", "c"]', "ab"),
        (Options.GRAMMAR, 'start: "ab" /[0-9]/', "ab7"),
        (Options.GRAMMAR, 'root ::= "ab" [0-9]', "ab7"),
    ]:
        grammar = backend.compile_grammar(kind, spec)
        assert grammar.accept_tokens("r", [*text.encode(), EOS])
        assert grammar.is_terminated()
    assert read_engine_request("JSON", "true", backend._indexes.door) == sg.JsonSchema(True, whitespace="compact")
    for kind, spec in [(Options.STRUCTURAL_TAG, "{}"), (Options.CHOICE, "["), (Options.CHOICE, "{}")]:
        with pytest.raises(errors.DefinitionError):
            backend.compile_grammar(kind, spec)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"enum": [{"a": 12}]}}}
CALL = b'<tool_call>\n{"name": "f", "arguments": {"a":12}}\n</tool_call>'


@pytest.mark.parametrize("ends", [[], list(b"</think>")], ids=["no_reasoning", "reasoning"])
def test_definitions_hold_behind_the_reasoning(config: Any, ends: list[int]) -> None:
    """As vLLM's manager skips it, drafts across its end included."""
    from fakes.fake_vllm import StructuredOutputManager
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions as Options

    from structgen.integrations.vllm_backend import StructgenBackend

    backend = StructgenBackend(config, "the tokenizer", WIDTH)
    chosen = {"type": "function", "function": {"name": "f"}}
    definition = sg.tool_calls([TOOL], "hermes", tool_choice=chosen, whitespace="compact")
    grammar = backend.compile_grammar(Options.STRUCTURAL_TAG, definition.text)
    manager = StructuredOutputManager(backend, grammar, ends)
    thoughts = list(b"Is it <tool_call> {" if ends else b"")
    text = [*thoughts, *ends, *CALL, EOS]
    guide, place = sg.Guide(sg.compile(definition, VOCABULARY)), 0
    for length in [3, 1, 4, 2, 5] * 20:
        drafts = text[place : place + length]
        rows = manager.grammar_bitmask(drafts)
        for row, position in zip(rows, range(place, place + length + 1), strict=False):
            if position > len(text) - 1:
                break
            if position < len(thoughts) + len(ends):
                assert bool((row == -1).all())
                continue
            assert torch.nonzero(_bits(row)).flatten().tolist() == [t for t in range(WIDTH) if guide.allows(t)]
            guide.advance(text[position])
        assert manager.validate_tokens(drafts) == drafts
        guide = sg.Guide(guide.index)
        assert manager.accept_tokens(drafts)
        place += length
        assert all(map(guide.advance, text[len(thoughts) + len(ends) : place]))
        if place >= len(text):
            break
    assert grammar.is_terminated()


def test_max_tokens_are_passed_on_where_the_operator_says_so(config: Any, caplog: pytest.LogCaptureFixture) -> None:
    from vllm.v1.sample.logits_processor.interface import BatchUpdate

    from structgen.integrations.vllm import StructgenLogitsProcessor

    for wanted, most, ends in ((False, 5, 0), (True, None, 0), (True, 5, 5), (True, 1, 0)):
        config.additional_config = {"structgen": {"cache": False, "max_tokens": wanted}}
        processor = StructgenLogitsProcessor(config, torch.device("cpu"), False)
        output: list[int] = []
        asked = params({"regex": "a+"}, max_tokens=most)
        processor.update_state(BatchUpdate(1, [], [(0, asked, None, output)], []))
        for _ in range(10):
            [ids] = allowed(processor.apply(torch.zeros(1, WIDTH)))
            output.append(ids[0])
            if ids[0] == EOS:
                break
        assert len(output) == (ends or (1 if most == 1 else 10))
    assert "max_tokens is 1" in caplog.text  # the request was refused


def test_tools_are_a_kind_of_request() -> None:
    from structgen.integrations.requests import check_definition, read_request

    request = {"tools": [TOOL], "style": "hermes", "tool_choice": "required", "reasoning": False, "whitespace": "any"}
    definition = read_request(request)
    assert isinstance(definition, sg.StructuralTag)
    check_definition(definition)
    assert sg.compile(definition, VOCABULARY, eager=False).machine.match(CALL).accepted


def test_registering_replaces_two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.exceptions import VLLMValidationError
    from vllm.v1 import structured_output
    from vllm.v1.structured_output import backend_xgrammar

    from structgen.integrations import plugins, vllm_backend

    monkeypatch.setattr(structured_output, "XgrammarBackend", before := structured_output.XgrammarBackend)
    monkeypatch.setattr(backend_xgrammar, "validate_xgrammar_grammar", backend_xgrammar.validate_xgrammar_grammar)
    monkeypatch.delenv(plugins.VLLM_BACKEND, raising=False)
    plugins.vllm_backend()
    assert structured_output.XgrammarBackend is before
    monkeypatch.setenv(plugins.VLLM_BACKEND, "1")
    plugins.vllm_backend()
    plugins.vllm_backend()
    assert structured_output.XgrammarBackend is vllm_backend.StructgenBackend
    validate = backend_xgrammar.validate_xgrammar_grammar
    none: Any = dict.fromkeys(("json", "json_object", "regex", "choice", "grammar", "structural_tag"))
    validate(SimpleNamespace(structured_outputs=None))
    validate(SimpleNamespace(structured_outputs=SimpleNamespace(**none | {"regex": "a+"})))
    with pytest.raises(VLLMValidationError, match="backreference"):
        validate(SimpleNamespace(structured_outputs=SimpleNamespace(**none | {"regex": r"(a)\1"})))


def test_requests_may_reason(config: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is skipped for a logits processor: its definition stands behind the model's reasoning."""
    from structgen.integrations import vllm
    from structgen.tools import tool_style

    style = tool_style("qwen_3")
    template = SimpleNamespace(chat_template="".join(style.template))
    monkeypatch.setattr(vllm, "vocabulary_of", lambda model, tokenizer: VOCABULARY)
    monkeypatch.setattr(vllm, "_tokenizer_of", lambda model: template)
    text = f"<think>So: ab.</think>{style.reasoning_suffix}12".encode()
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    for settings in ({}, {"tool_style": "qwen_3"}):
        config.additional_config = {"structgen": {"cache": False, **settings}}
        processor = vllm.StructgenLogitsProcessor(config, torch.device("cpu"), False)
        for wanted in ({"regex": "12"}, {"json_schema": {"const": 12}}, {"choice": ["12", "ab"]}):
            request = {**wanted, "reasoning": True}
            vllm.StructgenLogitsProcessor.validate_params(params(request))
            assert processor.add_request(0, params(request))
            for place, token in enumerate(text):
                row = processor._texts[0].moved_to(list(text[:place]))
                assert int(row[token // 32]) >> token % 32 & 1, (wanted, place)
            assert int(processor._texts[0].moved_to(list(text))[EOS // 32]) >> EOS % 32 & 1
        for tools in ({"tools": [tool]}, {"tools": [tool], "reasoning": "auto"}):
            vllm.StructgenLogitsProcessor.validate_params(params(tools))
            assert processor.add_request(1, params(tools))
            assert int(processor._texts[1].moved_to([])[ord("<") // 32]) >> ord("<") % 32 & 1
    assert caplog.records == []
    with pytest.raises(ValueError, match="reasoning is"):
        vllm.StructgenLogitsProcessor.validate_params(params({"regex": "a", "reasoning": 3}))
