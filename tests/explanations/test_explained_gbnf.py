"""What an explanation says of rules in GBNF, against the bytes that the index's machine takes."""

from __future__ import annotations

import random
import re

import pytest

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.gbnf.reader import read
from structgen.correction.path import Path
from structgen.explanations.characters import characters
from structgen.explanations.gbnf_findings import RuleStacks

VOCABULARY = sg.Vocabulary.bytewise()

GRAMMARS = {
    'root ::= item ("," " "? item)*\nitem ::= "a"{2,3} | [0-9]+ | "(" root ")"': "aa, 12,(aaa)",
    'root ::= "é" [à-ü]+ tail\ntail ::= "😀"? "end" | [^a-z]{1,2} tail | ""': "éàü😀end",
    'root ::= (pair "\\n")+\npair ::= key "=" value\nkey ::= [a-z]+\nvalue ::= key | "\\"" [^"]* "\\""': 'ab="x"\nc=d\n',  # noqa: E501
}


def changed(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    piece = draw.choice(["", draw.choice(text), draw.choice("az09é😀 \n")])
    return text[:at] + piece + text[at + draw.randrange(2) :]


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(len(GRAMMARS)))
def test_rules_go_on_with_what_the_machine_takes(number: int) -> None:
    source, text = list(GRAMMARS.items())[number]
    index, grammar = sg.compile(sg.Gbnf(source), VOCABULARY), read(source, Meter(Budget()))
    draw, refused = random.Random(number), 0
    for _ in range(150):
        mutant = changed(changed(text, draw), draw)
        found = sg.explain(index, mutant)
        assert found.accepted == index.match(mutant.encode()).accepted
        if found.accepted:
            continue
        (reason,) = found.reasons
        assert reason.kind == "rule"
        assert reason.where or reason.what == "the text ends there"
        before = mutant.encode()[: found.consumed].decode("utf-8", "ignore")
        path = Path(index)
        assert path.extend(before.encode()) == len(before.encode())
        rules = RuleStacks(grammar, 0)
        stacks = rules.closed([rules.start]) or []
        for character in characters(before.encode()) or []:
            stacks = rules.closed(rules.after(stacks, character)) or []
        wanted = {
            chr(c).encode()[:1] for stack in stacks if stack
            for low, high in rules.wanted(stack) for c in range(low, high + 1) if not 0xD800 <= c < 0xE000
        }  # fmt: skip
        machine = path.machine
        assert wanted == {bytes([byte]) for byte, _ in machine.following(machine.byte_state(path.config))}
        assert (0 in stacks) == path.is_complete
        refused += 1
    assert refused > 30


def test_rules_are_named_with_their_lines() -> None:
    index = sg.compile(sg.Gbnf('root ::= "[" item "]"\n\nitem ::= [a-c] | "xy"'), VOCABULARY)
    found = sg.explain(index, "[d")
    assert found.reasons[0].where == ("item (line 3, column 1)",)
    what = "the rule item (line 3, column 1) goes on with [a-c] (line 3, column 10) or 'xy' (line 3, column 18)"
    assert found.reasons[0].what == what
    assert sg.explain(index, "[ab").reasons[0].where == ("root (line 1, column 1)",)


@pytest.mark.parametrize(("text", "begins"), [("é?", ['"b"', "[0-", '"zz']), ("éb?", ['"b"']), ("ézzz?", ['"zz'])])
def test_pieces_are_named_with_their_places(text: str, begins: list[str]) -> None:
    source = 'root ::= "é" ("b"{2,3} |\n [0-9]* other)+\nother ::= "zz"'
    (reason,) = sg.explain(sg.compile(sg.Gbnf(source), VOCABULARY), text).reasons
    places = re.findall(r"[\]'] \(line (\d+), column (\d+)\)", reason.what)
    lines = source.split("\n")
    assert [lines[int(line) - 1][int(column) - 1 :][:3] for line, column in places] == begins


def test_rules_in_too_many_ways_are_left_out_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structgen.explanations.gbnf_findings._MOST_STACKS", 20)
    index = sg.compile(sg.Gbnf('root ::= (x y){0,30} "c"\nx ::= "a"?\ny ::= "b"?'), VOCABULARY)
    found = sg.explain(index, "d")
    assert (found.accepted, found.reasons[0].kind) == (False, "unknown")
    assert "too many ways" in found.notes[0]
