"""``"x-guidance"`` in JSON Schemas: each option is kept to, as llguidance has it, or refused by name."""

from __future__ import annotations

import json

import pytest
from judges.guides import BYTES

import structgen as sg
from structgen.definitions.guidance_options import KEY

SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
TEXTS = [
    '{"a":[1,2]}', '{"a": [1, 2]}', '{ "a" : [ 1 , 2 ] }', '{\n  "a":   [1,2]}', '{"a":\t[1,2]}', '{"a":  [1,2]}',
    "{}", '{"a":[]}', '{"a":[1;2]}', '{"a"= [1,2]}', '{"a"_ [1-2]}', '{"a"_[1-2]}', '{"a" _  [1- 2 ]}', '{"a"=[1;2]}',
    '{"a" : [1  ,  2]}',
]  # fmt: skip

HONOURED = [
    {"whitespace_flexible": False},
    {"whitespace_flexible": True},
    {"whitespace_flexible": True, "coerce_one_of": True},
    {"whitespace_pattern": "[ ]{0,2}"},
    {"whitespace_pattern": r"\s{1,2}"},
    {"whitespace_pattern": r"\n|[ ]"},
    {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"},
    {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    {"whitespace_flexible": False, "item_separator": " , ", "key_separator": " : "},
    {"whitespace_flexible": True, "item_separator": ", ", "key_separator": ": "},
    {"whitespace_flexible": False, "item_separator": r"\s{0,2},\s{0,2}", "key_separator": r"\s?:\s?"},
    {"whitespace_flexible": False, "item_separator": "-", "key_separator": "_ "},
    {"whitespace_flexible": True, "item_separator": "-", "key_separator": "_ "},
    {"whitespace_flexible": True, "item_separator": ";|,", "key_separator": "=|: "},
]


@pytest.mark.parametrize("options", HONOURED)
def test_llguidance_writes_values_alike(options: dict[str, object]) -> None:
    llguidance = pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")
    schema = SCHEMA | {KEY: options}
    index = sg.compile(sg.JsonSchema(schema), BYTES, eager=False)
    inner = sg.compile(sg.Grammar(f"start: %json {json.dumps(schema)}"), BYTES, eager=False)
    tokens = llguidance.LLTokenizer("byte")
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    for text in TEXTS:
        matcher = llguidance.LLMatcher(tokens, grammar, log_level=0)
        expected = matcher.try_consume_tokens([*text.encode()]) == len(text) and matcher.is_accepting()
        assert index.match(text.encode()).accepted is expected, text
        assert inner.match(text.encode()).accepted is expected, text


def test_general_escapes_are_read_as_by_llguidance() -> None:
    llguidance = pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")
    schema = {"type": "string", "maxLength": 2, KEY: {"json_allow_general_unicode_escapes": True}}
    index = sg.compile(sg.JsonSchema(schema), BYTES, eager=False)
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    texts = ["é", r"\u00e9", r"\u0041b", r"\u0041bc", r"\ud83d\ude00", r"\ud83d", r"\u0009", r"\t", r"\x41", r"\u004"]
    for text in (f'"{each}"' for each in texts):
        matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), grammar, log_level=0)
        expected = matcher.try_consume_tokens([*text.encode()]) == len(text.encode()) and matcher.is_accepting()
        assert index.match(text.encode()).accepted is expected, text


def test_lenient() -> None:
    schema = {"type": "string", "format": "other", KEY: {"lenient": True}}
    assert sg.JsonSchema(schema) == sg.JsonSchema(schema, lenient=True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"item_separator": "[ ]?,"}, "where whitespace may stand anyway"),
        ({"item_separator": 5}, "'item_separator' with 5 is not honoured"),
        ({"key_separator": " : "}, "where whitespace may stand anyway"),
        ({"json_allowed_escapes": "nx"}, "'json_allowed_escapes' with"),
        ({"json_allow_general_unicode_escapes": 1}, "'json_allow_general_unicode_escapes' with 1"),
        ({"other": 1}, "'other' with 1 is not honoured"),
        ({"lenient": "yes"}, "'lenient' with"),
        ({"whitespace_pattern": 5}, "'whitespace_pattern' with 5"),
        ({"whitespace_pattern": "_*"}, "whitespace"),
        (5, "x-guidance is no object"),
    ],
)
def test_what_is_refused(options: object, says: str) -> None:
    with pytest.raises(sg.Error, match=says):
        sg.compile(sg.JsonSchema(SCHEMA | {KEY: options}), BYTES, eager=False)


def test_arguments_say_the_same_or_nothing() -> None:
    schema = SCHEMA | {KEY: {"whitespace_flexible": False}}
    assert sg.JsonSchema(schema, whitespace="compact") == sg.JsonSchema(schema)
    with pytest.raises(sg.errors.DefinitionError, match="Say it once"):
        sg.JsonSchema(schema, whitespace="any")


def test_elsewhere_than_at_the_root_it_is_refused() -> None:
    schema = {"type": "array", "items": {KEY: {"lenient": True}}}
    with pytest.raises(sg.errors.DefinitionError, match="at the root of the schema"):
        sg.compile(sg.JsonSchema(schema), BYTES, eager=False)
    index = sg.compile(sg.JsonSchema({"properties": {KEY: {"type": "null"}}}), BYTES, eager=False)
    assert index.match(json.dumps({KEY: None}).encode()).accepted
    assert not index.match(json.dumps({KEY: 1}).encode()).accepted


def test_options_are_found_however_they_are_written() -> None:
    escaped = r'{"x-guidanc\u0065": {"whitespace_flexible": false}, "type": "integer"}'
    assert sg.JsonSchema(escaped).whitespace == "compact"
    with pytest.raises(sg.errors.UnsupportedError, match="'some_option' with null is not honoured"):
        sg.JsonSchema({KEY: {"some_option": None}})


@pytest.mark.parametrize("depth", [900, 20_000, 45_000, 1_000_000])
def test_values_of_any_depth_are_refused(depth: int) -> None:
    """Python 3.14 parses what its stack takes, which is more than its encoder writes."""
    with pytest.raises((sg.errors.UnsupportedError, sg.errors.BudgetExceededError)):
        sg.JsonSchema(f'{{"{KEY}": ' + '{"a": ' * depth + "1" + "}" * depth + "}")
