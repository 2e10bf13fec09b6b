"""Definition files: what each kind means, and that every mistake is named with its file and line."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from structgen.definitions import Regex
from structgen.errors import DefinitionError
from structgen.loading import load_definitions, read_definitions


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
    def test_is_one_pattern_less_one_line_break(
        self, tmp_path: Path, content: str | bytes, expected: str
    ) -> None:
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

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ("regex = 'a'\nwords = ['a']", "exactly one"),
            ("", "exactly one"),
            ("regex = 3", "regex is not a string"),
            ("regex = 'a'\nflags = 'q'", "flags is 'q'"),
            ("regex = 'a'\nflags = 2", "flags is 2"),
            ("regex = 'a'\nmax_tokens = 2", "unknown key 'max_tokens'"),
            ("words = ['a']\nflags = 'i'", "unknown key 'flags'"),
            ("words = []", "words is not"),
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
    @pytest.mark.parametrize("name", ["README.md", "schema.json", "noext"])
    def test_an_unknown_suffix_is_an_error(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DefinitionError, match="suffix") as caught:
            load_definitions([write(tmp_path, name, "{}")])
        assert ".regex, .words, .toml" in caught.value.remedy

    @pytest.mark.parametrize("name", ["absent", "absent.regex"])
    def test_a_missing_path_is_an_error(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DefinitionError, match="No such file"):
            load_definitions([str(tmp_path / name)])
