"""What an explanation says of schemas: what is named is taken out, and the text must be able to go on."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from judges.json_schemas import PERSON, VALUES, schemas
from judges.loosening import is_revived, revivals
from tiers import draws

import structgen as sg

VOCABULARY = sg.Vocabulary.bytewise()

OPTIONS: list[dict[str, Any]] = [
    {}, {"property_order": "any"}, {"whitespace": "any"}, {"escapes": "any"}, {"additional_properties": False},
]  # fmt: skip


def compiled(schema: Any, **options: Any) -> sg.Index:
    return sg.compile(sg.JsonSchema(schema, **options), VOCABULARY, eager=False, base_rows=False)


@pytest.mark.parametrize(
    ("text", "where", "path"),
    [
        ('{"name": "abcd"}', "/properties/name/maxLength", "/name"),
        ('{"name": "a", "age": 121}', "/properties/age/maximum", "/age"),
        ('{"name": "a", "age": "', "/properties/age/type", "/age"),
        ('{"name": "a"}', "/required", ""),
        ('{"age": 1', "/required", ""),
        ('{"name": "a", "age": 1, "x": 1}', "/additionalProperties", ""),
        ('{"name": "a", "age": 1, "tags": ["c"', "/properties/tags/items/enum", "/tags/0"),
        ("[", "/type", ""),
        ('{"name":  ', "whitespace", ""),
    ],
)
def test_keywords_are_named_by_their_pointers(text: str, where: str, path: str) -> None:
    found = sg.explain(compiled(PERSON), text)
    assert not found.accepted
    assert [(reason.where, reason.path) for reason in found.reasons] == [((where,), path)]


_PLAIN, _UNSIGNED = "written without a fraction or an exponent", "0 is written without a sign"
_DECIMAL = "written without an exponent"


@pytest.mark.parametrize(
    ("schema", "text", "layout"),
    [
        ({"type": "integer"}, "1.0", _PLAIN), ({"type": "integer"}, "-20e1", _PLAIN), ({"const": 1}, "1.0", _PLAIN),
        ({"type": ["integer", "null"]}, "1.0", _PLAIN), ({"enum": [True, 2]}, "1.0", ""),
        ({"type": "string"}, "1.0", ""), ({"multipleOf": 2}, "1.5", ""), ({"minimum": 0}, "-0", _UNSIGNED),
        ({"type": "integer", "minimum": -0.5}, "-0", ""), ({"enum": [0]}, "-0", _UNSIGNED),
        ({"minimum": 3}, "-0", ""), ({"exclusiveMinimum": 0}, "-0", ""), ({"enum": [False]}, "-0", ""),
        ({"multipleOf": 2}, "20e1", _DECIMAL), ({"multipleOf": 0.5, "minimum": 0}, "1.0E0", _DECIMAL),
        ({"type": "number", "not": {"multipleOf": 3}}, "2e0", _DECIMAL), ({"multipleOf": 2}, "1.0", ""),
        ({"maximum": 250}, "2.5e2", _DECIMAL), ({"type": "number", "not": {"const": 5}}, "4e0", _DECIMAL),
        ({"exclusiveMinimum": 1}, "2E0", _DECIMAL), ({"maximum": 250}, "251", ""),
    ],
    ids=str,
)  # fmt: skip
def test_layouts_of_numbers_are_named_beside_the_keyword(schema: Any, text: str, layout: str) -> None:
    """Named where the keyword takes the number, or may take one that goes on so, and another spelling of it."""
    index = compiled(schema)
    found = sg.explain(index, text)
    said = " ".join(reason.what for reason in found.reasons)
    assert {each for each in (_PLAIN, _UNSIGNED, _DECIMAL) if each in said} == {layout} - {""}
    if not found.accepted:
        assert is_revived(schema, {}, found.reasons, found.data[: found.consumed + 1], whole=False)
    if layout:
        assert index.match(str(int(float(text))).encode()).accepted  # the same number as it is written


def test_alternatives_have_each_their_own_reasons() -> None:
    schema = {"anyOf": [{"type": "string"}, {"properties": {"a": {"const": 1}, "b": {"type": "null"}}}]}
    (reason,) = sg.explain(compiled(schema), '{"a": 1, "b": 3').reasons
    assert reason.where == ("/anyOf",)
    assert [[each.where for each in branch] for branch in reason.alternatives] == [
        [("/anyOf/0/type",)],
        [("/anyOf/1/properties/b/type",)],
    ]


def test_keywords_that_only_conflict_are_named_together() -> None:
    (reason,) = sg.explain(compiled({"minimum": 10, "maximum": 20, "multipleOf": 7}), "12").reasons
    assert (reason.kind, reason.where) == ("conflict", ("/maximum", "/multipleOf"))


def test_indented_texts() -> None:
    index = compiled({**PERSON, "properties": {**PERSON["properties"]}}, whitespace=2)
    assert sg.explain(index, '{\n  "name": 3').reasons[0].where == ("/properties/name/type",)
    assert sg.explain(index, '{"name').reasons[0].where == ("whitespace",)


def test_an_old_file_explains_itself() -> None:
    index = sg.Index.from_buffer(compiled(PERSON).to_bytes())
    assert sg.explain(index, '{"name": "abcd"}').reasons[0].where == ("/properties/name/maxLength",)


def test_deep_and_long_texts_are_bounded() -> None:
    index = compiled({})
    found = sg.explain(index, "[" * 20_000 + "]" * 20_000 + "]")
    assert (found.accepted, found.consumed) == (False, 40_000)
    assert "longer" in sg.explain(index, b'"' + b"a" * (1 << 19)).notes[0]


def changed(text: str, draw: random.Random) -> bytes:
    data = bytearray(text.encode())
    at = draw.randrange(len(data) + 1)
    if draw.random() < 0.5:
        data[at : at + draw.randrange(2)] = draw.choice(
            [b"1", b'"', b"}", b"]", b",", b" ", b"a", b".5", b"null", b"{"]
        )
    return bytes(data)


def test_a_value_in_very_many_others_has_one_pointer() -> None:
    """Each of 60,000 would be gigabytes."""
    found = sg.explain(compiled({}), "[" * 60_000 + "x", completion=False)
    assert [(reason.kind, reason.path) for reason in found.reasons] == [("json", "/0" * 59_999)]


def test_what_is_named_can_be_taken_out_and_the_text_goes_on() -> None:
    counts: Counter[str] = Counter()

    @seed(3)
    @settings(max_examples=draws(150), database=None, deadline=None)
    @given(schemas(), st.lists(VALUES, min_size=1, max_size=3), st.sampled_from(OPTIONS), st.integers(0, 1 << 30))
    def judge(schema: Any, values: list[Any], options: dict[str, Any], number: int) -> None:
        try:
            index = compiled(schema, **options)
        except sg.Error:
            return
        for value in values:
            data = changed(json.dumps(value, ensure_ascii=True), random.Random(number))
            found, match = sg.explain(index, data), index.match(data)
            assert (found.accepted, found.consumed) == (match.accepted, match.consumed)
            kinds = {reason.kind for reason in found.reasons}
            if found.accepted or kinds & {"json", "incomplete"} or ("option" in kinds and not found.reasons[0].where):
                continue
            counts["judged"] += 1
            whole = found.consumed == len(data)
            revived = (
                is_revived(schema, options, each, data[: found.consumed + 1], whole=whole)
                for each in revivals(found.reasons)
            )
            counts["right"] += "unknown" not in kinds and all(revived)

    judge()
    assert counts["judged"] > draws(50)
    assert counts["right"] >= 0.97 * counts["judged"], counts
