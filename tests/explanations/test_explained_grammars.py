"""What an explanation says of grammars, against Lark's own `UnexpectedToken.accepts`."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path as FilePath
from typing import Any, Literal

import lark.lexer
import numpy as np
import pytest
from judges.lark_judge import changed, judge, parses, refused
from judges.random_lark import LETTERS, random_grammar
from lark import Lark
from lark.exceptions import LarkError
from lark.indenter import DedentError, PythonIndenter
from lark.parsers.grammar_analysis import RulePtr
from lark.parsers.lalr_analysis import Reduce

import structgen as sg
from structgen import grammars
from structgen.correction.path import Path
from structgen.errors import FormatError
from structgen.explanations.grammar_findings import expected_terminals
from structgen.runtime.grammar.lexer_threads import Thread
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser.provenance import Provenance, WrittenTerminal
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
    index = sg.compile(sg.Grammar(file, lexer="contextual"), VOCABULARY, eager=False)
    parser, draw = judge(file, "contextual"), random.Random(1)
    found = dict.fromkeys(("compared", "alike", "as in the error"), 0)
    words = text.split()
    for _ in range(60):
        at = draw.randrange(len(words))
        compare(index, parser, " ".join([*words[:at], draw.choice(words), *words[at:]]), found)
    assert found["compared"] > 10


def states_of(parser: Lark, text: str, end: int) -> list[frozenset[Any]]:
    """The items of the states on the stack of Lark's parser behind the token that ends at a byte, the top first.

    What it would reduce whatever came next is reduced.
    """
    interactive: Any = parser.parse_interactive(text)
    for token in interactive.lexer_thread.lex(interactive.parser_state):
        interactive.feed_token(token)
        if token.end_pos == end:  # behind the whole text there are dedents
            break
    stack = list(interactive.parser_state.state_stack)
    moves = interactive.parser_state.parse_conf.parse_table.states
    while len(actions := {(action, to) for action, to in moves[stack[-1]].values()}) == 1:
        ((action, rule),) = actions
        if action is not Reduce:
            break
        del stack[len(stack) - len(rule.expansion) :]
        stack.append(moves[stack[-1]][rule.origin.name][1])
    found = [frozenset(each for each in stack[-1] if each.index)]
    for state in stack[-2::-1]:
        todo = [RulePtr(each.rule, each.index - 1) for each in found[-1]]
        for item in todo:  # grows as it goes
            assert item in state
            if not item.index:
                todo += [each for each in state if not each.is_satisfied and each.next == item.rule.origin
                         and each not in todo]  # fmt: skip
        found.append(frozenset(each for each in todo if each.index))
    return found


def rules_of(states: list[frozenset[Any]]) -> list[set[str]]:
    """The rules that states are in the middle of, those of each state together, each rule once."""
    found: list[set[str]] = []
    seen: set[Any] = set()
    for state in states:
        items = [each for each in state if 0 < each.index < len(each.rule.expansion) and each.rule not in seen]
        seen.update(each.rule for each in items)
        names = [(each.rule.origin.name, [s.name for s in each.rule.expansion], each.index) for each in items]
        found.append({
            f"{origin}: {' '.join([*written[:at], '.', *written[at:]])}" for origin, written, at in names
            if not origin.startswith(("$", "__"))
        })  # fmt: skip
    return [{re.sub(r"__\w+_(star|plus)_\d+", "(…)*", rule) for rule in rules} for rules in found if rules]


def are_first(named: list[str], rules: list[set[str]]) -> bool:
    """Whether some rules are those of the uppermost states, in this order; of the last state it may be a part."""
    for each in rules:
        if not named:
            return True
        here, named = named[: len(each)], named[len(each) :]
        if not (set(here) <= each and len(set(here)) == len(here)):
            return False
    return not named


WRITTEN = {
    "json": '{"a": [1, 2, {"b": [], "c": [null, {"d": "e"}]}, [[3]]], "f": true}',
    "c": PROGRAM.replace("point_t p", "struct point p"),
    "sql": QUERIES.replace("FROM t", "FROM t JOIN (SELECT b, c FROM u, v WHERE x IN (1, 2, 3)) USING (a, b)"),
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "lexer", "with_kernels"),
    [
        ("json", "contextual", True), ("json", "basic", False), ("c", "contextual", True), ("c", "basic", False),
        ("sql", "contextual", False), ("sql", "basic", True),
    ],
)  # fmt: skip
def test_rules_that_are_written_are_those_of_larks_stack(
    name: str, lexer: Literal["contextual", "basic"], with_kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the machine keeps a simpler stack, that accepts the same."""
    monkeypatch.setattr(GrammarMachine, "_uses_kernels", lambda machine: with_kernels)
    file, text = grammars.path(name), WRITTEN[name]
    index = sg.compile(sg.Grammar(file, lexer=lexer), VOCABULARY, eager=False)
    parser = judge(file, lexer, debug=True)
    assert compare_rules(index, parser, text) > 20


