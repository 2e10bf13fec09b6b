"""`LogitsProcessor` without any option, in every mode of ``generate()``: a token that was not allowed is an error
where it would be part of the text, and only there."""

from __future__ import annotations

import re
from typing import Any

import pytest
import regex

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fakes.tiny_models import MERGES, byte_tokenizer, tiny_llama  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import TokenIdError  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor  # noqa: E402

OBJECT = r'\{"(a|ab|the|x1)":(true|false|[0-9]{1,4})(,"(b|c)":"[a-z ]{0,12}"){0,3}\}'
FEW = "a|bc"
DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"

TOKENIZER = byte_tokenizer()
VOCABULARY = sg.Vocabulary.from_transformers(TOKENIZER)
EOS, PAD = TOKENIZER.eos_token_id, TOKENIZER.pad_token_id
INDEXES = {pattern: sg.compile(sg.Regex(pattern), VOCABULARY) for pattern in (OBJECT, FEW, DATE, "12")}


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama(VOCABULARY.size + 50, EOS, PAD)


def generate(model: Any, pattern: str, *prompts: str, seed: int = 0, **options: Any) -> list[list[int]]:
    """The generated ids of each row, of a processor without options."""
    inputs = TOKENIZER(list(prompts), return_tensors="pt", padding=True, padding_side="left")
    torch.manual_seed(seed)
    options = {"max_new_tokens": 24, **options}
    rows = model.generate(
        inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        logits_processor=[LogitsProcessor(INDEXES[pattern])],
        **options,
    )
    return [row.tolist() for row in rows[:, inputs["input_ids"].shape[1] :]]


def check(pattern: str, generated: list[int]) -> bool:
    """Assert that generated ids are a text, or the beginning of one; True if it has ended."""
    ended = EOS in generated
    text = TOKENIZER.decode(generated[: generated.index(EOS)] if ended else generated)
    if ended:
        assert re.fullmatch(pattern, text), text
    else:
        assert regex.fullmatch(pattern, text, partial=True), text
    return ended


@pytest.mark.parametrize("pattern", [OBJECT, FEW, DATE])
@pytest.mark.parametrize("normalised", [False, True])
def test_beam_sampling(model: Any, pattern: str, normalised: bool) -> None:
    """Few tokens are possible at first, so transformers fills beams with impossible ones, which lose."""
    for seed in range(2):
        options = {"num_beams": 3, "do_sample": True, "renormalize_logits": normalised, "seed": seed}
        for row in generate(model, pattern, "Write: ", "y", **options):
            check(pattern, row)


def test_beam_sampling_draws_refused_tokens(model: Any) -> None:
    """The test above is about something: with strict=True they are an error."""
    inputs = TOKENIZER(["Write: "], return_tensors="pt")["input_ids"]
    processor = LogitsProcessor(INDEXES[OBJECT], strict=True)
    with pytest.raises(TokenIdError):
        model.generate(inputs, num_beams=3, do_sample=True, max_new_tokens=10, logits_processor=[processor])


def test_beams_that_are_all_returned(model: Any) -> None:
    for do_sample in (False, True):
        for seed in range(2):
            options = {"num_beams": 4, "num_return_sequences": 4, "do_sample": do_sample, "seed": seed}
            for row in generate(model, OBJECT, "Go", **options):
                check(OBJECT, row)


@pytest.mark.parametrize("options", [
    {"do_sample": False},
    {"prompt_lookup_num_tokens": 3, "do_sample": False},
    {"assistant": True, "do_sample": False},
])  # fmt: skip
def test_a_definition_that_ends_early_wins(model: Any, options: dict[str, Any]) -> None:
    """transformers forbids the EOS, the definition everything else: the text ends."""
    if options.pop("assistant", False):
        options = {**options, "assistant_model": tiny_llama(VOCABULARY.size + 50, EOS, PAD, seed=1)}
    for row in generate(model, "12", "12 1", min_new_tokens=10, **options):
        assert check("12", row)


