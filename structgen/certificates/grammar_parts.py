"""Parts of grammars: terminals that are never read, rules that no text completes or comes to, and recursion."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from ..budget import Meter
from ..compiler.gbnf.compiler import read_gbnf
from ..compiler.gbnf.syntax import Choice, Node, Reference, Repetition, Rule
from ..compiler.grammar.attributed import without_budgeted
from ..compiler.grammar.compiler import read_rules
from ..compiler.grammar.load.rules import ContextFreeGrammar, Production, Terminal
from ..compiler.patterns.parser import parse
from ..definitions import Gbnf, Grammar
from ..runtime.grammar.tables import GrammarTables
from ..system.depth_first import post_order
from .pattern_parts import unbounded_repeats
from .schema_parts import is_endless
from .values import Finding

_DOING = "looking through the rules"

# -- Lark's syntax -------------------------------------------------------------------------------------------


def never_lexed(definition: Grammar, tables: GrammarTables, meter: Meter) -> tuple[list[str], int, tuple[str, ...]]:
    """The terminals with a pattern that no lexeme ever is, how many there are, and notes of the compiler."""
    grammar = without_budgeted(read_rules(definition, meter))
    read = {tables.name(terminal) for terminal in set(tables.ends[:, 1].tolist())}
    lexed = [terminal for terminal in grammar.terminals if terminal.pattern is not None]
    return [_written(each) for each in lexed if each.name not in read], len(lexed), tables.notes


def _written(terminal: Terminal) -> str:
    """A terminal as the grammar has it: Lark gives names to those that have none."""
    if not terminal.name.startswith("__ANON_"):
        return terminal.name
    return f"/{terminal.pattern}/" if terminal.text is None else json.dumps(terminal.text, ensure_ascii=False)


def unused(definition: Grammar, meter: Meter) -> tuple[list[Finding], int]:
    """Expansions of rules that no text completes, as a rule in them has none, or a terminal is ignored."""
    grammar = read_rules(definition, meter)
    completed = _completed(grammar, set(grammar.ignored), meter)
    never = [rule for rule in grammar.rules if not completed.issuperset(rule.expansion)]
    findings = [Finding("warning", f"no text completes '{rule}'", _rule_of(rule.origin)) for rule in never]
    return findings, len(grammar.rules)


def _completed(grammar: ContextFreeGrammar, never: Collection[str], meter: Meter) -> set[str]:
    """The symbols that have texts."""
    found = {terminal.name for terminal in grammar.terminals} - set(never)
    left: dict[int, int] = {}
    users: dict[str, list[tuple[int, Production]]] = {}
    todo: list[str] = [*found]
    for number, rule in enumerate(grammar.rules):
        left[number] = len(set(rule.expansion))
        if not rule.expansion:
            todo.append(rule.origin)
        for symbol in set(rule.expansion):
            users.setdefault(symbol, []).append((number, rule))
    found.update(todo)
    for symbol in meter.each(todo, _DOING):  # grows as it goes
        for number, rule in users.pop(symbol, ()):
            left[number] -= 1
            if not left[number] and rule.origin not in found:
                found.add(rule.origin)
                todo.append(rule.origin)
    return found


def _rule_of(name: str) -> str:
    """The rule of the text that a rule of Lark's belongs to: it makes some for repetitions."""
    parts = name.split("_")
    return f"rule {'_'.join(parts[2:-2])}" if name.startswith("__") and len(parts) > 4 else f"rule {name}"


def unbounded(definition: Grammar, meter: Meter) -> tuple[list[Finding], int]:
    """Terminals with repeats without a bound, rules that can contain themselves, and what is ignored."""
    grammar = read_rules(definition, meter)
    children: dict[str, list[str]] = {}
    for rule in grammar.rules:
        children.setdefault(rule.origin, []).extend(each for each in rule.expansion)
    found: dict[tuple[str, str], None] = {}
    for name in _circular(children, [grammar.start]):
        found[_rule_of(name), "a repetition" if name.startswith("__") else "a rule that can contain itself"] = None
    for terminal in meter.each(grammar.terminals, _DOING, every=1):
        if terminal.text is None and terminal.pattern is not None:
            if terminal.automaton is not None:
                is_unbounded = is_endless(terminal.automaton, meter)
            else:
                is_unbounded = bool(unbounded_repeats(parse(terminal.pattern, 0, meter)))
            if is_unbounded:
                found[f"terminal {terminal.name}", "a repeat without a bound"] = None
            if terminal.name in grammar.ignored:
                found[f"terminal {terminal.name}", "it is ignored, and may come any number of times"] = None
    return [Finding("note", what, where) for where, what in found], len(grammar.rules) + len(grammar.terminals)


def _circular(children: Mapping[str, Iterable[str]], roots: list[str]) -> list[str]:
    """Where cycles that some roots lead to come back."""
    found: dict[str, None] = {}
    for _ in post_order(roots, lambda name: children.get(name, ()), lambda _, name: found.setdefault(name, None)):
        pass
    return [*found]


# -- GBNF ----------------------------------------------------------------------------------------------------


def unused_in_gbnf(definition: Gbnf, meter: Meter) -> tuple[list[Finding], int]:
    """Rules that the start does not lead to, and options of choices that have no text."""
    facts, start = read_gbnf(definition, meter)
    document = facts.document
    rules, nodes = document.rules, document.nodes
    met = set(post_order([start], lambda rule: _referred(nodes, rules[rule])))
    findings, looked = [], len(rules)
    for number, rule in enumerate(rules):
        where = f"rule {rule.name}, {rule.where}"
        if number not in met:
            findings.append(Finding("warning", "the start does not lead to this rule", where))
            continue
        for node in nodes[rule.first : rule.root + 1]:
            for position, option in enumerate(node.options if isinstance(node, Choice) else (), 1):
                looked += 1
                if not facts.productive(option):
                    says = f"no text completes alternative {position} of {len(node.options)}"  # type: ignore[union-attr]
                    findings.append(Finding("warning", says, where))
    return findings, looked


def unbounded_in_gbnf(definition: Gbnf, meter: Meter) -> tuple[list[Finding], int]:
    """Repetitions without a bound, and rules that can contain themselves."""
    facts, start = read_gbnf(definition, meter)
    rules, nodes = facts.document.rules, facts.document.nodes
    children = {str(n): [str(each) for each in _referred(nodes, rule)] for n, rule in enumerate(rules)}
    circular = {int(name) for name in _circular(children, [str(start)])}
    findings = []
    for number in sorted(set(post_order([start], lambda rule: _referred(nodes, rules[rule])))):
        rule = rules[number]
        where = f"rule {rule.name}, {rule.where}"
        if number in circular:
            findings.append(Finding("note", "a rule that can contain itself", where))
        if any(isinstance(each, Repetition) and each.max is None for each in nodes[rule.first : rule.root + 1]):
            findings.append(Finding("note", "a repetition without a bound", where))
    return findings, len(rules)


def _referred(nodes: tuple[Node, ...], rule: Rule) -> list[int]:
    """The rules that a rule refers to."""
    return [node.rule for node in nodes[rule.first : rule.root + 1] if isinstance(node, Reference)]
