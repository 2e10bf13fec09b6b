"""Automata that count as plain ones: a state for each state and count."""

from __future__ import annotations

import numpy as np

from .jit import bare_kernel, inlined
from .pushdown_walks import (
    A_CLASS_OF,
    A_CLASSES,
    A_EDGE_START,
    A_EDGES,
    A_LIKE,
    A_LIVE,
    A_LOOPS,
    A_RECORDS,
    A_RETURNS,
    A_SINGLE,
    A_STATES,
    NOT_SINGLE,
    OPEN,
    SINGLE_POP,
    _come_to_open,
    _counted_to,
)
from .values import DEAD, SET


@inlined
def _representative(arena, state, count, reach):
    """A count from which a state fares for ``reach`` bytes as from this one; -1 for sets."""
    live = arena[arena[A_LIVE] + state]
    if live < 0:
        return np.int64(0)
    least = np.int64(arena[arena[A_LOOPS] + 2 * live])
    most = np.int64(arena[arena[A_LOOPS] + 2 * live + 1])
    if least < 0:
        return np.int64(-1)
    if count + reach >= most:
        return count
    if count >= least:
        return max(least, np.int64(1))
    return count if count + reach >= least else np.int64(min(count, 1))


@inlined
def _number_of(members, slots, n, state, count):
    """The number of a state with a count among ``members[:n]``, found by its hash; ``n`` for a new one, which is
    entered if there is room."""
    slot = ((state * 0x9E3779B1) ^ (count * 0x85EBCA6B)) >> 7 & (len(slots) - 1)
    while slots[slot] >= 0:
        there = slots[slot]
        if members[there, 0] == state and members[there, 1] == count:
            return np.int64(there)
        slot = (slot + 1) & (len(slots) - 1)
    if n < len(members):
        members[n, 0] = state
        members[n, 1] = count
        slots[slot] = n
    return np.int64(n)


@bare_kernel
def spell_counts(arena, state, count, reach, members, slots, table):
    """The automaton that begins at a state with a count as one that does not count, for texts of ``reach`` bytes.

    Parameters
    ----------
    members:
        ``int64[largest, 2]``, out: the state and the count of each of its states.
    slots:
        ``int32[2 ** k]``, -1 each, with more room than ``members``.
    table:
        ``int32[largest, classes]``, out: where each class of bytes leads, ``largest`` for a pop, `DEAD`.

    Returns
    -------
    How many states it has; 0 where one calls, returns, branches, has a set, is open or like another one, or where
    there is no room.
    """
    n_states = arena[A_STATES]
    classes = arena[A_CLASS_OF]
    n = np.int64(0)
    first = _representative(arena, state, count, reach)
    if first >= 0:
        n = _number_of(members, slots, n, np.int64(state), first) + 1
    here = 0
    while here < n:
        at = members[here, 0]
        if arena[arena[A_LIKE] + at] == OPEN:
            _come_to_open(arena, at)
        if arena[arena[A_RETURNS] + at] or arena[arena[A_LIKE] + at]:
            return 0
        for c in range(arena[A_CLASSES]):
            table[here, c] = DEAD
        for edge in range(arena[arena[A_EDGE_START] + at], arena[arena[A_EDGE_START] + at + 1]):
            bounds = arena[arena[A_EDGES] + 2 * edge]
            target = np.int64(arena[arena[A_EDGES] + 2 * edge + 1])
            now = members[here, 1]
            into = np.int64(DEAD)
            if target >= n_states:
                single = arena[arena[A_SINGLE] + target - n_states]
                target = np.int64(DEAD)
                if single == NOT_SINGLE:
                    return 0
                if single == SINGLE_POP:
                    into = np.int64(len(members))
                elif arena[arena[A_RECORDS] + 5 * single] == SET:
                    now = np.int64(1)
                    target = np.int64(arena[arena[A_RECORDS] + 5 * single + 2])
                else:
                    now += 1
                    target = np.int64(_counted_to(arena, arena[A_RECORDS] + 5 * single, now))
            if target >= 0:
                now = _representative(arena, target, now, reach)
                into = _number_of(members, slots, n, target, now) if now >= 0 else np.int64(len(members))
                if into == len(members):
                    return 0
                n = max(n, into + 1)
            for c in range(arena[classes + (bounds & 255)], arena[classes + (bounds >> 8)] + 1):
                table[here, c] = into
        here += 1
    return n
