"""What an explanation says of members in tags: what is named is taken out, and the text must be able to go on."""

from __future__ import annotations

import random
from typing import Any

import pytest
from judges.loosening import is_right

import structgen as sg
from structgen.compiler.json_schema.layout.styles import GAP, STYLES

VOCABULARY = sg.Vocabulary.bytewise()

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 3},
        "age": {"type": "integer", "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
SCHEMAS: list[dict[str, Any]] = [
    PERSON,
    {
        "type": "object",
        "properties": {
            "x": {"type": ["string", "integer"], "pattern": "^a", "minimum": 5},
            "y": {"enum": ["on", "off", 3]},
            "z": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]},
        },
        "required": ["x", "y"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "o": {"type": "object", "properties": {"k": {"type": "boolean"}}, "required": ["k"]},
            "n": {"type": "number", "multipleOf": 0.5},
        },
        "maxProperties": 1,
    },
]
VALUES = [
    "abc", "é", "abcd", "12", "121", "-3", '["a"]', '["c"]', "true", "null", "on", "offf", "3", "0.5", "0.3",
    '{"k": true}', '{"k": 1}', "", "\n5\n",
]  # fmt: skip


def compiled(schema: Any, style: str) -> sg.Index:
    return sg.compile(sg.JsonSchema(schema, style=style), VOCABULARY, eager=False, base_rows=False)


def written(style: str, members: list[tuple[str, str]], draw: random.Random) -> str:
    """Members in a style's tags, of any of its kinds."""
    of, text = STYLES[style], b""
    for name, value in members:
        before = draw.choice(of.kinds).before.replace(GAP, b"")
        text += of.opening + name.encode() + before + value.encode() + of.closing
        text += b"" if of.again is None else of.again[0] + name.encode() + of.again[1]
    return text.decode()


@pytest.mark.parametrize(
    ("text", "where", "path"),
    [
        ("<parameter=name>abcd", "/properties/name/maxLength", "/name"),
        ("<parameter=name>a</parameter><parameter=age>x", "/properties/age/type", "/age"),
        ("<parameter=name>a</parameter>", "/required", ""),
        ("<parameter=age>", "/required", ""),
    ],
)
def test_keywords_are_named_by_their_pointers(text: str, where: str, path: str) -> None:
    found = sg.explain(compiled(PERSON, "qwen_xml"), text)
    assert [(reason.where, reason.path) for reason in found.reasons] == [((where,), path)]


def test_what_may_be_a_string_or_a_number_is_refused_as_both() -> None:
    (reason,) = sg.explain(compiled(PERSON, "qwen_xml"), "<parameter=name>a</parameter><parameter=age>121").reasons
    places = [branch.where for (branch,) in reason.alternatives]
    assert places == [("/properties/age/maximum",), ("/properties/age/type",)]


def test_tags_that_do_not_go_on() -> None:
    index = compiled(PERSON, "qwen_xml")
    for text, kind in {
        "<param>": "tag",
        "x": "tag",
        "<parameter=name>a</par": "incomplete",
        "<para": "incomplete",
    }.items():
        assert [reason.kind for reason in sg.explain(index, text).reasons] == [kind]


def test_members_within_a_format() -> None:
    format_ = {"type": "json_schema", "style": "glm_xml", "json_schema": PERSON}
    tag = sg.StructuralTag(
        {"type": "structural_tag", "format": {"type": "tag", "begin": "<c>", "content": format_, "end": "</c>"}}
    )
    (reason,) = sg.explain(sg.compile(tag, VOCABULARY), "<c><arg_key>name</arg_key><arg_value>abcd").reasons
    (inner,) = reason.alternatives[0]
    assert (inner.where, inner.path) == (("/properties/name/maxLength",), "/name")


@pytest.mark.parametrize("style", STYLES)
def test_what_is_named_stands_against_the_text(style: str) -> None:
    """Random members, a third of them edited at a random place."""
    draw, judged, refused = random.Random(style), 0, 0
    for schema in SCHEMAS:
        index = compiled(schema, style)
        for _ in range(8):
            names = [name for name in (*schema["properties"], "q") if draw.random() < 0.6]
            text = written(style, [(name, draw.choice(VALUES)) for name in names], draw)
            if draw.random() < 0.3:
                at = draw.randrange(len(text) + 1)
                text = text[:at] + draw.choice(["1", '"', "<", "x", ""]) + text[at + draw.randrange(2) :]
            found = sg.explain(index, text, completion=False)
            match = index.match(text.encode())
            assert (found.accepted, found.consumed) == (match.accepted, match.consumed)
            if found.accepted:
                continue
            refused += 1
            if all(reason.kind != "tag" for reason in found.reasons):
                right = is_right(schema, {"style": style}, found)
                assert right is not False, (text, found.reasons)
                judged += right is not None
    assert judged > refused / 2
