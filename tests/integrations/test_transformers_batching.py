"""A definition for each request of continuous batching, in transformers' own manager with a tiny random model."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import regex

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors", reason="transformers < 5.10")

from fakes.tiny_models import byte_tokenizer, tiny_llama  # noqa: E402
from transformers import ContinuousBatchingConfig  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import BatchError, BitmaskError, DefinitionError, UnsupportedError, VocabularyMismatchError  # noqa: E402
from structgen.integrations.transformers import ContinuousBatchingLogitsProcessor, TracedBatchingProcessor  # noqa: E402
from structgen.runtime.logits.devices import DeviceRows  # noqa: E402

DEFINITIONS = {
    "object": r'\{"(a|ab|the|x1)":(true|[0-9]{1,4})(,"(b|c)":"[a-z ]{0,6}"){0,2}\}',
    "date": r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "number": r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?",
}
TOKENIZER = byte_tokenizer()
VOCABULARY = sg.Vocabulary.from_transformers(TOKENIZER)
EOS = TOKENIZER.eos_token_id
INDEXES = {name: sg.compile(sg.Regex(pattern), VOCABULARY) for name, pattern in DEFINITIONS.items()}
CONFIG = {"num_blocks": 64, "max_batch_tokens": 64, "page_size": 16, "max_requests_per_batch": 8}


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama(VOCABULARY.size + 50, EOS, TOKENIZER.pad_token_id)


def manager_of(model: Any, processor: Any, *, config: dict[str, Any] | None = None, **options: Any) -> Any:
    generation = transformers.GenerationConfig(
        eos_token_id=EOS, pad_token_id=TOKENIZER.pad_token_id, **{"max_new_tokens": 24, "do_sample": True, **options}
    )
    batching = ContinuousBatchingConfig(**{**CONFIG, **(config or {})})
    manager = model.init_continuous_batching(generation_config=generation, continuous_batching_config=batching)
    processor.attach(manager)
    return manager


def run(manager: Any, requests: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The results of requests, each a prompt and arguments, in their order."""
    manager.start()
    try:
        names = [manager.add_request(TOKENIZER(text)["input_ids"], **kwargs) for text, kwargs in requests]
        results: dict[str, Any] = {}
        while len(results) < len(names) * manager.num_return_sequences:
            result = manager.get_result(timeout=20)
            assert result is not None, "the manager has stopped"
            if result.is_finished():
                results[result.request_id] = result
        return [results[name] for name in names]
    finally:
        manager.stop(block=True, timeout=20)
        manager.destroy()


def check(name: str, tokens: list[int]) -> bool:
    """Assert that tokens are a text, or the beginning of one; True if it has ended."""
    ended = EOS in tokens
    text = TOKENIZER.decode(tokens[: tokens.index(EOS)] if ended else tokens)
    if ended:
        assert re.fullmatch(DEFINITIONS[name], text), text
    else:
        assert regex.fullmatch(DEFINITIONS[name], text, partial=True), text
    return ended


@pytest.mark.parametrize("options", [{"do_sample": False}, {"temperature": 1.5, "top_k": 5, "top_p": 0.9}])
def test_requests_follow_their_definitions(model: Any, options: dict[str, Any]) -> None:
    """More requests than run at a time, of different lengths and definitions; some name none."""
    processor = ContinuousBatchingLogitsProcessor(INDEXES, default="number")
    names = ["object", "date", None, "number"] * 5
    requests = [("x" * (3 * i % 17 + 1), {} if name is None else {"definition": name}) for i, name in enumerate(names)]
    results = run(manager_of(model, processor, **options), requests)
    assert all(result.error is None for result in results)
    ended = [check(name or "number", r.generated_tokens) for name, r in zip(names, results, strict=True)]
    assert sum(ended) >= 5


def test_without_a_default_the_whole_vocabulary_is_allowed() -> None:
    model = tiny_llama(VOCABULARY.size, EOS, TOKENIZER.pad_token_id)

    def tokens(processor: Any) -> list[int]:
        (result,) = run(manager_of(model, processor, do_sample=False), [("hello", {})])
        found: list[int] = result.generated_tokens
        return found

    free = tokens(ContinuousBatchingLogitsProcessor(INDEXES))
    inputs = torch.tensor([TOKENIZER("hello")["input_ids"]])
    plain = model.generate(inputs, attention_mask=torch.ones_like(inputs), do_sample=False, max_new_tokens=24)
    assert free == plain[0, inputs.shape[1] :].tolist()


def test_a_bad_request_takes_no_other_down(model: Any) -> None:
    processor = ContinuousBatchingLogitsProcessor(INDEXES)
    requests: list[tuple[str, dict[str, Any]]] = [
        ("a", {"definition": "date"}),
        ("b", {"definition": "poem"}),
        ("c", {"definition": 3}),
        ("d", {"definition": "object"}),
    ]
    good, unknown, wrong, other = run(manager_of(model, processor), requests)
    assert good.error is None
    assert check("date", good.generated_tokens)
    assert other.error is None
    check("object", other.generated_tokens)
    assert "no definition 'poem'" in unknown.error
    assert "expected str" in wrong.error


