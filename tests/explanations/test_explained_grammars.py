"""What an explanation says of grammars, against Lark's own `UnexpectedToken.accepts`."""

from __future__ import annotations

import json
import random
from pathlib import Path as FilePath

import numpy as np
import pytest
from judges.lark_judge import changed, judge, parses, refused
from judges.random_lark import LETTERS, random_grammar
from lark import Lark
from lark.exceptions import LarkError

import structgen as sg
from structgen import grammars
from structgen.correction.path import Path
from structgen.errors import FormatError
from structgen.explanations.grammar_findings import expected_terminals
from structgen.runtime.grammar.lexer_threads import Thread
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser.provenance import Provenance
from structgen.storage.container import pack, unpack

VOCABULARY = sg.Vocabulary.bytewise()

PROGRAM = """
typedef struct point { int x; double y[3]; } point_t;
static int f(const char *s, int n) { for (int i = 0; i < n; i++) { if (s[i] == 'a') return i << 2; } return -1; }
int main(void) { point_t p = { 1, { 2.0, 3e1 } }; p.x += sizeof(int) ? f("abc", 3) : 0; do { p.x--; } while (p.x); }
"""

QUERIES = "SELECT a, count(*) FROM t WHERE a > 3 AND b LIKE 'x%' GROUP BY a ORDER BY 1 DESC LIMIT 5;"


def compare(index: sg.Index, parser: Lark, text: str, found: dict[str, int]) -> None:
    """Explain a text, and compare with what Lark accepts where it refuses it."""
    explanation = sg.explain(index, text)
    assert explanation.accepted == parses(parser, text) == index.match(text.encode()).accepted, text
    error = refused(parser, text)
    if error is None:
        return
    data = text[: error[0]].encode()
    path = Path(index)
    if path.extend(data) < len(data):
        return  # no text goes on so, though Lark sees it only later: lexemes that nothing can follow
    assert expected_terminals(index, path.config) == error[1] >= error[2], text
    (reason,) = explanation.reasons
    assert explanation.consumed >= len(data), text
    if explanation.consumed == len(data):
        assert set(reason.where) <= error[1], text  # fewer where a lexeme can't end there
        found["alike"] += set(reason.where) == error[1]
        found["as in the error"] += error[1] == error[2]
    found["compared"] += 1


@pytest.mark.parametrize("name", ["ARITHMETIC", "JSON", "STATEMENTS"])
@pytest.mark.parametrize("lexer", ["contextual", "basic"])
def test_expected_terminals_are_larks(name: str, lexer: str) -> None:
    import judges.grammars as sources

    source, draw = getattr(sources, name), random.Random(name)
    index = sg.compile(sg.Grammar(source, lexer=lexer), VOCABULARY, eager=False)
    parser, found = judge(source, lexer), dict.fromkeys(("compared", "alike", "as in the error"), 0)
    texts = {"ARITHMETIC": "1 + 2 * ( 3 - 4 ) / - 5", "JSON": '{"a": [1, null, true, "x"], "b": {}}',
             "STATEMENTS": "if a then b = f(c, 3 > d) ; else { e = 1 >> 2 ; }"}  # fmt: skip
    for _ in range(150):
        compare(index, parser, changed(texts[name], texts[name], draw), found)
    assert found["compared"] > 10
    assert found["alike"] > found["compared"] / 4


def test_expected_terminals_of_random_grammars_are_larks() -> None:
    draw, found = random.Random(5), dict.fromkeys(("compared", "alike", "as in the error"), 0)
    for _ in range(40):
        source = random_grammar(draw)
        try:
            parser = judge(source, "basic")
            index = sg.compile(sg.Grammar(source, lexer="basic"), VOCABULARY, eager=False)
        except (LarkError, sg.Error):
            continue
        for _ in range(20):
            compare(index, parser, "".join(draw.choices(LETTERS, k=draw.randrange(8))), found)
    assert found["compared"] > 50


