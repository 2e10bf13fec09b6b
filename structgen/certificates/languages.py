"""What texts an automaton has: whether any, how many, the shortest, the longest.

A machine's symbols and productions (`structgen.runtime.core.machine.Productions`) are a context-free grammar in
Greibach's form: each production begins with a byte. So the shortest text is found by Knuth's generalisation of
Dijkstra's algorithm (1977); a language is infinite exactly if a symbol that texts use can come to itself (Hopcroft,
Ullman 1979, theorem 6.6), and then it can be pumped there; one that is finite is counted, and its longest text found,
from the symbols without others upwards. To count texts by their derivations each must have one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import MAX_EMAX, Context, Decimal, Inexact
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from ..budget import Meter
from ..runtime.core.lazy_table import LazyTable
from ..system.visible import legibility

#: Numbers of texts have so many digits, and are rounded beyond.
DIGITS = 100

#: The longest text that is spelled out.
MOST_BYTES = 1 << 16

_DOING = "looking through the automaton"

#: All bytes with their place in an order: those that are easy to read first.
READABLE = {byte: i for i, byte in enumerate(sorted(range(256), key=legibility))}


S = TypeVar("S", bound=Hashable)

#: In place of a production's first byte: a whole token; nothing at all.
_TOKEN, _NOTHING = -1, -2

#: As `CompiledMachine.productions` gives them; there are None in place of bytes where a production has none itself.
AnyProductions: TypeAlias = tuple[bool, Sequence[tuple[bytes | None, tuple[S, ...]]]]


class GreibachProduction(NamedTuple):
    """A production of a numbered symbol.

    Parameters
    ----------
    first:
        The byte that is easiest to read; -1 for a whole token, -2 for nothing.
    data:
        All bytes that there are to choose from, none for a whole token.
    symbols:
        The numbers of what takes the symbol's place, the first lowest.
    """

    first: int
    data: bytes
    symbols: tuple[int, ...]

    @property
    def size(self) -> int:
        """Its own bytes, beside those of the symbols."""
        return int(self.first != _NOTHING)

    @property
    def choices(self) -> int:
        """How many bytes there are to choose from, 1 where there is nothing to choose."""
        return len(self.data) if self.size else 1


#: By symbol a production, None for the empty text.
_Choices: TypeAlias = "LazyTable[GreibachProduction | None] | list[GreibachProduction | None]"


class Pump(NamedTuple):
    """Where a language is infinite: ``prefix + again * n + middle + more * n + suffix`` is a text for every ``n``."""

    prefix: bytes
    again: bytes
    middle: bytes
    more: bytes
    suffix: bytes

    def text(self, times: int) -> bytes:
        """The text with so many turns."""
        return self.prefix + self.again * times + self.middle + self.more * times + self.suffix


class GreibachLanguage(Generic[S]):
    """The symbols that texts of a machine use, with their productions.

    Parameters
    ----------
    productions:
        `structgen.runtime.core.machine.CompiledMachine.productions`, or such with others that have no byte. (Each
        cycle of symbols has to have one.)
    meter:
        Bounds the work. Raises `BudgetExceededError` beyond.
    spelled:
        What stands in texts for a whole token.
    others:
        Symbols to look at beside those that the start comes to; may grow as productions are asked for.

    Attributes
    ----------
    symbols, productions, ends:
        By number; the start is 0. ``ends``: whether the symbol has the empty text.
    cost:
        The bytes of each symbol's shortest text, -1 where it has none.
    """

    def __init__(
        self,
        productions: Callable[..., tuple[S, AnyProductions[S]]],
        meter: Meter,
        spelled: bytes = b"",
        others: Sequence[S] = (),
    ) -> None:
        self.meter, self._spelled = meter, spelled
        self.symbols: list[S] = []
        self.productions: list[list[GreibachProduction]] = []
        self.ends: list[bool] = []
        self.reads_tokens = False
        self._explore(productions, others)
        self._find_costs()

    def _explore(self, productions: Callable[..., tuple[S, AnyProductions[S]]], others: Sequence[S]) -> None:
        start, first = productions()
        number: dict[S, int] = {start: 0}
        best_of: dict[bytes | None, int] = {b"": _TOKEN, None: _NOTHING}
        self.symbols.append(start)

        def number_of(each: S) -> int:
            found = number[each] = len(self.symbols)
            self.symbols.append(each)
            return found

        noted = 0
        for symbol in self.meter.each(self.symbols, _DOING, every=64):  # grows as it goes
            ends, moves = first if symbol == start else productions(symbol)[1]
            found = []
            for each in others[noted:]:
                if each not in number:
                    number_of(each)
            noted = len(others)
            for data, behind in moves:
                best = best_of.get(data)
                if best is None:
                    best = best_of[data] = min(data or b"", key=READABLE.__getitem__)
                self.reads_tokens |= best == _TOKEN
                numbers = tuple([number[each] if each in number else number_of(each) for each in behind])
                found.append(GreibachProduction(best, data or b"", numbers))
            self.ends.append(ends)
            self.productions.append(found)

    def _find_costs(self) -> None:
        """Knuth's algorithm. Costs are bytes, and of these there are few: symbols wait in buckets (Dial 1969)."""
        self.cost = [-1] * len(self.symbols)
        #: By symbol the production of its shortest text, None for the empty one.
        self._chosen: LazyTable[GreibachProduction | None] = LazyTable(self._choice)
        waiting: list[list[int]] = [[] for _ in self.symbols]  # the productions that have a symbol, once a time
        owners: list[int] = []
        totals: list[int] = []  # of the symbols in a production that have a cost, and its own byte
        left: list[int] = []  # the symbols in it that have none yet
        buckets: dict[int, list[int]] = {0: [symbol for symbol, is_end in enumerate(self.ends) if is_end]}
        for symbol, found in enumerate(self.productions):
            for made in found:
                if not made.symbols:
                    buckets.setdefault(made.size, []).append(symbol)
                    continue
                for each in made.symbols:
                    waiting[each].append(len(owners))
                owners.append(symbol)
                totals.append(made.size)
                left.append(len(made.symbols))
        costs = [*buckets]
        heapify(costs)
        while costs:
            cost = costs[0]
            for symbol in self.meter.each(buckets[cost], _DOING, every=256):  # grows as it goes
                if self.cost[symbol] >= 0:
                    continue
                self.cost[symbol] = cost
                for number in waiting[symbol]:
                    totals[number] += cost
                    left[number] -= 1
                    if not left[number] and self.cost[owners[number]] < 0:
                        total = totals[number]
                        if total not in buckets:
                            buckets[total] = []
                            heappush(costs, total)
                        buckets[total].append(owners[number])
            heappop(costs)

    def _choice(self, symbol: int) -> GreibachProduction | None:
        """The production of a symbol's shortest text that is easiest to read, None for the empty text."""
        if self.ends[symbol]:
            return None
        cheapest = [made for made in self.productions[symbol] if self._cost_of(made) == self.cost[symbol]]
        return min(cheapest, key=lambda made: (READABLE.get(made.first, 256), made))

    def _cost_of(self, production: GreibachProduction) -> int:
        """The bytes of a production's shortest text, -1 where it has none."""
        costs = [self.cost[each] for each in production.symbols]
        return -1 if min(costs, default=0) < 0 else production.size + sum(costs)

    # -- texts -----------------------------------------------------------------------------------------

    def dead(self) -> list[S]:
        """The symbols that no bytes take off the stack."""
        return [symbol for symbol, cost in zip(self.symbols, self.cost, strict=True) if cost < 0]

    def shortest(self, symbol: int = 0) -> bytes | None:
        """The shortest text of a symbol, None for one of more than `MOST_BYTES`."""
        return self._spell(self._chosen, symbol) if 0 <= self.cost[symbol] <= MOST_BYTES else None

    def _spell(self, chosen: _Choices, symbol: int) -> bytes:
        found, todo = bytearray(), [symbol]
        while todo:
            production = chosen[todo.pop()]
            if production is not None:
                found += self._first(production)
                todo += production.symbols
        return bytes(found)

    def _first(self, production: GreibachProduction) -> bytes:
        """What a production's own byte adds to a text."""
        if production.first >= 0:
            return bytes([production.first])
        return self._spelled if production.size else b""

    def useful(self) -> Iterator[tuple[int, GreibachProduction]]:
        """The productions that texts use, with their symbols."""
        for symbol, found in enumerate(self.productions):
            for production in found:
                if all(self.cost[each] >= 0 for each in production.symbols):
                    yield symbol, production

    # -- infinite languages ----------------------------------------------------------------------------

    def order(self) -> list[int] | None:
        """The symbols that texts use, each after those of its productions; None where there is a cycle."""
        found: list[int] = []
        state = bytearray(len(self.symbols))  # 1 on the path, 2 done
        path = [(0, self._heads(0))]
        state[0] = 1
        while path:
            symbol, heads = path[-1]
            for head in heads:
                if state[head] == 1:
                    self._path = [each for each, _ in path]
                    self._cycle = self._path[self._path.index(head) :]
                    return None
                if not state[head]:
                    state[head] = 1
                    path.append((head, self._heads(head)))
                    break
            else:
                state[symbol] = 2
                found.append(symbol)
                path.pop()
        return found

    def _heads(self, symbol: int) -> Iterator[int]:
        """What a symbol's productions come to, those that are cheap first."""
        useful = [made for made in self.productions[symbol] if all(self.cost[each] >= 0 for each in made.symbols)]
        useful.sort(key=lambda made: READABLE.get(made.first, 256))
        return iter([each for made in useful for each in reversed(made.symbols)])

    def pump(self) -> Pump | None:
        """The pump of the cycle that `order` found; None where its parts are too long to spell out."""
        before, cycle = self._path[: self._path.index(self._cycle[0]) + 1], [*self._cycle, self._cycle[0]]
        if sum(self.cost[each] for each in self._path) > MOST_BYTES:
            return None
        prefix, suffix = self._around(before)
        again, more = self._around(cycle)
        middle = self.shortest(self._cycle[0])
        return None if middle is None else Pump(prefix, again, middle, more, suffix)

    def _around(self, path: list[int]) -> tuple[bytes, bytes]:
        """The texts before and after the last symbol of a path, of which each comes to the next."""
        before, after = bytearray(), b""
        for symbol, goal in pairwise(path):
            made = min(
                (each for each in self.productions[symbol] if goal in each.symbols and self._all_end(each)),
                key=lambda each: (sum(self.cost[s] for s in each.symbols), READABLE.get(each.first, 256)),
            )
            at = len(made.symbols) - 1 - made.symbols[::-1].index(goal)
            before += self._first(made)
            for each in reversed(made.symbols[at + 1 :]):
                before += self._spell(self._chosen, each)
            after = b"".join(self._spell(self._chosen, each) for each in reversed(made.symbols[:at])) + after
        return bytes(before), after

    def _all_end(self, production: GreibachProduction) -> bool:
        return all(self.cost[each] >= 0 for each in production.symbols)

    # -- finite languages ------------------------------------------------------------------------------

    def number(self, order: list[int]) -> tuple[Decimal, bool]:
        """How many derivations there are, and whether that is exact."""
        context = Context(prec=DIGITS, Emax=MAX_EMAX)
        numbers = [Decimal(0)] * len(self.symbols)
        for symbol in self.meter.each(order, _DOING, every=256):
            total = Decimal(int(self.ends[symbol]))
            for made in self.productions[symbol]:
                if self._all_end(made):
                    product = Decimal(made.choices)
                    for each in made.symbols:
                        product = context.multiply(product, numbers[each])
                    total = context.add(total, product)
            numbers[symbol] = total
        return numbers[0], not context.flags[Inexact]

    def longest(self, order: list[int]) -> tuple[int, bytes | None]:
        """The bytes of the longest text, and the text, if it is to be spelled out."""
        most = [0] * len(self.symbols)
        chosen: list[GreibachProduction | None] = [None] * len(self.symbols)
        for symbol in self.meter.each(order, _DOING, every=256):
            for made in self.productions[symbol]:
                if self._all_end(made):
                    total = made.size + sum([most[each] for each in made.symbols])
                    if total > most[symbol]:
                        most[symbol], chosen[symbol] = total, made
        return most[0], self._spell(chosen, 0) if most[0] <= MOST_BYTES else None
