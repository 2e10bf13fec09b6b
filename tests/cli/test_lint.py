"""`structgen lint`: the notation's name, line and column of what is not read, JSON, SARIF, exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner, Result

from structgen.cli.app import app
from structgen.cli.lint import NOTATIONS
from structgen.definitions.values import DIALECT_FLAGS, EBNF_DIALECTS

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.ebnf", 'root ::= "a" b\nb ::= "b"\n', "gbnf: sg.Gbnf(...)"),
        ("b.ebnf", 'root ::= a.b\na.b ::= a.b "x" | "y" (= "z")\n', 'xgrammar: sg.Ebnf(..., dialect="xgrammar")'),
        ("c.txt", 'root ::= ("a"\n | "b"){,3}\n', 'transformers-cfg: sg.Ebnf(..., dialect="transformers-cfg")'),
        ("d.lark", 'start: "a" <|end|>\n', "lark: sg.Grammar(...)"),
        ("e.txt", "?start: A\nA.2: /a/\n", "lark: sg.Grammar(...)"),
        ("f.regex", r"(?P<year>\d{4})" + "\n", "re: sg.Regex(...)"),
        ("g.regex", r"(?<year>\d{4})\cJ", 'ecma: sg.Regex(..., dialect="ecma")'),
        ("h.regex", r"[\w--\d]\z", 'rust: sg.Regex(..., dialect="rust")'),
        ("i.json", '{"type": "object"}', "json_schema: sg.JsonSchema(...)"),
        ("i.txt", '{"properties": {"a": {"format": "date"}}}', "json_schema: sg.JsonSchema(...)"),
        ("j.json", '{"format": "date"}', "json_schema: sg.JsonSchema(...)"),
        ("k.tag.json", '{"type": "any_text"}', "structural_tag: sg.StructuralTag(...)"),
        ("m.words", "# yes::=no\nyes\nno\n", "words: sg.Regex.choice([...])"),
        ("l.txt", '{"structures": [{"begin": "<a>", "schema": {}, "end": "</a>"}], "triggers": ["<a"]}',
          "structural_tag: sg.StructuralTag(...)"),
        ("j.json",
         '{"type": "structural_tag", "format": {"type": "any_text"}}', "structural_tag: sg.StructuralTag(...)"),
    ],
)  # fmt: skip
def test_the_notation_is_named(run: Run, name: str, text: str, said: str) -> None:
    Path(name).write_text(text)
    found = run("lint", name)
    assert found.stdout == f"{name}: {said}\n"
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.ebnf", 'root ::= "a"\n  Token("b")\n', "a.ebnf:2:9: xgrammar: expected the id of a token. Write"),
        ("b.gbnf", 'root ::= "a" | \n"b" c\n', "b.gbnf:2:5: gbnf: the rule c is not defined. Add c ::= ..."),
        ("c.regex", r"a(?=b", "c.regex:1:2: re: missing ), unterminated group. To match"),
        ("d.lark", 'start: p & q\np: "a"\n', "d.lark:1:10: lark: & outside of a terminal is not read. "),
        ("k.lark", 'start: a\na[capture]: A\nA: "x" B\n B: /b/ & /c/', "k.lark:3:1: lark: the terminal matches"),
        ("l.lark", "%declare A\n start: A", "l.lark:2:1: lark: the terminal A is declared"),
        ("m.lark", 'start: x\nx[lazy]: /a/ y\ny: "b" y?', "m.lark:2:1: lark: Rules aren't allowed inside terminals"),
        ("e.json", '{"type": "obj"}', "e.json:1:10: json_schema: "),
        ("f.json", '{"format": "date", "type": "obj"}', "f.json:1:28: json_schema: "),
        ("g.json", "", "g.json:1:1: json_schema: the text is not JSON"),
        ("h.json", "[" * 100_000, "h.json: json_schema: the JSON is nested too deeply"),
        ("i.ebnf", "", "i.ebnf:1:1: gbnf: the grammar has no rules"),
        ("j\033[31m.ebnf", "", r"j\x1b[31m.ebnf:1:1: gbnf: the grammar has no rules"),
    ],
)
def test_what_is_not_read_has_a_place_and_a_spelling(run: Run, name: str, text: str, said: str) -> None:
    Path(name).write_text(text)
    found = run("lint", name)
    assert found.stdout.startswith(said), found.stdout
    assert found.exit_code == 1


def test_all_notations_of_another_engine_are_told(run: Run) -> None:
    Path("a.lark").write_text('start: p & q & r\n// r & t\nx: "s & t" & t\n')
    found = json.loads(run("lint", "a.lark", "--json").stdout)
    assert [(each["line"], each["column"]) for each in found[0]["problems"]] == [(1, 10), (1, 14), (3, 12)]


#: Definitions that are read, by how a file's name ends; each is mutilated.
WHOLE = {
    ".lark": """%llguidance {"no_forcing": true}
%import common (WS, INT)
%import common.NUMBER -> NUM
%declare _X
start: statement{1,3} p::0 | sep{item, ","} -> all
statement: NAME "=" expr ";" -> assign
    | "print" "(" [expr ("," expr)*] ")" ";"
?expr: item (("+"|"-") item)*
item: NUM | NAME | "q"i | CLS~2 | %json {"type": "integer"}
sep{x, s}: x (s x)*
p::_: "a" p::set_bit(0) %if bit_clear(0)
    | "" %if bit_set(0)
