"""Whether brackets and indented blocks nest in a grammar's rules, so that its parser's stack tells which are open.

The net of a symbol is how many more brackets a text of it opens than it closes. Where each nonterminal has one net,
whatever its text, the open brackets are the nets of the symbols on the stack added up, and so are the open blocks.
(Knuth, A characterization of parenthesis languages, 1967.) The rules are read from the parser's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....errors import FormatError
from ..tables import GrammarTables

#: A nonterminal and the symbols of one expansion.
_Rule: TypeAlias = tuple[int, tuple[int, ...]]

#: Moves of a parser, by column.
_Moves: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]

#: So many brackets a rule can have open at once; past that it counts as one that does not nest.
_MOST_OPEN = 64


class NotNestedError(Exception):
    """Brackets or blocks, as ``kind`` says, do not nest in the texts of a nonterminal, ``origin``."""

    def __init__(self, kind: str, origin: int) -> None:
        super().__init__(kind, origin)
        self.kind, self.origin = kind, origin


@dataclass(frozen=True)
class Nesting:
    """The nets of a grammar whose brackets and blocks nest.

    Parameters
    ----------
    net:
        By parser state: the net of brackets of the symbol that leads to it.
    below:
        By parser state: so many brackets at most can be closed above it that were opened below it, up to what a rule
        that is under way there can close.
    is_whole:
        Whether each nonterminal closes just the blocks that it opens.
    """

    net: list[int]
    below: list[int]
    is_whole: bool = True

    @classmethod
    def find(cls, tables: GrammarTables, check: Callable[[], object]) -> Nesting | None:
        """As `of`; None for a grammar whose brackets or blocks do not nest."""
        try:
            return cls.of(tables, check)
        except NotNestedError:
            return None

    @classmethod
    def of(cls, tables: GrammarTables, check: Callable[[], object]) -> Nesting:
        """Of a grammar with a layout. ``check`` is called rule by rule, and may raise.

        Raises `NotNestedError`, `FormatError`.
        """
        layout = tables.layout
        assert layout is not None
        moves = _moves(tables)
        rules, start = rules_of(tables, check)
        nets = _nets("brackets", rules, tables.end, layout.opening, layout.closing, start, check)
        blocks = _nets("blocks", rules, tables.end, {layout.indent}, {layout.dedent}, start, check)
        net = np.zeros(len(tables.context), np.int64)
        net[moves[2]] = _by_symbol(nets, moves[1])
        is_whole = not any(there for symbol, there in blocks.items() if symbol > tables.end)
        return cls(net.tolist(), _below(tables, moves, nets, start, check), is_whole)

    def depths(self, tables: GrammarTables) -> list[set[int]]:
        """By parser state: how many brackets can be open there, as far as that matters."""
        sources, _, targets = _moves(tables)
        order, first = _grouped(sources, len(self.net))
        after = targets[order].tolist()
        found: list[set[int]] = [set() for _ in self.net]
        found[0].add(0)
        todo = [(0, 0)]
        while todo:
            state, depth = todo.pop()
            for target in after[first[state] : first[state + 1]]:
                there = min(depth + self.net[target], self.below[target] + 1)
                if there >= 0 and there not in found[target]:
                    found[target].add(there)
                    todo.append((target, there))
        return found


def rules_of(tables: GrammarTables, check: Callable[[], object]) -> tuple[list[_Rule], int]:
    """The rules that are reduced somewhere, and the nonterminal that a whole text is. Raises `FormatError`."""
    sources, symbols_read, targets = _moves(tables)
    before, symbol_of = np.zeros(len(tables.context), np.int32), np.full(len(tables.context), -1, np.int32)
    before[targets], symbol_of[targets] = sources, symbols_read
    ending = tables.shift[tables.shift[:, 1] == tables.end, 0]
    whole = symbols_read[(sources == 0) & np.isin(targets, ending)].tolist()
    below, read = before.tolist(), symbol_of.tolist()
    found: dict[_Rule, None] = {}
    for state, length, origin in zip(*tables.reduce.T.tolist(), strict=True):
        check()
        symbols = []
        for _ in range(length):  # all ways back read the same symbols
            if read[state] < 0:
                raise FormatError("the parser's tables contradict themselves")
            symbols.append(read[state])
            state = below[state]
        found[origin, tuple(reversed(symbols))] = None
    return list(found), whole[-1] if whole else -1


def _nets(
    kind: str, rules: list[_Rule], end: int, opening: Set[int], closing: Set[int], start: int,
    check: Callable[[], object],
) -> dict[int, int]:  # fmt: skip
    """By symbol, how many more brackets its texts open than close; symbols without texts are left out."""
    own = {**dict.fromkeys(opening, 1), **dict.fromkeys(closing, -1)}
    found = {terminal: own.get(terminal, 0) for terminal in range(end + 1)}
    uses: dict[int, list[int]] = {}
    missing = []
    for rule, (_, expansion) in enumerate(rules):
        needed = {symbol for symbol in expansion if symbol > end}
        missing.append(len(needed))
        for symbol in needed:
            uses.setdefault(symbol, []).append(rule)
    todo = [rule for rule, count in enumerate(missing) if not count]
    for rule in todo:  # grows as it goes
        check()
        origin, expansion = rules[rule]
        net = sum(found[symbol] for symbol in expansion)
        if found.setdefault(origin, net) != net:
            raise NotNestedError(kind, origin)
        for use in uses.pop(origin, ()):
            missing[use] -= 1
            if not missing[use]:
                todo.append(use)
    if found.get(start, 0):
        raise NotNestedError(kind, start)
    _check_order(kind, rules, found, own, start, check)
    return found


def _check_order(
    kind: str, rules: list[_Rule], nets: Mapping[int, int], own: Mapping[int, int], start: int,
    check: Callable[[], object],
) -> None:  # fmt: skip
    """Raise `NotNestedError` where a text can close what was not opened before."""
    lowest = {terminal: min(0, net) for terminal, net in own.items()}
    for _ in range(len(rules) + 1):
        fell = -1
        for origin, expansion in rules:
            check()
            height = low = 0
            for symbol in expansion:
                low = min(low, height + lowest.get(symbol, 0))
                height += nets.get(symbol, 0)
            if low < lowest.get(origin, 0):
                lowest[origin], fell = low, origin
        if fell < 0:
            break
    if fell >= 0 or lowest.get(start, 0):
        raise NotNestedError(kind, fell if fell >= 0 else start)


def _below(
    tables: GrammarTables, moves: _Moves, nets: Mapping[int, int], start: int, check: Callable[[], object]
) -> list[int]:
    is_known = np.isin(moves[1], [*nets])
    sources, symbols, targets = (column[is_known] for column in moves)
    net = _by_symbol(nets, symbols)
    highest = np.zeros(len(tables.context), np.int64)
    np.maximum.at(highest, sources, -net)  # what is below a single symbol; the rest is found from there
    order, first = _grouped(targets, len(highest))
    into, gain = sources[order].tolist(), net[order].tolist()
    found: list[int] = highest.tolist()
    todo = np.flatnonzero(highest).tolist()
    if highest.max() > _MOST_OPEN:
        raise NotNestedError("brackets", start)
    while todo:
        check()
        target = todo.pop()
        for move in range(first[target], first[target + 1]):
            state, there = into[move], found[target] - gain[move]
            if there > found[state]:
                found[state] = there
                if there > _MOST_OPEN:
                    raise NotNestedError("brackets", start)
                todo.append(state)
    return found


def _moves(tables: GrammarTables) -> _Moves:
    """Sources, symbols and targets of all that the parser shifts and goes to."""
    sources, symbols, targets = np.concatenate([tables.shift, tables.goto]).T
    return sources, symbols, targets


def _by_symbol(of: Mapping[int, int], symbols: NDArray[np.int32]) -> NDArray[np.int64]:
    """What each of some symbols has; 0 where it has nothing."""
    found = np.zeros(int(symbols.max(initial=0)) + 1, np.int64)
    for symbol, value in of.items():
        if symbol < len(found):
            found[symbol] = value
    return found[symbols]


def _grouped(states: NDArray[np.int32], count: int) -> tuple[NDArray[np.int64], list[int]]:
    """The order that brings moves of a state together; by state the first of them, and how many there are."""
    order = np.argsort(states, kind="stable")
    return order, np.searchsorted(states[order], np.arange(count + 1)).tolist()