@pytest.mark.parametrize(("name", "text"), [("c", PROGRAM), ("sql", QUERIES)])
def test_expected_terminals_of_shipped_grammars_are_larks(name: str, text: str) -> None:
    file = grammars.path(name)
    index = sg.compile(sg.Grammar(file), VOCABULARY, eager=False)
    parser, draw = judge(file, "contextual"), random.Random(1)
    found = dict.fromkeys(("compared", "alike", "as in the error"), 0)
    words = text.split()
    for _ in range(60):
        at = draw.randrange(len(words))
        compare(index, parser, " ".join([*words[:at], draw.choice(words), *words[at:]]), found)
    assert found["compared"] > 10


def test_rules_and_terminals_are_named_with_their_places() -> None:
    index = sg.compile(sg.Grammar('start: list\nlist: "[" ITEM ("," ITEM)* "]"\nITEM: /[a-z]+/'), VOCABULARY)
    found = sg.explain(index, "[a,]")
    assert found.reasons[0].where == ("ITEM",)
    assert "ITEM (line 3, column 1)" in found.reasons[0].what
    assert (
        "list (line 2, column 1): LSQB ITEM . (…)* RSQB" in found.writing
        or "list (line 2, column 1)" in found.writing
    )
    assert found.expected == ("[a-z]",)
    assert found.completion == "a]"


def test_where_only_keywords_may_stand_other_letters_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    index, steps = sg.compile(sg.Grammar(grammars.path("c")), VOCABULARY, eager=False), 0
    follow = GrammarMachine._follow

    def counted(machine: GrammarMachine, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...]:
        nonlocal steps
        steps += 1
        return follow(machine, threads, data)

    guide = sg.Guide(index)
    assert all(map(guide.advance, b"struct s { const "))
    monkeypatch.setattr(GrammarMachine, "_follow", counted)
    found = sg.explain(guide, b"name", completion=False)
    assert {"_Atomic", "_Bool", "double"} <= {*found.expected}
    assert 0 < steps < 1500  # 11,642 where they are


def test_a_grammar_whose_imports_are_gone_still_has_its_terminals(tmp_path: FilePath) -> None:
    (tmp_path / "words.lark").write_text("WORD: /[a-z]+/")
    definition = sg.Grammar('start: WORD "!"\n%import words.WORD', import_paths=(str(tmp_path),))
    index = sg.Index.from_buffer(sg.compile(definition, VOCABULARY).to_bytes())
    found = sg.explain(index, "a?")
    assert found.reasons[0].where == ("BANG",)
    assert "definition=" in found.notes[0]
    assert not sg.explain(index, "a?", definition=definition).notes


def test_names_are_in_files_and_missed_where_they_are_not(tmp_path: FilePath) -> None:
    """Those of an index from before have none."""
    index = sg.compile(sg.Grammar(grammars.path("arithmetic")), VOCABULARY, eager=False)
    index.save(tmp_path / "new.sgi")
    meta, sections = unpack((tmp_path / "new.sgi").read_bytes())
    (tmp_path / "old.sgi").write_bytes(pack(meta, {name: each for name, each in sections.items() if name != "names"}))
    new, old = (sg.Index.load(tmp_path / f"{name}.sgi") for name in ("new", "old"))
    known, without = sg.explain(new, b"(1+*2"), sg.explain(old, b"(1+*2")
    assert known == sg.explain(index, b"(1+*2")
    assert known.writing == "atom (line 27, column 2): LPAR . sum RPAR"
    assert not without.writing
    assert "no names" in without.notes[0]
    assert known.reasons[0].where == without.reasons[0].where


@pytest.mark.parametrize(
    "change",
    [
        {"rules": ["a b"]}, {"kernels": ["1 x"]}, {"kernels": ["-1"]}, {"kernels": [" 1"]}, {"rules": [3]},
        {"terminals": [{"name": 1}]}, {"more": []},
    ],
    ids=str,
)  # fmt: skip
def test_names_of_strangers_are_checked(change: dict[str, object]) -> None:
    good: dict[str, object] = {"terminals": [{"name": "A"}], "rules": ["a: A A", "b: "], "kernels": ["1", "", "99 2"]}
    found = Provenance.from_section(np.frombuffer(json.dumps(good).encode(), np.uint8), "file")
    assert [list(found.begun(state)) for state in range(4)] == [[(0, "a", "A . A")], [], [], []]
    with pytest.raises(FormatError):
        Provenance.from_section(np.frombuffer(json.dumps(good | change).encode(), np.uint8), "file")