@pytest.mark.filterwarnings("ignore:generation goes on behind the end")
@pytest.mark.parametrize("do_sample", [False, True])
def test_beams_whose_definition_ends_early(model: Any, do_sample: bool) -> None:
    for seed in range(3):
        (row,) = generate(model, "12", "1", num_beams=3, do_sample=do_sample, min_new_tokens=9, seed=seed)
        assert check("12", row)


def test_samples_of_one_prompt_are_not_beams() -> None:
    """Two rows of a prompt, one of which goes wrong, outside of a loop that is known to drop rows."""
    processor = LogitsProcessor(INDEXES[DATE])
    rows, scores = torch.tensor([[5], [5]]), torch.log_softmax(torch.zeros((2, VOCABULARY.size)), -1)
    processor(rows, scores)
    one, letter = TOKENIZER.convert_tokens_to_ids(["1", "x"])
    with pytest.raises(TokenIdError, match="row 1"):
        processor(torch.cat([rows, torch.tensor([[one], [letter]])], dim=1), scores)


@pytest.mark.parametrize("options", [{}, {"do_sample": True}, {"do_sample": True, "num_return_sequences": 3}])
def test_a_static_cache(model: Any, options: dict[str, Any]) -> None:
    options = {"do_sample": False, **options}
    rows = generate(model, OBJECT, "One", "and another", cache_implementation="static", **options)
    for row in rows:
        check(OBJECT, row)
    if not options["do_sample"]:
        assert rows == generate(model, OBJECT, "One", "and another", **options)


@pytest.mark.parametrize("do_sample", [False, True])
@pytest.mark.parametrize("kind", ["lookup", "assistant"])
def test_drafts(model: Any, kind: str, do_sample: bool) -> None:
    prompt = '{"the":true,"b":"the 2024-10-12 12 the"} 2024-10-12 {"the":'
    drafts: dict[str, Any] = (
        {"prompt_lookup_num_tokens": 4}
        if kind == "lookup"
        else {"assistant_model": tiny_llama(VOCABULARY.size + 50, EOS, PAD, seed=1)}
    )
    for pattern in (OBJECT, DATE):
        for seed in range(2):
            (row,) = generate(model, pattern, prompt, seed=seed, do_sample=do_sample, **drafts)
            check(pattern, row)
            if not do_sample:
                assert [row] == generate(model, pattern, prompt, do_sample=False)


@pytest.mark.parametrize("do_sample", [False, True])
@pytest.mark.parametrize("merges", [[*MERGES, ("z", "z")], [*MERGES[:3], ("2", "0")]])
def test_an_assistant_with_another_tokenizer(model: Any, merges: list[tuple[str, str]], do_sample: bool) -> None:
    """Universal assisted decoding: what the assistant writes are other ids, and what comes of them is checked."""
    for pattern in (OBJECT, DATE):
        for seed in range(2):
            other = byte_tokenizer(merges, backwards=True)  # transformers caches what it makes of model and tokenizer
            assistant = tiny_llama(len(other), other.eos_token_id, other.pad_token_id, seed=seed + 1)
            (row,) = generate(
                model, pattern, "On ", seed=seed, do_sample=do_sample,
                assistant_model=assistant, tokenizer=TOKENIZER, assistant_tokenizer=other,
            )  # fmt: skip
            check(pattern, row)
            if not do_sample:
                assert [row] == generate(model, pattern, "On ", do_sample=False)


@pytest.mark.parametrize("options", [{}, {"do_sample": True, "num_return_sequences": 4}, {"num_beams": 3}])
def test_texts_are_complete_within_max_tokens(model: Any, options: dict[str, Any]) -> None:
    inputs = TOKENIZER(["a"], return_tensors="pt")["input_ids"]
    torch.manual_seed(1)
    index = INDEXES[OBJECT]
    for n in (index.shortest(), index.shortest() + 1, 16, 30):
        processor = LogitsProcessor(index, max_tokens=n)
        rows = model.generate(inputs, logits_processor=[processor], max_new_tokens=n, **options)
        for row in rows[:, inputs.shape[1] :].tolist():
            assert check(OBJECT, row)
    with pytest.raises(sg.errors.TokenBudgetError):
        LogitsProcessor(index, max_tokens=index.shortest() - 1)
