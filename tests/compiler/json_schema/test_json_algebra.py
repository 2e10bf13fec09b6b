"""The algebra of schemas: its normal forms, read by an oracle, against the package jsonschema."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from judges.json_judge import DRAFTS, Judge, NoVerdictError
from judges.json_oracle import accepts
from judges.json_schemas import VALUES, schemas
from tiers import draws

from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.algebra.expansion import Clauses
from structgen.compiler.json_schema.algebra.goal_bounds import GoalBounds
from structgen.compiler.json_schema.normal_form.shapes import ArrayShape, ObjectShape, Values
from structgen.compiler.json_schema.normalise import normalise
from structgen.compiler.json_schema.read.reader import read
from structgen.errors import BudgetExceededError, EmptyLanguageError, UnsupportedError

SUITE = Path(__file__).parents[2] / "cases" / "json_schema_suite"
MASKBENCH = Path(__file__).resolve().parents[4] / "shared" / "data" / "maskbench" / "dev.jsonl.gz"


def values_of(schema: Any, *, lenient: bool = False, budget: Budget | None = None) -> Values:
    """The normal form of a schema."""
    budget = budget or Budget()
    return normalise(read(json.dumps(schema), Meter(budget)), Meter(budget), lenient=lenient)


def objects_of(schema: Any) -> tuple[ObjectShape, ...]:
    """The alternatives of the root's objects."""
    values = values_of(schema)
    return values.values[values.root].objects


def agreed(schema: Any, instance: Any, draft: str | None = None) -> bool:
    """Whether an instance is valid; the judge and the normal form have to say the same."""
    expected = Judge(schema, draft).is_valid(json.dumps(instance))
    try:
        found = accepts(values_of(schema), instance)
    except EmptyLanguageError:
        found = False
    assert found == expected, f"{json.dumps(schema)}: {json.dumps(instance)} is {'' if expected else 'not '}valid"
    return expected


# One rule after the other: each schema with instances that are valid and instances that are not.

