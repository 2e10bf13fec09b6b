"""Key-value caches that went back: bit for bit what one is that never read the tokens that were taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fakes.tiny_models import byte_tokenizer, tiny_llama, tiny_mistral  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import UnsupportedError  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor, caches, generate  # noqa: E402

if not hasattr(transformers.GenerationMixin, "_prefill"):
    pytest.skip("the loop is for transformers 5", allow_module_level=True)

from transformers.cache_utils import Cache, DynamicCache, QuantizedCache, QuantizedLayer, StaticCache  # noqa: E402

TOKENIZER = byte_tokenizer()
VOCABULARY = sg.Vocabulary.from_transformers(TOKENIZER)
WINDOW, LENGTH = 8, 256


class Rounded(QuantizedLayer):  # type: ignore[misc, no-untyped-call]
    """Quantised as Quanto's and HQQ's layers are, by steps of a sixteenth, with a residual of five tokens."""

    def __init__(self) -> None:
        super().__init__(residual_length=5)

    def _quantize(self, tensor: Any, axis: int) -> Any:  # type: ignore[override]
        return (16 * tensor).round().to(torch.int32)

    def _dequantize(self, quantised: Any) -> Any:
        return quantised.float() / 16


KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "dynamic": ("llama", lambda config: DynamicCache(config=config)),
    "sliding": ("mistral", lambda config: DynamicCache(config=config)),
    "static": ("llama", lambda config: StaticCache(config=config, max_cache_len=LENGTH)),
    "fp8": ("llama", lambda config: QuantizedCache("fp8", config)),
    "residual": ("llama", lambda config: Cache(layers=[Rounded() for _ in range(config.num_hidden_layers)])),
    "quanto": ("llama", lambda config: QuantizedCache("quanto", config, q_group_size=16, residual_length=5)),
    "hqq": ("llama", lambda config: QuantizedCache("hqq", config, q_group_size=16, residual_length=5)),
}
PACKAGES = {"quanto": "optimum.quanto", "hqq": "hqq.core.quantize"}


def made(kind: str, model: Any) -> Any:
    """A cache of a kind, for a model."""
    if kind in PACKAGES:
        pytest.importorskip(PACKAGES[kind])
    return KINDS[kind][1](model.config)


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    arguments = VOCABULARY.size + 20, TOKENIZER.eos_token_id, TOKENIZER.pad_token_id
    return {"llama": tiny_llama(*arguments, num_hidden_layers=2), "mistral": tiny_mistral(*arguments, WINDOW)}


def read(model: Any, cache: Any, tokens: list[int]) -> Any:
    """The scores behind each token, read one by one."""
    with torch.no_grad():
        return [model(torch.tensor([[token]]), past_key_values=cache).logits[0, -1] for token in tokens]


@pytest.mark.parametrize("count", [1, 3, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_a_cache_that_never_went_on(models: dict[str, Any], kind: str, count: int) -> None:
    model = models[KINDS[kind][0]]
    text = TOKENIZER.encode("the true name is a long one 1212 and")
    for length in (3, WINDOW, len(text)):  # within the window, at its end, beyond
        gone, never = made(kind, model), made(kind, model)
        for cache in (gone, never):
            caches.prepare(cache)
            read(model, cache, text[:length])
        before = caches.held(gone)
        wrong = read(model, gone, [65] * count)
        caches.go_back(gone, count, before)
        assert int(gone.get_seq_length()) == length
        again, expected = (read(model, cache, TOKENIZER.encode("xyz 12 the")) for cache in (gone, never))
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(again, expected, strict=True))
        assert not torch.equal(wrong[0], again[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", ["[^x]{10,40}", "[a-z ]{5,40}\\.", "(?:[\\x00-\\x5f]|[^\\x00-\\x7f]){10,40}"])
def test_optimistic_decoding_is_what_masks_give(models: dict[str, Any], kind: str, pattern: str) -> None:
    model, index = models[KINDS[kind][0]], sg.compile(sg.Regex(pattern), VOCABULARY)
    inputs = TOKENIZER("the name", return_tensors="pt")
    for seed in range(4):
        found = []
        for how in (
            {"custom_generate": generate, "index": index, "mode": "optimistic", "ahead": 16},
            {"logits_processor": [LogitsProcessor(index)]},
        ):
            torch.manual_seed(seed)
            rows = model.generate(
                input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=40,
                do_sample=True, top_k=0, past_key_values=made(kind, model), **how,
            )  # fmt: skip
            found.append(rows[0].tolist())
        assert found[0] == found[1]


def test_caches_by_name(models: dict[str, Any]) -> None:
    index = sg.compile(sg.Regex("[a-z ]{5,40}\\."), VOCABULARY)
    inputs = TOKENIZER("the name", return_tensors="pt")
    inputs = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}
    options = {"max_new_tokens": 20, "do_sample": False}
    how = {"custom_generate": generate, "index": index, "mode": "optimistic", "ahead": 16}
    expected = models["llama"].generate(**inputs, **options, logits_processor=[LogitsProcessor(index)])
    for name in ("dynamic", "static"):
        rows = models["llama"].generate(**inputs, **options, **how, cache_implementation=name)
        assert rows.tolist() == expected.tolist()
    with pytest.raises(UnsupportedError, match="StaticSlidingWindowLayer"):
        models["mistral"].generate(**inputs, **options, **how, cache_implementation="static")
