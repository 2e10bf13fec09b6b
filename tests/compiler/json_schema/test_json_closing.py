"""Closed objects: each branch by itself, or what all of them evaluate; judged by `jsonschema`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.closing_judge import ClosingJudge, judged
from judges.document_oracle import Oracle
from judges.guides import BYTES
from judges.json_oracle import JsonOracle
from judges.json_texts import random_text
from tiers import draws

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.normalise import normalise
from structgen.compiler.json_schema.read.json_values import parse_json
from structgen.compiler.json_schema.read.reader import read
from structgen.errors import BudgetExceededError, EmptyLanguageError, UnsupportedError

jsonschema = pytest.importorskip("jsonschema", reason="the judge is not installed: pip install 'jsonschema[format]'")

APPLE = {"type": "object", "properties": {"a": {"type": "integer"}}}
BANANA = {"type": "object", "properties": {"b": {"type": "string"}}}
MIX = {"a": 1, "b": "x"}
UNION = {"anyOf": [APPLE, BANANA]}
REFERENCE = {"$ref": "#/$defs/u"}
AGAIN = {"$ref": "#"}

#: A member's values, and what a schema can say of them.
VALUES = (0, "s", None)
MEMBERS = st.sampled_from([{}, {"type": "integer"}, {"type": "string"}])
NAMES = "abcd"


@cache
def instances() -> list[Any]:
    """Objects of up to three members of four names, and what is none."""
    found: list[Any] = [None, 1, []]
    for count in range(4):
        for names in itertools.combinations(NAMES, count):
            found += [dict(zip(names, values, strict=True)) for values in itertools.product(VALUES, repeat=count)]
    return found


def accepts(schema: Any, instance: Any, closing: bool | str = False) -> bool:
    document = read(json.dumps(schema), Meter(Budget()), additional_properties=closing)
    return bool(Oracle(document, schema).accepts(parse_json(json.dumps(instance))))


OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "required": st.lists(st.sampled_from(NAMES), max_size=1),
        "properties": st.dictionaries(st.sampled_from(NAMES), MEMBERS, max_size=2),
    },
)
SCHEMAS = st.recursive(
    OBJECTS,
    lambda inner: st.builds(
        dict.__or__,
        OBJECTS,
        st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(("anyOf", "allOf", "oneOf"), st.lists(inner, min_size=1, max_size=3)),
                "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, max_size=1),
            },
        )
        | st.fixed_dictionaries({"if": OBJECTS, "then": inner, "else": inner}),
    ),
    max_leaves=5,
)


def chosen(schema: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Ways to take one branch of each ``anyOf``: what is asked then, and the subschemas whose members count."""
    kept = {key: value for key, value in schema.items() if key not in _APPLICATORS}
    parts: list[list[tuple[Any, list[Any]]]] = [[({}, [schema])]]
    parts += [list(chosen(each)) for each in schema.get("allOf", ())]
    if "anyOf" in schema:
        parts.append([way for each in schema["anyOf"] for way in chosen(each)])
    branches = schema.get("oneOf", ())
    if branches:
        others = [[each for each in branches if each is not one] for one in branches]
        parts.append(
            [
                ({"allOf": [asked, *({"not": each} for each in rest)]}, listed)
                for one, rest in zip(branches, others, strict=True)
                for asked, listed in chosen(one)
            ]
        )
    for name, each in schema.get("dependentSchemas", {}).items():
        present = {"type": "object", "required": [name]}
        met = [({"allOf": [present, asked]}, listed) for asked, listed in chosen(each)]
        parts.append([({"not": present}, []), *met])
    if "if" in schema:
        test = schema["if"]
        yes = [({"allOf": [test, asked]}, [test, *listed]) for asked, listed in chosen(schema["then"])]
        no = [({"allOf": [{"not": test}, asked]}, listed) for asked, listed in chosen(schema["else"])]
        parts.append(yes + no)
    for way in itertools.product(*parts):
        yield {"allOf": [kept, *(asked for asked, _ in way)]}, [each for _, listed in way for each in listed]


_APPLICATORS = {"allOf", "anyOf", "oneOf", "dependentSchemas", "if", "then", "else"}


def rewritten(schema: Any) -> Any:
    """What a person would write who closes each branch by hand, of a schema that lists members itself."""
    ways = []
    for asked, listed in chosen(schema):
        names = sorted({name for each in listed for name in each.get("properties", {})})
        ways.append({"allOf": [asked, {"propertyNames": {"enum": names}}]})
    return {"anyOf": ways}


