"""Separators and escapes: values as `json.dumps` and llguidance write them, and nothing else."""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

import pytest
from judges.guides import BYTES, allowed
from tiers import draws

import structgen as sg
from structgen.definitions.canonical import definition_of
from structgen.errors import BudgetExceededError, DefinitionError, EmptyLanguageError, UnsupportedError

jsonschema = pytest.importorskip("jsonschema", reason="the judge is not installed: pip install 'jsonschema[format]'")

Index = Any
NUMBERS = {"type": "array", "items": {"enum": [1, 2]}}
SCHEMA = {
    "type": "object",
    "properties": {"a": NUMBERS, "b": {"properties": {"c": {}, "d": {}}, "additionalProperties": False}},
    "additionalProperties": {"type": "integer"},
}
VALUES: list[Any] = [
    {}, {"a": []}, {"a": [1, 2]}, {"a": [1, 2, 1], "b": {"c": None, "d": [[], {}, ["x, y", "k: v"]]}},
    {"b": {}, "e": 1, "f": 2},
]  # fmt: skip


def compiled(schema: Any, **options: Any) -> Index:
    return sg.compile(sg.JsonSchema(schema, **options), BYTES, eager=False)


def takes(index: Index, text: str) -> bool:
    return bool(index.match(text.encode()).accepted)


def others(text: str) -> set[str]:
    """The text with a space more or less, or with another white space, anywhere."""
    places = range(1, len(text))
    more = {text[:at] + space + text[at:] for at in places for space in " \n"}
    return more | {text[:at] + text[at + 1 :] for at in places if text[at].isspace()}


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("separators", [(", ", ": "), (",", ": "), (",\n", ":"), (" , ", "\t: "), None])
def test_separators_are_those_of_json_dumps(separators: tuple[str, str] | None, indent: int | None) -> None:
    options: dict[str, Any] = {"whitespace": "compact" if indent is None else indent}
    if separators is not None:
        options["item_separator"], options["key_separator"] = separators
    schema: Any = SCHEMA
    if indent is not None:  # an indentation takes values without nesting of any depth
        schema = {**SCHEMA, "properties": {"a": NUMBERS}}
    index = compiled(schema, **options)
    usual = (",", ":") if indent is None and separators is None else separators
    for value in VALUES:
        if indent is not None and "b" in value:
            continue
        text = json.dumps(value, separators=usual, indent=indent)
        assert takes(index, text), text
        for other in others(text):
            assert takes(index, other) == _is_written(other, schema, separators=usual, indent=indent), other


def _is_written(text: str, schema: Any, **layout: Any) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return json.dumps(value, **layout) == text and bool(jsonschema.Draft202012Validator(schema).is_valid(value))


CONDITIONAL: list[tuple[Any, list[Any], list[Any]]] = [
    ({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True}, [[1, 2], [3], []], [[1, 1]]),
    ({"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 2}}, [[1, 2], [2, 1]], [[1, 1]]),
    ({"type": "array", "items": {"enum": [1]}, "minItems": 2, "maxItems": 3}, [[1, 1], [1, 1, 1]], [[1]]),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), CONDITIONAL, ids=range(3))
@pytest.mark.parametrize("separator", [", ", " ,"])
def test_arrays_with_conditions(schema: Any, valid: list[Any], invalid: list[Any], separator: str) -> None:
    index = compiled(schema, whitespace="compact", item_separator=separator)
    for value in valid:
        assert takes(index, json.dumps(value, separators=(separator, ":")))
    for value in invalid:
        assert not takes(index, json.dumps(value, separators=(separator, ":")))
    assert not takes(index, json.dumps([1, 2], separators=(",", ":")))


def test_members_in_any_order() -> None:
    schema = {"properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"], "type": "object"}
    options = {"whitespace": "compact", "item_separator": ", ", "key_separator": ": ", "property_order": "any"}
    index = compiled({**schema, "additionalProperties": False}, **options)
    texts = ('{"b": 2, "a": 1}', '{"a": 1, "b": 2}', '{"a": 1,"b": 2}', '{"a":1, "b": 2}', '{"a": 1, "a": 1}')
    assert [takes(index, text) for text in texts] == [True, True, False, False, False]


