"""Rules without empty ones: the same texts, told apart by what they hold (Hopcroft, Motwani & Ullman 2006, 7.1.3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product

from ....budget import Meter
from ....runtime.core.digraph import circles
from ..load.rules import ContextFreeGrammar, Production
from .symbols import Symbols

_DOING = "leaving out what is empty"

#: Bytes of a symbol of a rule.
_BYTES_OF_SYMBOL = 60


def without_empty_rules(
    grammar: ContextFreeGrammar, optional: Collection[str], only_empty: Collection[str], meter: Meter
) -> ContextFreeGrammar:
    """The same grammar, in which nothing is empty but a whole text.

    Parameters
    ----------
    optional, only_empty:
        Names of terminals that may be left out, and of those that are left out always.

    Raises `BudgetExceededError`: a rule of n symbols that can be empty becomes up to 2ⁿ.
    """
    symbols = Symbols.of(grammar)
    number = {name: i for i, name in enumerate(symbols.names)}
    is_empty = symbols.deriving(number[name] for name in (*optional, *only_empty))
    nullable = {name for name, i in number.items() if is_empty[i]}
    rules: dict[tuple[str, tuple[str, ...]], Production] = {}
    held = 0
    for rule in grammar.rules:
        for count, expansion in enumerate(_expansions(rule.expansion, nullable, only_empty)):
            if expansion and expansion != (rule.origin,):
                rules.setdefault((rule.origin, expansion), replace(rule, expansion=expansion))
            held += 1 + len(expansion)
            if count % 64 == 0:
                meter.check_time(_DOING)
                meter.check_memory(held * _BYTES_OF_SYMBOL, _DOING)
    kept = with_texts(list(rules.values()), {terminal.name for terminal in grammar.terminals})
    has_texts = any(rule.origin == grammar.start for rule in kept)
    if grammar.start not in nullable:  # without a text it is left to its parser to say so
        return replace(grammar, rules=tuple(kept)) if has_texts else grammar
    start = f"{grammar.start}_or_nothing"
    while start in number:
        start += "_"
    whole = [Production(start, ()), *([Production(start, (grammar.start,))] if has_texts else [])]
    return replace(grammar, start=start, rules=(*whole, *kept))


def without_cycles(grammar: ContextFreeGrammar, meter: Meter) -> ContextFreeGrammar:
    """The same texts, by rules of which none comes to itself without having read anything.

    Rules that can each be nothing but the other describe the same texts, and become one. Raises
    `BudgetExceededError` as `without_empty_rules`.
    """
    grammar = without_empty_rules(grammar, (), (), meter)
    number = {name: i for i, name in enumerate(dict.fromkeys(rule.origin for rule in grammar.rules))}
    names = list(number)
    alone: list[list[int]] = [[] for _ in names]
    for rule in grammar.rules:
        if len(rule.expansion) == 1 and rule.expansion[0] in number:
            alone[number[rule.origin]].append(number[rule.expansion[0]])
    found = circles(alone, lambda: meter.check_time(_DOING))
    called = {names[member]: names[circle[0]] for circle in found for member in circle}
    rules: dict[tuple[str, tuple[str, ...]], Production] = {}
    for rule in meter.each(grammar.rules, _DOING):
        origin = called.get(rule.origin, rule.origin)
        expansion = tuple(called.get(name, name) for name in rule.expansion)
        if expansion != (origin,):
            rules.setdefault((origin, expansion), replace(rule, origin=origin, expansion=expansion))
    kept = with_texts(list(rules.values()), {terminal.name for terminal in grammar.terminals})
    start = called.get(grammar.start, grammar.start)
    if all(rule.origin != start for rule in kept):  # without a text: its parser says so
        return grammar
    return replace(grammar, start=start, rules=tuple(kept))


def _expansions(
    expansion: tuple[str, ...], nullable: Collection[str], only_empty: Collection[str]
) -> Iterator[tuple[str, ...]]:
    """An expansion with and without each symbol that may be empty."""
    choices = (((),) if name in only_empty else ((name,), ()) if name in nullable else ((name,),) for name in expansion)
    for chosen in product(*choices):
        yield tuple(name for names in chosen for name in names)


def with_texts(rules: list[Production], terminals: Collection[str]) -> list[Production]:
    """Rules less those that hold what is no terminal and has no rules, such as what was empty in all cases."""
    left = Counter(rule.origin for rule in rules)
    uses: defaultdict[str, list[int]] = defaultdict(list)
    for number, rule in enumerate(rules):
        for name in {*rule.expansion}.difference(terminals):
            uses[name].append(number)
    gone: set[int] = set()
    todo = [name for name in uses if not left[name]]
    while todo:
        for number in set(uses[todo.pop()]) - gone:
            gone.add(number)
            origin = rules[number].origin
            left[origin] -= 1
            if not left[origin]:
                todo.append(origin)
    return [rule for number, rule in enumerate(rules) if number not in gone]
