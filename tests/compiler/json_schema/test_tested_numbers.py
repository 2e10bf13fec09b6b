"""Numbers that are only tested (``if``, ``contains``, ``not``, ``oneOf``) against jsonschema: all spellings are free.

The texts are all short ones that numbers with a fraction or an exponent have, as ``docs/guide/json_numbers.md`` says.
None with an exponent is allowed wrongly; each that is valid is, where all numbers are.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from judges.guides import BYTES
from judges.json_judge import Judge, NoVerdictError
from judges.json_texts import random_text
from tiers import draws

import structgen as sg
from structgen.errors import EmptyLanguageError

#: Any number but zero with an exponent has one digit before the point; an exponent has no zeros before it, or one.
FREE = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?|-?[1-9](\.\d+)?[eE][+-]?(0?\d|[1-9]\d+)")
NUMBERS = [
    text
    for n in range(1, 5)
    for letters in itertools.product("-.015e", repeat=n)
    if FREE.fullmatch(text := "".join(letters)) and not (float(text) == 0 and text[0] == "-")
]
NUMBERS += ["1.50e1", "1.05e2", "1.05e1", "1.000e0", "1.25e-1", "1.00E2", "1.5000e1", "5.000e-1", "1.5e+01", "10.50"]

NUMBER: dict[str, Any] = {"type": "number"}
INTEGER: dict[str, Any] = {"type": "integer"}

#: What numbers are tested for.
TESTS: list[dict[str, Any]] = [
    INTEGER, {"const": 1}, {"const": 5.0}, {"const": 0.5}, {"enum": [1, 5, -1.5]}, {**INTEGER, "minimum": 1},
    {**INTEGER, "not": {"const": 5}}, {"not": INTEGER}, {"not": {"not": INTEGER}}, {"anyOf": [{"const": 1}, INTEGER]},
    {"if": INTEGER, "then": {"minimum": 1}}, {"oneOf": [INTEGER, {"minimum": 5}]},
    {"allOf": [INTEGER, {"maximum": 10}]},
]  # fmt: skip

#: Divisors that are no power of ten, together and apart.
DIVISORS: list[dict[str, Any]] = [
    {"multipleOf": 3}, {"not": {"multipleOf": 7}}, {"multipleOf": 0.3}, {"multipleOf": 0.25, "maximum": 10},
    {"multipleOf": 20}, {"not": {"multipleOf": 8}, "minimum": 1}, {"anyOf": [{"multipleOf": 3}, {"multipleOf": 5}]},
    {"multipleOf": 15, "not": {"multipleOf": 0.9}},
]  # fmt: skip


def where_n(is_: Any) -> dict[str, Any]:
    """The objects with such a member."""
    return {"properties": {"n": is_}}


M = {"required": ["m"]}
IF_N, WITH_M = '{{"n":{}}}', '{{"n":{},"m":1}}'

#: Where they are tested: each with the text around the number.
PLACES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "then": (lambda test: {**NUMBER, "if": test, "then": {"minimum": 1}}, "{}"),
    "else": (lambda test: {**NUMBER, "if": test, "else": {"minimum": 1}}, "{}"),
    "then false": (lambda test: {**NUMBER, "if": test, "then": False}, "{}"),
    "not not": (lambda test: {**NUMBER, "not": {"not": test}}, "{}"),
    "not of a product": (lambda test: {**NUMBER, "not": {"allOf": [test, {"minimum": 1}]}}, "{}"),
    "oneOf": (lambda test: {"oneOf": [{**NUMBER, "maximum": 1}, {**NUMBER, **test}, {**NUMBER, "minimum": 5}]}, "{}"),
    "contains": (lambda test: {"items": NUMBER, "contains": test}, "[{}]"),
    "minContains": (lambda test: {"items": NUMBER, "contains": test, "minContains": 2}, "[{0},1.0,{0}]"),
    "maxContains": (lambda test: {"items": NUMBER, "contains": test, "minContains": 0, "maxContains": 1}, "[{0},{0}]"),
    "contains an object": (lambda test: {"items": where_n(NUMBER), "contains": where_n(test)}, '[{{"n":{}}}]'),
    "unevaluated": (lambda test: {"contains": test, "unevaluatedItems": {"minimum": 5}, "items": NUMBER}, "[{}]"),
    "contained or not": (lambda test: {"contains": test, "unevaluatedItems": {**NUMBER, "minimum": 1}}, "[1,{},5.0]"),
    "then of members": (lambda test: {**where_n(NUMBER), "if": where_n(test), "then": M}, IF_N),
    "else of members": (lambda test: {**where_n(NUMBER), "if": where_n(test), "else": M}, IF_N),
    "if, violated": (lambda test: {**where_n(NUMBER), "not": {"if": where_n(test), "then": M}}, IF_N),
    "not of members": (lambda test: {**where_n(NUMBER), "not": {**where_n(test), **M}}, WITH_M),
    "oneOf, violated": (lambda test: {"not": {"oneOf": [where_n(test), where_n(NUMBER)]}}, IF_N),
    "dependentSchemas, violated": (
        lambda test: {**M, "not": {"dependentSchemas": {"m": where_n({"not": test})}}},
        WITH_M,
    ),
    "any member": (lambda test: {"additionalProperties": NUMBER, "not": {"additionalProperties": {"not": test}}}, IF_N),
}


def compared(schema: Any, texts: list[str]) -> int:
    """The number of texts that are valid: jsonschema and structgen have to say the same of each, but for exponents."""
    judge = Judge(schema, "draft2020-12")
    index: sg.Index | None = None
    with suppress(EmptyLanguageError):
        index = sg.compile(sg.JsonSchema(schema), BYTES, eager=False)
    expected = {text: judge.is_valid(text) for text in texts}
    found = {text: index is not None and index.match(text.encode()).accepted for text in texts}
    expected |= {text: found[text] for text in texts if expected[text] and "e" in text.lower()}
    assert found == expected, json.dumps(schema)
    for seed in range(4):  # no text is stuck on its way
        if index is None:
            break
        with suppress(NoVerdictError):
            assert (text := random_text(index, Random(seed))) is None or judge.is_valid(text), (schema, text)
    return sum(expected.values())


@pytest.mark.nightly
@pytest.mark.parametrize("place", PLACES)
def test_the_spelling_of_tested_numbers_is_free(place: str) -> None:
    schema, text = PLACES[place]
    texts = [text.format(number) for number in NUMBERS]
    assert sum(compared(schema(test), texts) for test in TESTS) > 100


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["then", "not not", "contains", "oneOf, violated"])
def test_multiples_are_exact(place: str) -> None:
    schema, text = PLACES[place]
    texts = [text.format(number) for number in (*NUMBERS, "1.05e3", "1.50e2", "5.1e20", "1.05e-2", "5e-3", "1.1e5")]
    assert sum(compared(schema(test), texts) for test in DIVISORS) > 100


@pytest.mark.parametrize(
    "schema",
    [
        INTEGER, {"type": ["integer", "null"]}, {"allOf": [NUMBER, INTEGER]}, {"anyOf": [INTEGER, {"type": "null"}]},
        {**INTEGER, "if": {"const": 5}, "then": True}, {"oneOf": [INTEGER, {"type": "string"}]}, {"const": 5},
        {"enum": [5, 0.5]}, {"enum": [5, 1], "not": {"const": 1}}, {"anyOf": [INTEGER, {"const": 0.5}]},
        {"if": {"type": "string"}, "else": INTEGER}, {"anyOf": [{"type": "string", "not": INTEGER}, INTEGER]},
    ],
)  # fmt: skip
def test_the_spelling_of_asserted_integers_is_not(schema: Any) -> None:
    index = sg.compile(sg.JsonSchema(schema), BYTES, eager=False)
    for more in b".eE":
        guide = sg.Guide(index)
        assert guide.advance(b"5"[0])
        assert guide.is_accepting()
        assert not guide.advance(more)


@settings(max_examples=draws(60))
@given(
    st.recursive(
        st.sampled_from(TESTS) | st.sampled_from([{"minimum": 1}, {"maximum": 5}, {"multipleOf": 1}]),
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: {"anyOf": parts}),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: {"oneOf": parts}),
            st.lists(inner, min_size=2, max_size=2).map(lambda parts: {"allOf": parts}),
            inner.map(lambda part: {"not": part}),
            st.tuples(inner, inner, inner).map(lambda parts: dict(zip(("if", "then", "else"), parts, strict=True))),
        ),
        max_leaves=4,
    ),
    st.sampled_from([*PLACES]),
)
def test_whatever_is_tested(test: Any, place: str) -> None:
    schema, text = PLACES[place]
    note(json.dumps(schema(test)))
    compared(schema(test), [text.format(number) for number in NUMBERS])