@pytest.mark.parametrize("whitespace", ["single", "any", "( |\n)?", "compact"])
@pytest.mark.parametrize("separators", [(", ", ": "), (",", ": "), (",\n", ":")])
def test_whitespace_around_separators(whitespace: str, separators: tuple[str, str]) -> None:
    """All texts with up to two white spaces in each gap, against a pattern of what they may be."""
    item, key = separators
    gap = {"single": " ?", "any": r"[ \t\n\r]*", "compact": ""}.get(whitespace, whitespace)
    spelled = re.compile("".join((r"\{", gap, '"a"', gap, re.escape(key), gap, r"\[", gap, "1", gap, re.escape(item),
                                  gap, "2", gap, r"\]", gap, r"\}")))  # fmt: skip
    schema = {"properties": {"a": NUMBERS}, "additionalProperties": False, "type": "object"}
    index = compiled(schema, whitespace=whitespace, item_separator=item, key_separator=key)
    pick, seen = random.Random(3), {True: 0, False: 0}
    gaps = ["", " ", "  ", "\n"]
    for _ in range(400):
        pieces = ("{", '"a"', key.strip(), "[", "1", item.strip(), "2", "]", "}")
        text = "".join(piece + pick.choices(gaps, (6, 6, 1, 1))[0] for piece in pieces[:-1]) + "}"
        if pick.random() < 0.5:
            text = text.replace(",", item, 1).replace(":", key, 1)
        expected = spelled.fullmatch(text) is not None
        assert takes(index, text) == expected, text
        seen[expected] += 1
    assert takes(index, f'{{"a"{key}[1{item}2]}}')
    assert seen[False] > 50


#: Patterns of separators between items and behind names.
PATTERNS = [
    (r"\s{0,2},\s{0,2}", r" ?: ?"), ("(,|, )", "(:)"), ("-", "_ "), (";|,+", "=>|:"), (r"1[,1]?", "[ae]+"),
    ('"', "1"), (r"\]", r"\}"), ("é|,", "→"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "key"), PATTERNS, ids=range(len(PATTERNS)))
@pytest.mark.parametrize("order", ["schema", "any"])
def test_separators_by_patterns(item: str, key: str, order: str) -> None:
    """All short texts of their characters, and texts that are made of them, against a pattern of the whole."""
    schema = {"type": "array", "items": {"type": "integer"}}
    both = {"type": "object", "properties": {"a": {"const": 1}, "b": schema}, "additionalProperties": False}
    options: dict[str, Any] = {"whitespace": "compact", "property_order": order}
    options |= {"item_separator": item, "key_separator": key}
    number = "(-?(0|[1-9][0-9]*))"
    array = rf"\[({number}(({item}){number})*)?\]"
    a, b = rf'"a"({key})1', rf'"b"({key}){array}'
    members = rf"{a}|{b}|{a}({item}){b}" + (rf"|{b}({item}){a}" if order == "any" else "")
    spelled = re.compile(array), re.compile(rf"\{{({members})?\}}")
    indexes = compiled(schema, **options), compiled(both, **options)
    pick, seen = random.Random(5), 0
    written = ["1", "0", "12", "-1", "11", "1", ",", ", ", " ,", " , ", ",,", ";", ":", ": ", "-", "_ ", "=>"]
    written += ["e", '"', "]", "é", "→"]
    for _ in range(1500):
        between = [pick.choice(written) for _ in range(pick.randrange(6))]
        for text in (
            "[" + "".join(between) + "]",
            "[1" + between[0] + "1]" if between else "[1]",
            '{"a"' + "".join(between[:1]) + "1" + "".join(between[1:2]) + '"b"' + "".join(between[2:3]) + "[1]}",
            '{"b"' + "".join(between[:1]) + "[]" + "".join(between[1:2]) + '"a"' + "".join(between[:1]) + "1}",
        ):
            for index, pattern in zip(indexes, spelled, strict=True):
                expected = pattern.fullmatch(text) is not None
                assert takes(index, text) == expected, text
                seen += expected
    assert seen > 100


