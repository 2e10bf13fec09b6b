"""Forced tokens: allowed one after the other, and the tokenizer's own, whatever text comes of it."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import structgen as sg
from structgen.runtime.rows.bitmask import ids_of

PERSON = {
    "type": "object",
    "properties": {
        "first_name": {"type": "string", "maxLength": 12},
        "is_employed": {"type": "boolean"},
        "numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        "größe": {"enum": ["klein", "mittelgroß", "mittelmäßig"]},
        "address": {"type": "object", "properties": {"street_name": {"type": "string"}}, "required": ["street_name"],
                    "additionalProperties": False},
    },
    "required": ["first_name", "is_employed", "numbers", "größe", "address"],
    "additionalProperties": False,
}  # fmt: skip

DEFINITIONS: dict[str, Any] = {
    "schema": sg.JsonSchema(PERSON),
    "compact": sg.JsonSchema(PERSON, whitespace="compact"),
    "indented": sg.JsonSchema(PERSON, whitespace=2),
    "regex": sg.Regex("The answer is: (yes|no, not at all|no, never)\\."),
    "spaces": sg.Regex("x  {4}y"),
    "emoji": sg.Regex("a👩‍💻(b|👩)"),
    "grammar": sg.Grammar('start: "select " NAME " from tablename where " NAME\nNAME: /[a-z]+/'),
}


def test_a_vocabulary_by_hand() -> None:
    pieces = [b"a", b"b", b"c", b"ab", b"abc", b"bc", b"x", b"xa", None]
    vocabulary = sg.Vocabulary.from_bytes(pieces, eos_ids=[8])

    def longest(text: str) -> list[int]:
        found: list[int] = []
        data = text.encode()
        while data:
            best = max((p for p in pieces if p and data.startswith(p)), key=len)
            found.append(pieces.index(best))
            data = data[len(best) :]
        return found

    def forced(pattern: str, *tokens: int) -> list[int]:
        guide = sg.Guide(sg.compile(sg.Regex(pattern), vocabulary))
        assert all(guide.advance(token) for token in tokens)
        return guide.forced_tokens(longest)

    assert forced("xabc") == [7, 5, 8]  # "xa", "bc", and the end
    assert forced("xab(c|a)") == [7]  # "b" may become "bc"
    assert forced("xab(a|b)") == [7, 1]  # it can't
    assert forced("xab(a|b|)") == [7, 1]
    assert forced("xa(b|c)") == [7]
    assert forced("x(a|b)") == []  # "x" may become "xa"
    assert forced("x(b|c)") == [6]
    assert forced("(a|b)c") == []
    assert forced("(a|b)c", 0) == [2, 8]
    assert forced("a|b", 0) == [8]
    assert forced("a", 0, 8) == []
    with pytest.raises(sg.errors.VocabularyError, match="tokenizer"):
        sg.Guide(sg.compile(sg.Regex("a"), vocabulary)).forced_tokens()


@cache
def words_and_ends(vocabulary: sg.Vocabulary) -> NDArray[np.bool_]:
    """Which tokens are letters and digits only, or end a text."""
    tokens = (vocabulary.token(i) or b"" for i in range(vocabulary.size))
    found = np.fromiter((token.isalnum() for token in tokens), np.bool_)
    found[list(vocabulary.eos_ids)] = True
    return found


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("model", ["llama3", "gemma", "tekken"])
def test_they_are_what_the_tokenizer_makes_of_any_text(name: str, model: str, request: pytest.FixtureRequest) -> None:
    vocabulary: sg.Vocabulary = request.getfixturevalue(model)
    if vocabulary.encode is None:
        pytest.skip("the tokenizers package is not installed")
    index = sg.compile(DEFINITIONS[name], vocabulary, eager=False)
    words = words_and_ends(vocabulary)
    chance = random.Random(name)
    forced = 0
    for _ in range(3):
        guide = sg.Guide(index)
        pieces: list[tuple[int, list[int]]] = []  # where forced tokens were written, and which
        data = b""
        while not guide.is_finished() and len(data) < 250:
            tokens = guide.forced_tokens()
            if tokens:
                pieces.append((len(data), [t for t in tokens if t not in vocabulary.eos_ids]))
                forced += len(tokens)
            else:
                ids = ids_of(guide.bitmask())
                likely = ids[words[ids]]
                tokens = [int(chance.choice(likely if len(likely) and chance.random() < 0.6 else ids))]
            for token in tokens:
                assert guide.allows(token)
                assert guide.advance(token)
                data += vocabulary.token(token) or b""
        for start, tokens in pieces:
            text = data[start:].decode("utf-8", "ignore")
            assert tokens == list(vocabulary.encode(text))[: len(tokens)], text
    assert forced >= 3


def test_json_that_is_written_as_a_tokenizer_would(llama3: sg.Vocabulary) -> None:
    """The whole text's tokens, where free text is chosen as the tokenizer splits it, are mostly the same."""
    if llama3.encode is None:
        pytest.skip("the tokenizers package is not installed")
    person = {"first_name": "Ada", "is_employed": True, "numbers": [1, 22], "größe": "klein",
              "address": {"street_name": "Main Street"}}  # fmt: skip
    text = json.dumps(person, ensure_ascii=False)
    wanted = list(llama3.encode(text))
    guide = sg.Guide(sg.compile(sg.JsonSchema(PERSON), llama3, eager=False))
    written = forced = 0
    while written < len(wanted):
        tokens = [t for t in guide.forced_tokens() if t not in llama3.eos_ids]
        assert wanted[written : written + len(tokens)] == tokens
        tokens = tokens or [wanted[written]]
        forced += len(tokens) > 1
        assert all(map(guide.advance, tokens))
        written += len(tokens)
    assert forced
    assert guide.is_accepting()
