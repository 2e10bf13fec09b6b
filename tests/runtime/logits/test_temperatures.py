"""Temperatures of a grammar's rules, applied where engines have their own; softmax judges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.fake_llama_cpp import VOCABULARY, WIDTH, FakeLlama
from judges.guides import BYTES

import structgen as sg
from structgen.errors import ArgumentError, DefinitionError, FormatError
from structgen.integrations.llama_cpp import LogitsProcessor as LlamaProcessor
from structgen.integrations.llama_cpp import generate
from structgen.integrations.local.decoding import Chooser
from structgen.runtime.grammar.captures.attributes import GrammarAttributes, TemperedTerminal
from structgen.runtime.logits.masks import temper
from structgen.system.arguments import LEAST_TEMPERATURE as LEAST
from structgen.system.arguments import MOST_TEMPERATURE as MOST

torch = pytest.importorskip("torch")

from structgen.runtime.logits.sampling import Sampler  # noqa: E402

GRAMMAR = """
start: hot "," cold "," plain
hot[temperature=3]: /[ab]{3}/
cold[temperature=0]: /[ab]{3}/
plain: /[ab]{3}/
"""
INDEX = sg.compile(sg.Grammar(GRAMMAR), BYTES, eager=False)

#: Texts, and the temperatures at which they go on; None for the engine's.
PLACES = [(b"", 3.0), (b"ab", 3.0), (b"aba,", 0.0), (b"aba,b", 0.0), (b"aba,bbb,a", None)]


def at(text: bytes, index: sg.Index = INDEX) -> sg.Guide:
    guide = sg.Guide(index)
    assert all(map(guide.advance, text))
    return guide


def softmax(scores: Any, temperature: float) -> Any:
    """By definition, over an array in doubles."""
    scores = np.asarray(scores, np.float64)
    if not temperature:
        return (scores == scores.max()).astype(float) / (scores == scores.max()).sum()
    weights = np.exp((scores - scores.max()) / temperature)
    return weights / weights.sum()


@pytest.mark.parametrize("wanted", [0.0, 0.1, 1.0, 7.5])
@pytest.mark.parametrize("given", [0.8, 1.0, 2.0])
def test_scores_for_another_temperature(wanted: float, given: float) -> None:
    scores = np.random.default_rng(1).standard_normal(50).astype(np.float32) * 9
    scores[::3] = -np.inf
    expected = softmax(scores, wanted)
    tensor = torch.from_numpy(scores.copy())
    temper(tensor, wanted, given)
    temper(scores, wanted, given)
    for found in (scores, tensor.numpy()):
        assert np.allclose(softmax(found, given), expected, atol=1e-5)


def test_scores_that_are_all_refused_stay_so() -> None:
    scores = np.full(5, -np.inf, np.float32)
    temper(scores, 0.5, 1.0)
    assert (scores == -np.inf).all()


@pytest.mark.parametrize(("text", "wanted"), PLACES)
def test_processor_of_transformers(text: bytes, wanted: float | None) -> None:
    from structgen.integrations.transformers import LogitsProcessor

    scores = torch.randn(2, BYTES.size, generator=torch.Generator().manual_seed(3))
    processor = LogitsProcessor([INDEX, None], prompt_length=0, temperature=1.3)
    found = processor(torch.tensor([[*text], [*text]], dtype=torch.int64), scores)
    masked = np.where([at(text).allows(i) for i in range(BYTES.size)], scores[0].numpy(), -np.inf)
    assert np.allclose(softmax(found[0], 1.3), softmax(masked, 1.3 if wanted is None else wanted), atol=1e-5)
    assert torch.equal(found[1], scores[1])


@pytest.mark.parametrize(("text", "wanted"), PLACES)
def test_sampler(text: bytes, wanted: float | None) -> None:
    from structgen.runtime.logits.sampling import Sampler

    logits = torch.randn(BYTES.size, generator=torch.Generator().manual_seed(4))
    guide = at(text)
    masked = np.where([guide.allows(i) for i in range(BYTES.size)], logits.numpy(), -np.inf)
    expected = softmax(masked, 1.3 if wanted is None else wanted)
    ids, probabilities = Sampler(1.3).distribution(logits, guide)
    found = np.zeros(BYTES.size)
    found[ids.numpy()] = probabilities.numpy()
    assert np.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(("text", "wanted"), PLACES)
def test_processor_of_llama_cpp(text: bytes, wanted: float | None) -> None:
    index = sg.compile(sg.Grammar(GRAMMAR), VOCABULARY, eager=False)
    number = {VOCABULARY.token(i): i for i in range(VOCABULARY.size)}
    ids = [number[bytes([byte])] for byte in text]
    guide = sg.Guide(index)
    assert all(map(guide.advance, ids))
    scores = np.random.default_rng(5).standard_normal(WIDTH).astype(np.single)
    masked = np.where([i < VOCABULARY.size and guide.allows(i) for i in range(WIDTH)], scores, -np.inf)
    processor = LlamaProcessor(index, FakeLlama(1), prompt_length=0, temperature=0.6)
    found = processor(np.array(ids, np.intc), scores)
    assert np.allclose(softmax(found, 0.6), softmax(masked, 0.6 if wanted is None else wanted), atol=1e-5)


def test_optimistic_generation_has_the_temperatures_of_masked_generation() -> None:
    index = sg.compile(sg.Grammar(GRAMMAR), VOCABULARY, eager=False)
    plain = sg.compile(sg.Regex("[ab]{3},[ab]{3},[ab]{3}"), VOCABULARY)
    differs = 0
    for seed in range(20):
        found = [
            list(
                generate(
                    FakeLlama(7), [1], each, mode="optimistic" if ahead else "masked", temperature=0.7, seed=seed,
                    ahead=max(1, ahead), max_tokens=12,
                )
            )
            for each, ahead in ((index, 0), (index, 1), (index, 5), (plain, 0))
        ]  # fmt: skip
        assert found[0] == found[1] == found[2]
        differs += found[0] != found[3]
    assert differs


def test_temperatures_that_mean_nothing() -> None:
    for temperature in (0.0, -1.0, 1e-300, 1e300, float("nan"), float("inf"), True):
        with pytest.raises(ArgumentError):
            LlamaProcessor(INDEX, FakeLlama(1), temperature=temperature)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("wanted", [0.0, LEAST, 1e-5, 1e5, MOST])
@pytest.mark.parametrize("given", [LEAST, 1.0, MOST])
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_no_temperature_makes_what_is_no_number(dtype: str, wanted: float, given: float) -> None:
    values = [3.0, 1.0, -float("inf"), 2.5]
    tensor = torch.tensor(values, dtype=getattr(torch, dtype))
    temper(tensor, wanted, given)
    arrays = [tensor.float().numpy()]
    if dtype != "bfloat16":
        arrays.append(np.array(values, dtype))
        temper(arrays[1], wanted, given)
    for found in arrays:
        assert found[0] == 0
        assert found[2] == -np.inf
        assert (found[[1, 3]] <= 0).all()


@pytest.mark.parametrize(
    "temperature", ["0." + "0" * 300 + "1", "0." + "0" * 9 + "1", "1000000000", "-1", "nan", "1e-9"]
)
def test_grammars_with_temperatures_out_of_bounds(temperature: str) -> None:
    with pytest.raises(DefinitionError):
        sg.compile(sg.Grammar(f"start: a\na[temperature={temperature}]: /a/"), BYTES, eager=False)


@pytest.mark.parametrize("temperature", [1e-300, 5e-10, 1e10, 1e299])
def test_files_with_temperatures_out_of_bounds(temperature: float) -> None:
    attributes = GrammarAttributes((), (TemperedTerminal(0, temperature),))
    with pytest.raises(FormatError):
        GrammarAttributes.from_section(attributes.to_sections()["attributes"].tobytes(), 3, "file")


@pytest.mark.parametrize("temperature", [1e-40, 1e-300, 1e300, -1.0, float("nan"), float("inf")])
def test_temperatures_that_scores_cannot_be_divided_by_are_refused(temperature: float) -> None:
    """Scores below 0 would all be as small as what the mask forbids, and the first token of all be taken."""
    for make in (Sampler, Chooser):
        with pytest.raises(ArgumentError, match="temperature"):
            make(temperature)


@pytest.mark.parametrize("temperature", [0.0, 1e-9, 1.0, 1e9])
def test_what_is_chosen_at_the_bounds_is_allowed(temperature: float) -> None:
    scores = np.full(64, -np.inf, np.float32)
    scores[40:50] = -np.linspace(1, 5000, 10)
    assert all(40 <= Chooser(temperature, seed=seed).choose(scores.copy(), 3) < 50 for seed in range(50))
