"""The arguments of calls: objects, closed where the tool is strict, and what is made of malformed schemas."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from judges.tool_replies import call

import structgen as sg
from structgen.tools import tool_styles

VOCABULARY = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
VALUES: list[Any] = [
    {}, {"a": 1}, {"a": "x"}, {"b": 1.5, "a": None}, {"b": [1]}, {"c": 3}, {"c": {"n": "x"}}, {"c": {"n": 1}, "n": 2},
    3, "s", None, True, [], [{}], 0.5,
]  # fmt: skip


def index(function: dict[str, Any], **options: Any) -> sg.Index:
    tools = [{"type": "function", "function": {"name": "f", **function}}]
    return sg.compile(sg.tool_calls(tools, "llama", tool_choice="required", **options), VOCABULARY, eager=False)


def taken(judge: sg.Index, value: Any) -> bool:
    return judge.match(f'{{"name": "f", "parameters": {json.dumps(value)}}}'.encode()).accepted


SCHEMAS: list[Any] = [
    True, {}, {"description": "x"}, {"properties": {"a": {"type": "integer"}}}, {"required": ["a"]},
    {"type": ["object", "null"], "required": ["b"]}, {"type": "object", "maxProperties": 1},
    {"not": {"required": ["a"]}},
    {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {"type": "integer"}}}}},
    {"$ref": "#/$defs/x", "maxProperties": 1, "$defs": {"x": {"properties": {"a": {"type": "integer"}}}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/x", "required": ["z"],
     "type": "string", "definitions": {"x": {"properties": {"a": {"type": "integer"}}}}},
    {"anyOf": [{"required": ["a"]}, {"type": "string"}]}, {"enum": [3, {"a": 1}, "s"]},
    {"allOf": [{"properties": {"a": {"type": "integer"}}}], "$ref": "#/$defs/y",
     "$defs": {"y": {"minProperties": 1}}},
    {"properties": {"c": {"$ref": "#"}, "n": {"type": "integer"}}},
    {"if": {"type": "object"}, "then": {"required": ["b"]}, "else": {"type": "integer"}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_arguments_are_the_objects_that_the_schema_takes(schema: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)(schema)
    given = copy.deepcopy(schema)
    judge = index({"parameters": given}, property_order="any")
    assert given == schema
    for value in VALUES:
        assert taken(judge, value) == (isinstance(value, dict) and validator.is_valid(value)), value


@pytest.mark.parametrize("style", [each.name for each in tool_styles()])
def test_no_style_takes_arguments_that_are_no_object(style: str) -> None:
    (described,) = [each for each in tool_styles() if each.name == style]
    right = call(described, "f")
    tag = sg.tool_calls([{"name": "f"}], style, tool_choice="required", reasoning="auto")
    judge = sg.compile(tag, VOCABULARY, eager=False, base_rows=False)
    assert judge.match(right.encode()).accepted
    if "{}" in right:
        at = right.rindex("{}")
        for wrong in ('"x"', "3", "[]", "null", "x"):
            assert not judge.match((right[:at] + wrong + right[at + 2 :]).encode()).accepted, wrong


def test_strict_closes_objects() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"a": inner, "l": {"type": "array", "items": inner}}}
    valid: list[Any] = [{}, {"a": {"b": 1}}, {"l": [{"b": 2}, {}]}]
    extra: list[Any] = [{"x": 1}, {"a": {"y": 1}}, {"l": [{"b": 2}, {"c": 3}]}]
    for strict in (True, None, False):
        judge = index({"parameters": schema, "strict": strict})
        assert all(taken(judge, value) for value in valid)
        assert all(taken(judge, value) == (strict is not True) for value in extra)
    bare = index({"parameters": {"type": "object"}, "strict": True})
    assert taken(bare, {})
    assert taken(bare, {"x": 1})
    none = index({"parameters": {"type": "object", "properties": {}}, "strict": True})
    assert taken(none, {})
    assert not taken(none, {"x": 1})
    # One strict tool closes no other.
    tools = [{"name": name, "parameters": schema, "strict": strict} for name, strict in (("f", True), ("g", None))]
    judge = sg.compile(sg.tool_calls(tools, "llama", tool_choice="required"), VOCABULARY, eager=False)
    for name in "fg":
        text = f'{{"name": "{name}", "parameters": {{"x": 1}}}}'
        assert judge.match(text.encode()).accepted == (name == "g")


#: Schemas as others spell them, or that are none; values, each with what is made of it where that is lenient.
MALFORMED: list[tuple[Any, list[Any], list[Any]]] = [
    ({"type": "object", "required": None, "properties": {"a": {"type": "integer"}}}, [{}, {"a": 1}], [{"a": "x"}, 3]),
    ({"type": "dict", "properties": {"a": {"type": "str"}}}, [{}, {"a": "x"}], [{"a": 1}, 3]),
    ({"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "ARRAY", "items": {"type": "NUMBER"}}}},
     [{"a": "x", "b": [1.5]}], [{"a": 1}, {"b": ["x"]}, "s"]),
    ({"type": "object", "properties": {"a": {"type": "float"}, "b": {"type": "int"}, "c": {"type": "bool"}}},
     [{"a": 1.5, "b": 1, "c": True}], [{"a": "x"}, {"b": 1.5}, {"c": 1}]),
    ({"type": "object", "properties": {"a": {"type": ["STRING", "None"]}}}, [{"a": "x"}, {"a": None}], [{"a": 1}]),
    ({"type": "object", "properties": {"a": {"type": "any"}, "b": {"type": 7}}}, [{"a": 1, "b": "x"}], [3]),
    ({"type": "object", "properties": {"a": {"enum": None}, "b": {"type": "string"}}},
     [{"a": 3, "b": "x"}], [{"b": 3}]),
    ({"type": "object", "properties": {"a": "string", "b": None, "a/~b, column 3": {"type": "FLOAT"}}},
     [{"a": 3, "b": []}], [3, {"a/~b, column 3": "x"}]),
    ({"type": "object", "properties": {"a": {"$ref": "other.json"}}}, [{"a": 3}], [[]]),
    ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, [{"a": "("}], [{"a": 3}]),
    ({"type": "object", "properties": None, "allOf": None}, [{}, {"a": 1}], [3]),
    ([1], [{}, {"a": 1}], [3]),
    ("{", [{}, {"a": 1}], [3]),
    ({"type": "string"}, [{}, {"a": 1}], ["s", 3]),
    ({"type": "list"}, [{}, {"a": 1}], [[], 3]),
    (False, [{}], [3]),
    ({"type": "object", "required": ["a"], "properties": {"a": False}}, [{}, {"a": 1}], [3]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "valid", "invalid"), MALFORMED, ids=lambda each: json.dumps(each)[:60])
def test_a_malformed_tool_is_named_or_relaxed(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    with pytest.raises(sg.errors.DefinitionError) as caught:
        index({"parameters": schema})
    assert "'f': tools[0].function.parameters" in str(caught.value)
    judge = index({"parameters": schema}, lenient=True)
    assert judge.relaxations
    assert all("'f'" in each for each in judge.relaxations)
    assert all(taken(judge, value) for value in valid)
    assert not any(taken(judge, value) for value in invalid)


@pytest.mark.parametrize("style", ["qwen_3_coder", "deepseek_v3_2", "kimi_k3", "mistral", "command_r7b"])
def test_one_malformed_tool_leaves_the_others_as_they_are(style: str) -> None:
    good = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    tools = [{"name": f"t{i}", "parameters": good if i % 2 else schema} for i, (schema, *_) in enumerate(MALFORMED)]
    tag = sg.tool_calls(tools, style, lenient=True)
    judge = sg.compile(tag, VOCABULARY, eager=False, base_rows=False)
    named = {f"t{i}" for i in range(0, len(tools), 2)}
    assert {each.split("'")[1] for each in judge.relaxations} == named
    sg.ToolCallReader(tag)  # reads them as well


def test_schemas_alone_are_relaxed_alike() -> None:
    schema = {"type": "OBJECT", "properties": {"a": {"type": "Integer"}}, "required": None}
    judge = sg.compile(sg.JsonSchema(schema, lenient=True), VOCABULARY, eager=False)
    assert [judge.match(text).accepted for text in (b"{}", b'{"a": 1}', b'{"a": "x"}', b"3")] == [
        True,
        True,
        False,
        False,
    ]
    assert [each.split(":")[0] for each in judge.relaxations] == ["/type", "/required", "/properties/a/type"]
    with pytest.raises(sg.errors.EmptyLanguageError):
        sg.compile(sg.JsonSchema({"allOf": [{"type": "string"}, {"type": "null"}]}, lenient=True), VOCABULARY)
    many = {"properties": {f"p{i}": {"type": "x"} for i in range(200)}}
    with pytest.raises(sg.errors.DefinitionError, match="'type' must be"):
        sg.compile(sg.JsonSchema(many, lenient=True), VOCABULARY)


def test_random_damage_never_fails_a_lenient_request() -> None:
    random = Random(5)
    junk: list[Any] = [None, 3, "x", [], {}, [None], True, {"type": "x"}, -1, ["a", 3]]
    keywords = [
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "anyOf",
        "minimum",
        "pattern",
        "$ref",
        "format",
        "allOf",
    ]
    good = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]}
    for _ in range(60):
        schema = copy.deepcopy(good)
        places: list[Any] = [schema, schema["properties"], schema["properties"]["a"]]  # type: ignore[index]
        for _ in range(random.randint(1, 3)):
            random.choice(places)[random.choice(keywords)] = random.choice(junk)
        judge = index({"parameters": schema}, lenient=True)
        assert judge.match(b'{"name": "f", "parameters": 3').consumed <= len('{"name": "f", "parameters": '), schema
