"""From schema documents to `Document`: what is read, what it means, what is refused and where."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from judges.document_oracle import Oracle

from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.read.document import Document, Schema
from structgen.compiler.json_schema.read.equality import equality_key
from structgen.compiler.json_schema.read.json_values import parse_json
from structgen.compiler.json_schema.read.reader import read
from structgen.definitions import JsonSchema
from structgen.errors import BudgetExceededError, DefinitionError, UnsupportedError

jsonschema = pytest.importorskip("jsonschema", reason="the judge is not installed: pip install 'jsonschema[format]'")

SUITE = Path(__file__).parents[2] / "cases" / "json_schema_suite"

URIS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def document(schema: Any, **options: Any) -> Document:
    return read(JsonSchema(schema).text, Meter(Budget()), **options)


def root(schema: Any) -> Schema:
    found = document(schema)
    return found.schemas[found.root]


def accepts(schema: Any, instance: Any, **options: Any) -> bool:
    return Oracle(document(schema, **options), schema).accepts(parse_json(json.dumps(instance)))


# The official suite, by way of a plain validator


def suite() -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The cases of each draft and subject."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name in URIS:
        path = SUITE / f"draft{name.removeprefix('draft')}.json"
        for case in json.loads(path.read_text("utf-8")):
            subject = case["subject"]
            if not subject.startswith("optional/") and subject not in ("format", "vocabulary"):
                found.setdefault((name, subject), []).append(case)
    return found


@pytest.mark.parametrize(("which", "cases"), suite().items(), ids=map(" ".join, suite()))
def test_suite(which: tuple[str, str], cases: list[dict[str, Any]]) -> None:
    for case in cases:
        schema = case["schema"]
        if isinstance(schema, dict):
            schema = {"$schema": URIS[which[0]], **schema}
        oracle = Oracle(document(json.dumps(schema)), schema)
        for about, instance, valid in case["tests"]:
            assert oracle.accepts(parse_json(json.dumps(instance))) is valid, (case["case"], about)


# Metaschemas, by way of jsonschema's check_schema

KEYWORDS = """
$id $ref $anchor $dynamicAnchor $dynamicRef $recursiveRef $recursiveAnchor $vocabulary $comment $defs id
title description default readOnly writeOnly deprecated examples multipleOf maximum exclusiveMaximum minimum
exclusiveMinimum maxLength minLength pattern additionalItems items maxItems minItems uniqueItems contains minContains
maxContains maxProperties minProperties required additionalProperties definitions properties patternProperties
dependencies dependentRequired dependentSchemas propertyNames const enum type format contentMediaType contentEncoding
contentSchema if then else allOf anyOf oneOf not prefixItems unevaluatedItems unevaluatedProperties unknown
""".split()  # noqa: SIM905

VALUES: list[Any] = [
    *(None, True, 0, -1, 2, 2.0, 1.5, "a", "#", "#/a", "string"),
    *([], {}, [{}], [True], ["a"], ["a", "a"], ["a", 1], [1, 1.0], ["string", "null"], ["foo"]),
    *({"a": {}}, {"a": True}, {"a": ["b"]}, {"a": []}, {"a": 1}, {"a": ["b", "b"]}, {"type": "x"}),
    *({"a": {"minLength": -1}}, [{"minLength": "1"}], {"minimum": True, "maximum": "1"}),
]


@pytest.mark.parametrize("draft", URIS)
def test_metaschemas(draft: str) -> None:
    validator = jsonschema.validators.validator_for({"$schema": URIS[draft]})
    wrong = []
    for keyword in KEYWORDS:
        for value in VALUES:
            schema = {"$schema": URIS[draft], keyword: value}
            judged = not any(validator(validator.META_SCHEMA).iter_errors(schema))
            if read_or_refused(schema) is not judged and not stricter(keyword, judged) and not looser(keyword, value):
                wrong.append((keyword, value, judged))
    assert not wrong


def read_or_refused(schema: Any) -> bool:
    """Whether it is taken for a schema. Where its references lead is another matter."""
    try:
        document(schema)
    except UnsupportedError:
        return True
    except DefinitionError as error:
        return "nowhere" in error.what
    return True


def stricter(keyword: str, judged: bool) -> bool:
    """Draft 4's metaschema forgets ``$ref``; ``$recursiveRef`` has to be ``#``, says the specification's text."""
    return judged and keyword in ("$ref", "$recursiveRef")


def looser(keyword: str, value: Any) -> bool:
    """Draft 4's metaschema forbids an ``enum`` with a value twice; validators take it."""
    return keyword == "enum" and isinstance(value, list) and len(value) > 1


