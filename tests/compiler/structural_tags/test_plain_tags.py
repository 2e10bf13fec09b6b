"""Tags that one look says enough of are read when a text comes to them, and have the texts that they had if read."""

from __future__ import annotations

import json
from typing import Any

import pytest

import structgen as sg
from structgen.compiler.json_schema.read.plain import is_plain
from structgen.compiler.structural_tags import linker, plain_tags
from structgen.errors import BudgetExceededError, DefinitionError

NAMED = {"<s>": 257}
TOKENS = [*(bytes([i]) for i in range(256)), None, None, b'{"a":', b"</", b'1}"', b"ab>"]
VOCABULARY = sg.Vocabulary.from_bytes(TOKENS, eos_ids=[256], special_tokens=NAMED)

OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
CLOSED = OBJECT | {"additionalProperties": False}
EMPTY = CLOSED | {"required": []}


def schema(value: Any = CLOSED, **fields: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": value, **fields}


def tag(begin: str, content: Any, end: Any = ">") -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(*tags: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<"], "tags": list(tags), **fields}


MANY = [tag(f"<f{i}:", schema()) for i in range(10)]
ROW = {
    "type": "sequence",
    "elements": [schema(style="qwen_xml"), {"type": "optional", "content": {"type": "const_string", "value": "\n"}}],
}
FORMATS = {
    "one": triggered(tag("<f:", schema(OBJECT))),
    "many": triggered(*MANY),
    "at least one": triggered(*MANY, at_least_one=True),
    "ends": triggered(tag("<f:", schema(), [">", "</f>"])),
    "in a row": triggered(tag("<f:", ROW, "</f>")),
    "may be empty": triggered(tag("<f:", schema(EMPTY, style="qwen_xml"), ["", "!"]), tag("<g", schema())),
    "nothing but the trigger": triggered(tag("<", schema(EMPTY, style="qwen_xml"), "")),
    "separated": {"type": "tags_with_separator", "tags": MANY, "separator": ","},
    "a special token": triggered(tag("<s>", schema()), tag("<f:", schema(), "<s>")),
    "alone": tag("<f:", schema()),
}
TEXTS = [
    '<f1:{"a": 1}>',
    '<f:{"a": 1, "b": "x"}</f>', "<f:<parameter=a>\n1\n</parameter>\n</f>", "<f:", "<f9:x", '<s>{"a":1}>',
]  # fmt: skip


def masks(definition: sg.StructuralTag, *, eager: bool) -> list[bytes]:
    index = sg.compile(definition, VOCABULARY, eager=eager)
    found = []
    for text in TEXTS:
        guide = sg.Guide(index)
        for token in (*text.encode(), 257):
            found.append(guide.bitmask().tobytes())
            if guide.allows(token):
                guide.advance(token)
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_they_are_as_if_they_were_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = sg.StructuralTag(FORMATS[name])
    seen = [masks(definition, eager=eager) for eager in (False, True, False)]
    monkeypatch.setattr(linker, "look_at", lambda *_, **__: None)
    linker._BEGUN.clear()
    assert seen == [masks(definition, eager=False)] * 3


def test_a_tool_more_is_all_that_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []

    def noted(schema: Any, **how: bool) -> bool:
        looks.append(schema)
        return is_plain(schema, **how)

    monkeypatch.setattr(plain_tags, "is_plain", noted)
    plain_tags._KNOWN.clear()
    for tools in (9, 10, 10):
        text = json.dumps(triggered(*MANY[:tools]))
        sg.compile(sg.StructuralTag(text), VOCABULARY, eager=False)
    assert len(looks) == 10


def test_what_is_wrong_is_still_told() -> None:
    sg.compile(sg.StructuralTag(triggered(*MANY)), VOCABULARY, eager=False)
    for wrong in (MANY[0] | {"ends": ""}, tag("<", schema() | {"strict": True}), tag("x", schema())):
        with pytest.raises(DefinitionError):
            sg.compile(sg.StructuralTag(triggered(*MANY, wrong)), VOCABULARY, eager=False)
    with pytest.raises(BudgetExceededError):
        sg.compile(sg.StructuralTag(triggered(*MANY)), VOCABULARY, eager=False, budget=sg.Budget(depth=1))


@pytest.mark.parametrize("names", [["a"], ["b", "c"]])
def test_a_beginning_that_comes_again_is_no_ones(names: list[str]) -> None:
    """Each index lowers its own parts behind the beginning that it shares with others."""
    definition = sg.StructuralTag(triggered(*(tag(f"<{name}:", schema()) for name in names)))
    linker._BEGUN.clear()
    alone = masks(definition, eager=False)
    masks(sg.StructuralTag(triggered(*MANY)), eager=False)
    assert masks(definition, eager=False) == alone
    assert len(linker._BEGUN) == 1
