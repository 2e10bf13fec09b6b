"""`StructuralTag` as a value: what it takes, its options, its place in files, manifests and the cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judges.guides import BYTES, EACH_BYTE

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.compiler import compile_json_schema
from structgen.compiler.programs.special_tokens import SpecialTokens
from structgen.compiler.structural_tags.linker import whole_program
from structgen.definitions.loading import load_definitions
from structgen.definitions.styles import STYLES as TAG_STYLES
from structgen.errors import DefinitionError
from structgen.index_store import cache_key

FORMAT = {"type": "tag", "begin": "<a>", "content": {"type": "json_schema", "json_schema": {}}, "end": "</a>"}
TEXT = json.dumps(FORMAT)


def accepts(definition: sg.StructuralTag, text: str) -> bool:
    return sg.compile(definition, BYTES, eager=False, base_rows=False).match(text.encode()).accepted


class TestSource:
    @pytest.mark.parametrize(
        "source",
        [
            FORMAT,
            TEXT,
            {"type": "structural_tag", "format": FORMAT},
            {"format": FORMAT},  # as XGrammar takes it
            json.dumps({"type": "structural_tag", "format": FORMAT}, indent=1),
        ],
        ids=["dict", "text", "response format", "response format without a type", "response format as text"],
    )
    def test_the_same_in_every_form(self, source: Any) -> None:
        assert sg.StructuralTag(source) == sg.StructuralTag(FORMAT)
        assert sg.StructuralTag(source).canonical() == sg.StructuralTag(FORMAT).canonical()

    @pytest.mark.parametrize("of", [list, tuple])
    def test_lists_and_tuples_mean_the_same(self, of: Any) -> None:
        tags = of({"type": "tag", "begin": f"<{name}>", "content": {"type": "const_string", "value": "1"},
                   "end": of(["!", "?"])} for name in "ab")  # fmt: skip
        definition = sg.StructuralTag({"type": "triggered_tags", "triggers": of(["<a", "<b"]), "tags": tags})
        assert definition.canonical() == sg.StructuralTag(definition.text).canonical()
        assert accepts(definition, "x <a>1! <b>1?")
        assert not accepts(definition, "x <a>1.")

    def test_structures_and_triggers(self) -> None:
        older = {"structures": [{"begin": "<f>", "schema": {"enum": [1]}, "end": "</f>"}], "triggers": ["<f"]}
        for source in (older, {"type": "structural_tag", **older}, json.dumps(older)):
            definition = sg.StructuralTag(source)
            assert accepts(definition, "a <f>1</f> b <f>1</f>")
            assert not accepts(definition, "a <f>2</f>")
            assert not accepts(definition, "a <f")

    @pytest.mark.parametrize(
        ("source", "says"),
        [
            (None, "is an object"),
            ([FORMAT], "is an object"),
            ("[]", "is an object"),
            ("{", "not JSON"),
            ({"structures": 1}, "no list"),
            ({"structures": [{"begin": "a"}], "triggers": ["a"]}, "a begin, a schema and an end"),
        ],
        ids=repr,
    )
    def test_what_is_none(self, source: Any, says: str) -> None:
        with pytest.raises(DefinitionError, match=says):
            sg.StructuralTag(source)


class TestOptions:
    def test_they_are_the_schemas(self) -> None:
        assert accepts(sg.StructuralTag(FORMAT), '<a>{"b": [1, 2]}</a>')
        assert not accepts(sg.StructuralTag(FORMAT, whitespace="compact"), '<a>{"b": [1, 2]}</a>')
        assert accepts(sg.StructuralTag(FORMAT, whitespace="compact"), '<a>{"b":[1,2]}</a>')

    def test_what_a_format_says_comes_first(self) -> None:
        content = {"type": "json_schema", "json_schema": {}, "options": {"whitespace": "compact"}}
        definition = sg.StructuralTag({**FORMAT, "content": content}, whitespace="single")
        assert accepts(definition, "<a>[1,2]</a>")
        assert not accepts(definition, "<a>[1, 2]</a>")

    def test_without_meaning(self) -> None:
        with pytest.raises(DefinitionError, match="property_order"):
            sg.StructuralTag(FORMAT, property_order="none such")
        content = {"type": "json_schema", "json_schema": {}, "options": {"colour": "red"}}
        definition = sg.StructuralTag({**FORMAT, "content": content})
        with pytest.raises(DefinitionError, match=r"options .* are not known \(/content\)"):
            accepts(definition, "")

    def test_canonical(self) -> None:
        one, other = sg.StructuralTag(FORMAT), sg.StructuralTag(FORMAT, whitespace="any")
        assert one != other
        assert one.canonical() != other.canonical()
        assert json.loads(one.canonical())[2] == FORMAT


class TestFiles:
    def test_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "call.tag.json").write_text(TEXT)
        (tmp_path / "call.json").write_text("{}")
        named = load_definitions([tmp_path])
        assert [each.name for each in named] == ["call", "call"]
        assert [each.definition.kind for each in named] == ["json_schema", "structural_tag"]
        assert named[1].definition == sg.StructuralTag(FORMAT)

    def test_a_manifest(self, tmp_path: Path) -> None:
        (tmp_path / "call.tag.json").write_text(TEXT)
        manifest = tmp_path / "all.toml"
        manifest.write_text(
            f"""
            [definitions.text]
            structural_tag = '{TEXT}'
            [definitions.file]
            file = "call.tag.json"
            whitespace = "any"
            [definitions.table.structural_tag]
            type = "any_text"
            """
        )
        found = {each.name: each.definition for each in load_definitions([manifest])}
        assert found == {
            "text": sg.StructuralTag(FORMAT),
            "file": sg.StructuralTag(FORMAT, whitespace="any"),
            "table": sg.StructuralTag({"type": "any_text"}),
        }

    def test_what_is_wrong_is_named_with_its_place(self, tmp_path: Path) -> None:
        file, manifest = tmp_path / "call.tag.json", tmp_path / "all.toml"
        file.write_text("[]")
        with pytest.raises(DefinitionError, match=r"call\.tag\.json"):
            load_definitions([file])
        manifest.write_text("[definitions.a]\nstructural_tag = 1")
        with pytest.raises(DefinitionError, match=r"neither a string of JSON nor a table.*all\.toml:1"):
            load_definitions([manifest])


def test_the_key_in_the_cache_has_the_special_tokens_that_are_named() -> None:
    def key(format_: object, **special: int) -> str:
        names = {f"<|{name}|>": token for name, token in special.items()}
        vocabulary = sg.Vocabulary.from_bytes([*EACH_BYTE, None, None, None], [258], special_tokens=names)
        return cache_key(sg.StructuralTag(format_), vocabulary)

    named = {"type": "const_string", "value": "a<|é|>"}
    assert key(named, é=256) != key(named)
    assert key(named, é=256) != key(named, é=257)
    assert key(named, é=256) == key(named, é=256, b=257)
    assert key({"type": "any_text"}, é=256) == key({"type": "any_text"})


#: Objects with members, and names of tokens: some stand in tags, or in Gemma's notation of pieces of the schema.
CITY: Any = {"type": "object", "properties": {"city": {"enum": ["x", "<b>"]}, "any": {"type": "object"}}}
NAMES = [
    "<parameter=", "parameter", "<arg_key>", "</arg_value>", "]<]minimax[>[", "｜DSML｜", "<cofl:value", "<|open|>",
    "<|sep|>", "<|close|>", "<b>", "a", "<|im_start|>", "<bos>", '<|"|>', "city:", "{city", 'city:<|"|>',
    '<|"|>x<|"|>', "null", "nu", ":null", "{", ",any:", "null}", "true", "x", "</parameter>",
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("style", [*TAG_STYLES, "gemma"])
def test_the_key_has_the_names_that_texts_depend_on(style: str) -> None:
    """Whatever makes another program makes another key, and names that stand nowhere do not."""
    tag = sg.StructuralTag({"type": "json_schema", "json_schema": CITY, "style": style})
    definitions: list[sg.StructuralTag | sg.JsonSchema] = [tag]
    definitions += [] if style == "gemma" else [sg.JsonSchema(CITY, style=style)]
    seen = set()
    for definition in definitions:
        plain = sg.Vocabulary.from_bytes([*EACH_BYTE, None, None], [256])
        for name in NAMES:
            named = sg.Vocabulary.from_bytes([*EACH_BYTE, None, None], [256], special_tokens={name: 257})
            assert named.fingerprint == plain.fingerprint
            if isinstance(definition, sg.StructuralTag):
                program, _ = whole_program(definition, named, Meter(Budget()))
            else:
                program, _ = compile_json_schema(definition, Meter(Budget()), SpecialTokens(named.special_tokens))
            same_key = cache_key(definition, named) == cache_key(definition, plain)
            assert not (program.token_edges and same_key), name
            assert same_key or name not in ("<|im_start|>", "<bos>")
            seen.add(bool(program.token_edges))
    assert seen == {True, False}
