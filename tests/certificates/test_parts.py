"""Planted defects: each is found, and what is not one is not."""

from __future__ import annotations

import pytest

import structgen as sg

VOCABULARY = sg.Vocabulary.bytewise()


def places(definition: object, item: str = "unused_parts") -> list[tuple[str, str]]:
    """Where, and what, of the warnings of an item."""
    certificate = sg.certify(sg.compile(definition, VOCABULARY, eager=False), items=[item])
    assert sg.Certificate.from_json(certificate.to_json()) == certificate
    return [(each.where, each.says) for each in certificate[item].findings if each.severity == "warning"]


@pytest.mark.parametrize(("schema", "where"), [
    ({"enum": [1, "a"], "type": "string"}, ["#"]),
    ({"allOf": [{"properties": {"a": {"enum": [1, 2]}}}, {"properties": {"a": {"enum": [2, 3]}}}]},
     ["/allOf/0/properties/a", "/allOf/1/properties/a"]),
    ({"properties": {"a": {}, "b": {"type": "string", "minLength": 5, "maxLength": 3}}}, ["/properties/b"]),
    ({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 5, "maximum": 3}]}, ["/anyOf/1"]),
    ({"oneOf": [{"type": "string"}, {"enum": ["a", "b"]}, {"type": "null"}]}, ["/oneOf/1"]),
    ({"properties": {"a": {}, "b": {}}, "type": "object", "required": ["a"], "maxProperties": 1}, ["/properties/b"]),
    ({"type": "array", "prefixItems": [{"type": "null"}, {"type": "null"}], "maxItems": 1}, ["/prefixItems/1"]),
    ({"if": {"type": "string"}, "then": {"maxLength": 3}, "else": {"type": "string"}}, ["/else"]),
    ({"$defs": {"n": {"properties": {"k": {"enum": ["x", "y"]}, "c": {"$ref": "#/$defs/n"}}}},
      "$ref": "#/$defs/n"}, []),
    ({"properties": {"a": False, "b": {"type": ["string", "null"]}}}, []),
])  # fmt: skip
def test_schemas(schema: object, where: list[str]) -> None:
    assert [place for place, _ in places(sg.JsonSchema(schema))] == where


def test_regexes_gbnf_and_grammars() -> None:
    assert [place for place, _ in places(sg.Regex(r"x(?!b)(?:a|b|c)"))] == ["column 12"]
    assert places(sg.Regex("a|ab|(?:c|d)*")) == []
    assert [place.split(",")[0] for place, _ in places(sg.Gbnf('root ::= "a" | b\nb ::= "x" b\nc ::= "y"'))] == [
        "rule root",
        "rule b",
        "rule c",
    ]
    beaten = sg.Grammar("start: A | B\nA.2: /[a-z]+/\nB: /[a-y]+/")
    assert [place for place, _ in places(beaten, "terminals")] == ["B"]
    assert places(sg.Grammar('start: A B?\nA: /[a-z]+/\nB: "0"'), "terminals") == []
