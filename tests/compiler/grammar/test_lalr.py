"""LALR(1) tables, judged by Lark's: the same states, shifts and reductions, for known and for random grammars."""

from __future__ import annotations

import random
from pathlib import Path

import lark
import pytest
from judges.grammars import GRAMMARS
from lark import Lark
from lark.exceptions import GrammarError
from lark.parsers.lalr_analysis import LALR_Analyzer, Shift
from tiers import draws

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.load.loading import load
from structgen.compiler.grammar.parser import conflicts, lalr
from structgen.errors import BudgetExceededError, DefinitionError
from structgen.runtime.core.digraph import bits

OWN = Path(lark.__file__).parent / "grammars"


def built(text: str, start: str = "start") -> lalr.Lalr:
    grammar = load(text, start, Meter(Budget()), declared=("_INDENT", "_DEDENT"))
    return lalr.build(grammar, Meter(Budget()))


def compare(text: str, start: str = "start") -> lalr.Lalr:
    """Our table and Lark's, state by state along the same moves."""
    ours = built(text, start)
    parser = Lark(text, parser="earley", start=start, lexer="basic")
    theirs = LALR_Analyzer(_conf(parser, start), debug=True)
    theirs.compute_lalr()  # type: ignore[no-untyped-call]
    table, names = theirs.parse_table, ours.symbols.names
    pairs = [(0, table.start_states[start])]
    number = {0: pairs[0][1]}
    for state, other in pairs:  # grows as it goes
        actions = dict(table.states[other])
        moves = ours.shifts[state] | ours.gotos[state]
        if moves.pop(ours.symbols.end, None) is not None:  # Lark has no move on the end of the text
            assert other == table.end_states[start]
            actions.pop("$END", None)  # of a rule that is its own beginning and end; here it is shifted
        for symbol, target in moves.items():
            action, there = actions.pop(names[symbol])
            assert action is Shift
            if target not in number:
                number[target] = there
                pairs.append((target, there))
            assert number[target] == there
        reductions = {names[t]: rule for rule, terminals in ours.reductions[state].items() for t in bits(terminals)}
        assert {name: _shown(rule) for name, (_, rule) in actions.items()} == {
            name: ours.symbols.shown(rule) for name, rule in reductions.items()
        }
    assert len(pairs) == len(table.states)
    return ours


def _conf(parser: Lark, start: str) -> lark.common.ParserConf:
    return lark.common.ParserConf(parser.rules, {}, [start])


def _shown(rule: lark.grammar.Rule) -> str:
    return f"{rule.origin.name}: {' '.join(s.name for s in rule.expansion) or '(empty)'}"


@pytest.mark.parametrize("name", GRAMMARS)
def test_tables_are_larks(name: str) -> None:
    compare(GRAMMARS[name][0])


@pytest.mark.parametrize(("file", "start"), [("python", "file_input"), ("lark", "start")])
def test_larks_own_grammars(file: str, start: str) -> None:
    compare((OWN / f"{file}.lark").read_text(), start)


def random_grammar(rng: random.Random) -> str:
    """A few rules over a few letters; every rule has a way out."""
    names = ["start", *"pqrs"[: rng.randint(1, 4)]]
    lines = []
    for name in names:
        options = ['"' + rng.choice("xyz") + '"']
        for _ in range(rng.randint(1, 3)):
            symbols = [rng.choice([*names, '"x"', '"y"', '"z"', '"w"']) for _ in range(rng.randint(0, 4))]
            options.append(" ".join(symbols))
        lines.append(f"{name}: {' | '.join(options)}")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(draws(12)))
def test_random_grammars(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    for _ in range(40):
        text = random_grammar(rng)
        try:
            ours = built(text)
        except (DefinitionError, BudgetExceededError):
            continue
        try:
            compare(text)
        except GrammarError:
            assert any(conflict.winner is None for conflict in ours.conflicts), text
            with pytest.raises(DefinitionError, match="not LALR"):
                conflicts.check(ours, Meter(Budget()), strict=False)
        else:
            conflicts.check(ours, Meter(Budget()), strict=False)
            compared += 1
    assert compared


def test_conflicts_are_told_with_a_shortest_text() -> None:
    table = built('start: e\ne: e "+" e | e "*" e | "n"')
    told = list(map(conflicts.Descriptions(table, Meter(Budget())), table.conflicts))
    assert "after N PLUS N, before PLUS: reduce 'e: e PLUS e' or shift in 'e: e . PLUS e' (shifted)" in told


def test_what_no_text_completes() -> None:
    table = built('start: a | "x"\na: b\nb: a "y"')
    assert conflicts.unproductive(table.symbols) == {"a", "b"}


def test_large_grammars_are_quick() -> None:
    """Two thousand rules: no time is asserted, but quadratic work would not end here."""
    rules = [f'r{i}: "k{i}" r{(i * 7 + 1) % 1000} "e{i % 50}" | "l{i}"' for i in range(1000)]
    table = built("start: " + " | ".join(f"r{i}" for i in range(1000)) + "\n" + "\n".join(rules))
    assert len(table.symbols.rules) > 2000


@pytest.mark.parametrize(
    ("text", "strict", "where"),
    [
        ('// a comment\nstart: a | b\n\na: "x"\n  | c\nb: "x"\nc: "y"\n', False, "line 4, column 1: rule a"),
        ('start: (x | y)*\n x: "a"\ny: "a"\n', False, "line 2, column 1: rule x"),
        ('start: ("a" | x)*\nx: "b" ("a" "c"?)*', True, "line 2, column 1: rule x"),
        ('start: s+\ns: "i" s | "i" s "e" s | "x"', True, "line 2, column 1: rule s"),
    ],
)
def test_conflicts_have_a_line_and_all_remedies(text: str, strict: bool, where: str) -> None:
    def build(ambiguity: str) -> sg.Index:
        definition = sg.Grammar(text, strict=strict, ambiguity=ambiguity)
        return sg.compile(definition, sg.Vocabulary.bytewise(), eager=False)

    with pytest.raises(DefinitionError, match="not LALR") as caught:
        build("resolve")
    assert caught.value.where == where
    assert 'ambiguity="all"' in caught.value.remedy
    build("all")
