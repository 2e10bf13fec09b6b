"""Automata that count as plain ones: a state for each state and count."""

from __future__ import annotations

import numpy as np

from ..jit import inlined, kernel
from ..subset_construction import _zone
from ..values import DEAD, INC, SET
from .arena import (
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
)
from .threads import _counted_to


@inlined
def _representative(least, most, count, reach):
    """A count from which texts of ``reach`` bytes fare as from this one, in a loop with these bounds."""
    if count + reach >= most:
        return count
    if count >= least:
        return max(least, np.int64(1))
    return count if count + reach >= least else np.int64(min(count, 1))


@inlined
def _count_of(arena, state, count, reach):
    """`_representative` for a state of an arena; 0 where it does not count, -1 for sets."""
    live = arena[arena[A_LIVE] + state]
    if live < 0:
        return np.int64(0)
    least = np.int64(arena[arena[A_LOOPS] + 2 * live])
    most = np.int64(arena[arena[A_LOOPS] + 2 * live + 1])
    return np.int64(-1) if least < 0 else _representative(least, most, count, reach)


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


@kernel
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
    first = _count_of(arena, state, count, reach)
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
                now = _count_of(arena, target, now, reach)
                into = _number_of(members, slots, n, target, now) if now >= 0 else np.int64(len(members))
                if into == len(members):
                    return 0
                n = max(n, into + 1)
            for c in range(arena[classes + (bounds & 255)], arena[classes + (bounds >> 8)] + 1):
                table[here, c] = into
        here += 1
    return n


@kernel
def spell_regex_counts(table, n_classes, records, loops, live, state, count, reach, members, slots, spelled):
    """`spell_counts` for the automaton of a regex, whose other arguments are those of `walk_counted`.

    Returns how many states it has, 0 where there is no room.
    """
    n = np.int64(0)
    now = np.int64(count)
    if live[state] >= 0:
        now = _representative(np.int64(loops[live[state], 0]), np.int64(loops[live[state], 1]), now, reach)
    n = _number_of(members, slots, n, np.int64(state), now) + 1
    here = 0
    while here < n:
        for c in range(n_classes):
            target = np.int64(table[members[here, 0] * n_classes + c])
            now = members[here, 1]
            if target < DEAD:
                record = -2 - target
                now = np.int64(1) if records[record, 0] == SET else now + 1
                target = np.int64(records[record, 2])
                if records[record, 0] == INC:
                    loop = records[record, 1]
                    target = np.int64(records[record, 2 + _zone(now, loops[loop, 0], loops[loop, 1])])
            spelled[here, c] = DEAD
            if target < 0:
                continue
            loop = live[target]
            now = _representative(np.int64(loops[loop, 0]), np.int64(loops[loop, 1]), now, reach) if loop >= 0 else 0
            into = _number_of(members, slots, n, target, np.int64(now))
            if into == len(members):
                return 0
            spelled[here, c] = into
            n = max(n, into + 1)
        here += 1
    return n
