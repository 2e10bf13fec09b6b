"""Parts of an automaton: what begins at a state, whatever it lies in."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.digest import blake2b
from ..automaton.reaching import reaching
from ..automaton.tables import MARK, SET
from .flow import flow_of
from .tables import PushdownTables

#: States of an automaton whose rows are shared through the vocabulary.
_LARGEST = 400

#: What a table of one has for a pop.
POP = _LARGEST

#: Slots to find a state by its hash; bytes of the text that is hashed.
_SLOTS, _LONGEST = 1 << 10, 1 << 17

#: States with their counts that are told apart to be walked as states, and what a table of them has for a pop.
MOST_SPELLED = 1 << 12


class Subautomaton(NamedTuple):
    """The automaton that begins at a state, whatever it lies in.

    Parameters
    ----------
    digest:
        A hash of it.
    loop:
        The loop that it counts in, or -1.
    table:
        ``int32[states, classes]``: the state after each class of bytes, numbered from the first one on, `POP` or
        `DEAD`. Not sound for moves that count.
    """

    digest: bytes
    loop: int
    table: NDArray[np.int32]


class _Scratch(threading.local):
    """Arrays that the kernel writes to, one set for each thread."""

    def __init__(self) -> None:
        self.states, self.known = np.empty(_LARGEST, np.int32), np.empty(_SLOTS, np.int32)
        self.table, self.text = np.empty(_LARGEST * 256, np.int32), np.empty(_LONGEST, np.uint8)


_scratch = _Scratch()


def subautomaton(arena: NDArray[np.int32], state: int, zone: int | None = None) -> Subautomaton | None:
    """What begins at a state of an arena (see `structgen.runtime.pushdown.tables`).

    None where it calls, returns, branches, counts in several loops, or is large. With a ``zone`` it is taken as it is
    while all counts stay in that, as one that does not count. None, too, where a count can begin anew.
    """
    states, known, text = _scratch.states, _scratch.known, _scratch.text
    width = int(arena[kernels.A_CLASSES])
    table = _scratch.table[: _LARGEST * width].reshape(-1, width)
    states[0] = state
    known.fill(-1)
    n, length, loop = kernels.name_subautomaton(arena, -1 if zone is None else zone, states, known, table, text)
    if not n:
        return None
    return Subautomaton(blake2b(text[:length].data, digest_size=32).digest(), loop, table[:n].copy())


def spelled(arena: NDArray[np.int32], state: int, count: int, reach: int) -> NDArray[np.int32] | None:
    """The automaton that begins at a state with a count, 0 for none, with a state for each state and count.

    ``int32[states, classes]``, as far as ``reach`` bytes come; `MOST_SPELLED` for a pop. None where it calls,
    returns, branches, has a set, or is large.
    """
    members, slots = np.empty((MOST_SPELLED, 2), np.int64), np.full(4 * MOST_SPELLED, -1, np.int32)
    table = np.empty((MOST_SPELLED, int(arena[kernels.A_CLASSES])), np.int32)
    return table if kernels.spell_counts(arena, state, count, reach, members, slots, table) else None


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
    return reaching(tails, np.concatenate([flow.heads, flow.pushed, zones[there]]), calls)[: tables.states]
