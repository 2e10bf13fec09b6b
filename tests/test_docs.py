"""README and docs: their Python runs, and their links lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import structgen

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]

#: Fenced Python. In a README it runs, unless its fence says ``python no-run`` (it needs a network or a
#: model). In docs/, where snippets lean on what their page set up in prose, it is only parsed. Fenced
#: ``pycon`` is a session, and runs as a doctest on every page.
FENCE = re.compile(r"^```python( no-run)?\n(.*?)^```$", re.M | re.S)
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def blocks() -> list[tuple[str, bool, str]]:
    """Each fenced Python block: ``page:line``, whether it runs, and its text."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for fence in FENCE.finditer(text):
            line = text.count("\n", 0, fence.start()) + 1
            found.append((f"{page.relative_to(ROOT)}:{line}", page.name == "README.md" and not fence[1], fence[2]))
    return found


BLOCKS = blocks()


@pytest.mark.parametrize(("place", "runs", "source"), BLOCKS, ids=[place for place, _, _ in BLOCKS])
def test_python_blocks_run(place: str, runs: bool, source: str) -> None:
    code = compile(source, place, "exec", dont_inherit=True)  # a reader has no annotations of the future
    if runs:
        exec(code, {"__name__": "example"})


def test_the_readme_has_blocks_that_run() -> None:
    assert sum(runs for place, runs, _ in BLOCKS if place.startswith("README")) >= 2
    assert len(SESSION.findall((ROOT / "README.md").read_text(encoding="utf-8"))) >= 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sessions_show_what_python_prints(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for session in SESSION.finditer(text):
        line = text.count("\n", 0, session.start())
        runner.run(doctest.DocTestParser().get_doctest(session[1], {}, page.name, str(page), line))
    assert runner.summarize(verbose=False).failed == 0


def test_package_docstring() -> None:
    result = doctest.testmod(structgen)
    assert result.attempted >= 4
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = [target.split("#")[0] for target in LINK.findall(page.read_text(encoding="utf-8"))]
    local = [target for target in links if target and "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []
