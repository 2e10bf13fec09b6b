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
        {
            "properties": {"m": {"$ref": "#/$defs/m"}},
            "$defs": {"m": {"type": "object", "properties": {"m": {"$ref": "#/$defs/m"}}, "required": ["m"]}},
        },
        "/$defs/m",
    ),
    "in all branches": (
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"m": {**TEXT, "const": None}}},
        "/properties/m",
    ),
    "within": ({"items": {"properties": {"m": {"minimum": 5, "maximum": 4, "type": "number"}}}}, "/items/properties/m"),
}

CLOSED: dict[str, Any] = {"additionalProperties": False}
A, B = ({"properties": {name: {}, "c": {}}, **CLOSED} for name in "ab")
ONE = {"type": "string", "enum": [1]}

#: Other places where nothing can stand: what the warnings begin with, and texts that are let through, or not.
PLACES: dict[str, tuple[Any, list[str], list[Any], list[Any]]] = {
    "two closed": (
        {"allOf": [A, B]}, ["no text has the member 'a'", "no text has the member 'b'"], [{"c": 1}],
        [{"a": 1}, {"b": 1}],
    ),
    "closed, and required": (
        {"items": {"allOf": [A, {**B, "required": ["b"]}]}}, ["no text has an object here"], [[1]], [[{}], [{"b": 1}]]
    ),
    "closed names": (
        {"properties": {"ab": {}, "a": {}}, "propertyNames": {"maxLength": 1}},
        ["no text has the member 'ab'"], [{"a": 1}], [{"ab": 1}]
    ),
    "required and not listed": (
        {"items": {"properties": {"a": {}}, "required": ["b"], **CLOSED}}, ["no text has an object here"], [[1]],
        [[{}]],
    ),
    "an array": ({"items": {"minItems": 2, "maxItems": 1}}, ["no text has an array here"], [[1]], [[[]], [[1]]]),
    "items": ({"items": ONE}, ["no text has items"], [[]], [["x"], [1]]),
    "an item": ({"prefixItems": [{}, ONE]}, ["no text has item 1"], [[], [1]], [[1, 1]]),
    "others": (
        {"properties": {"a": {}}, "additionalProperties": ONE}, ["no text has members that are not declared"],
        [{"a": 1}], [{"b": 1}, {"b": "x"}],
    ),
}  # fmt: skip

POSSIBLE: dict[str, Any] = {
    "closed in one branch": {
        "properties": {"m": A}, "oneOf": [{"properties": {"m": each}, "required": ["m"]} for each in (A, B)]
    },
    "false in one part": {"allOf": [{"properties": {"a": {}, "c": {}}}, {"properties": {"c": False}}]},
    "listed together": {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}, "required": ["b"]}]},
    "no items": {"items": False},
    "none but these": {"prefixItems": [{}], "items": False, "contains": {"type": "integer"}},
    "several patterns": {"patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}}},
    "not a member": {"not": {"required": ["a"]}, "properties": {"b": {}}},
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


@pytest.mark.parametrize("name", PLACES)
def test_other_places_are_named(name: str) -> None:
    schema, begins, kept, gone = PLACES[name]
    messages, index = warned(schema, eager=False)
    assert len(messages) == len(begins)
    assert all(map(str.startswith, messages, begins))
    judge = Judge({"type": ["object", "array"], **schema})
    for value in [*kept, *gone]:
        text = json.dumps(value)
        assert judge.is_valid(text) == index.match(text.encode()).accepted == (value in kept)


@pytest.mark.parametrize("closing", [False, "unevaluated"])
def test_the_option_closes_too(closing: bool | str) -> None:
    """A part that is closed by itself forbids what another part lists."""
    part = {"allOf": [{"properties": {"a": {}}, **CLOSED}, {"properties": {"m": {}}}]}
    with pytest.warns(SchemaWarning, match=r"the member 'm'.*\(/items\)"):
        index = sg.compile(sg.JsonSchema({"items": part}, additional_properties=closing), BYTES, eager=False)
    assert [index.match(text).accepted for text in (b'[{"a": 1}]', b'[{"m": 1}]')] == [True, False]


@pytest.mark.parametrize("name", POSSIBLE)
def test_no_warning(name: str) -> None:
    messages, _ = warned(POSSIBLE[name], eager=False)
    assert messages == []


def test_a_few_are_named() -> None:
    members = {f"m{number}": {**TEXT, "const": number} for number in range(10)}
    messages, _ = warned({"properties": members}, eager=False)
    assert 1 <= len(messages) <= 3
