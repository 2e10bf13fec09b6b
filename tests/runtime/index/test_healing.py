"""Token healing: masks behind a prefix against brute force, and which tokens of a prompt are taken back."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from conftest import tokenizer_folder
from judges.guides import EACH_BYTE
from judges.naive import allowed_tokens, small_vocabulary

import structgen as sg
from structgen.runtime import LogitsProcessor
from structgen.runtime.core.machine import Match
from structgen.runtime.index.healing import HealedIndex, heal

ALPHABET = b"ab:/"


def random_vocabulary(rng: random.Random) -> sg.Vocabulary:
    """Some tokens over a few bytes, not always each byte, some of them twice; a special token and an EOS id."""
    tokens = [bytes(rng.choices(ALPHABET, k=rng.choice([1, 1, 2, 2, 3, 4]))) for _ in range(rng.randint(3, 14))]
    if rng.random() < 0.6:
        tokens += [bytes([byte]) for byte in ALPHABET]
    return sg.Vocabulary.from_bytes([*tokens, None, None], [len(tokens) + 1])


class Brute:
    """What is allowed, by trying: texts are a prefix, then what an index matches, or anything."""

    def __init__(self, prefix: bytes, index: sg.Index | None, vocabulary: sg.Vocabulary) -> None:
        self.prefix, self.index, self.vocabulary = prefix, index, vocabulary
        self.tokens = [vocabulary.token(t) for t in range(vocabulary.size)]
        self.spells = lru_cache(maxsize=None)(self._spells)

    def is_viable(self, rest: bytes) -> bool:
        return self.index is None or self.index.match(rest).consumed == len(rest)

    def _spells(self, rest: bytes) -> bool:
        """Whether tokens lead over the rest of the prefix."""
        return not rest or any(self._fits(token, rest) for token in self.tokens if token)

    def _fits(self, token: bytes, rest: bytes) -> bool:
        if len(token) > len(rest):
            return token.startswith(rest) and self.is_viable(token[len(rest) :])
        return rest.startswith(token) and bool(self.spells(rest[len(token) :]))

    def can_heal(self, prefix: bytes) -> bool:
        """Whether some token goes beyond a prefix, and every way to do so leads to what tokens spell."""
        pieces = [t for t in self.tokens if t]
        spelled = re.compile(b"(?:%s)*" % b"|".join(map(re.escape, pieces)))
        ends = [prefix[offset:] for offset in range(len(prefix))]
        rests = [[t[len(end) :] for t in pieces if t.startswith(end) and t != end] for end in ends]
        live = [[rest for rest in some if self.is_viable(rest)] for some in rests]
        return bool(live[0]) and (self.index is None or all(spelled.fullmatch(rest) for one in live for rest in one))

    def allows(self, text: bytes, token_id: int) -> bool:
        token, inside = self.tokens[token_id], len(text) < len(self.prefix)
        if token is None:
            if inside:
                return False
            if token_id in self.vocabulary.eos_ids:
                return self.index is None or self.index.match(text[len(self.prefix) :]).accepted
            return self.index is None
        if inside:
            return self._fits(token, self.prefix[len(text) :])
        return self.is_viable(text[len(self.prefix) :] + token)


DEFINITIONS: list[Callable[[], Any]] = [
    lambda: None,
    lambda: sg.Regex(r"//[ab]+"),
    lambda: sg.Regex(r"(.|\n)*"),
    lambda: sg.Regex(r"[ab:]{0,3}/?"),
    lambda: sg.Regex(r"a?b?"),
    lambda: sg.Gbnf('root ::= ("a" "b"? | "/")+'),
    lambda: sg.Grammar('start: ("a" "b"? | "/" | "://")+\n'),
]


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_masks_against_brute_force(definition: Callable[[], Any]) -> None:
    made, rng = definition(), random.Random(5)
    steps = 0
    for _ in range(60):
        vocabulary = random_vocabulary(rng)
        try:
            index = None if made is None else sg.compile(made, vocabulary)
        except sg.errors.VocabularyError:
            continue
        spelled = [t for t in range(vocabulary.size) if vocabulary.token(t)]
        prompt = rng.choices(spelled, k=rng.randint(1, 5))
        healed = heal(prompt, vocabulary, index)
        guide = sg.Guide(healed.index)
        brute = Brute(healed.prefix, index, vocabulary)
        text = b""
        for _ in range(7):
            mask = allowed_tokens(guide.bitmask(), vocabulary.size)
            assert mask == {t for t in range(vocabulary.size) if brute.allows(text, t)}
            assert mask == {t for t in range(vocabulary.size) if guide.allows(t)}
            assert guide.is_accepting() == (vocabulary.eos_ids[0] in mask)
            assert mask  # never stuck
            choices = sorted(mask & set(spelled))
            if not choices:
                break
            steps += 1
            token = rng.choice(choices)
            before = guide.fork()
            assert guide.advance(token)
            assert not any(before.fork().advance(t) for t in range(vocabulary.size) if t not in mask)
            if rng.random() < 0.3:
                guide.rollback(1)
                assert allowed_tokens(guide.bitmask(), vocabulary.size) == mask
                assert guide.advance(token)
            text += vocabulary.token(token) or b""
            if index is not None and len(text) >= len(healed.prefix):
                match = healed.index.match(text)
                assert match.consumed == len(text)
                assert match.accepted == guide.is_accepting()
    assert steps > 20


def test_what_is_taken_back_against_brute_force() -> None:
    rng, taken_back = random.Random(8), set()
    for _ in range(300):
        vocabulary = random_vocabulary(rng)
        definition = rng.choice([None, sg.Regex(r"[/b][ab:/]*"), sg.Regex("a")])
        try:
            index = None if definition is None else sg.compile(definition, vocabulary)
        except sg.errors.VocabularyError:
            continue
        tokens = [vocabulary.token(t) or b"" for t in range(vocabulary.size)]
        prompt = rng.choices(range(vocabulary.size), k=rng.randint(1, 6))
        if rng.random() < 0.3:  # the beginning of a token, byte by byte
            prompt += [tokens.index(bytes([b])) for b in rng.choice(tokens)[:-1] if bytes([b]) in tokens]
        brute, count = Brute(b"", index, vocabulary), 0
        most = rng.choice([0, 1, 2, 4])
        for back in range(1, 1 + min(most, len(prompt) - 1)):
            tail = [tokens[t] for t in prompt[-back:]]
            if not all(tail):
                break
            end = b"".join(tail)
            if brute.can_heal(end):
                count = back
        healed = heal(prompt, vocabulary, index, max_tokens=most)
        assert healed.prompt_ids == prompt[: len(prompt) - count]
        assert healed.prefix == b"".join(tokens[t] for t in prompt[len(prompt) - count :])
        if index is not None and not count:
            assert healed.index is index
        taken_back.add(count)
    assert taken_back >= {0, 1, 2, 3}


def test_a_prefix_that_tokens_cannot_spell_everywhere() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"x", b"a", b"ab", b"c", b"abcd", b"d", None], [6])
    healed = heal([0, 2, 3], vocabulary)
    assert healed == type(healed)([0], b"abc", healed.index)
    guide = sg.Guide(healed.index)
    assert [t for t in range(7) if guide.allows(t)] == [2, 4]  # behind "a" no token would begin with "b"
    assert guide.advance(2)
    assert [t for t in range(7) if guide.allows(t)] == [3]
    assert guide.advance(3)
    assert guide.bitmask()[0] == 0b1111111
    assert guide.advance(6)
    assert guide.is_finished()


def test_special_tokens_and_the_first_one_stay() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b":", b"://", b"/", None, None], [4])
    assert heal([0], vocabulary).prompt_ids == [0]
    assert heal([], vocabulary).prompt_ids == []
    assert heal([3, 0], vocabulary).prompt_ids == [3]
    assert heal([1, 0, 3], vocabulary).prompt_ids == [1, 0, 3]
    assert heal([1, 3, 0], vocabulary).prefix == b":"
    assert heal(np.array([1, 3, 0]), vocabulary).prompt_ids == [1, 3]  # type: ignore[arg-type]
    with pytest.raises(sg.errors.TokenIdError):
        heal([0, 5], vocabulary)
    other = sg.Vocabulary.from_bytes([b"/", None], [1])
    with pytest.raises(sg.errors.VocabularyMismatchError):
        heal([0], vocabulary, sg.compile(sg.Regex("/"), other))


def test_json_behind_a_prefix() -> None:
    vocabulary = small_vocabulary((b': {"', b': "', b": ", b":"))
    ids = {vocabulary.token(t): t for t in range(vocabulary.size)}
    index = sg.compile(sg.JsonSchema({"type": "object", "properties": {"ab": {"type": "string"}}}), vocabulary)
    healed = heal([ids[b"the"], ids[b": "]], vocabulary, index)
    assert healed.prefix == b": "
    guide, brute = sg.Guide(healed.index), Brute(b": ", index, vocabulary)
    text = b""
    for token in (b': {"', b"ab", b'"', b":", b' "', b"\xc3", b"\xa9b", b'"', b"}"):
        wanted = {t for t in range(vocabulary.size) if brute.allows(text, t)}
        assert allowed_tokens(guide.bitmask(), vocabulary.size) == wanted
        assert guide.advance(ids[token]), token
        text += token
    assert guide.is_accepting()


def test_a_batch_goes_where_guides_go() -> None:
    rng = random.Random(4)
    vocabulary = small_vocabulary((b"://", b":/", b"http:"))
    ids = {vocabulary.token(t): t for t in range(vocabulary.size)}
    prompt = [ids[b"the"], ord(":")]
    definitions = [sg.Regex("//(ab|ba)+"), sg.Regex(r"(.|\n){0,9}"), sg.JsonSchema({"enum": ["ab", 12]})]
    indexes = [None, *(sg.compile(d, vocabulary) for d in definitions)]
    healed = [heal(prompt, vocabulary, index).index for index in indexes]
    assert sum(isinstance(index, HealedIndex) for index in healed) == 3
    guides = [sg.Guide(index) for index in healed]
    batch = sg.GuideBatch(vocabulary, healed)
    for _ in range(12):
        masks = batch.bitmask()
        for row, guide in zip(masks, guides, strict=True):
            assert np.array_equal(row, guide.bitmask())
        tokens = [rng.choice(sorted(allowed_tokens(row, vocabulary.size))) for row in masks]
        assert batch.advance(tokens).all()
        assert all(guide.advance(token) for guide, token in zip(guides, tokens, strict=True))
    assert batch.is_accepting().tolist() == [guide.is_accepting() for guide in guides]
    batch.rollback(12)
    batch.reorder([1, 1, 0])
    first = sg.Guide(healed[1])
    assert np.array_equal(batch.bitmask()[0], first.bitmask())
    chains = [[ids[b"://"], ord("c")], [ids[b":/"], ids[b"aa"]], [ord(":"), ord("c")]]
    assert batch.advance_many(chains).tolist() == [1, 1, 2]
    assert first.advance(ids[b"://"])
    assert np.array_equal(batch.bitmask()[0], first.bitmask())


def test_a_logits_processor_takes_a_healed_index() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"x", b":", b"://", b"/", b"a", None], [5])
    healed = heal([0, 1], vocabulary, sg.compile(sg.Regex("//a"), vocabulary))
    scores = LogitsProcessor(healed.index)(torch.tensor([healed.prompt_ids]), torch.zeros(1, 6))
    assert torch.isfinite(scores)[0].tolist() == [False, True, True, False, False, False]


def test_rows_of_a_prefix_are_remembered() -> None:
    vocabulary = small_vocabulary()
    index = sg.compile(sg.Regex("[a-z]+"), vocabulary)
    prompt = [ord("a"), ord("a")]
    first, second = (heal(prompt, vocabulary, index).index for _ in range(2))
    assert first is second
    assert not first.complete
    assert first.states == index.states + 1
    assert (first.match(b"ab").consumed, first.match(b"ab").accepted) == (2, True)
    assert first.match(b"b") == Match(0, False, False, ((97, 97),))
    assert first.match(b"").expected == ((97, 97),)
    assert first.match(b"a").expected == ((97, 122),)
    free = heal(prompt, vocabulary).index
    assert free.match(b"a\xff") == Match(2, True, True, ((0, 255),))
    assert not free.match(b"b").can_end
    assert "b'a', then" in repr(first)
    with pytest.raises(sg.errors.FormatError, match="can't be saved"):
        first.to_bytes()
    for byte in range(256):
        for other in range(97, 105):
            heal([0, other, byte], vocabulary, index)
    assert len(index.healed) <= 256


@pytest.mark.parametrize(
    ("name", "text", "prefix", "word"),
    [
        ("llama3", 'The link is <a href="http:', b":", b"://"),
        ("llama3", "I like ", b" ", b" cats"),
        ("gemma", "say Hello wor", b" wor", b" world"),
        ("gemma", "Hello", b"Hello", b"HelloWorld"),
    ],
)
def test_real_tokenizers(name: str, text: str, prefix: bytes, word: bytes, request: pytest.FixtureRequest) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_folder(name) / "tokenizer.json"))
    vocabulary: sg.Vocabulary = request.getfixturevalue(name)
    prompt = tokenizer.encode(text).ids
    healed = heal(prompt, vocabulary)
    assert healed.prefix == prefix
    assert prompt[: len(healed.prompt_ids)] == healed.prompt_ids
    guide = sg.Guide(healed.index)
    allowed = allowed_tokens(guide.bitmask(), vocabulary.size)
    tokens = ((t, vocabulary.token(t)) for t in range(vocabulary.size))
    assert allowed == {t for t, data in tokens if data and (data.startswith(prefix) or prefix.startswith(data))}
    assert any(vocabulary.token(t) == word for t in allowed)


def test_what_must_follow_begins_with_the_prefix() -> None:
    vocabulary = sg.Vocabulary.from_bytes([*EACH_BYTE, b'":', None], eos_ids=[257])
    index = sg.compile(sg.Regex("(: yes|:  no)!"), vocabulary)
    healed = heal([*b'{"a"'], vocabulary, index)
    assert healed.prefix == b'"'
    guide = sg.Guide(healed.index)
    assert guide.forced_bytes() == b'": '
    assert guide.advance(256)
    assert guide.forced_bytes() == b" "
    free = sg.Guide(heal([*b'{"a"'], vocabulary).index)
    assert free.forced_bytes() == b'"'
