"""Shipped grammars as they are loaded the plain way: blanks are removed at random, others judge what is left."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from judges.adversaries import C_TEXTS, GRAPHQL_TEXTS, SQL_TEXTS, gcc_error, graphql_error, sqlite_error
from judges.c_judge import HAS_GCC
from judges.guides import BYTES
from judges.lark_judge import judge, parses
from lark import Lark

import structgen as sg
from structgen import grammars

pytestmark = pytest.mark.filterwarnings("ignore::structgen.errors.GrammarWarning")

SQL = (
    *SQL_TEXTS, "SELECT a FROM t", "INSERT INTO a1 VALUES(1)", "SELECT 1 AS x, 0x1F y, .5 z, x'00' FROM t;",
    "SELECT a - -1, NOT a IS NULL, a -> 'b' FROM t AS u JOIN v USING (a) WHERE a NOT IN (1, 2)",
)  # fmt: skip
C = (
    *C_TEXTS,
    "int x;",
    "unsigned long y = 0x1e + 1, z = 3 - - 2;",
    "int f(void) { int a = sizeof(int) + + 1; return a & & a ? a - -a : a + ++a; }",
    "int g(int a) { goto end; end: return sizeof a * 2 + (a << 1) + (a < - 1); }",
)
GO = (
    "package main\n",
    'package a\n\nimport f "fmt"\n\ntype T struct { a, b int }\n',
    "package a\n\nfunc f(x int, c chan int) int {\n\tif x < - 1 {\n\t\treturn x & ^ 3\n\t}\n\tc <- x + + 1\n"
    "\tgo f(x - - 2, c)\n\tfor i := range x {\n\t\tswitch { case i < x: continue; default: break }\n\t}\n"
    "\tvar y = x & & x\n\treturn y\n}\n",
)
JAVA = (
    "class A { int f(int x) { return (a) - -x; } }",
    "interface I<T> extends J { default T g() { return null; } }",
    "class A { boolean b = x < 1 && y >>> 2 > - 3; List<List<A>> l = new A<>() { }; }",
    "enum E { A, B; void f() throws X { for (var i : l) if (i instanceof A a) i ++; else throw new X(); } }",
    "record R(int a, long ... b) { static final Object o = (A) b; Object p = (a) -> a - - 1, q = A :: new; }",
    "class A { int f(Object o) { return switch (o) { case B(var x) when x < 1 -> 0x1F; default -> 1; }; } }",
)
#: By name: texts, and what is wrong with one, if somebody else can tell.
LANGUAGES: dict[str, tuple[tuple[str, ...], Callable[[str], str] | None]] = {
    "sql": (SQL, sqlite_error),
    "graphql": (GRAPHQL_TEXTS, graphql_error),
    "c": (C, gcc_error if HAS_GCC else None),
    "gnu_c": (C, None),
    "go": (GO, None),
    "java": (JAVA, None),
}


@cache
def basic(name: str) -> Lark:
    if name != "java":
        return judge(grammars.path(name), "basic")
    with pytest.MonkeyPatch.context() as patch:  # to look for terminals that collide would take a minute
        patch.setattr("lark.lexer.has_interegular", False)
        return Lark(grammars.path(name).read_text(encoding="utf-8"), parser="earley", lexer="basic")


#: Strings, and one blank.
_PIECES = re.compile(r'''"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|( )|.''', re.DOTALL)


def glued(text: str, draw: Random) -> str:
    """A text without some of the blanks between its lexemes."""
    return "".join("" if each[1] and draw.random() < 0.3 else each[0] for each in _PIECES.finditer(text))


@pytest.mark.nightly
@pytest.mark.parametrize("name", LANGUAGES)
def test_blanks_that_are_gone(name: str) -> None:
    texts, error = LANGUAGES[name]
    ways = grammars.load(name), sg.Grammar(grammars.path(name))
    indexes = [sg.compile(way, BYTES, eager=False, budget=sg.Budget(seconds=200)) for way in ways]
    draw, verdicts = Random(name), set[bool]()
    for turn in range(80):
        text = glued(texts[turn % len(texts)], draw)
        right = parses(basic(name), text)
        verdicts.add(right)
        for index in indexes:
            assert index.match(text.encode()).accepted == right, text
        if error is not None and (right or name != "c"):  # gcc takes a name alone for a declaration
            assert (not error(text)) == right, (text, error(text))
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sql", "SELECTa FROM t"), ("sql", "INSERT INTOa1 VALUES(1)"), ("sql", "SELECT 1from t"),
        ("sql", "SELECT * FROM (xselect c, rom t, select f)"), ("c", "intx;"), ("c", "int return;"),
        ("c", "int y = sizeof(int)++1;"),
        ("graphql", "queryX{a}"), ("graphql", "enum E { true }"), ("go", "packagemain\n"),
        ("go", "package a\nvar x = a<-b\n"), ("go", "package a\nvar func int\n"), ("java", "classA {}"),
    ],
)  # fmt: skip
def test_what_no_lexer_splits(name: str, text: str) -> None:
    definition = sg.Grammar(grammars.path(name))
    assert not sg.compile(definition, BYTES, eager=False, budget=sg.Budget(seconds=200)).match(text.encode()).accepted


@pytest.mark.parametrize("name", grammars.names())
def test_a_text_has_the_options_of_its_file(name: str) -> None:
    text, file = sg.Grammar(grammars.path(name).read_text("utf-8")), sg.Grammar(grammars.path(name))
    for option in ("start", "lexer", "ambiguity", "postlex"):
        assert getattr(text, option) == getattr(file, option)


@pytest.mark.parametrize("definition", [
    sg.Grammar(grammars.path("graphql"), lexer="contextual"),
    sg.Grammar(grammars.path("graphql").read_text("utf-8") + "// mine", lexer="contextual"),
    sg.Grammar('start: "=>"? document\n%import graphql.document'),
], ids=["by hand", "text", "import"])  # fmt: skip
def test_that_the_contextual_lexer_splits_words_is_said(definition: sg.Grammar) -> None:
    with pytest.warns(sg.errors.GrammarWarning, match='graphql is written for lexer="basic"; the context'):
        sg.compile(definition, BYTES, eager=False)
    basic = sg.Grammar(definition.text, lexer="basic")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not sg.compile(basic, BYTES, eager=False).match(b"queryX{a}").accepted


def test_load() -> None:
    python = grammars.load("python3")
    assert (python.start, python.lexer, python.postlex) == ("file_input", "contextual", sg.Indentation())
    assert grammars.load("java") == sg.Grammar(grammars.path("java"), lexer="basic", ambiguity="all")
    assert grammars.load("c", lexer="contextual").lexer == "contextual"
    assert grammars.load("graphql", start="executable_document").start == "executable_document"
    index = sg.compile(grammars.load("c", extra='%extend typedef_name: "node"'), BYTES, eager=False)
    assert index.match(b"node *next(node *n) { return n; }").accepted
    assert not index.match(b"nodex *next(node *n) { return n; }").accepted
    with pytest.raises(KeyError, match="there is no grammar 'cobol'"):
        grammars.load("cobol")