RULES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "conjunction of properties": (
        {"properties": {"a": {"minimum": 1}}, "allOf": [{"properties": {"a": {"maximum": 2}, "b": {"type": "null"}}}]},
        [{}, {"a": 1}, {"a": 2, "b": None}],
        [{"a": 0}, {"a": 3}, {"b": 1}],
    ),
    "additionalProperties knows its own schema only": (
        {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}, "additionalProperties": {"type": "null"}}]},
        [{"a": None, "b": 1}],
        [{"a": 1}],
    ),
    "overlapping patterns": (
        {"patternProperties": {"^a": {"minimum": 2}, "b$": {"maximum": 4}}, "additionalProperties": False},
        [{"a": 9, "b": 0, "ab": 3}],
        [{"ab": 1}, {"ab": 5}, {"c": 0}],
    ),
    "a declared name meets the patterns, too": (
        {"properties": {"ab": {"type": "integer"}}, "patternProperties": {"^a": {"minimum": 2}}},
        [{"ab": 2}],
        [{"ab": 1}, {"ab": 2.5}],
    ),
    "propertyNames against declared names": (
        {"properties": {"a": {}, "bb": {}}, "propertyNames": {"maxLength": 1}},
        [{"a": 1, "z": 2}],
        [{"bb": 1}, {"zz": 1}],
    ),
    "dependentRequired in a circle": (
        {"dependentRequired": {"a": ["b"], "b": ["c"], "c": ["a"]}},
        [{}, {"a": 1, "b": 1, "c": 1}],
        [{"a": 1}, {"a": 1, "b": 1}, {"b": 1, "c": 1}],
    ),
    "dependentSchemas": (
        {"dependentSchemas": {"a": {"required": ["b"], "properties": {"c": {"type": "null"}}}}},
        [{"c": 1}, {"a": 1, "b": 1, "c": None}],
        [{"a": 1}, {"a": 1, "b": 1, "c": 1}],
    ),
    "oneOf of objects that overlap": (
        {"oneOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}]},
        [{"a": 1, "b": ""}, {"a": "", "b": 1}],
        [{}, {"a": 1}, {"a": 1, "b": 1}, {"a": "", "b": ""}],
    ),
    "oneOf of scalars that overlap": (
        {"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}, {"const": 5}, {"maxLength": 2}, {"pattern": "^a"}]},
        [],
        [2, 3, 5, 6, 7, "abc", "b", "ab"],
    ),
    "exactly one of two lengths": (
        {"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "^a"}]},
        ["b", "abc"],
        ["a", "ab", "bcd", 1],
    ),
    "oneOf with the empty object in both": (
        {"type": "object", "oneOf": [{"properties": {p: {}}, "additionalProperties": False} for p in "ab"]},
        [{"a": 1}, {"b": 1}],
        [{}, {"a": 1, "b": 1}, {"c": 1}],
    ),
    "not properties": (
        {"type": "object", "not": {"required": ["a"], "properties": {"a": {"type": "null"}, "b": {"const": 1}}}},
        [{}, {"a": 1}, {"a": None, "b": 2}],
        [{"a": None}, {"a": None, "b": 1}],
    ),
    "not additionalProperties": (
        {"type": "object", "not": {"properties": {"a": {}}, "additionalProperties": {"type": "null"}}},
        [{"b": 1}, {"a": 1, "b": None, "c": 2}],
        [{}, {"a": 1}, {"b": None}],
    ),
    "not patternProperties and not propertyNames": (
        {"type": "object", "not": {"anyOf": [{"patternProperties": {"^a": False}}, {"propertyNames": {"const": "a"}}]}},
        [{"a": 1, "b": 1}, {"ab": 1}],
        [{}, {"a": 1}, {"b": 1}],
    ),
    "not of counts": (
        {"not": {"minItems": 1, "maxItems": 2, "minProperties": 1, "maxProperties": 2}},
        [[], [1, 2, 3], {}, {"a": 1, "b": 1, "c": 1}],
        [[1], {"a": 1}, 1],
    ),
    "not items": (
        {"type": "array", "not": {"prefixItems": [{"type": "null"}], "items": {"type": "string"}}},
        [[1], [None, 1], [None, "", 1]],
        [[], [None], [None, ""]],
    ),
    "not contains": (
        {"type": "array", "not": {"contains": {"const": 1}, "minContains": 2, "maxContains": 3}},
        [[], [1], [1, 1, 1, 1]],
        [[1, 1], [1, 0, 1, 1]],
    ),
    "several contains": (
        {"contains": {"type": "integer"}, "allOf": [{"contains": {"minimum": 5}, "maxContains": 1}]},
        [[5], [1, 5.5], [7, 1]],
        [[1], [5.5], [5, 6], []],
    ),
    "not uniqueItems, of few values": (
        {"type": "array", "items": {"enum": [1, [2], None]}, "not": {"uniqueItems": True}},
        [[1, 1], [[2], 1, [2]]],
        [[], [1, [2], None], [1, 2, 2]],
    ),
    "uniqueItems, of few values": (
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
        [[], [True], [False, True]],
        [[True, True], [True, False, True]],
    ),
    "literals": (
        {"enum": [{"a": [1, {}], "b": None}, [1.0, "x"], True]},
        [{"a": [1, {}], "b": None}, {"b": None, "a": [1.0, {}]}, [1, "x"], True],
        [{"a": [1, {}]}, {"a": [1, []], "b": None}, [1], 1, [True, "x"]],
    ),
    "not a literal": (
        {"not": {"enum": [{"a": 1}, [1, 2]]}},
        [{}, {"a": 2}, {"a": 1, "b": 1}, [1], [2, 2], [1, 2, 3], 1],
        [{"a": 1}, [1, 2], {"a": 1.0}],
    ),
    "if, then, else": (
        {"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["a"]}, "else": {"required": ["b"]}},
        [{"a": 1}, {"k": 1, "a": 1}, {"k": 2, "b": 1}, 7],
        [{}, {"k": 1, "b": 1}, {"k": 2, "a": 1}],
    ),
    "unevaluatedProperties": (
        {
            "properties": {"a": {}},
            "anyOf": [{"properties": {"b": {"const": 1}}, "required": ["b"]}, {"patternProperties": {"^c": {}}}],
            "unevaluatedProperties": False,
        },
        [{}, {"a": 1, "b": 1}, {"c": 1, "b": 1}, {"cc": 1}],
        [{"b": 2}, {"d": 1}, {"b": 1, "d": 1}],
    ),
    "not unevaluatedProperties": (
        {"type": "object", "not": {"anyOf": [{"properties": {"a": {}}}], "unevaluatedProperties": {"type": "null"}}},
        [{"b": 1}],
        [{"a": 1}, {"a": 1, "b": None}],
    ),
    "double negation passes nothing on": (
        {"not": {"not": {"properties": {"a": {}}}}, "unevaluatedProperties": False},
        [{}],
        [{"a": 1}],
    ),
    "unevaluatedItems": (
        {"prefixItems": [{}], "contains": {"type": "string"}, "unevaluatedItems": {"type": "null"}},
        [[1, ""], ["", None, ""]],
        [[1], [1, "", 2]],
    ),
    "recursion": (
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False},
        [{}, {"next": {"next": {}}}],
        [{"next": {"next": 1}}, {"other": {}}],
    ),
    "recursion through a negation": (
        {"$defs": {"x": {"properties": {"a": {"not": {"$ref": "#/$defs/x"}}}, "required": ["a"]}}, "$ref": "#/$defs/x"},
        [1, {"a": {}}, {"a": {"a": 1}}],
        [{}, {"a": 1}, {"a": {"a": {}}}],
    ),
    "dynamic references": (
        {
            "$id": "https://example.com/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": False,
            "$defs": {
                "tree": {
                    "$id": "tree",
                    "$dynamicAnchor": "node",
                    "properties": {"children": {"items": {"$dynamicRef": "#node"}}, "data": {}},
                }
            },
        },
        [{"children": [{"data": 1}]}],
        [{"children": [{"daat": 1}]}, {"x": 1}],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule(rule: str) -> None:
    schema, valid, invalid = RULES[rule]
    assert [agreed(schema, instance) for instance in valid] == [True] * len(valid)
    assert [agreed(schema, instance) for instance in invalid] == [False] * len(invalid)


# Against judges


@settings(max_examples=draws(200), suppress_health_check=list(HealthCheck))
@given(schemas(), st.lists(VALUES, min_size=1, max_size=10))
def test_random_schemas(schema: Any, instances: list[Any]) -> None:
    note(json.dumps(schema))
    try:
        for instance in instances:
            agreed(schema, instance, "draft2020-12")
    except (UnsupportedError, BudgetExceededError, NoVerdictError):
        assume(False)


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_official_suite(draft: str) -> None:
    wrong = []
    for case in json.loads((SUITE / f"{draft}.json").read_text("utf-8")):
        if case["subject"].startswith(("optional", "format")):
            continue  # formats and patterns are tested where they are made
        schema = case["schema"]
        schema = {"$schema": DRAFTS[draft][0], **schema} if isinstance(schema, dict) else schema
        try:
            values = values_of(schema)
        except EmptyLanguageError:
            wrong += [case["case"] for _, _, valid in case["tests"] if valid]
            continue
        wrong += [f"{case['case']}: {text}" for text, data, valid in case["tests"] if accepts(values, data) != valid]
    assert not wrong


@pytest.mark.nightly
@pytest.mark.skipif(not MASKBENCH.is_file(), reason="MaskBench is not there")
def test_real_schemas() -> None:
    with gzip.open(MASKBENCH, "rt", encoding="utf-8") as file:
        lines = Random(3).sample(file.readlines(), 300)
    wrong = []
    for line in map(json.loads, lines):
        try:
            values = values_of(line["schema"])
        except EmptyLanguageError:
            wrong += [line["id"] for test in line["tests"] if test["valid"]]
            continue
        wrong += [line["id"] for test in line["tests"] if accepts(values, test["data"]) != test["valid"]]
    assert not wrong


# The form itself


def test_members_come_in_the_order_in_which_they_are_declared() -> None:
    (shape,) = objects_of(
        {
            "properties": {"z": {}, "b": {}},
            "required": ["late", "b"],
            "allOf": [{"properties": {"b": {}, "a": {}}}, {"required": ["later"]}],
            "type": "object",
        }
    )
    assert [prop.name for prop in shape.properties] == ["z", "b", "a", "late", "later"]


def test_alternatives_that_a_member_tells_apart_are_not_split() -> None:
    branches = [{"properties": {"kind": {"const": k}, "x": {"minimum": k}}, "required": ["kind"]} for k in range(300)]
    assert len(objects_of({"type": "object", "oneOf": branches})) == 300
    # What stands beside them may tell them apart, too.
    loose = [{"properties": {"kind": {"const": k}, "x": {"minimum": k}}} for k in range(30)]
    assert len(objects_of({"type": "object", "required": ["kind"], "allOf": [{"oneOf": loose}]})) == 30


def test_implications_are_told_apart_by_what_they_imply() -> None:
    by_type = {f"p{k}": {"properties": {"type": {"enum": [f"t{k % 5}"]}}} for k in range(20)}
    schema = {"type": "object", "properties": {"type": {"type": "string"}}, "dependentSchemas": by_type}
    assert len(objects_of(schema)) < 10


def test_included_alternatives_are_dropped() -> None:
    beside = {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}}
    branches = [
        {"required": ["a"]},
        {"required": ["a", "b"]},
        {"required": ["a"], "properties": {"c": {"type": "null"}}},
    ]
    assert len(objects_of({**beside, "anyOf": branches})) == 1
    # Beside nothing that says in which order members come, each has an order of its own.
    assert len(objects_of({"type": "object", "anyOf": branches})) == 3


def test_equal_values_are_one() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    values = values_of({"properties": {name: dict(point) for name in "abc"}, "type": "object"})
    (shape,) = values.values[values.root].objects
    assert len({prop.choice for prop in shape.properties}) == 1


def test_nothing_is_left_that_has_no_members() -> None:
    shapes = objects_of(
        {
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}, "required": ["a"]},
                "b": {"anyOf": [{"type": "string"}, {"type": "number", "minimum": 5, "maximum": 3}]},
            },
            "additionalProperties": False,
        }
    )
    assert [[prop.name for prop in shape.properties] for shape in shapes] == [["b"]]


