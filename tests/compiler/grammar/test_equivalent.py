"""Replacements on the parser's stack: which there are, and that no text shows whether they were made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
from judges.guides import with_end
from test_lalr import random_grammar

import structgen as sg
from structgen import grammars
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.compiler import compile_rules
from structgen.compiler.grammar.load.loading import load
from structgen.compiler.grammar.parser import equivalent, lalr
from structgen.errors import DefinitionError, EmptyLanguageError, FormatError
from structgen.runtime.grammar.parser.stack import Parser, Stack
from structgen.runtime.grammar.tables import SYMBOLS, GrammarTables

each_lexer = pytest.mark.parametrize("lexer", ["contextual", "basic"])


def tables_of(text: str, lexer: str = "basic", ambiguity: str = "resolve") -> GrammarTables:
    meter = Meter(Budget())
    return compile_rules(load(text, "start", meter), meter, lexer=lexer, ambiguity=ambiguity)


def plain(tables: GrammarTables) -> GrammarTables:
    """Without replacements."""
    return replace(tables, same=tables.same[:0])


def after(tables: GrammarTables, text: str) -> Stack:
    """The stack after terminals, separated by spaces; strings of the grammar are named by what they are."""
    parser = Parser(tables)
    stack = parser.start
    for name in text.split():
        ((stack, _),) = parser.after(stack, tables.terminals.index(name)).stacks
    return stack


def are_same(tables: GrammarTables, one: str, other: str) -> bool:
    """Whether two texts come to the same stack; without replacements they must not."""
    assert list(after(plain(tables), one).states()) != list(after(plain(tables), other).states())
    return list(after(tables, one).states()) == list(after(tables, other).states())


SUMS = """
    start: sum
    sum: product | sum PLUS product
    product: atom | product TIMES atom
    atom: X | OPEN sum CLOSE | CALL OPEN [sum (COMMA sum)*] CLOSE
    PLUS: "+"
    TIMES: "*"
    X: "x"
    CALL: "f"
    OPEN: "("
    CLOSE: ")"
    COMMA: ","
