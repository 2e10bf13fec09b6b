"""`structgen certify` and `structgen diff`: lines, JSON, SARIF, exit codes, nothing that a terminal would obey."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import structgen as sg
from structgen.cli.app import app

Run = Callable[..., Result]

#: A member whose enum has a value that its type excludes, with a name that clears a screen.
_UNUSED = {"properties": {"a\x1b[2J": {"enum": [1, "x"], "type": "string"}}}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, [str(arg) for arg in args])


def test_severities_and_exit_codes(run: Run) -> None:
    Path("defs").mkdir()
    Path("defs/good.regex").write_text("[0-9]{4}")
    Path("defs/person.json").write_text(json.dumps(_UNUSED))
    warned = run("certify", "defs")
    assert warned.exit_code == 0, warned.output
    assert "defs/good.regex:1: good: not decided: canonical_splits" in warned.stdout
    assert r"person.json:1: person: warning: /properties/a\x1b[2J: the enum value 1 is used by no" in warned.stdout
    assert "[unused_parts]" in warned.stdout
    assert "\x1b" not in warned.stdout
    assert run("certify", "defs", "--fail-on", "warning").exit_code == 1
    assert run("certify", "defs/good.regex", "--fail-on", "note").exit_code == 0
    assert run("certify", "defs", "--fail-on", "fatal").exit_code == 2
    assert run("certify", "defs", "--item", "nothing").exit_code == 2
    Path("defs/odd.regex").write_text("(a")
    broken = run("certify", "defs")
    assert broken.exit_code == 1
    assert "defs/odd.regex:1: failed: " in broken.stdout


def test_nothing_to_look_at(run: Run) -> None:
    Path("empty").mkdir()
    assert run("certify", "empty").exit_code == 2
    assert run("certify", "absent.sgx").exit_code == 2
    assert run("certify", "absent.regex").exit_code == 1


def test_json_and_an_index_with_its_own_vocabulary(run: Run) -> None:
    index = sg.compile(sg.Regex("[0-9]a"), sg.Vocabulary.from_bytes([b"0a", b"0", b"a", b"b", None], eos_ids=[4]))
    index.save("one.sgx")
    result = run("certify", "one.sgx", "--item", "never_allowed", "--json")
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)
    certificate = sg.Certificate.from_json(found["certificate"])
    assert certificate["never_allowed"].facts["ids"] == [3]
    assert [item.name for item in certificate.items] == ["never_allowed"]


def test_sarif(run: Run) -> None:
    Path("a b.json").write_text(json.dumps(_UNUSED))
    Path("odd.regex").write_text("(a")
    Path("all.toml").write_text("\n[definitions.many]\nregex = 'a+'\n")
    assert run("certify", "a b.json", "odd.regex", "all.toml", "--sarif", "found.sarif").exit_code == 1
    log = json.loads(Path("found.sarif").read_text())
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    rules = {rule["id"] for rule in one["tool"]["driver"]["rules"]}
    results = {(each["ruleId"], each["level"]): each for each in one["results"]}
    assert {rule for rule, _ in results} <= rules
    assert {"unused_parts", "compile", "unbounded_repetition"} <= {rule for rule, _ in results}
    for each in one["results"]:
        assert each["message"]["text"].isprintable()
        assert each["level"] in ("error", "warning", "note")
    places = {
        rule: each["locations"][0]["physicalLocation"] for (rule, level), each in results.items() if level != "note"
    }
    assert places["unused_parts"] == {"artifactLocation": {"uri": "a%20b.json"}, "region": {"startLine": 1}}
    (note,) = [each for each in one["results"] if each["message"]["text"].startswith("many: ")]
    assert note["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}


@pytest.mark.parametrize(("one", "other", "code", "says"), [
    ("[0-9]+", r"[0-9][0-9]*", 0, "both accept the same texts"),
    ("[0-9]{1,3}", "[0-9]{1,4}", 1, "only the second accepts '0000'"),
    ("\x1b|a", "a", 1, r"only the first accepts '\x1b'"),
])  # fmt: skip
def test_differences(run: Run, one: str, other: str, code: int, says: str) -> None:
    Path("one.regex").write_text(one)
    Path("other.regex").write_text(other)
    result = run("diff", "one.regex", "other.regex")
    assert result.exit_code == code
    assert says in result.stdout
    assert "\x1b" not in result.stdout
    as_json = run("diff", "one.regex", "other.regex", "--json")
    assert as_json.exit_code == code
    assert (sg.Difference.from_json(as_json.stdout).relation == "equal") == (code == 0)


def test_a_dialect(run: Run) -> None:
    Path("one.regex").write_text("^(?<a>a)$")  # named as JavaScript has it
    Path("other.regex").write_text("a")
    ways = (), ("--dialect", "ecma")
    assert [run("certify", "one.regex", *way).exit_code for way in ways] == [1, 0]
    assert [run("diff", "one.regex", "other.regex", *way).exit_code for way in ways] == [2, 0]


def test_a_difference_that_is_not_decided(run: Run) -> None:
    Path("one.gbnf").write_text('root ::= "(" root ")" | "x"')
    Path("other.lark").write_text('start: "(" start ")" | "x"')
    assert run("diff", "one.gbnf", "other.lark", "--max-seconds", "1").exit_code == 3


def test_a_difference_needs_one_definition_on_each_side(run: Run) -> None:
    Path("empty").mkdir()
    sg.compile(sg.Regex("a"), sg.Vocabulary.bytewise()).save("a.sgx")
    Path("a.regex").write_text("a")
    assert run("diff", "a.sgx", "a.regex").exit_code == 0
    assert run("diff", "empty", "a.regex").exit_code == 2
