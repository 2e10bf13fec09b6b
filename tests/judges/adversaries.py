"""Models that write what is nearly right, and texts for them of each shipped grammar with an outside judge.

Tests take some texts of each, `benchmarks.correct.judged` ten thousand.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from random import Random
from unittest.mock import patch

from graphql import GraphQLSyntaxError, parse
from lark.indenter import PythonIndenter

import structgen as sg
from structgen import grammars

from .c_judge import complaints, syntax_errors
from .sqlite_syntax import split, syntax_error

ALPHABET = "abz019 \t\n\"'{}[]():;,.-_\\/*=<>éß\0"


def mutated(text: str, random: Random, alphabet: str = ALPHABET) -> str:
    """The text with a few random edits at random places, or cut off."""
    for _ in range(random.randrange(4)):
        at = random.randrange(len(text) + 1)
        what = random.randrange(4)
        piece = "".join(random.choices(alphabet, k=random.randrange(1, 4)))
        until = at + random.randrange(1, 6)
        text = text[:at] + ["", piece, piece, ""][what] + ["", text[at:], text[until:], text[until:]][what]
    return text


class Adversary:
    """A model that says mutated ends of right texts, or anything, in pieces of any size."""

    def __init__(self, texts: Sequence[str], random: Random) -> None:
        self._texts, self._random = texts, random

    def __call__(self, prompt: str) -> str | Iterator[str]:
        random = self._random
        kind = random.randrange(6)
        text = random.choice(self._texts)
        if kind == 0:
            reply = "".join(random.choices(ALPHABET, k=random.randrange(40)))
        elif kind == 1:
            reply = mutated(text, random)
        else:
            reply = mutated(text[min(len(prompt), len(text)) :], random)
        return reply if random.randrange(2) else iter(random.choices([list(reply), [reply, ""], []], [8, 4, 1])[0])


@dataclass(frozen=True)
class Target:
    """A definition, right texts of it, and what an outside judge finds wrong with a text; ``""`` for nothing."""

    definition: Callable[[], sg.Definition]
    texts: tuple[str, ...]
    judge: Callable[[str], str]


def json_error(text: str) -> str:
    """What `json.loads` says, but for the three words that RFC 8259 does not have."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return str(error)
    return ""


#: A string of JSON, or a comment.
_COMMENTED = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|([\[{]\s*)?,(?=\s*[\]}])', re.DOTALL)


def jsonc_error(text: str) -> str:
    """What `json.loads` says without the comments, and without the commas before a bracket closes."""
    bare = _COMMENTED.sub(lambda found: found[1] or " ", text)
    return json_error(_LAST_COMMA.sub(lambda found: found[1] or (found[0] if found[2] else ""), bare))


def graphql_error(text: str) -> str:
    """What the parser of the reference implementation's port says."""
    try:
        parse(text)
    except GraphQLSyntaxError as error:
        return str(error)
    return ""


def toml_error(text: str) -> str:
    """What tomllib says, but for keys and tables that are there already: no grammar counts these."""
    parser = import_module("tomllib._parser")
    with (
        patch.object(parser.Flags, "is_", return_value=False),
        patch.object(parser.NestedDict, "append_nest_to_list"),
        patch.object(parser.NestedDict, "get_or_create_nest", side_effect=lambda *_, **__: {}),
    ):
        try:
            parser.loads(text)
        except ValueError as error:
            return str(error)
    return ""


def sqlite_error(text: str) -> str:
    """What SQLite's own parser finds wrong with a script."""
    return "; ".join(filter(None, map(syntax_error, split(text))))