@pytest.mark.parametrize(
    ("schema", "where", "what"),
    [
        ({"properties": {"a": {"type": "strnig"}}}, "/properties/a/type", "'type' must be one of array"),
        ({"properties": {"a/b~": {"minLength": -1}}}, "/properties/a~1b~0/minLength", "non-negative"),
        ({"items": {"anyOf": [{}, {"required": True}]}}, "/items/anyOf/1/required", "array of strings"),
        ({"$defs": {"unused": {"enum": 1}}}, "/$defs/unused/enum", "must be an array"),
        ({"dependencies": {"a": ["b", 1]}}, "/dependencies/a", "array of strings"),
        ({"multipleOf": 0}, "/multipleOf", "greater than 0"),
        ({"allOf": []}, "/allOf", "at least one"),
        ({"allOf": [3]}, "/allOf/0", "the number 3"),
        ({"$schema": URIS["draft4"], "properties": {"a": True}}, "/properties/a", "Draft 4"),
        ({"$schema": URIS["2020-12"], "items": [{}]}, "/items", "'items' must be a schema"),
        ({"$schema": 1}, "/$schema", "must be a string"),
        ({"properties": {"\ud800": 1}}, "/properties/\\ud800", "must be a schema"),
        ({"properties": {"k" * 500: 1}}, "/properties/" + "k" * 500, "must be a schema"),
        ({"properties": {"k" * 10_000: 1}}, "/properties/" + "k" * 288 + "…" + "k" * 299 + "…", "must be a schema"),
    ],
)
def test_not_a_schema(schema: Any, where: str, what: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        document(schema)
    assert caught.value.where == where
    assert what in caught.value.what
    assert caught.value.remedy


# JSON


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a":}', "line 1, column 6"),
        ("{\n'a'}", "line 2, column 1"),
        ("", "line 1, column 1"),
        ("{}1", "line 1, column 3"),
    ],
)
def test_not_json(text: str, where: str) -> None:
    with pytest.raises(DefinitionError, match="not JSON") as caught:
        document(text)
    assert caught.value.where == where


@pytest.mark.parametrize("schema", ['{"minimum": NaN}', '{"minimum": -Infinity}', {"minimum": float("inf")}])
def test_not_numbers(schema: Any) -> None:
    with pytest.raises(DefinitionError, match="is not a JSON number"):
        document(schema)


@pytest.mark.parametrize("schema", [{"a": b""}, {"a": {1}}, {1: 2}, {"a": [object()]}])
def test_not_json_values(schema: Any) -> None:
    with pytest.raises(DefinitionError, match=r"not a JSON value|keys are strings"):
        document(schema)


def test_numbers_are_exact() -> None:
    assert root('{"multipleOf": 0.10000000000000000001}').multiple_of == Decimal("0.10000000000000000001")
    assert root({"multipleOf": 0.1}).multiple_of == Decimal("0.1")
    assert root('{"minimum": 123456789012345678901234567890}').minimum == Decimal(123456789012345678901234567890)
    assert root({"enum": [1, True, 1.5, (1, 2)]}).enum == (Decimal(1), True, Decimal("1.5"), [Decimal(1), Decimal(2)])


def test_equality() -> None:
    groups: list[list[Any]] = [
        [Decimal(1), Decimal("1.0"), Decimal("10e-1")],
        [True],
        ["1"],
        [[Decimal(0), {"a": None, "b": []}], [Decimal("0e5"), {"b": [], "a": None}]],
        [[False, {"a": None, "b": []}]],
        [[]],
        [{}],
    ]
    keys = [{equality_key(value) for value in group} for group in groups]
    assert [len(found) for found in keys] == [1] * len(groups)
    assert len(set.union(*keys)) == len(groups)


# Hostile documents


