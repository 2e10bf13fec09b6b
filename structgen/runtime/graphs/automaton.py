"""The picture of an `AutomatonMachine`'s tables: states, bytes, counts."""

from __future__ import annotations

from collections.abc import Iterator

from ..automaton.tables import SET, Tables
from .graph import Graph
from .moves import DrawnMove, DrawnState, draw


def graph_of(tables: Tables, title: str, limit: int) -> Graph:
    """The graph of a byte automaton."""
    return draw(title, tables.start, lambda state: _moves(tables, state), lambda state: _shown(tables, state), limit)


def _shown(tables: Tables, state: int) -> DrawnState:
    is_accepting = bool(tables.accepting[state])
    live = int(tables.live[state]) if len(tables.loops) else -1
    return DrawnState(f"{state}" + (f" (count {live})" if live >= 0 else ""), is_accepting, live >= 0)


def _moves(tables: Tables, state: int) -> Iterator[DrawnMove]:
    begin, end = int(tables.edge_start[state]), int(tables.edge_start[state + 1])
    together: dict[int, list[tuple[int, int]]] = {}
    edges = tables.edge_low[begin:end], tables.edge_high[begin:end], tables.edge_target[begin:end]
    for low, high, target in zip(*(column.tolist() for column in edges), strict=True):
        together.setdefault(target, []).append((low, high))
    for target, ranges in together.items():
        if target < tables.states:
            yield DrawnMove(target, (tuple(ranges),))
            continue
        record = tables.records[target - tables.states].tolist()
        for note, counted in counted_moves(record, tables.loops.tolist()):
            yield DrawnMove(counted, (tuple(ranges),), note)


def counted_moves(record: list[int], loops: list[list[int]]) -> list[tuple[str, int]]:
    """What a counting record does and where it leads, for each range of counts; see `Tables`."""
    operation, loop, low, middle, high = record
    if operation == SET:
        return [(f"count {loop} = 1", low)]
    least, most = loops[loop]
    zones = ((low, 2, least - 1), (middle, max(2, least), most - 1), (high, most, most))
    found: list[tuple[int, int, int]] = []
    for target, first, last in zones:
        if first > last or target < 0:
            continue
        if found and (found[-1][0], found[-1][2] + 1) == (target, first):
            first = found.pop()[1]
        found.append((target, first, last))
    return [(_zone(f"count {loop} + 1", first, last), target) for target, first, last in found]


def _zone(count: str, first: int, last: int) -> str:
    """A condition on a count, which is at least 2."""
    if first == last:
        return f"{count} = {last:,}"
    return f"{count} ≤ {last:,}" if first == 2 else f"{first:,} ≤ {count} ≤ {last:,}"
