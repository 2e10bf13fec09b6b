"""Subset construction (Rabin and Scott 1959), with counters beside the states."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .signatures import Out, int32, int64, uint8
from .values import (
    _AT_ONE,
    _PLUS_ONE,
    _SAME,
    AGAIN,
    CONFLICT,
    DEAD,
    HIGH,
    INC,
    LOW,
    MID,
    NO_ROOM,
    OK,
    PLAIN,
    SET,
    TOO_MANY_STATES,
    TOO_MUCH_WORK,
)


@helper
def _zone(count, low, high):
    if count >= high:
        return HIGH
    return MID if count >= low else LOW


@helper
def _closure(
    seeds, n_seeds, variant, e_start, e_to, e_kind, owner, loops, t_start, accept, stamp, moved, mark, stack, out
):
    """Epsilon closure of ``seeds`` into ``out``.

    ``variant`` is the zone that a count will be in once it was incremented, or -1 to find out whether any is.
    Returns (size, loop that was incremented or -1, loop in conflict or -1, loop the result is inside or -1,
    how that loop's counter moved, edges followed). In a conflict, the other loop is the one it is inside.
    """
    steps = 0
    top = 0
    for i in range(n_seeds):
        q = seeds[i]
        if stamp[q] != mark:
            stamp[q] = mark
            moved[q] = _SAME
            stack[top] = q
            top += 1
    size = 0
    incremented = -1
    inside = -1
    how = _SAME
    while top:
        top -= 1
        q = stack[top]
        if t_start[q + 1] > t_start[q] or q == accept:
            out[size] = q
            size += 1
            if owner[q] >= 0:
                if inside >= 0 and (inside != owner[q] or how != moved[q]):
                    return size, incremented, owner[q], inside, how, steps
                inside = owner[q]
                how = moved[q]
        for e in range(e_start[q], e_start[q + 1]):
            steps += 1
            kind = e_kind[e]
            if kind == PLAIN:
                r = e_to[e]
                if stamp[r] != mark:
                    stamp[r] = mark
                    moved[r] = moved[q] if owner[r] >= 0 else _SAME
                    stack[top] = r
                    top += 1
                elif owner[r] >= 0 and moved[r] != moved[q]:
                    return size, incremented, owner[r], inside, how, steps
                continue
            loop = e_to[e]
            if kind == AGAIN:
                if (incremented >= 0 and incremented != loop) or moved[q] != _SAME:
                    return size, incremented, loop, inside, how, steps
                incremented = loop
                if variant < 0:
                    continue
                zone, turn = variant, _PLUS_ONE
            else:
                zone, turn = _zone(1, loops[loop, 0], loops[loop, 1]), _AT_ONE
            for way in range(2):
                if (way == 0 and zone == HIGH) or (way == 1 and zone == LOW):
                    continue
                r = loops[loop, 2 + way]
                if stamp[r] != mark:
                    stamp[r] = mark
                    moved[r] = turn if owner[r] >= 0 else _SAME
                    stack[top] = r
                    top += 1
                elif owner[r] >= 0 and moved[r] != turn:
                    return size, incremented, loop, inside, how, steps
    return size, incremented, -1, inside, how, steps


@helper
def _hash_of(items, first, last):
    h = np.uint64(last - first)
    for i in range(first, last):
        h = (h ^ np.uint64(items[i])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@helper
def _found_row(slots, starts, items, row, first, last):
    """The number of the row of ``items`` that is ``row[first:last]``, or -1; and its slot, or the free one for it.

    ``slots`` is a hash table of row numbers with linear probing, a power of two, -1 where empty; row ``r`` is
    ``items[starts[r]:starts[r + 1]]``.
    """
    size = last - first
    slot = np.int64(_hash_of(row, first, last) & np.uint64(len(slots) - 1))
    while slots[slot] >= 0:
        begin = starts[slots[slot]]
        if starts[slots[slot] + 1] - begin == size:
            i = 0
            while i < size and items[begin + i] == row[first + i]:
                i += 1
            if i == size:
                return slots[slot], slot
        slot = (slot + 1) & (len(slots) - 1)
    return -1, slot


@helper
def _append_row(slots, starts, items, row, size, number, slot):
    """Put ``row[:size]`` behind the first ``number`` rows, in a slot that `_found_row` found; there is room."""
    begin = starts[number]
    for i in range(size):
        items[begin + i] = row[i]
    starts[number + 1] = begin + size
    slots[slot] = number


@helper
def shell_sort(items, n):
    """Shell sort in place; subsets are short and often almost sorted."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, n):
            x = items[i]
            j = i
            while j >= gap and items[j - gap] > x:
                items[j] = items[j - gap]
                j -= gap
            items[j] = x
        gap //= 3


@helper
def _next_zone(zone, past_minimum, minimum, maximum):
    """The zone after ``zone`` (-1: the first) that a count can be in after a further turn, or 3.

    A count below the minimum comes to stand below it or at it; one past it never falls back.
    """
    if zone < LOW and not past_minimum and minimum > 2:
        return LOW
    if zone < MID and minimum < maximum:
        return MID
    if zone < HIGH and (past_minimum or minimum == maximum):
        return HIGH
    return 3


@kernel
def determinize(
    t_start: int32[::1], t_lo: int32[::1], t_hi: int32[::1], t_to: int32[::1], e_start: int32[::1], e_to: int32[::1],
    e_kind: int32[::1], owner: int32[::1], loops: int64[:, ::1], start: int64, accept: int64, n_classes: int64,
    max_states: int64, max_work: int64, at: Out[int64[::1]], table: Out[int32[::1]], accepting: Out[uint8[::1]],
    items: Out[int32[::1]], first: Out[int64[::1]], slots: Out[int32[::1]], records: Out[int32[:, ::1]],
    scratch: Out[int32[:, ::1]],
) -> tuple[int64, int64, int64]:  # fmt: skip
    """Subset construction (Rabin & Scott 1959) of an NFA with counted loops, for some time.

    A subset is the set of NFA states with transitions; at most one counted loop is active in it, and all of
    its threads share one count (otherwise the result is CONFLICT and one or two loops, and the caller spells one
    of them out). A subset whose count has reached the loop's minimum holds ``len(owner)`` as a last item. When a
    count is incremented the transition becomes a record with a target for each zone.

    ``at`` says how many states, items and records there are, which state and class come next, and whether the slots
    are to be filled anew; the subset of state ``s`` is ``items[first[s]:first[s + 1]]``, ``slots`` their hash table,
    a power of two, -1 where empty; ``records`` is ``int32[*, 5]``: operation, loop, targets for LOW, MID and HIGH
    (for SET all three are the same). It goes on from there, until it is done, ``max_work`` is, or a round may need
    more room than these arrays have (NO_ROOM), of slots twice as many as states. ``scratch`` is ``int32[7, *]``, with
    room for the states of the NFA and two more, and for the classes and one more.

    Returns (status, loop, other loop or -1).
    """
    n_nfa = len(owner)
    stamp, moved, stack, out, seeds, seeded = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5]
    cuts = scratch[6]
    for q in range(n_nfa):
        stamp[q] = 0
        seeded[q] = 0
    mark = 0
    seed_mark = 0
    cut_for = -1
    work = 0

    n_states = at[0]
    n_items = at[1]
    n_records = at[2]
    state = at[3]
    lo = at[4]
    n_seeds = 1
    seeds[0] = start
    if at[5]:
        at[5] = 0
        for s in range(n_states):
            slots[_found_row(slots, first, items, items, first[s], first[s + 1])[1]] = s
    while state < n_states:
        # One round of this loop settles one segment [lo, hi) of classes of `state`; the first makes state 0.
        is_full = n_states + 4 > len(first) or n_states + 3 > len(accepting) or n_records + 2 > len(records)
        is_full = is_full or 2 * (n_states + 3) > len(slots)
        is_full = is_full or n_items + 3 * (n_nfa + 1) > len(items) or (n_states + 3) * n_classes > len(table)
        if is_full or work > max_work:
            at[0] = n_states
            at[1] = n_items
            at[2] = n_records
            at[3] = state
            at[4] = lo
            return TOO_MUCH_WORK if work > max_work else NO_ROOM, -1, -1
        hi = n_classes
        past_minimum = False
        if state >= 0:
            end = first[state + 1]
            past_minimum = items[end - 1] == n_nfa
            if past_minimum:
                end -= 1
            if cut_for != state:
                cut_for = state
                for c in range(n_classes + 1):
                    cuts[c] = 0
                for i in range(first[state], end):
                    q = items[i]
                    for t in range(t_start[q], t_start[q + 1]):
                        cuts[t_lo[t]] = 1
                        cuts[t_hi[t] + 1] = 1
            hi = lo + 1
            while hi < n_classes and not cuts[hi]:
                hi += 1
            n_seeds = 0
            seed_mark += 1
            for i in range(first[state], end):
                q = items[i]
                for t in range(t_start[q], t_start[q + 1]):
                    work += 1
                    if t_lo[t] <= lo <= t_hi[t] and seeded[t_to[t]] != seed_mark:
                        seeded[t_to[t]] = seed_mark
                        seeds[n_seeds] = t_to[t]
                        n_seeds += 1
        entry = DEAD
        variant = -1
        record = -1
        while n_seeds:
            mark += 1
            size, incremented, conflict, inside, how, steps = _closure(
                seeds, n_seeds, variant, e_start, e_to, e_kind, owner, loops, t_start, accept, stamp, moved, mark,
                stack, out)  # fmt: skip
            work += 4 * size + steps  # most of it for putting them in order
            if conflict >= 0:
                return CONFLICT, conflict, inside
            if incremented >= 0 and variant < 0:
                # The count decides: build the target for each zone it can be in.
                variant = _next_zone(-1, past_minimum, loops[incremented, 0], loops[incremented, 1])
                record = n_records
                n_records += 1
                records[record, 0] = INC
                records[record, 1] = incremented
                records[record, 2] = DEAD
                records[record, 3] = DEAD
                records[record, 4] = DEAD
                entry = -2 - record
                continue
            if variant >= 0 and inside >= 0 and (inside != incremented or how != _PLUS_ONE):
                return CONFLICT, incremented, inside
            target = DEAD
            if size:
                shell_sort(out, size)
                if inside >= 0 and (
                    variant >= MID or (how == _SAME and past_minimum) or (how == _AT_ONE and loops[inside, 0] <= 1)
                ):
                    out[size] = n_nfa
                    size += 1
                target, slot = _found_row(slots, first, items, out, 0, size)
                if target < 0:
                    target = n_states
                    if n_states >= max_states:
                        return TOO_MANY_STATES, -1, -1
                    accepting[n_states] = 0
                    for i in range(size):
                        items[n_items + i] = out[i]
                        if out[i] == accept:
                            accepting[n_states] = 1
                    first[n_states] = n_items
                    n_items += size
                    n_states += 1
                    first[n_states] = n_items
                    slots[slot] = target
            if variant < 0:
                entry = target
                if inside >= 0 and how == _AT_ONE:
                    records[n_records, 0] = SET
                    records[n_records, 1] = inside
                    records[n_records, 2] = target
                    records[n_records, 3] = target
                    records[n_records, 4] = target
                    entry = -2 - n_records
                    n_records += 1
                break
            records[record, 2 + variant] = target
            loop = records[record, 1]
            variant = _next_zone(variant, past_minimum, loops[loop, 0], loops[loop, 1])
            if variant > HIGH:
                break
        if state >= 0:
            for c in range(lo, hi):
                table[state * n_classes + c] = entry
        lo = hi
        if lo >= n_classes:
            lo = 0
            state += 1
    at[0] = n_states
    at[1] = n_items
    at[2] = n_records
    return OK, -1, -1