@settings(max_examples=draws(150), deadline=None)
@given(SCHEMAS)
def test_closing_is_what_one_would_write_by_hand(schema: dict[str, Any]) -> None:
    schema = {**schema, "properties": {"a": {}, **schema.get("properties", {})}}
    by_hand = jsonschema.Draft202012Validator(rewritten(schema))
    wide = jsonschema.Draft202012Validator({"allOf": [schema], "unevaluatedProperties": False})
    document = read(json.dumps(schema), Meter(Budget()), additional_properties=False)
    unevaluated = read(json.dumps(schema), Meter(Budget()), additional_properties="unevaluated")
    closed, merged = Oracle(document, schema), Oracle(unevaluated, schema)
    for instance in instances():
        value = parse_json(json.dumps(instance))
        assert closed.accepts(value) == by_hand.is_valid(instance), instance
        assert merged.accepts(value) == wide.is_valid(instance), instance
        assert merged.accepts(value) or not closed.accepts(value)


@settings(max_examples=draws(25), deadline=None)
@given(SCHEMAS)
def test_texts_of_closed_schemas(vocabulary: sg.Vocabulary, schema: dict[str, Any]) -> None:
    schema = {**schema, "properties": {"a": {}, **schema.get("properties", {})}}
    by_hand = jsonschema.Draft202012Validator(rewritten(schema))
    definition = sg.JsonSchema(schema, additional_properties=False, property_order="any")
    try:
        index = sg.compile(definition, vocabulary, eager=False)
    except sg.errors.EmptyLanguageError:
        assert not any(by_hand.is_valid(each) for each in instances())
        return
    for instance in instances():
        assert index.match(json.dumps(instance).encode()).accepted == by_hand.is_valid(instance), instance


@pytest.fixture(scope="module")
def vocabulary() -> sg.Vocabulary:
    return sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


@pytest.mark.parametrize(
    ("schema", "open_", "closed"),
    [
        (UNION, [{"a": 1}, {"b": "x"}, {}], [MIX, {"x": 1}]),
        ({"items": UNION}, [[{"a": 1}, {"b": "x"}]], [[MIX]]),
        ({**REFERENCE, "$defs": {"u": UNION}}, [{"a": 1}], [MIX]),
        ({**UNION, "properties": {"c": {}}}, [{"a": 1, "c": 1}, {"b": "x", "c": 1}], [MIX]),
        ({"anyOf": [APPLE, {"type": "null"}]}, [{"a": 1}, None], [{"b": 1}]),
        ({"anyOf": [APPLE, {"type": "object"}]}, [{"a": 1}, {"b": 1}], []),  # what lists nothing stays open
        ({"anyOf": [APPLE, {"type": "object", "additionalProperties": {"type": "null"}}]}, [{"b": None}], [{"b": 1}]),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}, [MIX], [{"c": 1}]),
        ({"oneOf": [APPLE, BANANA]}, [], [{"a": 1}, MIX]),  # {"a": 1} is a BANANA, too: the schema itself refuses it
        ({"oneOf": [{**APPLE, "required": ["a"]}, {**BANANA, "required": ["b"]}]}, [{"a": 1}, {"b": "x"}], [MIX]),
        ({"if": {"properties": {"a": {"const": 1}}}, "then": BANANA}, [MIX, {"a": 1}], [{"a": 1, "c": 1}]),
        # In one place a branch of another schema, in the other a schema of its own.
        (
            {
                "properties": {"u": REFERENCE, "v": {"allOf": [REFERENCE], "properties": {"c": {}}}},
                "$defs": {"u": UNION},
            },
            [{"u": {"a": 1}}, {"v": {"a": 1, "c": 1}}],
            [{"u": {"a": 1, "c": 1}}, {"u": MIX}, {"v": MIX}],
        ),
        # Branches nested in branches, by reference, and in themselves.
        ({"anyOf": [UNION, {"properties": {"c": {}}}]}, [{"a": 1}, {"c": 1}], [MIX, {"a": 1, "c": 1}]),
        (
            {"anyOf": [{"properties": {"a": AGAIN}}, {"properties": {"b": AGAIN}}]},
            [{"a": {"b": {}}}, {"b": {"a": {"a": {}}}}],
            [{"a": {"a": {}, "b": {}}}, {"a": {}, "b": {}}],
        ),
    ],
    ids=range(14),
)
def test_branches(schema: Any, open_: list[Any], closed: list[Any]) -> None:
    for instance in open_:
        assert accepts(schema, instance), instance
        assert accepts(schema, instance, True), instance
    for instance in closed:
        assert not accepts(schema, instance), instance


