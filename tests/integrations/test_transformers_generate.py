"""The loop that appends what must follow: its outcome against ``generate``, its scores against whole passes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fakes.fake_streamer import Streamer  # noqa: E402
from fakes.tiny_models import byte_tokenizer, tiny_llama  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import VocabularyError  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor, generate  # noqa: E402
from structgen.runtime.guide.guide import Guide  # noqa: E402
from structgen.runtime.index.index import Index  # noqa: E402

if not hasattr(transformers.GenerationMixin, "_prefill"):
    pytest.skip("the loop is for transformers 5", allow_module_level=True)

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "the number": {"type": "integer", "minimum": 0, "maximum": 999},
        "is true": {"type": "boolean"},
        "end": {"enum": ["the end", "theatre"]},
    },
    "required": ["name", "the number", "is true", "end"],
    "additionalProperties": False,
}
TOKENIZER, BYTES = byte_tokenizer(), byte_tokenizer([])
VOCABULARY, BYTE_VOCABULARY = sg.Vocabulary.from_transformers(TOKENIZER), sg.Vocabulary.from_transformers(BYTES)
DEFINITIONS = {
    "person": sg.JsonSchema(PERSON, whitespace="compact"),
    "pattern": sg.Regex("The answer is: (yes|no, not at all|no, never)\\."),
    "number": sg.Regex("[0-9]{1,3}( apples)?"),
}
INDEXES = {name: sg.compile(definition, VOCABULARY) for name, definition in DEFINITIONS.items()}
WIDTH = VOCABULARY.size + 20


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama(WIDTH, TOKENIZER.eos_token_id, TOKENIZER.pad_token_id, num_hidden_layers=2)


class Calls:
    """Counts what a model is asked, while it is one of its forward hooks."""

    def __init__(self, model: Any) -> None:
        self.count = 0
        self._handle = model.register_forward_hook(self._called)

    def _called(self, *_: Any) -> None:
        self.count += 1

    def __enter__(self) -> Calls:
        return self

    def __exit__(self, *_: Any) -> None:
        self._handle.remove()


class Splitting:
    """A plain processor: tokens that must follow are the only ones that are allowed."""

    def __init__(self, indexes: Sequence[Index | None], prompt: int) -> None:
        self._indexes, self._prompt = indexes, prompt

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        scores = LogitsProcessor(self._indexes, prompt_length=self._prompt, strict=False)(input_ids, scores)
        for row, index in enumerate(self._indexes):
            if index is None:
                continue
            guide = Guide(index)
            forced = guide.forced_tokens()
            for token in input_ids[row, self._prompt :].tolist():
                if guide.is_finished():
                    break
                assert guide.advance(token)
                forced = forced[1:] or guide.forced_tokens()
            if forced:
                scores[row] = float("-inf")
                scores[row, forced[0]] = 0.0
        return scores


def inputs_of(*prompts: str, tokenizer: Any = TOKENIZER) -> dict[str, Any]:
    made = tokenizer(list(prompts), return_tensors="pt", padding=True, padding_side="left")
    return {"input_ids": made["input_ids"], "attention_mask": made["attention_mask"]}


def ours(model: Any, inputs: dict[str, Any], index: Any, **options: Any) -> Any:
    options = {"max_new_tokens": 90, "do_sample": False, **options}
    return model.generate(**inputs, custom_generate=generate, index=index, **options)


def plain(model: Any, inputs: dict[str, Any], indexes: Sequence[Index | None], **options: Any) -> Any:
    options = {"max_new_tokens": 90, "do_sample": False, **options}
    processor = Splitting(indexes, inputs["input_ids"].shape[1])
    return model.generate(**inputs, logits_processor=[processor], **options)


def texts(rows: Any, prompt: int) -> list[str]:
    """What was generated, up to the end."""
    found = []
    for row in rows[:, prompt:].tolist():
        ended = TOKENIZER.eos_token_id in row
        found.append(TOKENIZER.decode(row[: row.index(TOKENIZER.eos_token_id)] if ended else row))
    return found


@pytest.mark.parametrize("options", [
    {}, {"use_cache": False}, {"cache_implementation": "static"}, {"repetition_penalty": 1.3}, {"max_new_tokens": 7},
    {"prefill_chunk_size": 3},
])  # fmt: skip
@pytest.mark.parametrize("name", ["person", "pattern"])
def test_one_row_is_as_ever(model: Any, name: str, options: dict[str, Any]) -> None:
    inputs = inputs_of("Write it down: ")
    with Calls(model) as calls:
        found = ours(model, inputs, INDEXES[name], **options)
    with Calls(model) as plain_calls:
        expected = plain(model, inputs, [INDEXES[name]], **options)
    assert found.tolist() == expected.tolist()
    if "prefill_chunk_size" not in options:
        assert calls.count < 0.8 * plain_calls.count


@pytest.mark.parametrize("options", [{}, {"cache_implementation": "static"}, {"use_cache": False}])
def test_rows_of_a_batch_are_as_ever(model: Any, options: dict[str, Any]) -> None:
    """Prompts of different lengths, other definitions, one without: what must follow is never of the same length."""
    inputs = inputs_of("Write it down: ", "x", "and", "the end")
    indexes = [INDEXES["person"], INDEXES["pattern"], INDEXES["number"], None]
    found = ours(model, inputs, indexes, max_new_tokens=60, **options)
    assert found.tolist() == plain(model, inputs, indexes, max_new_tokens=60, **options).tolist()


def test_a_batch_asks_the_model_less_often(model: Any) -> None:
    inputs = inputs_of("Write it down: ", "x")
    with Calls(model) as calls:
        found = ours(model, inputs, INDEXES["pattern"])
    expected = plain(model, inputs, [INDEXES["pattern"]] * 2)
    assert found.tolist() == expected.tolist()
    assert calls.count < 0.6 * (expected.shape[1] - inputs["input_ids"].shape[1])


def test_single_bytes_are_as_with_the_processor_alone() -> None:
    """Where a text can be split in one way only, the outcome is that of plain constrained ``generate``."""
    eos, pad = BYTES.eos_token_id, BYTES.pad_token_id
    model = tiny_llama(BYTE_VOCABULARY.size, eos, pad, seed=3)
    index = sg.compile(DEFINITIONS["person"], BYTE_VOCABULARY)
    inputs = inputs_of("Go", "on and on", tokenizer=BYTES)
    found = ours(model, inputs, index)
    options = {"max_new_tokens": 90, "do_sample": False}
    expected = model.generate(**inputs, logits_processor=[LogitsProcessor(index)], **options)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("options", [{}, {"cache_implementation": "static"}, {"prefill_chunk_size": 3}])
@pytest.mark.parametrize("prompts", [["Write it down: "], ["Write it down: ", "x", "yes"]])
def test_scores_are_those_of_a_whole_pass(model: Any, prompts: list[str], options: dict[str, Any]) -> None:
    """At each step the model's scores are those of one pass over the same ids, without a cache."""
    inputs = inputs_of(*prompts)
    seen: list[tuple[Any, Any]] = []

    def record(input_ids: Any, scores: Any) -> Any:
        seen.append((input_ids.clone(), scores.clone()))
        return scores

    ours(model, inputs, INDEXES["person"], logits_processor=[record], max_new_tokens=50, **options)
    assert len(seen) > 5
    for ids, scores in seen:
        text = ids.shape[1] - inputs["input_ids"].shape[1]
        mask = torch.nn.functional.pad(inputs["attention_mask"], (0, text), value=1)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        with torch.no_grad():
            whole = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits[:, -1]
        assert torch.allclose(scores, whole, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"temperature": 2.0, "top_k": 4, "top_p": 0.9}, {"num_return_sequences": 4}])
