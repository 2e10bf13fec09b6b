"""Gemma's notation of arguments: every valid object is allowed as its template writes it, and no other."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
from judges.tool_replies import ENGINES, Engine, engine

from structgen.tools import tool_call_format


def written(value: Any) -> str:
    """A value as Gemma's chat template writes it."""
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].lower())
        return "{" + ",".join(f"{key}:{written(each)}" for key, each in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


@pytest.fixture(params=ENGINES)
def judge(request: pytest.FixtureRequest) -> Engine:
    return engine(request.param)


def allowed(judge: Engine, schema: Any, arguments: str) -> bool:
    tools = [{"function": {"name": "get", "parameters": schema}}]
    format = tool_call_format(tools, "gemma", tool_choice="get", reasoning=False)
    return judge.accepts(format, f"<|tool_call>call:get{arguments}<tool_call|>")


MEMBERS: dict[str, tuple[Any, Any]] = {
    "b": ({"type": "integer", "minimum": 1}, 3),
    "A": ({"type": "string"}, 'a "b" {c}, \n<|"'),
    "c": ({"type": ["boolean", "null"]}, None),
    "d": ({"anyOf": [{"enum": ["x", 1]}, {"type": "array", "items": {"type": "string"}, "maxItems": 2}]}, ["x", "y"]),
    "e": ({"$ref": "#/$defs/point", "description": "…"}, {"x": 1.5}),
}
POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}


@pytest.mark.parametrize("required", [(), ("A",), ("c",), ("e", "b")], ids=str)
def test_objects_have_the_members_that_they_may_have(judge: Engine, required: tuple[str, ...]) -> None:
    schema = {
        "type": "object", "properties": {key: each for key, (each, _) in MEMBERS.items()}, "required": [*required],
        "$defs": {"point": POINT}, "additionalProperties": False,
    }  # fmt: skip
    for count in range(len(MEMBERS) + 1):
        for keys in combinations(MEMBERS, count):
            text = written({key: MEMBERS[key][1] for key in keys})
            assert allowed(judge, schema, text) == (set(required) <= set(keys)), text
    for text in ("", "{", "{A:1}", "{b:0}", '{"b":1}', "{b:1,}", "{,b:1}", "{b:1,b:1}", "{f:1}", "{c:null,b:1}"):
        assert not allowed(judge, schema, text), text


def test_values_are_those_of_the_schema(judge: Engine) -> None:
    schema = {
        "type": "object", "required": ["v"], "properties": {"v": {"oneOf": [
            {"type": "string", "maxLength": 3}, {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            {"type": "object", "properties": {}}, {"type": "null"},
        ]}},
    }  # fmt: skip
    valid: list[Any] = ["", "abc", "日本語", [1, 2], [1, 2, 3], {}, None]
    invalid: list[Any] = ["abcd", [], [1], [1, "a"], {"a": 1}, True, 1]
    for value in valid:
        assert allowed(judge, schema, written({"v": value})), value
    for value in invalid:
        assert not allowed(judge, schema, written({"v": value})), value


def test_arguments_without_a_schema_are_any_text(judge: Engine) -> None:
    for text in ("{}", "{a:{b:[]}}", "{anything}"):
        assert allowed(judge, None, text)
    assert not allowed(judge, None, "a")
