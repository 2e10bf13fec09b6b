"""JSON Schemas from end to end: masks, the end of a text, files, the cache, lazy and eager."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
import pytest
from fakes.fakes import EOS, byte_vocabulary
from pydantic_core import ArgsKwargs

import structgen as sg
from structgen.runtime.rows.bitmask import unpack

VOCABULARY = byte_vocabulary()


class Address(pydantic.BaseModel):
    street: str
    zip: str = pydantic.Field(pattern="^[0-9]{5}$")


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    age: int | None = None
    role: Literal["admin", "user"] = "user"
    addresses: list[Address] = pydantic.Field(default=[], max_length=2)


TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "number"}, "children": {"items": {"$ref": "#/$defs/node"}}},
            "required": ["value"],
            "additionalProperties": False,
        }
    },
}

#: A schema, instances in canonical order, and instances that are not valid or not in that order.
CASES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "object": (
        {"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"type": "boolean"}}, "required": ["a"]},
        [{"a": 1}, {"a": -12, "ab": True}, {"a": 0, "the": [{"é": None}], "x": {"a": "}"}}],
        [{}, {"a": "1"}, {"a": 1.5}, {"ab": True}, {"ab": True, "a": 1}, {"a": 1, "ab": 0}, [], "a"],
    ),
    "person": (
        Person,
        [
            {"name": "Ada"},
            {"name": "é" * 20, "age": 36, "role": "admin"},
            {"name": "", "addresses": [{"street": 'a "b"\\\n', "zip": "12345"}] * 2},
        ],
        [
            {},
            {"name": "é" * 21},
            {"name": "a", "age": "3"},
            {"name": "a", "role": "root"},
            {"name": "a", "addresses": [{"street": "b", "zip": "1234"}]},
            {"name": "a", "addresses": [{"street": "b", "zip": "12345"}] * 3},
        ],
    ),
    "union": (int | Person, [1, {"name": "a"}], [True, None, {"age": 1}]),
    "tree": (
        TREE,
        [{"value": 1}, {"value": 1e-7, "children": [{"value": 2, "children": []}, {"value": 3.25}]}],
        [{}, {"value": 1, "children": [{}]}, {"value": 1, "left": 2}],
    ),
    "choice": (
        {"enum": ["the", 12, 1.5, None, ["ab", {"a": 1}]]},
        ["the", 12, 1.5, None, ["ab", {"a": 1}]],
        ["ab", 1, [], ["ab", {}], False],
    ),
    "anything": (True, [None, "", [[]], {"a": {"": [False]}}, -0.5], []),
}


@cache
def compiled(name: str, eager: bool = True, **options: Any) -> sg.Index:
    return sg.compile(sg.JsonSchema(CASES[name][0], **options), VOCABULARY, eager=eager)


def tokens(text: str, seed: int = 0) -> list[int]:
    """Some way to spell a text in tokens, chosen at random."""
    generator, data, found = random.Random(seed), text.encode(), []
    by_bytes = {VOCABULARY.token(i): i for i in range(EOS)}
    while data:
        lengths = [n for n in range(1, 6) if data[:n] in by_bytes]
        length = generator.choice(lengths)
        found.append(by_bytes[data[:length]])
        data = data[length:]
    return found


def accepts(index: sg.Index, text: str) -> bool:
    """Whether the text goes through as tokens and may end there; bytes and tokens have to agree."""
    guide = sg.Guide(index)
    through = all(guide.advance(token) for token in tokens(text)) and guide.is_accepting()
    assert index.match(text.encode()).accepted is through
    assert guide.allows(EOS) or not through
    return through


@pytest.mark.parametrize("name", CASES)
def test_instances_are_judged_as_the_schema_says(name: str) -> None:
    _, valid, invalid = CASES[name]
    for instances, expected in ((valid, True), (invalid, False)):
        for instance in instances:
            for separators in ((", ", ": "), (",", ":")):
                text = json.dumps(instance, ensure_ascii=False, separators=separators)
                assert accepts(compiled(name), text) is expected, text


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("eager", [True, False])
def test_masks_are_what_advance_lets_through(name: str, eager: bool) -> None:
    index = compiled(name, eager)
    for seed, instance in enumerate(CASES[name][1]):
        guide = sg.Guide(index)
        for token in tokens(json.dumps(instance, ensure_ascii=False), seed):
            mask = unpack(guide.bitmask(), VOCABULARY.size)
            for each in range(VOCABULARY.size):
                assert guide.fork().advance(each) == bool(mask[each]), (seed, each)
            assert guide.advance(token)
        assert guide.advance(EOS)
        assert guide.is_finished()
        assert np.flatnonzero(unpack(guide.bitmask(), VOCABULARY.size)).tolist() == [EOS]


def masks(index: sg.Index, text: str) -> list[bytes]:
    guide, found = sg.Guide(index), []
    for token in tokens(text):
        found.append(guide.bitmask().tobytes())
        assert guide.advance(token)
    return [*found, guide.bitmask().tobytes()]


@pytest.mark.parametrize("name", CASES)
def test_the_same_masks_lazily_from_a_file_and_from_the_cache(name: str, tmp_path: Path) -> None:
    definition = sg.JsonSchema(CASES[name][0])
    compiled(name).save(tmp_path / "index.sgx")
    store = sg.Cache(tmp_path / "cache")
    indexes = [
        compiled(name, False),
        sg.Index.load(tmp_path / "index.sgx"),
        sg.compile(definition, VOCABULARY, cache=store),
        sg.compile(definition, VOCABULARY, cache=store),
    ]
    assert [index.origin for index in indexes[1:]] == ["file", "compiled", "cache"]
    for instance in CASES[name][1]:
        text = json.dumps(instance, ensure_ascii=False)
        expected = masks(compiled(name), text)
        assert all(masks(index, text) == expected for index in indexes)


def test_rollback_and_fork() -> None:
    text = json.dumps(CASES["person"][1][2])
    guide = sg.Guide(compiled("person"))
    before = []
    for token in tokens(text):
        before.append(guide.bitmask().copy())
        assert guide.advance(token)
    fork = guide.fork()
    for mask in reversed(before):
        guide.rollback(1)
        np.testing.assert_array_equal(guide.bitmask(), mask)
    assert fork.is_accepting()


class TestLayout:
    def accepted(self, text: str, **options: Any) -> bool:
        return accepts(compiled("object", **options), text)

    def test_compact(self) -> None:
        assert self.accepted('{"a":1,"b":[]}', whitespace="compact")
        assert not self.accepted('{"a": 1}', whitespace="compact")

    def test_single(self) -> None:
        assert self.accepted('{ "a" : 1 , "b":[ ] }')
        assert not self.accepted('{"a":  1}')
        assert not self.accepted('{"a":\n1}')
        assert not self.accepted(' {"a":1}')
        assert not self.accepted('{"a":1} ')

    def test_any(self) -> None:
        for bound in (1, 3, 30):
            options: dict[str, Any] = {"whitespace": "any", "max_whitespace": bound}
            assert self.accepted('{"a":' + "\n" * bound + "1}", **options)
            assert not self.accepted('{"a":' + "\t" * (bound + 1) + "1}", **options)
        assert self.accepted('{"a":' + " \r" * 1000 + "1}", whitespace="any", max_whitespace=None)

    def test_a_pattern(self) -> None:
        assert self.accepted('{"a":\n  1}', whitespace=r"(\n *)?")
        assert not self.accepted('{"a": 1}', whitespace=r"(\n *)?")

    @pytest.mark.parametrize("pattern", ["x*", ".?", "[ \u00a0]"])
    def test_a_pattern_of_more_than_whitespace(self, pattern: str) -> None:
        with pytest.raises(sg.errors.DefinitionError, match="more than whitespace") as caught:
            sg.compile(sg.JsonSchema(True, whitespace=pattern), VOCABULARY, eager=False)
        assert caught.value.where == "whitespace"

    @pytest.mark.parametrize("indent", [0, 2, 4])
    def test_indentation(self, indent: int) -> None:
        inner = {"type": ["array", "object"], "maxProperties": 0, "items": {"enum": [1]}}
        schema = {
            "properties": {"a": {"type": "integer"}, "ab": {"type": "boolean"}, "c": {"type": "array", "items": inner}},
            "required": ["a", "c"],
            "additionalProperties": False,
            "type": "object",
        }
        index = sg.compile(sg.JsonSchema(schema, whitespace=indent), VOCABULARY, eager=False)
        value = {"a": 1, "ab": True, "c": [[], {}, [1, 1]]}
        assert accepts(index, json.dumps(value, indent=indent))
        assert accepts(index, json.dumps({"a": 1, "c": []}, indent=indent))
        assert not accepts(index, json.dumps(value, indent=indent + 1))
        assert not accepts(index, json.dumps(value))

    @pytest.mark.parametrize("name", ["object", "tree", "anything"])
    def test_indentation_without_a_deepest_level(self, name: str) -> None:
        with pytest.raises(sg.errors.UnsupportedError, match="can contain itself") as caught:
            compiled(name, whitespace=2)
        assert "additional_properties=False" in caught.value.remedy

    def test_order(self) -> None:
        assert self.accepted('{"ab": true, "a": 1}', property_order="any")
        assert self.accepted('{"x": 1, "a": 1, "ab": true}', property_order="any")
        assert not self.accepted('{"x": 1, "ab": true}', property_order="any")

    def test_escapes(self) -> None:
        strings = ['"é"', r'"\u00e9"', r'"\u0041"', r'"\n"']
        texts = [*(f'{{"a":1,"x":{string}}}' for string in strings), r'{"\u0061":1}']
        judged = {e: [self.accepted(text, escapes=e) for text in texts] for e in ("minimal", "ascii", "any")}
        assert judged == {
            "minimal": [True, False, False, True, False],
            "ascii": [False, True, False, True, False],
            "any": [True, True, True, True, True],
        }

    def test_additional_properties(self) -> None:
        assert self.accepted('{"a": 1, "x": 1}', additional_properties=True)
        assert not self.accepted('{"a": 1, "x": 1}', additional_properties=False)


#: There are no three booleans that differ.
REPEATING = {"type": "array", "uniqueItems": True, "contains": {"type": "boolean"}, "minContains": 3}


class TestErrors:
    @pytest.mark.parametrize(
        ("schema", "kind", "where"),
        [
            (False, sg.errors.EmptyLanguageError, ""),
            ({"properties": {"a": {"type": "strin"}}}, sg.errors.DefinitionError, "/properties/a/type"),
            ({"$ref": "#/$defs/absent"}, sg.errors.DefinitionError, ""),
            ({"items": {"$ref": "https://example.org/x"}}, sg.errors.UnsupportedError, "/items"),
            (REPEATING, sg.errors.UnsupportedError, ""),
        ],
    )
    def test_say_where(self, schema: Any, kind: type[sg.Error], where: str) -> None:
        with pytest.raises(kind) as caught:
            sg.compile(sg.JsonSchema(schema), VOCABULARY)
        assert where in caught.value.where

    def test_lenient_lists_what_it_relaxed(self, tmp_path: Path) -> None:
        index = sg.compile(sg.JsonSchema(REPEATING, lenient=True), VOCABULARY)
        assert len(index.relaxations) == 1
        assert "uniqueItems" in index.relaxations[0]
        assert accepts(index, "[true, true, false]")
        index.save(tmp_path / "index.sgx")
        assert sg.Index.load(tmp_path / "index.sgx").relaxations == index.relaxations
        assert compiled("person").relaxations == ()


def test_compile_takes_dicts_and_types() -> None:
    assert accepts(sg.compile({"type": "boolean"}, VOCABULARY), "true")
    assert accepts(sg.compile(list[int] | None, VOCABULARY), "[1, 2]")
    assert sg.compile(Person, VOCABULARY, eager=False).kind == "json_schema"


class Node(pydantic.BaseModel):
    label: str = pydantic.Field(pattern="^[a-z]+$")
    weight: float = pydantic.Field(ge=0, le=1)
    children: list[Node] = []


def tool(query: str, limit: Annotated[int, pydantic.Field(ge=1)] = 10, tags: list[str] | None = None) -> None: ...


def sample(index: sg.Index, generator: random.Random, limit: int = 2000) -> str:
    """A random text of the language: single bytes, and a taste for what ends things, so that it comes to an end."""
    guide, text = sg.Guide(index), bytearray()
    while not guide.is_accepting() or generator.random() < 0.5:
        allowed = [t for t in range(256) if guide.allows(t)]
        if not allowed:
            break
        closing = [t for t in allowed if t in b'"]}']
        token = generator.choice(closing if closing and generator.random() < 0.5 else allowed)
        assert guide.advance(token)
        text.append(token)
        assert len(text) < limit
    return text.decode()


@pytest.mark.parametrize(
    "annotation",
    [
        Person,
        Node,
        tool,
        int | Person,
        list[Literal["a", 1]] | None,
        dict[str, tuple[int, bool]],
        Annotated[str, pydantic.Field(min_length=2, max_length=3)],
        Annotated[float, pydantic.Field(ge=-2, multiple_of=0.25)],
    ],
    ids=lambda annotation: getattr(annotation, "__name__", str(annotation)),
)
def test_pydantic_parses_whatever_is_let_through(annotation: Any) -> None:
    adapter = pydantic.TypeAdapter(annotation)
    index = sg.compile(annotation, VOCABULARY, eager=False)
    generator = random.Random(3)
    texts = {sample(index, generator) for _ in range(40)}
    assert len(texts) > 5
    for text in texts:
        if annotation is tool:
            adapter.validate_python(ArgsKwargs((), json.loads(text)))
        else:
            adapter.validate_json(text)
