"""The processor that records: it changes nothing, and what it records is what ``generate()`` did."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fakes.tiny_models import byte_tokenizer, tiny_llama  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import BatchError  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor, TracedGenerate, TracingProcessor, generate  # noqa: E402

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


# -- the loop of its own ---------------------------------------------------------------------------------

LOOPS: dict[str, dict[str, Any]] = {
    "masked": {},
    "masked, sampled": {"do_sample": True, "top_k": 0},
    "scores": {"output_scores": True, "return_dict_in_generate": True},
    "optimistic": {"mode": "optimistic", "ahead": 8},
    "optimistic, sampled": {"mode": "optimistic", "ahead": 8, "do_sample": True, "top_k": 0},
    "lenient": {"mode": "optimistic", "distribution": "lenient", "do_sample": True, "top_k": 3},
}


def looped(made: Any, prompt: str, loop: Any, pattern: str, seed: int, **options: Any) -> tuple[list[int], sg.Index]:
    """The tokens that a loop writes behind a prompt."""
    if not hasattr(transformers.GenerationMixin, "_prefill"):
        pytest.skip("the loop is for transformers 5")
    tokenizer, model, vocabulary, _ = made
    index = sg.compile(sg.Regex(pattern), vocabulary)
    inputs = tokenizer(prompt, return_tensors="pt")
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    torch.manual_seed(seed)
    answer = model.generate(**inputs, custom_generate=loop, index=index, max_new_tokens=24, **options)
    return getattr(answer, "sequences", answer)[0, inputs["input_ids"].shape[1] :].tolist(), index


@pytest.mark.parametrize("how", LOOPS)
@pytest.mark.parametrize("pattern", [r"(the|true|[ab]){3,8}!", r"[^x]{10,40}", r"\{\"name\":(true|[ab]+)\}"])
def test_loops_record_what_they_write(made: Any, how: str, pattern: str) -> None:
    """A plain loop writes the same; the guide that follows the text has the masks that were recorded."""
    traced, refused = TracedGenerate(), 0
    for seed in range(4):
        expected, index = looped(made, "nametrue", generate, pattern, seed, **LOOPS[how])
        found, _ = looped(made, "nametrue", traced, pattern, seed, **LOOPS[how])
        assert found == expected
        [trace] = traced.traces(prompts=["nametrue"])
        assert trace.prompt == "nametrue"
        assert spelled(trace, made[2]) == up_to_end(found, made[2])
        assert sg.Trace.from_json(trace.to_json()) == trace
        guide, dropped = sg.Guide(index), trace.dropped
        for number, step in enumerate(trace.steps):
            allowed = sg.runtime.ids_of(guide.bitmask())
            assert step.allowed == len(allowed)
            if step.asked:
                assert step.candidates
                best = max(step.candidates, key=lambda each: each.before)
                assert (step.kind == "steered") <= (best.token_id not in allowed)
            if number in dropped:
                assert step.kind == "refused"
                assert step.token_id not in allowed
                refused += 1
            else:
                assert guide.advance(step.token_id)
    assert bool(refused) == (LOOPS[how].get("mode") == "optimistic")


def test_forced_tokens_of_a_loop_were_not_asked_for(made: Any) -> None:
    traced, text = TracedGenerate(), '{"name":true}'
    tokens, _ = looped(made, "the", traced, r"\{\"name\":(true|b[ab])\}", 0, do_sample=False)
    [trace] = traced.traces()
    assert {step.kind for step in trace.steps if not step.asked} == {"forced"}
    assert 0 < trace.calls_saved < len(tokens)
    assert trace.text in (text, '{"name":ba}', '{"name":bb}')


def test_rows_without_a_definition_have_no_record(made: Any) -> None:
    tokenizer, model, vocabulary, index = made
    if not hasattr(transformers.GenerationMixin, "_prefill"):
        pytest.skip("the loop is for transformers 5")
    traced = TracedGenerate()
    with pytest.raises(BatchError, match="nothing was generated"):
        traced.traces()
    inputs = prompts(tokenizer)
    output = model.generate(
        input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], custom_generate=traced,
        index=[None, index], max_new_tokens=20,
    )  # fmt: skip
    [trace] = traced.traces()
    assert spelled(trace, vocabulary) == up_to_end(output[1, inputs["input_ids"].shape[1] :].tolist(), vocabulary)
