"""Schemas whose objects are written in tags: judged by a plain parser and `jsonschema`, by an interpreter of the
program, and by XGrammar where it is installed."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from judges import pushdown_oracle as oracle
from judges.json_tokens import Speller, guides_along, mask_of, masks
from judges.tag_judge import SPECIAL, STYLES, marked, readings, render, symbols, vocabulary

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.compiler import compile_json_schema
from structgen.compiler.programs.special_tokens import SpecialTokens
from structgen.definitions import values
from structgen.definitions.styles import STYLES as TABLE
from structgen.errors import BudgetExceededError, DefinitionError, EmptyLanguageError, UnsupportedError

each_style = pytest.mark.parametrize("style", STYLES)

VOCABULARY = vocabulary()

#: Schemas of members.
MEMBERS: list[Any] = [
    {"type": "string"}, {"type": "string"}, {"enum": ["x", "y z", " ", ""]}, {"enum": ["x", 1, None, "1"]},
    {"const": "a</b"}, {"type": "string", "pattern": "^[a-z]+$"}, {"type": "string", "pattern": "b"},
    {"type": "string", "minLength": 1}, {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "string", "maxLength": 40}, {"type": "string", "format": "date"}, {"type": "integer"},
    {"type": "integer", "minimum": 3, "maximum": 120}, {"type": "number"}, {"type": "boolean"}, {"type": "null"},
    {"type": ["integer", "string"]}, {"type": ["null", "string"], "maxLength": 3}, {"not": {"const": "x"}}, {},
    {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^x"}, {"type": "boolean"}]},
    {"type": "array", "items": {"type": "string"}}, {"type": ["array", "boolean"], "items": {"type": "integer"}},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
    {"$ref": "#/$defs/tree"}, {"$ref": "#"}, {"type": "string", "not": {"enum": ["x", "12"]}},
]  # fmt: skip

#: Values of members, good for some of these.
VALUES: list[Any] = [
    "", "x", "y z", " ", "\n", " x", "12", "1", "null", "true ", "a</b", "</", "<b>x</b>", "line\nbreak", "ab", "abc",
    "é｜", "日本", "2024-02-29", "[1]", '"q"', "{}", "\\", "x" * 40, "</parameter", "</arg_value", "<|sep|>", "&amp;",
    0, 1, 12, 120, -7, 1.5, True, False, None, [], ["x", "</parameter>"], [1, 2], {}, {"a": "x"}, {"a": "x", "b": 1},
    {"b": 1}, {"child": {}}, {"child": {"child": {}}}, "</parameter>", "<|close|>argument<|sep|>", "</arg_value>",
    "</｜DSML｜parameter>", "</｜DSML｜ parameter>", "]<]minimax[>[", "]<]minimax",
]  # fmt: skip

TREE = {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}, "additionalProperties": False}


def random_schema(random: Random) -> dict[str, Any]:
    names = random.sample(["a", "b", "c d", "é", "par", "x1"], random.randint(0, 4))
    schema: dict[str, Any] = {"$defs": {"tree": TREE}, "type": "object"}
    schema["properties"] = {name: random.choice(MEMBERS) for name in names}
    schema["required"] = [name for name in names if random.random() < 0.4]
    schema["additionalProperties"] = random.choice((False, False, True, *MEMBERS))
    if random.random() < 0.2:
        schema["patternProperties"] = {"^x": random.choice(MEMBERS)}
    if random.random() < 0.2:
        # More would have to differ in their names, where others come, and no set of them is kept in tags.
        schema["minProperties"] = random.randint(0, 1 + len(schema["required"]))
    if random.random() < 0.2:
        schema["maxProperties"] = random.randint(1, 3)
    if random.random() < 0.2:
        schema["anyOf"] = [{"required": [each]} for each in ("a", "b")]
    return schema


def judge(schema: Any, style: str = "") -> Callable[[Any], bool]:
    """Whether a value is valid, and has declared members alone, if a style can write no others; formats count."""
    schema = closed(schema) if style == "minimax_m3_xml" else schema
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return lambda value: bool(validator.is_valid(value))


def closed(schema: Any) -> Any:
    """A schema whose objects have declared members alone."""
    if not isinstance(schema, dict):
        return closed({}) if schema else schema
    if "$ref" in schema:
        return schema
    known = {name: schema.get(name, {}) for name in ("properties", "patternProperties", "$defs")}
    within = {name: {each: closed(inner) for each, inner in found.items()} for name, found in known.items()}
    within["$defs"]["any"] = {"propertyNames": False, "items": {"$ref": "#/$defs/any"}}
    items = closed(schema["items"]) if "items" in schema else {"$ref": "#/$defs/any"}
    return {**schema, **within, "items": items, "propertyNames": {"enum": [*known["properties"]]}}


def random_object(schema: dict[str, Any], random: Random) -> dict[str, Any]:
    """An object that may be valid, its members in the schema's order."""
    names = [name for name in schema["properties"] if random.random() < 0.8]
    names += random.sample(["x2", "other", "y-z"], random.choice((0, 0, 0, 1, 2)))
    return {name: _value(schema, name, random) for name in names}


