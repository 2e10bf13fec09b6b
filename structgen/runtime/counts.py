"""Which counts the states of an automaton with a stack can have.

A state inside a loop can have any; the states along a key, or along a pattern whose length is bounded, have one each.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .pushdown_tables import PushdownTables
from .tables import MARK, SET

#: A record or None, and the states that may get the count.
_Counting: TypeAlias = tuple[tuple[int, ...] | None, list[int]]

#: More possible counts than this are taken for any.
_FEW_COUNTS = 8


class Counts(NamedTuple):
    """What can be said of the counts of each state.

    Parameters
    ----------
    possible:
        By state, the counts that it can have where these are a few; None for more, and for sets.
    without:
        The states that can be entered without a count.
    """

    possible: list[set[int] | None]
    without: set[int]


def counts_of(tables: PushdownTables) -> Counts:
    """A flow along the moves that keep, set or add to a count."""
    if not len(tables.loops):
        return Counts([None] * tables.states, set())
    moves = [_counting_moves(tables, state) for state in range(tables.states)]
    without = _countless(tables, moves)
    return Counts(_possible_counts(tables, moves, without), without)


def zones_of(record: tuple[int, ...]) -> list[int]:
    """The states that a counting or marking move may come to."""
    operation, _, low, mid, high = record
    return [low] if operation in (SET, MARK) else [s for s in dict.fromkeys((low, mid, high)) if s >= 0]


def _countless(tables: PushdownTables, moves: list[list[_Counting]]) -> set[int]:
    """The states that the start, a state without a count, or a push as other than the first leads to."""
    found = {tables.start, *(state for state in range(tables.states) if tables.live[state] < 0)}
    for group in tables.moves:
        for record, sequence in group:
            found.update(sequence if record is not None else sequence[1:])
    todo = list(found)
    while todo:
        for record, targets in moves[todo.pop()]:
            for target in targets if record is None else ():
                if target not in found:
                    found.add(target)
                    todo.append(target)
    return found


def _possible_counts(
    tables: PushdownTables, moves: list[list[_Counting]], countless: set[int]
) -> list[set[int] | None]:
    counts: list[set[int] | None] = [None if is_set else set() for is_set in tables.registers.tolist()]
    todo: list[tuple[int, int | None]] = []

    def add(state: int, count: int | None) -> None:
        known = counts[state]
        if known is None or state < 0 or tables.live[state] < 0 or count in known:
            return
        if count is None or len(known) == _FEW_COUNTS:
            counts[state] = count = None
        else:
            known.add(count)
        todo.append((state, count))

    loops = tables.loops.tolist()
    for state_moves in moves:
        for record, targets in state_moves:
            if record is not None and record[0] == SET:
                add(targets[0], 1)
    todo += [(state, 0) for state in countless]
    while todo:
        state, count = todo.pop()
        for record, targets in moves[state]:
            if count is None or (record is None and count):
                for target in targets:
                    add(target, count)
            elif record is not None and record[0] not in (SET, MARK):
                minimum, maximum = loops[record[1]]
                zone = 2 if count + 1 >= maximum else 1 if count + 1 >= minimum else 0
                add(record[2 + zone], count + 1)
    return counts


def _counting_moves(tables: PushdownTables, state: int) -> list[_Counting]:
    """The moves of a state by which a count can go on: the record, and the states that may get the count."""
    found: list[_Counting] = []
    for target in tables.targets(state):
        if target < tables.states:
            found.append((None, [target]))
            continue
        for record, sequence in tables.moves[target - tables.states]:
            if record is not None:
                found.append((record, zones_of(record)))
            elif sequence:
                found.append((None, [sequence[0]]))
    return found
