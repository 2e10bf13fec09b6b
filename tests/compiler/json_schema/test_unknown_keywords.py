"""Keywords and formats that check nothing: which are told, where, and what is suggested."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.cli.app import app
from structgen.compiler.json_schema.read.reader import read
from structgen.definitions.openai_strict import check_strict
from structgen.errors import SchemaWarning

BYTES = sg.Vocabulary.bytewise()


def findings(schema: Any) -> list[tuple[str, str, str]]:
    return [(what, where, remedy) for what, where, remedy, _ in read(json.dumps(schema), Meter(Budget())).findings]


def warned(schema: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sg.compile(schema, BYTES, eager=False)
    assert all(each.category is SchemaWarning for each in caught)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("minLenght", "minLength"), ("require", "required"), ("propertys", "properties"), ("requried", "required"),
        ("additionalPropertys", "additionalProperties"), ("additional_properties", "additionalProperties"),
        ("maxlength", "maxLength"), ("patern", "pattern"), ("enums", "enum"), ("anyof", "anyOf"), ("item", "items"),
        ("one_of", "oneOf"), ("minimun", "minimum"), ("exclusiveMinimumm", "exclusiveMinimum"), ("min", "minimum"),
        ("regex", "pattern"), ("constant", "const"), ("ref", "$ref"), ("defs", "$defs"), ("formt", "format"),
        ("uniqueItem", "uniqueItems"), ("multipleof", "multipleOf"), ("$refs", "$ref"), ("minlen", "minLength"),
        ("max_len", "maxLength"), ("minProps", "minProperties"), ("unevaluatedProps", "unevaluatedProperties"),
        ("exclusiveMin", "exclusiveMinimum"), ("property", "properties"), ("lenght", "minLength and maxLength"),
        ("elseif", "else"), ("$defintions", "$defs"), ("$definitions", "$defs"),
    ],
)  # fmt: skip
def test_slips_are_told_with_the_keyword_that_is_meant(written: str, meant: str) -> None:
    schema = {"type": "object", "properties": {"a~/b": {written: 1}}}
    ((what, where, remedy),) = findings(schema)
    assert what == f"the keyword {written!r} is unknown, and checks nothing"
    assert where == f"/properties/a~0~1b/{written}"
    assert remedy == f"Did you mean {meant!r}?"
    assert warned(schema) == [f"{what} ({where}). {remedy}"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("datetime", "date-time"), ("date_time", "date-time"), ("url", "uri"), ("guid", "uuid"), ("e-mail", "email"),
     ("ipv5", "ipv4"), ("hostnam", "hostname")],
)  # fmt: skip
def test_formats_are_told_with_the_one_that_is_meant(written: str, meant: str) -> None:
    ((what, where, remedy),) = findings({"items": {"type": "string", "format": written}})
    assert (where, remedy) == ("/items/format", f"Did you mean {meant!r}?")
    assert written in what


@pytest.mark.parametrize(
    "silent",
    [
        {"x-anything": 1, "x_other": 2, "X-Foo": 3, "ui:widget": "a", "js.type": "b", "_note": 1, "//": "comment"},
        {"title": "a", "description": "b", "default": 1, "examples": [1], "$comment": "c", "deprecated": True},
        {"nullable": True, "discriminator": {"propertyName": "a"}, "example": 1, "xml": {}, "externalDocs": {}},
        {"enumNames": ["a"], "propertyOrder": 1, "tsType": "a", "markdownDescription": "b", "errorMessage": "c"},
        {"options": {"a": 1}, "$async": True, "$default": {}, "readOnly": True, "writeOnly": False},
        {"type": "integer", "format": "int32"}, {"type": "number", "format": "double"},
        {"type": "string", "format": "password"}, {"type": "string", "format": "binary"},
        {"properties": {"minLenght": {"type": "string"}}, "required": ["require"]},
        {"enum": [{"minLenght": 3}], "const": {"propertys": 1}},
        {"type": "integer", "minDigits": 3}, {"items": [{}], "additionalItems": False},
    ],
)  # fmt: skip
def test_annotations_and_extensions_are_silent(silent: dict[str, Any]) -> None:
    assert [each for each in findings(silent) if "$async" not in each[0] and "$default" not in each[0]] == []
    assert warned({"anyOf": [silent, True]}) == []


def test_keywords_of_other_drafts_are_told() -> None:
    draft7, draft4 = ({"$schema": f"http://json-schema.org/draft-0{each}/schema#"} for each in (7, 4))
    assert [each[0] for each in findings({**draft7, "prefixItems": [{}], "$defs": {"a": {}}})] == [
        "the keyword 'prefixItems' means nothing in Draft 7"
    ]
    assert [each[1] for each in findings({**draft4, "const": 1, "if": {}})] == ["/const", "/if"]
    assert findings({**draft7, "const": 1, "if": {}}) == []


def test_a_tool_in_the_place_of_a_schema_is_told() -> None:
    ((what, _, remedy),) = findings({"name": "f", "description": "g", "parameters": {"type": "object"}})
    assert "'parameters' means nothing in a schema" in what
    assert "tool_calls" in remedy


def test_many_slips_are_few_warnings() -> None:
    schema = {
        "properties": {f"p{k}": {"minLenght": k, f"maxLength{'h' * k}": 1} for k in range(1, 4)}
        | {"q": {"requird": [], "patern": "", "formt": ""}}
    }
    said = warned(schema)
    assert len(said) == 4
    assert "more keywords and formats check nothing" in said[-1]
    assert len(findings({f"a{k}": k for k in range(1_000)})) == 100


def test_they_are_findings_of_lint_and_of_certificates(tmp_path: Path) -> None:
    path = tmp_path / "person.json"
    path.write_text('{"type": "object",\n "properties": {"a": {\n  "type": "string", "minLenght": 3}}}')
    result = CliRunner().invoke(app, ["lint", str(path)])
    assert result.exit_code == 1
    assert f"{path}:3:34: json_schema: the keyword 'minLenght' is unknown" in result.output
    assert "Did you mean 'minLength'?" in result.output
    index = sg.compile({"type": "string", "format": "datetime"}, BYTES, eager=False)
    (item,) = (each for each in sg.certify(index, items=["unused_parts"]).items)
    assert [(each.severity, each.where) for each in item.findings] == [("warning", "/format")]


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    "wrapped",
    [
        {"name": "person", "strict": True, "schema": SCHEMA},
        {"name": "person", "description": "A person.", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}},
        {"type": "json_schema", "name": "person", "schema": SCHEMA, "strict": True},
        {"type": "json_schema", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": SCHEMA},
        {"type": "json_object", "schema": SCHEMA},
        {"schema": SCHEMA},
    ],
)
def test_response_formats_are_the_schema_in_them(wrapped: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "wrapped.json"
    path.write_text(json.dumps(wrapped, indent=1))
    expected = sg.JsonSchema(SCHEMA)
    assert sg.JsonSchema(wrapped) == sg.JsonSchema(json.dumps(wrapped)) == sg.JsonSchema(path) == expected
    assert sg.JsonSchema.openai_strict(wrapped) == expected
    assert CliRunner().invoke(app, ["lint", str(path)]).exit_code == 0
    check_strict(SCHEMA)


def test_findings_in_response_formats_have_their_line(tmp_path: Path) -> None:
    path = tmp_path / "wrapped.json"
    path.write_text('{"type": "json_schema",\n "json_schema": {"name": "a", "schema": {\n  "requird": []}}}')
    assert f"{path}:3:14: " in CliRunner().invoke(app, ["lint", str(path)]).output


@pytest.mark.parametrize("schema", [{"properties": {"schema": True}}, {"type": "object", "schema": {}}, {"name": "a"}])
def test_schemas_with_such_members_stay_themselves(schema: dict[str, Any]) -> None:
    assert sg.JsonSchema(schema).text == json.dumps(schema, separators=(",", ":"))
