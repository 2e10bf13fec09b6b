"""A schema that one look calls plain has a value, and nothing in it is refused or relaxed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.compiler import lower_schema, read_schema
from structgen.compiler.json_schema.read.plain import FORMATS, is_plain
from structgen.compiler.json_schema.strings.formats import format_dfa
from structgen.definitions.styles import STYLES

TYPES = ["string", "integer", "number", "boolean", "null", "object", "array", "text"]
NAMES = ["a", "b-c", "d.e", "zz", "<", ">", '"', "\ud800", "é"]
VALUES = ["x", "<", "\ud800", 1, 2, 1.5, None, True, {}, []]
COUNTS = [0, 1, 2, 5, -1, 1.5, True, "3"]
BOUNDS = [0, 1, 2, -3, 0.5, 0.1, 10**16, True, "3"]
PATTERNS = [
    "^a+$", "[a-z0-9_-]{2,}", r"^\d{4}-\d{2}$", r"\.\-\/\w?", "[z-a]", "a|b", "(?!a)", r"[^\s\S]", "^[1-5]{0,2}$",
    "a^", "$a", "", r"^[\d.]+$", "x{3,2}", "[A-F0-9]", "[a-f]{1,12}", "-", "#!'=%&;,",
]  # fmt: skip
KEYWORDS: dict[str, Any] = {
    "type": lambda r: r.choice([*TYPES, *TYPES[:-1], r.sample(TYPES, 2), []]),
    "title": lambda r: r.choice(["t", "t", 1]),
    "default": lambda r: r.choice(VALUES),
    "enum": lambda r: r.sample(VALUES[: r.choice([1, 4, 9])], 1),
    "const": lambda r: r.choice(VALUES),
    "format": lambda r: r.choice([*sorted(FORMATS), "uri-template", "unknown", 1]),
    "pattern": lambda r: r.choice(PATTERNS),
    **{name: lambda r: r.choice(COUNTS) for name in ("minLength", "maxLength", "minItems", "maxItems")},
    **{name: lambda r: r.choice(BOUNDS) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
    "uniqueItems": lambda r: True,
    "$ref": lambda r: f"#/$defs/{r.choice('xyz')}",
    "required": lambda r: r.sample(NAMES[: r.choice([1, 2, 4, 9])], 1),
}


def schema_of(random: Random, depth: int) -> Any:
    """A schema of some keywords at random, of which a few may be wrong."""
    if not depth or random.random() < 0.05:
        return random.choice([True, True, {}, {"type": "string"}, {"type": "integer"}, False])
    chosen = random.sample(sorted(KEYWORDS), random.choice([0, 1, 1, 2, 3]))
    schema = {keyword: KEYWORDS[keyword](random) for keyword in chosen}
    if random.random() < 0.4:
        names = random.sample(NAMES[: random.choice([4, 4, 9])], random.randint(1, 3))
        schema["properties"] = {name: schema_of(random, depth - 1) for name in names}
    for keyword, odds in (("items", 0.2), ("additionalProperties", 0.3)):
        if random.random() < odds:
            schema[keyword] = random.choice([False, schema_of(random, depth - 1)])
    if random.random() < 0.2:
        schema = {random.choice(["anyOf", "oneOf"]): [schema_of(random, depth - 1) for _ in range(2)]}
    return schema


def document_of(random: Random) -> Any:
    """A schema with definitions."""
    schema = schema_of(random, 3)
    if random.random() < 0.5:
        schema = {"properties": {"a": schema}}
    if isinstance(schema, dict):
        if random.random() < 0.8:
            schema["type"] = "object"
        if random.random() < 0.5:
            schema["$defs"] = {name: schema_of(random, 2) for name in "xyz"}
    return schema


@pytest.mark.parametrize("style", ["json", *STYLES])
def test_what_is_plain_is_never_refused(style: str) -> None:
    random, plain = Random(f"plain {style}"), 0
    for _ in range(1_500 if style == "json" else 600):
        schema, closed = document_of(random), random.random() < 0.3
        if not is_plain(schema, tagged=style != "json", closed=closed):
            continue
        plain += 1
        definition = sg.JsonSchema(
            schema, style=style, whitespace="any", additional_properties=not closed, lenient=True
        )
        meter = Meter(Budget())
        read = read_schema(definition, meter)
        program = lower_schema(read, meter)
        assert not read.relaxed
        nullable = style != "json" and not (isinstance(schema, dict) and schema.get("required"))
        assert (program.start in program.returns) == nullable
    assert plain > 25


@pytest.mark.parametrize("schema", [
    {"type": "number", "minimum": 0, "maximum": 1},
    {"type": "integer", "exclusiveMinimum": 0, "maximum": 2},
    {"type": "array", "items": {"type": "string", "format": "date-time"}, "minItems": 1, "maxItems": 9},
    {"enum": ["a", 1, None]},
    {"type": ["string", "null"], "maxLength": 9, "default": None},
    {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
    {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "A"},
    {
        "type": "object", "properties": {"p": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]}},
        "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    },
], ids=str)  # fmt: skip
def test_what_tools_have_is_plain(schema: Any) -> None:
    assert is_plain(schema)


@pytest.mark.parametrize("schema", [
    {"type": "integer", "minimum": 0.1, "maximum": 0.9},
    {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "string", "pattern": "^a$", "minLength": 2},
    {"type": "string", "enum": [1]},
    {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    {"$ref": "#/$defs/P", "$defs": {"P": {"type": "object", "properties": {"p": {"$ref": "#/$defs/P"}}}}},
    {"minLength": 3, "maxLength": 2},
    {"type": "object", "required": ["x"], "additionalProperties": False},
    {"format": "unknown"},
    {"items": [{"type": "string"}]},
    False,
], ids=str)  # fmt: skip
def test_what_is_not_sure_is_read(schema: Any) -> None:
    assert not is_plain(schema)


def test_objects_that_an_option_closes() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}
    assert is_plain(schema)
    assert not is_plain(schema, closed=True)


def test_required_names_are_to_be_written_in_tags() -> None:
    assert not is_plain({"type": "object", "required": ["a>b"]}, tagged=True)


def test_formats_are_known() -> None:
    for name in FORMATS:
        dfa = format_dfa(name, Meter(Budget()))
        assert dfa is not None
        assert dfa.states
