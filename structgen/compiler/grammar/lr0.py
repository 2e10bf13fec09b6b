"""The LR(0) automaton of a grammar (Knuth 1965; Aho, Sethi & Ullman, section 4.7).

An *item* is a rule with a place in it. All items have numbers, those of a rule in a row: reading on in an item is
adding 1. A state is the set of its kernel items, those that are in the middle of a rule; what they imply, items at
the beginning of rules, is the same wherever a nonterminal comes next, and is worked out once for each set of those.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...budget import Meter
from ...properties import cached_property
from .symbols import Symbol, Symbols


@dataclass(frozen=True, eq=False)
class Items:
    """The items of a grammar's rules.

    Parameters
    ----------
    symbols:
        The grammar.
    first:
        By rule: its item at the beginning.
    following:
        By item: the symbol that comes next, or -1 at the end of its rule.
    rule:
        By item.
    """

    symbols: Symbols
    first: list[int]
    following: list[Symbol]
    rule: list[int]

    @classmethod
    def of(cls, symbols: Symbols) -> Items:
        """All items, rule by rule."""
        first: list[int] = []
        following: list[Symbol] = []
        rule: list[int] = []
        for number, (_, expansion) in enumerate(symbols.rules):
            first.append(len(following))
            following += (*expansion, -1)
            rule += [number] * (len(expansion) + 1)
        return cls(symbols, first, following, rule)

    @cached_property
    def _leftmost(self) -> list[set[Symbol]]:
        """By symbol: the nonterminals that can begin it, itself included."""
        symbols = self.symbols
        begins: list[set[Symbol]] = [set() for _ in symbols.names]
        for origin in range(symbols.terminals + 1, len(symbols.names)):
            found = {origin}
            todo = [origin]
            while todo:
                for rule in symbols.rules_of[todo.pop()]:
                    symbol = self.following[self.first[rule]]
                    if symbol > symbols.terminals and symbol not in found:
                        found.add(symbol)
                        todo.append(symbol)
            begins[origin] = found
        return begins

    def implied(self, awaited: frozenset[Symbol]) -> tuple[list[tuple[Symbol, list[int]]], list[int]]:
        """What follows where some nonterminals come next: moves, as symbol and items after it, and empty rules."""
        known = self._implied.get(awaited)
        if known is None:
            moves: dict[Symbol, list[int]] = {}
            empty: list[int] = []
            for origin in sorted(set().union(*(self._leftmost[symbol] for symbol in awaited))):
                for rule in self.symbols.rules_of[origin]:
                    item = self.first[rule]
                    symbol = self.following[item]
                    if symbol < 0:
                        empty.append(rule)
                    else:
                        moves.setdefault(symbol, []).append(item + 1)
            known = self._implied[awaited] = [(symbol, sorted(after)) for symbol, after in moves.items()], empty
        return known

    @cached_property
    def _implied(self) -> dict[frozenset[Symbol], tuple[list[tuple[Symbol, list[int]]], list[int]]]:
        return {}

    def shown(self, item: int) -> str:
        """An item as a person writes it, with a dot at its place."""
        origin, expansion = self.symbols.rules[self.rule[item]]
        at = item - self.first[self.rule[item]]
        names = [self.symbols.names[s] for s in expansion]
        return f"{self.symbols.names[origin]}: {' '.join([*names[:at], '.', *names[at:]])}"


@dataclass(eq=False)
class Lr0:
    """The automaton.

    Parameters
    ----------
    items:
        The items of its states.
    kernels:
        By state: the kernel items, ascending. State 0 is the start.
    moves:
        By state: the next state by symbol.
    complete:
        By state: the rules that it has read to their end.
    """

    items: Items
    kernels: list[tuple[int, ...]] = field(default_factory=list)
    moves: list[dict[Symbol, int]] = field(default_factory=list)
    complete: list[list[int]] = field(default_factory=list)

    @property
    def symbols(self) -> Symbols:
        """The grammar in numbers."""
        return self.items.symbols


def build(symbols: Symbols, meter: Meter) -> Lr0:
    """All states that the start leads to. Raises `BudgetExceededError`."""
    items = Items.of(symbols)
    automaton = Lr0(items)
    number: dict[tuple[int, ...], int] = {}

    def state_of(kernel: tuple[int, ...]) -> int:
        known = number.get(kernel)
        if known is None:
            known = number[kernel] = len(automaton.kernels)
            automaton.kernels.append(kernel)
        return known

    state_of((items.first[-1],))
    following, end = items.following, symbols.terminals
    for state, kernel in enumerate(automaton.kernels):  # grows as it goes
        if state % 256 == 0:
            meter.check_states(len(automaton.kernels), "building the parser's states")
            meter.check_time("building the parser's states")
        moves: dict[Symbol, list[int]] = {}
        complete = []
        for item in kernel:
            symbol = following[item]
            if symbol < 0:
                complete.append(items.rule[item])
            else:
                moves.setdefault(symbol, []).append(item + 1)
        awaited = frozenset(symbol for symbol in moves if symbol > end)
        if awaited:
            implied, empty = items.implied(awaited)
            complete += empty
            for symbol, after in implied:
                known = moves.get(symbol)
                moves[symbol] = after if known is None else sorted({*known, *after})
        automaton.complete.append(complete)
        automaton.moves.append({symbol: state_of(tuple(after)) for symbol, after in moves.items()})
    return automaton
