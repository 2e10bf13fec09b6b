"""Optimistic decoding: token for token what masks at each step give, over caches that go back bit for bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fakes.fake_streamer import Streamer  # noqa: E402
from fakes.tiny_models import byte_tokenizer, tiny_llama, tiny_mistral  # noqa: E402
from judges.chi_square import is_homogeneous  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.errors import UnsupportedError  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor, caches, generate  # noqa: E402
from structgen.integrations.transformers.optimistic import Optimist  # noqa: E402
from structgen.runtime import heal  # noqa: E402

if not hasattr(transformers.GenerationMixin, "_prefill"):
    pytest.skip("the loop is for transformers 5", allow_module_level=True)

from transformers.cache_utils import Cache, DynamicCache, QuantizedCache, QuantizedLayer, StaticCache  # noqa: E402

TOKENIZER = byte_tokenizer()
VOCABULARY = sg.Vocabulary.from_transformers(TOKENIZER)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}, "true": {"type": "boolean"}},
    "required": ["name", "true"],
    "additionalProperties": False,
}
DEFINITIONS = {
    "anything": sg.Regex("[^x]{10,40}"),
    "half": sg.Regex("(?:[\\x00-\\x5f]|[^\\x00-\\x7f]){10,40}"),
    "letters": sg.Regex("[a-z ]{5,40}\\."),
    "schema": sg.JsonSchema(SCHEMA, whitespace="compact"),
    "grammar": sg.Grammar('start: "{" (NAME ":" /[0-9]+/ ";")+ "}"\nNAME: /[a-z]+/'),
}
WINDOW, LENGTH = 8, 256
INDEXES = {name: sg.compile(definition, VOCABULARY) for name, definition in DEFINITIONS.items()}


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama(VOCABULARY.size + 20, TOKENIZER.eos_token_id, TOKENIZER.pad_token_id, num_hidden_layers=2)


@pytest.fixture(scope="module")
def sliding() -> Any:
    return tiny_mistral(VOCABULARY.size + 20, TOKENIZER.eos_token_id, TOKENIZER.pad_token_id, WINDOW)


def prompt(text: str | list[str] = "the name") -> dict[str, Any]:
    inputs = TOKENIZER(text, return_tensors="pt")
    return {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}


def both(model: Any, index: Any, seed: int, cache: str = "", **options: Any) -> tuple[list[int], list[int]]:
    """What optimistic decoding gives, and what masks at each step do, over a cache of a kind."""
    found = []
    for how in (
        {"custom_generate": generate, "index": index, "mode": "optimistic", "ahead": (16, 5, None)[seed % 3]},
        {"logits_processor": [LogitsProcessor(index)]},
    ):
        torch.manual_seed(seed)
        over = {"past_key_values": made(cache, model)} if cache else {}
        found.append(model.generate(**prompt(), **how, **over, **{"max_new_tokens": 48, **options})[0].tolist())
    return found[0], found[1]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True, "top_k": 0},
        {"do_sample": True, "top_k": 0, "temperature": 0.3},
        {"do_sample": True, "top_k": 0, "use_cache": False},
        {"do_sample": True, "top_k": 5},
        {"do_sample": True, "top_p": 0.5},
        {"do_sample": False, "repetition_penalty": 1.5},
    ],
    ids=str,
)
def test_exact_is_what_masks_give(model: Any, kind: str, options: dict[str, Any]) -> None:
    for seed in range(6):
        ours, masked = both(model, INDEXES[kind], seed, **options)
        assert ours == masked


@pytest.mark.parametrize("kind", ["anything", "half", "letters"])
def test_sliding_windows(sliding: Any, kind: str) -> None:
    for seed in range(6):
        ours, masked = both(sliding, INDEXES[kind], seed, do_sample=True, top_k=0)
        assert ours == masked


def test_exact_is_distributed_as_masked_sampling(model: Any) -> None:
    """First tokens of 400 texts each, of seeds of their own, by a chi-square test of homogeneity (Pearson 1900)."""
    index, other = INDEXES["letters"], sg.compile(sg.Regex("[ab ]{5,40}"), VOCABULARY)
    optimistic = {"custom_generate": generate, "index": index, "mode": "optimistic"}
    ours, lenient, masked, others = (
        Counter(first_tokens(model, seed, **how))
        for seed, how in enumerate(
            (
                optimistic,
                {**optimistic, "distribution": "lenient"},
                {"logits_processor": [LogitsProcessor(index)], "num_return_sequences": 400},
                {"logits_processor": [LogitsProcessor(other)], "num_return_sequences": 400},
            )
        )
    )
    assert is_homogeneous(ours, masked)
    assert is_homogeneous(lenient, masked)  # without warpers behind the mask's place both are the same
    assert not is_homogeneous(others, masked)


def first_tokens(model: Any, seed: int, **how: Any) -> list[int]:
    """Of 400 texts."""
    inputs = prompt()
    options = {"max_new_tokens": 1, "do_sample": True, "top_k": 0, "temperature": 0.7, **how}
    torch.manual_seed(seed)
    runs = 400 // options.get("num_return_sequences", 1)
    return [token for _ in range(runs) for token in model.generate(**inputs, **options)[:, -1].tolist()]


def test_mistakes_are_made_and_taken_back(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes: dict[str, int] = {}
    decode = Optimist.decode

    def counted(self: Optimist, ids: Any) -> Any:
        found = decode(self, ids)
        mistakes[kind] = mistakes.get(kind, 0) + self.mistakes
        return found

    monkeypatch.setattr(Optimist, "decode", counted)
    for kind in ("anything", "half", "letters"):
        for seed in range(6):
            both(model, INDEXES[kind], seed, do_sample=True, top_k=0)
    assert min(mistakes.values()) > 6


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize(("ahead", "lost"), [(None, 0), (16, 4)])
def test_mistakes_cost_few_passes(model: Any, kind: str, ahead: int | None, lost: int) -> None:
    """Each token of a model that is nothing but wrong takes one pass, but for some behind the first mistakes."""
    passes: list[int] = []
    with torch.no_grad(), counted_passes(model, passes):
        torch.manual_seed(1)
        rows = model.generate(
            **prompt(), custom_generate=generate, index=INDEXES[kind], mode="optimistic", ahead=ahead, do_sample=True,
            top_k=0, max_new_tokens=48,
        )  # fmt: skip
    tokens = rows.shape[1] - prompt()["input_ids"].shape[1]
    assert tokens <= len(passes) <= tokens + lost


@contextmanager
def counted_passes(model: Any, passes: list[int]) -> Iterator[None]:
    """Within it, each pass of the model is noted with the number of positions that it reads."""
    hook = model.register_forward_pre_hook(
        lambda _, args, kwargs: passes.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    try:
        yield
    finally:
        hook.remove()


@pytest.mark.parametrize("options", [{"top_k": 0}, {"top_k": 5, "top_p": 0.9}], ids=str)
@pytest.mark.parametrize("kind", INDEXES)
def test_lenient_texts_are_valid(model: Any, kind: str, options: dict[str, Any]) -> None:
    inputs = prompt("the")
    length = inputs["input_ids"].shape[1]
    for seed in range(6):
        torch.manual_seed(seed)
        rows = model.generate(
            **inputs, custom_generate=generate,
            index=INDEXES[kind], mode="optimistic", distribution="lenient", do_sample=True, max_new_tokens=48,
            **options,
        )  # fmt: skip
        guide = sg.Guide(INDEXES[kind])
        assert all(map(guide.advance, rows[0, length:].tolist()))


def test_lenient_keeps_what_the_model_chose(model: Any) -> None:
    """With a definition that allows nearly all, tokens are those of the model alone up to the first mistake."""
    inputs = prompt("the")
    suppressed = list(range(VOCABULARY.size, VOCABULARY.size + 20))
    options = {"do_sample": True, "top_k": 5, "max_new_tokens": 12, "suppress_tokens": suppressed}
    start = inputs["input_ids"].shape[1]
    more = {"custom_generate": generate, "mode": "optimistic", "distribution": "lenient"}
    anything = heal([0], VOCABULARY).index
    for seed in range(6):
        torch.manual_seed(seed)
        free = model.generate(**inputs, **options)[0].tolist()
        for index in (anything, INDEXES["anything"]):
            torch.manual_seed(seed)
            found = model.generate(**inputs, index=index, **more, **options)[0].tolist()
            guide = sg.Guide(index)
            valid = start
            while valid < len(free) and free[valid] < VOCABULARY.size and guide.advance(free[valid]):
                valid += 1
            assert found[:valid] == free[:valid]
            assert valid == len(free) or index is not anything


@pytest.mark.parametrize("family", ["model", "sliding"])
def test_a_cache_that_went_back_is_as_good_as_new(family: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(family)
    inputs = prompt()
    torch.manual_seed(5)
    answer = model.generate(
        **inputs, custom_generate=generate,
        index=INDEXES["half"], mode="optimistic", ahead=16, do_sample=True, top_k=0, max_new_tokens=30,
        return_dict_in_generate=True,
    )  # fmt: skip
    ids, cache = answer.sequences, answer.past_key_values
    read = cache.get_seq_length()
    assert inputs["input_ids"].shape[1] < read <= ids.shape[1]
    with torch.no_grad():
        whole = model(ids).logits[:, -1]
        rest = model(ids[:, read:], past_key_values=cache).logits[:, -1] if read < ids.shape[1] else whole
    assert torch.allclose(whole, rest, atol=1e-4)


def test_streamers_get_what_was_checked(model: Any) -> None:
    streamer = Streamer()
    inputs = prompt()
    rows = model.generate(
        **inputs, custom_generate=generate,
        index=INDEXES["half"], mode="optimistic", do_sample=True, max_new_tokens=30, streamer=streamer,
    )  # fmt: skip
    assert streamer.tokens == rows[0].tolist()
    assert streamer.ended


def test_what_is_refused(model: Any) -> None:
    inputs = prompt(["the", "the"])
    options = {"custom_generate": generate, "index": INDEXES["letters"], "mode": "optimistic", "max_new_tokens": 5}
    with pytest.raises(ValueError, match="one sequence"):
        model.generate(**inputs, **options)


# -- caches ----------------------------------------------------------------------------------------------


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


@pytest.fixture
def models(model: Any, sliding: Any) -> dict[str, Any]:
    return {"llama": model, "mistral": sliding}


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


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("definition", ["anything", "letters", "half"])
def test_optimistic_decoding_is_what_masks_give(models: dict[str, Any], kind: str, definition: str) -> None:
    for seed in (0, 1, 3, 4):  # up to 16 and five tokens ahead
        options = {"do_sample": True, "top_k": 0, "max_new_tokens": 40}
        ours, masked = both(models[KINDS[kind][0]], INDEXES[definition], seed, kind, **options)
        assert ours == masked


def test_caches_by_name(models: dict[str, Any]) -> None:
    index, inputs = INDEXES["letters"], prompt()
    options = {"max_new_tokens": 20, "do_sample": False}
    how = {"custom_generate": generate, "index": index, "mode": "optimistic", "ahead": 16}
    expected = models["llama"].generate(**inputs, **options, logits_processor=[LogitsProcessor(index)])
    for name in ("dynamic", "static"):
        rows = models["llama"].generate(**inputs, **options, **how, cache_implementation=name)
        assert rows.tolist() == expected.tolist()
    with pytest.raises(UnsupportedError, match="StaticSlidingWindowLayer"):
        models["mistral"].generate(**inputs, **options, **how, cache_implementation="static")
