"""One byte followed by all threads of a walk."""

from __future__ import annotations

import numpy as np

from ..jit import helper
from ..subset_construction import _zone
from ..values import DEAD, LOW, MARK, MID, SET
from .arena import (
    A_GROUPS,
    A_LIVE,
    A_LOOPS,
    A_MOVES,
    A_RECORDS,
    A_RETURNS,
    A_SEQUENCE,
    A_SINGLE,
    A_STATES,
    NOT_SINGLE,
    OVERFLOW,
    UNBOUNDED,
    _entry,
    _row,
)
from .cells import _BOTTOM, _LINK, _NIL, _are_alike, _is_before, _may_end, _stack_cell
from .sets import _marked, _passes
from .subsumption import _unite

# What it costs to follow one thread more, in nodes that are looked up.
_COST_OF_NODE, _COST_OF_THREAD = 8, 8


@helper
def _next_count(count):
    """A count and one more."""
    return count + 1 if count >= 0 else count


@helper
def _counted_to(arena, r, count):
    """The state that a record, which adds to a count, leads to."""
    loop = arena[A_LOOPS] + 2 * arena[r + 1]
    return arena[r + 2 + (_zone(count, arena[loop], arena[loop + 1]) if count >= 0 else UNBOUNDED - count)]


@helper
def _single_move(arena, state, count, c):
    """Where a thread goes that has one move at most, which pushes and pops nothing, as state and count.

    The state is `DEAD` without a move, `NOT_SINGLE` where there is more to it.
    """
    if arena[arena[A_RETURNS] + state]:
        return np.int64(NOT_SINGLE), np.int64(0)
    entry = np.int64(arena[_row(arena, state) + c])
    if entry >= arena[A_STATES]:
        record = arena[arena[A_SINGLE] + entry - arena[A_STATES]]
        if record < 0:
            return np.int64(NOT_SINGLE), np.int64(0)
        r = arena[A_RECORDS] + 5 * record
        if arena[r] == SET:
            count = np.int64(1)
            entry = np.int64(arena[r + 2])
        else:
            count = _next_count(count)
            entry = np.int64(_counted_to(arena, r, count))
    if entry < 0:
        return np.int64(DEAD), np.int64(0)
    return entry, count if arena[arena[A_LIVE] + entry] >= 0 else np.int64(0)


@helper
def _stays_in(arena, state, count, bytes_):
    """The zone that a count of a state stays in for so many bytes; -1 where it may leave it, or is a set."""
    if count < 0:
        return UNBOUNDED - count
    loop = arena[A_LOOPS] + 2 * arena[arena[A_LIVE] + state]
    if count + bytes_ < arena[loop]:
        return np.int64(LOW)
    return np.int64(MID if 0 <= arena[loop] <= count + 1 and count + bytes_ < arena[loop + 1] else -1)


