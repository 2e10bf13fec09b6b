"""OpenAI's strict mode: what its own package makes of models is taken, and each rule and limit is checked."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Literal

import pytest

import structgen as sg
from structgen.definitions import openai_strict
from structgen.errors import DefinitionError

NO_JUDGE = "the judge is not installed: pip install 'jsonschema[format]'"
STRING = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "of the person", "pattern": "^[a-z]+$"},
        "born": {"type": ["string", "null"], "format": "date"},
        "size": {"type": "number", "minimum": 0, "exclusiveMaximum": 3, "multipleOf": 0.01},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string", "const": "x"}, "minItems": 1, "maxItems": 3},
        "parent": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/nobody"}]},
    },
    "required": ["name", "born", "size", "kind", "tags", "parent"],
    "additionalProperties": False,
    "$defs": {"nobody": {"type": "null"}},
}


def object_of(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    fields = {"properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "object", **fields, **more}


def refused(schema: Any) -> tuple[str, str]:
    """Where a schema is refused, and why."""
    with pytest.raises(DefinitionError) as caught:
        sg.JsonSchema.openai_strict(schema)
    assert caught.value.remedy
    return caught.value.where, caught.value.what.removeprefix("not for OpenAI's strict mode: ")


def test_a_schema_stays_as_it_is() -> None:
    strict = sg.JsonSchema.openai_strict(SCHEMA, whitespace="compact")
    assert strict == sg.JsonSchema(SCHEMA, whitespace="compact")
    assert sg.JsonSchema.openai_strict(json.dumps(SCHEMA)).text == strict.text


def test_members_come_in_their_order(vocabulary: sg.Vocabulary) -> None:
    schema = object_of({"b": STRING, "a": {"type": ["integer", "null"]}})
    index = sg.compile(sg.JsonSchema.openai_strict(schema), vocabulary, eager=False)
    for text in (b'{"b": "", "a": 1}', b'{"b": "", "a": null}'):
        assert index.match(text).accepted
    for text in (b'{"a": 1, "b": ""}', b'{"b": ""}', b'{"b": "", "a": 1, "c": 1}'):
        assert not index.match(text).accepted


@pytest.fixture(scope="module")
def vocabulary() -> sg.Vocabulary:
    return sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


@pytest.mark.parametrize(
    ("schema", "where", "why"),
    [
        (True, "the root", "the root is no object"),
        ({"anyOf": [object_of({})]}, "the root", "the root is no object"),
        ({"type": "array", "items": STRING}, "the root", "the root is no object"),
        (object_of({}, anyOf=[object_of({})]), "the root", "it has type and anyOf of type, anyOf and $ref"),
        (object_of({"a": {}}), "/properties/a", "it has none of type, anyOf and $ref"),
        (object_of({"a": True}), "/properties/a", "it is no object with keywords"),
        (object_of({"a": STRING}, required=[]), "/properties/a", "a property is not required"),
        (object_of({"a": STRING}, required=["a", "b"]), "/required/1", "'b' is no property"),
        (object_of({"a/b": {"type": "object"}}), "/properties/a~1b", "an object is not closed"),
        (object_of({"a": {"type": ["object", "null"]}}), "/properties/a", "an object is not closed"),
        (object_of({}, additionalProperties=STRING), "the root", "an object is not closed"),
        (object_of({"a": {"type": "array"}}), "/properties/a", "an array has no items"),
        (object_of({"a": {**STRING, "format": "uri"}}), "/properties/a/format", "the format 'uri' is not supported"),
        (object_of({"a": {"$ref": "#", "type": "null"}}), "/properties/a",
         "it has type and $ref of type, anyOf and $ref"),
        (object_of({"a": {"$ref": "#", "default": 1}}), "/properties/a/default",
         "the keyword 'default' is not supported"),
        (object_of({"a": {**STRING, "$defs": {}}}), "/properties/a/$defs", "the keyword '$defs' is not supported"),
        (object_of({}, **{"$defs": {"d": {"type": "object"}}}), "/$defs/d", "an object is not closed"),
        (object_of({"a": {"anyOf": [STRING, {}]}}), "/properties/a/anyOf/1", "it has none of type, anyOf and $ref"),
    ],
    ids=range(18),
)  # fmt: skip
def test_what_is_refused(schema: Any, where: str, why: str) -> None:
    assert refused(schema) == (where, why)


@pytest.mark.parametrize(
    "keyword",
    [
        *("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
        *("patternProperties", "propertyNames", "unevaluatedProperties", "minProperties", "maxProperties"),
        *("prefixItems", "contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems"),
        *("minLength", "maxLength", "default", "examples", "x-guidance"),
    ],
)
def test_keywords_that_are_not_supported(keyword: str) -> None:
    assert refused(object_of({"a": {**STRING, keyword: 1}}))[0] == f"/properties/a/{keyword}"


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = dict(STRING)
    for _ in range(levels):
        schema = object_of({"a": schema})
    return schema


def enums(*counts: int, characters: int = 2) -> dict[str, Any]:
    return object_of(
        {
            f"p{k}": {"type": "string", "enum": [f"{i:0{characters}}" for i in range(count)]}
            for k, count in enumerate(counts)
        }
    )


@pytest.mark.parametrize(
    ("taken", "one_more", "where"),
    [
        (nested(10), nested(11), "/properties/a" * 11),
        (object_of({f"{k}": STRING for k in range(5000)}), object_of({f"{k}": STRING for k in range(5001)}),
         "/properties/5000"),
        (enums(240, 240, 240, 240, 40), enums(240, 240, 240, 240, 41), "/properties/p4/enum/40"),
        (enums(251, characters=59), enums(251, characters=60), "/properties/p0/enum"),
        (enums(250, characters=100), enums(251, characters=100), "/properties/p0/enum"),
        (object_of({"a" * 119_999: STRING, "b": STRING}), object_of({"a" * 119_999: STRING, "bc": STRING}),
         "/properties/bc"),
        (object_of({"a": {**STRING, "const": "c" * 119_999}}), object_of({"a": {**STRING, "const": "c" * 120_000}}),
         "/properties/a/const"),
        (object_of({}, **{"$defs": {"d" * 119_999: STRING, "e": STRING}}),
         object_of({}, **{"$defs": {"d" * 119_999: STRING, "ef": STRING}}), "/$defs/ef"),
    ],
    ids=["levels", "properties", "values", "long enum", "short enum", "names", "constants", "definitions"],
)  # fmt: skip
def test_limits(taken: Any, one_more: Any, where: str) -> None:
    sg.JsonSchema.openai_strict(taken)
    assert refused(one_more)[0] == where


def places(schema: Any) -> Iterator[dict[str, Any]]:
    """All subschemas."""
    yield schema
    below = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    for each in [*below, *([schema["items"]] if "items" in schema else [])]:
        yield from places(each)


_TIMES = ("date-time", "time", "date", "duration")

#: The rules but for that of ``required``, as a schema of schemas: the judge of what is damaged.
META = {
    "$defs": {
        "s": {
            "type": "object",
            "oneOf": [{"required": ["type"]}, {"required": ["anyOf"]}, {"required": ["$ref"]}],
            "properties": {
                "properties": {"additionalProperties": {"$ref": "#/$defs/s"}},
                "$defs": {"additionalProperties": {"$ref": "#/$defs/s"}},
                "items": {"$ref": "#/$defs/s"},
                "anyOf": {"items": {"$ref": "#/$defs/s"}},
                "format": {"enum": [*_TIMES, "email", "hostname", "ipv4", "ipv6", "uuid"]},
            },
            "if": {"properties": {"type": {"const": "object"}}, "required": ["type"]},
            "then": {"properties": {"additionalProperties": {"const": False}}, "required": ["additionalProperties"]},
            "else": {
                "if": {"properties": {"type": {"const": "array"}}, "required": ["type"]},
                "then": {"required": ["items"]},
            },
            "propertyNames": {"not": {"enum": ["allOf", "default", "uniqueItems", "minLength"]}},
            "dependentSchemas": {"$ref": {"propertyNames": {"enum": ["$ref", "title", "description"]}}},
        }
    },
    "$ref": "#/$defs/s",
    "properties": {"type": {"const": "object"}},
    "required": ["type"],
}


def test_damaged_schemas() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason=NO_JUDGE)
    judge = jsonschema.Draft202012Validator(META)
    pick, seen = random.Random(7), {True: 0, False: 0}
    for _ in range(600):
        schema = copy.deepcopy(SCHEMA)
        place = pick.choice(list(places(schema)))
        if pick.random() < 0.5:
            keyword = pick.choice(["allOf", "default", "description", "title", "uniqueItems", "minLength", "format"])
            place[keyword] = pick.choice(["date", "uri"])
        else:
            del place[pick.choice(list(place))]
        required = all(set(each.get("properties", ())) == set(each.get("required", ())) for each in places(schema))
        try:
            sg.JsonSchema.openai_strict(schema)
            taken = True
        except DefinitionError:
            taken = False
        assert taken == (judge.is_valid(schema) and required), schema
        seen[taken] += 1
    assert min(seen.values()) > 50


def models() -> Iterator[Any]:
    """Pydantic models, of what they can hold."""
    pydantic = pytest.importorskip("pydantic", reason="needs Pydantic")

    class Colour(Enum):
        RED, BLUE = "red", "blue"

    class Cat(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        kind: Literal["cat"]
        lives: int = 9

    class Dog(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        kind: Literal["dog"]
        colour: Colour = Colour.RED

    class Node(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        value: Annotated[float, pydantic.Field(ge=0, description="a weight")]
        next: Node | None = None

    Node.model_rebuild(_types_namespace={"Node": Node})
    parts = [
        int, str | None, list[str], Colour, Cat, Cat | Dog, list[Cat], Node, dict[str, int], tuple[int, str], Any,
        Annotated[str, pydantic.Field(pattern="^a")], Annotated[str, pydantic.Field(max_length=3)],
        Annotated[Cat, pydantic.Field(description="the cat")], Annotated[int, pydantic.Field(default=3)],
    ]  # fmt: skip
    yield Node
    for k, part in enumerate(parts):
        yield pydantic.create_model(f"M{k}", a=(part, ...), b=(int | None, None))
    yield pydantic.create_model("T", a=(Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], ...))


def test_models_are_made_strict_as_by_openai() -> None:
    pydantic = pytest.importorskip("openai.lib._pydantic", reason="needs openai's package")
    jsonschema = pytest.importorskip("jsonschema", reason=NO_JUDGE)
    taken = 0
    for model in models():
        theirs = pydantic.to_strict_json_schema(model)
        try:
            ours = json.loads(sg.JsonSchema.openai_strict(model).text)
        except DefinitionError:
            kept = [place for place in places(theirs) if set(place) & _OPEN or place.get("additionalProperties")]
            assert kept or any(not {"type", "anyOf", "$ref", "oneOf"} & set(place) for place in places(theirs))
            continue
        taken += 1
        mine, other = jsonschema.Draft202012Validator(ours), jsonschema.Draft202012Validator(theirs)
        for instance in INSTANCES:
            assert mine.is_valid(instance) == other.is_valid(instance), (model, instance)
    assert taken >= 12


_OPEN = {"prefixItems", "maxLength"}
_CAT, _DOG = {"kind": "cat", "lives": 9}, {"kind": "dog", "colour": "red"}
_PARTS: list[Any] = [
    1, "a", None, ["a"], "red", _CAT, _DOG, {**_CAT, "colour": "red"}, {"kind": "cat"}, [_CAT], "abcd",
    {"value": 1, "next": {"value": 0.5, "next": None}}, {"value": -1, "next": None}, {"value": 1},
]  # fmt: skip
INSTANCES: list[Any] = [
    *_PARTS,
    *({"a": part, "b": b} for part in _PARTS for b in (1, None)),
    *({"a": part} for part in _PARTS),
]


def test_the_limits_are_those_that_are_documented() -> None:
    """As the page has them, and as the documentation here repeats them."""
    assert openai_strict.MOST_PROPERTIES == 5_000
    assert openai_strict.MOST_LEVELS == 10
    assert (openai_strict.MOST_VALUES, openai_strict.MOST_CHARACTERS) == (1_000, 120_000)
    assert (openai_strict.LONG_ENUM, openai_strict.MOST_CHARACTERS_OF_ENUM) == (250, 15_000)
