"""The GBNF front end: a `Gbnf` in, the pushdown program of its texts out."""

from __future__ import annotations

from ...budget import Meter
from ...definitions import Gbnf
from ...errors import DefinitionError, EmptyLanguageError
from ..automata.edge_lists import EdgeLists
from ..programs.program import Program
from .automata import automaton_of
from .calls import plan
from .facts import establish, refuse_left_recursion
from .lowering import Lowering
from .reader import read


def compile_gbnf(definition: Gbnf, meter: Meter) -> Program:
    """Read a grammar, build the automata of its rules, put them together.

    Raises the errors of `read`, `UnsupportedError` for left recursion, `EmptyLanguageError`, and
    `BudgetExceededError`.
    """
    document = read(definition.text, meter)
    start = next((number for number, rule in enumerate(document.rules) if rule.name == definition.start), -1)
    if start < 0:
        names = ", ".join(rule.name for rule in document.rules)
        raise DefinitionError(f"there is no rule {definition.start}", remedy=f"Pass start=, one of {names}.")
    facts = establish(document, meter)
    refuse_left_recursion(facts, meter)
    if not facts.productive(document.rules[start].root):
        raise EmptyLanguageError(
            f"no text can ever complete the rule {definition.start}",
            where=document.rules[start].where,
            remedy="Give it, and the rules it needs, a way out that does not contain itself.",
        )
    decided = plan(facts, start, meter)
    rules: dict[int, EdgeLists] = {}
    states = 0
    for rule in sorted(decided.called):
        rules[rule] = automaton_of(facts, decided, rule, meter)
        states += len(rules[rule].edges)
        meter.check_states(states, "the automata of the rules")
    names_of = {rule: document.rules[rule].name for rule in rules}
    return Lowering(rules, names_of, meter).run(start)
