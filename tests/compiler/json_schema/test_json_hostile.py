"""Schemas from strangers: each ends in an index or in a typed error that says what and where, within its budget."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hostile.hostile_schemas import HARMLESS, LARGEST, REFUSED
from judges.guides import BYTES
from judges.json_texts import accepts

import structgen as sg

pytestmark = pytest.mark.nightly

SECONDS = 0.25

#: Seconds beyond the budget: what lies between two looks at the clock, and reading the text. Processor time is
#: measured, so that a machine that does much else fails no test.
MARGIN = 3.0


def compiled(schema: Any, seconds: float = SECONDS, **options: Any) -> sg.Index:
    """The index of a schema, within the budget."""
    return sg.compile(sg.JsonSchema(schema, **options), BYTES, eager=False, budget=sg.Budget(seconds=seconds))


def error_of(schema: Any, **options: Any) -> sg.Error:
    """The error that a schema ends in; it can be shown anywhere."""
    with pytest.raises(sg.Error) as caught:
        compiled(schema, **options)
    assert caught.value.what
    assert len(str(caught.value).encode()) < 4_000
    return caught.value


# -- size and combinations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_hostile_schemas_end_in_a_typed_error_in_time(make: Callable[[], Any]) -> None:
    schema = make()
    began = time.process_time()
    error = error_of(schema)
    assert time.process_time() - began < SECONDS + MARGIN
    assert isinstance(error, sg.errors.BudgetExceededError | sg.errors.UnsupportedError)
    assert error.remedy


@pytest.mark.parametrize("make", HARMLESS.values(), ids=HARMLESS.keys())
def test_large_but_harmless_schemas_compile(make: Callable[[], Any]) -> None:
    assert sg.Guide(compiled(make(), seconds=20)).bitmask().any()


def test_the_memory_stays_within_bounds() -> None:
    """In a process that gets no more than 3 GiB of addresses, where the libraries take the first."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import structgen as sg
from hostile.hostile_schemas import REFUSED
from judges.guides import BYTES
sg.compile(sg.JsonSchema({{"pattern": "a", "type": "string"}}), BYTES)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in {LARGEST!r}:
    try:
        sg.compile(sg.JsonSchema(REFUSED[name]()), BYTES, eager=False, budget=sg.Budget(seconds=0.5))
    except sg.Error:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr[-2_000:]
    assert int(done.stdout) < 1_200_000  # KiB


# -- what is no schema ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1, column 1"),
        ("{", "line 1, column 2"),
        ('{\n"a":}', "line 2, column 5"),
        ('{"a": 01}', "line 1, column 8"),
        ('{"a": "\n"}', "line 1, column 8"),
        ('{"a": "\\x"}', "line 1, column 8"),
        ("{'a': 1}", "line 1, column 2"),
        ("\0", "line 1, column 1"),
        ('"' * 4_000_000, "line 1, column 3"),
        ('{"a":"' + "\\" * 4_000_001, "line 1, column 6"),
    ],
    ids=range(10),
)
def test_invalid_json_is_refused_with_its_place(text: str, where: str) -> None:
    error = error_of(text)
    assert type(error) is sg.errors.DefinitionError
    assert error.where == where


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"items": {"type": "strin"}}, "/items/type"),
        ({"properties": []}, "/properties"),
        ({"required": "a"}, "/required"),
        ({"enum": {}}, "/enum"),
        ({"multipleOf": 0}, "/multipleOf"),
        ({"minLength": Decimal("1e-400")}, "/minLength"),
        ({"maxItems": Decimal("-1e400")}, "/maxItems"),
        ({"anyOf": []}, "/anyOf"),
        ({"anyOf": [{}, {"not": 1}]}, "/anyOf/1/not"),
        ({"properties": {"a/b~": {"pattern": "("}}}, "/properties/a~1b~0/pattern, column 1"),
        ({"patternProperties": {"[": {}}}, "/patternProperties/[, column 1"),
        ({"type": "\ud800"}, "/type"),
        ({"properties": {"\ud800": 3}}, "/properties/\\ud800"),
        ({"minimum": float("nan")}, "/minimum"),
        ({"maximum": Decimal("sNaN")}, "/maximum"),
        ({"const": [1, {2}]}, "/const/1"),
    ],
    ids=str,
)
def test_what_is_no_schema_is_refused_with_its_pointer(schema: Any, where: str) -> None:
    error = error_of(schema)
    assert type(error) is sg.errors.DefinitionError
    assert error.where == where


def test_values_that_contain_themselves_are_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    assert error_of(schema).where == "/properties/a"
    values: list[Any] = []
    values.append(values)
    assert error_of({"enum": [values]}).where == "/enum/0/0"


def test_a_long_name_does_not_fill_the_log() -> None:
    error = error_of({"properties": {"a" * 1_000_000: {"type": 5}}})
    assert error.where.startswith("/properties/aaa")
    assert error.where.endswith("/type")


# -- references -----------------------------------------------------------------------------------------------

_NOWHERE = ("#/nowhere", "#/$defs/%ff", "#/definitions/~2", "#anchor", "#/$ref", "#/" + "a/" * 100_000)
_ELSEWHERE = (
    "http://example.org/x",
    "other.json",
    "file:///etc/passwd",
    "urn:x:y",
    "http://[::1",
    "//",
    "\0",
    "\ud800",
)


@pytest.mark.parametrize("reference", _NOWHERE, ids=range(len(_NOWHERE)))
def test_a_reference_that_leads_nowhere_is_refused(reference: str) -> None:
    error = error_of({"items": {"$ref": reference}})
    assert type(error) is sg.errors.DefinitionError
    assert error.where == "/items"


