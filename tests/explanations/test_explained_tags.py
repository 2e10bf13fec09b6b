"""What an explanation says of members in tags: what is named is taken out, and the text must be able to go on."""

from __future__ import annotations

import copy
import random
import sys
from typing import Any

import pytest
from judges.json_schemas import PERSON
from judges.loosening import is_right, revivals
from judges.tag_judge import render

import structgen as sg
from structgen.definitions.styles import GAP, STYLES

VOCABULARY = sg.Vocabulary.bytewise()

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


#: Arrays and objects in one another, a member with the name of items, alternatives of both, and a recursion.
ROW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "k": {"type": "boolean"},
        "item": {"type": ["string", "integer"], "maxLength": 2, "maximum": 9},
        "l": {"type": "array", "items": {"enum": ["a", 3, None]}, "maxItems": 2},
    },
    "required": ["k"],
    "additionalProperties": False,
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"t": {"$ref": "#/$defs/t"}},
    "required": ["t"],
    "additionalProperties": False,
    "$defs": {
        "t": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "c": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
            "required": ["v"],
        }
    },
}
NESTED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {
            "type": "object",
            "properties": {
                "o": ROW,
                "rows": {"type": "array", "items": ROW, "minItems": 1, "maxItems": 2},
                "m": {"type": "array", "items": {"type": "array", "items": {"type": "integer", "maximum": 5}}},
            },
            "required": ["o"],
        },
        {"o": {"k": True, "l": ["a", 3]}, "rows": [{"k": False, "item": "12"}], "m": [[1], [], [5, 3]]},
    ),
    (
        {
            "type": "object",
            "properties": {
                "x": {
                    "anyOf": [
                        {"type": "array", "items": {"type": "string", "pattern": "^a"}},
                        {
                            "type": "object",
                            "properties": {"item": {"type": "integer"}, "p": {"type": "null"}},
                            "required": ["item"],
                        },
                        {"type": "string", "minLength": 2},
                    ]
                },
                "y": {"type": ["array", "object", "number"], "maxItems": 1, "properties": {"q": {"const": "on"}}},
                "z": {"type": "array", "prefixItems": [{"type": "integer"}, {"maxProperties": 1}], "items": False},
            },
        },
        {"x": {"item": 12, "p": None}, "y": {"q": "on"}, "z": [3, {"a": 1}]},
    ),
    (TREE, {"t": {"v": 3, "c": [{"v": 1}, {"v": 2, "c": [{"v": 5, "c": []}]}]}}),
]


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


@pytest.mark.parametrize(
    ("style", "text", "closing", "path"),
    [
        ("cohere_xml", '<cofl:value name="k" type="json">true</cofl:val ', "</cofl:value>", "/k"),
        ("cohere_xml", '<cofl:value name="k" type="json">true</k>', "</cofl:value>", "/k"),
        ("cohere_xml", '<cofl:value name="k" type="json">true<cofl:', "</cofl:value>", "/k"),
        ("minimax_m3_xml", "]<]minimax[>[<k>true]<]minimax[>[</x>", "]<]minimax[>[</k>", ""),
    ],
)
def test_the_closing_tag_is_named_that_another_stands_for(style: str, text: str, closing: str, path: str) -> None:
    schema = {"type": "object", "properties": {"k": {"type": "boolean"}}}
    index = compiled(schema, style)
    found = sg.explain(index, text)
    (reason,) = found.reasons
    assert (reason.kind, reason.path) == ("tag", path)
    assert repr(closing) in reason.what
    at = text.index("true") + len("true")
    assert index.match((text[:at] + closing).encode()).accepted
    assert found.consumed > at


def test_a_value_that_no_tag_closes_is_no_json() -> None:
    index = compiled({"type": "object", "properties": {"k": {"type": "boolean"}}}, "cohere_xml")
    for value in ("truex", "tr<", '"'):
        (reason,) = sg.explain(index, f'<cofl:value name="k" type="json">{value}').reasons
        assert "its closing tag" not in reason.what


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
            right = is_right(schema, {"style": style}, found)
            assert right is not False, (text, found.reasons)
            judged += right is not None
    assert judged > refused / 2


