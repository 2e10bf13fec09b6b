"""The grammars of JSON, arithmetic and Markdown replies: Lark, Python and a Markdown parser judge them."""

from __future__ import annotations

import ast
import json
import re
from random import Random

import pytest
from judges.guides import BYTES
from judges.lark_judge import agrees, changed, judge, parses, vocabulary_of, written
from lark import Tree
from markdown_it import MarkdownIt

import structgen as sg
from structgen import grammars

each_lexer = pytest.mark.parametrize("lexer", ["contextual", "basic"])


def index_of(name: str, lexer: str = "contextual", vocabulary: sg.Vocabulary = BYTES) -> sg.Index:
    return sg.compile(sg.Grammar(grammars.path(name), lexer=lexer, strict=True), vocabulary, eager=False)


# -- JSON -----------------------------------------------------------------------------------------------------

JSON_LETTERS = '[]{}",:\\ue/ 0019-+.EaA\ttrufls\n\x01\x7féN'
JSON_TEXTS = (
    '{"a": [1, -0.5e+10, true], "\\u00e9\\n": null, "": {}}',
    " [[], {}, [0, 10E2, 1.25], false]\r\n",
    '"\\ud800 \\/\\b\\f é\x7f"',
    '{"k": {"k": {"k": [{}]}}}',
)


def is_json(text: str) -> bool:
    """What `json.loads` says, but for the three words that RFC 8259 does not have."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


@each_lexer
def test_json_as_lark_reads_it(lexer: str) -> None:
    found = agrees(grammars.path("json"), JSON_LETTERS, lexer=lexer, texts=JSON_TEXTS)
    assert min(found.values()) > 20, found


@each_lexer
def test_json_is_what_the_standard_library_reads(lexer: str) -> None:
    random = Random(lexer)
    index = index_of("json", lexer, vocabulary_of(JSON_LETTERS, random, JSON_TEXTS))
    judged = {False: 0, True: 0}
    for i in range(150):
        text, guide = written(index, random, 25)
        whole = text.decode("utf-8", "ignore")
        if whole.encode() == text:
            assert guide.is_accepting() == is_json(whole), whole
        for base in (whole, JSON_TEXTS[i % len(JSON_TEXTS)]):
            for _ in range(8):
                sample = changed(base, JSON_LETTERS, random)
                verdict = is_json(sample)
                assert index.match(sample.encode()).accepted == verdict, sample
                judged[verdict] += 1
    assert min(judged.values()) > 100, judged


@pytest.mark.parametrize(
    "text",
    ["NaN", "-Infinity", "[Infinity]", "01", "1.", ".5", "+1", "-", "1e", '"\t"', '"\\x41"', "'a'", "[1,]",
     '{"a":1,}', "{a:1}", "[1 2]", "truefalse", "// a\n1", "\ufeff1", "\u00a01", "\f1", "", " "],
    ids=ascii,
)  # fmt: skip
@each_lexer
def test_what_is_no_json(text: str, lexer: str) -> None:
    assert not index_of("json", lexer).match(text.encode()).accepted


# -- arithmetic -----------------------------------------------------------------------------------------------

SUM_LETTERS = "0012.e+-**/%(), aef\t"
SUM_TEXTS = ("-a ** -2 ** +e * (1 + 2.5e-3) % f(a, 1, (e)) - 00 / .5", "f() + ae(f(1.), -1e5)", "((a)) - - 1 ** 2")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow)


def is_arithmetic(text: str) -> bool:
    """Whether it is an expression of Python, and one of the kinds that the grammar has."""
    if re.search(r",\s*\)|\)\s*\(", text):  # a comma before the parenthesis closes, a call of what is in parentheses
        return False
    try:
        expression = ast.parse(text.strip(" \t"), mode="eval").body
    except SyntaxError:
        return False
    return all(map(_is_known, ast.walk(expression)))


def _is_known(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, OPERATORS)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.UAdd | ast.USub)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and not node.keywords
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    return isinstance(node, ast.Name | ast.Load | ast.operator | ast.unaryop)


@each_lexer
def test_arithmetic_as_lark_reads_it(lexer: str) -> None:
    found = agrees(grammars.path("arithmetic"), SUM_LETTERS, lexer=lexer, texts=SUM_TEXTS)
    assert min(found.values()) > 20, found


@each_lexer
def test_arithmetic_is_what_python_reads(lexer: str) -> None:
    random = Random(lexer)
    index = index_of("arithmetic", lexer, vocabulary_of(SUM_LETTERS, random, SUM_TEXTS))
    judged = {False: 0, True: 0}
    for i in range(150):
        text, guide = written(index, random, 15)
        assert guide.is_accepting() == is_arithmetic(text.decode()), text
        for base in (text.decode(), SUM_TEXTS[i % len(SUM_TEXTS)]):
            for _ in range(8):
                sample = changed(base, SUM_LETTERS, random)
                verdict = is_arithmetic(sample)
                assert index.match(sample.encode()).accepted == verdict, sample
                judged[verdict] += 1
    assert min(judged.values()) > 100, judged


def test_what_binds_how_strongly() -> None:
    """The tree that Lark builds and the one of Python are of the same shape."""
    parser = judge(grammars.path("arithmetic"), "contextual")
    tree = parser.parse("-a ** -2 - b * c % d ** e ** f + 1")
    shape = [str(node.data) for node in tree.iter_subtrees_topdown()]  # type: ignore[no-untyped-call]
    names = "start add subtract minus power minus remainder multiply power power"
    assert shape == names.split()


def test_names_can_be_limited() -> None:
    text = '%import arithmetic (start, NAME)\n%override NAME: "x" | "sqrt"\n%ignore " "'
    index = sg.compile(sg.Grammar(text), BYTES, eager=False)
    assert index.match(b"sqrt(x) + 2 * x").accepted
    assert not index.match(b"sqrt(y)").accepted
    assert index_of("arithmetic").match(b"if * lambda").accepted, "any word may be a name"


# -- Markdown -------------------------------------------------------------------------------------------------

REPLY_LETTERS = "`~a#- \n\n`jsonb."
REPLY_TEXTS = (
    "Here `it` is:\n\n```json\n{}\n```\nand ~~that~~ is all.",
    "```\n   a\n\n    ```\n  ``\n``a\n```",
    "```c++\n\n \n b `` ```\n```\n\n- a\n\n```\n# a\n```\n\n",
)

#: A reply whose block holds JSON, and one whose block holds a little SQL.
JSON_REPLY = r"""
%import markdown (start, code, OPEN)
%override OPEN: "```json\n"
%import json (value, WS)
%override code: value
%ignore WS
"""
SQL_REPLY = r"""
%import markdown (start, code, OPEN)
%override OPEN: "```sql\n"
%override code: "select"i names "from"i NAME ["where"i NAME "=" VALUE] ";"
names: "*" | NAME ("," NAME)*
NAME: /[a-z_]+/
VALUE: /[0-9]+/ | /'[^'\n]*'/
%ignore /[ \t]+|\n/
"""
JSON_REPLIES = (
    'So:\n```json\n{"a":\n [1, 2]} \n\n```\nbye',
    "```json\n1\n```",
    "a\n\n```json\n[]\n```\n\n```json\n2\n```\n",
)
SQL_REPLIES = (
    "Try\n```sql\nselect a, b from t\n  where a = 'x';\n\n```\n`a`",
    "```sql\nSELECT * from a;\n```\n```sql\nselect a from b where a=1 ;\n```",
)


def blocks(text: str) -> list[tuple[str, str]] | None:
    """The languages and contents of a text's code blocks, by a Markdown parser; None where one never closes."""
    found = [token for token in MarkdownIt().parse(text) if token.type == "fence"]
    lines = text.split("\n")
    if not all(t.map and t.level == 0 and lines[t.map[1] - 1].strip(" ") == t.markup for t in found):
        return None
    return [(token.info, token.content) for token in found]


