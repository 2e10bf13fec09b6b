"""Conflicts as a person needs them: the rules, and the shortest text at which the parser cannot decide.

The text is one of symbols that lead to the state, each spelled out by terminals, and then the terminal before which
the actions compete. It is the shortest that comes to the state, not always one that can be completed both ways.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Collection, Iterator

from ....budget import Meter
from ....definitions.shipped import names
from ....errors import DefinitionError
from ....runtime.core.digraph import bits, solve
from ..load.refusals import Places
from .lalr import Conflict, Lalr
from .symbols import Symbol, Symbols

#: So many conflicts are spelled out in one message.
_MOST_SHOWN = 5

#: What the meter is told.
_DOING = "looking for shortest texts"

#: Words longer than this are of no help to anybody.
_LONGEST = 10_000


#: Names of the rules that Lark makes of repeats, with the rule that has them.
_REPEAT = re.compile(r"__(\w+)_(?:star|plus)_\d+")


_NOWHERE = Places("", "")


def check(table: Lalr, meter: Meter, *, strict: bool, places: Places = _NOWHERE) -> None:
    """Raise `DefinitionError` for conflicts that nothing decides; where ``strict``, for all.

    Raises `BudgetExceededError` where it takes too long to say what competes.
    """
    bad = [conflict for conflict in table.conflicts if strict or conflict.winner is None]
    if not bad:
        return
    describe = Descriptions(table, meter)
    shown = [describe(conflict) for conflict in bad[:_MOST_SHOWN]]
    more = len(bad) - len(shown)
    name = _REPEAT.sub(r"\1", table.symbols.names[table.symbols.rules[bad[0].rules[0]][0]])
    raise DefinitionError(
        f"the grammar is not LALR(1): {'; '.join(shown)}{f'; and {more} more' if more else ''}",
        where=": ".join(filter(None, (places.of_definition(name), f"rule {name}"))),
        remedy='Follow all actions, ambiguity="all"; or change the rules, or give one of them a priority.',
    )


def shifted(table: Lalr, meter: Meter) -> Iterator[str]:
    """A sentence for each conflict in which shifting won, but for those in rules of structgen's own grammars.

    Raises `BudgetExceededError`.
    """
    imported = tuple(f"{name}__" for name in names())
    found = [
        conflict
        for conflict in table.conflicts
        if conflict.winner == -1
        and not all(table.symbols.names[table.symbols.rules[rule][0]].startswith(imported) for rule in conflict.rules)
    ]
    describe = Descriptions(table, meter) if found else None
    return (f"two actions compete {describe(conflict)}" for conflict in found if describe)


class Descriptions:
    """Conflicts of one table, each in a sentence. Raises `BudgetExceededError`."""

    def __init__(self, table: Lalr, meter: Meter) -> None:
        self._table, self._meter = table, meter
        #: By symbol: a shortest text of terminals.
        self.words = shortest_texts(table.symbols, meter)
        self._before = self._ways()

    def __call__(self, conflict: Conflict) -> str:
        """The sentence."""
        self._meter.check_time(_DOING)
        table, symbols = self._table, self._table.symbols
        terminal = next(bits(conflict.terminals))
        names = [symbols.names[t] for t in self.way_to(conflict.state)]
        rules = [f"reduce '{symbols.shown(rule)}'" for rule in conflict.rules]
        if conflict.winner == -1:
            target = table.automaton.moves[conflict.state][terminal]
            item = table.automaton.kernels[target][0] - 1
            rules.append(f"shift in '{table.automaton.items.shown(item)}'")
        end = {None: "", -1: " (shifted)"}.get(conflict.winner, " (the first by priority)")
        return f"after {' '.join(names) or 'nothing'}, before {symbols.names[terminal]}: {' or '.join(rules)}{end}"

    def _ways(self) -> dict[int, tuple[int, Symbol]]:
        """By state that symbols lead to: the one before it on a way of as few terminals as possible, and the symbol.

        (Dijkstra's algorithm.)
        """
        tie = itertools.count()
        heap: list[tuple[int, int, int, tuple[int, Symbol]]] = [(0, next(tie), 0, (-1, -1))]
        found: dict[int, tuple[int, Symbol]] = {}
        while heap:
            length, turn, here, before = heapq.heappop(heap)
            if turn % 256 == 0:
                self._meter.check_time(_DOING)
            if here in found:
                continue
            found[here] = before
            for symbol, target in self._table.automaton.moves[here].items():
                word = self.words[symbol]
                if word is not None and target not in found:
                    heapq.heappush(heap, (length + len(word), next(tie), target, (here, symbol)))
        return found

    def way_to(self, state: int) -> Iterator[Symbol]:
        """Terminals that lead from the start to a state, as few as possible."""
        symbols = []
        while state in self._before:
            state, symbol = self._before[state]
            symbols.append(symbol)
        for symbol in reversed(symbols[:-1]):
            yield from self.words[symbol] or ()


def shortest_texts(
    symbols: Symbols, meter: Meter, never: int = 0, weights: list[int] | None = None
) -> list[tuple[Symbol, ...] | None]:
    """By symbol: a shortest text of terminals; None where there is none.

    ``never`` are terminals that no text has, ``weights`` how long each counts. (Knuth's generalisation of Dijkstra's
    algorithm, 1977.) Raises `BudgetExceededError`.
    """
    held = 0
    found: list[tuple[Symbol, ...] | None] = [
        (s,) if symbols.is_terminal(s) and not never >> s & 1 else None for s in range(len(symbols.names))
    ]
    found[symbols.end] = ()
    missing = [len(set(expansion)) for _, expansion in symbols.rules]
    uses: list[list[int]] = [[] for _ in symbols.names]
    for rule, (_, expansion) in enumerate(symbols.rules):
        for symbol in set(expansion):
            uses[symbol].append(rule)
    tie = itertools.count()
    heap: list[tuple[int, int, Symbol, tuple[Symbol, ...]]] = []

    def settle(rule: int) -> None:
        nonlocal held
        origin, expansion = symbols.rules[rule]
        if sum(len(found[s] or ()) for s in expansion) <= _LONGEST:
            text = tuple(t for s in expansion for t in found[s] or ())
            held += 200 + 8 * len(text)
            meter.check_time(_DOING)
            meter.check_memory(held, _DOING)
            length = sum(weights[t] for t in text) if weights else len(text)
            heapq.heappush(heap, (length, next(tie), origin, text))

    def known(symbol: Symbol) -> None:
        for rule in uses[symbol]:
            missing[rule] -= 1
            if not missing[rule]:
                settle(rule)

    for rule, count in enumerate(missing):
        if not count:
            settle(rule)
    for terminal in range(symbols.end + 1):
        if found[terminal] is not None:
            known(terminal)
    while heap:
        _, _, origin, word = heapq.heappop(heap)
        if found[origin] is None:
            found[origin] = word
            known(origin)
    return found


def unproductive(symbols: Symbols, never: Collection[str] = ()) -> set[str]:
    """The nonterminals of which no text of terminals can come, other than those that ``never`` come."""
    found = symbols.deriving(s for s in range(symbols.end + 1) if symbols.names[s] not in never)
    return {name for name, known in zip(symbols.names, found, strict=True) if not known} - set(never)


def comes_to_itself(symbols: Symbols) -> bool:
    """Whether some rule comes to itself without having read anything.

    Followed in every way, it never ends. That is: a rule can begin with itself behind something that may be empty
    (hidden left recursion, Nederhof & Sarbo 1996), or can be nothing but itself.
    """
    nullable = symbols.nullable
    left: list[set[Symbol]] = [set() for _ in symbols.names]  # what a text of the symbol can begin with
    hidden: list[set[Symbol]] = [set() for _ in symbols.names]  # of these, what stands behind something empty
    alone: list[set[Symbol]] = [set() for _ in symbols.names]  # what it can be, all else empty
    for origin, expansion in symbols.rules:
        for i, symbol in enumerate(expansion):
            if not symbols.is_terminal(symbol):
                left[origin].add(symbol)
                if i:
                    hidden[origin].add(symbol)
                if all(nullable[s] for s in (*expansion[:i], *expansion[i + 1 :])):
                    alone[origin].add(symbol)
            if not nullable[symbol]:
                break
    for edges, closing in ((left, hidden), (alone, alone)):
        reached = [1 << symbol for symbol in range(len(edges))]
        solve(reached, [sorted(there) for there in edges])
        if any(reached[symbol] >> origin & 1 for origin, there in enumerate(closing) for symbol in there):
            return True
    return False
