"""Gemma's notation of arguments: every valid object is allowed as its template writes it, and no other."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
from judges.tool_replies import ENGINES, Engine, engine

import structgen as sg
from structgen.errors import UnsupportedError
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


ANYTHING = ["{}", "{a:1}", "{a:{b:[]}}", '{a:<|"|>x } "y"<|"|>,b:[1,null,{c:<|"|><|"|>,é-1:-0.5}]}', "{a:[[[true]]]}"]
NOTHING = ["", "a", "{anything}", "{a:1,}", "{,}", "{a}", '{"a":1}', "{a:x}", "{a: 1}", "3", "[]", "{a:[1,]}", "{a:1"]


def test_arguments_without_a_schema_are_any_object() -> None:
    judge = engine("structgen")
    for schema in (None, True, {}, {"type": "object"}, {"type": "object", "additionalProperties": True}):
        for text in ANYTHING:
            assert allowed(judge, schema, text), (schema, text)
        for text in NOTHING:
            assert not allowed(judge, schema, text), (schema, text)
    # Deeper ones are left out, as the guide says.
    assert not allowed(judge, None, "{a:[[[[1]]]]}")
    for text in ("{v:3}", '{v:<|"|>x<|"|>}', "{v:{a:[null]}}", "{}"):
        assert allowed(judge, {"type": "object", "properties": {"v": {}}}, text)


def test_any_object_is_read_back_as_json() -> None:
    reader = sg.ToolCallReader(sg.tool_calls([{"name": "f"}], "gemma"))
    for text in ANYTHING:
        twin = reader.fork()
        twin.feed(f"<|tool_call>call:f{text}<tool_call|>")
        (call,) = twin.message(parsed=True)["tool_calls"]
        assert written(call["function"]["arguments"]) == text


def test_it_is_a_style_of_structural_tags_as_xgrammar_has_it() -> None:
    schema = {
        "type": "object", "required": ["b"], "properties": {
            "b": {"type": "string"}, "a": {"type": "integer"}, "c": {"type": "array", "items": {"enum": ["x", None]}},
        },
    }  # fmt: skip
    content = {"type": "json_schema", "json_schema": schema, "style": "gemma", "excludes": ["<tool_call|>"]}
    judge = engine("structgen")
    format = {"type": "tag", "begin": "call:f", "content": content, "end": "<tool_call|>"}
    for text, valid in [
        ('{b:<|"|>x "y" {<|"|>}', True), ('{b:<|"|><|"|>,a:-3,c:[<|"|>x<|"|>,null]}', True), ("{}", False),
        ('{a:1,b:<|"|><|"|>}', False), ('{b:"x"}', False), ('{b:<|"|>x<|"|>,d:1}', False),
        ('{"b":<|"|>x<|"|>}', False), ('{b:<|"|>x<tool_call|>y<|"|>}', False),
    ]:  # fmt: skip
        assert judge.accepts(format, f"call:f{text}<tool_call|>") == valid, text
    for option in ({"any_order": True}, {"max_whitespace_cnt": 2}):
        with pytest.raises(sg.errors.UnsupportedError, match="no meaning"):
            judge.accepts({**format, "content": {**content, **option}}, "")
    pattern = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
    with pytest.raises(sg.errors.UnsupportedError, match="pattern") as caught:
        judge.accepts({**format, "content": {**content, "json_schema": pattern}}, "")
    assert caught.value.where == "/content/json_schema/properties/a"


def test_the_mark_of_strings_may_be_a_special_token() -> None:
    names = ['<|"|>', "<|tool_call>", "<tool_call|>"]
    tokens = [*(bytes([i]) for i in range(256)), *[None] * (len(names) + 1)]
    special = {name: 256 + i for i, name in enumerate(names)}
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[256 + len(names)], special_tokens=special)
    schema = {"type": "json_schema", "json_schema": {"type": "object", "properties": {"a": {}}}, "style": "gemma"}
    tags = [sg.StructuralTag(schema), sg.tool_calls([{"name": "f"}], "gemma", tool_choice="f", reasoning=False)]
    for tag, before, after in zip(tags, ([], [257, *b"call:f"]), ([], [258]), strict=True):
        guide = sg.Guide(sg.compile(tag, vocabulary, eager=False))
        assert all(guide.advance(token) for token in [*before, *b"{a:", 256, *b"x", 256, *b"}", *after])
        assert guide.is_accepting()


def test_what_is_refused_names_the_tool_and_the_place() -> None:
    object_ = {"type": "object"}
    for schema, place in (
        ({**object_, "properties": {"next": {"$ref": "#"}}}, "/properties/next"),
        ({**object_, "properties": {"a": {"type": "array", "items": {"pattern": "x"}}}}, "/properties/a/items"),
        ({**object_, "additionalProperties": {"type": "integer"}}, ""),
    ):
        tools = [{"name": "ok", "parameters": object_}, {"function": {"name": "f", "parameters": schema}}]
        with pytest.raises(UnsupportedError) as caught:
            sg.tool_calls(tools, "gemma")
        assert caught.value.where == f"'f': tools[1].function.parameters{place}"
