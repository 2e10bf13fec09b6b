"""The grammars of JSON with comments, GraphQL and TOML: Lark judges them, and a parser of each language.

These are `json` without the comments, graphql-core and tomllib; for JSON with comments VS Code's, too, where node
finds it.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from judges.adversaries import SHIPPED
from judges.guides import BYTES, EACH_BYTE, with_end
from judges.lark_judge import agrees, changed, written

import structgen as sg
from structgen import grammars


class Language(NamedTuple):
    """What random texts of a language are made of, the files that hold it, and the lexers for its grammar."""

    letters: str
    files: tuple[str, ...]
    lexers: tuple[str, ...]


LANGUAGES = {
    "jsonc": Language(
        '[]{}",:\\ue/*/ *019-+.Ea\ttrufls\n\r\x01é', ("tsconfig*.json", "*.jsonc"), ("contextual", "basic")
    ),
    "graphql": Language(
        '{}()[]$!@|&=:",...\\u{D8c}019-eE#\n\r\t abon_é\ufeff\x01', ("*.graphql", "*.gql"), ("basic", "contextual")
    ),
    "toml": Language("[]{}=.,\"'#\\uUD8 0129-_+:TZabenixft\n\r\t\x01é", ("*.toml",), ("contextual",)),
}
HERE = [name for name in LANGUAGES if name in SHIPPED]  # tomllib comes with Python 3.11
each = pytest.mark.parametrize("name", HERE)

#: Folders with files of others, with `:` between them.
FILES = os.environ.get("STRUCTGEN_FILES", "")


def index_of(name: str, vocabulary: sg.Vocabulary = BYTES) -> sg.Index:
    definition = sg.Grammar(grammars.path(name), lexer=LANGUAGES[name].lexers[0], strict=True)
    return sg.compile(definition, vocabulary, eager=False)


def words_of(name: str) -> list[str]:
    """Words, numbers and signs of the texts, and the words in quotes of the grammar."""
    source = " ".join(SHIPPED[name].texts)
    return re.findall(r"\w+|[^\w\s]+", source) + re.findall(r'"(\w+)"', grammars.path(name).read_text())


@pytest.mark.parametrize(("name", "lexer"), [(name, lexer) for name in HERE for lexer in LANGUAGES[name].lexers])
def test_as_lark_reads_it(name: str, lexer: str) -> None:
    found = agrees(grammars.path(name), LANGUAGES[name].letters, lexer=lexer, texts=SHIPPED[name].texts)
    assert min(found.values()) > 20, found


@each
def test_as_its_own_parser_reads_it(name: str) -> None:
    random, target, letters = Random(name), SHIPPED[name], LANGUAGES[name].letters
    pieces = [*letters, *words_of(name), *(f" {word}" for word in words_of(name))]
    index = index_of(name, with_end(dict.fromkeys([*(piece.encode() for piece in pieces), *EACH_BYTE])))
    complete: Counter[bool] = Counter()
    judged: Counter[bool] = Counter()
    for i in range(50):
        text, guide = written(index, random, random.choice([3, 10, 20, 40]))
        whole = text.decode("utf-8", "ignore")
        if whole.encode() == text:
            assert guide.is_accepting() != bool(target.judge(whole)), whole
            complete[guide.is_accepting()] += 1
        for base in (whole, target.texts[i % len(target.texts)]):
            for _ in range(6):
                sample = changed(base, letters, random)
                verdict = not target.judge(sample)
                assert index.match(sample.encode()).accepted == verdict, sample
                judged[verdict] += 1
    assert min(complete[True], judged[True], judged[False]) > 2, (complete, judged)


@pytest.mark.skipif(not FILES, reason="STRUCTGEN_FILES names no folders with files of others")
@each
def test_files_of_others(name: str) -> None:
    index, read = index_of(name), 0
    paths = (
        path for folder in FILES.split(":") for files in LANGUAGES[name].files for path in Path(folder).rglob(files)
    )
    for path in paths:
        text = path.read_bytes().decode("utf-8", "replace")
        assert index.match(text.encode()).accepted != bool(SHIPPED[name].judge(text)), path
        read += 1
    assert read, f"there are none with {' or '.join(LANGUAGES[name].files)}"


# -- JSON with comments -----------------------------------------------------------------------------------------

#: How many errors VS Code's parser finds in each text of a list; nothing where node does not find the parser.
_VS_CODE = """
let parse; try { ({ parse } = require("jsonc-parser")) } catch { process.exit(3) }
const errors = text => { const found = []; parse(text, found, { allowTrailingComma: true }); return found.length };
console.log(JSON.stringify(JSON.parse(require("fs").readFileSync(0, "utf8")).map(errors)));
"""


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_as_vs_code_reads_it() -> None:
    random, target, letters = Random(9), SHIPPED["jsonc"], LANGUAGES["jsonc"].letters
    texts = [changed(random.choice(target.texts), letters, random) for _ in range(2000)]
    found = subprocess.run(["node", "-e", _VS_CODE], input=json.dumps(texts), capture_output=True, text=True)
    if found.returncode == 3:
        pytest.skip("node does not find jsonc-parser")
    index = index_of("jsonc")
    for text, errors in zip(texts, json.loads(found.stdout), strict=True):
        assert index.match(text.encode()).accepted == (not errors), text
        assert bool(target.judge(text)) == bool(errors), text


NO_JSONC = ["", "// a", "[,]", "{,}", "[1,,]", "{'a': 1}", "{a: 1}", "# a\n1", "/* 1", "/*/ 1", "1 /", "1/**/2",
            '"a" "b"', '{"a":,}', "1,", "\ufeff1", "// a\u2028 1", "NaN"]  # fmt: skip


@pytest.mark.parametrize("text", NO_JSONC, ids=ascii)
def test_what_is_no_json_with_comments(text: str) -> None:
    assert SHIPPED["jsonc"].judge(text)
    assert not index_of("jsonc").match(text.encode()).accepted


def test_comments_without_the_last_comma() -> None:
    """The recipe of the file."""
    source = "\n".join(re.findall(r"^//     (.*)$", grammars.path("jsonc").read_text(), re.MULTILINE))
    index = sg.compile(sg.Grammar(source, strict=True), BYTES, eager=False)
    assert index.match(b'// a\n[1, {"b": /* c */ []}]').accepted
    for text in SHIPPED["jsonc"].texts:
        assert index.match(text.encode()).accepted == (not re.search(r",\s*[\]}]", text)), text


# -- GraphQL ----------------------------------------------------------------------------------------------------

KEYWORDS = re.findall(r'^[A-Z]+: "([a-z]+)"$', grammars.path("graphql").read_text(), re.MULTILINE)
LOCATIONS = re.findall(
    r"[A-Z]{4,}(?:_[A-Z]+)*", "".join(re.findall(r"LOCATION\.1: (.*)", grammars.path("graphql").read_text()))
)

#: With a word in place of the sign.
PLACES = """
{~}
{a:~(~:~)@~}
{...~}
{...on~{a}}
query~($~:~=~){a}
query~{a}
fragment~on~{a}
type~implements~&~@~(~:[~]){~(~:~=~):~}
extend enum~{~}
enum~{~@~}
union~=|~|~
input~{~:~}
directive@~(~:~)repeatable on|FIELD
directive@a on~
schema{~:~}
"""


def test_keywords_are_names_where_they_may_be() -> None:
    index, found = index_of("graphql"), Counter[bool]()
    assert len(KEYWORDS) == 19
    assert len(LOCATIONS) == 19
    for place in PLACES.split("\n")[1:-1]:
        for word in [*KEYWORDS, *LOCATIONS, "DIRECTIVE_DEFINITIO", "a1_", "queries"]:
            text = place.replace("~", f" {word} ")
            verdict = not SHIPPED["graphql"].judge(text)
            assert index.match(text.encode()).accepted == verdict, text
            found[verdict] += 1
    assert min(found.values()) > 50, found


@pytest.mark.parametrize("text", [
    "", "{}", "{a{}}", "query", "query{}", "{a(){b}}", "query(){a}", "{a(b:$1)}", "{a(b:01)}", "{a(b:1.)}",
    "{a(b:1a)}", "{a(b:.5)}",
    "{a(b:1.5.5)}", "{a(b:0xF)}", "{...}", "{.. .a}", "type A{}", "type A{a:B}extend type A", "extend union U",
    "type A {a}",
    "type A implements", "type A implements B C", "union U = ", "enum E {null}", '"d" {a}', '"d" extend type A @x',
    'query($a: A = $b) {a}', "input I {a: A = {b: $c}}", "{a(b:\"\\ud800\")}", '{a(b:"\\u{110000}")}',
    '{a(b:"\\u{000000041}")}',
    '{a(b:"\n")}', '{a(b:"""a)}', "fragment on on A {a}", "directive @a on B", "schema {a: B}", "type A type B {a",
], ids=ascii)  # fmt: skip
def test_what_is_no_graphql(text: str) -> None:
    assert SHIPPED["graphql"].judge(text)
    assert not index_of("graphql").match(text.encode()).accepted