def changed(document: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A document with another value, a member or an item more, or one less, at some depth."""
    found: dict[str, Any] = copy.deepcopy(document)
    at: Any = found
    while inner := [each for each in (at.values() if isinstance(at, dict) else at) if isinstance(each, dict | list)]:
        if draw.random() < 0.3:
            break
        at = draw.choice(inner)
    places = [*at] if isinstance(at, dict) else [*range(len(at))]
    value = draw.choice(["abc", "", "12", 12, 3, 0.5, True, None, [], {}, ["a"], {"k": True}, {"item": 3}])
    if places and draw.random() < 0.6:
        at[draw.choice(places)] = value
    elif places and draw.random() < 0.5:
        del at[draw.choice(places)]
    elif isinstance(at, dict):
        at["item"] = value
    else:
        at.append(value)
    return found


@pytest.mark.parametrize("style", ["cohere_xml", "minimax_m3_xml"])
def test_what_is_named_in_arrays_and_objects_stands_against_the_text(style: str) -> None:
    """Documents that fit, changed at some depth; a third of their texts edited, too."""
    draw, judged, refused = random.Random(style), 0, 0
    for schema, document in NESTED:
        index = compiled(schema, style)
        for _ in range(14):
            text = render(changed(document, draw), style, draw)
            if draw.random() < 0.3:
                at = draw.randrange(len(text) + 1)
                text = text[:at] + draw.choice(["1", '"', "<", "x", "\n", ""]) + text[at + draw.randrange(2) :]
            found = sg.explain(index, text, completion=False)
            match = index.match(text.encode())
            assert (found.accepted, found.consumed) == (match.accepted, match.consumed)
            if not found.accepted:
                right = is_right(schema, {"style": style}, found)
                assert right is not False, (text, found.reasons)
                refused, judged = refused + 1, judged + (right is not None)
    assert judged > refused / 2


@pytest.mark.parametrize(
    ("style", "text", "where", "path", "writing"),
    [
        (
            "cohere_xml",
            '<cofl:value name="o" type="dict"><cofl:value name="k" type="json">true</cofl:value>'
            '<cofl:value name="l" type="list"><cofl:value type="raw">a</cofl:value><cofl:value type="json">4',
            "/properties/o/properties/l/items/enum", "/o/l/1", "the value of /o/l/1",
        ),
        (
            "cohere_xml",
            '<cofl:value name="o" type="dict"></cofl:value>', "/properties/o/required", "/o", "the value of /o",
        ),
        (
            "minimax_m3_xml",
            "]<]minimax[>[<o>]<]minimax[>[<k>true]<]minimax[>[</k>]<]minimax[>[</o>]<]minimax[>[<m>]<]minimax[>[<item>"
            "]<]minimax[>[<item>t",
            "/properties/m/items/items/type", "/m/0/0", "the value of /m/0/0",
        ),
        (
            "minimax_m3_xml",
            "]<]minimax[>[<o>]<]minimax[>[<k>true]<]minimax[>[</k>]<]minimax[>[</o>]<]minimax[>[<rows>\n]<]minimax[>[</",
            "/properties/rows/minItems", "/rows", "the value of /rows",
        ),
    ],
    ids=["items", "required", "items of items", "least items"],
)  # fmt: skip
def test_keywords_within_arrays_and_objects(style: str, text: str, where: str, path: str, writing: str) -> None:
    found = sg.explain(compiled(NESTED[0][0], style), text)
    ways = [reasons for reasons in revivals(found.reasons) if any(reason.where == (where,) for reason in reasons)]
    assert [[(reason.where, reason.path) for reason in way] for way in ways] == [[((where,), path)]]
    assert writing in found.writing


@pytest.mark.parametrize(
    ("style", "tags"),
    [
        (
            "cohere_xml",
            [
                '<cofl:value name="t" type="dict">',
                '<cofl:value name="v" type="json">1</cofl:value>'
                '<cofl:value name="c" type="list"><cofl:value type="dict">',
                '<cofl:value name="v" type="json">',
            ],
        ),
        (
            "minimax_m3_xml",
            [
                "]<]minimax[>[<t>",
                "]<]minimax[>[<v>1]<]minimax[>[</v>]<]minimax[>[<c>]<]minimax[>[<item>",
                "]<]minimax[>[<v>",
            ],
        ),
    ],
    ids=["cohere_xml", "minimax_m3_xml"],
)
def test_values_are_named_at_any_depth(style: str, tags: list[str]) -> None:
    index, before = compiled(TREE, style), tags[0] + tags[1] * 40
    found = sg.explain(index, before + tags[2] + "n", completion=False)
    assert {(reason.where, reason.path) for way in revivals(found.reasons) for reason in way} == {
        (("/$defs/t/properties/v/type",), "/t" + "/c/0" * 40 + "/v")
    }
    before += tags[1] * sys.getrecursionlimit()
    assert sg.explain(index, before + tags[2] + "n", completion=False).consumed == len(before + tags[2])