@pytest.mark.parametrize(("schema", "valid", "invalid"), CONDITIONAL, ids=range(3))
def test_patterns_in_arrays_with_conditions(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    index = compiled(schema, whitespace="compact", item_separator=" ?[,;]+")
    for separator in (",", " ;,", ";;"):
        for value in valid:
            assert takes(index, json.dumps(value, separators=(separator, ":")))
        for value in invalid:
            assert not takes(index, json.dumps(value, separators=(separator, ":")))


def test_masks_behind_patterns() -> None:
    """A mask holds the tokens behind which the rest of some text of a pattern can stand."""
    tokens = [*(bytes([i]) for i in range(256)), b"1;", b";;", b"; 1", b";;1]", b"=>", b'"a"', b'"=', b">1", None]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 1])
    schema = {"properties": {"a": {"type": "array", "items": {"const": 1}, "maxItems": 3}}, "required": ["a"],
              "type": "object", "additionalProperties": False}  # fmt: skip
    definition = sg.JsonSchema(schema, whitespace="compact", item_separator=";+ ?", key_separator="=>?")
    index = sg.compile(definition, vocabulary)
    items = ["", "1", *(f"1{a}1" for a in SEPARATED), *(f"1{a}1{b}1" for a in SEPARATED for b in SEPARATED)]
    texts = {f'{{"a"{key}[{inside}]}}' for key in ("=", "=>") for inside in items}
    prefixes = {text[:end] for text in texts for end in range(len(text) + 1)}
    for begun in sorted(each for each in prefixes if ";;;" not in each):
        guide = sg.Guide(index)
        assert all(map(guide.advance, begun.encode()))
        expected = {
            i
            for i, token in enumerate(tokens)
            if (begun in texts if token is None else token.isascii() and begun + token.decode() in prefixes)
        }
        assert set(allowed(guide)) == expected, begun