def test_mixes_by_name() -> None:
    assert [accepts(UNION, MIX, closing) for closing in (True, "unevaluated", False)] == [True, True, False]
    assert not accepts(UNION, {"x": 1}, "unevaluated")


def test_pydantic_unions(vocabulary: sg.Vocabulary) -> None:
    pydantic = pytest.importorskip("pydantic", reason="needs Pydantic")
    apple = pydantic.create_model("Apple", seeds=(int, 0))
    banana = pydantic.create_model("Banana", curve=(float, 0.0))
    basket: Any = pydantic.RootModel[list[apple | banana]]  # type: ignore[valid-type]
    index = sg.compile(sg.JsonSchema(basket, additional_properties=False), vocabulary, eager=False)
    texts = (b'[{"seeds": 1}, {"curve": 0.5}]', b'[{"seeds": 1, "curve": 0.5}]', b'[{"stone": 1}]')
    assert [index.match(text).accepted for text in texts] == [True, False, False]
    # By the other meaning a mix is let through.
    index = sg.compile(sg.JsonSchema(basket, additional_properties="unevaluated"), vocabulary, eager=False)
    assert [index.match(text).accepted for text in texts] == [True, True, False]


def test_too_many_combinations() -> None:
    schema: Any = {"allOf": [{"anyOf": [{"properties": {f"{k}{i}": {}}} for i in range(10)]} for k in range(6)]}
    with pytest.raises(BudgetExceededError) as caught:
        accepts(schema, {})
    assert 'additional_properties="unevaluated"' in caught.value.remedy
    assert accepts(schema, {}, "unevaluated")


def test_long_chains_of_references() -> None:
    count = 20_000
    links: Sequence[Any] = [{"allOf": [{"$ref": f"#/$defs/{k + 1}"}]} for k in range(count)]
    schema = {"$ref": "#/$defs/0", "$defs": {**{str(k): each for k, each in enumerate(links)}, str(count): UNION}}
    found = read(json.dumps(schema), Meter(Budget()), additional_properties=False)
    assert len(found.schemas) > 2 * count


def test_branches_behind_a_dynamic_reference() -> None:
    tree = {"$dynamicAnchor": "node", **UNION}
    strict = {"$id": "https://x.test/s", "$dynamicAnchor": "node", "$ref": "t", "$defs": {"t": {"$id": "t", **tree}}}
    schema = {"properties": {"n": {"$dynamicRef": "#node", "minProperties": 1}}, **strict}
    instances: list[Any] = [{"n": {"a": 1}}, {"a": 1, "n": {"b": "x"}}, {"n": MIX}, {"n": {}}]
    assert [accepts(schema, each) for each in instances] == [True, True, False, False]


@pytest.mark.parametrize("closing", [False, "unevaluated"])
def test_the_reason_is_the_option(vocabulary: sg.Vocabulary, closing: bool | str) -> None:
    definition = sg.JsonSchema({"anyOf": [APPLE, BANANA], "type": "object"}, additional_properties=closing)
    found = sg.explain(sg.compile(definition, vocabulary, eager=False), b'{"a": 1, "x": 1}')
    assert "additional_properties" in str(found)


def test_canonical_texts_tell_the_meanings_apart() -> None:
    texts = {sg.JsonSchema(UNION, additional_properties=each).canonical() for each in (True, False, "unevaluated")}
    assert len(texts) == 3


# -- closing only takes away -----------------------------------------------------------------------------------

NEEDED = {**APPLE, "required": ["a"]}
HAS_K = {"required": ["k"]}