@helper
def _follow(arena, c, threads, begin, end, cells, slots, top, stamp, united, found):
    """Take every thread of ``threads[begin:end]`` over a byte of class ``c``; the next ones stand behind ``end``.

    ``stamp`` is a positive number that no other call of the walk has. Returns (end of the next threads or `OVERFLOW`,
    first free cell, whether some thread popped below the bottom). See `_unite` for
    ``united`` and ``found``.
    """
    n_states = arena[A_STATES]
    returns = arena[A_RETURNS]
    source = begin
    past = end
    for i in range(begin, end):
        if arena[returns + threads[i, 0]] and threads[i, 2] >= 0:
            source = end
    if source != begin:
        # Threads, and all that the byte may be left to: one for each top, or there would be too many pushes.
        if 2 * end - begin > len(threads):
            return OVERFLOW, top, False
        for i in range(begin, end):
            for column in range(3):
                threads[i + end - begin, column] = threads[i, column]
        past = 2 * end - begin
        i = source
        while i < past:
            cell = threads[i, 2] if arena[returns + threads[i, 0]] else np.int64(_NIL)
            i += 1
            while cell >= 0:
                member = cell
                if cells[cell, 0] == _LINK:
                    member = cells[cell, 1]
                    cell = cells[cell, 2]
                else:
                    cell = np.int64(_NIL)
                if member < 0 or cells[member, 4] == stamp:
                    continue
                cells[member, 4] = stamp
                if past >= len(threads):
                    return OVERFLOW, top, False
                for column in range(3):
                    threads[past, column] = cells[member, column]
                past += 1
        if past - source != 2 or _are_alike(threads, source):  # nearly always a value's end, above what holds it
            past, top = _unite(arena, threads, source, past, cells, slots, top, united, found)
            if past < 0:
                return OVERFLOW, top, False
    n = past
    escaped = False
    for at in range(source, past):
        state = threads[at, 0]
        count = threads[at, 1]
        cell = threads[at, 2]
        entry = _entry(arena, state, c)
        if entry >= n_states:
            group = arena[A_GROUPS] + entry - n_states
            for m in range(arena[group], arena[group + 1]):
                move = arena[A_MOVES] + 2 * m
                first = arena[move + 1]
                last = arena[move + 3]
                record = arena[move]
                here = cell
                state_now = np.int64(-1)
                count_now = np.int64(0)
                if record >= 0:
                    r = arena[A_RECORDS] + 5 * record
                    if arena[r] == SET:
                        state_now = np.int64(arena[r + 2])
                        count_now = np.int64(1)
                    elif arena[r] == MARK:
                        count_now = _marked(arena, count, arena[r + 3])
                        if count_now < 0 or not _passes(arena, count_now, arena[r + 1]):
                            continue
                        state_now = np.int64(arena[r + 2])
                    else:
                        count_now = _next_count(count)
                        state_now = np.int64(_counted_to(arena, r, count_now))
                        if state_now < 0:
                            continue
                elif first < last:
                    state_now = np.int64(arena[arena[A_SEQUENCE] + first])
                    count_now = count
                    first += 1
                else:
                    while here != _NIL:
                        member = here
                        if here != _BOTTOM and cells[here, 0] == _LINK:
                            member = cells[here, 1]
                            here = cells[here, 2]
                        else:
                            here = np.int64(_NIL)
                        if member == _BOTTOM:
                            escaped = True
                            continue
                        if n >= len(threads):
                            return OVERFLOW, top, escaped
                        threads[n, 0] = cells[member, 0]
                        threads[n, 1] = cells[member, 1]
                        threads[n, 2] = cells[member, 2]
                        n += 1
                    continue
                if arena[arena[A_LIVE] + state_now] < 0:
                    count_now = np.int64(0)
                for k in range(first, last):
                    here = _stack_cell(arena, cells, slots, top, state_now, count_now, here, len(found))
                    if here < 0:
                        return OVERFLOW, top, escaped
                    top = max(top, here + 1)
                    state_now = np.int64(arena[arena[A_SEQUENCE] + k])
                    count_now = np.int64(0)
                if n >= len(threads):
                    return OVERFLOW, top, escaped
                threads[n, 0] = state_now
                threads[n, 1] = count_now
                threads[n, 2] = here
                n += 1
        elif entry >= 0:
            if n >= len(threads):
                return OVERFLOW, top, escaped
            threads[n, 0] = entry
            threads[n, 1] = count if arena[arena[A_LIVE] + entry] >= 0 else 0
            threads[n, 2] = cell
            n += 1
    if n == past + 2 and not _are_alike(threads, past):
        if _is_before(threads, past + 1, past):
            for column in range(3):
                threads[past, column], threads[past + 1, column] = threads[past + 1, column], threads[past, column]
    elif n > past + 1:
        n, top = _unite(arena, threads, past, n, cells, slots, top, united, found)
    if past > end and n > 0:
        for i in range(past, n):
            for column in range(3):
                threads[i - past + end, column] = threads[i, column]
        n -= past - end
    return n, top, escaped


@helper
def _may_return(arena, threads, begin, end, cells):
    """Whether some thread could hand the next byte to what lies below the bottom."""
    found = False
    for i in range(begin, end):
        if arena[arena[A_RETURNS] + threads[i, 0]]:
            found |= _may_end(cells, threads[i, 2]) != 0
    return found


@helper
def _start_stack(arena, config, cells, slots, top):
    """Lay out the cells of ``config``, pairs of state and count, the current state first and the lowest cell last.

    Returns (first free cell or `OVERFLOW`, state, count, cell below the state or `_BOTTOM`).
    """
    cell = np.int64(_BOTTOM)
    for i in range(len(config) // 2 - 1, 0, -1):
        cell = _stack_cell(arena, cells, slots, top, config[2 * i], config[2 * i + 1], cell, np.int64(0))
        if cell < 0:
            return OVERFLOW, config[0], config[1], cell
        top = max(top, cell + 1)
    return top, config[0], config[1], cell
