"""Which counts the states of an automaton with a stack can have.

A state inside a loop can have any; the states along a key, or along a pattern whose length is bounded, have one each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ..automaton.reaching import reaching
from ..automaton.tables import MARK, SET
from .flow import all_edges, flow_of
from .tables import PushdownTables

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
    without = _countless(tables)
    known = np.where(tables.registers, -1, 0).astype(np.int32)
    counts = np.zeros((tables.states, _FEW_COUNTS), np.int64)
    todo = np.zeros(((_FEW_COUNTS + 2) * tables.states, 2), np.int64)
    todo[: len(without), 0] = without
    parts = (
        *all_edges(tables), tables.like, tables.group_start, tables.move_record, tables.move_start,
        tables.sequence, tables.records, tables.loops, tables.live,
    )  # fmt: skip
    kernels.spread_counts(*(part.astype(np.int32) for part in parts), counts, known, todo, len(without))
    rows = zip(counts.tolist(), known.tolist(), strict=True)
    return Counts([None if n < 0 else set(row[:n]) for row, n in rows], set(without.tolist()))


def _countless(tables: PushdownTables) -> NDArray[np.int64]:
    """The states that the start, a state without a count, or a push as other than the first leads to."""
    flow = flow_of(tables)
    keeps = flow.first & (flow.records[flow.by] < 0)
    entered = np.zeros(tables.states + len(tables.group_start), np.bool_)
    entered[: tables.states] = tables.live < 0
    entered[tables.start] = True
    entered[flow.pushed[~keeps]] = True
    tails, heads = tables.tokens.moves() if tables.tokens is not None else (flow.tails[:0], flow.heads[:0])
    sources = np.concatenate([flow.tails, tails, flow.groups[flow.by[keeps]]])
    found = reaching(np.concatenate([flow.heads, heads, flow.pushed[keeps]]), sources, entered)
    return np.flatnonzero(found[: tables.states])


def zones_of(record: tuple[int, ...]) -> list[int]:
    """The states that a counting or marking move may come to."""
    operation, _, low, mid, high = record
    return [low] if operation in (SET, MARK) else [s for s in dict.fromkeys((low, mid, high)) if s >= 0]