def test_a_selection_set_behind_a_type_is_its_fields() -> None:
    index = index_of("graphql")
    for text, verdict in (
    ("type A {a}", False), ("type A {a: B} {a}", True), ("scalar A {a}", True), ("union U = A {a}", True),
    ("enum E {a}", True),
    ("enum E {a} {b}", True), ("enum E query {b}", True), ("enum E @x {b: c}", False),
    ("extend schema @a {a}", False),
        ("{a} {b}", True),
    ):  # fmt: skip
        assert index.match(text.encode()).accepted == (not SHIPPED["graphql"].judge(text)) == verdict, text


def test_parts_of_documents() -> None:
    operations = sg.compile(
        sg.Grammar(grammars.path("graphql"), lexer="basic", start="executable_document"), BYTES, eager=False
    )
    assert operations.match(b"query {type} {a} fragment F on A {b}").accepted
    assert not operations.match(b"type A").accepted


def test_what_is_beyond_the_specification_is_left_out() -> None:
    text = "directive @a on DIRECTIVE_DEFINITION"
    assert not SHIPPED["graphql"].judge(text)
    assert not index_of("graphql").match(text.encode()).accepted


# -- TOML -------------------------------------------------------------------------------------------------------

needs_tomllib = pytest.mark.skipif("toml" not in SHIPPED, reason="tomllib comes with Python 3.11")