"""


def test_operands_of_any_level_are_the_same() -> None:
    tables = tables_of(SUMS)
    assert are_same(tables, "X PLUS X TIMES X", "X")
    assert are_same(tables, "X PLUS OPEN X TIMES X", "OPEN X")
    assert are_same(tables, "X TIMES X PLUS", "X TIMES")
    assert not are_same(tables, "OPEN X", "X")
    assert not are_same(tables, "OPEN OPEN X", "OPEN X")


def test_a_list_is_like_its_last_item() -> None:
    tables = tables_of(SUMS)
    assert are_same(tables, "CALL OPEN X COMMA X", "CALL OPEN X")
    assert are_same(tables, "CALL OPEN X COMMA X COMMA OPEN", "CALL OPEN OPEN")
    assert not are_same(tables, "CALL OPEN X COMMA", "CALL OPEN")  # f() is right, f(x,) is not
    assert not are_same(tables, "CALL OPEN X", "OPEN X")  # no comma in brackets that are no call's


def test_the_first_of_a_list_can_be_another_thing() -> None:
    tables = tables_of("""
        start: A head tail+ B
        head: X ONE
        tail: X TWO | Y
        A: "a"
        B: "b"
        X: "x"
        Y: "y"
        ONE: "1"
        TWO: "2"
    """)
    assert are_same(tables, "A X ONE Y X", "A X ONE X")
    assert not are_same(tables, "A X", "A X ONE X")
    assert not are_same(tables, "A X ONE", "A X ONE Y")  # at least one tail


def test_an_else_belongs_to_some_if() -> None:
    tables = tables_of("""
        start: statement
        statement: IF statement | IF statement ELSE statement | X
        IF: "if"
        ELSE: "else"
        X: "x"
    """)
    assert are_same(tables, "IF X ELSE", "")
    assert are_same(tables, "IF IF X ELSE", "IF")
    assert not are_same(tables, "IF X", "X")
    assert not are_same(tables, "IF IF X", "IF X")


def test_merged_lookaheads_are_not_taken_at_their_word() -> None:
    """Before both C and D the inner rule is reduced; what is below decides."""
    tables = tables_of("""
        start: A list C | B list D | A list list D
        list: item | list COMMA item
        item: X | OPEN list CLOSE
        A: "a"
        B: "b"
        C: "c"
        D: "d"
        X: "x"
        COMMA: ","
        OPEN: "("
        CLOSE: ")"
    """)
    assert not are_same(tables, "A X", "B X")
    assert are_same(tables, "A X COMMA OPEN", "A OPEN")
    assert not are_same(tables, "A X X", "A X")


@each_lexer
def test_contexts_are_told_apart(lexer: str) -> None:
    """The same may follow a bracket and a comma, but behind a later x the contextual lexer looks for a DOT, too."""
    tables = tables_of(
        """
        start: OPEN list CLOSE | A later DOT
        list: first | list COMMA later
        first: X | X Z | other
        later: X | X Z | other
        other: Y
        A: "a"
        X: "x"
        Y: "y"
        Z: "z"
        DOT: "."
        COMMA: ","
        OPEN: "("
        CLOSE: ")"
        """,
        lexer,
    )
    assert are_same(tables, "OPEN X COMMA", "OPEN") == (lexer == "basic")
    compared(Random(1), tables, 50)


def test_where_all_moves_are_followed_nothing_is_replaced() -> None:
    assert len(tables_of(SUMS).same)
    assert not len(tables_of(SUMS, ambiguity="all").same)


@cache
def shipped(name: str) -> GrammarTables:
    return tables_of(grammars.path(name).read_text())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("IDENTIFIER PLUS IDENTIFIER SLASH", "IDENTIFIER PLUS"),
        ("RETURN IDENTIFIER EQUAL IDENTIFIER", "RETURN IDENTIFIER"),
        ("SEMICOLON", ""),
        ("SEMICOLON WHILE LPAR IDENTIFIER RPAR IDENTIFIER", "IDENTIFIER"),
        ("IF LPAR IDENTIFIER RPAR SEMICOLON ELSE", "IDENTIFIER COLON"),
        ("IDENTIFIER LPAR IDENTIFIER COMMA IDENTIFIER", "IDENTIFIER LPAR IDENTIFIER"),
        ("RETURN MINUS IDENTIFIER", "MINUS IDENTIFIER"),
    ],
)
def test_statements_of_c(one: str, other: str) -> None:
    before = "INT IDENTIFIER LPAR RPAR LBRACE "
    assert are_same(shipped("c"), before + one, before + other)


def test_statements_of_c_that_are_not_the_same() -> None:
    before = "INT IDENTIFIER LPAR RPAR LBRACE "
    for one, other in [
        ("IDENTIFIER PLUS IDENTIFIER", "IDENTIFIER"),  # (a + b = c) is wrong
        ("IDENTIFIER LPAR IDENTIFIER COMMA", "IDENTIFIER LPAR"),
        ("IF LPAR IDENTIFIER RPAR SEMICOLON", ""),  # an else may follow
        ("LBRACE", ""),
    ]:
        assert not are_same(shipped("c"), before + one, before + other)


def compared(random: Random, tables: GrammarTables, walks: int) -> int:
    """Walk with and without replacements; returns how often the stacks differed."""
    first, second = Parser(plain(tables)), Parser(tables)
    differed = 0
    for _ in range(walks):
        one, other = first.start, second.start
        for _ in range(30):
            accepted = first.accepted(one).terminals
            assert second.accepted(other).terminals == accepted
            for terminal in range(tables.end + 1):
                contexts = [context for _, context in first.after(one, terminal).stacks]
                assert contexts == [context for _, context in second.after(other, terminal).stacks]
                assert bool(contexts) == bool(accepted >> terminal & 1)
            ways = [terminal for terminal in range(tables.end) if accepted >> terminal & 1]
            if not ways:
                break
            terminal = random.choice(ways)
            ((one, _),), ((other, _),) = first.after(one, terminal).stacks, second.after(other, terminal).stacks
            assert other.depth <= one.depth
            differed += list(one.states()) != list(other.states())
    return differed


def layered_grammar(rng: Random) -> str:
    """Levels of operators, and lists, over a few letters: much that is the same, and much that nearly is."""
    levels = rng.randint(1, 4)
    lines = ["start: " + " | ".join(rng.sample(["e0", '"s" e0 ";"', "block", '"r" list'], rng.randint(1, 3)))]
    for i in range(levels):
        ways = [f"e{i + 1}"]
        for letter in rng.sample("opqtu", rng.randint(1, 2)):
            left = rng.choice([f"e{i}", f"e{i}", f"e{i + 1}", "e0"])
            ways.append(f'{left} "{letter}" {rng.choice([f"e{i + 1}", f"e{i + 1}", f"e{i}", "list"])}')
        if rng.random() < 0.3:
            ways.append(f'"n" e{rng.randint(i, levels)}')
        lines.append(f"e{i}: {' | '.join(ways)}")
    lines.append(f'e{levels}: "x" | "(" {rng.choice(["e0", "list"])} ")" | e{levels} "[" list? "]"')
    lines.append(f'list: {rng.choice(["e0", "e1", chr(34) + "x" + chr(34)])} | list "," {rng.choice(["e0", "e1"])}')
    lines.append('block: "{" inner* "}"')
    otherwise = rng.choice(["", '| "i" e0 inner "l" inner'])
    lines.append(f'inner: e0 ";" | "i" e0 inner {otherwise} | block')
    return "\n".join(lines)


def random_tables(seed: int, lexer: str, count: int) -> Iterator[tuple[Random, str, GrammarTables]]:
    random = Random(f"{seed} {lexer}")
    for i in range(count):
        text = random_grammar(random) if i % 3 == 0 else layered_grammar(random)
        try:
            yield random, text, tables_of(text, lexer)
        except (DefinitionError, EmptyLanguageError):
            continue


@each_lexer
@pytest.mark.parametrize("seed", range(2))
def test_random_grammars_accept_the_same(seed: int, lexer: str) -> None:
    differed = replaced = 0
    for random, _, tables in random_tables(seed, lexer, 60):
        differed += compared(random, tables, 12)
        replaced += len(tables.same)
    assert replaced > 60
    assert differed > 60


@pytest.mark.parametrize("name", ["c", "sql", "arithmetic"])
def test_shipped_grammars_accept_the_same(name: str) -> None:
    assert compared(Random(name), shipped(name), 20) > 100


@each_lexer
@pytest.mark.parametrize("seed", range(2))
def test_masks_are_the_same(seed: int, lexer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    letters = "xopqtun()[],;{}ilsryzw"
    tokens = [*letters, *("".join(random.choices(letters, k=random.randint(2, 4))) for _ in range(150))]
    vocabulary = with_end(t.encode() for t in tokens)
    found = 0
    for _, text, tables in random_tables(seed, lexer, 25):
        if not len(tables.same):
            continue
        grammar = sg.Grammar(text, lexer=lexer)
        try:
            index = sg.compile(grammar, vocabulary, eager=False)
        except EmptyLanguageError:
            continue
        with monkeypatch.context() as patch:
            patch.setattr(equivalent, "replacements", lambda *_: [])
            other = sg.compile(grammar, vocabulary, eager=False)
        for _ in range(4):
            one, two = sg.Guide(index), sg.Guide(other)
            for _ in range(12):
                row = one.bitmask()
                assert np.array_equal(row, two.bitmask()), text
                assert one.is_accepting() == two.is_accepting()
                ids = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[: len(tokens)]).tolist()
                if not ids:
                    break
                token = random.choice(ids)
                assert one.advance(token)
                assert two.advance(token)
                found += 1
    assert found > 200


def test_replacements_come_to_an_end() -> None:
    """Each takes something away, or puts a state in the place of one that comes after it."""
    for seed in range(3):
        for _, _, tables in random_tables(seed, "basic", 30):
            symbol_of = {target: symbol for _, symbol, target in (*tables.shift.tolist(), *tables.goto.tolist())}
            for kept, popped, *rest in tables.same.tolist():
                read = [symbol for symbol in rest[:SYMBOLS] if symbol >= 0]
                states = [state for state in rest[SYMBOLS:] if state >= 0]
                assert len(read) <= popped <= len(states) - kept
                if len(read) == popped:
                    assert read != [symbol_of[state] for state in states[kept : kept + popped][::-1]]


@pytest.mark.parametrize(
    ("row", "column", "value"), [(0, 0, 2), (0, 1, 0), (0, 1, 200), (0, 2 + SYMBOLS, 60_000), (-1, 2 + SYMBOLS, -1)]
)
def test_damaged_replacements_are_refused(row: int, column: int, value: int) -> None:
    tables = tables_of(SUMS)
    same = tables.same.copy()
    same[row, column] = value
    assert GrammarTables.from_sections(tables.to_sections(), "here").same.tolist() == tables.same.tolist()
    with pytest.raises(FormatError, match="'lr_same'"):
        GrammarTables.from_sections(replace(tables, same=same).to_sections(), "here")
    with pytest.raises(FormatError, match="'lr_same'"):
        GrammarTables.from_sections(replace(tables, same=same[:, :3]).to_sections(), "here")


@pytest.mark.parametrize(
    "text",
    [
        "start: e0\n"
        + "\n".join(f'e{i}: e{i + 1} | e{i} "o{i}" e{i + 1}' for i in range(150))
        + '\ne150: "x" | "(" e0 ")"',
        "start: x*\nx: " + " | ".join(f'"k{i}" x' for i in range(400)) + ' | "z"',
        "start: " + " ".join("x" for _ in range(1000)) + '\nx: "x" | x "," "x"',
    ],
)
def test_the_work_is_bounded(text: str) -> None:
    """No time is asserted, but more than a second or two would not end within the budget here."""
    meter = Meter(Budget())
    grammar = load(text, "start", meter)
    table = lalr.build(grammar, meter)
    equivalent.replacements(table, [False] * table.states, [0] * table.states, Meter(Budget(seconds=4)))
