"""Definitions that are put together in Python mean what their parts mean."""

from __future__ import annotations

import re

import pytest

import structgen as sg

BYTES = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def accepts(definition: object, text: str) -> bool:
    return sg.compile(definition, BYTES).machine.match(text.encode()).accepted


def test_definitions_in_a_row_and_beside_one_another() -> None:
    number = sg.Regex("[0-9]+") | sg.JsonSchema({"type": "array", "items": {"type": "integer"}}, whitespace="compact")
    whole = "<" + (number | sg.Gbnf('root ::= "(" root ")" | "x"')) + ">"
    pattern = re.compile(r"<([0-9]+|\[(\d+(,\d+)*)?\]|x|\(x\)|\(\(x\)\))>")
    for text in ("<12>", "<[1,2]>", "<[1, 2]>", "<x>", "<((x))>", "<((x)>", "<>", "12", "<[]>"):
        assert accepts(whole, text) == bool(pattern.fullmatch(text)), text


def test_text_ends_with_the_first_of_its_ends() -> None:
    free = sg.text(until=["--", "."], excludes=["no"], max_chars=6)
    for text in (".", "abc.", "abc--", "a-.", "abcdef.", "--."[:2]):
        assert accepts(free, text), text
    for text in ("abc", "a..", "a--b", "no.", "abcdefg.", "a-"):
        assert not accepts(free, text), text


def test_a_tag_holds_its_content() -> None:
    section = sg.tag("<a>", sg.text(), ["</a>", "</b>"])
    assert accepts(section + section, "<a>x</a><a></b>")
    assert not accepts(section, "<a>x</a></b>")


def test_options_of_a_schema_go_with_it() -> None:
    schema = sg.JsonSchema({"type": "array", "items": {"type": "null"}}, whitespace="any", max_whitespace=2)
    for text in ("![null,  null]", "![null,   null]", "![null,null]"):
        assert accepts("!" + schema, text) == accepts(schema, text[1:]), text


@pytest.mark.parametrize(
    "definition", [sg.Grammar('start: "a"'), sg.StructuralTag({"type": "any_text"}, whitespace="any")]
)
def test_what_cannot_be_a_part_is_refused(definition: object) -> None:
    with pytest.raises(sg.errors.DefinitionError, match="part of another"):
        sg.sequence("a", definition)


def test_its_text_says_all_of_it() -> None:
    definition = sg.tag("<a>", sg.Regex("b+"), "</a>")
    assert eval(repr(definition), {"StructuralTag": sg.StructuralTag}) == definition