def compare_rules(index: sg.Index, parser: Lark, text: str) -> int:
    """Ask behind each token of a text, and compare with Lark's stack; how many tokens there are."""
    interactive: Any = parser.parse_interactive(text)
    ends = []
    for token in interactive.lexer_thread.lex(interactive.parser_state):
        interactive.feed_token(token)
        ends += [token.end_pos] if token.strip() else []
    for end in ends:
        explanation = sg.explain(index, text[:end] + "\0", completion=False)
        assert explanation.consumed == len(text[:end].encode())
        named = [re.sub(r" \(line \d+, column \d+\)", "", rule) for rule in explanation.writing.split("; ") if rule]
        rules = rules_of(states_of(parser, text, end)[:24])
        assert len(named) == min(6, sum(map(len, rules))), text[:end]
        assert are_first(named, rules), text[:end]
    return len(ends)


LINES = """
@d
def f(a, b=1):
    if a > b:
        return [a, (b, 2),
  3]
    elif b:
        x = {1: 2}
        for i in range(3):

            pass
    else: return None
class A(B):
    def g(self):
        with open("a") as h:
            h.read()
        return lambda y: y + 1
"""


@pytest.fixture(scope="module")
def python3() -> tuple[sg.Index, Lark]:
    """The shipped grammar, whose blocks Lark's own indenter tells."""
    file = grammars.path("python3")
    options: dict[str, Any] = {"start": "file_input", "postlex": PythonIndenter()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lark.lexer, "has_interegular", False)  # it compares all terminals, for minutes
        parser = judge(file, "contextual", debug=True, **options)
    return sg.compile(sg.Grammar(file, **options), VOCABULARY, eager=False), parser


@pytest.mark.nightly
def test_rules_of_blocks_are_those_of_larks_stack(python3: tuple[sg.Index, Lark]) -> None:
    assert compare_rules(*python3, LINES) > 60


def test_expected_terminals_of_blocks_are_larks(python3: tuple[sg.Index, Lark]) -> None:
    """Where Lark refuses another token than a line end, which is several to it.

    The end of the text is one token to structgen: Lark has dedents before it.
    """
    index, parser = python3
    draw, compared = random.Random(3), 0
    pieces = ["1", " ", "\n", ")", "x ", "def", "\n  ", ":", "=", "    ", "\n        y", "in ", '"', "(", ""]
    for _ in range(80):
        at = draw.randrange(len(LINES))
        text = LINES[:at] + draw.choice(pieces) + LINES[at + draw.randrange(3) :]
        try:
            error = refused(parser, text)
        except DedentError:
            continue
        if error is None or text[error[0] : error[0] + 1] == "\n":
            continue
        path, data = Path(index), text[: error[0]].encode()
        if path.extend(data) == len(data):
            ends = {"$END"} if parses(parser, text[: error[0]]) else set()
            assert expected_terminals(index, path.config) == error[1] | ends, text
            compared += 1
    assert compared > 20


def test_rules_are_named_behind_special_tokens() -> None:
    source = 'start: <think> list\nlist: "[" [item ("," item)*] "]"\nitem: list | /[0-9]/'
    tokens = [bytes([byte]) for byte in range(256)]
    vocabulary = sg.Vocabulary.from_bytes([*tokens, None, None], eos_ids=[257], special_tokens={"<think>": 256})
    guide = sg.Guide(sg.compile(sg.Grammar(source), vocabulary, eager=False))
    for token_id in (256, *b"[1,[2"):
        assert guide.advance(token_id)
    found = sg.explain(guide, "?")
    assert found.writing.startswith("list (line 2, column 1): LSQB item . ")
    assert not found.notes


def test_rules_and_terminals_are_named_with_their_places() -> None:
    index = sg.compile(sg.Grammar('start: list\nlist: "[" ITEM ("," ITEM)* "]"\nITEM: /[a-z]+/'), VOCABULARY)
    found = sg.explain(index, "[a,]")
    assert found.reasons[0].where == ("ITEM",)
    assert "ITEM (line 3, column 1)" in found.reasons[0].what
    assert (
        "list (line 2, column 1): LSQB ITEM . (…)* RSQB" in found.writing or "list (line 2, column 1)" in found.writing
    )
    assert found.expected == ("[a-z]",)
    assert found.completion == "a]"