def test_several_sequences_of_a_request(model: Any) -> None:
    """Children are forked from a request after its first token."""
    processor = ContinuousBatchingLogitsProcessor(INDEXES)
    manager = manager_of(model, processor, num_return_sequences=3)
    manager.start()
    try:
        manager.add_request(TOKENIZER("On ")["input_ids"], definition="date")
        results: list[Any] = []
        while len(results) < 3:
            result = manager.get_result(timeout=20)
            assert result is not None
            results += [result] if result.is_finished() else []
    finally:
        manager.stop(block=True, timeout=20)
        manager.destroy()
    assert all(check("date", result.generated_tokens) for result in results)
    assert len({result.request_id for result in results}) == 3


def test_a_manager_that_it_cannot_serve(model: Any) -> None:
    with pytest.raises(BatchError, match="use_async_batching=False"):
        manager_of(model, ContinuousBatchingLogitsProcessor(INDEXES), config={"use_async_batching": True})
    processor = ContinuousBatchingLogitsProcessor(INDEXES)
    manager_of(model, processor)
    with pytest.raises(BatchError, match="belongs to a manager already"):
        manager_of(model, processor)
    narrow = tiny_llama(200, None, None)
    with pytest.raises(BitmaskError, match="logits of width 200"):
        manager_of(narrow, ContinuousBatchingLogitsProcessor(INDEXES))
    with pytest.raises(DefinitionError, match="'poem'"):
        ContinuousBatchingLogitsProcessor(INDEXES, default="poem")
    foreign = sg.compile(sg.Regex("1"), sg.Vocabulary.from_bytes([b"1"], eos_ids=[1]))
    with pytest.raises(VocabularyMismatchError):
        processor.register("other", foreign)


# -- step by step, without a manager ----------------------------------------------------------------------


class State:
    """What a ``RequestState`` is to a processor."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.request_id = name
        self.logit_processor_kwargs = kwargs
        self.initial_tokens = [1, 2, 3]
        self.generated_tokens: list[int] = []
        self._true_initial_tokens = 0
        self.error: str | None = None
        self.status = SimpleNamespace(name="DECODING")


def attached(kind: Any = ContinuousBatchingLogitsProcessor, **definitions: str) -> Any:
    indexes = {name: sg.compile(sg.Regex(pattern), VOCABULARY) for name, pattern in definitions.items()}
    processor = kind(indexes)
    processor._rows = DeviceRows(processor._batch.rows, "cpu")
    return processor


def allowed(processor: Any, *states: State) -> list[list[str | None]]:
    arguments = processor.prepare_tensor_args([SimpleNamespace(state=state) for state in states])
    assert arguments.dtype == torch.int32
    padded = torch.full((len(states) + 3,), 0, dtype=torch.int32)
    processor.fill_defaults(padded)
    padded[: len(states)] = arguments
    scores = processor(torch.zeros((len(states), VOCABULARY.size)), padded)
    return [
        [None if t == EOS else TOKENIZER.decode([t]) for t in torch.isfinite(row).nonzero().flatten().tolist()]
        for row in scores
    ]


def append(state: State, text: str) -> None:
    state.generated_tokens += TOKENIZER(text)["input_ids"]


def put_back(state: State) -> State:
    """The same request, new: its tokens are part of its prompt."""
    again = State(state.request_id, **state.logit_processor_kwargs)
    again._true_initial_tokens = len(state.initial_tokens)
    again.initial_tokens = state.initial_tokens + state.generated_tokens
    return again


def test_requests_come_and_go_in_any_order() -> None:
    processor = attached(ab="x(y|z)", c="cd")
    first, second = State("1", definition="ab"), State("2", definition="c")
    assert allowed(processor, first, second) == [["x"], ["c"]]
    append(second, "c")
    assert allowed(processor, second) == [["d"]]
    append(first, "x")
    append(second, "d")
    assert allowed(processor, second, first) == [[None], ["y", "z"]]
    assert allowed(processor, first, second) == [["y", "z"], [None]]  # the same step again


def test_a_request_that_is_put_back_into_the_queue() -> None:
    processor = attached(ab="xyz")
    state = State("1", definition="ab")
    allowed(processor, state)
    append(state, "xy")
    again = put_back(state)
    assert allowed(processor, again) == [["z"]]
    append(again, "z")
    assert allowed(processor, again) == [[None]]


def test_a_token_that_was_refused_ends_its_request_alone() -> None:
    processor = attached(ab="xyz")
    bad, good = State("1", definition="ab"), State("2", definition="ab")
    assert allowed(processor, bad, good) == [["x"], ["x"]]
    append(bad, "q")
    append(good, "x")
    assert allowed(processor, bad, good) == [[None], ["y"]]
    assert "not allowed" in (bad.error or "")
    assert good.error is None
    append(good, "y")
    assert allowed(processor, bad, good) == [[None], ["z"]]


def test_requests_that_are_over_are_forgotten() -> None:
    processor = attached(ab="xyz", c="cd")
    stays = State("stays", definition="c")
    allowed(processor, stays)
    append(stays, "c")
    for i in range(300):
        state = State(str(i), definition="ab")
        assert allowed(processor, state, stays) == [["x"], ["d"]]
        if i % 2:
            state.status.name = "FINISHED"
            held = state
    assert held.error is None
    assert len(processor._requests) < 150
    assert len(processor._batch) == len(processor._requests)
    assert np.array_equal([r.row for r in processor._requests], np.arange(len(processor._batch)))


def test_a_cache_that_is_too_small(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are put back into the queue by transformers, and go on where they were."""
    from transformers.generation.continuous_batching.requests import RequestState

    count = 0
    original = RequestState.create_equivalent_initial_request

    def counted(self: Any) -> Any:
        nonlocal count
        count += 1
        return original(self)

    monkeypatch.setattr(RequestState, "create_equivalent_initial_request", counted)
    processor = ContinuousBatchingLogitsProcessor(INDEXES)
    manager = manager_of(model, processor, config={"num_blocks": 9, "page_size": 4, "max_batch_tokens": 32})
    results = run(manager, [("abc", {"definition": "object"})] * 8)
    for result in results:
        assert result.error is None
        check("object", result.generated_tokens)
    assert count