def python_error(text: str) -> str:
    """What CPython's own parser finds wrong with a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as error:
            return str(error)
    return ""


def gcc_error(text: str) -> str:
    """What gcc finds wrong with a file's syntax; nothing where a typedef declares a type, which no grammar knows.

    A name that nobody declared is a variable to the grammar, and to gcc where ``x * y`` begins a statement a type.
    """
    if re.search(r"\btypedef\b", text):
        return ""
    declared: set[str] = set()
    while True:
        found = complaints("".join(f"extern int {name};" for name in sorted(declared)).encode() + text.encode())
        unknown = {name for line in found for name in re.findall(r"unknown type name '(\w+)'", line)} - declared
        if not unknown:
            return "; ".join(syntax_errors(found))
        declared |= unknown


JSON_TEXTS = (
    '{"name": "Ada", "tags": ["a", "b\\n\\u00e9"], "at": {"x": -1.5e+3, "y": 0}, "ok": true, "none": null}',
    '[[], {}, [1, [2, [3.25]]], "", false]',
    '"a \\"quoted\\" string"',
)
SQL_TEXTS = (
    "SELECT name, age FROM people WHERE age > 30 AND name LIKE 'a%' ORDER BY age DESC LIMIT 5;",
    "INSERT INTO people (name, age) VALUES ('Ada', 36), ('Bob', NULL);",
    "UPDATE people SET age = age + 1 WHERE name IN (SELECT name FROM others);",
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT DEFAULT 'x', CHECK (a > 0));",
    "WITH r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) "
    "SELECT CASE n WHEN 1 THEN 'a' ELSE x'00' END FROM r;",
)
PYTHON_TEXTS = (
    "def f(a, b=2):\n    for x in a:\n        if x > b:\n            return [x, 'a']\n    return {1: 2, **b}\n",
    "class A(B):\n    x: int = 3\n    @property\n    def y(self):\n        try:\n            yield self.x\n"
    "        except (E, F) as e:\n            raise\n        finally:\n            pass\n",
    "with open('f') as g, h() as i:\n    print(*g, sep='', end=f'{x!r:>3}')\nlambda x, *y: (x if y else z)\n"
    "import a.b as c  # why\nfrom . import (d, e)\n",
    "async def g():\n  match x:\n    case {'a': [b, *_]} if b: await b\n    case _:\n      del x[1:2]\n",
)
C_TEXTS = (
    "int f(int a) { return a + 1; }\n",
    "struct s { int x; char *y[3]; };\nstatic const unsigned z = 0x1Fu;\nint main(void) { for (int i = 0; i < 3; i++)"
    " { if (i) break; else continue; } return 0; }\n",
    "enum e { A, B = 1 << 2 };\ndouble g(char c) { do { c -= 'x'; } while (c && !(c % 2)); switch (c) { case 1: "
    'default: puts("a\\n"); } return (double)c * .5e3; }\n',
)

JSONC_TEXTS = (
    '// settings\n{\n  "name": "Ada", // who\n  "tags": ["a", "b//c\\n\\u00e9",],\n'
    '  /* "old": 1, */ "at": {"x": -1.5e+3},\n}\n',
    "[[], {}, /**/ [1, [2, [3.25,],],], null, /* a * b **/ false] // last",
    '"/* no comment */"\r\n',
)
GRAPHQL_TEXTS = (
    'query Q($id: ID!, $n: [Int!]! = [1, -2] @d) { user(id: $id, by: {name: "a\\u00e9", on: null}) @include(if: true)'
    " { ...F, ... on User { type: name } ... @skip(if: $no) { fragment } } }\nfragment F on Query { on }",
    '"""A "quoted" \\""" one"""\ntype A implements & B & C @key(fields: "id") { "x" a(b: Int = 0.5e3): [String!] }\n'
    "union U = | A | B extend type A @x # why\nenum E { A B @deprecated }",
    "schema { query: Q mutation: M } directive @d(a: S = {x: [E]}) repeatable on | FIELD | SCALAR "
    'input I { a: Int = 1 "b" b: B } interface N scalar S extend schema @d { subscription: S } { a }',
)
TOML_TEXTS = (
    '# a file\ntitle = "TOML \\u00e9 \\"x\\""\n[owner]\nname.first = \'Tom\' # who\n'
    'dob = 1979-05-27T07:32:00.5-08:00\n\n[[a."b c"]]\n'
    "ports = [ 8_000, # one\n  0xFf,\n]\nt = { x = 1.5e-3, y.z = true }",
    'x = """\\\n  a "" b"""""\r\n"y" = \'\'\'\na\'\'b\'\'\'\n1.2 = [[1, 2], [inf, -nan], [\'a\', "b"]]\n'
    "d = 2024-02-29 # leap\n",
    "a=07:32:00\nb=1979-05-27 07:32:00\nc=0b01\n-=+0.0\n[ x . y ]\n",
)

#: By the name of a shipped grammar.
SHIPPED = {
    "json": Target(lambda: sg.Grammar(grammars.path("json")), JSON_TEXTS, json_error),
    "sql": Target(lambda: sg.Grammar(grammars.path("sql"), lexer="basic"), SQL_TEXTS, sqlite_error),
    "python3": Target(
        lambda: sg.Grammar(grammars.path("python3"), start="file_input", postlex=PythonIndenter()),
        PYTHON_TEXTS,
        python_error,
    ),
    "c": Target(lambda: sg.Grammar(grammars.path("c"), lexer="basic"), C_TEXTS, gcc_error),
    "jsonc": Target(lambda: sg.Grammar(grammars.path("jsonc")), JSONC_TEXTS, jsonc_error),
    "graphql": Target(lambda: sg.Grammar(grammars.path("graphql"), lexer="basic"), GRAPHQL_TEXTS, graphql_error),
}
if sys.version_info >= (3, 11):  # tomllib is there
    SHIPPED["toml"] = Target(lambda: sg.Grammar(grammars.path("toml")), TOML_TEXTS, toml_error)


def invalid(target: Target, index: sg.Index, random: Random) -> tuple[sg.Correction, str]:
    """Have an adversary write, and correct it. Returns what came out, and what the judge finds wrong with it.

    Raises `structgen.correction.values.CorrectionError` where no text comes of it.
    """
    result = sg.correct(Adversary(target.texts, random), index, max_corrections=random.randrange(8))
    return result, target.judge(result.text)
