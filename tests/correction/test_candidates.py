"""Candidates of grammars: Lark says which terminals its parser expects, and which of them are read as names are."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import lark.lexer
import pytest
from judges.adversaries import SHIPPED
from lark import Lark, Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

import structgen as sg
from structgen import grammars
from structgen.budget import Budget


@pytest.fixture(scope="module")
def sql() -> sg.Index:
    return sg.compile(SHIPPED["sql"].definition(), sg.Vocabulary.bytewise(), eager=False, budget=Budget(seconds=120))


@pytest.fixture(scope="module")
def judge() -> Iterator[Lark]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lark.lexer, "has_interegular", False)  # it compares all terminals, for minutes
        yield Lark(grammars.path("sql").read_text(), parser="lalr", lexer="basic")


def test_a_keyword_that_is_begun_is_named_first(sql: sg.Index) -> None:
    found = sg.candidates(sql, "SELECT * FROM t WH")
    assert (found.prefix, found.dropped, found.literals[0]) == ("SELECT * FROM t ", "WH", "WHERE")
    assert {"GROUP", "ORDER", "LIMIT", "JOIN", ";"} <= {*found.literals}
    assert not {"ABORT", "WITHOUT", "SELECT", "FROM"} & {*found.literals}
    assert found.open == ("[\\t\\n\\x0c\\r \"'(,-/;A-[_-z], or a character beyond ASCII",)


def test_a_word_that_begins_no_keyword_is_left(sql: sg.Index) -> None:
    found = sg.candidates(sql, "SELECT nam")
    assert (found.prefix, found.dropped) == ("SELECT nam", "")
    assert not any(literal.isalpha() for literal in found.literals)  # it would be part of the name


@pytest.mark.nightly
def test_keywords_are_those_that_the_parser_expects(sql: sg.Index, judge: Lark) -> None:
    random, listed = Random(3), 0
    texts = [text[:end] + " " for text in SHIPPED["sql"].texts for end in random.choices(range(len(text)), k=12)]
    for text in texts:
        parser = judge.parse_interactive(text)
        try:
            parser.exhaust_lexer()
        except lark.exceptions.LarkError:
            continue  # within a string
        expected = expected_by(parser)
        accepted = {name for name in expected if is_keyword(judge, name)}
        found = {literal for literal in sg.candidates(sql, text).literals if literal.isalpha()}
        assert found <= accepted, text
        as_names = [after(parser, name) for name in ("IDENTIFIER",) if name in expected]
        for name in accepted - found:
            assert after(parser, name) in as_names, (text, name)
        assert not any(after(parser, name) in as_names for name in found), text
        listed += len(found)
    assert listed > 200


def is_keyword(judge: Lark, name: str) -> bool:
    return name.isalpha() and judge.get_terminal(name).pattern.value == name


def expected_by(parser: InteractiveParser) -> set[str]:
    return {*parser.accepts()}  # type: ignore[no-untyped-call]


def after(parser: InteractiveParser, name: str) -> set[str]:
    """What Lark's parser expects behind a terminal."""
    there: InteractiveParser = parser.copy()  # type: ignore[no-untyped-call]
    there.feed_token(Token(name, name))
    return expected_by(there)


def test_python_keywords() -> None:
    index = sg.compile(
        SHIPPED["python3"].definition(), sg.Vocabulary.bytewise(), eager=False, budget=Budget(seconds=120)
    )
    found = sg.candidates(index, "def f():\n    ret")
    assert (found.prefix, found.literals[0]) == ("def f():\n    ", "return")
    assert {"while", "pass", "yield", "None", "@", "("} <= {*found.literals}
    assert not {"else", "except", "in"} & {*found.literals}
    assert {"in"} < {*sg.candidates(index, "for x i").literals}
