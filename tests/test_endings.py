"""Endings over arrays against plain loops that say what they are."""

from __future__ import annotations

import pytest
from grammars import BLOCKS, GRAMMARS, indentation

import structgen as sg
from structgen import grammars
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.compiler import compile_grammar
from structgen.runtime.closure import bits, solve
from structgen.runtime.grammar_tables import GrammarTables

#: A terminal, the classes of bytes before which it ends, whether the text may end there, whether it is loose.
Ending = tuple[int, int, bool, bool]
Named = tuple[list[set[Ending]], list[set[Ending]]]

DEFINITIONS = {
    **{name: sg.Grammar(text) for name, (text, _) in GRAMMARS.items()},
    **{f"{name}, basic": sg.Grammar(text, lexer="basic") for name, (text, _) in GRAMMARS.items()},
    "words": sg.Grammar('start: (A | B | C)*\nA: /a+/\nB: /b+a/\nC: "c" | /cc+b/\n'),
    "blocks": sg.Grammar(BLOCKS, postlex=indentation(5)),
    "markdown": sg.Grammar(grammars.path("markdown")),
    "C": sg.Grammar(grammars.path("c"), lexer="basic"),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_endings(name: str) -> None:
    tables = compile_grammar(DEFINITIONS[name], Meter(Budget(seconds=100)))
    found, states = tables.endings, range(len(tables.table))
    names = list(zip(found.terminal, found.breaks, found.is_final, found.loose, strict=True))
    assert len(names) == len(set(names)) == len(found)
    here, future = endings(tables)
    assert [named(found.here[state], names) for state in states] == here
    assert [named(found.future[state], names) for state in states] == future
    assert found.is_loose == all(is_loose for *_, is_loose in names)


def named(members: int, names: list[Ending]) -> set[Ending]:
    return {names[member] for member in bits(members)}


def endings(tables: GrammarTables) -> Named:
    """Sets of endings, here and to come, by lexer state."""
    rows, beats, lapses = tables.table.tolist(), tables.beats.tolist(), tables.lapses.tolist()
    number: dict[tuple[int, int, bool], int] = {}
    own = [0] * len(rows)
    everything = (1 << tables.table.shape[1]) - 1
    for state, terminal, watch in tables.ends.tolist():
        breaks = everything
        if watch >= 0:
            breaks = sum(1 << c for c, target in enumerate(rows[watch]) if target < 0 or not beats[target])
        ending = terminal, breaks, watch < 0 or not lapses[watch]
        own[state] |= 1 << number.setdefault(ending, len(number))
    here = own[:]
    solve(own, [sorted({target for target in row if target >= 0}) for row in rows])
    loose = _loose(tables, [(terminal, breaks) for terminal, breaks, _ in number], rows)
    names = [(*ending, is_loose) for ending, is_loose in zip(number, loose, strict=True)]
    return [named(each, names) for each in here], [named(each, names) for each in own]


def _loose(tables: GrammarTables, found: list[tuple[int, int]], rows: list[list[int]]) -> list[bool]:
    """By ending: whether something that is ignored can follow, and everything can follow that,
    in each context that comes next.

    A comment up to the end of the line is followed by a line end, and that by anything.
    """
    ignored = int.from_bytes(tables.ignored.astype("<u4").tobytes(), "little")
    breaks_of: dict[int, list[int]] = {}
    for terminal, breaks in found:
        breaks_of.setdefault(terminal, []).append(breaks)
    # By context: the classes of bytes that begin what is ignored and can be followed by anything, and those that each
    # terminal can begin with that is not ignored.
    separators: list[int] = []
    others: list[list[int]] = []
    for start in tables.starts.tolist():
        first = _first(tables, rows[start])
        others.append([classes for terminal, classes in first.items() if not ignored >> terminal & 1])
        separators.append(0)
        for terminal in bits(ignored):
            if all(breaks & classes for breaks in breaks_of.get(terminal, ()) for classes in others[-1]):
                separators[-1] |= first.get(terminal, 0)
    contexts = _contexts_after(tables, ignored)
    return [
        all(
            breaks & separators[c] or (ignored >> terminal & 1 and all(breaks & classes for classes in others[c]))
            for c in contexts[terminal]
        )
        for terminal, breaks in found
    ]


def _first(tables: GrammarTables, row: list[int]) -> dict[int, int]:
    """By terminal: the classes of bytes that it can begin with where the lexer's state has a row."""
    found: dict[int, int] = {}
    for c, target in enumerate(row):
        for terminal in bits(tables.futures[target] if target >= 0 else 0):
            found[terminal] = found.get(terminal, 0) | 1 << c
    return found


def _contexts_after(tables: GrammarTables, ignored: int) -> list[set[int]]:
    """By terminal: the contexts that the lexer can read on in.

    What is ignored leaves the context as it is. So does a line end within brackets, of which one was opened before.
    """
    found: list[set[int]] = [set() for _ in range(tables.members)]
    for _, terminal, target in tables.shift.tolist():
        found[terminal].add(int(tables.context[target]))
    for terminal in bits(ignored):
        found[terminal] = set(range(len(tables.starts)))
    later = set(tables.context[1:].tolist())  # no terminal leads back to the parser's first state
    for terminal in range(tables.end + 1, tables.members):
        found[terminal] = later
    return found
