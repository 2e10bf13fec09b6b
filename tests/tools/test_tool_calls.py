"""What callers write, tools and choices, and what of it is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from judges.tool_replies import TOOLS, WEATHER

from structgen.errors import DefinitionError, StructgenError, UnsupportedError
from structgen.tools import ToolStyle, detect_tool_style, register_tool_style, tool_call_format, tool_style, tool_styles

LLAMA = '{"name": "%s", "parameters": '


def begins(format: Any) -> list[str]:
    """What the tags of a format begin with."""
    if isinstance(format, dict):
        own = [format["begin"]] if format.get("type") == "tag" else []
        return own + [each for value in format.values() for each in begins(value)]
    return [each for value in format for each in begins(value)] if isinstance(format, list) else []


def names(**options: Any) -> list[str]:
    return [each.split('"')[3] for each in begins(tool_call_format(TOOLS, "llama", **options))]


def schema(tool: Any) -> Any:
    return tool_call_format([tool], "llama")["tags"][0]["content"]["json_schema"]  # type: ignore[index]


# -- tools ---------------------------------------------------------------------------------------------------


def search(query: str, limit: int = 10) -> None:
    """A tool."""


def test_tools_are_read_from_python() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Lookup(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        kind: Literal["a", "b"]

    format = tool_call_format([search, Lookup, TOOLS[0]], "llama")
    assert begins(format) == [LLAMA % "search", LLAMA % "Lookup", LLAMA % "get_weather"]
    assert set(schema(search)["properties"]) == {"query", "limit"}
    assert schema(Lookup)["required"] == ["kind"]


def test_tools_are_read_in_both_shapes_of_the_api() -> None:
    function = {"name": "a", "parameters": WEATHER, "strict": True, "description": "…"}
    assert schema({"type": "function", "function": function}) == schema({"type": "function", **function}) == WEATHER
    assert schema({"function": {"name": "a", "parameters": json.dumps(WEATHER)}}) == WEATHER


def test_a_tool_without_a_strict_schema_takes_any_object() -> None:
    for function in ({}, {"parameters": None}, {"parameters": True}, {"parameters": WEATHER, "strict": False}):
        assert schema({"function": {"name": "a", **function}}) == {"type": "object"}


@pytest.mark.parametrize(
    "tools",
    [
        "get_weather", {"name": "a"}, 7, [None], [7], ["a"], [[]], [{}], [{"type": "function"}], [{"function": "a"}],
        [{"function": {"name": 7}}], [{"function": {"name": "a", "parameters": [1]}}],
        [{"function": {"name": "a", "parameters": "{"}}], [{"function": {"name": "a", "strict": "no"}}],
        [{"type": "web_search"}], [{"type": 7, "function": {"name": "a"}}], [object()],
        *([{"function": {"name": name}}] for name in ("", "a b", 'a"b', "a\n", "\n", "a\\", "<a>", "$id", "x" * 257)),
        [{"function": {"name": "a"}}] * 2, ({"function": {"name": f"a{i}"}} for i in range(10_001)),
    ],
    ids=lambda tools: str(tools).partition(" at 0x")[0],
)  # fmt: skip
def test_what_is_no_tool_is_refused(tools: Any) -> None:
    with pytest.raises(DefinitionError):
        tool_call_format(tools, "llama")


def test_an_error_says_which_tool_it_is_about() -> None:
    with pytest.raises(DefinitionError) as caught:
        tool_call_format([*TOOLS, {"function": {"name": "a b"}}], "llama")
    assert caught.value.where == "tools[2]"
    assert "letters" in caught.value.remedy


@pytest.mark.parametrize("style", [each.name for each in tool_styles()])
def test_a_thousand_tools_are_a_thousand_tags(style: str) -> None:
    tools = [{"function": {"name": f"tool_{i}", "parameters": WEATHER}} for i in range(1000)]
    format = json.dumps(tool_call_format(tools, style))
    assert all(f"tool_{i}" in format for i in range(1000))
    assert len(format) < 3_000 * len(tools) * len(tool_style(style).calls)


# -- the choice ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, ["get_weather", "now"]),
        ("auto", ["get_weather", "now"]),
        ("none", []),
        ("required", ["get_weather", "now"]),
        ("now", ["now"]),
        ({"type": "function", "function": {"name": "now"}}, ["now"]),
        ({"type": "function", "name": "now"}, ["now"]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [
            {"type": "function", "function": {"name": "now"}}]}}, ["now"]),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "now"}]}, ["now"]),
        ({"type": "allowed_tools", "mode": "auto", "tools": []}, []),
    ],
)  # fmt: skip
def test_a_choice_leaves_tools(choice: Any, expected: list[str]) -> None:
    assert names(tool_choice=choice) == expected


@pytest.mark.parametrize(
    "choice",
    [
        "any", "later", "", 7, True, [], {}, {"type": "function"}, {"type": "function", "function": "now"},
        {"type": "function", "function": {"name": "later"}}, {"type": "function", "function": {"name": 7}},
        {"type": "web_search"}, {"type": "allowed_tools"}, {"type": "allowed_tools", "mode": "none", "tools": []},
        {"type": "allowed_tools", "mode": "auto", "tools": "now"},
        {"type": "allowed_tools", "mode": "auto", "tools": [7]},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "later"}]},
        {"type": "allowed_tools", "mode": "required", "tools": []},
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_choice_is_refused(choice: Any) -> None:
    with pytest.raises(DefinitionError):
        tool_call_format(TOOLS, "llama", tool_choice=choice)


def test_a_call_cannot_be_required_of_no_tools() -> None:
    with pytest.raises(DefinitionError):
        tool_call_format([], "llama", tool_choice="required")


@pytest.mark.parametrize("style", [each.name for each in tool_styles()])
def test_without_tools_a_reply_is_text(style: str) -> None:
    for tools in ([], None, TOOLS):
        format = tool_call_format(tools, style, tool_choice="none" if tools else "auto")
        assert "json_schema" not in json.dumps(format)


@pytest.mark.parametrize(
    "options",
    [{"parallel": 1}, {"parallel": None}, {"reasoning": "yes"}, {"reasoning": 1}, {"reasoning": "never"}],
    ids=repr,
)
def test_what_is_no_option_is_refused(options: Any) -> None:
    with pytest.raises(DefinitionError):
        tool_call_format(TOOLS, "llama", **options)


# -- styles --------------------------------------------------------------------------------------------------


def test_a_style_can_be_registered() -> None:
    style = ToolStyle("house", calls=("CALL $name($arguments)",), template=("CALL ",), reasoning=None, excludes=())
    with pytest.raises(DefinitionError, match="house"):
        tool_style("house")
    assert tool_call_format(TOOLS, style)["triggers"] == ["CALL "]
    register_tool_style(style)
    try:
        assert detect_tool_style("{{ 'CALL ' }}") is style
        assert tool_call_format(TOOLS, "house", tool_choice="now")["begin"] == "CALL now("
    finally:
        from structgen.tools import styles

        del styles._REGISTRY["house"]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""}, {"name": 7}, {"calls": ()}, {"calls": "a"}, {"calls": ("$name",)}, {"calls": ("$arguments",)},
        {"calls": ("<$arguments $name>",)}, {"calls": ("$name $name $arguments",)}, {"arguments": "yaml"},
        {"calls": ("$id$id$name$arguments",)}, {"calls": ("$name$arguments",), "trigger": ""}, {"section": ("a",)},
        {"section": ("a", 7)}, {"calls": ("<$name>$arguments",), "arguments": "glm_xml"}, {"parallel": True},
        {"reasoning_opened": 1}, {"messages": ("a",)}, {"excludes": "a"}, {"excludes": ["a"]}, {"separator": None},
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_style_is_refused(fields: Any) -> None:
    with pytest.raises((DefinitionError, TypeError)) as caught:
        replace(tool_style("llama"), **fields)
    assert "parallel" in fields or isinstance(caught.value, DefinitionError)


def test_names_that_no_style_has_are_refused() -> None:
    for style in ("nobody", "", 7, None, ToolStyle):
        with pytest.raises(DefinitionError):
            tool_call_format(TOOLS, style)  # type: ignore[arg-type]
    for registered in ("llama", replace(tool_style("llama"), name="auto")):
        with pytest.raises(DefinitionError):
            register_tool_style(registered)  # type: ignore[arg-type]


def test_a_style_is_read_off_a_tokenizer() -> None:
    template = '<tool_call>\\n{"name": "\' + name + \'", "arguments": \' + arguments + \'}\\n</tool_call>'
    several = {"default": "x", "tool_use": template}
    listed = [{"name": name, "template": text} for name, text in several.items()]
    for source in (template, *(SimpleNamespace(chat_template=each) for each in (template, several, listed))):
        assert tool_call_format(TOOLS, tokenizer=source) == tool_call_format(TOOLS, "hermes")
    for nothing in (None, "no tools", SimpleNamespace(chat_template=None), SimpleNamespace(chat_template=[7]), 7):
        with pytest.raises(DefinitionError):
            tool_call_format(TOOLS, tokenizer=nothing)


# -- Gemma's arguments ---------------------------------------------------------------------------------------


def nested_items(levels: int) -> Any:
    schema: Any = {}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def test_gemma_takes_nothing_that_is_no_json() -> None:
    circle: dict[str, Any] = {"type": "object"}
    circle["properties"] = {"a": circle}
    for parameters in (circle, {"type": {1}}, {1: 2}, {"type": "number", "minimum": float("nan")}):
        with pytest.raises(StructgenError):
            tool_call_format([{"function": {"name": "get", "parameters": parameters}}], "gemma")


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        (False, ""),
        ({"type": "object", "properties": {"a": False}}, "/properties/a"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}, "/properties/a"),
        ({"type": "object", "properties": {"a b": {"type": "string"}}}, ""),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "/properties/a"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {
            "type": "object", "properties": {"b": {"$ref": "#/$defs/a"}}}}}, "/properties/a/properties/b"),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, ""),
        ({"type": "array"}, ""),
        ({"enum": ['<|"|>']}, ""),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, ""),
        ({"type": "object", "properties": {"a": nested_items(400)}}, "/properties/a/items"),
        ({"$ref": "#/$defs/0", "$defs": {str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(500)}}, ""),
        ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": [["a"]]}, ""),
        ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]}, ""),
        ({"type": [["object"]]}, ""),
        ({"$ref": 7}, ""),
        ({"anyOf": {}}, ""),
        ({"enum": []}, ""),
        ({"type": "array", "items": {"type": "null"}, "minItems": 1.5}, ""),
        ({"type": "array", "items": {"type": "null"}, "minItems": 3, "maxItems": 1}, ""),
        ({"type": "object", "properties": {f"p{i}": {"type": "object", "properties": {
            f"q{j}": {"type": "integer"} for j in range(100)}} for i in range(100)}}, ""),
    ],
)  # fmt: skip
def test_gemma_refuses_what_it_cannot_honour(parameters: Any, where: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        tool_call_format([{"function": {"name": "get", "parameters": parameters}}], "gemma")
    assert caught.value.where.startswith(f"'get': tools[0].function.parameters{where}")
