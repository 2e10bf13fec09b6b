"""The picture of a `GrammarMachine`'s parser (LALR): states, what they shift, what they reduce."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...system.visible import visible
from ..core.bitsets import set_at
from ..core.digraph import bits
from ..grammar.tables import GrammarTables
from .graph import Graph
from .moves import DrawnMove, DrawnState, draw

#: Terminals before which a state reduces, that are named.
_FEW = 4


def graph_of(tables: GrammarTables, title: str, limit: int) -> Graph:
    """The graph of an LALR parser: moves on terminals, and dashed ones on rules that were reduced."""
    reader = _Reader(tables)
    return draw(f"{title}: the parser's states", tables.start, reader.moves, reader.shown, limit)


class _Reader:
    def __init__(self, tables: GrammarTables) -> None:
        self._tables = tables

    def shown(self, state: int) -> DrawnState:
        tables = self._tables
        begin, end = np.searchsorted(tables.reduce[:, 0], [state, state + 1]).tolist()
        notes = []
        for number in range(begin, end):
            _, popped, nonterminal = tables.reduce[number].tolist()
            before = [each for each in bits(set_at(tables.before, number)) if each <= tables.end]
            names = [visible(tables.name(each)) for each in before]
            some = ", ".join(names[:_FEW]) + (", …" if len(names) > _FEW else "")
            notes.append(f"rule {nonterminal} of {popped} before {some}")
        return DrawnState("; ".join([f"{state}", *notes]), self._shifts_end(state), True)

    def _shifts_end(self, state: int) -> bool:
        begin, end = np.searchsorted(self._tables.shift[:, 0], [state, state + 1]).tolist()
        return self._tables.end in self._tables.shift[begin:end, 1].tolist()

    def moves(self, state: int) -> Iterator[DrawnMove]:
        tables = self._tables
        begin, end = np.searchsorted(tables.shift[:, 0], [state, state + 1]).tolist()
        for _, terminal, target in tables.shift[begin:end].tolist():
            yield DrawnMove(target, (), visible(tables.name(terminal)))
        begin, end = np.searchsorted(tables.goto[:, 0], [state, state + 1]).tolist()
        for _, nonterminal, target in tables.goto[begin:end].tolist():
            yield DrawnMove(target, (), f"rule {nonterminal}", is_return=True)
