"""A grammar in numbers, for the table builder: symbols, rules, and what can be said of each nonterminal by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ....system.properties import cached_property
from ..load.rules import ContextFreeGrammar

#: A terminal, the end of the text, or a nonterminal; in this order.
Symbol = int


@dataclass(frozen=True, eq=False)
class Symbols:
    """Symbols and rules by number.

    Terminals come first, in the grammar's order, then the end of the text, then nonterminals; the last one is the
    root, with the rule ``root: start END``, which is the last rule.

    Parameters
    ----------
    names:
        By symbol.
    terminals:
        How many terminals there are, and so the number of the end of the text.
    rules:
        ``(origin, expansion)``.
    priorities:
        By rule.
    """

    names: tuple[str, ...]
    terminals: int
    rules: tuple[tuple[Symbol, tuple[Symbol, ...]], ...]
    priorities: tuple[int, ...]

    @classmethod
    def of(cls, grammar: ContextFreeGrammar) -> Symbols:
        """The numbers of a grammar."""
        terminals = [t.name for t in grammar.terminals]
        names = (*terminals, "$END", *grammar.nonterminals, "$root")
        number = {name: i for i, name in enumerate(names)}
        rules = [(number[r.origin], tuple(number[s] for s in r.expansion)) for r in grammar.rules]
        rules.append((number["$root"], (number[grammar.start], len(terminals))))
        return cls(names, len(terminals), tuple(rules), (*(r.priority for r in grammar.rules), 0))

    @property
    def end(self) -> Symbol:
        """The end of the text."""
        return self.terminals

    def is_terminal(self, symbol: Symbol) -> bool:
        """Whether a symbol is a terminal, or the end."""
        return symbol <= self.terminals

    @cached_property
    def rules_of(self) -> list[list[int]]:
        """By symbol: the numbers of its rules."""
        found: list[list[int]] = [[] for _ in self.names]
        for number, (origin, _) in enumerate(self.rules):
            found[origin].append(number)
        return found

    @cached_property
    def nullable(self) -> list[bool]:
        """By symbol: whether it can be empty."""
        return self.deriving(())

    def deriving(self, given: Iterable[Symbol]) -> list[bool]:
        """By symbol: whether it is one of some, or some text of these comes of it."""
        found = [False] * len(self.names)
        missing = [len(expansion) for _, expansion in self.rules]
        uses: list[list[int]] = [[] for _ in self.names]
        for number, (_, expansion) in enumerate(self.rules):
            for symbol in expansion:
                uses[symbol].append(number)
        todo = [*given, *(origin for origin, expansion in self.rules if not expansion)]
        while todo:
            symbol = todo.pop()
            for number in () if found[symbol] else uses[symbol]:
                missing[number] -= 1
                if not missing[number]:
                    todo.append(self.rules[number][0])
            found[symbol] = True
        return found

    def shown(self, rule: int) -> str:
        """A rule as a person writes it."""
        origin, expansion = self.rules[rule]
        return f"{self.names[origin]}: {' '.join(self.names[s] for s in expansion) or '(empty)'}"
