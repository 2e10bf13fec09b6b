"""The processor that records: it changes nothing, and what it records is what ``generate()`` did."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fakes.tiny_models import byte_tokenizer, tiny_llama  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor, TracingProcessor  # noqa: E402

PROMPTS = ["ab the", "nametrue"]


@pytest.fixture(scope="module")
def made() -> tuple[Any, Any, sg.Vocabulary, sg.Index]:
    tokenizer = byte_tokenizer()
    vocabulary = sg.Vocabulary.from_transformers(tokenizer)
    model = tiny_llama(vocabulary.size + 3, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return tokenizer, model, vocabulary, sg.compile(sg.Regex(r"(the|true|[ab]){3,8}!"), vocabulary)


def prompts(tokenizer: Any, count: int = 2) -> Any:
    tokenizer.padding_side = "left"
    return tokenizer(PROMPTS[:count], return_tensors="pt", padding=True)


def spelled(trace: sg.Trace, vocabulary: sg.Vocabulary) -> list[int]:
    dropped = trace.dropped
    return [step.token_id for n, step in enumerate(trace.steps) if n not in dropped]


def up_to_end(ids: list[int], vocabulary: sg.Vocabulary) -> list[int]:
    ends = [n for n, i in enumerate(ids) if i in vocabulary.eos_ids]
    return ids[: ends[0] + 1] if ends else ids


MODES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 0, "num_return_sequences": 3},
    "beams": {"num_beams": 4, "num_return_sequences": 2},
}


@pytest.mark.parametrize("mode", MODES)
def test_it_records_what_was_generated(made: Any, mode: str) -> None:
    tokenizer, model, vocabulary, index = made
    inputs, options = prompts(tokenizer), {**MODES[mode], "max_new_tokens": 24}
    outputs = []
    processor = TracingProcessor(index)
    for each in (LogitsProcessor(index), processor):
        torch.manual_seed(0)
        outputs.append(model.generate(**inputs, logits_processor=[each], **options))
    assert torch.equal(*outputs)
    traces = processor.traces(outputs[1], prompts=PROMPTS)
    assert len(traces) == len(outputs[1])
    begin = inputs["input_ids"].shape[1]
    for row, trace in zip(outputs[1].tolist(), traces, strict=True):
        assert spelled(trace, vocabulary) == up_to_end(row[begin:], vocabulary)
        guide = sg.Guide(index)
        dropped = trace.dropped
        for number, step in enumerate(trace.steps):
            if number in dropped:
                continue
            allowed = sg.runtime.ids_of(guide.bitmask())
            assert step.allowed == len(allowed)
            assert step.asked
            assert guide.advance(step.token_id)
    assert [trace.prompt for trace in traces[:2]] == PROMPTS


def test_its_probabilities_are_the_models(made: Any) -> None:
    tokenizer, model, _, index = made
    inputs = prompts(tokenizer, 1)
    processor = TracingProcessor(index, candidates=5)
    output = model.generate(**inputs, logits_processor=[processor], do_sample=False, max_new_tokens=20)
    [trace] = processor.traces(output)
    begin = inputs["input_ids"].shape[1]
    with torch.no_grad():
        logits = model(output).logits[0, begin - 1 : -1].double()
    for step, scores in zip(trace.steps, logits, strict=True):
        probabilities = torch.softmax(scores, -1)
        assert step.candidates
        for each in step.candidates:
            assert each.before == pytest.approx(float(probabilities[each.token_id]), abs=1e-5)
        best = int(probabilities.argmax())
        assert best in {each.token_id for each in step.candidates}
        if step.kind == "steered":
            assert best != step.token_id
        elif step.kind == "free":
            assert best == step.token_id


def test_without_a_definition(made: Any) -> None:
    tokenizer, model, vocabulary, _ = made
    inputs = prompts(tokenizer, 1)
    processor = TracingProcessor(None, vocabulary=vocabulary)
    plain = model.generate(**inputs, do_sample=False, max_new_tokens=10)
    output = model.generate(**inputs, logits_processor=[processor], do_sample=False, max_new_tokens=10)
    assert torch.equal(plain, output)
    [trace] = processor.traces(output)
    assert {step.kind for step in trace.steps} == {"unconstrained"}
    assert spelled(trace, vocabulary) == up_to_end(output[0, inputs["input_ids"].shape[1] :].tolist(), vocabulary)
    with pytest.raises(sg.errors.VocabularyError):
        TracingProcessor(None)


def test_one_generation_after_another(made: Any) -> None:
    tokenizer, model, vocabulary, index = made
    processor = TracingProcessor(index)
    with pytest.raises(sg.errors.BitmaskError):
        processor.traces(torch.zeros(1, 4, dtype=torch.long))
    for count in (2, 1, 2):
        inputs = prompts(tokenizer, count)
        output = model.generate(**inputs, logits_processor=[processor], do_sample=False, max_new_tokens=12)
        traces = processor.traces(output)
        begin = inputs["input_ids"].shape[1]
        assert [spelled(t, vocabulary) for t in traces] == [
            up_to_end(row[begin:], vocabulary) for row in output.tolist()
        ]


def test_drafts_that_were_refused_are_taken_back(made: Any) -> None:
    tokenizer, model, vocabulary, index = made
    inputs = prompts(tokenizer, 1)
    options = {"do_sample": False, "max_new_tokens": 20}
    processor = TracingProcessor(index)
    draft = tiny_llama(vocabulary.size + 3, tokenizer.eos_token_id, tokenizer.pad_token_id, seed=1)
    output = model.generate(**inputs, logits_processor=[processor], assistant_model=draft, **options)
    plain = model.generate(**inputs, logits_processor=[LogitsProcessor(index)], **options)
    assert torch.equal(output, plain)
    [trace] = processor.traces(output)
    assert spelled(trace, vocabulary) == up_to_end(output[0, inputs["input_ids"].shape[1] :].tolist(), vocabulary)
    assert trace.rollbacks