def nested(levels: int) -> Any:
    schema: Any = True
    for _ in range(levels):
        schema = {"not": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param('{"not":' * 10_000 + "true" + "}" * 10_000, id="deep text"),
        pytest.param("[" * 100_000, id="deep nonsense"),
        pytest.param(nested(10_000), id="deep"),
        pytest.param(nested(1_002), id="a little too deep"),
        pytest.param({"allOf": [{}] * 300_000}, id="many alternatives"),
        pytest.param(json.dumps({"minimum": 1}).replace("1", "9" * 100_000), id="long number"),
        pytest.param('{"const": {"a": [1e999999999]}}', id="large constant"),
        pytest.param('{"minimum": 1e-999999999}', id="small number"),
        pytest.param({"const": json.loads("[" * 400 + "]" * 400), "enum": [nested(1_000)]}, id="deep constant"),
    ],
)
def test_over_budget(schema: Any) -> None:
    with pytest.raises(BudgetExceededError) as caught:
        document(schema)
    assert caught.value.remedy


def test_long_names_below_long_names() -> None:
    """Each pointer repeats the names above it: a few megabytes of schema could ask for gigabytes of them."""
    schema: Any = {"properties": {str(i): {} for i in range(2_000)}}
    for _ in range(400):
        schema = {"properties": {"k" * 90: schema}}
    with pytest.raises(BudgetExceededError, match="bytes"):
        read(JsonSchema(schema).text, Meter(Budget(memory=1 << 26)))


def test_exponent_out_of_range() -> None:
    with pytest.raises(DefinitionError, match="exponent"):
        document('{"minimum": 1e99999999999999999999}')


def test_counts_beyond_any_text() -> None:
    schema = root('{"maxLength": 1e400, "minItems": ' + "9" * 100_000 + "}")
    assert schema.max_length == schema.min_items == 1 << 62


def test_names_of_any_kind() -> None:
    schema = root({"properties": {"\x00": True, "\ud800": {}, "k" * 1_000_000: {}, "": {}}})
    assert [len(name) for name in schema.properties] == [1, 1, 1_000_000, 0]


def test_deep_within_budget() -> None:
    assert len(document(nested(900)).schemas) == 901


# Drafts


def test_draft_is_named() -> None:
    assert document({}).draft == "2020-12"
    assert document({"$schema": "https://example.com/dialect"}).draft == "2020-12"
    for name, uri in URIS.items():
        assert document({"$schema": uri}).draft == name
        assert document({"$schema": uri.rstrip("#").replace("http:", "https:")}).draft == name
    with pytest.raises(UnsupportedError, match="draft-03"):
        document({"$schema": "http://json-schema.org/draft-03/schema#"})


def test_older_spellings_without_a_draft() -> None:
    schema = root({"minimum": 1, "exclusiveMinimum": True, "exclusiveMaximum": 5})
    assert schema.minimum is None
    assert [schema.exclusive_minimum, schema.exclusive_maximum] == [Decimal(1), Decimal(5)]
    schema = root({"items": [{"type": "string"}], "additionalItems": False})
    assert len(schema.prefix_items) == 1
    assert schema.items is not None
    schema = root({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "dependentRequired": {"a": ["e"]}})
    assert schema.dependent_required == {"a": ("b", "e")}
    assert list(schema.dependent_schemas) == ["c"]


def test_no_older_spellings_in_2020() -> None:
    older: list[dict[str, Any]] = [{"items": [{}]}, {"exclusiveMinimum": True, "minimum": 1}]
    for schema in older:
        with pytest.raises(DefinitionError, match="must be") as caught:
            document({"$schema": URIS["2020-12"], **schema})
        assert "$schema" in caught.value.remedy
    assert root({"$schema": URIS["2020-12"], "dependencies": {"a": ["b"]}}).dependent_required == {}


def test_keywords_that_a_draft_does_not_know() -> None:
    unknown = {"const": 1, "if": 5, "contains": "?", "propertyNames": 0, "$anchor": 1, "nullable": True, "x-a": {}}
    assert root({"$schema": URIS["draft4"], **unknown}).enum is None
    assert root({"$schema": URIS["draft7"], "minContains": "?", "contains": True}).min_contains == 1


def test_integers() -> None:
    assert not accepts({"$schema": URIS["draft4"], "type": "integer"}, 1.0)
    assert accepts({"type": "integer"}, 1.0)


def test_const_beside_enum() -> None:
    schema = {"const": 1, "enum": [1, 2], "allOf": [{"minimum": 0}]}
    assert [accepts(schema, instance) for instance in (1, 2, 3)] == [True, False, False]


