"""Pages as HTML, without a browser: what they hold, that nothing of a text becomes markup, that nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import structgen as sg
from pages.hostile import HOSTILE, hostile_correction, hostile_trace
from structgen.pages.page import Box, BoxChoice, BoxKind, Page, Pane, Picture, in_notebook, render, script_json
from structgen.system.visible import visible

#: Elements and attributes that a page of these templates has.
ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "dl", "div", "dt", "dd", "ul", "li",
    "span", "main", "label", "input", "output", "section", "p", "img", "pre", "noscript", "script",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "aria-label", "aria-labelledby", "aria-live", "role",
    "aria-selected", "id", "for", "type", "min", "max", "value", "tabindex", "src", "alt",
}  # fmt: skip


class Elements(HTMLParser):
    """Every element with its attributes, and the text in it, by the standard library's parser."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag  # they nest

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.append((self._open[-1], data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def scripts(page: str) -> list[str]:
    return [text for element, text in Elements(page).texts if element == "script"]


def boxes(page: str) -> list[str]:
    found = Elements(page)
    spans = [attributes for element, attributes in found.elements if element == "span"]
    texts = [text for element, text in found.texts if element == "span"]
    assert len(spans) == len(texts)
    return [text for attributes, text in zip(spans, texts, strict=True) if attributes.get("role") == "option"]


PAGES = {"trace": lambda: hostile_trace().to_html(), "correction": lambda: hostile_correction().to_html()}


@pytest.mark.parametrize("kind", PAGES)
def test_nothing_of_a_text_is_markup(kind: str) -> None:
    page = PAGES[kind]()
    found = Elements(page)
    assert {element for element, _ in found.elements} <= ELEMENTS
    for _, attributes in found.elements:
        assert set(attributes) <= ATTRIBUTES
    assert sum(element == "script" for element, _ in found.elements) == 2
    data, script = scripts(page)
    json.loads(data)
    assert script.startswith('"use strict"')
    assert not re.search(r"[<>&\u2028\u2029]", data)
    assert data.isascii()


@pytest.mark.parametrize("kind", PAGES)
def test_the_policy_names_what_is_there_and_nothing_else(kind: str) -> None:
    page = PAGES[kind]()
    found = Elements(page)
    [policy] = [a["content"] for _, a in found.elements if a.get("http-equiv") == "Content-Security-Policy"]
    [style] = [text for element, text in found.texts if element == "style"]
    expected = {"default-src": ["'none'"], "base-uri": ["'none'"], "form-action": ["'none'"], "img-src": ["data:"]}
    for name, text in (("style-src", style), ("script-src", scripts(page)[1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        expected[name] = [f"'sha256-{digest}'"]
    assert policy is not None
    assert {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")} == expected
    for _, attributes in found.elements:
        assert not {"href", "srcset", "style", "action", "formaction", "xlink:href"} & set(attributes)
        assert (attributes.get("src") or "data:").startswith("data:")
    assert not re.search(r"https?:|@import|url\(", style + scripts(page)[1])


def test_what_a_trace_holds_is_on_its_page() -> None:
    trace = hostile_trace()
    texts = boxes(trace.to_html())
    expected = [visible(step.data) if step.data else f"⟨{visible(step.name)}⟩" for step in trace.steps]
    other = trace.unconstrained
    assert other is not None
    assert texts[: len(expected)] == expected
    assert len(texts) == len(trace.steps) + len(other.steps)
    [data] = [json.loads(text) for text in scripts(trace.to_html())[:1]]
    assert [len(pane) for pane in data] == [len(trace.steps), len(other.steps)]
    first = dict(map(tuple, data[0][0][0]))
    assert first["JSON path"] == visible(HOSTILE[0])
    assert "3 of 9 ids" in first["vocabulary open"]
    assert [choice[1] for choice in data[0][0][1]] == ["chosen", "not allowed"]


def test_a_correction_is_on_its_page() -> None:
    correction = hostile_correction()
    page = correction.to_html()
    assert boxes(page) == [visible(piece.text) for piece in correction.pieces]
    kinds = [a["class"] for _, a in Elements(page).elements if a.get("role") == "option"]
    for kind, piece in zip(kinds, correction.pieces, strict=True):
        assert (kind or "").split()[1] == piece.source
    [data] = json.loads(scripts(page)[0])
    facts, choices = data[1]  # all mistakes are at the first place
    assert [value for name, value in facts if name == "mistake"] == [str(n + 1) for n in range(len(HOSTILE))]
    assert [choice[0] for choice in choices] == [visible(text + x) for text in HOSTILE for x in ("", "x")]
    [log] = [text for element, text in Elements(page).texts if element == "pre"]
    assert log.count("mistake: ") == len(HOSTILE)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_what_is_not_seen_is_spelled_out(text: str) -> None:
    shown = visible(text)
    assert all(c == "\n" or c.isprintable() for c in shown)
    shown.encode()  # no lone surrogates


@given(st.text(min_size=1) | st.binary(min_size=1).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_is_shown(text: str) -> None:
    pane = Pane(visible(text), ((visible(text), visible(text)),), (Box(visible(text), "free", (), (), False),))
    page = render(Page(visible(text), (), (BoxKind("free", visible(text)),), (pane,), text=visible(text)))
    assert boxes(page) == [visible(text)]
    assert [t for element, t in Elements(page).texts if element == "title"] == [visible(text)]


@given(st.recursive(st.none() | st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists, max_leaves=9))
def test_embedded_json_reads_back(value: Any) -> None:
    text = script_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


def test_bytes_that_are_no_characters() -> None:
    assert visible(b"a\xff\xc3\xa9\xe2\x82") == "a⟨FF⟩é⟨E2⟩⟨82⟩"
    assert visible("\u202e\u2066\x00\x1b\r\n\t") == "⟨U+202E⟩⟨U+2066⟩⟨U+0000⟩⟨U+001B⟩␍↵\n⇥"


def test_a_page_of_nothing() -> None:
    empty = sg.Trace(9, ())
    page = empty.to_html()
    assert "The text is empty." in page
    assert [element for element, _ in Elements(page).elements].count("script") == 0
    assert render(Page("a")).count("<script") == 0


def test_a_picture_is_data() -> None:
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    page = render(Page("a", picture=Picture(svg, "text <b>")))
    [image] = [a for element, a in Elements(page).elements if element == "img"]
    assert base64.b64decode((image["src"] or "").removeprefix("data:image/svg+xml;base64,")) == svg
    assert image["alt"] == "text <b>"
    assert "alert" not in page


def test_in_a_notebook_the_page_has_a_frame_of_its_own() -> None:
    trace = hostile_trace()
    shown = trace._repr_html_()
    [(element, attributes)] = Elements(shown).elements
    assert (element, attributes["sandbox"], attributes["srcdoc"]) == ("iframe", "allow-scripts", trace.to_html())
    assert in_notebook(Page(HOSTILE[0])).count("<") == 2
    assert html.unescape(re.findall('srcdoc="([^"]*)"', shown)[0]) == trace.to_html()


def test_long_texts_are_laid_out_in_groups() -> None:
    many = tuple(Box("x\n" if n % 7 == 0 else "y", "free") for n in range(1000))
    page = render(Page("a", (), (), (Pane("b", (), many),)))
    groups = [a for _, a in Elements(page).elements if a.get("class") == "group"]
    assert 5 <= len(groups) <= 10
    assert boxes(page) == [box.text for box in many]
    ids = [a["id"] for _, a in Elements(page).elements if a.get("role") == "option"]
    assert ids == [f"b0-{n}" for n in range(1000)]


def test_choices_without_probabilities() -> None:
    box = Box("a", "dropped", (("x", "y"),), (BoxChoice("b", "allowed"),), True)
    [[[facts, choices]]] = json.loads(scripts(render(Page("a", (), (), (Pane("b", (), (box,)),))))[0])
    assert (facts, choices) == ([["x", "y"]], [["b", "allowed", None, None]])
