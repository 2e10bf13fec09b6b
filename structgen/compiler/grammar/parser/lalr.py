"""`Lalr`: the LALR(1) parser of a grammar, with its conflicts.

A state shifts terminals, goes on after nonterminals, and reduces rules before sets of terminals. Where two of these
compete for a terminal it is as in Lark: a rule of higher priority wins over another rule, shifting wins over
reducing, and two rules of one priority are an error.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import or_
from typing import NamedTuple

from ....budget import Meter
from ....runtime.core.digraph import bits, set_of
from ..load.rules import ContextFreeGrammar
from . import lookaheads, lr0
from .lr0 import Lr0
from .symbols import Symbol, Symbols


class Conflict(NamedTuple):
    """Actions that compete.

    Parameters
    ----------
    state:
        Where.
    terminals:
        Before which terminals, as bits.
    rules:
        The rules that could be reduced: two or more, or one against shifting.
    winner:
        The rule that is reduced; -1 where the terminals are shifted; None where nothing decides.
    """

    state: int
    terminals: int
    rules: tuple[int, ...]
    winner: int | None


@dataclass(frozen=True, eq=False)
class Lalr:
    """The table.

    Parameters
    ----------
    automaton:
        The states with their items.
    shifts:
        By state: the next state by terminal; the end of the text is one.
    gotos:
        By state: the next state by nonterminal.
    reductions:
        By state: for each rule the terminals before which it is reduced, as bits; none is empty. They are disjoint
        where something decided, and disjoint from what is shifted.
    conflicts:
        What competed.
    expected:
        By state: the terminals that a contextual lexer tries there, as bits: those before which something is done,
        in the parser of the whole grammar (see `expected_by`).
    """

    automaton: Lr0
    shifts: list[dict[Symbol, int]]
    gotos: list[dict[Symbol, int]]
    reductions: list[dict[int, int]]
    conflicts: list[Conflict]
    expected: list[int] = field(default_factory=list)

    @property
    def symbols(self) -> Symbols:
        """The grammar in numbers."""
        return self.automaton.symbols

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.shifts)


def build(grammar: ContextFreeGrammar, meter: Meter, *, resolve: bool = True) -> Lalr:
    """The table of a grammar; without ``resolve`` all that competes stays. Raises `BudgetExceededError`.

    Conflicts that nothing decides are left as they are: see `structgen.compiler.grammar.parser.conflicts`.
    """
    symbols = Symbols.of(grammar)
    automaton = lr0.build(symbols, meter)
    found = lookaheads.lookaheads(automaton, meter)
    end = symbols.terminals
    table = Lalr(
        automaton,
        [{s: target for s, target in there.items() if s <= end} for there in automaton.moves],
        [{s: target for s, target in there.items() if s > end} for there in automaton.moves],
        [{rule: terminals for rule, terminals in there.items() if terminals} for there in found],
        [],
    )
    for state, reductions in enumerate(table.reductions):
        if reductions:
            conflicts = list(_conflicts(table, state, meter))
            table.conflicts.extend(conflicts)
            if resolve:
                _resolve(reductions, conflicts)
    once: dict[int, int] = {}  # many states expect the same, and of thousands of terminals
    for shifts, reductions in meter.each(zip(table.shifts, table.reductions, strict=True), "building the parser"):
        expected = set_of(shifts) | functools.reduce(or_, reductions.values(), 0)
        table.expected.append(once.setdefault(expected, expected))
    return table


def expected_by(whole: Lalr, part: Lalr) -> list[int]:
    """What the parser of a whole grammar expects where that of a part of its rules is, by state of the latter.

    Each state of the part has one that the same symbols lead to: the part's items are among that one's.
    """
    number = {name: symbol for symbol, name in enumerate(whole.symbols.names)}
    names, place, todo = part.symbols.names, {0: 0}, [0]
    while todo:
        state = todo.pop()
        there = whole.shifts[place[state]] | whole.gotos[place[state]]
        for symbol, target in (part.shifts[state] | part.gotos[state]).items():
            if target not in place:
                place[target] = there[number[names[symbol]]]
                todo.append(target)
    return [whole.expected[place[state]] for state in range(part.states)]


def _conflicts(table: Lalr, state: int, meter: Meter) -> Iterator[Conflict]:
    """First rules against each other, then what is left of them against shifting."""
    reductions, priorities = table.reductions[state], table.symbols.priorities
    shifted = set_of(table.shifts[state])
    contested = seen = 0
    for terminals in reductions.values():
        contested |= seen & terminals
        seen |= terminals
    by_rules: dict[tuple[int, ...], int] = {}
    for terminal in bits(contested):
        meter.check_time("looking for conflicts")
        rules = tuple(rule for rule, terminals in reductions.items() if terminals >> terminal & 1)
        by_rules[rules] = by_rules.get(rules, 0) | 1 << terminal
    lost: dict[int, int] = {}
    for rules, terminals in by_rules.items():
        meter.check_time("looking for conflicts")
        best = max(priorities[rule] for rule in rules)
        winners = [rule for rule in rules if priorities[rule] == best]
        winner = winners[0] if len(winners) == 1 else None
        yield Conflict(state, terminals, rules, winner)
        for rule in rules:
            if winner is not None and rule != winner:
                lost[rule] = lost.get(rule, 0) | terminals
    for rule, terminals in reductions.items():
        against = terminals & shifted & ~lost.get(rule, 0)
        if against:
            yield Conflict(state, against, (rule,), -1)


def _resolve(reductions: dict[int, int], conflicts: list[Conflict]) -> None:
    """Take from each rule the terminals that it lost."""
    for conflict in conflicts:
        for rule in conflict.rules:
            if conflict.winner is not None and rule != conflict.winner:
                reductions[rule] &= ~conflict.terminals
    for rule in [rule for rule, terminals in reductions.items() if not terminals]:
        del reductions[rule]
