"""The order in which members come: that of a branch, of the keywords in the text; judged by llguidance."""

from __future__ import annotations

import json
from itertools import permutations
from random import Random
from typing import Any

import pytest
from judges.guides import BYTES

import structgen as sg

NAMES = "wxyz"


def members(*names: str) -> dict[str, Any]:
    return {"properties": {name: {"type": "integer"} for name in names}}


def texts(names: str, least: int) -> list[str]:
    return ["".join(some) for count in range(least, len(names) + 1) for some in permutations(names, count)]


def written(names: str, within: str = "") -> bytes:
    value = dict.fromkeys(names, 1)
    return json.dumps({within: value} if within else value).encode()


def orders(schema: Any, names: str, within: str = "", **options: Any) -> list[str]:
    """The orders in which all names may come."""
    index = sg.compile(sg.JsonSchema(schema, **options), BYTES, eager=False)
    every = ["".join(some) for some in permutations(names)]
    return [some for some in every if index.match(written(some, within)).accepted]


X = {"$ref": "#/$defs/x"}
DEFS = {"$defs": {"x": members("x")}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"allOf": [members("x")], **members("y")}, ["xy"]),
        ({**members("y"), "allOf": [members("x")]}, ["yx"]),
        ({"type": "object", "required": ["y"], "allOf": [members("x")], **members("y")}, ["xy"]),
        ({"additionalProperties": {"type": "integer"}, "allOf": [members("x")], **members("y")}, ["yx"]),
        ({**X, **members("y"), **DEFS}, ["xy"]),
        ({**members("y"), **X, **DEFS}, ["yx"]),
        ({**DEFS, **X, "allOf": [members("z")], **members("y")}, ["xzy"]),
        ({**DEFS, "allOf": [members("z")], **members("y"), **X}, ["zyx"]),
        ({"allOf": [{"allOf": [members("x")], **members("z")}], **members("y")}, ["xzy"]),
        ({"anyOf": [members("x"), members("z")], **members("y")}, ["xyz", "zyx"]),
        ({"anyOf": [{"required": ["x"]}], "required": ["y"]}, ["xy"]),
        ({"oneOf": [{**members("x"), "required": ["x"]}], **members("y")}, ["xy"]),
        # An equal subschema in two places.
        ({"anyOf": [members("y"), members("w")], "allOf": [{"anyOf": [members("w")]}]}, ["wy", "yw"]),
    ],
    ids=range(13),
)
def test_names_come_in_the_order_of_the_text(schema: Any, expected: list[str]) -> None:
    names = "".join(sorted({name for some in expected for name in some}))
    assert orders(schema, names) == expected


@pytest.mark.parametrize(
    ("branches", "expected"),
    [
        ([members("x", "y"), members("y", "x")], ["xy", "yx"]),
        ([{**members("x", "y"), "required": ["x", "y"]}, members("y", "x")], ["xy", "yx"]),
        ([{"properties": {"x": {"const": 1}, "y": {}}}, members("y", "x")], ["xy", "yx"]),
        ([{"required": ["x", "y"]}, {"required": ["y", "x"]}], ["xy", "yx"]),
        ([{}, members("y", "x")], ["xy", "yx"]),
        ([members("x", "y"), members("x", "y")], ["xy"]),
    ],
    ids=range(6),
)
@pytest.mark.parametrize("keyword", ["anyOf", "if"])
def test_the_order_of_names_belongs_to_a_branch(branches: list[Any], expected: list[str], keyword: str) -> None:
    schema: dict[str, Any] = {"anyOf": branches}
    if keyword == "if":  # the same number of z, or none
        schema = {"if": {"required": ["z"]}, "then": branches[0], "else": branches[1]}
        expected = orders({"type": "object", **branches[1]}, "xy")
    assert orders({"type": "object", **schema}, "xy") == expected
    assert orders({"type": "object", "items": schema, "properties": {"p": schema}}, "xy", "p") == expected
    assert len(orders({"type": "object", **schema}, "xy", property_order="any")) == 2


@pytest.mark.parametrize("later", [False, True])
def test_what_a_member_must_be_has_the_order_of_the_text(later: bool) -> None:
    parts = {"properties": {"p": X}, "allOf": [{"properties": {"p": members("y")}}]}
    names = [*parts][:: -1 if later else 1]
    assert orders({**DEFS, **{name: parts[name] for name in names}}, "xy", "p") == ["yx" if later else "xy"]


def random_schema(random: Random, depth: int) -> dict[str, Any]:
    """A schema whose keywords come in any order."""
    keywords = ["properties", "allOf", "$ref", "anyOf", "required", "additionalProperties"]
    schema: dict[str, Any] = {}
    for keyword in random.sample(keywords, random.randrange(1, 4)) if depth else ["properties"]:
        if keyword == "properties":
            schema |= members(*random.sample(NAMES, random.randrange(1, 4)))
        elif keyword == "allOf":
            schema[keyword] = [random_schema(random, depth - 1) for _ in range(random.randrange(1, 3))]
        elif keyword == "anyOf":  # of which llguidance makes less where a branch says nothing
            schema[keyword] = [{**random_schema(random, depth - 1), "minProperties": 0} for _ in "ab"]
        elif keyword == "$ref":
            schema[keyword] = random.choice(["#/$defs/a", "#/$defs/b"])
        elif keyword == "required" and "properties" in schema:
            schema[keyword] = random.sample([*schema["properties"]], 1)
        elif keyword == "additionalProperties":
            schema[keyword] = {"type": "integer"}
    return schema


@pytest.mark.nightly
def test_llguidance_has_the_same_order() -> None:
    llguidance = pytest.importorskip("llguidance", reason="the other implementation is not installed")
    tokenizer = llguidance.LLTokenizer("byte")
    verdicts = {True: 0, False: 0}
    for seed in range(60):
        random = Random(seed)
        schema = {"type": "object", **random_schema(random, 2)}
        schema["$defs"] = {name: members(*random.sample(NAMES, random.randrange(1, 4))) for name in "ab"}
        index = sg.compile(sg.JsonSchema(schema), BYTES, eager=False)
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
        for names in texts(NAMES, 2):
            matcher = llguidance.LLMatcher(tokenizer, grammar)
            assert not matcher.is_error(), matcher.get_error()
            tokens = tokenizer.tokenize_bytes(written(names))
            expected = matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()
            assert index.match(written(names)).accepted == expected, (seed, schema, names)
            verdicts[expected] += 1
    assert min(verdicts.values()) > 500