def test_the_form_does_not_depend_on_hashes() -> None:
    schema = {"allOf": [{"properties": {c: {"type": "string"} for c in "xyz"}}, {"anyOf": [{"required": ["y"]}, {}]}]}
    first, second = values_of(schema), values_of(schema)
    assert first == second


# Bad input

EMPTY = {
    "numbers": ({"type": "number", "minimum": 5, "maximum": 3}, "minimum 5", "the root"),
    "deep": (
        {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1, "minLength": 2}}, "required": ["a"]},
        "maxLength 1, minLength 2",
        "/properties/a",
    ),
    "forbidden": (
        {"type": "object", "required": ["a"], "additionalProperties": False},
        "'a' is required and forbidden",
        "",
    ),
    "endless": ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, "without end", ""),
    "endless list": ({"type": "array", "minItems": 1, "items": {"$ref": "#"}}, "without end", ""),
    "too few values": ({"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": "boolean"}}, "", ""),
    "too few values that contains counts": (
        {
            "type": "array",
            "uniqueItems": True,
            "items": {"enum": [0, 1, 2]},
            "contains": {"minimum": 1},
            "minContains": 3,
        },
        "minContains 3",
        "",
    ),
    "no room": ({"type": "object", "minProperties": 3, "propertyNames": {"enum": ["a", "b"]}}, "minProperties 3", ""),
    "false": (False, "false", ""),
    "types": ({"allOf": [{"type": "string"}, {"type": "number"}]}, "type string and type number", ""),
}


