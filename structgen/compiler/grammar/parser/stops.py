"""Stops of rules, ``[stop="<end>"]``: ends that are there once where what follows begins with them.

A rule with a stop reads its text up to the stop, and the stop. It hands the stop back: what follows begins before it.
As a text is read once, the stop is taken off the beginning of what follows, where all of that begins with it, as in
``quoted "<end>"``; so ``"<end>"`` is there once. Where nothing that follows begins with it, the text keeps the stop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import or_

from ....budget import Meter
from ....errors import UnsupportedError
from ....runtime.core.digraph import bits, solve
from ....system.properties import cached_property
from ..load.rules import CapturedRule, ContextFreeGrammar, Production, Terminal
from .symbols import Symbols

_DOING = "looking for what is behind stops"

#: Rules within rules that are looked into for a stop.
_DEEPEST = 40


def without_stops(grammar: ContextFreeGrammar, stops: Mapping[str, str], meter: Meter) -> ContextFreeGrammar:
    """A grammar in which stops are there once; ``stops`` are those of nonterminals, where they are one text.

    Raises `UnsupportedError` where what follows begins with a stop and is not right behind it, and
    `BudgetExceededError`.
    """
    if not stops:
        return grammar
    made = _HandingBack(grammar, stops, meter)
    rules = tuple(made.rule(rule) for rule in meter.each(grammar.rules, _DOING))
    return replace(
        grammar,
        rules=_reachable((*rules, *made.rules), grammar.start),
        terminals=(*grammar.terminals, *made.terminals),
        captures=(*grammar.captures, *made.captures),
    )


def _reachable(rules: tuple[Production, ...], start: str) -> tuple[Production, ...]:
    by_origin: dict[str, list[Production]] = {}
    for rule in rules:
        by_origin.setdefault(rule.origin, []).append(rule)
    found = {start}
    for name in (todo := [start]):  # grows as it goes
        for rule in by_origin[name]:
            new = [each for each in dict.fromkeys(rule.expansion) if each in by_origin and each not in found]
            found.update(new)
            todo += new
    return tuple(rule for rule in rules if rule.origin in found)


class _HandingBack:
    """Rules whose beginnings are taken off."""

    def __init__(self, grammar: ContextFreeGrammar, stops: Mapping[str, str], meter: Meter) -> None:
        self._meter = meter
        self._stops = stops
        self._grammar = grammar
        self._by_origin: dict[str, list[Production]] = {}
        for rule in grammar.rules:
            self._by_origin.setdefault(rule.origin, []).append(rule)
        self._text = {t.name: t.text for t in grammar.terminals if t.text is not None and not t.flags}
        self._names = {t.name for t in grammar.terminals} | self._by_origin.keys()
        self._literal: dict[str, str] = {}
        self._known: dict[tuple[str, str], tuple[str, list[Production]] | None] = {}
        self.rules: list[Production] = []
        self.terminals: list[Terminal] = []
        self.captures: list[CapturedRule] = []

    @cached_property
    def _firsts(self) -> _Firsts:
        return _Firsts(self._grammar, self._meter)

    def rule(self, rule: Production) -> Production:
        """A rule in which no stop is there twice."""
        expansion = rule.expansion
        for i in range(len(expansion) - 1, -1, -1):
            text = self._stops.get(expansion[i])
            if text is None:
                continue
            rest = self._without(expansion[i + 1 :], text, 0)
            if rest is not None:
                expansion = (*expansion[: i + 1], *rest)
            else:
                self._check(expansion[i], text, rule.origin, expansion[i + 1 :])
        return replace(rule, expansion=expansion)

    def _check(self, rule: str, text: str, origin: str, rest: tuple[str, ...]) -> None:
        """Refuse a stop with which all that follows may begin."""
        literals = [self._text.get(name) for name in self._firsts.behind(origin, rest)]
        if literals and all(each and (each.startswith(text) or text.startswith(each)) for each in literals):
            raise UnsupportedError(
                f"what follows the rule {rule} begins with its stop {text!r}, but not right behind it in one rule",
                where=f"rule {origin}",
                remedy=f"Write the rule with suffix={text!r}, and leave that out behind it.",
            )

    def _without(self, symbols: tuple[str, ...], text: str, depth: int) -> tuple[str, ...] | None:
        """Symbols without a text that all they stand for begins with; None where that is not so, or not seen."""
        while text and symbols:
            literal = self._text.get(symbols[0])
            if literal is None:
                name = self._after(symbols[0], text, depth + 1)
                return None if name is None else (name, *symbols[1:])
            if literal.startswith(text):
                rest = literal[len(text) :]
                return (*([self._terminal(symbols[0], rest)] if rest else []), *symbols[1:])
            if not text.startswith(literal):
                return None
            text, symbols = text[len(literal) :], symbols[1:]
        return None if text else symbols

    def _terminal(self, like: str, text: str) -> str:
        """The terminal of a string."""
        if text not in self._literal:
            known = next((name for name, each in self._text.items() if each == text), None)
            if known is None:
                known = self._new(f"{like}_REST")
                terminal = next(t for t in self._grammar.terminals if t.name == like)
                self.terminals.append(replace(terminal, name=known, text=text, pattern=re.escape(text)))
            self._literal[text] = known
        return self._literal[text]

    def _after(self, origin: str, text: str, depth: int) -> str | None:
        """The nonterminal of what is behind a text with which all texts of another one begin."""
        if (origin, text) in self._known or depth > _DEEPEST or origin not in self._by_origin:
            known = self._known.get((origin, text))
            return None if known is None else known[0]
        self._meter.check_time(_DOING)
        before = dict(self._known)
        name = self._new(f"{origin}_rest")
        rules: list[Production] = []
        self._known[origin, text] = name, rules
        for rule in self._by_origin[origin]:
            rest = self._without(rule.expansion, text, depth)
            if rest is None:
                self._known = {**before, (origin, text): None}  # others may lean on it
                return None
            rules.append(replace(rule, origin=name, expansion=rest))
        self.rules += rules
        captures = (each for each in self._grammar.captures if each.rule == origin)
        self.captures += [each._replace(rule=name, before=len(text.encode())) for each in captures]
        return name

    def _new(self, stem: str) -> str:
        while stem in self._names:
            stem += "_"
        self._names.add(stem)
        return stem


class _Firsts:
    """The terminals that symbols begin with, and those that may be behind a nonterminal, ``$END`` among them."""

    def __init__(self, grammar: ContextFreeGrammar, meter: Meter) -> None:
        self._symbols = symbols = Symbols.of(grammar)
        self._number = {name: symbol for symbol, name in enumerate(symbols.names)}
        self._first = [1 << symbol if symbols.is_terminal(symbol) else 0 for symbol in self._number.values()]
        self._follow = [0] * len(self._first)
        begins, ends = ([list[int]() for _ in self._first] for _ in range(2))
        for origin, expansion in meter.each(symbols.rules, _DOING):
            begins[origin] += self._beginning(expansion)[0]
        solve(self._first, begins, lambda: meter.check_time(_DOING))
        for origin, expansion in meter.each(symbols.rules, _DOING):
            for i, symbol in enumerate(expansion, 1):
                there, is_empty = self._beginning(expansion[i:])
                self._follow[symbol] |= self._union(there)
                ends[symbol] += [origin] if is_empty else []
        solve(self._follow, ends, lambda: meter.check_time(_DOING))

    def _beginning(self, symbols: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
        """Those of some symbols that a text of these may begin in, and whether it may be empty."""
        for i, symbol in enumerate(symbols):
            if not self._symbols.nullable[symbol]:
                return symbols[: i + 1], False
        return symbols, True

    def _union(self, symbols: tuple[int, ...]) -> int:
        return reduce(or_, (self._first[symbol] for symbol in symbols), 0)

    def behind(self, origin: str, rest: tuple[str, ...]) -> list[str]:
        """What may be behind a symbol, by the rule that it is in and what is behind it there."""
        there, is_empty = self._beginning(tuple(self._number[name] for name in rest))
        found = self._union(there) | (self._follow[self._number[origin]] if is_empty else 0)
        return [self._symbols.names[symbol] for symbol in bits(found)]
