"""Attributes of rules, entered in a grammar that Lark loaded (`structgen.compiler.grammar.load.attributes`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...budget import Meter
from ...errors import DefinitionError, UnsupportedError
from .lexer.lengths import byte_length
from .load.attributes import RuleAttributes
from .load.rules import CapturedRule, ContextFreeGrammar, Terminal
from .parser.stops import without_stops


def with_attributes(
    grammar: ContextFreeGrammar, attributes: tuple[RuleAttributes, ...], meter: Meter
) -> ContextFreeGrammar:
    """The grammar whose lexemes end as they should, with what it captures, and at which temperatures.

    Lexemes come before other terminals of their priority: a lazy one is over wherever it may be, whatever else goes
    on. Those that are the same are one terminal, so that the parser tells their rules apart.

    Raises `DefinitionError`, `UnsupportedError` for captures without ends whose length is unknown, for stops of which
    it is unclear whether they are there once, and `BudgetExceededError`.
    """
    if not attributes:
        return grammar
    nonterminals = set(grammar.nonterminals)
    attributes = tuple(each for each in attributes if each.rule in nonterminals)
    _check_rules(attributes, grammar)
    by_name = {terminal.name: terminal for terminal in grammar.terminals}
    splits = {each.rule: _split(each, by_name, meter) for each in attributes if each.ending is not None}
    bounds = {each.lexeme: _bounded(by_name[each.lexeme], each, by_name) for each in attributes if each.lexeme}
    added = {name for each in attributes for name in (each.plain, each.ending)}
    names = _same(terminal for terminal in bounds.values() if terminal.pattern is not None) | _same(
        sorted((t for t in grammar.terminals if t.name not in bounds), key=lambda t: t.name in added), added
    )
    used = {names.get(name, name) for rule in grammar.rules for name in rule.expansion} | set(grammar.ignored)
    terminals = [bounds.get(t.name, t) for t in grammar.terminals if t.name in used]
    terminals.sort(key=lambda terminal: (-terminal.priority, not terminal.is_shortest))
    rules = tuple(
        replace(rule, expansion=tuple(names.get(name, name) for name in rule.expansion)) for rule in grammar.rules
    )
    captures = tuple(capture for each in attributes for capture in _captures(each, splits))
    found = replace(grammar, rules=rules, terminals=tuple(terminals), captures=captures)
    ended = [(each.rule, by_name[each.ending]) for each in attributes if each.is_stop and each.ending is not None]
    return without_stops(found, {rule: end.text for rule, end in ended if end.text and not end.flags}, meter)


def without_budgeted(grammar: ContextFreeGrammar) -> ContextFreeGrammar:
    """The grammar whose lexer knows nothing of terminals that have a budget of tokens."""
    terminals = (
        each if each.max_tokens is None else replace(each, pattern=None, text=None, automaton=None)
        for each in grammar.terminals
    )
    return replace(grammar, terminals=tuple(terminals))


def _check_rules(attributes: Iterable[RuleAttributes], grammar: ContextFreeGrammar) -> None:
    """Refuse rules that are there twice, and what is said of a definition that other rules have, too.

    Raises `DefinitionError` and `UnsupportedError`.
    """
    uses = Counter(name for rule in grammar.rules for name in rule.expansion)
    seen = set[str]()
    for each in attributes:
        if each.lexeme and not each.plain and uses[each.lexeme] > 1:
            raise UnsupportedError(
                f"several rules have {each.lexeme}, and one of them a temperature or max_tokens",
                where=f"rule {each.rule}",
                remedy="Name that rule wherever it is meant, or give the definition another name.",
            )
        if each.rule in seen:
            what = f"the rule {each.rule} is defined twice"
            raise DefinitionError(what, where=f"rule {each.rule}", remedy="Give it one definition.")
        seen.add(each.rule)


class _Split(NamedTuple):
    """Where a lexeme's end begins: so many bytes before the lexeme is over, or so many behind its first."""

    hidden: int
    shown: int | None = None


def _split(attributes: RuleAttributes, by_name: Mapping[str, Terminal], meter: Meter) -> _Split:
    """Where the end begins that captures are without; all of it is one where nobody asks.

    The lexeme is the shortest that there is, so none shorter is the same text and an end that its own begins with.
    Raises `UnsupportedError` where a lexeme may have several ends.
    """
    if not attributes.captures:
        return _Split(0)
    assert attributes.ending is not None
    assert attributes.lexeme is not None
    body, end = by_name[attributes.lexeme], by_name[attributes.ending]
    hidden = byte_length(end, meter)
    if hidden is None:
        hidden = byte_length(end, meter, shortest=True)
        if hidden is not None and (hidden or not body.has_no_width):  # lexemes have bytes: not always the shortest
            return _Split(hidden)
        hidden = None
    shown = None if hidden is not None else byte_length(body, meter)
    if hidden is None and shown is None:
        raise UnsupportedError(
            "what is captured ends before a stop or a suffix whose texts are of several lengths",
            where=f"rule {attributes.rule}",
            remedy="Let a rule of its own say what ends it, or use ends of one length.",
        )
    return _Split(hidden or 0, shown)


def _bounded(terminal: Terminal, attributes: RuleAttributes, by_name: Mapping[str, Terminal]) -> Terminal:
    """A lexeme with its end and its bounds."""
    most, pattern = attributes.max_chars, terminal.pattern
    end = None if attributes.ending is None else by_name[attributes.ending]
    if end is not None:
        pattern = f"(?:{pattern})(?:{end.pattern})"
        if most is not None:
            most += _characters(end, attributes.rule)
    return replace(
        terminal, pattern=pattern, text=None, flags=frozenset(), is_shortest=attributes.is_shortest, max_chars=most,
        max_tokens=attributes.max_tokens,
        has_no_width=terminal.has_no_width and (end is None or end.has_no_width), temperature=attributes.temperature,
    )  # fmt: skip


def _characters(end: Terminal, rule: str) -> int:
    """How many characters an end has. Raises `UnsupportedError` where that depends."""
    if end.text is None:
        raise UnsupportedError(
            "max_chars counts what is before the end, and that end is no string",
            where=f"rule {rule}",
            remedy="Use a string as stop or suffix, or a count in the regex.",
        )
    return len(end.text)


def _same(terminals: Iterable[Terminal], among: Collection[str | None] | None = None) -> dict[str, str]:
    """By name of a terminal, some of them or all: the first one that is the same."""
    first: dict[Terminal, str] = {}
    found = {each.name: first.setdefault(replace(each, name=""), each.name) for each in terminals}
    return {name: same for name, same in found.items() if among is None or name in among}


def _captures(attributes: RuleAttributes, splits: Mapping[str, _Split]) -> Iterable[CapturedRule]:
    """What is captured of a rule: its end before the rule itself."""
    hidden, shown = splits.get(attributes.rule, _Split(0))
    if attributes.stop_capture is not None:
        yield CapturedRule(attributes.rule, attributes.stop_capture, 0, hidden, True, shown)
    if attributes.capture is not None:
        yield CapturedRule(attributes.rule, attributes.capture, 0, hidden, False, shown)