def _value(schema: dict[str, Any], name: str, random: Random) -> Any:
    member = schema["properties"].get(name, schema["additionalProperties"])
    if member == {"$ref": "#"}:
        member = {"type": "object"}
    good = list(filter(judge({"$defs": schema["$defs"], **(member if isinstance(member, dict) else {})}), VALUES))
    return random.choice(good or VALUES) if random.random() < 0.85 else random.choice(VALUES)


def program_of(schema: Any, style: str, special: dict[str, int] | None = None, **options: Any) -> oracle.Readable:
    definition = sg.JsonSchema(schema, style=style, **options)
    meter, tokens = Meter(Budget()), SpecialTokens(special or {})
    return oracle.readable(compile_json_schema(definition, meter, tokens, keeps_sets=True)[0])


def accepts(schema: Any, text: str, style: str = "qwen_xml", **options: Any) -> bool:
    return oracle.accepts(program_of(schema, style, **options), text.encode())


def test_the_table_and_the_option_name_the_same_styles() -> None:
    assert ["json", *TABLE] == list(values.STYLES)
    assert TABLE.keys() == STYLES.keys()


@each_style
def test_random_objects(style: str) -> None:
    random, seen = Random(style), {True: 0, False: 0}
    for _ in range(60):
        schema = random_schema(random)
        is_valid = judge(schema, style)
        try:
            program = program_of(schema, style)
        except EmptyLanguageError:
            program = None
        for _ in range(12):
            value = random_object(schema, random)
            text = render(value, style, random)
            expected = any(map(is_valid, readings(text, style)))
            seen[expected] += 1
            accepted = program is not None and oracle.accepts(program, text.encode())
            assert accepted == expected, (schema, text, list(readings(text, style)))
    assert min(seen.values()) > 100


MASKED = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": ["integer", "null", "string"], "minLength": 1, "maxLength": 30},
        "c": {"type": "array", "items": {"type": "string"}},
        "d": {"enum": ["x", "y z", 1]},
    },
    "required": ["a"],
    "additionalProperties": {"type": "boolean"},
}
OBJECTS: list[dict[str, Any]] = [
    {"a": "x<b></par\n", "b": 12, "c": ["x", "</"], "d": "y z"},
    {"a": "", "b": " x", "other": True},
    {"a": "é<", "d": 1},
]


@pytest.mark.nightly
@each_style
@pytest.mark.parametrize("order", ["schema", "any"])
def test_special_tokens_stand_for_their_names_in_tags_alone(style: str, order: str) -> None:
    random, seen, special = Random(style + order), {True: 0, False: 0}, SPECIAL[style]
    names = dict(zip(special, range(1000, 1000 + len(special)), strict=True))
    for _ in range(60):
        schema = random_schema(random)
        if order == "schema" and {"$ref": "#"} in schema["properties"].values():  # the values of which have an order
            continue
        is_valid = judge(schema, style)
        try:
            program = program_of(schema, style, names, property_order=order)
        except EmptyLanguageError:
            continue
        assert oracle.dead_states(program) == []
        for _ in range(8):
            value = random_object(schema, random)
            if order == "any":
                value = dict(random.sample(list(value.items()), len(value)))
            text = marked(render(value, style, random), special, random)
            expected = any(map(is_valid, readings(text, style, special)))
            seen[expected] += 1
            assert accepts_symbols(program, symbols(text, special, 1000)) == expected, (schema, text)
    assert min(seen.values()) > 100


