"""The GBNF front end: a `Gbnf` in, the pushdown program of its texts out."""

from __future__ import annotations

from typing import TypeAlias

from ...budget import Meter
from ...definitions import Gbnf
from ...errors import DefinitionError, EmptyLanguageError
from ..automata.edge_lists import EdgeLists
from ..programs.program import Program
from .automata import automaton_of
from .calls import plan
from .dialects import DIALECTS
from .facts import RuleFacts, establish, refuse_left_recursion
from .left_recursion import without_left_recursion
from .lowering import Lowering
from .reader import read

#: The automata of the rules that are called, and of the start.
Rules: TypeAlias = "dict[int, EdgeLists]"


def compile_gbnf(definition: Gbnf, meter: Meter) -> Program:
    """Read a grammar, build the automata of its rules, put them together.

    Raises the errors of `read_gbnf` and `BudgetExceededError`.
    """
    facts, start = read_gbnf(definition, meter)
    return Lowering(*rules_of(facts, start, meter), meter).run(start)


def read_gbnf(definition: Gbnf, meter: Meter) -> tuple[RuleFacts, int]:
    """Read a grammar. Returns what holds of its rules, and which is the start.

    Raises the errors of `read`, `UnsupportedError` for left recursion, `EmptyLanguageError`, and
    `BudgetExceededError`.
    """
    dialect = DIALECTS[definition.notation]
    document = read(definition.text, meter, dialect)
    start = next((number for number, rule in enumerate(document.rules) if rule.name == definition.start), -1)
    if start < 0:
        names = ", ".join(rule.name for rule in document.rules)
        raise DefinitionError(f"there is no rule {definition.start}", remedy=f"Pass start=, one of {names}.")
    facts = establish(document, meter)
    if dialect.macros:
        facts = without_left_recursion(facts, meter)
        document = facts.document
    refuse_left_recursion(facts, meter)
    if not facts.productive(document.rules[start].root):
        raise EmptyLanguageError(
            f"no text can ever complete the rule {definition.start}",
            where=document.rules[start].where,
            remedy="Give it, and the rules it needs, a way out that does not contain itself.",
        )
    return facts, start


def rules_of(facts: RuleFacts, start: int, meter: Meter) -> tuple[Rules, dict[int, str]]:
    """The automata of the rules that are called, and their names. Raises `BudgetExceededError`."""
    decided = plan(facts, start, meter)
    rules: Rules = {}
    states = 0
    for rule in sorted(decided.called):
        rules[rule] = automaton_of(facts, decided, rule, meter)
        states += len(rules[rule].edges)
        meter.check_states(states, "the automata of the rules")
    return rules, {rule: facts.document.rules[rule].name for rule in rules}