held[capture="h", lazy]: /.*?/ ":"
hot[temperature=0.5]: NUM
inner: <[3-5]> %lark {
  start: "x" | "y"
}
words: %regex {"substring_words": "a b c"}
NAME.2: /[a-z_]\\w*/
CLS: "x" & /[a-z]/ | ~/q/ | "a".."f"
%ignore WS
""",
    ".gbnf": """# objects
root ::= object | array
object ::= "{" ws (pair ("," ws pair)*)? "}"
pair ::= string ":" ws [0-9]+
array ::= "[" object{1,3} "]"
string ::= "\\"" ([^"\\\\\\x7F] | "\\\\" ["\\\\bfnrt])* "\\""
ws ::= [ \\t\\n]*
""",
    ".ebnf": """root ::= TagDispatch(("<a>", body), loop_after_dispatch=true, excludes=("x"))
body ::= ([a-z] | "\\u00e9"){2,4} rest (="b")
rest[max_chars=3] ::= Regex("[0-9]+") | ("a" | "b")*
""",
    ".regex": r"(?:[a-z]+|\d{2,3})*(?=y)[^\]x]\x41?(?P<n>q|w)\.",
    ".json": """{
  "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1, "pattern": "^[0-9-]+$", "format": "date"},
    "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    "ref": {"$ref": "#/$defs/x"}
  },
  "patternProperties": {"^x": {"type": "integer", "multipleOf": 2}},
  "required": ["name"], "dependentRequired": {"tags": ["ref"]},
  "$defs": {"x": {"oneOf": [{"const": 1}, {"type": ["null", "boolean"]}]}}
}""",
    ".tag.json": """{"type": "structural_tag", "format": {"type": "sequence", "elements": [
  {"type": "const_string", "value": "a"},
  {"type": "tag", "begin": "<t>",
   "content": {"type": "json_schema", "json_schema": {"type": "integer"}}, "end": "</t>"},
  {"type": "triggered_tags", "triggers": ["<f="], "tags": [
    {"begin": "<f=a>", "content": {"type": "regex", "pattern": "[a-z]+"}, "end": "</f>"}
  ], "at_least_one": true}
]}}""",
}
#: What is put in, besides tokens of the text itself: signs of all notations.
STRAY = [*"()[]{}|\"/*+?:~&%<>@,=.\\xX1!^$\n'#_;é\0", "::=", "->", "..", "%ignore", "%import", "//"]
TOKEN = re.compile(r'\s+|"(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\\n])+/|\w+|::=|->|\.\.|.', re.DOTALL)


def mutilated(text: str, rng: Random) -> str:
    """A text with one token out, in, or in another's place."""
    tokens = TOKEN.findall(text)
    at, kept = rng.randrange(len(tokens)), rng.randrange(2)
    stray = rng.choice((["", ""], [rng.choice(STRAY)], [rng.choice(tokens)]))[0]
    return "".join((*tokens[:at], stray, *tokens[at + 1 - kept :]))


@pytest.mark.parametrize("ending", WHOLE)
def test_what_is_mutilated_is_refused_with_a_place_and_a_remedy(run: Run, ending: str) -> None:
    rng = Random(ending)
    whole = WHOLE[ending]
    names = [f"{number}{ending}" for number in range(40)]
    for name in names:
        Path(name).write_text(mutilated(whole, rng))
    Path(f"whole{ending}").write_text(whole)
    *found, intact = json.loads(run("lint", *names, f"whole{ending}", "--json").stdout)
    assert intact["problems"] == [], "it is read as it stands"
    assert sum(bool(each["problems"]) for each in found) > 10
    for each in found:
        text = Path(each["path"]).read_text()
        lines = text.split("\n")
        for problem in each["problems"]:
            assert 1 <= problem["line"] <= len(lines), (problem, text)
            assert 1 <= problem["column"] <= len(lines[problem["line"] - 1]) + 1, (problem, text)
            assert problem["remedy"], (problem, text)


def test_json_sarif_and_a_notation_that_is_asked_for(run: Run) -> None:
    Path("good.regex").write_text("a")
    Path("bad.regex").write_text("(?<=a")
    found = run("lint", "good.regex", "bad.regex", "--json", "--sarif", "out.sarif", "--notation", "rust")
    assert found.exit_code == 1
    good, bad = json.loads(found.stdout)
    assert [good["path"], good["notation"], good["problems"]] == ["good.regex", "rust", []]
    assert good["spelling"] == 'sg.Regex(..., dialect="rust")'
    assert bad["problems"][0]["column"] == 1
    assert "look-around" in bad["problems"][0]["what"]
    (result,) = json.loads(Path("out.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert "look-around" in result["message"]["text"]


def test_bad_usage(run: Run) -> None:
    assert run("lint", "absent.regex").exit_code == 2
    assert run("lint").exit_code == 2
    Path("a.regex").write_bytes(b"\xff")
    assert run("lint", "a.regex").exit_code == 2
    assert run("lint", "a.regex", "--notation", "perl").exit_code == 2
    Path("a.toml").write_text("[definitions.a]\nregex = 'a'\n")
    assert run("lint", "a.toml").exit_code == 2
    others = {"gbnf", "lark", "json_schema", "structural_tag", "words"}
    assert {*DIALECT_FLAGS, *EBNF_DIALECTS} | others == NOTATIONS.keys()