def test_samples(model: Any, options: dict[str, Any]) -> None:
    inputs = inputs_of("One: ", "Another one: ")
    torch.manual_seed(1)
    rows = ours(model, inputs, INDEXES["person"], do_sample=True, **options)
    for text in texts(rows, inputs["input_ids"].shape[1]):
        value = json.loads(text)
        assert list(value) == PERSON["required"]
        assert value["end"] in ("the end", "theatre")
    assert len(set(texts(rows, inputs["input_ids"].shape[1]))) > 1


@pytest.mark.parametrize("tokens", range(1, 30, 4))
def test_it_stops_amid_what_must_follow(model: Any, tokens: int) -> None:
    inputs = inputs_of("x")
    rows = ours(model, inputs, INDEXES["pattern"], max_new_tokens=tokens)
    whole = ours(model, inputs, INDEXES["pattern"])
    assert rows.tolist() == whole[:, : 1 + tokens].tolist()


def test_stopping_criteria_see_each_token(model: Any) -> None:
    inputs = inputs_of("x")
    criterion = transformers.StopStringCriteria(TOKENIZER, ["answer"])
    rows = ours(model, inputs, INDEXES["pattern"], stopping_criteria=[criterion])
    assert texts(rows, 1) == ["The answer"]


def test_a_streamer(model: Any) -> None:
    streamer = Streamer()
    rows = ours(model, inputs_of("One"), INDEXES["person"], streamer=streamer)
    assert streamer.tokens == rows[0].tolist()
    assert streamer.ended