def test_siblings_of_ref() -> None:
    schema = {"$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": {"type": "string"}}}
    assert not accepts(schema, "ab")
    assert accepts({"$schema": URIS["draft7"], **schema}, "ab")
    with pytest.raises(DefinitionError, match="maxLength"):
        document({"$schema": URIS["draft7"], **schema, "maxLength": -1})


def test_an_embedded_part_of_another_draft() -> None:
    part = {"$schema": URIS["draft4"], "id": "part", "minimum": 1, "exclusiveMinimum": True}
    schema = {"$schema": URIS["draft7"], "properties": {"a": part, "b": {"$ref": "#/properties/a"}}}
    assert [accepts(schema, {name: 1}) for name in "ab"] == [False, False]


# References


STRING = {"type": "string"}
C = {"$anchor": "c", **STRING}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": STRING}},
        {"$ref": "#/$defs/a%20b~1c%7E0%25", "$defs": {"a b/c~%": STRING}},
        {"$ref": "#/$defs/", "$defs": {"": STRING}},
        {"$ref": "#/unknown/1/x", "unknown": [0, {"x": STRING}]},
        {"$ref": "#/allOf/1/properties/a", "allOf": [{}, {"properties": {"a": STRING}}]},
        {"$ref": "#a", "$defs": {"x": {"$anchor": "a", **STRING}}},
        {"$ref": "#a", "$defs": {"x": {"$dynamicAnchor": "a", **STRING}}},
        {"$id": "http://x.org/root.json", "$ref": "http://x.org/root.json#/$defs/a", "$defs": {"a": STRING}},
        {"$id": "http://x.org/root.json", "$ref": "root.json#/$defs/a", "$defs": {"a": STRING}},
        {"$id": "http://x.org/root.json", "$ref": "other.json", "$defs": {"a": {"$id": "/other.json", **STRING}}},
        {"$ref": "urn:example:a", "$defs": {"a": {"$id": "urn:example:a", **STRING}}},
        {"$ref": "a#b", "$defs": {"a": {"$id": "a", "$defs": {"x": {"$anchor": "b", **STRING}}}}},
        {"$ref": "#/$defs/a/not/not", "$defs": {"a": {"$id": "a", "not": {"not": {"$ref": "#c"}}} | {"if": C}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": STRING}},
        # what earlier drafts did, without their $schema
        {"$ref": "#a", "definitions": {"x": {"$id": "#a", **STRING}}},
        {"$ref": "#a", "definitions": {"x": {"id": "#a", **STRING}}},
        {"id": "http://x.org/y", "allOf": [{"$ref": "y#/definitions/a"}], "definitions": {"a": STRING}},
        {"id": "http://x.org/y", "allOf": [{"$ref": "http://x.org/a"}], "definitions": {"a": {"id": "a", **STRING}}},
        {"definitions": {"a": {"id": "part", "properties": {}, **STRING}}, "$ref": "#/definitions/a"},
        # and with it
        {"$schema": URIS["draft7"], "$ref": "#a", "definitions": {"x": {"$id": "#a", **STRING}}},
        {"$schema": URIS["draft4"], "$ref": "b", "definitions": {"x": {"id": "b", **STRING}}},
        {"$schema": URIS["draft4"], "id": "http://x.org/y", "allOf": [{"$ref": "y#/definitions/x"}]}
        | {"definitions": {"x": STRING}},
    ],
)
def test_references(schema: Any) -> None:
    assert accepts(schema, "a")
    assert not accepts(schema, 1)


@pytest.mark.parametrize("reference", ["#/$defs/b", "#/$defs/a/minimum", "#nobody", "#/allOf/01", "#/%f", "#/\ud800"])
def test_references_to_nowhere(reference: str) -> None:
    with pytest.raises(DefinitionError, match="leads nowhere") as caught:
        document({"$defs": {"a": {"minimum": 1}}, "properties": {"p": {"$ref": reference}}, "allOf": [{}, {}]})
    assert caught.value.where == "/properties/p"
    str(caught.value).encode()


@pytest.mark.parametrize("reference", ["http://example.com/a.json#/b", "a.json", "definitions", "http://[::1"])
def test_references_that_leave_the_document(reference: str) -> None:
    with pytest.raises(UnsupportedError, match="never fetched") as caught:
        document({"items": {"$ref": reference}})
    assert caught.value.where == "/items"
    assert reference.split("#")[0] in caught.value.what


