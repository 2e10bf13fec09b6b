"""Structural tags of strangers: all end, as an index or a typed error, within the budget of a request."""

from __future__ import annotations

import time
from typing import Any

import pytest
from judges.guides import BYTES

import structgen as sg
from structgen.errors import StructgenError

TEXT = {"type": "any_text"}
SCHEMA = {"type": "json_schema", "json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(triggers: list[str], tags: list[Any], **more: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": triggers, "tags": tags, **more}


def nested(levels: int, content: dict[str, Any]) -> dict[str, Any]:
    for level in range(levels):
        content = tag(f"<{level}>", content, f"</{level}>")
    return content


#: A format; what a refusal says, and where, if it must be one. None: an index, or any typed error with a remedy.
HOSTILE: dict[str, tuple[Any, str | None]] = {
    "a thousand tools": (triggered(["<f"], [tag(f"<f{n}>", SCHEMA, "</f>") for n in range(1000)]), None),
    "tags nested 500 deep": (nested(500, TEXT), None),
    "sequences nested 5,000 deep": (None, None),  # made below: text is as well a source
    "10 MB of excludes": ({"type": "any_text", "excludes": [f"{n:08}x" for n in range(1_100_000)]}, None),
    "an exclude of 10 MB": ({"type": "any_text", "excludes": ["ab" * 5_000_000]}, None),
    "a trigger of 1 MB": (triggered(["ab" * 500_000], [tag("ab" * 500_000, TEXT, ">")]), None),
    "a thousand turns of a thousand": (
        {"type": "repeat", "min": 1000, "max": 1 << 30, "content": {
            "type": "repeat", "min": 1000, "max": 1000, "content": tag("<", TEXT, ">")}}, None,
    ),
    "a trigger in a trigger": (triggered(["<a", "<"], [tag("<a>", TEXT, "."), tag("<b>", TEXT, ".")]), "both begin"),
    "a pattern in a pattern": (
        {"type": "dispatch", "rules": [["a", TEXT], ["ba>", TEXT]]}, r"trigger 'ba>', as 'a' stands in it \(/\)",
    ),
    "an excluded trigger": (triggered(["<a"], [tag("<a", TEXT, ">")], excludes=["<"]), "never comes to"),
    "the end is a trigger": (tag("a", triggered(["<a"], [tag("<a", TEXT, ">")]), "<a"), "never comes"),
    "no trigger begins it": (triggered(["<"], [tag("a", TEXT, ">")]), r"no trigger begins this tag \(/tags/0\)"),
    "an empty trigger": (triggered([""], [tag("a", TEXT, ">")]), r"empty string \(/triggers\)"),
    "an empty exclude": ({"type": "any_text", "excludes": [""]}, r"empty string \(/excludes\)"),
    "no ends": (tag("<", TEXT, []), r"end is empty \(/end\)"),
    "an unknown token": (tag({"type": "token", "token": "<|no|>"}, TEXT, ">"), r"no token '<\|no\|>' \(/begin\)"),
    "an unknown id": (triggered(["<"], [tag("<", {"type": "token", "token": 1 << 40}, ">")]), "no token 1099"),
    "an unknown token behind a trigger": (
        {"type": "dispatch", "rules": [["<", {"type": "any_tokens", "exclude_tokens": ["<|no|>"]}]]}, "no token",
    ),
    "an unknown type": ({"type": "tags"}, "no format of type 'tags'"),
    "an unknown field": ({**TEXT, "exclude": []}, "no field 'exclude'"),
    "no type": (tag("<", {}, ">"), r"no type \(/content\)"),
    "a list": (tag("<", {"type": "sequence", "elements": []}, ">"), r"elements is empty \(/content/elements\)"),
    "a schema that nothing satisfies": (
        triggered(["<"], [tag("<", {"type": "json_schema", "json_schema": False}, ">")]), "/tags/0/content",
    ),
    "a grammar without a text": ({"type": "grammar", "grammar": 'root ::= "a" root'}, "complete the rule root"),
    "no regex": (tag("<", {"type": "regex", "pattern": "("}, ">"), "/content"),
}  # fmt: skip


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_it_ends_typed_within_the_budget(name: str, eager: bool) -> None:
    format_, says = HOSTILE[name]
    if format_ is None:
        format_ = '{"type":"sequence","elements":[' * 5_000 + '{"type":"any_text"}' + "]}" * 5_000
    sg.compile(sg.StructuralTag(TEXT), BYTES, base_rows=False)  # kernels are no part of it
    error: StructgenError | None = None
    began = time.thread_time()
    try:
        index = sg.compile(sg.StructuralTag(format_), BYTES, eager=eager, budget=sg.Budget.request, base_rows=False)
        sg.Guide(index).bitmask()
    except StructgenError as caught:
        error = caught
    assert time.thread_time() - began < 10  # of seconds that no other process has taken
    assert says is None or error is not None
    if error is not None and says is not None:
        with pytest.raises(type(error), match=says):
            raise error
