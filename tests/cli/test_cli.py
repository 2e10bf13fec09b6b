"""The command line: what it prints, what it keeps, its exit codes, and that no mistake shows a traceback."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as XML

import pytest
import tokenizers
from typer.testing import CliRunner, Result

import structgen as sg
from structgen.cli import warm
from structgen.cli.app import app
from structgen.cli.console import format_bytes
from structgen.cli.options import parse_size
from structgen.errors import CacheWarning
from structgen.system.byteranges import describe

Run = Callable[..., Result]

DATE = "[0-9]{4}-[0-9]{2}"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a byte-level BPE tokenizer: 256 bytes, one merge, one EOS token."""
    folder = tmp_path_factory.mktemp("tokenizer")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate([*alphabet, "20"])}
    built = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [("2", "0")]))
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens(["<eos>"])
    built.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def invoke(*args: str | Path, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)

    return invoke


@pytest.fixture(scope="module")
def month(tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index file for `DATE`."""
    path = tmp_path_factory.mktemp("index") / "month.sgx"
    result = CliRunner().invoke(app, ["compile", "--regex", DATE, "-o", str(path), "-t", str(tokenizer)])
    assert result.exit_code == 0, result.output
    return path


class TestWarm:
    def test_compiles_once_then_finds_it_cached(self, run: Run, tokenizer: Path) -> None:
        Path("defs").mkdir()
        Path("defs/month.regex").write_text(DATE)
        Path("defs/colour.words").write_text("red\ngreen\n")
        Path("defs/notes.md").write_text("")
        first = run("warm", "defs", "-t", tokenizer, "--cache", "kept")
        assert first.exit_code == 0, first.output
        assert "note: defs/notes.md is not a definition" in first.stderr
        table = [line.split() for line in first.stdout.splitlines()]
        assert ["name", "states", "rows", "bytes", "seconds", "source"] in table
        assert [row[0] for row in table if row and row[-1] == "compiled"] == ["colour", "month"]
        second = run("warm", "defs", "-t", tokenizer, "--cache", "kept")
        assert [line.split()[-1] for line in second.stdout.splitlines() if "month" in line] == ["cached"]

    def test_what_it_kept_is_what_compile_looks_for(self, run: Run, tokenizer: Path) -> None:
        Path("month.regex").write_text(DATE)
        report = json.loads(run("warm", "month.regex", "-t", tokenizer, "--cache", "kept", "--json").stdout)
        vocabulary = sg.Vocabulary.from_pretrained(tokenizer)
        index = sg.compile(sg.Regex(DATE), vocabulary, cache=sg.Cache("kept"))
        assert index.origin == "cache"
        assert index.complete
        assert report["vocabulary"] == vocabulary.fingerprint
        assert report["vocabularies"] == [vocabulary.fingerprint]
        (warmed,) = report["warmed"]
        assert warmed.pop("seconds") >= 0
        assert warmed.pop("bytes") > 0
        assert warmed == {
            "name": "month",
            "path": "month.regex",
            "line": 1,
            "vocabulary": vocabulary.fingerprint,
            "kind": "regex",
            "states": index.states,
            "rows": index.row_count,
            "source": "compiled",
        }

    def test_lazy_keeps_the_automaton_without_all_rows(self, run: Run, tokenizer: Path) -> None:
        Path("month.regex").write_text(DATE)
        assert run("warm", "month.regex", "-t", tokenizer, "--cache", "kept", "--lazy").exit_code == 0
        vocabulary = sg.Vocabulary.from_pretrained(tokenizer)
        index = sg.compile(sg.Regex(DATE), vocabulary, cache=sg.Cache("kept"), eager=False)
        assert index.origin == "cache"
        assert not index.complete

    @pytest.mark.parametrize("jobs", ["1", "3"])
    def test_a_failure_is_listed_and_the_rest_is_warmed(self, run: Run, tokenizer: Path, jobs: str) -> None:
        Path("all.toml").write_text(
            "[definitions.good]\nregex = 'a+'\n\n[definitions.odd]\nregex = '(a'\n\n"
            "[definitions.back]\nregex = '(a)\\1'\n\n[definitions.late]\nregex = 'b+'\n"
        )
        Path("latin.regex").write_bytes(b"\xe9")
        result = run("warm", "all.toml", "latin.regex", "-t", tokenizer, "--cache", "kept", "--jobs", jobs, "--json")
        assert result.exit_code == 1
        report = json.loads(result.stdout)
        assert [entry["name"] for entry in report["warmed"]] == ["good", "late"]
        assert [entry["name"] for entry in report["failed"]] == ["latin", "odd", "back"]
        assert report["failed"][0]["where"] == "latin.regex:1"
        assert report["failed"][1]["where"].startswith("all.toml:4, ")
        assert report["failed"][2]["where"].startswith("all.toml:7, ")
        failures = [line for line in result.stderr.splitlines() if line.startswith("failed: ")]
        assert [line.split()[1] for line in failures] == ["latin:", "odd:", "back:"]
        assert len(sg.Cache("kept").entries()) == 2

    def test_over_the_budget_is_a_failure(self, run: Run, tokenizer: Path) -> None:
        Path("big.regex").write_text("(a|b)*a(a|b){12}")
        result = run("warm", "big.regex", "-t", tokenizer, "--cache", "kept", "--max-states", "50")
        assert result.exit_code == 1
        assert "big" in result.stderr
        assert "50" in result.stderr

    def test_a_cache_that_cannot_be_written_is_a_failure(self, run: Run, tokenizer: Path) -> None:
        Path("month.regex").write_text(DATE)
        Path("kept").write_text("a file, not a folder")
        result = run("warm", "month.regex", "-t", tokenizer, "--cache", "kept/below")
        assert result.exit_code == 1
        assert "did not keep it" in result.stderr

    def test_a_file_that_is_no_bundle_is_refused(self, run: Run, tokenizer: Path) -> None:
        Path("month.regex").write_text(DATE)
        Path("kept").write_text("a file, not a folder")
        result = run("warm", "month.regex", "-t", tokenizer, "--cache", "kept")
        assert result.exit_code == 2
        assert "not an archive of a structgen cache" in result.stderr
        assert str(Path("kept").absolute()) in result.stderr
        assert not result.stdout
        assert Path("kept").read_text() == "a file, not a folder"

    @pytest.mark.parametrize(
        ("path", "code", "message"), [("empty", 2, "no definitions found"), ("absent.regex", 1, "No such file")]
    )
    def test_nothing_to_warm(self, run: Run, tokenizer: Path, path: str, code: int, message: str) -> None:
        Path("empty").mkdir()
        result = run("warm", path, "-t", tokenizer, "--cache", "kept")
        assert result.exit_code == code
        assert message in result.stderr

    @pytest.mark.parametrize("command", [("warm", "--sign-key"), ("bundle", "out.sgb", "--verify-key")])
    def test_keys_without_a_store(self, run: Run, tokenizer: Path, command: tuple[str, ...]) -> None:
        Path("month.regex").write_text(DATE)
        result = run(*command[:-1], "month.regex", "-t", tokenizer, "--cache", "kept", command[-1], "key.pem")
        assert result.exit_code == 2
        assert "name one" in result.stderr

    def test_several_tokenizers_shards_and_a_report_for_ci(self, run: Run, tokenizer: Path, tmp_path: Path) -> None:
        other = shutil.copytree(tokenizer, tmp_path / "other")
        config = json.loads((other / "tokenizer.json").read_text())
        config["model"]["merges"] = []
        del config["model"]["vocab"]["20"]
        (other / "tokenizer.json").write_text(json.dumps(config))
        Path("all.toml").write_text("".join(f"[definitions.d{n}]\nregex = 'a{{{n}}}'\n" for n in range(1, 6)))
        Path("odd.regex").write_text("(a")
        found = []
        for part in ("1/2", "2/2"):
            options = ("--cache", "kept", "--shard", part, "--junit", "warm.xml", "--json")
            result = run("warm", "all.toml", "odd.regex", "-t", tokenizer, "-t", other, *options)
            report = json.loads(result.stdout)
            assert "vocabulary" not in report
            assert len(report["vocabularies"]) == 2
            found += [(each["name"], each["vocabulary"]) for each in report["warmed"]]
            assert {each["source"] for each in report["warmed"]} == {"compiled"}
            suites = list(XML.fromstring(Path("warm.xml").read_text()))
            assert sum(int(suite.get("tests", 0)) for suite in suites) == len(report["warmed"] + report["failed"])
            assert sum(int(suite.get("failures", 0)) for suite in suites) == len(report["failed"])
            assert result.exit_code == (1 if report["failed"] else 0)
        assert len(found) == len(set(found)) == 10

    def test_processes(self, run: Run, tokenizer: Path) -> None:
        Path("month.regex").write_text(DATE)
        result = run("warm", "month.regex", "-t", tokenizer, "--cache", "kept", "--executor", "processes", "-j", "1")
        assert result.exit_code == 0, result.output
        vocabulary = sg.Vocabulary.from_pretrained(tokenizer)
        index = sg.compile(sg.Regex(DATE), vocabulary, cache=sg.Cache("kept"), compile_missing=False)
        assert index.complete

    @pytest.mark.parametrize("shard", ["0/4", "5/4", "3", "1/0", "a/b"])
    def test_a_shard_that_is_none(self, run: Run, tokenizer: Path, shard: str) -> None:
        Path("month.regex").write_text(DATE)
        result = run("warm", "month.regex", "-t", tokenizer, "--cache", "kept", "--shard", shard)
        assert result.exit_code == 2
        assert "is not a part" in result.stderr


class TestTokenizer:
    @pytest.mark.parametrize("name", ["absent-folder", "tokenizer.json", "broken", "tekken.json"])
    def test_a_bad_one_is_one_line(self, run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        Path("tokenizer.json").write_text("{}")
        Path("tekken.json").write_text("{}")
        Path("broken").mkdir()
        Path("broken/tokenizer.json").write_text("not json")
        result = run("compile", "--regex", "a", "-o", "a.sgx", "-t", f"./{name}")
        assert result.exit_code == 2, result.output
        assert result.stderr.startswith("error: ")
        assert "Traceback" not in result.stderr
        assert not Path("a.sgx").exists()


class TestCompile:
    def test_a_file(self, run: Run, tokenizer: Path) -> None:
        Path("month.regex").write_text(DATE + "\n")
        result = run("compile", "month.regex", "-o", "month.sgx", "-t", tokenizer, "--json")
        assert result.exit_code == 0, result.output
        index = sg.Index.load("month.sgx")
        assert index.definition == sg.Regex(DATE).canonical()
        assert json.loads(result.stdout)["states"] == index.states

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ([], "Pass either FILE or --regex"),
            (["a.regex", "--regex", "a"], "Pass either FILE or --regex"),
            (["absent.regex"], "No such file"),
            (["two.toml"], "expected one definition, found 2"),
            (["--regex", "(a"], "error: "),
            (["--regex", "[^\\x00-\\U0010ffff]"], "error: "),
        ],
    )
    def test_bad_input(self, run: Run, tokenizer: Path, args: list[str], message: str) -> None:
        Path("two.toml").write_text("[definitions]\na = {regex = 'a'}\nb = {regex = 'b'}\n")
        result = run("compile", *args, "-o", "x.sgx", "-t", tokenizer)
        assert result.exit_code == 2
        assert message in result.stderr
        assert "Traceback" not in result.output

    def test_an_output_that_cannot_be_written(self, run: Run, tokenizer: Path) -> None:
        result = run("compile", "--regex", "a", "-o", "absent/x.sgx", "-t", tokenizer)
        assert result.exit_code == 2
        assert result.stderr.splitlines()[-1].startswith("error: No such file or directory")


class TestInspect:
    def test_says_what_the_file_holds(self, run: Run, month: Path) -> None:
        facts = json.loads(run("inspect", month, "--json").stdout)
        index = sg.Index.load(month)
        assert facts["definition"] == sg.Regex(DATE).canonical()
        assert (facts["states"], facts["rows"], facts["complete"]) == (index.states, index.row_count, True)
        assert (facts["vocabulary_size"], facts["eos_ids"]) == (258, [257])
        assert facts["file_bytes"] == month.stat().st_size
        text = run("inspect", month).stdout
        assert index.vocabulary_fingerprint in text
        assert "258 ids, EOS [257]" in text

    def test_a_damaged_file_is_refused(self, run: Run, month: Path) -> None:
        data = bytearray(month.read_bytes())
        data[len(data) // 2] ^= 1
        Path("bad.sgx").write_bytes(data)
        result = run("inspect", "bad.sgx")
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert "bad.sgx" in result.stderr

    @pytest.mark.parametrize("name", ["absent.sgx", "."])
    def test_what_is_no_file_is_refused(self, run: Run, name: str) -> None:
        result = run("inspect", name)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")


class TestJsonSchema:
    @pytest.fixture(autouse=True)
    def files(self, run: Run) -> None:  # after `run` has changed into the test's folder
        Path("point.json").write_text(json.dumps({"properties": {"x": {"type": "integer"}}, "required": ["x"]}))
        Path("some.toml").write_text(
            "[definitions.point]\nfile = 'point.json'\nwhitespace = 'compact'\nadditional_properties = false\n"
            "[definitions.set]\nlenient = true\n"
            'json_schema = \'{"type": "array", "uniqueItems": true, "contains": {"const": 1}, "minContains": 2}\'\n'
        )
        Path("loose.toml").write_text(
            "[definitions.set]\nlenient = true\n"
            'json_schema = \'{"type": "array", "uniqueItems": true, "contains": {"const": 1}, "minContains": 2}\'\n'
        )
        Path("cli_models.py").write_text("class Model:\n    schema = {'enum': ['a', 'b']}\n")

    def test_a_file_is_compiled_and_checked(self, run: Run, tokenizer: Path) -> None:
        compiled = run("compile", "point.json", "-o", "point.sgx", "-t", tokenizer, "--json")
        assert compiled.exit_code == 0, compiled.output
        assert json.loads(compiled.stdout)["relaxations"] == []
        assert run("check", "point.sgx", '{"x": 1, "y": [true]}').exit_code == 0
        result = run("check", "point.sgx", '{"x": tru')
        assert result.exit_code == 1
        assert result.stdout.splitlines()[0] == "not accepted: 't' does not fit (byte 6, line 1, column 7)"
        assert json.loads(run("inspect", "point.sgx", "--json").stdout)["kind"] == "json_schema"

    def test_an_object_of_a_module(self, run: Run, tokenizer: Path) -> None:
        result = run("compile", "cli_models:Model.schema", "-o", "model.sgx", "-t", tokenizer)
        assert result.exit_code == 0, result.output
        assert run("check", "model.sgx", '"b"').exit_code == 0

    def test_what_was_relaxed_is_said(self, run: Run, tokenizer: Path) -> None:
        result = run("compile", "loose.toml", "-o", "set.sgx", "-t", tokenizer)
        assert result.exit_code == 0, result.output
        assert "relaxed: " in result.stderr
        assert "uniqueItems" in result.stderr
        assert "uniqueItems" in run("inspect", "set.sgx").stdout
        assert len(json.loads(run("inspect", "set.sgx", "--json").stdout)["relaxations"]) == 1

    def test_warm_takes_files_manifests_and_modules(self, run: Run, tokenizer: Path) -> None:
        Path("broken.json").write_text('{"type": "objec"}')
        result = run("warm", ".", "cli_models:Model.schema", "-t", tokenizer, "--cache", "../kept", "--json")
        assert result.exit_code == 1
        report = json.loads(result.stdout)
        assert [entry["name"] for entry in report["warmed"]] == ["set", "point", "point", "set", "Model.schema"]
        (failed,) = report["failed"]
        assert (failed["name"], failed["where"]) == ("broken", "broken.json:1, /type")

    @pytest.mark.parametrize(
        ("file", "message"),
        [("absent.json", "No such file"), ("bad.json", "line 1, column 2"), ("cli_models:Absent", "has no Absent")],
    )
    def test_mistakes_are_one_line(self, run: Run, tokenizer: Path, file: str, message: str) -> None:
        Path("bad.json").write_text("{")
        result = run("compile", file, "-o", "x.sgx", "-t", tokenizer)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert message in line


class TestExplain:
    def test_a_place_a_caret_and_the_piece_of_the_pattern(self, run: Run, month: Path) -> None:
        result = run("explain", month, "2024-x5")
        assert result.exit_code == 1
        lines = result.stdout.splitlines()
        assert lines[0] == "refused: 'x' does not fit (byte 5, line 1, column 6)"
        assert lines[2].index("^") == lines[1].index("x")
        assert any(line.startswith("because: column") for line in lines)
        assert run("explain", month, "2024-05").exit_code == 0

    def test_a_token_behind_a_text_as_json(self, run: Run, month: Path) -> None:
        result = run("explain", month, "2024", "--token", "0", "--json")
        found = json.loads(result.stdout)
        assert found["accepted"] == (result.exit_code == 0)
        assert found["token_id"] == 0
        assert found["text"].startswith("2024")


class TestCheck:
    def test_accepted(self, run: Run, month: Path) -> None:
        result = run("check", month, "2024-05")
        assert (result.exit_code, result.stdout) == (0, "accepted\n")

    @pytest.mark.parametrize(
        ("text", "lines"),
        [
            ("2024-x5", ["not accepted: 'x' does not fit (byte 5, line 1, column 6)", "    2024-x5", "         ^"]),
            ("20", ["not accepted: the text ends too early (byte 2, line 1, column 3)", "    20", "      ^"]),
            ("", ["not accepted: the text ends too early (byte 0, line 1, column 1)", "    ", "    ^"]),
            ("é", ["not accepted: 'é' does not fit (byte 0, line 1, column 1)", "    é", "    ^"]),
        ],
    )
    def test_the_place_and_what_fits(self, run: Run, month: Path, text: str, lines: list[str]) -> None:
        result = run("check", month, text)
        assert result.exit_code == 1
        *found, reason = result.stdout.splitlines()
        assert found == [*lines, "expected: [0-9]"]
        assert reason.startswith("because: column")

    def test_too_long(self, run: Run, month: Path) -> None:
        result = run("check", month, "2024-055")
        *_, expected, reason = result.stdout.splitlines()
        assert expected == "expected: the end"
        assert reason == "because: the pattern goes on with its end"

    def test_standard_input_byte_for_byte(self, run: Run, month: Path) -> None:
        assert run("check", month, "-", stdin="2024-05").exit_code == 0
        result = run("check", month, "-", stdin="2024-05\n")
        assert result.exit_code == 1
        assert "hint: only the final line break" in result.stdout
        result = run("check", month, "-", stdin=b"2024-\xff")
        assert "the byte 0xff does not fit" in result.stdout

    def test_lines_are_counted(self, run: Run, tokenizer: Path) -> None:
        assert run("compile", "--regex", "(?s).{8}é?", "-o", "x.sgx", "-t", tokenizer).exit_code == 0
        result = run("check", "x.sgx", "a\nbc\nééé!")
        assert "(byte 11, line 3, column 4)" in result.stdout
        assert "expected: a character beyond ASCII, or the end" in result.stdout

    def test_json(self, run: Run, month: Path) -> None:
        result = run("check", month, "20x", "--json")
        assert result.exit_code == 1
        assert json.loads(result.stdout) == {
            "accepted": False,
            "consumed": 2,
            "length": 3,
            "expected": [[48, 57]],
            "can_end": False,
        }


class TestCache:
    @pytest.fixture
    def kept(self, run: Run, tokenizer: Path) -> str:
        Path("all.toml").write_text("[definitions]\na = {regex = 'a+'}\nb = {regex = 'b+'}\n")
        assert run("warm", "all.toml", "-t", tokenizer, "--cache", "kept").exit_code == 0
        return "kept"

    def test_ls(self, run: Run, kept: str) -> None:
        listed = json.loads(run("cache", "ls", "--cache", kept, "--json").stdout)
        assert [entry["kind"] for entry in listed["entries"]] == ["regex", "regex"]
        text = run("cache", "ls", "--cache", kept).stdout
        assert '"a+"' in text
        assert text.splitlines()[-1].startswith("2 entries, ")
        for key in ("one", "two", "three"):
            assert sg.Cache(kept).put(key, bytes(2_000), label="rows of a kind", kind="shared")
        assert sg.Cache(kept).put("alone", b"x", label="another", kind="shared")
        lines = run("cache", "ls", "--cache", kept).stdout.splitlines()
        assert [line.split()[:3] for line in lines if "rows of a kind" in line] == [["3", "entries", "shared"]]
        assert [line.split()[:2] for line in lines if "another" in line] == [["alone", "shared"]]
        assert "5.86 KiB" in next(line for line in lines if "rows of a kind" in line)
        assert lines[-1].startswith("6 entries, ")

    def test_ls_of_nothing(self, run: Run) -> None:
        result = run("cache", "ls", "--cache", "absent")
        assert result.exit_code == 0
        assert result.stdout.startswith("0 entries, 0 B, in ")
        assert not Path("absent").exists()

    def test_verify_finds_damage_and_repairs_it(self, run: Run, kept: str) -> None:
        assert run("cache", "verify", "--cache", kept).exit_code == 0
        value = next(Path(kept).rglob("*.val"))
        data = bytearray(value.read_bytes())
        data[-1] ^= 1
        value.write_bytes(data)
        found = run("cache", "verify", "--cache", kept)
        assert found.exit_code == 1
        assert "damaged" in found.stdout
        repaired = run("cache", "verify", "--repair", "--cache", kept)
        assert repaired.exit_code == 0
        assert "1 found, 1 removed" in repaired.stdout
        assert run("cache", "verify", "--cache", kept).exit_code == 0

    def test_prune_and_clear(self, run: Run, kept: str) -> None:
        assert "removed 0 entries" in run("cache", "prune", "1GiB", "--cache", kept).stdout
        smaller = max(entry.nbytes for entry in sg.Cache(kept).entries())
        assert "removed 1 entry" in run("cache", "prune", str(smaller), "--cache", kept).stdout
        assert run("cache", "clear", "--cache", kept, stdin="n\n").exit_code == 1
        assert len(sg.Cache(kept).entries()) == 1
        assert "removed 1 entry" in run("cache", "clear", "--yes", "--cache", kept).stdout

    def test_export_and_import(self, run: Run, kept: str, tokenizer: Path) -> None:
        assert "exported 2 entries" in run("cache", "export", "masks.tar", "--cache", kept).stdout
        assert "imported 2 entries" in run("cache", "import", "masks.tar", "--cache", "other").stdout
        again = run("warm", "all.toml", "-t", tokenizer, "--cache", "other", "--json")
        assert {entry["source"] for entry in json.loads(again.stdout)["warmed"]} == {"cached"}

    def test_a_foreign_archive_is_refused(self, run: Run) -> None:
        Path("x.tar").write_bytes(b"no archive")
        result = run("cache", "import", "x.tar", "--cache", "kept")
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")

    def test_a_folder_that_is_no_folder(self, run: Run) -> None:
        Path("kept").write_text("a file")
        result = run("cache", "ls", "--cache", "kept")
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert "Traceback" not in result.output

    def test_a_size_that_is_none(self, run: Run) -> None:
        result = run("cache", "prune", "plenty", "--cache", "kept")
        assert result.exit_code == 2
        assert "'plenty' is not a size" in result.stderr


class TestLeaving:
    def test_an_interrupt_is_quiet(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(paths: Any, dialect: str) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(warm, "read_definitions", interrupted)
        result = run("warm", "defs", "-t", "tekken")
        assert result.exit_code == 130
        assert result.output.strip() == ""

    def test_an_interrupt_at_work_says_what_is_kept(
        self, run: Run, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object, **__: object) -> Any:
            raise KeyboardInterrupt

        Path("date.regex").write_text(DATE)
        monkeypatch.setattr("structgen.warming.warm.warm", interrupted)
        result = run("warm", "date.regex", "-t", tokenizer, "--cache", "kept")
        assert result.exit_code == 130
        assert result.stderr.endswith("interrupted: what is done is kept, and the same command does the rest\n")

    @pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes")
    def test_a_closed_pipe_is_quiet(self, month: Path) -> None:
        command = [sys.executable, "-m", "structgen.cli", "check", str(month), "2024-05"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() == 141

    def test_version_and_help(self, run: Run) -> None:
        assert run("--version").stdout == f"structgen {sg.__version__}\n"
        for command in ("warm", "compile", "inspect", "check", "cache"):
            assert command in run("--help").stdout
            assert "Examples" in run(command, "--help").stdout


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], ""),
        ([(48, 57)], "[0-9]"),
        ([(97, 97)], "'a'"),
        ([(32, 32)], "a space"),
        ([(39, 39)], "'\\''"),
        ([(10, 10), (45, 45), (65, 90), (93, 94)], "[\\n\\-A-Z\\]\\^]"),
        ([(97, 98)], "[ab]"),
        ([(0, 8)], "[\\x00-\\x08]"),
        ([(0, 127)], "any ASCII character"),
        ([(0, 127), (0xC2, 0xF4)], "any ASCII character, or a character beyond ASCII"),
        ([(0x80, 0xBF)], "the rest of a character beyond ASCII"),
        ([(120, 0xBF)], "[x-\\x7f], or the rest of a character beyond ASCII"),
    ],
)
def test_byte_ranges_in_words(ranges: list[tuple[int, int]], expected: str) -> None:
    assert describe(ranges) == expected


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("500MB", 500_000_000), ("1.5GiB", 3 << 29), ("2k", 2000), ("3 KiB", 3072), ("0", 0)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1536, "1.5 KiB"), (1_500_000, "1.43 MiB"), (5 << 30, "5 GiB")]
)
def test_bytes_in_words(size: int, text: str) -> None:
    assert format_bytes(size) == text


# -- object stores ---------------------------------------------------------------------------------------


def test_warm_fills_a_store_and_a_server_pulls_it(run: Run, tokenizer: Path, tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    store = (tmp_path / "store").as_uri()
    (tmp_path / "date.regex").write_text(DATE)
    (tmp_path / "other.regex").write_text("[a-c]{3}")
    warmed = run("warm", "date.regex", "other.regex", "-t", tokenizer, "--cache", "built", "--store", store)
    assert warmed.exit_code == 0, warmed.output
    listed = json.loads(run("cache", "ls", "--store", store, "--json").stdout)
    assert len(listed["objects"]) == 2
    again = run("cache", "push", "--store", store, "--cache", "built")
    assert again.stdout == "pushed 0 entries, 2 were there\n"
    pulled = run("cache", "pull", "--store", store, "--cache", "server")
    assert pulled.stdout == "pulled 2 entries, 0 were there\n"
    vocabulary = sg.Vocabulary.from_pretrained(str(tokenizer))
    index = sg.compile(sg.Regex(DATE), vocabulary, cache=sg.Cache("server"), compile_missing=False)
    assert index.origin == "cache"
    gone = run("cache", "gc", "--store", store, "--manifest", "date.regex", "-t", tokenizer)
    assert gone.stdout.startswith("removed 1 entry of 2, ")
    left = json.loads(run("cache", "ls", "--store", store, "--json").stdout)["objects"]
    assert [each["key"] for each in left] == [sg.cache_key(sg.Regex(DATE), vocabulary)]
    assert run("cache", "gc", "--store", store, "--older-than", "1d").stdout.startswith("removed 0 entries of 1")
    synced = run("cache", "sync", "--store", store, "--cache", "server")
    assert synced.stdout == "pushed 1 entry, 1 were there\npulled 0 entries, 2 were there\n"
    assert run("cache", "gc", "--store", store, "--size", "0", "--dry-run").stdout.startswith("would remove 2")


def test_a_manifest_without_definitions_deletes_nothing(run: Run, tokenizer: Path, tmp_path: Path) -> None:
    """A folder that is named wrong would cost all that is in the store."""
    pytest.importorskip("obstore")
    store = (tmp_path / "store").as_uri()
    (tmp_path / "date.regex").write_text(DATE)
    assert run("warm", "date.regex", "-t", tokenizer, "--cache", "built", "--store", store).exit_code == 0
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "date.yaml").write_text(DATE)
    result = run("cache", "gc", "--store", store, "--manifest", "moved", "-t", tokenizer)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "date.yaml is not a definition, skipped" in result.stderr
    assert "no definitions found" in result.stderr
    assert len(json.loads(run("cache", "ls", "--store", store, "--json").stdout)["objects"]) == 1


def test_a_worker_warns_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warm._leave_quietly()
        warnings.warn(CacheWarning("the store is not written"), stacklevel=1)
    assert capsys.readouterr().err == "warning: the store is not written\n"


def test_a_cluster_without_workers_is_waited_for_aloud(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Client:
        def nthreads(self) -> dict[str, int]:
            return {}

        def get_executor(self) -> object:
            return self

    monkeypatch.setattr(warm, "_cluster", lambda _: nullcontext(Client()))
    with warm.Workers.parse("dask=tcp://host:1").open(2) as (_, many):
        assert many == 0
    assert capsys.readouterr().err == "note: tcp://host:1 has no workers yet, this waits for some\n"


def test_an_object_that_cannot_be_used_is_left_where_it_is(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    store = (tmp_path / "store").as_uri()
    with sg.Cache(tmp_path / "a", store=store) as cache:
        cache.put("good", sg.compile(sg.Regex("a"), sg.Vocabulary.from_bytes([b"a", None], eos_ids=[1])).to_bytes())
        cache.put("bad", b"not a file of structgen's")
    pulled = run("cache", "pull", "--store", store, "--cache", "b")
    assert (pulled.exit_code, pulled.stdout) == (1, "pulled 1 entry, 0 were there, 1 failed\n")


@pytest.mark.parametrize(
    "options",
    [
        ["gc", "--store", "file:///tmp"], ["gc", "--store", "file:///tmp", "--manifest", "a.regex"],
        ["gc", "--store", "file:///tmp", "--older-than", "soon"], ["push", "--store", "bucket"], ["push"],
        ["ls", "--store", "s3://key:secret@bucket"],
    ],
)  # fmt: skip
def test_stores_that_are_not_named_right(run: Run, options: list[str]) -> None:
    result = run("cache", *options)
    assert result.exit_code in (1, 2)
    assert "secret" not in result.output
    assert "Traceback" not in result.output
