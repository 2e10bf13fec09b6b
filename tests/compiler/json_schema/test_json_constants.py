"""Constants that are equal and written differently: each place has its own spelling, and they stay equal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judges.guides import BYTES
from judges.json_judge import Judge

import structgen as sg
from structgen.errors import EmptyLanguageError

#: Pairs of equal constants.
EQUAL = [
    ('{"a":1,"b":2}', '{"b":2,"a":1}'), ("1", "1.0"), ("[1]", "[1.0]"), ('{"x":1.0}', '{"x":1}'),
    ('[{"a":[],"b":{}}]', '[{"b":{},"a":[]}]'), ('{"a":{"b":0,"c":1},"d":2}', '{"d":2,"a":{"c":1,"b":0}}'),
]  # fmt: skip

#: Schemas of two places, the text of a value with both, and whether each spelling has its place.
PLACES = [
    ('{"properties":{"l":{"const":%s},"r":{"const":%s}}}', '{"l":%s,"r":%s}'),
    ('{"properties":{"l":{"enum":[%s,true]},"r":{"enum":[null,%s]}}}', '{"l":%s,"r":%s}'),
    ('{"prefixItems":[{"const":%s},{"const":%s}]}', "[%s,%s]"),
    ('{"prefixItems":[{"items":{"const":%s}},{"items":{"const":%s}}]}', "[[%s],[%s]]"),
    (
        '{"$defs":{"l":{"const":%s},"r":{"const":%s}},"properties":{"l":{"$ref":"#/$defs/l"},"r":{"$ref":"#/$defs/r"}}}',
        '{"l":%s,"r":%s}',
    ),
]


def accepts(schema: Any, text: str) -> bool:
    try:
        return sg.compile(sg.JsonSchema(schema), BYTES, eager=False).match(text.encode()).accepted
    except EmptyLanguageError:
        return False


@pytest.mark.parametrize(("left", "right"), EQUAL)
@pytest.mark.parametrize(("schema", "text"), PLACES)
def test_each_place_has_its_own_spelling(schema: str, text: str, left: str, right: str) -> None:
    for first, second in ((left, right), (right, left)):
        both = schema % (first, second)
        assert Judge(json.loads(both)).is_valid(text % (first, second))
        assert accepts(both, text % (first, second))
        assert not accepts(both, text % (second, first))


@pytest.mark.parametrize(("left", "right"), EQUAL)
@pytest.mark.parametrize(
    "schema",
    [
        '{"prefixItems":[{"const":%s},{"const":%s}],"uniqueItems":true}',
        '{"items":{"enum":[%s,%s]},"uniqueItems":true}',
        '{"items":{"anyOf":[{"const":%s},{"const":%s}]},"uniqueItems":true}',
        '{"items":{"oneOf":[{"const":%s},{"const":%s}]}}',
        '{"items":{"const":%s,"not":{"const":%s}}}',
        '{"contains":{"const":%s},"maxContains":1,"items":{"const":%s}}',
    ],
)
def test_they_are_equal(schema: str, left: str, right: str) -> None:
    text = f"[{left},{right}]"
    assert not Judge(json.loads(schema % (left, right))).is_valid(text)
    assert not accepts(schema % (left, right), text)
    assert not accepts(schema % (left, right), f"[{left},{left}]")


@pytest.mark.parametrize("schema", ['{"const":%s,"enum":[%s]}', '{"allOf":[{"const":%s},{"enum":[%s,7]}]}'])
@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_a_place_with_both_takes_one(schema: str, left: str, right: str) -> None:
    for both in (schema % (left, right), schema % (right, left)):
        assert accepts(both, left) or accepts(both, right)


def test_a_value_twice_in_draft_4() -> None:
    """Its metaschema forbids it; validators take it."""
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "enum": [1, "a", 1, "a", {"b": []}, {"b": []}]}
    judge = Judge(schema)
    for text in ("1", '"a"', '{"b":[]}', "2", '"b"', "{}"):
        assert accepts(schema, text) == judge.is_valid(text)