#: What ``;+ ?`` matches, as far as masks tell it apart.
SEPARATED = [";" * count + space for count in range(1, 6) for space in ("", " ")]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"item_separator": "-*"}, "may be empty"),
        ({"key_separator": "[^\\s\\S]"}, "matches nothing"),
        ({"item_separator": r"\s?,"}, "whitespace may stand anyway"),
        ({"item_separator": "("}, "unterminated group"),
        ({"item_separator": ";", "max_items": 1_000}, "compared as they are written"),
    ],
    ids=range(5),
)
def test_patterns_that_are_no_separators(options: dict[str, Any], says: str) -> None:
    with pytest.raises(sg.Error, match=says):
        compiled({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, **options)


# -- escapes --------------------------------------------------------------------------------------------------

CODES = (0x00, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x1F, 0x22, 0x2F, 0x41, 0x5C, 0x7F, 0xE9, 0x1F600)
SPELLINGS = sorted(
    {chr(code) for code in CODES if code >= 0x20 and code not in (0x22, 0x5C)}
    | {"\\" + letter for letter in 'bfnrt"\\/'}
    | {f"\\u{code:04x}" for code in CODES if code < 0x10000}
    | {"\\u001F", "\\ud83d\\ude00"}
)
LETTERS = ["", "n", "u", "nu", '"\\', '"\\u', 'nrbtf\\"u', "trf", '"\\nt']


@pytest.mark.parametrize("letters", [*LETTERS, "nU", '"\\U', 'nrbtf\\"U'])
def test_letters_are_those_of_llguidance(letters: str) -> None:
    llguidance = pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")
    options: dict[str, Any] = {"json_allowed_escapes": letters.replace("U", "u")}
    if letters == "n" or "U" in letters:  # where no letter stands for it, there is none
        options["json_allow_general_unicode_escapes"] = True
    schema = {"type": "string", "x-guidance": options}
    index = sg.compile(sg.JsonSchema(schema), BYTES, eager=False)
    assert sg.JsonSchema(schema) == sg.JsonSchema(schema, escapes=letters)
    tokens = llguidance.LLTokenizer("byte")
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    texts = [*SPELLINGS, *map("".join, itertools.product(SPELLINGS[::3], repeat=2))]
    for text in texts:
        if "\x7f" in text:
            continue  # which there has to be escaped, and here may be
        data = f'"{text}"'.encode()
        matcher = llguidance.LLMatcher(tokens, grammar, log_level=0)
        expected = matcher.try_consume_tokens([*data]) == len(data) and matcher.is_accepting()
        assert index.match(data).accepted is expected, text


@pytest.mark.parametrize("letters", [*LETTERS, "U", "nU", '"uU'])
@pytest.mark.parametrize(
    "schema", [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^.?[^a]$"}, {}], ids=range(3)
)
def test_what_is_written_decodes_and_uses_the_letters(schema: Any, letters: str) -> None:
    index = compiled(schema, escapes=letters)
    for text in SPELLINGS:
        used = text[1] if text[0] == "\\" else ""
        is_control = text == "\x7f" or (used == "u" and (len(text) > 6 or int(text[2:], 16) in (*range(32), 0x7F)))
        allowed = not used or (used in letters and (used != "u" or (is_control and len(text) == 6)))
        allowed = allowed or (used == "u" and "U" in letters)
        assert takes(index, f'"{text}"') == allowed, text
        assert takes(index, f'{{"{text}": 1}}') == (allowed and schema == {}), text


def test_constants_that_cannot_be_written_are_left_out() -> None:
    index = compiled({"enum": ["a\nb", 'a"b', "a"]}, escapes='"')
    assert [takes(index, text) for text in (r'"a\nb"', r'"a\"b"', '"a"')] == [False, True, True]
    with pytest.raises(EmptyLanguageError):
        compiled({"enum": ["a\nb"]}, escapes='"')
    with pytest.raises(EmptyLanguageError):
        compiled({"type": "object", "required": ["a\nb"]}, escapes='"')
    tag = {"type": "json_schema", "json_schema": {"type": "object", "properties": {"a": {"const": "\n"}}}}
    index = sg.compile(sg.StructuralTag(tag, escapes='"'), BYTES, eager=False)
    assert [takes(index, text) for text in ("{}", r'{"a": "\n"}')] == [True, False]


def test_numbers_and_solidus() -> None:
    index = compiled({"type": "string"}, escapes='/"')
    assert [takes(index, text) for text in (r'"\/"', '"/"', r'"\\"')] == [True, True, False]


# -- options --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"item_separator": ""}, {"key_separator": 5}, {"escapes": "x"}, {"escapes": "u0041"}, {"escapes": None},
     {"item_separator": " ,"}, {"key_separator": " : ", "whitespace": "any"}, {"max_items": -1}, {"max_items": True}],
    ids=range(9),
)  # fmt: skip
def test_options_without_meaning(options: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        sg.JsonSchema({}, **options)


def test_canonical_texts() -> None:
    from structgen.definitions.canonical import definition_of

    definitions = [
        sg.JsonSchema({}), sg.JsonSchema({}, item_separator=", "), sg.JsonSchema({}, key_separator=": "),
        sg.JsonSchema({}, escapes="nu"), sg.JsonSchema({}, whitespace=2, item_separator=", "),
        sg.JsonSchema({}, max_items=0), sg.JsonSchema({}, item_separator=", ", max_items=3),
        sg.JsonSchema({}, max_items=3, excludes=("x",)), sg.JsonSchema({}, unique_names=True, max_items=3),
        *(sg.JsonSchema({}, item_separator="unique_names", key_separator=key, unique_names=each, max_items=most)
          for key in (None, "unique_names") for each in (False, True) for most in (None, 3)),
    ]  # fmt: skip
    texts = [each.canonical() for each in definitions]
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert definition_of("json_schema", text).canonical() == text
    assert sg.JsonSchema({}, escapes="un") == sg.JsonSchema({}, escapes="nu")


@pytest.mark.parametrize(
    ("options", "text", "option"),
    [
        ({"item_separator": ", "}, "[1,2]", "item_separator"),
        ({"item_separator": ", "}, "[1,  2]", "whitespace"),
        ({"key_separator": ": "}, '{"a":1}', "key_separator"),
        ({"escapes": '"'}, r'["\n"]', "escapes"),
        ({"item_separator": " ?; ?"}, "[1,2]", "item_separator"),  # which leaves no room for whitespace
        ({"item_separator": " ?; ?", "escapes": '"'}, r'["\n"]', "escapes"),
    ],
    ids=range(6),
)
def test_reasons(options: dict[str, Any], text: str, option: str) -> None:
    found = sg.explain(compiled({}, whitespace="compact", **options), text.encode())
    assert f"{option}=" in str(found)


# -- lengths of arrays ----------------------------------------------------------------------------------------

#: Schemas, and the same with the bound of two items written wherever an array has none.
BOUNDED: list[tuple[Any, Any]] = [
    ({"type": "array", "items": {"enum": [0, 1]}}, {"type": "array", "items": {"enum": [0, 1]}, "maxItems": 2}),
    ({}, {"$ref": "#/$defs/any", "$defs": {"any": {
        "maxItems": 2, "items": {"$ref": "#/$defs/any"}, "additionalProperties": {"$ref": "#/$defs/any"},
    }}}),
    ({"items": {"maxItems": 3, "items": {"const": 0}}},
     {"maxItems": 2, "items": {"maxItems": 3, "items": {"const": 0}}}),
    ({"minItems": 3, "items": {"const": 1}}, {"minItems": 3, "maxItems": 3, "items": {"const": 1}}),
    ({"contains": {"const": 0}, "minContains": 3, "items": {"enum": [0, 1]}},
     {"minItems": 3, "maxItems": 3, "items": {"const": 0}}),
    ({"prefixItems": [{"const": 1}, {"const": 1}], "contains": {"const": 0}, "items": {"enum": [0, 1]}},
     {"prefixItems": [{"const": 1}, {"const": 1}, {"const": 0}], "minItems": 3, "maxItems": 3}),
    ({"not": {"type": "array", "items": {"const": 1}}, "items": {"enum": [0, 1]}},
     {"not": {"type": "array", "items": {"const": 1}}, "items": {"enum": [0, 1]}, "maxItems": 2}),
    ({"enum": [[0, 1, 0, 1], [1], 5]}, {"enum": [[0, 1, 0, 1], [1], 5]}),
    ({"anyOf": [{"items": {"const": 0}, "maxItems": 4}, {"items": {"const": 1}}]},
     {"anyOf": [{"items": {"const": 0}, "maxItems": 4}, {"items": {"const": 1}, "maxItems": 2}]}),
    ({"items": {"enum": [0, 1, 2]}, "uniqueItems": True},
     {"items": {"enum": [0, 1, 2]}, "uniqueItems": True}),  # which bounds it
    ({"items": {"type": "integer"}, "uniqueItems": True},
     {"items": {"type": "integer"}, "uniqueItems": True, "maxItems": 2}),
]  # fmt: skip


def random_value(rng: random.Random, depth: int = 3) -> Any:
    if depth and rng.random() < 0.7:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(5))]
    return rng.choice([0, 1, 1, 2, 5])


