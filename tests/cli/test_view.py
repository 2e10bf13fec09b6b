"""``structgen view``: pages and texts of traces and indexes, and what is said of files that are neither."""

from __future__ import annotations

import html
import re
import shutil
import webbrowser
from pathlib import Path

import pytest
from judges.guides import BYTES
from pages.hostile import HOSTILE, hostile_trace
from typer.testing import CliRunner, Result

import structgen as sg
from structgen.cli.app import app


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to open; the folder is empty."""
    found: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(webbrowser, "open", found.append)
    return found


def view(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["view", *map(str, args)])


def recorded(text: bytes) -> sg.Trace:
    guide = sg.TracedGuide(sg.compile(sg.Regex("[a-z]+"), BYTES))
    assert all(map(guide.advance, text))
    return guide.trace(prompt="Say something")


def test_a_trace_becomes_a_page_beside_it(opened: list[str]) -> None:
    trace = recorded(b"word")
    trace.save("run.json")
    result = view("run.json")
    assert result.exit_code == 0, result.output
    assert result.stdout == "wrote run.json.html\n"
    assert Path("run.json.html").read_text(encoding="utf-8") == trace.to_html()
    assert opened == [Path("run.json.html").absolute().as_uri()]


def test_with_an_output_no_browser_is_opened(opened: list[str]) -> None:
    recorded(b"word").save("run.json")
    recorded(b"other").save("free.json")
    assert view("run.json", "--beside", "free.json", "-o", "both.html").exit_code == 0
    page = Path("both.html").read_text(encoding="utf-8")
    assert opened == []
    assert "Without" in page
    assert page != recorded(b"word").to_html()


def test_a_hostile_trace_stays_text(opened: list[str]) -> None:
    hostile_trace().save("hostile.json")
    assert view("hostile.json", "-o", "page.html").exit_code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert page == hostile_trace().to_html()
    assert "<script>alert" not in page


@pytest.fixture
def index(opened: list[str]) -> Path:
    sg.compile(sg.Regex("v[0-9]+|<b>&amp;latest"), BYTES).save("version.sgx")
    return Path("version.sgx")


def test_an_index_becomes_a_page(index: Path, opened: list[str]) -> None:
    assert view(index, "-o", "page.html").exit_code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "[0-9]" in page
    assert "<b>" not in page
    assert ("data:image/svg+xml;base64," in page) is (shutil.which("dot") is not None)
    assert opened == []


def test_a_page_shows_the_schema_with_its_line_breaks(opened: list[str]) -> None:
    sg.compile(sg.JsonSchema({"type": "array", "items": {"enum": [1.50, "a" * 80]}}), BYTES).save("schema.sgx")
    assert view("schema.sgx", "-o", "page.html").exit_code == 0
    page = html.unescape(Path("page.html").read_text(encoding="utf-8"))
    assert f'{{\n  "type": "array",\n  "items": {{\n    "enum": [\n      1.5,\n      "{"a" * 80}"\n    ]' in page
    assert '["json_schema"' not in page


def test_an_index_as_text(index: Path, opened: list[str]) -> None:
    graph = sg.Index.load(index).graph()
    assert view(index, "--format", "dot").stdout == graph.to_dot()
    assert view(index, "--format", "mermaid").stdout == graph.to_mermaid()
    tree = view(index, "--format", "tree").stdout
    assert all(edge.label in tree for edge in graph.edges)
    assert "states are left out" in view(index, "--format", "dot", "--limit", "1").stdout
    assert list(Path().glob("*.html")) == []
    assert opened == []


def test_markup_in_a_definition_is_text(opened: list[str]) -> None:
    sg.compile(sg.Regex.choice([each for each in HOSTILE if each.isprintable()]), BYTES).save("hostile.sgx")
    tree = view("hostile.sgx", "--format", "tree").stdout
    assert "[bold red]markup[/]" in tree


@pytest.mark.parametrize(
    "content",
    [b"", b"no", b"[]", b"{}", b'{"vocabulary_size": 5, "steps": [5]}', b"\x00" * 100, b"[" * 90_000],
    ids=["empty", "text", "array", "object", "steps", "zeros", "deep"],
)
def test_files_that_are_neither_are_refused(content: bytes, opened: list[str]) -> None:
    Path("file").write_bytes(content)
    result = view("file")
    assert result.exit_code == 2
    assert re.match("error: .*file", result.stderr)
    assert "Traceback" not in result.output
    assert not Path("file.html").exists()
    assert opened == []


def test_damaged_and_missing_files_are_refused(index: Path, opened: list[str]) -> None:
    data = index.read_bytes()
    Path("cut.sgx").write_bytes(data[: len(data) // 2])
    recorded(b"a").save("run.json")
    beside, limit = ["run.json", "--beside", "version.sgx"], ["version.sgx", "--limit", "0"]
    for args in (["cut.sgx"], ["missing.json"], ["."], beside, limit):
        result = view(*args)
        assert result.exit_code == 2, args
        assert result.stderr
        assert "Traceback" not in result.output
    assert opened == []
