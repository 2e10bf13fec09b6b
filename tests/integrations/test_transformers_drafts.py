"""Drafts by models of transformers: tiny and random, so that what they write shows the guide and the cache alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import numpy as np
import pytest
import regex

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from fakes.tiny_models import byte_tokenizer, tiny_llama  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.correction.path import Path  # noqa: E402
from structgen.integrations.transformers.drafts import CausalReader, TransformersDraft  # noqa: E402
from structgen.runtime import heal  # noqa: E402

TOKENIZER = byte_tokenizer()
VOCABULARY = sg.Vocabulary.from_transformers(TOKENIZER)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "true": {"type": "boolean"}, "the": {"enum": ["name", "na", "12"]}},
    "required": ["name", "true", "the"],
    "additionalProperties": False,
}
RIGHT = [
    json.dumps({"name": name, "true": yes, "the": the})
    for name in ("Ada é", "", "the true 12")
    for yes in (True, False)
    for the in ("name", "na", "12")
]
PATTERN = r'(?:(?:the|true|name)=(?:[0-9]{1,3}|"[^"]*");){2,4}end'
TEXTS = ['the=12;true="a b";end', 'name="the name";name=1;true=123;end', 'true="é";the=0;end']


@pytest.fixture(scope="module", params=["llama", "mistral"])
def model(request: pytest.FixtureRequest) -> Any:
    width, ends = VOCABULARY.size + 20, (TOKENIZER.eos_token_id, TOKENIZER.pad_token_id)
    if request.param == "llama":
        return tiny_llama(width, *ends, num_hidden_layers=2)
    torch.manual_seed(1)
    config = transformers.MistralConfig(
        vocab_size=width, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=8, max_position_embeddings=512, initializer_range=0.5,
        eos_token_id=ends[0], pad_token_id=ends[1],
    )  # fmt: skip
    return transformers.MistralForCausalLM(config).eval()


def test_scores_are_those_of_the_ids_alone(model: Any) -> None:
    reader, order = CausalReader(model), random.Random(3)
    ids = [1]
    for _ in range(80):
        ids = [*ids[: order.randrange(1, len(ids) + 1)], *order.choices(range(200), k=order.randrange(6))]
        with torch.no_grad():
            expected = model(torch.tensor([ids])).logits[0, -1].numpy()
        assert np.allclose(reader.read(ids), expected, atol=1e-3)


def test_what_was_read_is_not_read_again(model: Any) -> None:
    widths: list[int] = []
    handle = model.register_forward_pre_hook(lambda _, args: widths.append(args[0].shape[1]))
    reader = CausalReader(model)
    for ids in ([1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2, 9], [1, 2, 9], [7]):
        reader.read(ids)
    handle.remove()
    if hasattr(transformers.GenerationMixin, "_prefill"):  # before, windows could not go back
        assert widths == [4, 1, 1, 1, 1]


def test_healed_behind_a_text() -> None:
    """What may follow is what spells the tokens that were taken back, and goes on as `regex` says that it may."""
    index = sg.compile(sg.Regex(PATTERN), VOCABULARY, eager=False)
    order, taken = random.Random(4), set()
    for _ in range(150):
        text = order.choice(TEXTS)
        begin = text[: order.randrange(len(text))]
        path = Path(index)
        assert path.extend(begin.encode()) == len(begin.encode())
        ids = TOKENIZER.encode("Say it: " + begin)
        healed = heal(ids, VOCABULARY, index, behind=path.config)
        taken.add(len(ids) - len(healed.prompt_ids))
        assert b"".join(VOCABULARY.token(i) or b"" for i in ids[len(healed.prompt_ids) :]) == healed.prefix
        guide = sg.Guide(healed.index)
        for token in order.sample(range(VOCABULARY.size), 60) + ids[len(healed.prompt_ids) :][:1]:
            data = VOCABULARY.token(token)
            if data is None:
                expected = not healed.prefix and token in VOCABULARY.eos_ids and is_text(begin)
            elif healed.prefix.startswith(data):
                expected = healed.prefix != b"" or not data
            else:
                beyond = data[len(healed.prefix) :]
                expected = data.startswith(healed.prefix) and is_beginning(begin.encode() + beyond)
            assert guide.allows(token) == expected, (begin, healed.prefix, data)
    assert len(taken) > 1


def is_text(text: str) -> bool:
    return regex.fullmatch(PATTERN, text) is not None


def is_beginning(data: bytes) -> bool:
    """Whether some text begins with these bytes, whose last character may be cut off."""
    text = data.decode("utf-8", "ignore")
    whole = len(text.encode())
    if whole < len(data):  # within a string anything may follow
        try:
            data[whole:].decode()
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                return False
        text += "é"
    return regex.fullmatch(PATTERN, text, partial=True) is not None


class Adversary:
    """A model that says right texts from anywhere on, with wrong things in them."""

    def __init__(self, texts: list[str], seed: int) -> None:
        self._texts, self._random = texts, random.Random(seed)

    def __call__(self, prompt: str) -> Iterator[str]:
        order = self._random
        text = order.choice(self._texts)
        text = text[order.choice([0, order.randrange(len(text))]) :]
        at = order.randrange(len(text) + 1)
        return iter([text[:at], order.choice(["", "nonsense", "}", '"', "\0", "é"]), text[at:]])


@pytest.mark.nightly
@pytest.mark.parametrize("temperature", [None, 1.3])
@pytest.mark.parametrize("kind", ["schema", "regex"])
def test_whatever_comes_out_is_valid(model: Any, kind: str, temperature: float | None) -> None:
    definition, texts = (sg.JsonSchema(SCHEMA), RIGHT) if kind == "schema" else (sg.Regex(PATTERN), TEXTS)
    index = sg.compile(definition, VOCABULARY, eager=False)
    draft = TransformersDraft(model, TOKENIZER, vocabulary=VOCABULARY, max_tokens=40)
    options: dict[str, Any] = {"max_corrections": 4, "temperature": temperature}
    drafted = 0
    for seed in range(25):
        result = sg.correct(Adversary(texts, seed), index, "Say it: ", draft=draft, seed=seed, **options)
        assert result.complete
        if kind == "schema":
            jsonschema.validate(json.loads(result.text), SCHEMA)
        else:
            assert is_text(result.text)
        assert "".join(piece.text for piece in result.pieces if piece.source != "dropped") == result.text
        drafted += sum(event.chosen_by == "draft" for event in result.events)
        again = TransformersDraft(model, TOKENIZER, vocabulary=VOCABULARY, max_tokens=40)
        same = sg.correct(Adversary(texts, seed), index, "Say it: ", draft=again, seed=seed, **options)
        assert same.text == result.text
    assert drafted > 10


def test_a_greedy_draft_is_what_the_model_finds_best(model: Any) -> None:
    """By a judge without cache and guide: all ids anew for each token, and `regex` for each id, best first."""
    draft = TransformersDraft(model, TOKENIZER, vocabulary=VOCABULARY, max_tokens=6)
    plain = sg.Vocabulary.from_bytes([VOCABULARY.token(i) for i in range(VOCABULARY.size)], VOCABULARY.eos_ids)
    free = TransformersDraft(model, TOKENIZER, vocabulary=plain, max_tokens=6)  # no tokenizer: nothing is forced
    index = sg.compile(sg.Regex(PATTERN), VOCABULARY, eager=False)
    for begin in ("", "the=", 'the=12;name="', "true=1;the=12"):
        path = Path(index)
        path.extend(begin.encode())
        ids = TOKENIZER.encode("Say: " + begin)
        healed = heal(ids, VOCABULARY, index, behind=path.config)
        ids, spelled = list(healed.prompt_ids), b""
        for _ in range(6):
            with torch.no_grad():
                order = model(torch.tensor([ids])).logits[0, -1].argsort(descending=True).tolist()
            token = next(i for i in order if allowed(i, healed.prefix, spelled, begin))
            ids.append(token)
            spelled += VOCABULARY.token(token) or b""
        expected = spelled[len(healed.prefix) :]
        assert b"".join(free.write("Say: ", begin, index, path.config)) == expected
        forced = b"".join(draft.write("Say: ", begin, index, path.config))
        assert is_beginning(begin.encode() + forced)


def allowed(token: int, prefix: bytes, spelled: bytes, begin: str) -> bool:
    data = VOCABULARY.token(token) if token < VOCABULARY.size else None
    if data is None:
        return False
    whole = spelled + data
    beyond = begin.encode() + whole[len(prefix) :]
    return prefix.startswith(whole) or (whole.startswith(prefix) and is_beginning(beyond))


def test_a_template_and_a_window() -> None:
    model = tiny_llama(VOCABULARY.size, TOKENIZER.eos_token_id, None, max_position_embeddings=48)
    seen: list[int] = []
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape[1]))
    draft = TransformersDraft(model, TOKENIZER, template=lambda prompt: f"[{prompt}]", max_tokens=8)
    index = sg.compile(sg.Regex("[a-z]{100}"), draft.vocabulary, eager=False)
    text = b"".join(draft.write("q" * 200, "", index, index.machine.start))
    assert 8 <= len(text) <= 24
    assert sum(seen) <= 48
