"""Definition files: what each kind means, and that every mistake is named with its file and line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import structgen as sg
from structgen.definitions import Definition, Ebnf, JsonSchema, Regex
from structgen.definitions.loading import load_definitions, read_definitions
from structgen.definitions.tool_request import ToolRequest
from structgen.errors import BudgetExceededError, DefinitionError, StructgenError


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def pattern(path: Path) -> str:
    (named,) = load_definitions([path])
    assert isinstance(named.definition, Regex)
    return named.definition.pattern


class TestRegexFile:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("a+", "a+"),
            ("a+\n", "a+"),
            ("a+\r\n", "a+"),
            ("a+\n\n", "a+\n"),
            ("a b \n", "a b "),
            ("#not a comment\n", "#not a comment"),
            ("é+\n", "é+"),
            (b"\xef\xbb\xbfa\n", "a"),
            ("", ""),
        ],
    )
    def test_is_one_pattern_less_one_line_break(self, tmp_path: Path, content: str | bytes, expected: str) -> None:
        assert pattern(write(tmp_path, "x.regex", content)) == expected

    def test_is_named_by_its_file(self, tmp_path: Path) -> None:
        path = write(tmp_path, "iso.date.regex", "a")
        (named,) = load_definitions([path])
        assert (named.name, named.path, named.line) == ("iso.date", path, 1)


class TestWordsFile:
    def test_comments_and_blank_lines_are_skipped(self, tmp_path: Path) -> None:
        path = write(tmp_path, "x.words", "# units\n\n kg \r\nm/s\n   \n#s\na b\n")
        choice = re.compile(pattern(path))
        assert [w for w in ["kg", "m/s", "a b", "#s", "s", "", "kgm/s", " kg "] if choice.fullmatch(w)] == [
            "kg",
            "m/s",
            "a b",
        ]

    def test_words_are_literal(self, tmp_path: Path) -> None:
        choice = re.compile(pattern(write(tmp_path, "x.words", "a.b\nc+\n(\n")))
        assert choice.fullmatch("a.b")
        assert choice.fullmatch("(")
        assert not choice.fullmatch("axb")
        assert not choice.fullmatch("cc")

    def test_no_words_is_an_error(self, tmp_path: Path) -> None:
        path = write(tmp_path, "x.words", "# nothing\n")
        with pytest.raises(DefinitionError, match="no words") as caught:
            load_definitions([path])
        assert caught.value.where == str(path)


class TestManifest:
    def test_every_source(self, tmp_path: Path) -> None:
        write(tmp_path, "sub/uuid.regex", "[0-9a-f]{8}\n")
        path = write(
            tmp_path,
            "all.toml",
            """\
[definitions.hex]
regex = '[0-9a-f]+ # digits'
flags = "ix"

[definitions."yes no"]
words = ["yes", "no"]

[definitions]
id = { file = "sub/uuid.regex" }
""",
        )
        found = {named.name: named for named in load_definitions([path])}
        assert found["hex"].definition == Regex("[0-9a-f]+ # digits", re.IGNORECASE | re.VERBOSE)
        assert found["yes no"].definition == Regex.choice(["yes", "no"])
        assert found["id"].definition == Regex("[0-9a-f]{8}")
        assert {name: named.line for name, named in found.items()} == {"hex": 1, "yes no": 5, "id": 9}
        assert found["id"].path == path

    def test_dialects(self, tmp_path: Path) -> None:
        rules, pattern = 'root ::= root "a" | "b"\n', r"\u{e9}"
        write(tmp_path, "a.ebnf", rules)
        write(tmp_path, "b.regex", pattern)
        manifest = write(
            tmp_path,
            "c.toml",
            """\
