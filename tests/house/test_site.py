"""The site: it builds without a warning, loads nothing from elsewhere, and its search knows the public names."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import structgen
from structgen import runtime

pytest.importorskip("material", reason="mkdocs-material is not installed (pip install '.[docs]')")
pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed (pip install '.[docs]')")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
#: Attributes that load, as the page is opened.
LOADS = {"script": "src", "img": "src", "link": "href", "source": "srcset", "iframe": "src", "video": "src"}
LISTS = re.compile(r"<p>(?:(?!</p>).)*\n *(?:[-*] |\d+\. |\| )(?:(?!</p>).)*</p>", re.S)


class Page(HTMLParser):
    """The anchors, the links and the loads of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found.get("id", ""), found.get("name", "")}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if LOADS.get(tag) in found and found.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(found[LOADS[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: then warnings are not counted, and it isn't strict.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "true"}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    said = [line for line in (built.stdout + built.stderr).splitlines() if not line.startswith("INFO")]
    assert (built.returncode, said) == (0, [])
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def navigation(entries: Any) -> Iterator[str]:
    """The pages of a navigation."""
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else navigation(value)


def test_each_entry_of_the_navigation_is_a_page(site: Path) -> None:
    # A tag of Python's names a function; the navigation needs none.
    text = re.sub(r"!!python/\S+.*", "null", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    entries = list(navigation(yaml.safe_load(text)["nav"]))
    assert len(entries) == len(set(entries)) > 40
    made = [(site / each.replace("README", "index")).with_suffix(".html") for each in entries]
    assert [path.name for path in made if not path.is_file()] == []


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    outside = {load for page in pages.values() for load in page.loads if re.match(r"(?:https?:)?//", load)}
    assert outside == set()
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_links_and_files_are_there(site: Path, pages: dict[Path, Page]) -> None:
    missing = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links are from the root of a server
        for link in [*page.links, *page.loads]:
            target, _, anchor = html.unescape(link).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            found = (path.parent / target).resolve() if target else path
            if not found.is_file() or (anchor and anchor not in pages[found].anchors):
                missing.append((path.name, link))
    assert missing == []


def test_the_search_knows_the_public_names(site: Path) -> None:
    script = (site / "search/search_index.js").read_text(encoding="utf-8")  # for file://, beside the JSON
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    assert json.loads(script.partition("=")[2].rstrip(";")) == index
    titles = "\n".join(each["title"] for each in index["docs"] if each["location"].startswith("reference/"))
    words = set(re.findall(r"\w+", html.unescape(re.sub(r"<[^>]+>", " ", titles))))
    assert {*structgen.__all__, *runtime.__all__} - {"Error"} <= words  # which is StructgenError


@pytest.mark.parametrize("folder", ["guide", "internals", "."])
def test_lists_and_tables_are_no_paragraphs(site: Path, folder: str) -> None:
    """Markdown for Python wants a blank line before a list, and forges none."""
    for page in sorted((site / folder).glob("*.html")):
        article = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        prose = re.sub(r"<(pre|code)\b.*?</\1>", "", article, flags=re.S)
        found = LISTS.search(prose)
        assert found is None, f"{page.name}: {found and found[0][:300]}"
        assert "```" not in prose, page.name