@pytest.mark.parametrize("case", EMPTY)
def test_an_unsatisfiable_schema_is_refused_with_the_reason(case: str) -> None:
    schema, reason, where = EMPTY[case]
    with pytest.raises(EmptyLanguageError, match="no value") as caught:
        values_of(schema)
    assert reason in caught.value.what
    assert caught.value.where.startswith(where)
    assert caught.value.remedy


HOSTILE: dict[str, Any] = {
    "2^20 alternatives": {"allOf": [{"anyOf": [{"required": [f"a{k}"]}, {"required": [f"b{k}"]}]} for k in range(20)]},
    "2^20 arrays": {"allOf": [{"anyOf": [{"minItems": k}, {"contains": {"const": k}}]} for k in range(20)]},
    "2^20 evaluations": {
        "anyOf": [{"properties": {f"a{k}": {}}, "required": [f"a{k}"]} for k in range(20)],
        "unevaluatedProperties": False,
    },
    "3^50 violations": {"not": {"enum": [{"a": k, "b": k} for k in range(50)]}},
    "2^40 classes of names": {"patternProperties": {f"a{k}": {"minLength": k} for k in range(40)}},
    "a reference to itself": {"$ref": "#"},
    "a loop in place": {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}, "$ref": "#/$defs/a"},
    "a loop through dependentSchemas": {"dependentSchemas": {"a": {"$ref": "#"}}},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_schemas_end_in_a_typed_error(case: str) -> None:
    with pytest.raises((BudgetExceededError, UnsupportedError)) as caught:
        values_of(HOSTILE[case], budget=Budget(seconds=5))
    assert caught.value.what
    assert caught.value.where
    assert caught.value.remedy