[definitions]
rules = { file = "a.ebnf", dialect = "transformers-cfg" }
pattern = { regex = '\\u{e9}', dialect = "ecma", flags = "i" }
""",
        )
        found = [named.definition for named in load_definitions([tmp_path])]
        transformers = Ebnf(rules, dialect="transformers-cfg")
        written: list[Definition] = [Ebnf(rules), Regex(pattern), transformers, Regex(pattern, re.IGNORECASE, "ecma")]
        assert found == written
        found = [named.definition for named in load_definitions([tmp_path], "ecma")]
        written = [Ebnf(rules), Regex(pattern, dialect="ecma")]
        assert found[:2] == written
        [named] = load_definitions([tmp_path / "a.ebnf"], "transformers-cfg")
        assert named.definition == transformers
        with pytest.raises(DefinitionError, match="no dialect 'lark'"):
            load_definitions([manifest], "lark")

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ("regex = 'a'\nwords = ['a']", "exactly one"),
            ("", "exactly one"),
            ("regex = 3", "regex is not a string"),
            ("regex = 'a'\nflags = 'q'", "flags is 'q'"),
            ("regex = 'a'\nflags = 2", "flags is 2"),
            ("regex = 'a'\nmax_tokens = 2", "unknown key 'max_tokens'"),
            ("regex = 'a'\nlenient = true", "lenient is an option of JSON Schemas"),
            ("json_schema = 3", "json_schema is neither"),
            ("json_schema = '[1]'", "a schema is an object or a boolean, got list"),
            ("json_schema = true\nescapes = 'none'", "escapes is 'none'"),
            ("json_schema = true\nflags = 'i'", "unknown key 'flags'"),
            ("python = 'absent_module'", "not MODULE:NAME"),
            ("python = 'absent_module:Name'", "cannot import absent_module"),
            ("python = 'string:Absent'", "string has no Absent"),
            ("python = 'string:digits'", "cannot compile a str"),
            ("words = ['a']\nflags = 'i'", "unknown key 'flags'"),
            ("words = []", "words is not"),
            ("words = ['a']\ndialect = 'lark'", "there is no dialect 'lark'"),
            ("json_schema = true\ndialect = 'ecma'", "dialects of regexes and EBNF"),
            ("regex = 'a'\ndialect = 2", "there is no dialect 2"),
            ("regex = 'a'\nflags = 'x'\ndialect = 'ecma'", "no flag re.VERBOSE"),
            ("words = ['a', 1]", "words is not"),
            ("file = 'absent.regex'", "cannot read the file"),
            ("file = 'other.toml'", "another manifest"),
            ("file = 'notes.txt'", "suffix '.txt'"),
            ('file = "a\\u0000b.regex"', "cannot read the file"),
        ],
    )
    def test_mistakes_name_the_entry_and_its_line(self, tmp_path: Path, entry: str, message: str) -> None:
        write(tmp_path, "notes.txt", "")
        path = write(tmp_path, "m.toml", f"[definitions.good]\nregex = 'a'\n[definitions.bad]\n{entry}\n")
        reading = read_definitions([path])
        assert [named.name for named in reading.definitions] == ["good"]
        (failure,) = reading.failures
        assert message in failure.what
        assert "'bad'" in failure.what
        assert failure.where == f"{path}:3"

    @pytest.mark.parametrize(
        ("content", "message", "line"),
        [
            ("[definitions.a]\nregex = oops\n", "not valid TOML", ":2"),
            ("[definition.a]\nregex = 'a'\n", "defines nothing", ""),
            ("definitions = 3\n", "defines nothing", ""),
            ("[definitions]\na = 3\n", "expected a table", ":2"),
            (f"a = {'[' * 100_000}", "not valid TOML", None),
        ],
    )
    def test_malformed_files(self, tmp_path: Path, content: str, message: str, line: str | None) -> None:
        path = write(tmp_path, "m.toml", content)
        with pytest.raises(DefinitionError, match=message) as caught:
            load_definitions([path])
        assert caught.value.where.startswith(str(path))
        if line is not None:
            assert caught.value.where == f"{path}{line}"


class TestSchemas:
    def test_a_file_is_one_schema(self, tmp_path: Path) -> None:
        path = write(tmp_path, "point.json", b'\xef\xbb\xbf{\n  "type": "number",\n  "minimum": 0.10\n}\n')
        (named,) = load_definitions([path])
        assert named.definition == JsonSchema('{"type": "number", "minimum": 0.10}')
        assert (named.name, named.path, named.line) == ("point", path, 1)

    @pytest.mark.parametrize(
        ("content", "kind", "place"),
        [
            ('{"type":\n}', DefinitionError, ", line 2, column 1"),
            ("", DefinitionError, ", line 1, column 1"),
            ("[]", DefinitionError, ""),
            ('{"minimum": Infinity}', DefinitionError, ""),
            ('{"not": ' * 1_000_000, BudgetExceededError, ""),  # Python 3.14 parses what its stack takes
        ],
    )
    def test_mistakes_name_the_file(self, tmp_path: Path, content: str, kind: type[StructgenError], place: str) -> None:
        path = write(tmp_path, "odd.json", content)
        (failure,) = read_definitions([path]).failures
        assert type(failure) is kind
        assert failure.where == f"{path}{place}"

    def test_manifests_take_options(self, tmp_path: Path) -> None:
        write(tmp_path, "point.json", '{"type": "number"}')
        path = write(
            tmp_path,
            "all.toml",
            """\
