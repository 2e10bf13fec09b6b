"""Errors of tools' schemas say of which tool, and where in the request its schema stands."""

from __future__ import annotations

from typing import Any

import pytest
from judges.guides import BYTES

import structgen as sg
from structgen.errors import BudgetExceededError, DefinitionError, EmptyLanguageError, StructgenError, UnsupportedError

NESTED = "'get': tools[1].function.parameters"


def a(schema: object) -> dict[str, Any]:
    """Arguments with a member a."""
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}


def nested(schema: object) -> list[dict[str, Any]]:
    now = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
    return [now, {"type": "function", "function": {"name": "get", "parameters": schema}}]


def within_itself() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    schema["items"] = schema
    return a(schema)


IMPOSSIBLE = {"type": "integer", "minimum": 3, "maximum": 1}

#: Tools, the kind of error, and its place; for styles of JSON and of tags, alone and in a section.
CASES: list[tuple[Any, type[StructgenError], str]] = [
    (nested({"type": "thing"}), DefinitionError, f"{NESTED}/type"),
    (nested(a({"type": "thing"})), DefinitionError, f"{NESTED}/properties/a/type"),
    (nested(a({"$ref": "#/x"})), DefinitionError, f"{NESTED}/properties/a"),
    (nested(a({"type": "string", "pattern": "("})), DefinitionError, f"{NESTED}/properties/a/pattern, column 1"),
    (nested(a(IMPOSSIBLE)), EmptyLanguageError, f"{NESTED}/properties/a"),
    (nested(False), EmptyLanguageError, f"{NESTED}, the root"),
    (nested(within_itself()), DefinitionError, f"{NESTED}/properties/a/items"),
    (nested(a({"const": float("nan")})), DefinitionError, f"{NESTED}/properties/a/const"),
    (nested(a({"enum": {1, 2}})), DefinitionError, f"{NESTED}/properties/a/enum"),
    (nested("{"), DefinitionError, f"{NESTED}, line 1, column 2"),
    ([{"type": "function", "name": "get", "parameters": a({"type": "thing"})}], DefinitionError,
     "'get': tools[0].parameters/properties/a/type"),
    ([*nested({}), {"type": "function", "function": {"name": 3}}], DefinitionError, "tools[2]"),
]  # fmt: skip


@pytest.mark.parametrize("choice", ["auto", "get"])
@pytest.mark.parametrize("style", ["llama", "kimi", "qwen_3_coder", "cohere", "harmony", "kimi_k3"])
@pytest.mark.parametrize(("tools", "kind", "where"), CASES, ids=[where for _, _, where in CASES])
def test_places_are_those_of_tools(tools: Any, kind: type[StructgenError], where: str, style: str, choice: str) -> None:
    with pytest.raises(kind) as caught:
        sg.compile(sg.tool_calls(tools, style, tool_choice=choice), BYTES, eager=False)
    assert caught.value.where == where
    assert type(caught.value) is kind


def test_places_in_other_notations() -> None:
    for schema, where in ((a({"pattern": "a", "type": "string"}), "/properties/a"), (a(IMPOSSIBLE), ", the root")):
        with pytest.raises((UnsupportedError, EmptyLanguageError)) as caught:
            sg.compile(sg.tool_calls(nested(schema), "gemma"), BYTES, eager=False)
        assert caught.value.where == NESTED + where


def test_places_without_tools() -> None:
    content = {"type": "json_schema", "json_schema": a({"type": "thing"})}
    definition = sg.StructuralTag({"type": "tag", "begin": "<", "content": content, "end": ">"})
    with pytest.raises(DefinitionError) as caught:
        sg.compile(definition, BYTES, eager=False)
    assert caught.value.where == "/content/json_schema/properties/a/type"
    deep = '{"type":"sequence","elements":[' * 5_000 + '{"type":"any_text"}' + "]}" * 5_000
    with pytest.raises(BudgetExceededError, match=r"^the JSON is nested too deeply"):
        sg.StructuralTag(deep)


def test_places_change_nothing_else() -> None:
    one, other = (sg.tool_calls(tools, "llama") for tools in (nested({}), [*reversed(nested({}))]))
    assert one.places != other.places
    same = sg.StructuralTag(one.text)
    assert (same, hash(same), repr(same), same.canonical()) == (one, hash(one), repr(one), one.canonical())
