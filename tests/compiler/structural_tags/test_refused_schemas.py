"""What cannot be honoured in a schema is said when the tag is compiled, and not when a text comes to it."""

from __future__ import annotations

from typing import Any

import pytest

import structgen as sg
from structgen.compiler.json_schema.compiler import read_schema
from structgen.compiler.structural_tags import linker
from structgen.errors import DefinitionError
from structgen.tools import tool_styles

BYTES = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
MANY: dict[str, Any] = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(1025)}}
HALF = "\ud800"
QWEN = {"style": "qwen_xml"}


def tag(schema: Any, fields: dict[str, Any]) -> dict[str, Any]:
    content = {"type": "json_schema", "json_schema": schema, **fields}
    return {"type": "tag", "begin": "<", "content": content, "end": ">"}


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        (MANY, {"any_order": True}), (MANY | {"additionalProperties": False}, {"any_order": True} | QWEN),
        ({"enum": [HALF], "type": "string"}, {}), ({"type": "object", "required": [HALF]}, {}),
        ({"type": "object", "properties": {"a": {"properties": {HALF: {}}, "required": [HALF], "type": "object"}},
          "required": ["a"]}, {}),
        ({"type": "object", "required": ["a"],
          "properties": {"a": {"enum": ["</parameter>"], "type": "string"}}}, QWEN),
        ({"type": "object", "required": ["a"], "properties": {"a": {"enum": ["b<"], "type": "string"}}},
         {**QWEN, "excludes": ["b<"]}),
        ({"type": "object", "required": ["a"], "properties": {"a": {"enum": ["b"], "type": "string"}}},
         {**QWEN, "excludes": ["b"]}),
        ({}, {"options": {"whitespace": "x+"}}),
        ({"type": "object", "required": ["a>b"]}, QWEN),
        (
            {"type": "object", "properties": {"a": {}}, "required": ["b"]},
            {"options": {"additional_properties": False}},
        ),
    ],
)  # fmt: skip
def test_it_is_refused_at_once(schema: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        sg.compile(sg.StructuralTag(tag(schema, fields)), BYTES, eager=False)


def test_schemas_of_usual_tools_are_read_when_texts_come_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def noted(*given: Any) -> Any:
        read.append(given)
        return read_schema(*given)

    monkeypatch.setattr(linker, "read_schema", noted)
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 30}}, "required": ["a"]}
    tools = [{"name": f"tool{i}", "parameters": {**schema, "additionalProperties": False}} for i in range(9)]
    for style in tool_styles():
        if style.name != "gemma":  # whose arguments are formats
            sg.compile(sg.tool_calls(tools, style), BYTES, eager=False)
            assert not read, style


def test_what_was_relaxed_is_told() -> None:
    definition = sg.StructuralTag(tag(MANY, {"any_order": True}), lenient=True)
    assert sg.compile(definition, BYTES, eager=False).relaxations
