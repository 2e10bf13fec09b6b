"""Endings: every prefix of every text has one, few bytes long, whatever the grammar."""

from __future__ import annotations

from random import Random

import pytest
from judges.adversaries import SHIPPED

import structgen as sg
from structgen.budget import Budget
from structgen.correction.endings import shortest_ending
from structgen.correction.path import Path

BUDGET = Budget(seconds=120)

BLOCKS = (
    "def f(a, b=2 or x in a\n        if x > b",
    "class A(B):\n    try:\n        x\n  ",
    "class A(B):\n    x: int = 3\n    @y\n    def y(self):\n        try:\n            yield self.x\n        except (",
    "x: in", "x: no", "def i", "class A: whil",
    "if a:\n  if b:\n    pass\n  else",
    "for xa(\n        ifz > b\n            #eturn [x, 'a']\n   #n {1: 2, **b}\n#elf.x\n      ",
    "x = f'{a[b:",
    "'''abc",
    "from . imp",
    "match x:\n  case {'a': [",
)


@pytest.mark.parametrize("name", SHIPPED)
def test_any_prefix_can_be_completed(name: str) -> None:
    target, random = SHIPPED[name], Random(name)
    index = sg.compile(target.definition(), sg.Vocabulary.bytewise(), eager=False, budget=BUDGET)
    texts = [*target.texts, *(BLOCKS if name == "python3" else ())]
    for text in texts:
        for end in {len(text), *random.choices(range(len(text)), k=12)}:
            path = Path(index)
            path.extend(text[:end].encode())
            for ending in (shortest_ending(index, path.config), index.machine.completion(path.config)):
                assert ending is not None, path.text
                assert index.match(path.data + ending).accepted
                assert not target.judge((path.data + ending).decode()), path.data + ending
                assert len(ending) < 80


def test_a_long_way_out_of_blocks_and_brackets_is_found() -> None:
    index = sg.compile(SHIPPED["python3"].definition(), sg.Vocabulary.bytewise(), eager=False, budget=BUDGET)
    path = Path(index)
    blocks = "".join(f"{' ' * column}while x:\n" for column in range(30))
    text = (blocks + " " * 30 + "y = " + "([{1: " * 30).encode()
    assert path.extend(text) == len(text)
    ending = shortest_ending(index, path.config)
    assert ending is not None
    assert ending.count(b"}])") == 30
    assert not SHIPPED["python3"].judge((text + ending).decode())


def test_a_blank_keeps_apart_what_must_be() -> None:
    """What comes right behind an `a` would be another lexeme."""
    grammar = sg.Grammar('start: "a" "b" "end" | "ab" "ab" "ab" "ab" "ab"\n%ignore " "', lexer="basic")
    index = sg.compile(grammar, sg.Vocabulary.bytewise(), eager=False)
    path = Path(index)
    path.extend(b"a")
    assert index.machine.completion(path.config) == b" bend"
    assert shortest_ending(index, path.config) == b" bend"


def test_where_conflicts_were_kept_or_definitions_stand_others_look() -> None:
    kept = sg.Grammar('start: a | b\na: "x" a | "x"\nb: "x" b | "x"', ambiguity="all")
    for grammar in (kept, sg.Grammar('start: "<" value ">"\nvalue: %json {"const": 17}')):
        index = sg.compile(grammar, sg.Vocabulary.bytewise(), eager=False)
        assert index.machine.completion(index.machine.start) is None
        assert shortest_ending(index, index.machine.start) in (b"x", b"<17>")
