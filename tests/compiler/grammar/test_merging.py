"""A lexer with merged states reads as the one that it was made from: compared state by state."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from judges.preferred_matches import random_regex
from tiers import draws

import structgen as sg
from structgen import grammars
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.lexer import scanner
from structgen.compiler.grammar.lexer.leftmost_dfa import by_column
from structgen.compiler.grammar.lexer.minimise import futures, merged
from structgen.compiler.grammar.lexer.positions import ProductStates
from structgen.compiler.grammar.lexer.scanner import Lexer
from structgen.compiler.grammar.load.loading import load


def unhurried() -> Meter:
    return Meter(Budget(seconds=100))


def lexer_of(text: str, contexts: list[int] | None = None, newline: str = "") -> Lexer:
    meter = Meter(Budget())
    grammar = load(text, "start", meter, declared=("DECLARED",))
    matchers = scanner.matchers(grammar.terminals, 0, meter)
    for t, terminal in enumerate(grammar.terminals):
        matcher = matchers[t]
        if terminal.name == newline and matcher is not None:
            matchers[t] = by_column(matcher, 8, 20, meter)
    everything = (1 << len(grammar.terminals)) - 1
    words = scanner.embedded(grammar.terminals, matchers, meter)
    chosen = [everything & context for context in contexts or [everything]]
    return scanner.lexer(chosen, ProductStates(matchers, meter), words, len(matchers) + 1, meter)


class Reader:
    """A lexer byte by byte, without the ends of which no match can stand: as it is defined."""

    def __init__(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.rows = lexer.table[:, lexer.class_of].tolist()
        stands = [self._may_stand(state) for state in range(len(self.rows))]
        self.ends = [[(t, w) for t, w in there if w < 0 or stands[w]] for there in lexer.ends]
        self.future = futures(replace(lexer, ends=self.ends), Meter(Budget()))

    def _may_stand(self, watch: int) -> bool:
        """Whether the text may end, or a byte come, so that the match is not undone."""
        todo = [watch]
        for state in todo:
            if not self.lexer.lapses[state] or -1 in self.rows[state]:
                return True
            todo += {t for t in self.rows[state] if not self.lexer.beats[t]} - set(todo)
        return False

    def after(self, state: int) -> list[int]:
        """The states of a lexeme that can come to something, by byte."""
        return [s if s >= 0 and self.future[s] else -1 for s in self.rows[state]]

    def watched_after(self, state: int) -> list[int]:
        """What is watched, by byte: -2 where it is beaten."""
        return [-2 if s >= 0 and self.lexer.beats[s] else s for s in self.rows[state]] if state >= 0 else [-1] * 256

    def lapses(self, state: int) -> bool:
        return state >= 0 and self.lexer.lapses[state]


def check_the_same(one: Reader, other: Reader) -> None:
    """Follow both: what ends, what lexemes can become, and what beats what is watched."""
    todo = list(dict.fromkeys(zip(one.lexer.starts, other.lexer.starts, strict=True)))
    seen = set(todo)
    watched: dict[tuple[int, int], None] = {}
    for a, b in todo:  # grows as it goes
        assert one.future[a] == other.future[b]
        assert [t for t, _ in one.ends[a]] == [t for t, _ in other.ends[b]]
        watched.update({(w, v): None for (_, w), (_, v) in zip(one.ends[a], other.ends[b], strict=True)})
        for pair in set(zip(one.after(a), other.after(b), strict=True)) - {(-1, -1)} - seen:
            assert min(pair) >= 0
            seen.add(pair)
            todo.append(pair)
    pairs = list(watched)
    for a, b in pairs:  # grows as it goes
        assert one.lapses(a) == other.lapses(b)
        for pair in set(zip(one.watched_after(a), other.watched_after(b), strict=True)) - watched.keys():
            assert (pair[0] == -2) == (pair[1] == -2)
            if pair[0] != -2:
                watched[pair] = None
                pairs.append(pair)


@pytest.mark.parametrize("seed", range(draws(6)))
def test_random_terminals(seed: int) -> None:
    random, before, after = Random(seed), 0, 0
    for _ in range(40):
        lines = [f"{n}{random.choice(['', '', '.1'])}: /{look_ahead(random)}/" for n in "ABC"]
        lines.append(f'D: "{random.choice("ab")}{random.choice("ab")}"')
        try:
            found = lexer_of("\n".join(["start: (A | B | C | D)*", *lines]), [15, 3, 5, 14])
        except sg.errors.DefinitionError:
            continue
        fewer = merged(found, unhurried())
        check_the_same(Reader(found), Reader(fewer))
        before += len(found.table)
        after += len(fewer.table)
    assert after < before


def look_ahead(random: Random) -> str:
    ahead = random.choice(["", "", "(?!{})", "(?={})", "(?!{})(?!b)"])
    return random_regex(random, 2) + ahead.format(random_regex(random, 1))


@pytest.mark.parametrize("name", ["c", "sql", "markdown"])
def test_grammars_that_are_shipped(name: str) -> None:
    found = lexer_of(grammars.path(name).read_text())
    fewer = merged(found, unhurried())
    check_the_same(Reader(found), Reader(fewer))
    assert [s for s, start in enumerate(fewer.starts) if start != 0] == []


def test_a_grammar_without_patterns_has_a_lexer_that_reads_nothing() -> None:
    fewer = merged(lexer_of("start: DECLARED\n%declare DECLARED"), unhurried())
    assert fewer.starts == [0]
    assert (fewer.table == -1).all()


def test_keywords_share_what_they_look_ahead_to() -> None:
    """After each of them no letter may follow, of which there are many: their states are there once."""
    letters = r"(?![a-z\u00df-\u024f\u0370-\u03ff\u0400-\u052f\u3041-\u3096\u4e00-\u9fff])"
    words = ["do", "for", "while", "return", "class", "import"]
    lines = [f"W{i}: /{word}{letters}/" for i, word in enumerate(words)]
    fewer = [
        merged(lexer_of("\n".join([f"start: ({' | '.join(f'W{i}' for i in range(n))})*", *lines[:n]])), unhurried())
        for n in (1, len(words))
    ]
    more = sum(map(len, words[1:]))
    assert len(fewer[0].table) + more == len(fewer[1].table)


def test_columns_matter_where_a_line_may_end() -> None:
    """Of the columns that are told apart each has a few states, however long the terminal is otherwise."""
    newline = r"_NEWLINE: /(\n *(#[a-z]{1,30};)?)*\n *(?! )/"
    found = lexer_of(f'start: (X _NEWLINE)*\nX: "x"\n{newline}', newline="_NEWLINE")
    fewer = merged(found, unhurried())
    check_the_same(Reader(found), Reader(fewer))
    assert len(fewer.table) < 2 * 22 + 60
