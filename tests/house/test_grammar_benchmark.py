"""The benchmark of grammars runs, and its peer reads the same language."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from judges.guides import EACH_BYTE, with_bytes, with_end
from typer.testing import CliRunner

import structgen as sg
from benchmarks import vocabularies
from benchmarks.engines import RefusedError
from benchmarks.grammar import __main__ as grammars
from benchmarks.grammar import corpora
from benchmarks.grammar import llguidance as dialect

CALCULATOR = r"""
    start: statement+
    statement: NAME "=" sum ";" | "print" sum ";"
    ?sum: product | sum ("+" | "-") product
    ?product: atom | product ("*" | "/") atom
    atom: /[0-9]+(\.[0-9]+)?/ | NAME | "(" sum ")" | "-" atom | "[" [sum ("," sum)*] "]"
    NAME: /[a-z_]+/
    COMMENT: /\/\/[^\n]*/
    %ignore /\s+/
    %ignore COMMENT
"""
TERM = r"""
    start: "(" start ")" | NUMBER
    NUMBER: /[0-9]/
    COMMENT: /#[^\n]*/
    %ignore /\s+/
    %ignore COMMENT
"""
TEXTS = {
    CALCULATOR: (
        ["a = 1;", " // comment\nprint (1.5 + x) / [2, -3, []];\nb=a;", "printer = 1; print printer;\n // end"],
        ["a = ;", "print = 1;", "print 1", "a = 1.;", "a = (1;", "a = [1,];"],
    ),
    TERM: (["(1)", " ( 1\n)", "((2))\n # end\n #"], ["(1", "()", "# 1", "1 1", "(1)x"]),
}


@pytest.mark.parametrize("text", TEXTS, ids=["calculator", "term"])
def test_the_peer_reads_the_same_texts(text: str) -> None:
    llguidance = pytest.importorskip("llguidance")
    grammar = sg.Grammar(text, lexer="basic")
    vocabulary = with_end(EACH_BYTE)
    index = sg.compile(grammar, vocabulary, eager=False)
    converted = llguidance.LLMatcher.grammar_from_lark(dialect.convert(grammar))
    matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), converted, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    good, bad = TEXTS[text]
    for sample in good + bad:
        read = matcher.deep_copy()
        accepted = read.consume_tokens(list(sample.encode())) and read.is_accepting()
        assert accepted == index.match(sample.encode()).accepted == (sample in good), sample


@pytest.mark.parametrize("terminal", ["/a.*?b/s", "/a(?=b)/", r"/a\b/", "/(?<!a)b/"])
def test_what_the_peer_cannot_say_is_refused(terminal: str) -> None:
    with pytest.raises(RefusedError, match="A has"):
        dialect.convert(sg.Grammar(f'start: A "x"\nA: {terminal}'))
    dialect.convert(sg.Grammar(r'start: A "x"' + "\nA: " + r"/[*?](a|\?\+)[(?=]/"))


def test_types_are_found() -> None:
    text = """
    typedef unsigned long size, *sizes, (*callback)(void *data, int (*then)(void)), table[4];
    typedef struct node { struct node *next; int value; } node;
    typedef int compare (const void *left, void (*) (void *)); // typedef not_this;
    typedef enum { RED, GREEN } colour; size f(node *n);
    """
    found = corpora._declared_types(text)
    assert found == {"size", "sizes", "callback", "table", "node", "compare", "colour"}


def test_statements() -> None:
    texts, left = corpora.sql_texts(corpora.Sources())
    assert len(texts) >= 60
    assert not left
    assert len({text.project for text in texts}) == 5
    assert all(text.text.endswith(";") for text in texts)


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("gcc") is None, reason="C is preprocessed by gcc")
def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = with_bytes("size", " = ")
    (tmp_path / "tiny.vocabulary").write_bytes(vocabulary.to_bytes())
    tiny = vocabularies.NamedVocabulary("tiny", vocabulary.size, tmp_path / "tiny.vocabulary", None)
    monkeypatch.setattr(vocabularies, "load", lambda *_: ([tiny], []))
    for project, name in (("one", "a"), ("two", "b")):
        (tmp_path / project).mkdir()
        (tmp_path / project / f"{name}.c").write_text(
            "typedef unsigned long size;\n"
            f"struct list {{ struct list *next; size {name}; }};\n"
            f"size {name}_length(struct list *l)\n{{\n    size n = 0;\n    while (l) {{ n++; l = l->next; }}\n"
            "    return n;\n}\n"
        )
    options = ["--workload", "c", "--files", str(tmp_path), "--output", str(tmp_path)]
    options += ["--modes", "warmed,unseen,lazy", "--peer-tokens", "1000"]
    done = CliRunner().invoke(grammars.app, options)
    assert done.exit_code == 0, done.output
    (file,) = tmp_path.glob("*-grammars.json")
    found = json.loads(file.read_text())["workloads"]["c"]["tiny"]
    assert found["texts"] == 2
    for mode in found["steps"].values():
        assert mode["structgen"]["texts"] == 2
        assert mode["structgen"]["steps"] == found["tokens"]
    if find_spec("llguidance") is not None:
        assert found["steps"][grammars.MODES["warmed"].name]["llguidance"]["steps"] == found["tokens"]