def chain(length: int, link: Any) -> dict[str, Any]:
    """Definitions each of which is made of the next."""
    definitions = {f"s{k}": link({"$ref": f"#/$defs/s{k + 1}"}) for k in range(length)}
    return {"$defs": {**definitions, f"s{length}": {}}, "$ref": "#/$defs/s0"}


HARMLESS: dict[str, Any] = {
    "five thousand conjunctions deep": chain(5_000, lambda inner: {"allOf": [inner], "required": ["a"]}),
    "five thousand negations deep": chain(5_000, lambda inner: {"not": inner, "type": ["object", "null"]}),
    "five thousand members deep": chain(5_000, lambda inner: {"properties": {"a": inner}, "required": ["a"]}),
    "two thousand constants": {"oneOf": [{"const": f"v{k}"} for k in range(2_000)]},
    "two thousand tagged objects": {
        "oneOf": [{"properties": {"t": {"const": k}}, "required": ["t"]} for k in range(2_000)]
    },
    "three thousand violations": {"not": {"required": [f"a{k}" for k in range(3_000)]}},
    "counts beyond any array": {"minItems": 10**30, "contains": {"const": "a"}, "minContains": 10**9},
}


@pytest.mark.parametrize("case", HARMLESS)
def test_large_but_harmless_schemas_are_normalised(case: str) -> None:
    assert values_of(HARMLESS[case]).values


def test_repetition_among_infinitely_many_values_is_refused() -> None:
    schema = {"type": "array", "items": {"type": "string"}, "not": {"uniqueItems": True}}
    with pytest.raises(UnsupportedError) as caught:
        values_of(schema)
    assert caught.value.where == "/not/uniqueItems"
    values = values_of(schema, lenient=True)
    assert [line.split(":")[0] for line in values.relaxations] == ["/not/uniqueItems"]
    assert accepts(values, ["a", "a"])


def test_numbers_are_exact() -> None:
    values = values_of({"type": "number", "multipleOf": 0.01, "exclusiveMaximum": 1})
    numbers = values.values[values.root].numbers
    assert numbers is not None
    assert Decimal("0.99") in numbers
    assert Decimal("0.999") not in numbers


PLAIN = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 9},
        "child": {"$ref": "#"},
        "list": {"type": "array", "items": {"enum": [1, "a", [True]]}, "minItems": 1},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def test_keywords_alone_take_no_recursion_and_their_shapes_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for owner in (GoalBounds, Clauses):
        monkeypatch.setattr(owner, "_define", lambda self, query: calls.append(f"asked {query}"))
    for shape in (ArrayShape, ObjectShape):
        monkeypatch.setattr(shape, "mapped", lambda self, change: calls.append(f"mapped {self}"))
    values = values_of(PLAIN)
    assert not calls
    assert accepts(values, {"name": "a", "child": {"name": "b", "list": [Decimal(1), [True]]}})
    assert not accepts(values, {"name": "a", "child": {"list": [Decimal(1)]}})


def test_equal_values_are_one_wherever_they_were_written() -> None:
    one, other = {"minimum": 1, "type": "number"}, {"type": "number", "allOf": [{"minimum": 1}]}
    (shape,) = objects_of({"type": "object", "properties": {"a": one, "b": other, "c": {"items": other}}})
    a, b, _ = (property.choice for property in shape.properties)
    assert a == b