[definitions]
file = { file = "point.json", whitespace = "any", max_whitespace = 3, escapes = "ascii" }
text = { json_schema = '{"type": "object"}', property_order = "any", additional_properties = false }

[definitions.table.json_schema]
type = "object"
required = ["a"]
""",
        )
        found = {named.name: named.definition for named in load_definitions([path])}
        assert found["file"] == JsonSchema({"type": "number"}, whitespace="any", max_whitespace=3, escapes="ascii")
        assert found["text"] == JsonSchema({"type": "object"}, property_order="any", additional_properties=False)
        assert found["table"] == JsonSchema({"type": "object", "required": ["a"]})


class TestTools:
    @pytest.mark.parametrize(
        ("content", "why"),
        [
            ("{}", "tools is not a list"),
            ('"x"', "tools is not a list"),
            ("[", "JSON"),
            ('{"tools": [], "parallel_tool_calls": true}', "no option 'parallel_tool_calls'"),
        ],
    )
    def test_mistakes_are_named(self, tmp_path: Path, content: str, why: str) -> None:
        path = write(tmp_path, "x.tools.json", content)
        with pytest.raises(DefinitionError, match=why) as found:
            load_definitions([path])
        assert found.value.where.startswith(str(path))

    def test_are_of_requests(self, tmp_path: Path) -> None:
        write(tmp_path, "calls.tools.json", '{"tools": [], "style": "hermes"}')
        manifest = (
            '[definitions]\na = { tools = "[]", parallel = false, max_items = 2 }\n'
            'b = { file = "calls.tools.json", reasoning = true }\nc = { tools = [{ type = "function" }] }\n'
        )
        write(tmp_path, "all.toml", manifest)
        found = {each.name: each.definition for each in load_definitions([tmp_path])}
        assert {name: each.request for name, each in found.items() if isinstance(each, ToolRequest)} == {
            "a": {"tools": [], "parallel": False, "max_items": 2},
            "b": {"tools": [], "style": "hermes", "reasoning": True},
            "c": {"tools": [{"type": "function"}]},
            "calls": {"tools": [], "style": "hermes"},
        }
        with pytest.raises(DefinitionError, match="warm --for ENGINE"):
            sg.compile(found["a"], sg.Vocabulary.bytewise())
        path = write(tmp_path, "wrong.toml", '[definitions.x]\nregex = "a"\nparallel = true\n')
        with pytest.raises(DefinitionError, match="parallel is an option of requests with tools"):
            load_definitions([path])


class TestObjects:
    @pytest.fixture(autouse=True)
    def module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.chdir(tmp_path)
        write(
            tmp_path,
            "shop/items.py",
            "from structgen import Regex\n"
            "class Item:\n    schema = {'type': 'object'}\n    code = Regex('[A-Z]{3}')\n"
            "name = 'a str'\n",
        )
        write(tmp_path, "shop/broken.py", "1 / 0\n")
        yield
        for name in [name for name in sys.modules if name.split(".")[0] == "shop"]:
            del sys.modules[name]

    def test_definitions_and_schemas_of_a_module(self, tmp_path: Path) -> None:
        schema, code = load_definitions(["shop.items:Item.schema", "shop.items:Item.code"])
        assert schema.definition == JsonSchema({"type": "object"})
        assert (schema.name, schema.line, schema.where) == ("Item.schema", 0, "shop.items:Item.schema")
        assert code.definition == Regex("[A-Z]{3}")
        assert str(tmp_path) not in sys.path

    def test_options_are_for_schemas(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "m.toml",
            "[definitions]\na = { python = 'shop.items:Item.schema', whitespace = 2 }\n"
            "b = { python = 'shop.items:Item.code', whitespace = 2 }\n",
        )
        reading = read_definitions([path])
        assert [named.definition for named in reading.definitions] == [JsonSchema({"type": "object"}, whitespace=2)]
        assert [failure.where for failure in reading.failures] == [f"{path}:3"]

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("shop.items:Absent", "shop.items has no Absent"),
            ("shop.items:name", "cannot compile a str"),
            ("shop.absent:name", "No module named"),
            ("shop.broken:name", "ZeroDivisionError"),
        ],
    )
    def test_mistakes_name_the_object(self, name: str, message: str) -> None:
        (failure,) = read_definitions([name]).failures
        assert message in failure.what
        assert failure.where == name

    def test_a_file_of_that_name_comes_first(self, tmp_path: Path) -> None:
        write(tmp_path, "shop:items", "")
        with pytest.raises(DefinitionError, match="suffix"):
            load_definitions(["shop:items"])


class TestFolders:
    def test_are_walked_in_order_without_hidden_files(self, tmp_path: Path) -> None:
        for name in ("b.regex", "a.regex", "sub/c.words", ".hidden.regex", ".git/d.regex", "README.md"):
            write(tmp_path, name, "x")
        reading = read_definitions([tmp_path])
        assert [named.name for named in reading.definitions] == ["a", "b", "c"]
        assert reading.ignored == (tmp_path / "README.md",)
        assert reading.failures == ()

    def test_a_failure_leaves_the_others(self, tmp_path: Path) -> None:
        write(tmp_path, "a.regex", "a")
        write(tmp_path, "b.regex", b"one\ntwo\nth\xffree")
        write(tmp_path, "c.regex", "c")
        reading = read_definitions([tmp_path, tmp_path / "absent.regex"])
        assert [named.name for named in reading.definitions] == ["a", "c"]
        assert [failure.where for failure in reading.failures] == [
            f"{tmp_path / 'b.regex'}:3",
            str(tmp_path / "absent.regex"),
        ]
        assert "0xff is not UTF-8" in reading.failures[0].what

    @pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
    @pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root reads every folder")
    def test_an_unreadable_folder_is_a_failure(self, tmp_path: Path) -> None:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0)
        try:
            (failure,) = read_definitions([tmp_path]).failures
        finally:
            locked.chmod(0o700)
        assert failure.where == str(locked)


class TestNamedDirectly:
    @pytest.mark.parametrize("name", ["README.md", "schema.yaml", "noext"])
    def test_an_unknown_suffix_is_an_error(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DefinitionError, match="suffix") as caught:
            load_definitions([write(tmp_path, name, "{}")])
        assert ".regex, .words, .json, .tag.json, .tools.json, .lark, .gbnf, .ebnf, .toml" in caught.value.remedy

    @pytest.mark.parametrize("name", ["absent", "absent.regex"])
    def test_a_missing_path_is_an_error(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DefinitionError, match="No such file"):
            load_definitions([str(tmp_path / name)])


def test_what_warm_reads_is_public(tmp_path: Path) -> None:
    (tmp_path / "colour.words").write_text("red\nblue\n")
    (tmp_path / "many.toml").write_text('[definitions.zip]\nregex = "[0-9]{5}"\n')
    loaded = sg.load_definitions([tmp_path])
    assert all(isinstance(each, sg.NamedDefinition) for each in loaded)
    assert [each.name for each in loaded] == ["colour", "zip"]
    cache = sg.Cache(tmp_path / "cache")
    report = sg.warm(loaded, sg.Vocabulary.bytewise(), cache=cache, executor=None)
    assert len(report.kept) == 2
    for each in loaded:
        sg.compile(each.definition, sg.Vocabulary.bytewise(), cache=cache, compile_missing=False)