@pytest.mark.parametrize(("schema", "bounded"), BOUNDED, ids=range(len(BOUNDED)))
def test_arrays_without_a_bound_get_one(schema: Any, bounded: Any) -> None:
    index = compiled(schema, whitespace="compact", max_items=2)
    valid = jsonschema.Draft202012Validator(bounded).is_valid
    rng = random.Random(5)
    values = [list(each) for length in range(5) for each in itertools.product((0, 1), repeat=length)]
    values += [random_value(rng) for _ in range(60)]
    for value in values:
        assert takes(index, json.dumps(value, separators=(",", ":"))) == valid(value), value


def test_bounds_of_arrays_in_tags_and_in_reasons() -> None:
    part = {"type": "json_schema", "json_schema": {"items": {"const": 1}, "type": "array"}}
    own = {**part, "options": {"max_items": 3}}
    tag = sg.StructuralTag({"type": "sequence", "elements": [part, own]}, max_items=1, whitespace="compact")
    index = sg.compile(tag, BYTES, eager=False)
    assert takes(index, "[1][1,1,1]")
    assert not takes(index, "[1,1][1]")
    assert not takes(index, "[1][1,1,1,1]")
    found = sg.explain(compiled({"items": {"maxItems": 9}}, whitespace="compact", max_items=1), b"[[1,1,1],2]")
    assert "max_items=1" in str(found)
    found = sg.explain(compiled({"items": {"maxItems": 2}}, whitespace="compact", max_items=9), b"[[1,1,1]]")
    assert "maxItems" in str(found)
    assert "max_items" not in str(found)


