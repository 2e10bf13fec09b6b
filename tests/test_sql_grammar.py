"""The SQL grammar that comes with structgen: real statements, and SQLite and Lark as judges of what guides write."""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from random import Random

import numpy as np
import pytest
from lark import Lark, Tree
from lark.exceptions import LarkError

import structgen as sg
from structgen import grammars

KEYWORDS = re.findall(r'^[A-Z_]+: "([A-Z_]+)"i$', grammars.path("sql").read_text(), re.MULTILINE)
PIECES = """( ) ( ) , , ; . * = == != <> < <= > >= << >> & | || + - ~ / % -> ->> ( ) a b c t u t.a t.* 1 2.5 .5 1e3 0xF 'a' x'0F'
"q" [q] `q` ? ?1 :p @p $p -- /* */ f( count(* ) ), ); 'it''s'""".split()


@cache
def judge() -> Lark:
    return Lark(grammars.path("sql").read_text(), parser="lalr", lexer="basic", propagate_positions=True)


def parses(text: str) -> bool:
    try:
        judge().parse(text)
    except LarkError:
        return False
    return True


def syntax_error(statement: str) -> str:
    """What SQLite finds wrong with a statement's syntax; tables that are not there, and the like, are not."""
    with sqlite3.connect(":memory:") as database:
        for table in "atuq":
            database.execute(f"CREATE TABLE {table}(a, b, c)")
        try:
            database.execute(statement if re.match(r"(?i)\s*explain\b", statement) else f"EXPLAIN {statement}")
        except sqlite3.Error as error:
            if re.search("syntax error|incomplete input|unrecognized token", str(error)):
                return str(error)
    return ""


def statements(text: str) -> list[str]:
    """The statements of a script that Lark can parse."""
    found = [tree.meta for tree in judge().parse(text).find_data("statement")]
    return [text[meta.start_pos : meta.end_pos] for meta in found]


@pytest.fixture(scope="module")
def vocabulary() -> sg.Vocabulary:
    tokens: list[bytes | None] = [bytes([b]) for b in range(256)]
    tokens += [f" {word}".encode() for word in [*KEYWORDS, *PIECES]]
    return sg.Vocabulary.from_bytes([*tokens, None], eos_ids=[len(tokens)])


@pytest.fixture(scope="module")
def index(vocabulary: sg.Vocabulary) -> sg.Index:
    return sg.compile(sg.Grammar(grammars.path("sql"), lexer="basic", strict=True), vocabulary, eager=False)
