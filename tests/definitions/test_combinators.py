"""Definitions that are put together in Python mean what their parts mean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import structgen as sg
from structgen.definitions.grammar_text import is_larks

#: Sums in which a keyword is among the names.
SUMS = r"""
start: item ("+" item)*
item: NAME | NUMBER | "if" "(" start ")" item
NAME: /[a-z]+/
%import common.NUMBER
%ignore " "
"""

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
    "definition",
    [
        sg.Grammar("start: _A\n%declare _A _B\n_C: /c/", postlex=sg.Indentation("_C", "_A", "_B")),
        sg.Grammar('start: "a" <|end|>'),
        sg.Grammar('start: "a" P', definitions={"P": sg.Regex("p")}),
        sg.StructuralTag({"type": "any_text"}, whitespace="any"),
    ],
)
def test_what_cannot_be_a_part_is_refused(definition: object) -> None:
    with pytest.raises((sg.errors.DefinitionError, sg.errors.UnsupportedError), match="part of another"):
        sg.sequence("a", definition)


def test_a_grammar_that_imports_files_of_its_own_is_no_part(tmp_path: Path) -> None:
    (tmp_path / "own.lark").write_text("A: /a/\n")
    source = "start: A NUMBER\n%import .own.A\n%import common.NUMBER\n"
    (tmp_path / "whole.lark").write_text(source)
    with pytest.raises(sg.errors.UnsupportedError, match="imports of files"):
        sg.sequence(sg.Grammar(tmp_path / "whole.lark"))
    assert accepts("a" + sg.Grammar(source.replace("%import .own.A", "A: /a/")), "aa1.5")


def test_a_regex_a_schema_and_a_grammar_of_larks() -> None:
    sums = sg.Grammar(SUMS, lexer="basic")
    array = sg.JsonSchema({"type": "array"}, whitespace="compact")
    whole = sg.Regex("[a-z]+") + "=" + (sums | array) + "!"
    for text in ("x=1+2!", "x=1 + if (a) b!", "x=[1,[]]!", "x=a !"):
        assert accepts(whole, text), text
    for text in ("x=1+!", "=1!", "x=if a!", "x=[1, 2", "x= + 1!", "x=a b!"):
        assert not accepts(whole, text), text
    assert eval(repr(sg.sequence(sums)), {"StructuralTag": sg.StructuralTag}) == sg.sequence(sums)


def test_a_text_says_which_syntax_it_is_in() -> None:
    for text in (SUMS, "// root ::= \n# x\n?root.2: A\nA: /::=/", "%ignore A\nA: B", "pair{a, b}: a b", "_x:\n"):
        assert is_larks(text), text
    for text in ("root ::= SUM # a: b", "# root: A\nroot::=x", "", "root", "?"):
        assert not is_larks(text), text
    format_ = {"type": "grammar", "grammar": SUMS}
    assert accepts(sg.StructuralTag(format_), "1 +a")
    assert accepts(sg.StructuralTag({**format_, "syntax": "lark", "options": {"lexer": "basic"}}), "1 +a")
    with pytest.raises(sg.errors.DefinitionError):
        accepts(sg.StructuralTag({**format_, "syntax": "gbnf"}), "1 +a")


def test_what_a_grammar_imports_is_part_of_the_key() -> None:
    key = sg.sequence(sg.Grammar("start: NUMBER\n%import common.NUMBER")).canonical()
    assert key != sg.sequence(sg.Grammar("start: NUMBER\n%import common.NUMBER")).text
    assert "common.lark" in key


def test_its_text_says_all_of_it() -> None:
    definition = sg.tag("<a>", sg.Regex("b+"), "</a>")
    assert eval(repr(definition), {"StructuralTag": sg.StructuralTag}) == definition