@pytest.mark.parametrize("seed", range(draws(60)))
def test_few_values_that_differ_are_counted(seed: int) -> None:
    """Beside every array of three values, under `jsonschema`; where there is none, an integer is left."""
    draw = random.Random(seed)
    kinds = [{"enum": [1, 2]}, {"const": 0}, {"minimum": 1}, {"enum": [0, 1]}, {}]
    bounds = ("minItems", "maxItems", "minContains", "maxContains")
    array: dict[str, Any] = {
        "type": "array", "uniqueItems": True, "items": {"enum": [0, 1, 2]}, "contains": draw.choice(kinds),
        **{bound: draw.randrange(4) for bound in bounds if draw.random() < 0.5},
    }  # fmt: skip
    if draw.random() < 0.4:
        array["prefixItems"] = [{"allOf": [array["items"], draw.choice(kinds)]}]
        array["allOf"] = [{"contains": draw.choice(kinds), "maxContains": draw.randrange(1, 4)}]
    schema = {"anyOf": [{"const": 7}, array]}
    index = compiled(schema, whitespace="compact")
    judge = jsonschema.Draft202012Validator(schema)
    for length in range(5):
        for value in itertools.product((0, 1, 2), repeat=length):
            text = json.dumps(value, separators=(",", ":"))
            assert takes(index, text) == judge.is_valid([*value]), (schema, value)
    assert takes(index, "7")
    is_open = any(judge.is_valid([*value]) for n in range(4) for value in itertools.permutations((0, 1, 2), n))
    assert (index.match(b"[").consumed == 1) == is_open


# -- strings without a bound -----------------------------------------------------------------------------------

#: Schemas, and what bounds their strings to 3 characters.
SHORTENED = [
    ({"type": "string"}, {"type": "string", "maxLength": 3}),
    (True, {"$ref": "#/$defs/any", "$defs": {"any": {
        "maxLength": 3, "items": {"$ref": "#/$defs/any"}, "additionalProperties": {"$ref": "#/$defs/any"}}}}),
    ({"type": "string", "minLength": 5}, {"type": "string", "minLength": 5, "maxLength": 5}),
    ({"type": "string", "maxLength": 4}, {"type": "string", "maxLength": 4}),
    ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a{1,3}$"}),
    ({"type": "string", "pattern": "^(aa)+a{3}$"}, {"const": "aaaaa"}),
    ({"type": "string", "pattern": "^a{5,6}$"}, {"type": "string", "pattern": "^a{5,6}$"}),
    ({"type": "string", "minLength": 4, "pattern": "^(aaa)*$"}, {"const": "aaaaaa"}),
    ({"enum": ["aaaa", "aaaaaa", 1]}, {"enum": ["aaaa", "aaaaaa", 1]}),
    ({"type": ["string", "null"], "not": {"type": "string", "maxLength": 1}},
     {"anyOf": [{"type": "string", "minLength": 2, "maxLength": 3}, {"type": "null"}]}),
    ({"items": {"type": "string"}, "uniqueItems": True, "type": "array"},
     {"items": {"type": "string", "maxLength": 3}, "uniqueItems": True, "type": "array"}),
    ({"anyOf": [{"maxLength": 5, "pattern": "^a"}, {"pattern": "^b"}], "type": "string"},
     {"anyOf": [{"maxLength": 3, "pattern": "^[ab]"}], "type": "string"}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "bounded"), SHORTENED, ids=range(len(SHORTENED)))
def test_strings_without_a_bound_get_one(schema: Any, bounded: Any) -> None:
    index = compiled(schema, whitespace="compact", max_string_length=3)
    valid = jsonschema.Draft202012Validator(bounded).is_valid
    strings = ["a" * length for length in range(8)] + ["b", "bbb", "bbbb", "é" * 3, "😀" * 3, "😀" * 4, "ab"]
    values = [*strings, 1, None, *([each] for each in strings), *([each, "b"] for each in strings[:5])]
    verdicts = set()
    for value in [*values, *({"long name": each} for each in strings if schema is True)]:
        verdicts.add(valid(value))
        assert takes(index, json.dumps(value, separators=(",", ":"), ensure_ascii=False)) == valid(value), value
    assert verdicts == {True, False}