@pytest.mark.parametrize(
    ("schema", "kept", "gone"),
    [
        (
            {"properties": {"p": {"$ref": "#/$defs/x"}, "q": {"not": {"$ref": "#/$defs/x"}}}, "$defs": {"x": NEEDED}},
            [{"p": {"a": 1}}, {"q": {"b": 2}}, {"q": 1}],
            [{"p": {"a": 1, "b": 2}}, {"q": {"a": 1, "b": 2}}, {"q": {"a": 1}}],
        ),
        (
            {"contains": NEEDED, "maxContains": 1},
            [[{"a": 1}], [{"a": 1}, {"b": 2}], 3],
            [[{"a": 1}, {"a": 1, "b": 2}], [{"a": 1}, {"a": 2}], [{"a": 1, "b": 2}], []],
        ),
        (
            {"oneOf": [{"items": {"properties": {"a": True}}}, {"type": "array"}]},
            [3, {"b": 2}],
            [[{"b": 2}], [{"a": 2}], []],
        ),
        (
            {"if": {"items": APPLE}, "then": {"items": {"$ref": "#/if/items"}}, "else": {"maxItems": 1}},
            [[{"a": 1}, {"a": 2}], [{"a": "x"}]],
            [[{"a": 1}, {"b": 1}], [{"a": 1, "b": 1}], [{"a": "x"}, 1]],
        ),
        (
            {"oneOf": [{"properties": {"k": {"const": k}, "v": {"properties": {k: {}}}}, **HAS_K} for k in "ab"]},
            [{"k": "a", "v": {"a": 1}}, {"k": "b"}],
            [{"k": "a", "v": {"b": 1}}, {"k": "c"}, {"k": "a", "x": 1}],
        ),
        ({"oneOf": [{"anyOf": [APPLE, BANANA]}]}, [{"a": 1}, {"b": "x"}], [MIX, {"c": 1}]),
    ],
    ids=["not", "maxContains", "oneOf", "if", "tagged", "single"],
)
@pytest.mark.parametrize("closing", [False, "unevaluated"])
def test_what_is_tried_stays_as_it_was_written(schema: Any, kept: list[Any], gone: list[Any], closing: Any) -> None:
    form = NormalForm(schema, closing)
    assert all(map(form.accepts, kept))
    assert [each for each in gone if form.accepts(each)] == ([MIX] if MIX in gone and closing else [])


@pytest.mark.parametrize(
    ("schema", "open_"),
    [
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "patternProperties": {}}, False),
        ({"type": "object", "properties": {}, "$ref": "#/$defs/o"}, False),
        ({"type": "object", "anyOf": [{"properties": {}}, {"type": "null"}]}, False),
        ({"type": "object", "if": {"properties": {"a": {}}}}, True),
        ({"type": "object", "properties": {}, "if": {"properties": {"a": {}}}}, True),
        ({"type": "object"}, True),
        ({"type": "object", "required": []}, True),
        ({"type": "object", "properties": {}, "additionalProperties": True}, True),
    ],
    ids=range(9),
)
def test_an_empty_list_of_members_is_a_list(schema: Any, open_: bool) -> None:
    for closing in (False, "unevaluated"):
        form = NormalForm({"items": schema, "$defs": {"o": {}}}, closing)
        assert form.accepts([{}])
        assert form.accepts([{"a": 1}]) == open_


class NormalForm:
    """A schema's normal form, as far as it has one."""

    def __init__(self, schema: Any, closing: bool | str) -> None:
        meter = Meter(Budget(seconds=10))
        document = read(json.dumps(schema), meter, additional_properties=closing)
        self._oracle: JsonOracle | None = None
        with suppress(EmptyLanguageError):
            self._oracle = JsonOracle(normalise(document, meter))

    def accepts(self, instance: Any) -> bool:
        return self._oracle is not None and self._oracle.accepts(parse_json(json.dumps(instance)))


