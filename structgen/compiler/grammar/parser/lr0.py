"""The LR(0) automaton of a grammar (Knuth 1965; Aho, Sethi & Ullman, section 4.7).

An *item* is a rule with a place in it. All items have numbers, those of a rule in a row: reading on in an item is
adding 1. A state is the set of its kernel items, those that are in the middle of a rule; what they imply, items at
the beginning of rules, is the same wherever a nonterminal comes next, and is worked out once for each set of those.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ....budget import Meter
from ....runtime.core.digraph import bits, solve
from ....system.properties import cached_property
from .symbols import Symbol, Symbols

#: Items and moves between two looks at the clock; bytes of one.
_STEPS, _BYTES_OF_MOVE = 8192, 100


@dataclass(frozen=True, eq=False)
class GrammarItems:
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
    def of(cls, symbols: Symbols) -> GrammarItems:
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
    def _leftmost(self) -> list[int]:
        """By symbol: the nonterminals that can begin it, itself included, as a set."""
        symbols = self.symbols
        begins = [1 << symbol if symbol > symbols.terminals else 0 for symbol in range(len(symbols.names))]
        firsts = [{self.following[self.first[rule]] for rule in rules} for rules in symbols.rules_of]
        solve(begins, [sorted(symbol for symbol in first if symbol > symbols.terminals) for first in firsts])
        return begins

    def implied(self, awaited: frozenset[Symbol]) -> tuple[list[tuple[Symbol, list[int]]], list[int]]:
        """What follows where some nonterminals come next: moves, as symbol and items after it, and empty rules."""
        known = self._implied.get(awaited)
        if known is None:
            moves: dict[Symbol, list[int]] = {}
            empty: list[int] = []
            origins = 0
            for symbol in awaited:
                origins |= self._leftmost[symbol]
            for origin in bits(origins):
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

    items: GrammarItems
    kernels: list[tuple[int, ...]] = field(default_factory=list)
    moves: list[dict[Symbol, int]] = field(default_factory=list)
    complete: list[list[int]] = field(default_factory=list)

    @property
    def symbols(self) -> Symbols:
        """The grammar in numbers."""
        return self.items.symbols


def build(symbols: Symbols, meter: Meter) -> Lr0:
    """All states that the start leads to. Raises `BudgetExceededError`."""
    items = GrammarItems.of(symbols)
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
    steps = held = 0
    for state, kernel in enumerate(automaton.kernels):  # grows as it goes
        if state % 256 == 0 or steps > _STEPS:
            steps = 0
            meter.check_states(len(automaton.kernels), "building the parser's states")
            meter.check_time("building the parser's states")
            meter.check_memory(held * _BYTES_OF_MOVE, "building the parser's states")
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
        steps += len(kernel) + len(moves)
        held += 4 + len(kernel) + len(moves)
        automaton.complete.append(complete)
        automaton.moves.append({symbol: state_of(tuple(after)) for symbol, after in moves.items()})
    return automaton