def accepts_symbols(program: oracle.Readable, text: list[bytes | int]) -> bool:
    """Whether bytes and whole tokens are a text of a program."""
    stacks = oracle.start(program)
    for each in text:
        if isinstance(each, int):
            stacks = oracle.token_edge_step(program, stacks, each)
        else:
            stacks = oracle.follow(program, {b"": stacks}, each)
    return oracle.is_complete(program, stacks)


@pytest.mark.nightly
@each_style
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("options", [{}, {"property_order": "any"}])
def test_masks_are_what_the_program_lets_through(
    style: str, special: bool, options: dict[str, Any], tmp_path: Path
) -> None:
    names = SPECIAL[style] if special else ()
    vocabulary_, random = vocabulary(names), Random(style)
    program = program_of(MASKED, style, vocabulary_.special_tokens, **options)
    definition = sg.JsonSchema(MASKED, style=style, **options)
    lazy = sg.compile(definition, vocabulary_, eager=False, cache=sg.Cache(tmp_path))
    eager = sg.compile(definition, vocabulary_, eager=True, cache=None)
    eager.save(tmp_path / "index.sgx")
    loaded = sg.Index.load(tmp_path / "index.sgx", vocabulary_)
    first = vocabulary_.size - 1 - len(names)
    for each in OBJECTS:
        value = {name: each[name] for name in each if name in MASKED["properties"] or style != "minimax_m3_xml"}
        text = marked(render(value, style, random), names, random)
        while not any(readings(text, style, names)):  # a mark in a value
            text = marked(render(value, style, random), names, random)
        spelled: list[int] = []
        speller = Speller(VOCABULARY)
        for is_token, group in itertools.groupby(symbols(text, names, first), lambda each: isinstance(each, int)):
            pieces = list(group)
            spelled += [each for each in pieces if isinstance(each, int)]
            if not is_token:
                spelled += speller.spell(b"".join(each for each in pieces if isinstance(each, bytes)), random)
        stacks = oracle.start(program)
        for guide, token in zip(guides_along(lazy, spelled), [*spelled, -1], strict=True):
            after = {each: oracle.token_step(program, stacks, each, vocabulary_) for each in range(vocabulary_.size)}
            expected = np.zeros(vocabulary_.size, np.bool_)
            expected[[each for each, found in after.items() if found]] = True
            expected[vocabulary_.eos_ids[0]] = oracle.is_complete(program, stacks)
            assert (mask_of(guide) == expected).all()
            stacks = after.get(token, set())
        assert guide.is_accepting()
        assert masks(lazy, spelled) == masks(eager, spelled) == masks(loaded, spelled)
    cached = sg.compile(definition, vocabulary_, eager=False, cache=sg.Cache(tmp_path))
    assert masks(cached, spelled) == masks(eager, spelled)


@each_style
def test_every_state_can_finish(style: str) -> None:
    assert oracle.dead_states(program_of(MASKED, style)) == []


def takes(index: sg.Index, text: list[bytes | int]) -> bool:
    """Whether bytes and whole tokens are a text of an index, byte by byte."""
    guide = sg.Guide(index)
    ids = (each for piece in text for each in ([piece] if isinstance(piece, int) else piece))
    return all(map(guide.advance, ids)) and guide.is_accepting()