class Drawing:
    """Random schemas of all keywords about members and items, and values that come near them."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def document(self) -> dict[str, Any]:
        schema = self._schema(3)
        schema = schema if isinstance(schema, dict) else {}
        return {**schema, "$defs": {name: self._schema(2) for name in "xy"}}

    def value(self, depth: int = 3) -> Any:
        kind = self._random.random()
        if not depth or kind < 0.2:
            return self._random.choice([*VALUES, 1])
        if kind < 0.75:
            return {name: self.value(depth - 1) for name in self._random.sample("abc", self._random.randrange(4))}
        return [self.value(depth - 1) for _ in range(self._random.randrange(4))]

    def _schema(self, depth: int) -> Any:
        if self._random.random() < 0.15 or (depth <= 0 and self._random.random() < 0.6):
            return self._random.choice([{}, True, False, {"type": "integer"}, {"type": "string"}, {"const": 0}])
        below = max(depth - 1, 0)
        kind = self._random.random()
        schema = self._object(below) if not depth or kind < 0.7 else self._array(below) if kind < 0.9 else {}
        for _ in range(self._random.choice([0, 0, 1, 1, 2]) if depth else 0):
            schema |= self._combination(below)
        return schema

    def _some(self, keyword: str, likely: float, value: Any) -> dict[str, Any]:
        return {keyword: value() if callable(value) else value} if self._random.random() < likely else {}

    def _object(self, depth: int) -> dict[str, Any]:
        def inner() -> Any:
            return self._schema(depth)

        random, some = self._random, self._some
        return {
            **some("type", 0.5, "object"),
            **some("properties", 0.7, lambda: {name: inner() for name in random.sample("abc", random.randrange(3))}),
            **some("patternProperties", 0.15, lambda: {random.choice(["a", "b|c", "^c"]): inner()}),
            **some("required", 0.3, lambda: random.sample("abc", random.randrange(1, 3))),
            **some("dependentSchemas", 0.1, lambda: {random.choice("abc"): inner()}),
            **some("propertyNames", 0.05, {"enum": ["a", "b"]}),
            **some("additionalProperties", 0.12, inner),
            **some("unevaluatedProperties", 0.07, inner),
            **some("minProperties", 0.07, lambda: random.randrange(3)),
        }

    def _array(self, depth: int) -> dict[str, Any]:
        def inner() -> Any:
            return self._schema(depth)

        random, some = self._random, self._some
        found = {**some("type", 0.5, "array"), **some("items", 0.5, inner), **some("contains", 0.4, inner)}
        if "contains" in found:
            found |= some("maxContains", 0.5, random.randrange(1, 3)) | some("minContains", 0.2, random.randrange(3))
        return {**found, **some("prefixItems", 0.2, lambda: [inner()]), **some("unevaluatedItems", 0.05, inner)}

    def _combination(self, depth: int) -> dict[str, Any]:
        keyword = self._random.choice(["anyOf", "anyOf", "oneOf", "oneOf", "allOf", "not", "$ref", "if"])
        if keyword == "$ref":
            return {"$ref": self._random.choice(["#/$defs/x", "#/$defs/y"])}
        if keyword == "not":
            return {"not": self._schema(depth)}
        if keyword == "if":
            branches = [self._some(branch, 0.7, self._schema(depth)) for branch in ("then", "else")]
            return {"if": self._schema(depth), **branches[0], **branches[1]}
        return {keyword: [self._schema(depth) for _ in range(self._random.randrange(1, 4))]}


def test_closing_is_valid_and_closed() -> None:
    """Both directions; what is left of unevaluated members and items is no matter of the judge."""
    verdicts = {True: 0, False: 0}
    for seed in range(250):
        drawing = Drawing(seed)
        schema = drawing.document()
        try:
            closed, merged = NormalForm(schema, False), NormalForm(schema, "unevaluated")
        except (UnsupportedError, BudgetExceededError):
            continue
        judge = ClosingJudge(schema)
        for _ in range(12):
            value = drawing.value()
            verdict = judged(judge, value)
            if verdict is None:
                break
            is_valid, is_closed = verdict
            assert is_closed or not closed.accepts(value), (seed, schema, value)
            assert is_valid or not merged.accepts(value), (seed, schema, value)
            assert closed.accepts(value) or not is_closed or not judge.is_exact, (seed, schema, value)
            verdicts[is_closed] += is_valid
    assert min(verdicts.values()) > 50


@pytest.mark.parametrize("closing", [False, "unevaluated"])
def test_what_guides_let_through_is_valid_and_closed(closing: bool | str) -> None:
    texts = 0
    for seed in range(1_000, 1_040):
        schema = Drawing(seed).document()
        definition = sg.JsonSchema(schema, additional_properties=closing)
        try:
            index = sg.compile(definition, BYTES, eager=False, budget=sg.Budget(seconds=5))
        except (EmptyLanguageError, UnsupportedError, BudgetExceededError):
            continue
        random, judge = Random(seed), ClosingJudge(schema)
        for text in filter(None, (random_text(index, random, 20) for _ in range(5))):
            value = json.loads(text, object_pairs_hook=_names_once)
            verdict = judged(judge, value) if value is not None else None
            assert verdict is None or (verdict[0] and (verdict[1] or closing)), (seed, schema, text)
            texts += verdict is not None
    assert texts > 50


def _names_once(members: list[tuple[str, Any]]) -> Any:
    """An object; none whose names come twice, on which validators do not look."""
    return dict(members) if len(dict(members)) == len(members) else None
