"""Objects of more members in any order than a word has bits: `jsonschema` and a parser that takes no name twice."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from judges.guides import ids_of_bits
from numpy.typing import NDArray

import structgen as sg
from structgen.runtime.pushdown import tables
from structgen.vocabulary.vocabulary import Vocabulary

NAMES = [f"n{i}" for i in range(100)]

SCHEMAS: dict[str, dict[str, Any]] = {
    "closed": {"required": NAMES[40:90], "additionalProperties": False},
    "open": {"required": NAMES[::5]},
    "bounded": {"required": NAMES[10:60:7], "maxProperties": 30},
    "marked": {"additionalProperties": False, "not": {"additionalProperties": {"type": "integer"}}},
}

TOKENS = [bytes((byte,)) for byte in range(256)] + [
    b'","', b'{"', b'":', b', "n', b'"n1', b'": 1, "n2": 1, "', b'n1": 1, "n1', b'1}', b', "n3": "a"}', b'"}', b'": ',
    *[b'"%s": ' % name.encode() for name in NAMES], None,
]  # fmt: skip

VOCABULARY = Vocabulary.from_bytes(TOKENS, eos_ids=[len(TOKENS) - 1])


def schema_of(name: str) -> dict[str, Any]:
    own = {each: {"enum": ["a", None] if i % 3 == 0 else [i, -1]} for i, each in enumerate(NAMES)}
    return {"type": "object", "properties": own} | SCHEMAS[name]


def without_repeats(members: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(members)) == len(members)
    return dict(members)


def some_text(rng: random.Random, schema: dict[str, Any]) -> str:
    """The members of an object in any order, some missing or there twice."""
    names = [name for name in NAMES if name in schema.get("required", ()) or rng.random() < 0.2]
    rng.shuffle(names)
    names = names[: rng.choice((len(names), len(names), rng.randint(0, 45)))]
    if rng.random() < 0.2 and names:
        names[rng.randrange(len(names))] = rng.choice(NAMES)
    if rng.random() < 0.2:
        names.insert(rng.randint(0, len(names)), rng.choice([*NAMES, "x"]))
    members = [f"{json.dumps(name)}: {json.dumps(rng.choice(own_values(schema, name)))}" for name in names]
    return "{" + ", ".join(members) + "}"


def own_values(schema: dict[str, Any], name: str) -> list[Any]:
    values: list[Any] = schema["properties"].get(name, {"enum": ["y", 1]})["enum"]
    return values


@pytest.mark.parametrize("name", SCHEMAS)
def test_texts(name: str) -> None:
    schema = schema_of(name)
    index = sg.compile(sg.JsonSchema(schema, property_order="any"), VOCABULARY)
    judge, rng, seen = Draft202012Validator(schema), random.Random(name), []
    for _ in range(40):
        text = some_text(rng, schema)
        try:
            valid = judge.is_valid(json.loads(text, object_pairs_hook=without_repeats))
        except AssertionError:
            valid = False
        assert index.match(text.encode()).accepted == valid, text
        seen.append(valid)
    assert 3 < sum(seen) < 38


@pytest.mark.parametrize("size", [1, 1 << 28])
@pytest.mark.parametrize("name", SCHEMAS)
def test_masks(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Along a text the mask has what `advance` takes, also in a loaded index; sets of `size` bytes have room."""
    monkeypatch.setattr(tables, "_SET_BYTES", size)
    schema, rng = schema_of(name), random.Random(name)
    index = sg.compile(sg.JsonSchema(schema, property_order="any"), VOCABULARY)
    judge = Draft202012Validator(schema)
    texts = (some_text(rng, schema) for _ in range(1000))
    text = next(text for text in texts if index.match(text.encode()).accepted and len(text) > 200).encode()
    assert judge.is_valid(json.loads(text))
    guide, at, back = sg.Guide(index), 0, list[tuple[NDArray[np.int32], int]]()
    while at < len(text):
        row = guide.bitmask().copy()
        allowed = set(ids_of_bits(row))
        if rng.random() < 0.3:
            tried = [*rng.sample(range(len(TOKENS) - 1), 40), *range(256, 267)]
            assert allowed.intersection(tried) == {token for token in tried if guide.fork().advance(token)}
        fitting = [i for i, token in enumerate(TOKENS) if token and text.startswith(token, at)]
        token = rng.choice(fitting)
        back.append((row, token))
        assert token in allowed
        assert guide.advance(token)
        at += len(TOKENS[token] or b"")
    assert guide.is_accepting()
    again = sg.Guide(sg.Index.from_buffer(index.to_bytes(), VOCABULARY))
    for row, token in back:
        np.testing.assert_array_equal(again.bitmask(), row)
        assert again.advance(token)
    for row, _ in reversed(back):
        guide.rollback(1)
        np.testing.assert_array_equal(guide.bitmask(), row)


@pytest.mark.parametrize("more", [{}, {"maxProperties": 3}], ids=["names", "sets"])
def test_more_than_are_told_apart_are_refused_with_place_bound_and_remedy(more: dict[str, Any]) -> None:
    inner = {"type": "object", "properties": {f"n{i}": {} for i in range(1_025)}, **more}
    for order in ("any", "schema"):
        definition = sg.JsonSchema({"items": inner}, property_order=order)
        if order == "schema":
            assert sg.compile(definition, VOCABULARY, eager=False).match(b'[{"n1024": 1}]').accepted
            continue
        with pytest.raises(sg.errors.UnsupportedError, match=r"1,025 .*1,024") as caught:
            sg.compile(definition, VOCABULARY, eager=False)
        assert (caught.value.where, "property_order" in caught.value.remedy) == ("/items", True)