def test_where_only_keywords_may_stand_other_letters_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    index, steps = sg.compile(sg.Grammar(grammars.path("c"), lexer="contextual"), VOCABULARY, eager=False), 0
    follow = GrammarMachine._follow_byte

    def counted(machine: GrammarMachine, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        nonlocal steps
        steps += 1
        return follow(machine, threads, byte)

    guide = sg.Guide(index)
    assert all(map(guide.advance, b"struct s { const "))
    monkeypatch.setattr(GrammarMachine, "_follow_byte", counted)
    found = sg.explain(guide, b"name", completion=False)
    assert {"_Atomic", "_Bool", "double"} <= {*found.expected}
    assert 0 < steps < 1500  # 11,642 where they are


def test_what_is_told_at_a_glance_is_what_single_bytes_tell() -> None:
    """Letters that must follow, and bytes within a lexeme, of which the parser's stack is not asked."""
    for name, text in WRITTEN.items():
        index: Any = sg.compile(sg.Grammar(grammars.path(name), lexer="contextual"), VOCABULARY, eager=False)
        machine: GrammarMachine = index.machine
        state, told = machine.byte_state(machine.start), 0
        for byte in text.encode():
            for each in range(0, 256, 5):
                assert machine._follow_byte(state, each) == machine._follow(state, bytes([each]))
            letters, behind = machine.letters(state, 40)
            here = state
            for letter in letters:
                assert not machine.may_stop(here)
                following = list(machine.following(here))
                assert letter == min(each for each, _ in following)
                assert len(following) <= 2
                (here,) = {after for _, after in following}
            assert here == behind
            told += len(letters)
            state = machine._follow(state, bytes([byte]))
        assert state
        assert told


def test_a_grammar_whose_imports_are_gone_still_has_its_names(tmp_path: FilePath) -> None:
    (tmp_path / "words.lark").write_text("WORD: /[a-z]+/")
    definition = sg.Grammar('start: WORD "!"\n%import words.WORD', import_paths=(str(tmp_path),))
    index = sg.Index.from_buffer(sg.compile(definition, VOCABULARY).to_bytes())
    found = sg.explain(index, "a?")
    assert found.reasons[0].where == ("BANG",)
    assert found.writing == "start (line 1, column 1): WORD . BANG"
    assert not found.notes
    assert sg.explain(index, "a?", definition=definition) == found


def test_names_are_in_files_and_missed_where_they_are_not(tmp_path: FilePath) -> None:
    """Those of an index from before have none."""
    index = sg.compile(sg.Grammar(grammars.path("arithmetic")), VOCABULARY, eager=False)
    index.save(tmp_path / "new.sgi")
    meta, sections = unpack((tmp_path / "new.sgi").read_bytes())
    (tmp_path / "old.sgi").write_bytes(pack(meta, {name: each for name, each in sections.items() if name != "names"}))
    new, old = (sg.Index.load(tmp_path / f"{name}.sgi") for name in ("new", "old"))
    known, without = sg.explain(new, b"(1+*2"), sg.explain(old, b"(1+*2")
    assert known == sg.explain(index, b"(1+*2")
    places = "sum (line 10, column 2)", "atom (line 27, column 2)"
    assert known.writing == f"{places[0]}: sum PLUS . product; {places[1]}: LPAR . sum RPAR"
    assert not without.writing
    assert "no names" in without.notes[0]
    assert known.reasons[0].where == without.reasons[0].where


COLUMNS = {"terminals": "A", "texts": [None], "patterns": ["a+"], "rules": "a: A A\nb: ", "kernels": "1\n\n99 2"}
LISTED = {"terminals": [{"name": "A"}], "rules": ["a: A A", "b: "], "kernels": ["1", "", "99 2"]}


@pytest.mark.parametrize(
    ("good", "change"),
    [
        (COLUMNS, {"rules": "a b"}), (COLUMNS, {"kernels": "1 x"}), (COLUMNS, {"kernels": "-1"}),
        (COLUMNS, {"kernels": "9" * 5000}), (COLUMNS, {"rules": 3}), (COLUMNS, {"texts": []}),
        (COLUMNS, {"texts": [1]}), (COLUMNS, {"terminals": "A\nA"}), (COLUMNS, {"more": []}),
        (LISTED, {"rules": ["a b"]}), (LISTED, {"kernels": ["1 x"]}), (LISTED, {"terminals": [{"name": 1}]}),
        (LISTED, {"more": []}),
    ],
    ids=lambda each: ",".join(each),
)  # fmt: skip
def test_names_of_strangers_are_checked(good: dict[str, object], change: dict[str, object]) -> None:
    """Also as older files have them."""
    found = Provenance.from_section(np.frombuffer(json.dumps(good).encode(), np.uint8), "file")
    assert [list(found.begun([state])) for state in range(4)] == [[(0, "a", "A . A")], [], [], []]
    assert found.terminal("A") == WrittenTerminal("A", None, "a+" if good is COLUMNS else None)
    assert found.terminal("B") is None
    with pytest.raises(FormatError):
        Provenance.from_section(np.frombuffer(json.dumps(good | change).encode(), np.uint8), "file")


def test_names_of_older_files_say_the_same(tmp_path: FilePath) -> None:
    index = sg.compile(sg.Grammar(grammars.path("arithmetic")), VOCABULARY, eager=False)
    meta, sections = unpack(index.to_bytes())
    names = json.loads(sections["names"].tobytes())
    terminals = zip(names["terminals"].split("\n"), names["texts"], names["patterns"], strict=True)
    listed = {
        "terminals": [{"name": name, "text": text, "pattern": pattern} for name, text, pattern in terminals],
        "rules": names["rules"].split("\n"),
        "kernels": names["kernels"].split("\n"),
    }
    older = {**sections, "names": np.frombuffer(json.dumps(listed).encode(), np.uint8)}
    (tmp_path / "older.sgi").write_bytes(pack(meta, older))
    for text in ("(1+*2", "1 x", "((2)"):
        assert sg.explain(sg.Index.load(tmp_path / "older.sgi"), text) == sg.explain(index, text)