NO_TOML = [
    "a", "a =", "= 1", "a = 1 b = 2", "a = 1\rb = 2", "[a", "[[a] ]", "[ [a]]", "[a]]", "[]", "[a.]", "a..b = 1",
    "a = [1,,2]",
    "a = [,]", "a = {b = 1,}", "a = {b = 1\n}", "a = {b = 1 # c}", "a = 01", "a = 1__0", "a = _1", "a = 1.",
    "a = .5", "a = 1.e5", "a = +0x1",
    "a = 0X1", "a = +true", "a = True", "a = 1e", "a = 1979-02-29", "a = 0000-01-01", "a = 1979-04-31",
    "a = 1979-05-27T24:00:00",
    "a = 07:32", "a = 07:32:60", "a = 1979-05-27T07:32:00+24:00", "a = 07:32:00Z", "a = 1979-05-27  07:32:00",
    '"""a""" = 1', "a = 'b\n'",
    'a = "\\x41"', 'a = "\\ud800"', 'a = "\\U00110000"', 'a = """\\ a"""', 'a = """""""""', "a = \x0b1", "# \x01",
    "\ufeffa = 1", "é = 1",
]  # fmt: skip


@needs_tomllib
@pytest.mark.parametrize("text", NO_TOML, ids=ascii)
def test_what_is_no_toml(text: str) -> None:
    assert SHIPPED["toml"].judge(text)
    assert not index_of("toml").match(text.encode()).accepted


@needs_tomllib
def test_every_day_of_the_calendar() -> None:
    index = index_of("toml")
    for year in (1, 4, 99, 100, 400, 1900, 1979, 2000, 2024, 2100, 9999):
        for month in range(14):
            for day in (0, 1, 28, 29, 30, 31, 32):
                text = f"a = {year:04}-{month:02}-{day:02}"
                assert index.match(text.encode()).accepted != bool(SHIPPED["toml"].judge(text)), text


@needs_tomllib
def test_keys_and_tables_are_not_counted() -> None:
    """What the file says that it leaves to the reader: tomllib refuses these, and as far as syntax goes does not."""
    tomllib = importlib.import_module("tomllib")
    index = index_of("toml")
    for text in (
        "a = 1\na = 2",
        "[a]\n[a]",
        "a = {b = 1, b = 2}",
        "a = 1\n[a.b]",
        "a = []\n[[a]]",
        "[a]\nb = 1\n[a.b]",
        "a.b = 1\n[a]",
    ):
        with pytest.raises(ValueError, match=r"Cannot|Duplicate|[Oo]verwrite"):
            tomllib.loads(text)
        assert not SHIPPED["toml"].judge(text)
        assert index.match(text.encode()).accepted