class TestSpecialTokens:
    """More of those that tags may hold: with registers, with counts, in structural tags, in the cache."""

    @pytest.mark.nightly
    @each_style
    @pytest.mark.parametrize("others", [False, {"type": "integer"}])
    def test_members_in_any_order(self, style: str, others: Any) -> None:
        random, special = Random(style), SPECIAL[style]
        names = [f"p{i}" for i in range(8)]
        schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
        schema |= {"required": names[:2], "additionalProperties": others}
        vocabulary_ = vocabulary(special)
        index = sg.compile(sg.JsonSchema(schema, style=style, property_order="any"), vocabulary_, cache=None)
        program = program_of(schema, style, vocabulary_.special_tokens, property_order="any")
        is_valid, seen = judge(schema, style), {True: 0, False: 0}
        for _ in range(30):
            chosen = random.sample(names, random.randint(5, 8))
            value = {name: random.randint(0, 99) for name in [*chosen, *random.choice(((), (), ("other",)))]}
            text, expected = render(value, style, random), is_valid(value)
            if random.random() < 0.3:
                again = random.choice(list(value))
                text += render({again: value[again]}, style, random).strip()
                expected = expected and again == "other"
            first = min(vocabulary_.special_tokens.values())
            spelled = symbols(marked(text, special, random), special, first)
            assert accepts_symbols(program, spelled) == expected, text
            assert takes(index, spelled) == expected, text
            seen[expected] += 1
        assert min(seen.values()) > 4

    @pytest.mark.parametrize("bounds", [{"minItems": 40, "maxItems": 50}, {"minItems": 40}, {"maxItems": 50}])
    def test_items_that_are_counted(self, bounds: dict[str, int]) -> None:
        random, special = Random(1), SPECIAL["cohere_xml"]
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "null"}, **bounds}}}
        vocabulary_ = vocabulary(special)
        index = sg.compile(sg.JsonSchema(schema, style="cohere_xml"), vocabulary_, cache=None)
        for size in (0, 1, 2, 39, 40, 41, 49, 50, 51):
            value = {"a": [None] * size}
            text = marked(render(value, "cohere_xml", random), special, random)
            spelled = symbols(text, special, min(vocabulary_.special_tokens.values()))
            assert takes(index, spelled) == judge(schema)(value), size

    def test_within_structural_tags(self) -> None:
        special = ("<|open|>", "<|close|>", "<|sep|>")
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        content = {"type": "json_schema", "json_schema": schema, "style": "kimi_k3_xml"}
        tag = {"type": "tag", "begin": "<|open|>call<|sep|>", "content": content, "end": "<|close|>call<|sep|>"}
        vocabulary_ = vocabulary(special)
        first = vocabulary_.special_tokens["<|open|>"]
        text = '<|open|>call<|sep|><|open|>argument key="a" type="string"<|sep|>x<|close|>argument<|sep|>'
        text += "<|close|>call<|sep|>"
        indexes = [sg.compile(sg.StructuralTag(tag), vocabulary_, eager=eager, cache=None) for eager in (True, False)]
        random = Random(3)
        for _ in range(20):
            spelled = symbols(marked(text, special, random), special, first)
            ids = [each for piece in spelled for each in ([piece] if isinstance(piece, int) else piece)]
            assert masks(indexes[0], ids) == masks(indexes[1], ids)
            assert takes(indexes[1], spelled)

    def test_the_cache_tells_vocabularies_apart_by_them(self, tmp_path: Path) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        content = {"type": "json_schema", "json_schema": schema, "style": "glm_xml"}
        named, unnamed = vocabulary(("<arg_key>",)), vocabulary(("<other>",))
        assert named.fingerprint == unnamed.fingerprint
        token, cache = named.special_tokens["<arg_key>"], sg.Cache(tmp_path)
        for definition in (sg.JsonSchema(schema, style="glm_xml"), sg.StructuralTag(content)):
            for each in (named, unnamed, named):
                index = sg.compile(definition, each, cache=cache)
                assert sg.Guide(index).allows(token) == (each is named)
        plain = sg.compile(sg.JsonSchema(schema), named, cache=cache)
        assert sg.compile(sg.JsonSchema(schema), unnamed, cache=cache).origin == "cache" != plain.origin

    def test_grammars_take_bytes(self) -> None:
        schema = sg.JsonSchema({"type": "object", "required": ["a"]}, style="glm_xml")
        grammar = sg.Grammar("start: ARGS", definitions={"ARGS": schema})
        named = vocabulary(("<arg_key>",))
        guide = sg.Guide(sg.compile(grammar, named, cache=None))
        assert not guide.allows(named.special_tokens["<arg_key>"])
        assert guide.allows(ord("<"))


GAPS = ["", "\n", " ", "\n \n", "\t" * 20, " " * 21, " " * 100]