def test_bounds_of_strings_in_tags_reasons_and_canonical_texts() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    options: list[dict[str, Any]] = [{"max_string_length": 2}, {"max_items": 2}, {"unique_names": True}]
    every = [{}, *options, options[0] | options[1], options[0] | options[2], options[0] | options[1] | options[2]]
    every += [{**each, "item_separator": ", ", "key_separator": ": "} for each in every]
    definitions = [sg.JsonSchema(schema, **each) for each in every]
    assert len({each.canonical() for each in definitions}) == len(every)
    for each in definitions:
        again = definition_of("json_schema", each.canonical())
        assert again == each
    index = sg.compile(sg.JsonSchema(schema, style="qwen_xml", max_string_length=2), BYTES, eager=False)
    assert takes(index, "<parameter=a>bb</parameter>")
    assert not takes(index, "<parameter=a>bbb</parameter>")
    tag = sg.StructuralTag({"type": "json_schema", "json_schema": schema}, max_string_length=1, whitespace="compact")
    assert [takes(sg.compile(tag, BYTES, eager=False), text) for text in ('{"a":"b"}', '{"a":"bb"}')] == [True, False]
    found = sg.explain(compiled(schema, max_string_length=1), b'{"a": "bb')
    assert "max_string_length=1" in str(found)
    with pytest.raises(DefinitionError, match="max_string_length"):
        sg.JsonSchema(schema, max_string_length=-1)


# -- numbers without a bound -----------------------------------------------------------------------------------

#: All texts of few characters that numbers are written with.
SPELLED = ["".join(text) for length in range(1, 6) for text in itertools.product("-0125.e", repeat=length)]

#: Schemas of numbers, and the bound that two digits become: the fewest that any spelling has.
BOUNDED_NUMBERS: list[tuple[Any, int]] = [
    ({"type": "number"}, 2),
    ({"type": "integer"}, 2),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, 2),
    ({"type": "number", "minimum": 2000}, 4),
    ({"type": "integer", "minimum": 120}, 3),
    ({"type": "integer", "maximum": -1000}, 4),
    ({"type": "number", "multipleOf": 0.25}, 2),
    ({"type": "number", "multipleOf": 0.25, "not": {"multipleOf": 0.5}}, 3),
    ({"type": "number", "maxDigitsFraction": 1, "maxDigitsExponent": 0}, 2),
    ({"anyOf": [{"type": "integer", "minimum": 10}, {"type": "number", "exclusiveMaximum": 0}]}, 2),
    ({"type": "number", "if": {"type": "integer"}, "then": {"const": 5}}, 2),
    ({"type": "integer", "minimum": 0, "maximum": 2000}, 9),  # few spellings: bounded by the schema
    ({"enum": [120, 0.125]}, 9),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("schema", "most"), BOUNDED_NUMBERS, ids=range(len(BOUNDED_NUMBERS)))
