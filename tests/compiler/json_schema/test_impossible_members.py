"""Members that no value satisfies: the schema compiles, and a warning says which text has them: none."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from judges.guides import BYTES
from judges.json_judge import Judge

import structgen as sg
from structgen.errors import SchemaWarning

TEXT = {"type": "string"}

#: Schemas with the member ``m``, and where the warning places the reason.
IMPOSSIBLE: dict[str, tuple[Any, str]] = {
    "lengths": ({"properties": {"m": {**TEXT, "minLength": 5, "maxLength": 3}}}, "/properties/m"),
    "types": ({"properties": {"m": {"allOf": [TEXT, {"type": "integer"}]}}}, "/properties/m"),
    "an enum of another type": ({"properties": {"m": {**TEXT, "enum": [1, 2]}}}, "/properties/m"),
    "what it needs": (
        {"properties": {"m": {"type": "object", "properties": {"x": {**TEXT, "const": 1}}, "required": ["x"]}}},
        "/properties/m/properties/x",
    ),
    "of its own kind": (
        {"properties": {"m": {"$ref": "#/$defs/m"}},
         "$defs": {"m": {"type": "object", "properties": {"m": {"$ref": "#/$defs/m"}}, "required": ["m"]}}},
        "/$defs/m",
    ),
    "in all branches": (
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"m": {**TEXT, "const": None}}},
        "/properties/m",
    ),
    "within": (
        {"items": {"properties": {"m": {"minimum": 5, "maximum": 4, "type": "number"}}}}, "/items/properties/m"
    ),
}  # fmt: skip

POSSIBLE: dict[str, Any] = {
    "false": {"properties": {"m": False, "a": {}}},
    "in one branch": {"oneOf": [
        {"properties": {"t": {"const": 1}, "m": TEXT}}, {"properties": {"t": {"const": 2}, "m": {**TEXT, "const": 1}}}
    ], "required": ["t"]},
    "tagged": {"properties": {"t": {"enum": [1, 2]}, "m": TEXT}, "required": ["t"],
               "if": {"properties": {"t": {"const": 1}}}, "then": {"properties": {"m": {"maxLength": 1}}},
               "else": {"properties": {"m": {"minLength": 1}}}},
    "recursive": {"properties": {"m": {"$ref": "#"}}, "required": ["a"]},
}  # fmt: skip


def warned(schema: Any, **options: Any) -> tuple[list[str], sg.Index]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        index = sg.compile(sg.JsonSchema({"type": ["object", "array"], **schema}), BYTES, **options)
    assert all(each.category is SchemaWarning and each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught], index


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_warning_names_them(name: str, eager: bool) -> None:
    schema, where = IMPOSSIBLE[name]
    (message,), index = warned(schema, eager=eager)
    assert message.startswith("no text has the member 'm'")
    assert message.endswith(f"({where})")
    judge = Judge(schema)
    values: list[Any] = ["x", "xxxxx", 1, 4.5, None, {}, {"x": 1}, {"x": "1"}, {"m": {}}]
    for value in values:
        text = json.dumps([{"m": value}] if name == "within" else {"a": 1, "m": value})
        assert not judge.is_valid(text)
        assert not index.match(text.encode()).accepted


@pytest.mark.parametrize("name", POSSIBLE)
def test_no_warning(name: str) -> None:
    messages, _ = warned(POSSIBLE[name], eager=False)
    assert messages == []


def test_a_few_are_named() -> None:
    members = {f"m{number}": {**TEXT, "const": number} for number in range(10)}
    messages, _ = warned({"properties": members}, eager=False)
    assert 1 <= len(messages) <= 3