class TestText:
    def test_an_object_without_members_is_the_empty_text(self) -> None:
        program = program_of({"type": "object", "properties": {"a": {"type": "string"}}}, "qwen_xml")
        assert program.returns[program.start]
        assert oracle.accepts(program, b"")
        index = sg.compile(sg.JsonSchema({"type": "object"}, style="qwen_xml"), VOCABULARY, cache=None)
        assert sg.Guide(index).is_accepting()
        required = program_of({"type": "object", "required": ["a"]}, "qwen_xml")
        assert not required.returns[required.start]

    def test_the_first_closing_tag_ends_a_value(self) -> None:
        schema = {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}
        assert accepts(schema, "<parameter=a></b></parameter>")
        assert not accepts(schema, "<parameter=a></parameter></parameter>")
        assert not accepts(schema, '<parameter=a>["</parameter>"]</parameter>')
        nested = {"type": "object", "properties": {"a": {"type": "array"}}, "additionalProperties": False}
        assert accepts(nested, '<parameter=a>["</b>"]</parameter>')
        assert not accepts(nested, '<parameter=a>["</parameter>"]</parameter>')

    def test_values_that_tags_cannot_hold_are_left_out(self) -> None:
        schema = {"type": "object", "required": ["a"], "properties": {"a": {"enum": ["</parameter>", "x"]}}}
        assert accepts(schema, "<parameter=a>x</parameter>")
        with pytest.raises(EmptyLanguageError, match="can be written"):
            program_of({**schema, "properties": {"a": {"const": "</parameter>"}}}, "qwen_xml")
        with pytest.raises(EmptyLanguageError, match="can be written"):
            program_of({"type": "integer"}, "qwen_xml")

    @pytest.mark.parametrize(
        ("style", "name"), [("qwen_xml", "a>b"), ("minimax_xml", 'a"b'), ("deepseek_xml", '"'), ("glm_xml", "<a")]
    )
    def test_names_that_tags_cannot_hold_are_refused(self, style: str, name: str) -> None:
        with pytest.raises(UnsupportedError, match="cannot be written"):
            program_of({"type": "object", "properties": {name: {}}}, style)

    def test_minimax_m3_has_no_whitespace_around_scalars(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": ["integer", "array"], "items": {"type": "null"}}}}
        item = "]<]minimax[>[<item>null]<]minimax[>[</item>"
        for text, expected in (("1", True), (" 1", False), ("1\n", False), (f" {item}\n", True), ("", True)):
            assert accepts(schema, f"]<]minimax[>[<a>{text}]<]minimax[>[</a>", "minimax_m3_xml") == expected, text

    @pytest.mark.parametrize("name", ["", "/a", "a>b", "]<]minimax[>["])
    def test_names_that_minimax_m3_cannot_write(self, name: str) -> None:
        inner = {"type": "object", "properties": {name: {}}, "required": [name]}
        with pytest.raises((UnsupportedError, EmptyLanguageError)):
            program_of({"type": "object", "properties": {"x": inner}, "required": ["x"]}, "minimax_m3_xml")

    def test_kimi_writes_entities_in_names(self) -> None:
        schema = {"type": "object", "properties": {'"&<': {"type": "null"}}, "required": ['"&<']}
        text = '<|open|>argument key="&quot;&amp;<" type="null"<|sep|>null<|close|>argument<|sep|>'
        assert accepts(schema, text, "kimi_k3_xml")

    @pytest.mark.parametrize(
        ("options", "gaps"),
        [
            ({"whitespace": "compact"}, [""]),
            ({}, ["", "\n", " "]),
            ({"whitespace": "any"}, ["", "\n", " ", "\n \n", "\t" * 20]),
            ({"whitespace": r"\n"}, ["\n"]),
            ({"whitespace": "any", "max_whitespace": None}, GAPS),
        ],
    )
    def test_whitespace(self, options: dict[str, Any], gaps: list[str]) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "additionalProperties": False}
        program = program_of(schema, "qwen_xml", **options)
        for gap in GAPS:
            text = f"{gap}<parameter=a>{gap}1{gap}</parameter>{gap}<parameter=b>{gap}x</parameter>{gap}"
            assert oracle.accepts(program, text.encode()) == (gap in gaps), gap

    @pytest.mark.parametrize("style", ["qwen_xml", "cohere_xml"])
    @pytest.mark.parametrize("size", [3, 8, 20])
    @pytest.mark.parametrize("others", [False, {"type": "integer"}])
    def test_members_in_any_order(self, style: str, size: int, others: Any) -> None:
        random = Random(f"{style} {size}")
        names = [f"p{i}" for i in range(size)]
        schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
        schema |= {"required": random.sample(names, size // 3), "additionalProperties": others}
        schema["minProperties"] = 2
        index = sg.compile(sg.JsonSchema(schema, style=style, property_order="any"), VOCABULARY, cache=None)
        is_valid, seen = judge(schema, style), {True: 0, False: 0}
        assert oracle.dead_states(program_of(schema, style, property_order="any")) == []
        for _ in range(40):
            chosen = random.sample(names, random.choice((size, size, size // 2, 1)))
            value = {name: random.randint(0, 99) for name in [*chosen, *random.choice(((), (), ("other",)))]}
            text, expected = render(value, style, random), is_valid(value)
            if random.random() < 0.3:
                again = random.choice(list(value))
                text += render({again: value[again]}, style, random).strip()
                expected = expected and again == "other"
            assert index.match(text.encode()).accepted == expected, text
            seen[expected] += 1
        assert min(seen.values()) > 4

    def test_too_many_sets_of_members_are_refused(self) -> None:
        schema = {"type": "object", "properties": {f"p{i}": {} for i in range(20)}, "maxProperties": 12}
        with pytest.raises(UnsupportedError, match="too many sets"):
            program_of(schema, "qwen_xml", property_order="any")

    def test_roots_with_several_shapes(self) -> None:
        shapes = [{"properties": {name: {"type": "string"}}, "required": [name]} for name in ("a", "b")]
        schema = {"anyOf": [{"type": "object", "additionalProperties": False, **shape} for shape in shapes]}
        for text, accepted in (("<parameter=a>1", True), ("<parameter=b>1", True), ("<parameter=c>1", False)):
            assert accepts(schema, text + "</parameter>") == accepted
        assert not accepts(schema, "")
        assert accepts({"anyOf": [*schema["anyOf"], {"type": "object", "maxProperties": 0}]}, "")


#: Members that XGrammar takes as JSON Schema does. (It anchors patterns at both ends, and ignores `not`.)
SIMPLE: list[Any] = [
    {"type": "string"}, {"enum": ["x", "y z"]}, {"enum": ["x", 1, None]}, {"type": "string", "pattern": "^[a-z]+$"},
    {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {"type": ["integer", "string"]},
    {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^x$"}, {"type": "boolean"}]},
    {"type": "array", "items": {"type": "string"}}, {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"],
     "additionalProperties": False},
]  # fmt: skip


def changed(text: str, random: Random) -> str:
    """A text with a character more, or a piece less."""
    begin, end = sorted(random.choices(range(len(text) + 1), k=2))
    if random.random() < 0.5:
        return text[:begin] + text[min(end, begin + random.randint(1, 3)) :]
    return text[:begin] + random.choice(' \n<>x"1') + text[begin:]


@each_style
def test_xgrammar_takes_the_same_texts(style: str) -> None:
    """But for the differences that docs/guide/structural_tags.md explains."""
    xgrammar = pytest.importorskip("xgrammar")
    tokens = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
    simple = [each for each in SIMPLE if style != "minimax_m3_xml" or not re.search("pattern|Length", str(each))]
    compiler, random, alike = xgrammar.GrammarCompiler(info), Random(style), {True: 0, False: 0}
    for _ in range(12):
        names = random.sample(["a", "b", "c", "par"], random.randint(0, 4))
        schema: dict[str, Any] = {"$defs": {}, "type": "object", "additionalProperties": False}
        schema["properties"] = {name: random.choice(simple) for name in names}
        schema["required"] = [name for name in names if random.random() < 0.4]
        form = {"type": "json_schema", "json_schema": schema, "style": style}
        theirs = compiler.compile_structural_tag({"type": "structural_tag", "format": form})
        ours = program_of(schema, style, whitespace="any", max_whitespace=None)
        for _ in range(10):
            value = {name: _value(schema, name, random) for name in names if random.random() < 0.8}
            text = render(value, style, random)
            text = changed(text, random) if random.random() < 0.5 else text
            text = re.sub(r"(</cofl:value>)[ \n]+(<cofl:value type)", r"\1\2", text)
            if style == "minimax_m3_xml":
                text = re.sub(r"(>|^)\s+(]<]minimax\[>\[</|$)", r"\1\2", text)
            matcher = xgrammar.GrammarMatcher(theirs, terminate_without_stop_token=True)
            taken = matcher.accept_string(text) and matcher.is_completed()
            if taken == oracle.accepts(ours, text.encode()):
                alike[taken] += 1
            else:
                assert taken, (schema, text)
                assert not any(map(judge(schema), readings(text, style))), (schema, text)
    assert min(alike.values()) > 30
    assert sum(alike.values()) > 100


EXCLUDING: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"enum": ["x|y", "z"]}, "c": {"type": "array"}},
    "additionalProperties": {"type": "string", "maxLength": 40},
}


class TestExcludes:
    @pytest.mark.parametrize("style", ["json", *(style for style in STYLES if style != "minimax_m3_xml")])
    def test_no_string_and_no_name_holds_them(self, style: str) -> None:
        excludes = ("|", "<b>", "ab", "</")
        program, free = program_of(EXCLUDING, style, excludes=excludes), program_of(EXCLUDING, style)
        random = Random(style)
        texts = ["x", "a", "ab", "a<b", "a<b>", "x|", "<", "</", "</b", "aab", "é|", "b>"]
        for _ in range(150):
            value: dict[str, Any] = {"a": random.choice(texts), "b": random.choice(["x|y", "z"])}
            value["c"] = [random.choice(texts), {random.choice(["x", "ab", "a"]): random.choice(texts)}]
            value[random.choice(["x", "xab", "x|"])] = random.choice(texts)
            text = json.dumps(value, ensure_ascii=False) if style == "json" else render(value, style, random)
            assert oracle.accepts(free, text.encode())
            expected = not any(each in str(value) for each in excludes)
            assert oracle.accepts(program, text.encode()) == expected, text

    def test_they_may_begin_the_closing_tag(self) -> None:
        program = program_of({"type": "object", "required": ["a"]}, "kimi_k3_xml", excludes=["<|close|>", "<|sep|>"])
        begin, end = '<|open|>argument key="a" type="string"<|sep|>', "<|close|>argument<|sep|>"
        for text, expected in (("x", True), ("<|clos", True), ("<|close|>", False), ("<|sep|>", False), ("<|", True)):
            assert oracle.accepts(program, f"{begin}{text}{end}".encode()) == expected, text

    def test_a_schema_that_asks_for_them_is_refused(self) -> None:
        with pytest.raises(EmptyLanguageError, match="can be written"):
            program_of({"const": "a|b"}, "json", excludes=["|"])

    def test_many(self) -> None:
        excludes = [f"<word{i}>" for i in range(2_000)]
        program = program_of({"type": "string"}, "json", excludes=excludes)
        assert oracle.accepts(program, b'"<word2000>"')
        assert not oracle.accepts(program, b'"<word1999>"')
        with pytest.raises(BudgetExceededError):
            program_of({"type": "string"}, "json", excludes=["x" * 10_000_000])

    @pytest.mark.parametrize("excludes", ["<", [""], [1], None, 3])
    def test_what_are_no_texts_is_refused(self, excludes: Any) -> None:
        with pytest.raises(DefinitionError, match="excludes is"):
            sg.JsonSchema({}, excludes=excludes)


class TestOption:
    def test_json_is_named_as_before(self) -> None:
        named = '["json_schema",[" ?",null,"schema","minimal",true,false],{}]'
        assert sg.JsonSchema({}, style="json").canonical() == named
        assert len({sg.JsonSchema({}, style=style).canonical() for style in values.STYLES}) == len(values.STYLES)

    def test_what_is_no_style_is_refused(self) -> None:
        with pytest.raises(DefinitionError, match="style is 'xml'"):
            sg.JsonSchema({}, style="xml")
        with pytest.raises(DefinitionError, match="no indentation"):
            sg.JsonSchema({}, style="qwen_xml", whitespace=2)