def test_references_of_unused_definitions() -> None:
    unused = {"$ref": "http://example.com/", "properties": {"a": {"$ref": "#/nowhere"}}}
    assert len(document({"$defs": {"unused": unused}, "type": "object"}).schemas) == 1
    schema = {"$schema": URIS["draft7"], "$ref": "#/definitions/a", "properties": unused["properties"]}
    assert len(document({**schema, "definitions": {"a": {}, "b": unused}}).schemas) == 2


@pytest.mark.parametrize("uri", URIS.values())
def test_metaschemas_are_there(uri: str) -> None:
    schema = {"type": "object", "properties": {"schema": {"$ref": uri}}}
    assert accepts(schema, {"schema": {"minLength": 1, "items": {"type": "string"}}})
    assert not accepts(schema, {"schema": {"minLength": -1}})
    assert not accepts(schema, {"schema": {"properties": {"a": {"items": {"type": "strnig"}}}}})


def test_shared_subschemas_are_read_once() -> None:
    found = document({"$defs": {"a": {}}, "anyOf": [{"$ref": "#/$defs/a"}] * 3})
    assert len({found.schemas[child].refs for child in found.schemas[0].any_of or ()}) == 1
    loop = document({"$ref": "#"})
    assert loop.schemas[0].refs == (0,)


# Dynamic references


TREE = {
    "$id": "http://x.org/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}


def test_dynamic_reference_with_one_target() -> None:
    found = document(TREE)
    assert not found.dynamic_anchors
    assert all(schema.dynamic_ref is None for schema in found.schemas)


def test_dynamic_reference_with_two_targets() -> None:
    strict = {
        "$id": "http://x.org/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {"tree": TREE},
    }
    found = document(strict)
    assert sorted(found.dynamic_anchors) == sorted({schema.resource for schema in found.schemas})
    dynamic = [schema for schema in found.schemas if schema.dynamic_ref == "node"]
    assert [found.schemas[schema.dynamic_default or 0].pointer for schema in dynamic] == ["/$defs/tree"]
    assert accepts(strict, {"children": [{"data": 1}]})
    assert not accepts(strict, {"children": [{"daat": 1}]})


# The option additional_properties


PERSON = {"type": "object", "properties": {"name": {}}}


@pytest.mark.parametrize(
    ("schema", "open_", "closed"),
    [
        (PERSON, [], [{"x": 1}]),
        ({"properties": {"a": PERSON}}, [{"a": {"name": 1}}], [{"a": {"x": 1}}]),
        ({"items": {"$ref": "#/$defs/p"}, "$defs": {"p": PERSON}}, [[{"name": 1}]], [[{"x": 1}]]),
        ({"type": "object"}, [{"x": 1}], []),
        ({**PERSON, "additionalProperties": True}, [{"x": 1}], []),
        ({**PERSON, "unevaluatedProperties": {"type": "null"}}, [{"x": None}], [{"x": 1}]),
        ({"allOf": [PERSON, {"properties": {"age": {}}}]}, [{"name": 1, "age": 2}], [{"x": 1}]),
        ({"anyOf": [PERSON, {"properties": {"age": {}}}]}, [{"name": 1}, {"age": 2}], [{"x": 1}]),
        ({"$ref": "#/$defs/p", "properties": {"age": {}}, "$defs": {"p": PERSON}}, [{"name": 1}], [{"x": 1}]),
        (
            {"properties": {"a": PERSON, "b": {"allOf": [{"$ref": "#/properties/a"}, {"properties": {"age": {}}}]}}},
            [{"a": {"name": 1}}, {"b": {"name": 1, "age": 2}}],
            [{"a": {"x": 1}}, {"a": {"age": 2}}, {"b": {"x": 1}}],
        ),
        ({**PERSON, "not": {"properties": {"name": STRING}, "required": ["name"]}}, [{"name": 1}], [{"x": 1}]),
        ({"properties": {"next": {"$ref": "#"}}}, [{"next": {"next": {}}}], [{"x": 1}, {"next": {"x": 1}}]),
    ],
)
def test_closed_objects(schema: Any, open_: list[Any], closed: list[Any]) -> None:
    for instance in open_:
        assert accepts(schema, instance, additional_properties=False), instance
    for instance in closed:
        assert not accepts(schema, instance, additional_properties=False), instance
    assert all(accepts(schema, i) for i in closed if "unevaluatedProperties" not in schema)
    assert all(accepts(schema, i, additional_properties=True) for i in open_)
