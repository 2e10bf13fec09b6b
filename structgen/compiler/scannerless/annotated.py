"""The rules of a grammar, told apart by what the parser's states mean to the lexer and to conflicts.

A nonterminal ``A`` that is read from the LR(0) state ``p`` on, ``(p, A)``, leads its rules through known states
(DeRemer & Pennello 1982). So it is known of each terminal in them in which context the lexer reads on behind it, and
of each rule before which terminals the parser would have done something else at its end, where a conflict was
decided. Transitions of one nonterminal that differ in neither, however deep, are one: the coarsest partition by
refinement (Moore 1956). With the basic lexer and without conflicts these are the grammar's own nonterminals.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ...budget import Meter
from ...runtime.core.digraph import set_of
from ..grammar.parser.lalr import Lalr
from ..grammar.parser.symbols import Symbol
from .controls import Shift

#: A nonterminal of an `AnnotatedGrammar`, or a terminal.
Step: TypeAlias = "int | Shift"

_DOING = "telling rules apart by the parser's states"

#: Bytes of a step of a transition.
_BYTES_OF_STEP = 40


class AnnotatedRule(NamedTuple):
    """What is read, and the terminals that may not come next."""

    steps: tuple[Step, ...]
    lost: int


class AnnotatedGrammar(NamedTuple):
    """The grammar.

    Parameters
    ----------
    rules:
        By nonterminal; the first nonterminal is a whole text.
    names:
        By nonterminal.
    nullable:
        By nonterminal: whether it can be empty.
    follow:
        By shift: the terminals that the parser may accept behind it, the end of the text among them.
    """

    rules: list[list[AnnotatedRule]]
    names: list[str]
    nullable: list[bool]
    follow: dict[Shift, int]


#: As it is found: a terminal with its context, or the number of a transition.
_Rules: TypeAlias = "list[tuple[tuple[Step, ...], int]]"


def annotated(table: Lalr, starts: list[int], accepted: list[int], meter: Meter) -> AnnotatedGrammar:
    """The rules of a parser, with the lexer state in which each of its states reads on, and what it accepts there.

    Raises `BudgetExceededError`.
    """
    symbols = table.symbols
    root = symbols.rules[-1][1][0]
    transitions = [(0, root)]
    number = {transitions[0]: 0}
    lost = _lost(table)
    found: list[_Rules] = []
    follow: dict[Shift, int] = {}
    held = 0
    for p, nonterminal in transitions:  # grows as it goes
        meter.check_time(_DOING)
        meter.check_memory(held * _BYTES_OF_STEP, _DOING)
        rules: _Rules = []
        for rule in symbols.rules_of[nonterminal]:
            here, steps = p, list[Step]()
            for symbol in symbols.rules[rule][1]:
                after = table.automaton.moves[here][symbol]
                if symbols.is_terminal(symbol):
                    shift = symbol, starts[after]
                    follow[shift] = follow.get(shift, 0) | accepted[after]
                    steps.append(shift)
                else:
                    if (here, symbol) not in number:
                        number[here, symbol] = len(transitions)
                        transitions.append((here, symbol))
                    steps.append(number[here, symbol])
                here = after
            rules.append((tuple(steps), lost.get((here, rule), 0)))
            held += 3 + len(steps)
        found.append(rules)
    classes = _classes([nonterminal for _, nonterminal in transitions], found, meter)
    members = {block: i for i, block in reversed([*enumerate(classes)])}
    order = [members[block] for block in range(len(members))]
    return AnnotatedGrammar(
        [[AnnotatedRule(_renamed(steps, classes), barred) for steps, barred in found[i]] for i in order],
        [str(symbols.names[transitions[i][1]]) for i in order],
        [symbols.nullable[transitions[i][1]] for i in order],
        follow,
    )


def accepted(table: Lalr) -> list[int]:
    """By state: the terminals before which a parser does something, the end of the text among them."""
    found = [*map(set_of, table.shifts)]
    for state, reductions in enumerate(table.reductions):
        for terminals in reductions.values():
            found[state] |= terminals
    return found


def _lost(table: Lalr) -> dict[tuple[int, int], int]:
    """By state and rule: the terminals before which it is not reduced there, since another action won."""
    found: dict[tuple[int, int], int] = {}
    for conflict in table.conflicts:
        for rule in conflict.rules:
            if rule != conflict.winner:
                key = conflict.state, rule
                kept = table.reductions[conflict.state].get(rule, 0)
                found[key] = found.get(key, 0) | conflict.terminals & ~kept
    return found


def _renamed(steps: tuple[Step, ...], classes: list[int]) -> tuple[Step, ...]:
    return tuple(classes[step] if isinstance(step, int) else step for step in steps)


def _classes(nonterminals: list[Symbol], rules: list[_Rules], meter: Meter) -> list[int]:
    """By transition: its class, the first one's first."""
    numbers: dict[object, int] = {}
    classes = [numbers.setdefault(each, len(numbers)) for each in nonterminals]
    while True:
        count, numbers = len(numbers), {}
        keys = (
            (old, *((_renamed(steps, classes), lost) for steps, lost in there))
            for old, there in zip(classes, rules, strict=True)
        )
        classes = [numbers.setdefault(key, len(numbers)) for key in meter.each(keys, _DOING)]
        if len(numbers) == count:
            return classes
