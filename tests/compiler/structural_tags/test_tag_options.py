"""Separators of all schemas in a tag, judged by `json.dumps`; how grammars in tags are read, judged by XGrammar."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judges.xgrammar import XGrammar

import structgen as sg
from structgen.errors import DefinitionError, StructgenError

VOCABULARY = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "null"}},
    "required": ["a"],
    "additionalProperties": False,
}
PART: dict[str, Any] = {"type": "json_schema", "json_schema": SCHEMA}
SPELLINGS = [(",", ":"), (", ", ": "), (" , ", ":\n"), (",\t", " : ")]

#: Grammars, and texts: names, left recursion, look-ahead and escapes, of which GBNF has only the last.
GRAMMARS: list[tuple[str, list[str]]] = [
    ('root ::= _x root | _x\n_x ::= "a"', ["a", "aa", "", "b"]),
    ('root ::= root "a" | "b"', ["b", "baa", "ab", ""]),
    ('root ::= x "d"\nx ::= [a-c]{2} (="d")', ["abd", "ab", "dd"]),
    ('root ::= "x" y?\ny ::= "\\u0041" | [^a-z]', ["x", "xA", "xé", "xb"]),
]


def accepts(definition: sg.StructuralTag, text: str) -> bool:
    return sg.compile(definition, VOCABULARY, eager=False).match(text.encode()).accepted


@pytest.mark.parametrize(("item", "key"), SPELLINGS, ids=range(len(SPELLINGS)))
@pytest.mark.parametrize("whitespace", ["compact", 2])
def test_separators_are_those_of_every_schema(item: str, key: str, whitespace: str | int) -> None:
    own = {**PART, "options": {"item_separator": ",", "key_separator": ":"}}
    format_ = {"type": "sequence", "elements": [PART, {"type": "const_string", "value": "|"}, own]}
    tag = sg.StructuralTag(format_, whitespace=whitespace, item_separator=item, key_separator=key)
    indent = whitespace if isinstance(whitespace, int) else None
    value = {"a": [1, 2], "b": None}
    last = json.dumps(value, separators=(",", ":"), indent=indent)
    for separators in SPELLINGS:
        text = json.dumps(value, separators=separators, indent=indent) + "|" + last
        assert accepts(tag, text) == (separators == (item, key)), text


def test_separators_are_part_of_the_name() -> None:
    tag = sg.StructuralTag(PART, whitespace="compact", item_separator=", ")
    assert "item_separator=', '" in repr(tag)
    assert tag.canonical() != sg.StructuralTag(PART, whitespace="compact").canonical()
    with pytest.raises(DefinitionError, match="item_separator"):
        sg.StructuralTag(PART, item_separator="")


@pytest.mark.parametrize(("grammar", "texts"), GRAMMARS, ids=range(len(GRAMMARS)))
def test_grammars_are_read_as_xgrammar_reads_them(grammar: str, texts: list[str]) -> None:
    format_ = {"type": "tag", "begin": "<", "content": {"type": "grammar", "grammar": grammar}, "end": ">"}
    judge, tag = XGrammar(VOCABULARY), sg.StructuralTag(format_)
    for text in texts:
        walk = judge.walk(format_)
        expected = all(walk.advance(byte) for byte in f"<{text}>".encode())
        assert accepts(tag, f"<{text}>") == expected, text


def test_what_only_llama_cpp_writes_is_gbnf() -> None:
    tag = sg.StructuralTag({"type": "grammar", "grammar": 'root ::= "<" . ">"'})
    assert accepts(tag, "<é>")
    assert not accepts(tag, "<>")


def test_a_gbnf_stays_one() -> None:
    """Part of a whole, a grammar means what it means alone: an escape that GBNF does not have is refused."""
    grammar = 'root ::= root "\\a" | "b"'
    assert accepts(sg.Ebnf(grammar) + "!", "b\a\a!")
    for definition in (sg.Gbnf(grammar), sg.Gbnf(grammar) + "!"):
        with pytest.raises(StructgenError, match="escape"):
            sg.compile(definition, VOCABULARY, eager=False)