def test_an_id_outside_the_vocabulary_ends_its_request_alone() -> None:
    processor = attached(a="(ab)*", b="(ba)*")
    lost, other = State("1", definition="a"), State("2", definition="b")
    allowed(processor, lost, other)
    lost.generated_tokens.append(VOCABULARY.size)
    append(other, "b")
    assert allowed(processor, lost, other) == [[None], ["a", "ab"]]
    assert lost.error is not None
    assert "outside the vocabulary" in lost.error
    assert other.error is None


# -- traces ----------------------------------------------------------------------------------------------


def test_traces_of_requests_that_come_and_go(model: Any) -> None:
    """Each is what its request wrote, with the masks that a guide has there; what is not traced writes the same."""
    names = ["object", "date", None, "number"] * 5
    requests = [("x" * (3 * i % 17 + 1), {} if name is None else {"definition": name}) for i, name in enumerate(names)]
    plain = run(manager_of(model, ContinuousBatchingLogitsProcessor(INDEXES), do_sample=False), requests)
    processor = TracedBatchingProcessor(INDEXES)
    results = run(manager_of(model, processor, do_sample=False), requests)
    assert [r.generated_tokens for r in results] == [r.generated_tokens for r in plain]
    for name, result in zip(names, results, strict=True):
        trace = processor.trace(result)
        assert [step.token_id for step in trace.steps] == result.generated_tokens
        assert sg.Trace.from_json(trace.to_json()) == trace
        if name is None:
            assert trace.count("unconstrained") == len(trace.steps)
            continue
        guide = sg.Guide(INDEXES[name])
        for step in trace.steps:
            allowed = sg.runtime.ids_of(guide.bitmask())
            assert step.allowed == len(allowed)
            best = max(step.candidates, key=lambda each: each.before)
            assert step.kind == ("forced" if len(allowed) == 1 else "free" if best.token_id in allowed else "steered")
            assert guide.advance(step.token_id)


def test_traces_of_requests_that_are_over() -> None:
    processor = attached(TracedBatchingProcessor, ab="xyz")
    stays = State("stays", definition="ab")
    for i in range(300):
        state = State(str(i), definition="ab")
        assert allowed(processor, state, stays) == [["x"], ["x"]]
        append(state, "x")
        assert allowed(processor, state, stays) == [["y"], ["x"]]
        state.status.name = "FINISHED"
    assert len(processor._batch) == len(processor._requests) < 150
    for i in range(300):
        result = SimpleNamespace(request_id=str(i), generated_tokens=TOKENIZER("xyz")["input_ids"])
        trace = processor.trace(result)
        assert trace.text == "xyz"
        assert [step.kind for step in trace.steps] == ["forced"] * 3
        assert [step.asked for step in trace.steps] == [True, True, False]
    with pytest.raises(BatchError, match="no request 'other'"):
        processor.trace(SimpleNamespace(request_id="other", generated_tokens=[]))


def test_traces_of_a_request_that_is_put_back_into_the_queue() -> None:
    processor = attached(TracedBatchingProcessor, ab="x[yz]+")
    state = State("1", definition="ab")
    allowed(processor, state)
    append(state, "xy")
    again = put_back(state)
    assert allowed(processor, again) == [["y", "z", None]]
    append(again, "z")
    allowed(processor, again)
    trace = processor.trace(SimpleNamespace(request_id="1", generated_tokens=TOKENIZER("xyz")["input_ids"]))
    assert trace.text == "xyz"
    assert [step.kind for step in trace.steps] == ["forced", "chosen", "free"]
    assert [bool(step.candidates) for step in trace.steps] == [False, False, True]


def test_steps_in_graphs_are_not_traced() -> None:
    config = SimpleNamespace(use_cuda_graph=None)
    manager = SimpleNamespace(continuous_batching_config=config, model=SimpleNamespace(device=torch.device("meta")))
    with pytest.raises(UnsupportedError, match="use_cuda_graph=False"):
        TracedBatchingProcessor(INDEXES).attach(manager)