@pytest.mark.parametrize(
    ("source", "letters", "texts"),
    [
        (grammars.path("markdown"), REPLY_LETTERS, REPLY_TEXTS),
        (JSON_REPLY, '`~[]{}",:1 \n\njsontruefal', JSON_REPLIES),
        (SQL_REPLY, "`~selctfrom*,;='1 \n\nabsqlWHERE", SQL_REPLIES),
    ],
    ids=["plain", "json", "sql"],
)
def test_replies_as_lark_reads_them(source: str, letters: str, texts: tuple[str, ...]) -> None:
    found = agrees(source, letters, lexer="contextual", texts=texts, rounds=30)
    assert min(found.values()) > 20, found


def test_a_markdown_parser_finds_the_blocks_of_a_reply() -> None:
    random = Random(5)
    index = index_of("markdown", vocabulary=vocabulary_of(REPLY_LETTERS, random, REPLY_TEXTS))
    parser = judge(grammars.path("markdown"), "contextual")
    complete = 0
    for i in range(500):
        text, guide = written(index, random, 30)
        whole = text.decode() if guide.is_accepting() else changed(REPLY_TEXTS[i % 3], REPLY_LETTERS, random)
        if not parses(parser, whole):
            continue
        tree = parser.parse(whole)
        found = blocks(whole)
        expected = []
        for block in tree.find_data("block"):
            opening, code = block.children[:2]
            assert isinstance(code, Tree)
            expected.append((str(opening)[3:-1], f"{code.children[0]}\n"))
        assert found is not None, whole
        assert sorted(found) == sorted(expected), whole
        complete += 1
    assert complete > 100


@pytest.mark.parametrize(
    "text",
    ["", "prose\n", "```json\n1", "```json\n1```", "```json\n1\n``", "```json\n```", "```json\n\n```",
     "a ```json\n1\n```", "```json\n1\n```x", "```json\n1\n````", "~~~\n```json\n1\n```\n",
     " a\n```\n1\n```", "\n```\n1\n```", "```\n\n1\n\n```"],
    ids=ascii,
)  # fmt: skip
def test_what_is_no_reply(text: str) -> None:
    assert not index_of("markdown").match(text.encode()).accepted


def test_the_code_in_a_reply_is_held_to_its_grammar() -> None:
    index = sg.compile(sg.Grammar(JSON_REPLY, strict=True), BYTES, eager=False)
    for reply in JSON_REPLIES:
        assert index.match(reply.encode()).accepted
        assert (blocks(reply) or [("", "")])[0][0] == "json"
        assert json.loads((blocks(reply) or [("", "")])[0][1]) is not None
    for broken in ("```json\n{]\n```", "```json\n1 2\n```", "```python\n1\n```", "```json\n1", "prose {\n"):
        assert not index.match(broken.encode()).accepted, broken


def test_space_that_takes_the_line_end_of_the_closing_fence_along() -> None:
    """Why `json.WS` takes line ends one by one."""
    greedy = JSON_REPLY.replace("%ignore WS", r"%ignore /[ \n]+/")
    reply = b"```json\n1 \n```"
    assert sg.compile(sg.Grammar(JSON_REPLY), BYTES, eager=False).match(reply).accepted
    assert not sg.compile(sg.Grammar(greedy), BYTES, eager=False).match(reply).accepted


def test_markdown_is_for_the_contextual_lexer() -> None:
    with pytest.raises(sg.errors.EmptyLanguageError, match="the lexer can read no text"):
        index_of("markdown", "basic")