@pytest.mark.parametrize("reference", _ELSEWHERE, ids=range(len(_ELSEWHERE)))
def test_a_reference_to_elsewhere_is_named_and_never_fetched(reference: str) -> None:
    error = error_of({"items": {"$ref": reference}})
    assert isinstance(error, sg.errors.UnsupportedError)
    assert error.where == "/items"
    assert "never fetched" in error.what


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
        {"oneOf": [{"$ref": "#"}, {"type": "string"}]},
        {"not": {"$ref": "#"}},
        {"if": {"$ref": "#"}, "then": {"type": "string"}},
        {"$dynamicAnchor": "x", "$dynamicRef": "#x"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": True, "$recursiveRef": "#"},
    ],
    ids=json.dumps,
)
def test_references_that_go_in_a_circle_are_refused(schema: Any) -> None:
    assert isinstance(error_of(schema), sg.errors.UnsupportedError)


# -- what no value satisfies ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "why", "where"),
    [
        ({"type": "number", "minimum": 2, "maximum": 1}, "minimum 2", "the root"),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "exclusiveMinimum 1", "the root"),
        ({"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6}, "multipleOf 7", "the root"),
        ({"type": "string", "enum": [1, 2]}, "enum 1, 2", "the root"),
        ({"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, "pattern ^a", "the root"),
        ({"type": "string", "format": "date", "maxLength": 3}, "format date", "the root"),
        ({"type": "string", "pattern": "\ud800"}, "pattern", "the root"),
        ({"type": "array", "minItems": 3, "items": False, "prefixItems": [True]}, "item 1", "the root"),
        ({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3}, "minItems 3", "the root"),
        ({"type": "array", "maxItems": 2, "contains": {"const": 1}, "minContains": 3}, "minContains 3", "the root"),
        ({"type": "object", "minProperties": 3, "maxProperties": 2}, "minProperties 3", "the root"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "the member 'a'", "the root"),
        ({"type": "object", "required": ["ab"], "patternProperties": {"^a": False}}, "the member 'ab'", "the root"),
        ({"type": "object", "required": ["a\ud800"]}, "required", "the root"),
        ({"const": {"\ud800": 1}}, "enum", "the root"),
        ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, "without end", "the root"),
        (
            {"type": "array", "minItems": 1, "items": {"type": "number", "minimum": 2, "maximum": 1}},
            "minimum 2",
            "/items",
        ),
        ({"oneOf": [True, True]}, "oneOf", "the root"),
        ({"not": {}}, "false", "the root"),
    ],
    ids=str,
)
def test_an_unsatisfiable_schema_is_refused_with_the_reason(schema: Any, why: str, where: str) -> None:
    error = error_of(schema)
    assert isinstance(error, sg.errors.EmptyLanguageError)
    assert why in error.what
    assert error.where == where


# -- numbers and characters -----------------------------------------------------------------------------------

_NUMBERS = [
    "1e400", "-1e400", "1e-400", "1e999999999", "1e-999999999", "1e99999999999999999999", "9" * 100_000,
    "0." + "0" * 100_000 + "1", "1." + "3" * 100_000, "-0", "0e99999999999", "1e-300", "3e150",
    "12345678901234567890123456789e50",
]  # fmt: skip


@pytest.mark.parametrize(
    "keywords",
    [
        '"minimum": N',
        '"exclusiveMaximum": N',
        '"multipleOf": N',
        '"minimum": N, "maximum": N, "multipleOf": 0.01',
        '"not": {"multipleOf": N}',
        '"enum": [N, 1], "default": N',
        '"minLength": N, "maxItems": N, "maxProperties": N',
    ],
)
def test_no_number_is_too_much(keywords: str) -> None:
    lengths = [0]
    for number in _NUMBERS:
        text = '{"type": ["number", "string", "array", "object"], ' + keywords.replace("N", number) + "}"
        began = time.process_time()
        try:
            compiled(text)
        except sg.Error as error:
            lengths.append(len(str(error)))
        assert time.process_time() - began < SECONDS + MARGIN
    assert max(lengths) < 4_000


_NAMES = ["__proto__", "", "\0", '"', "\\", "/", "~1", "%", "a\nb", "$ref", "\x7f", "\u2028", "\ufeff", "\U0010ffff"]


@pytest.mark.parametrize("name", _NAMES, ids=ascii)
def test_any_character_may_stand_in_a_name_or_a_string(name: str) -> None:
    pointer = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
    index = compiled(
        {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/{pointer}"}},
            "required": [name],
            "$defs": {name: {"const": name}},
            "default": {name: name},
            "additionalProperties": False,
        },
        seconds=20,
    )
    assert accepts(index, {name: name})
    assert not accepts(index, {name: name + "x"})


@pytest.mark.parametrize("keyword", ["format", "$anchor", "$id", "$schema", "$comment", "title", "\ud800"])
def test_lone_surrogates_crash_nothing(keyword: str) -> None:
    try:
        index = compiled({keyword: "\ud800", "type": "string"})
    except sg.Error as error:
        str(error).encode()
    else:
        assert accepts(index, "a")


def test_a_name_that_no_text_can_hold_is_never_there() -> None:
    index = compiled({"properties": {"\ud800": False, "a": {"type": "null"}}, "dependentRequired": {"a": ["\ud800"]}})
    assert accepts(index, {"b": 1})
    assert not accepts(index, {"a": None})
    with pytest.raises(sg.errors.EmptyLanguageError):
        compiled({"type": "object", "not": {"properties": {"\ud800": {"type": "string"}}}})
