"""Parts of an automaton: what begins at a state, whatever it lies in."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..automaton.tables import MARK, SET
from .flow import flow_of, reach
from .tables import PushdownTables

#: States of an automaton whose rows are shared through the vocabulary.
_LARGEST = 400


class Subautomaton(NamedTuple):
    """The automaton that begins at a state, whatever it lies in: a hash, and the loop that it counts in or -1."""

    digest: bytes
    loop: int


def subautomaton(tables: PushdownTables, state: int, *, far: bool = False) -> Subautomaton | None:
    """None where it calls, returns, branches, counts in several loops, or is large.

    ``far`` takes it as it is while all counts are far from their bounds: as one that does not count. None, too, where
    a count can begin anew.
    """
    number = {state: 0}
    loops: set[int] = set()
    digest = hashlib.blake2b(digest_size=32)

    def named(target: int) -> int:
        if target >= 0 and target not in number:
            number[target] = len(number)
            queue.append(target)
        return number[target] if target >= 0 else -1

    for here in (queue := [state]):
        if tables.returns[here] or tables.like[here] or len(queue) > _LARGEST:
            return None
        begin, end = int(tables.edge_start[here]), int(tables.edge_start[here + 1])
        names: list[object] = [int(tables.live[here]) >= 0 and not far]
        for target in (tables.edge_target[begin:end].astype(np.int64) - 1).tolist():
            if target < tables.states:
                names.append(named(target))
                continue
            moves = tables.moves[target - tables.states]
            (record, sequence), *others = moves
            if others or sequence:
                return None
            if record is None:
                names.append("pop")
                continue
            operation, loop, *zones = record
            if operation == MARK or (far and operation == SET):
                return None
            if far:
                names.append(named(zones[1]))
                continue
            loops.add(loop)
            names.append((operation, *map(named, zones[:1] if operation == SET else zones)))
        digest.update(tables.edge_low[begin:end].tobytes() + tables.edge_high[begin:end].tobytes())
        digest.update(repr(names).encode())
    return Subautomaton(digest.digest(), max(loops, default=-1)) if len(loops) <= 1 else None


def calling_states(tables: PushdownTables) -> NDArray[np.bool_]:
    """``bool[states]``: reaches a return, a move that pushes, a set, or several moves for a byte, before it pops."""
    flow = flow_of(tables)
    calls = np.zeros(tables.states + len(tables.group_start), np.bool_)
    calls[: tables.states] = tables.returns
    counted, records = flow.records >= 0, tables.records[flow.records[flow.records >= 0]]
    many = np.diff(tables.move_start.astype(np.int64)) + counted > 1
    many[counted] |= records[:, 0] == MARK
    many |= np.diff(tables.group_start.astype(np.int64))[flow.groups - tables.states] > 1
    calls[flow.groups[many]] = True
    zones = records[:, 2:].astype(np.int64)
    zones[np.isin(records[:, 0], (SET, MARK)), 1:] = -1
    there = zones >= 0
    tails = np.concatenate([flow.tails, flow.groups[flow.by], np.repeat(flow.groups[counted], there.sum(axis=1))])
    return reach(tails, np.concatenate([flow.heads, flow.pushed, zones[there]]), calls)[: tables.states]
