"""Candidates tested in order: the same distribution as the whole mask, and fewer questions."""

from __future__ import annotations

from typing import Any

import pytest
from judges.naive import small_vocabulary

torch = pytest.importorskip("torch")

import structgen as sg  # noqa: E402
from structgen.runtime.logits import sampling  # noqa: E402
from structgen.runtime.logits.masks import apply_bitmask  # noqa: E402
from structgen.runtime.logits.sampling import Sampler  # noqa: E402

VOCABULARY = small_vocabulary()
INDEXES = [sg.compile(sg.Regex(pattern), VOCABULARY) for pattern in ("[a-z]+", "a", "(?s).*", "[^a]+", "(ab|[0-9])*")]
SAMPLERS = [
    Sampler(temperature, k, p)
    for temperature in (0.0, 0.3, 1.0, 2.5)
    for k in (None, 1, 3, 40, 500)
    for p in (1.0, 0.99, 0.8, 0.2, 1e-6)
]


def by_transformers(sampler: Sampler, logits: Any, guide: sg.Guide) -> Any:
    """``float32[width]``: probabilities by transformers' own processors, behind the whole mask."""
    transformers = pytest.importorskip("transformers")
    scores = logits.float().clone()[None]
    apply_bitmask(scores, guide.bitmask())
    if sampler.temperature == 0:
        return torch.nn.functional.one_hot(scores[0].argmax(), scores.shape[1]).float()
    warpers = [transformers.TemperatureLogitsWarper(sampler.temperature)] if sampler.temperature != 1 else []
    if sampler.top_k is not None:
        warpers.append(transformers.TopKLogitsWarper(sampler.top_k))
    if sampler.top_p < 1:
        warpers.append(transformers.TopPLogitsWarper(sampler.top_p))
    for warper in warpers:
        scores = warper(None, scores)
    return torch.softmax(scores[0], 0)


@pytest.mark.parametrize("most", [sampling.MOST_TESTED, 16, 0], ids=["tested", "few tested", "masked"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("number", range(len(INDEXES)))
def test_the_distribution_is_that_of_the_whole_mask(
    number: int, dtype: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "MOST_TESTED", most)
    guide = sg.Guide(INDEXES[number])
    generator = torch.Generator().manual_seed(number)
    for spread in (0.5, 4.0):
        # bfloat16 has ties; which of them top-p keeps is nobody's promise, so make logits differ.
        logits = torch.randperm(VOCABULARY.size + 20, generator=generator).float() * spread / 40
        logits = logits.to(dtype)
        if dtype == torch.bfloat16 and spread == 4.0:
            logits[::3] = -torch.inf
        for sampler in SAMPLERS:
            if sampler.top_p < 1 and len(logits.unique()) < len(logits) and sampler.temperature:
                continue
            wanted = by_transformers(sampler, logits, guide)
            ids, probabilities = sampler.distribution(logits, guide)
            found = torch.zeros_like(wanted)
            found[ids] = probabilities
            assert torch.equal(found > 1e-30, wanted > 1e-30), sampler  # float32 gives up somewhere below
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)
            assert float(wanted[sampler.sample(logits, guide, generator=generator)]) > 0


def test_few_questions_and_no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    guide = sg.Guide(sg.compile(sg.Regex("[a-z]+"), VOCABULARY, eager=False))
    asked: list[int] = []
    allows = sg.Guide.allows

    def ask(self: sg.Guide, token: int) -> bool:
        asked.append(token)
        return allows(self, token)

    monkeypatch.setattr(sg.Guide, "allows", ask)
    monkeypatch.setattr(sg.Guide, "bitmask", lambda self: pytest.fail("a mask was worked out"))
    logits = torch.linspace(0, 1, VOCABULARY.size)
    logits[ord("q")] = 30
    for sampler in (Sampler(0.0), Sampler(top_k=1), Sampler(top_k=4), Sampler(top_p=0.9)):
        asked.clear()
        assert sampler.sample(logits, guide) in range(ord("a"), ord("z") + 1) or sampler.top_k == 4
        assert len(asked) <= 80


def test_what_cannot_be_sampled_is_refused() -> None:
    guide = sg.Guide(INDEXES[1])
    logits = torch.zeros(VOCABULARY.size)
    wrongs: list[Any] = [logits[:50], logits.double(), logits[None], [0.0]]
    for wrong in wrongs:
        with pytest.raises(sg.errors.BitmaskError):
            Sampler().distribution(wrong, guide)
    logits[ord("a")] = -torch.inf
    for sampler in (Sampler(0.0), Sampler(), Sampler(top_k=3), Sampler(top_p=0.5)):
        with pytest.raises(sg.errors.BitmaskError, match="finite"):
            sampler.distribution(logits, guide)
    wrong_arguments: list[tuple[Any, ...]] = [
        (-1.0,), (1.0, 0), (1.0, None, 0.0), (1.0, None, 1.5), (float("nan"),), (float("inf"),), ("1",), (True,),
        (1.0, 2.0), (1.0, True), (1.0, None, float("nan")), (1.0, None, "0.5"), (None,),
    ]  # fmt: skip
    for arguments in wrong_arguments:
        with pytest.raises(sg.errors.ArgumentError):
            Sampler(*arguments)
