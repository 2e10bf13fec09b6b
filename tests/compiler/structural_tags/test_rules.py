"""Where formats could be read otherwise: one example of each rule of the guide."""

from __future__ import annotations

from typing import Any

import pytest
from judges.guides import BYTES

import structgen as sg

TEXT = {"type": "any_text"}


def tag(content: Any, end: Any = "</a>") -> Any:
    return {"type": "tag", "begin": "<a>", "content": content, "end": end}


def dispatch(**more: Any) -> Any:
    return {"type": "dispatch", "rules": [["<f>", TEXT]], **more}


#: A format, texts of it, and texts that are none.
RULES: dict[str, tuple[Any, list[str], list[str]]] = {
    "free text holds no end of its tag": (tag(TEXT), ["<a>b</a>"], ["<a>b</a></a>", "<a>b</a>c</a>"]),
    "nor where it is not the last": (
        tag({"type": "sequence", "elements": [TEXT, {"type": "regex", "pattern": "1?"}]}),
        ["<a>b</a>", "<a>b1</a>"], ["<a>b</a>1</a>"],
    ),
    "an end that has begun goes on where the bound is reached": (
        tag({**TEXT, "max_chars": 1}), ["<a>b</a>"], ["<a>b<", "<a>bc</a>"]
    ),
    "and where an excluded string is complete": (
        tag({**TEXT, "excludes": ["</"]}), ["<a>b</a>"], ["<a>b</b></a>", "<a></</a>"]
    ),
    "and behind another end": (tag(TEXT, ["<", "</a>"]), ["<a>b<", "<a>b</a>"], ["<a>b<c</a>"]),
    "an empty end ends it anywhere": (tag(TEXT, ["", "</a>"]), ["<a>b", "<a>b</a>"], ["<a>b</a></a>"]),
    "a dispatch may hold an end": (tag(dispatch()), ["<a>b</a>", "<a>b</a>c</a>"], ["<a>b"]),
    "unless that is excluded": (tag(dispatch(excludes=["</a>"])), ["<a>b</a>"], ["<a>b</a>c</a>"]),
    "but what is behind its patterns may not": (tag(dispatch(loop=False)), ["<a>b<f>c</a>"], ["<a>b<f></a>c</a>"]),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_the_texts_of_a_format(rule: str) -> None:
    format_, accepted, refused = RULES[rule]
    for eager in (False, True):
        index = sg.compile(sg.StructuralTag(format_), BYTES, eager=eager, base_rows=False)
        assert [text for text in accepted + refused if index.match(text.encode()).accepted] == accepted