def test_what_is_returned(model: Any) -> None:
    inputs = inputs_of("One")
    rows = ours(model, inputs, INDEXES["pattern"])
    answer = ours(model, inputs, INDEXES["pattern"], return_dict_in_generate=True)
    assert type(answer) is transformers.generation.GenerateDecoderOnlyOutput
    assert torch.equal(answer.sequences, rows)
    more = model.generate(  # the cache can be gone on with
        answer.sequences, past_key_values=answer.past_key_values, max_new_tokens=5, do_sample=False
    )
    assert torch.equal(more, model.generate(answer.sequences, max_new_tokens=5, do_sample=False))


def test_scores_of_every_step(model: Any) -> None:
    """Every token is the model's then, so that there is a score for each."""
    inputs = inputs_of("One")
    wanted = {"return_dict_in_generate": True, "output_scores": True, "output_logits": True}
    answer = ours(model, inputs, INDEXES["number"], **wanted)
    options = {"max_new_tokens": 90, "do_sample": False, **wanted}
    expected = model.generate(**inputs, logits_processor=[LogitsProcessor(INDEXES["number"])], **options)
    assert torch.equal(answer.sequences, expected.sequences)
    assert len(answer.scores) == answer.sequences.shape[1] - inputs["input_ids"].shape[1]
    assert torch.equal(torch.stack(answer.scores), torch.stack(expected.scores))


def test_embeddings_for_a_prompt(model: Any) -> None:
    inputs = inputs_of("Write it down: ")
    embeds = model.get_input_embeddings()(inputs["input_ids"])
    rows = model.generate(
        inputs_embeds=embeds, attention_mask=inputs["attention_mask"], custom_generate=generate,
        index=INDEXES["person"], max_new_tokens=60, do_sample=False,
    )  # fmt: skip
    whole = ours(model, inputs, INDEXES["person"], max_new_tokens=60)
    assert rows.tolist() == whole[:, inputs["input_ids"].shape[1] :].tolist()


def test_an_encoder_decoder() -> None:
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=WIDTH, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=2,
        eos_token_id=TOKENIZER.eos_token_id, pad_token_id=TOKENIZER.pad_token_id,
    )  # fmt: skip
    t5 = transformers.T5ForConditionalGeneration(config).eval()
    inputs = inputs_of("one", "the other")
    with Calls(t5) as calls:
        rows = ours(t5, inputs, INDEXES["pattern"])
    for text in texts(rows, 1):
        assert re.fullmatch("The answer is: (yes|no, not at all|no, never)\\.", text)
    assert calls.count < 0.6 * rows.shape[1]


def test_what_it_refuses(model: Any) -> None:
    inputs = inputs_of("One")
    with pytest.raises(ValueError, match="greedy search and sampling, not for beam_search"):
        ours(model, inputs, INDEXES["number"], num_beams=2)
    by_hand = sg.Vocabulary.from_bytes(
        [VOCABULARY.token(i) for i in range(VOCABULARY.size)], eos_ids=VOCABULARY.eos_ids
    )
    index = sg.compile(DEFINITIONS["pattern"], by_hand)
    with pytest.raises(VocabularyError, match="encode="):
        ours(model, inputs, index)
    rows = ours(model, inputs, index, encode=VOCABULARY.encode)
    assert torch.equal(rows, ours(model, inputs, INDEXES["pattern"]))
    digits = TOKENIZER.convert_tokens_to_ids([*"0123456789", "12"])
    (row,) = ours(model, inputs, INDEXES["number"], suppress_tokens=digits)  # there are no others: it wins
    guide = sg.Guide(INDEXES["number"])
    assert all(map(guide.advance, row[inputs["input_ids"].shape[1] :].tolist()))
