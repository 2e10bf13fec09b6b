"""Arrays whose items must differ where items are arrays and objects.

The judges: of schemas with finitely many texts all are spelled out, and Python's ``json`` says which of them repeat
an item; then a token is allowed if and only if some text goes on with it. Of others `jsonschema` says which texts are valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import jsonschema
import pytest
from judges.guides import allowed, with_bytes

import structgen as sg
from structgen.correction.endings import shortest_ending
from structgen.runtime.pushdown.distinct.machine import DistinctMachine

BYTES = with_bytes()

BOOLEANS = {"type": "boolean"}


def array(item: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, "uniqueItems": True, **more}


def record(required: list[str] | None = None, **members: Any) -> dict[str, Any]:
    needed = {"required": [*members] if required is None else required}
    return {"type": "object", "properties": members, "additionalProperties": False, **needed}


#: Schemas of finitely many texts.
FINITE: dict[str, tuple[Any, dict[str, Any]]] = {
    "booleans": (array(record(a=BOOLEANS, b=BOOLEANS), maxItems=3), {}),
    "optional": (array(record([], a=BOOLEANS, bb={"enum": ["x", "xy"]}), maxItems=2), {}),
    "any order": (array(record([], a=BOOLEANS, b={"enum": [1, 12]}), maxItems=2), {"property_order": "any"}),
    "names again": (
        array(
            {"type": "object", "patternProperties": {"^[ab]$": {"enum": [1, 2]}}, "additionalProperties": False,
             "maxProperties": 2, "minProperties": 1}, maxItems=2,
        ),
        {},
    ),
    "one name": (
        array(
            {"type": "object", "patternProperties": {"^a$": {"enum": [1, 2]}}, "additionalProperties": False,
             "maxProperties": 2}, maxItems=3,
        ),
        {},
    ),
    "arrays": (array({"type": "array", "items": {"enum": [1, 12, "a"]}, "maxItems": 2}, maxItems=2), {}),
    "pairs": (array({"prefixItems": [BOOLEANS, {"enum": [1, 1.5]}], "items": False, "type": "array"}, maxItems=3), {}),
    "sets of sets": (array(array({"enum": ["a", [1], [2]]}, maxItems=2), maxItems=2), {}),
    "sets in records": (array(record(a=array(BOOLEANS, maxItems=2), b=array({"enum": [[], {}]}, maxItems=1)), maxItems=2), {}),
    "either": ({"anyOf": [array(record(a=BOOLEANS), maxItems=3), {"items": record(a={"const": True}), "type": "array", "maxItems": 3}]}, {}),
    "mixed": (array({"anyOf": [record([], a={"enum": [1, {"b": None}, {}]}), {"enum": [1, "{", []]}]}, maxItems=3), {}),
    "escapes": (array(record(a={"enum": ["a", "b"]}), maxItems=2), {"escapes": "any"}),
    "at least": ({"prefixItems": [record(a=BOOLEANS)], "items": record([], a=BOOLEANS), "type": "array", "uniqueItems": True, "minItems": 2, "maxItems": 3}, {}),
    "within": (record(x=array(record(a=BOOLEANS), maxItems=2), y=array({"type": "array", "items": BOOLEANS, "maxItems": 1}, maxItems=2)), {}),
}  # fmt: skip


def plain(schema: Any) -> Any:
    """The schema without ``uniqueItems``."""
    return json.loads(json.dumps(schema).replace('"uniqueItems": true', '"uniqueItems": false'))


def compiled(schema: Any, vocabulary: sg.Vocabulary = BYTES, **options: Any) -> sg.Index:
    return sg.compile(sg.JsonSchema(schema, **options), vocabulary, eager=False)


def texts(index: sg.Index, most: int) -> Iterator[bytes]:
    """All texts of an index."""
    machine = index.machine
    todo = [(b"", machine.byte_state(machine.start))]
    count = 0
    while todo:
        assert len(todo) < most
        text, state = todo.pop()
        if machine.may_stop(state):
            yield text
            count += 1
            assert count < most
        todo += [(text + bytes((byte,)), after) for byte, after in machine.following(state)]


def is_valid(schema: Any, text: bytes) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize("name", FINITE)
def test_masks_by_all_texts(name: str) -> None:
    schema, options = FINITE[name]
    random = Random(name)
    options = {"whitespace": "compact", **options}
    every = sorted(texts(compiled(plain(schema), **options), 40_000))
    valid = [text for text in every if is_valid(schema, text)]
    assert len(valid) < len(every)
    words = set()
    for _ in range(150):
        text = random.choice(every)
        begin = random.randrange(len(text))
        words.add(text[begin : begin + random.randrange(2, 24)])
    vocabulary = with_bytes(*sorted(word for word in words if len(word) > 1))
    index = compiled(schema, vocabulary, **options)
    assert isinstance(index.machine, DistinctMachine)
    assert sorted(texts(index, 40_000)) == valid
    tokens = [(token, vocabulary.token(token) or b"") for token in range(vocabulary.size)]
    syntax, refused = compiled(plain(schema), vocabulary, **options), 0
    for _ in range(12):
        guide, without, text = sg.Guide(index), sg.Guide(syntax), b""
        target = random.choice(valid)
        while True:
            rests = [each[len(text) :] for each in valid if each.startswith(text)]
            expected = {token for token, data in tokens if data and any(rest.startswith(data) for rest in rests)}
            found = {token for token in allowed(guide) if vocabulary.token(token)}
            assert found == expected, (text, [vocabulary.token(each) for each in found ^ expected])
            assert guide.is_accepting() == (b"" in rests)
            refused += len([token for token in allowed(without) if vocabulary.token(token)]) - len(found)
            if text == target:
                break
            token = random.choice([token for token, data in tokens if data and target.startswith(data, len(text))])
            assert guide.advance(token)
            assert without.advance(token)
            text += vocabulary.token(token) or b""
    assert refused