def test_numbers_without_a_bound_get_one(schema: Any, most: int) -> None:
    bounded, free = compiled(schema, max_digits=2), compiled(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    verdicts = set()
    for text in SPELLED:
        taken = bounded.match(text.encode()).accepted
        verdicts.add(taken)
        digits = len(re.findall("[0-9]", text))
        if schema == {"type": "number"}:
            pattern = r"-?(0|[1-9]\d*)(\.\d+)?(e[-]?\d+)?"
            assert taken == (re.fullmatch(pattern, text) is not None and digits <= 2), text
        assert taken == (free.match(text.encode()).accepted and digits <= most), text
        assert not taken or valid(json.loads(text)), text
    assert verdicts == {True, False}


@pytest.mark.nightly
def test_texts_of_bounded_numbers_can_be_ended() -> None:
    schema = {"type": "number", "minimum": 0.5, "multipleOf": 0.25, "not": {"multipleOf": 0.5}}
    for most in range(1, 9):
        index, todo, seen = compiled(schema, max_digits=most), [b""], 0
        for text in todo:
            longer = [text + bytes([byte]) for byte in b"-+.eE0123456789"]
            following = [each for each in longer if index.match(each).consumed == len(each)]
            assert following or index.match(text).accepted, text
            todo += following if len(todo) < 3_000 else []
            seen += 1
        assert seen > 1


def test_bounded_numbers_that_must_differ() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    index = compiled({**numbers, "minItems": 15}, whitespace="compact", max_digits=1)
    assert takes(index, json.dumps([*range(-7, 8)], separators=(",", ":")))
    assert not takes(index, json.dumps([*range(-7, 7), 2], separators=(",", ":")))
    assert not takes(index, json.dumps([*range(14), 10], separators=(",", ":")))
    with pytest.raises(UnsupportedError, match="20 items can differ"):  # of 19
        compiled({**numbers, "minItems": 20}, max_digits=1)
    compiled({**numbers, "minItems": 20}, max_digits=2)
    for mixed in ({"anyOf": [{"type": "integer"}, {"const": 0.5}]}, {"oneOf": [{"minimum": 3}, {"maximum": 2}]}):
        schema = {"type": "array", "items": mixed, "contains": {"const": 7}, "maxContains": 2}
        assert takes(compiled(schema, max_digits=1), "[7, 4, 7]")
        assert not takes(compiled(schema, max_digits=1), "[7, 44]")


def test_bounds_of_numbers_in_tags_reasons_and_canonical_texts() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    several = {"max_digits": 2, "max_string_length": 2, "max_items": 2, "unique_names": True}.items()
    every: list[dict[str, Any]] = [dict(some) for n in range(5) for some in itertools.combinations(several, n)]
    every += [{**each, "item_separator": ", ", "key_separator": ": "} for each in every]
    definitions = [sg.JsonSchema(schema, **each) for each in every]
    assert len({each.canonical() for each in definitions}) == len(every) == 32
    assert all(definition_of("json_schema", each.canonical()) == each for each in definitions)
    index = sg.compile(sg.JsonSchema(schema, style="qwen_xml", max_digits=2), BYTES, eager=False)
    assert takes(index, "<parameter=a>-2.5</parameter>")
    assert not takes(index, "<parameter=a>2.55</parameter>")
    tag = sg.StructuralTag({"type": "json_schema", "json_schema": schema}, max_digits=1, whitespace="compact")
    assert definition_of("structural_tag", tag.canonical()) == tag
    assert [takes(sg.compile(tag, BYTES, eager=False), text) for text in ('{"a":5}', '{"a":55}')] == [True, False]
    found = sg.explain(compiled(schema, max_digits=1), b'{"a": 55')
    assert "a number that no keyword bounds is no longer (max_digits=1)" in str(found)
    for wrong in (0, -1, True, 1.5, "2"):
        with pytest.raises(DefinitionError, match="max_digits"):
            sg.JsonSchema(schema, max_digits=wrong)  # type: ignore[arg-type]
    with pytest.raises(BudgetExceededError):
        compiled({"type": "number"}, max_digits=10**9)


@pytest.mark.parametrize("pattern", [r"\s?", r"[\s]?", r"(?:\s|)", r"\s{0,1}"])
def test_white_space_is_that_of_json(pattern: str) -> None:
    numbers, space = {"items": {"type": "integer"}, "type": "array"}, "[ \t\n\r]?"
    index = compiled(numbers, whitespace=pattern, item_separator=r",\s?")
    spelled = compiled(numbers, whitespace=space, item_separator=f",{space}")
    for space in ("", " ", "\t", "\n", "\r", "\f", "\v", "\u00a0", "\u2003", "   "):
        for text in (f"[{space}1]", f"[1,{space}2]", f"[1{space},2]"):
            assert takes(index, text) == takes(spelled, text) == (len(space) < 2 and space in " \t\n\r"), text
    with pytest.raises(DefinitionError, match="more than whitespace"):
        compiled({"items": {"type": "integer"}}, whitespace=r"[^\s]?")
