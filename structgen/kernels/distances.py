"""Distances to the end of a text, in tokens."""

from __future__ import annotations

import numpy as np

from .automaton_walks import _FIXED, _copy_twins, _count, _join
from .jit import inlined, kernel
from .pushdown.arena import (
    A_CLASS_OF,
    A_GROUPS,
    A_LIVE,
    A_LOOPS,
    A_MOVES,
    A_RECORDS,
    A_RETURNS,
    A_SEQUENCE,
    A_STATES,
    _row,
)
from .subset_construction import _zone
from .values import DEAD, INC, SET

#
# See `structgen.runtime.index.token_budget`.


@kernel
def walk_outcomes(byte, depth, skip, first_token, table, classes, n_classes, records, loops, live, state, low, high,
                  begin, pieces, slots, outcomes):  # fmt: skip
    """Where tokens lead from ``state`` with each count from ``low`` to ``high``, each outcome once.

    The walk is that of `walk_counted`. An outcome, a row of ``outcomes`` (``int64[*, 4]``), is a state, the lowest
    and the highest count that it holds for, and what is added to the count, or `FIXED` plus the new count.
    ``begin`` and ``pieces`` are scratch, as there; ``slots``: ``int32[2 ** k]``, all -1. Returns how many outcomes
    there are, or -1 where the arrays are too short.
    """
    n_nodes = len(byte)
    mask = len(slots) - 1
    begin[0] = 0
    n_out = 0
    last = -1
    pieces[0, 0] = state
    pieces[0, 1] = low
    pieces[0, 2] = high
    pieces[0, 3] = 0
    begin[1] = 1
    i = 1
    while i < n_nodes:
        d = depth[i]
        c = classes[byte[i]]
        base = begin[d]
        n = base
        for p in range(begin[d - 1], base):
            entry = table[pieces[p, 0] * n_classes + c]
            if entry == DEAD:
                continue
            if n + 3 > len(pieces):
                return -1
            lo = pieces[p, 1]
            hi = pieces[p, 2]
            add = pieces[p, 3]
            if entry >= 0:
                n = _join(pieces, base, n, entry, lo, hi, add if live[entry] >= 0 else 0)
                continue
            r = -2 - entry
            if records[r, 0] == SET:
                n = _join(pieces, base, n, records[r, 2], lo, hi, FIXED + 1 if live[records[r, 2]] >= 0 else 0)
                continue
            loop = records[r, 1]
            targets = records[r, 2], records[r, 3], records[r, 4]
            n = _count(pieces, base, n, lo, hi, add, targets, loops[loop, 0], loops[loop, 1], live, 0)
        if n == base:
            i = skip[i]
            continue
        begin[d + 1] = n
        if first_token[i] < first_token[i + 1]:
            for p in range(base, n):
                if last >= 0 and _is_outcome(outcomes, last, pieces, p):
                    continue  # nearly always
                slot = (pieces[p, 0] * 0x9E3779B1 ^ pieces[p, 1] * 0x85EBCA6B ^ pieces[p, 2] * 0xC2B2AE35
                        ^ pieces[p, 3] * 0x27D4EB2F) & mask  # fmt: skip
                while slots[slot] >= 0 and not _is_outcome(outcomes, slots[slot], pieces, p):
                    slot = (slot + 1) & mask
                if slots[slot] < 0:
                    if n_out == len(outcomes) or 2 * n_out > mask:
                        return -1
                    slots[slot] = n_out
                    for k in range(4):
                        outcomes[n_out, k] = pieces[p, k]
                    n_out += 1
                last = slots[slot]
        i += 1
    return n_out


#: What `walk_outcomes` adds where the count does not depend on the one at the start.
FIXED = _FIXED


@inlined
def _is_outcome(outcomes, k, pieces, p):
    return (
        outcomes[k, 0] == pieces[p, 0]
        and outcomes[k, 1] == pieces[p, 1]
        and outcomes[k, 2] == pieces[p, 2]
        and outcomes[k, 3] == pieces[p, 3]
    )


@kernel
def count_back(begins, sources, outcomes, offsets, live, distances, states, counts, n_queue):
    """Fewest tokens to the end, by breadth-first search backwards over outcomes; see `walk_outcomes`.

    Parameters
    ----------
    begins:
        ``int64[states + 1]``: the outcomes that lead to state ``t`` are ``outcomes[begins[t]:begins[t + 1]]``.
    sources:
        ``int32[outcomes]``: the state that each comes from.
    offsets:
        ``int64[states + 1]``: the distance of a state and a count is ``distances[offsets[state] + count]``; a count
        past the last is as the last.
    distances:
        ``int32[*]``, in and out: -1 where it is not known.
    states, counts:
        ``int32[*]``: the queue. The first ``n_queue`` are there, in order of their distances.
    """
    head = 0
    while head < n_queue:
        state = states[head]
        count = counts[head]
        head += 1
        most = offsets[state + 1] - offsets[state] - 1
        further = distances[offsets[state] + count] + 1
        for k in range(begins[state], begins[state + 1]):
            source = sources[k]
            low = outcomes[k, 1]
            high = outcomes[k, 2]
            if live[state] >= 0:
                add = outcomes[k, 3]
                if add >= FIXED:
                    if min(add - FIXED, most) != count:
                        continue
                else:
                    low = max(low, count - add)
                    if count < most:
                        high = min(high, count - add)
            for before in range(low, high + 1):
                if distances[offsets[source] + before] < 0:
                    distances[offsets[source] + before] = further
                    states[n_queue] = source
                    counts[n_queue] = before
                    n_queue += 1


@kernel
def walk_within(byte, depth, skip, token, twins, table, classes, n_classes, records, loops, live, state, count,
                offsets, distances, most, at, counted, row):  # fmt: skip
    """Set the bits of the tokens that lead where the distance is at most ``most``; see `count_back`.

    ``row``: ``uint32[words + 1]``, the last word for the spare bit. ``at`` and ``counted`` are scratch,
    ``int64[max_depth + 1]``.
    """
    at[0] = state
    counted[0] = count
    spare = np.int64(32) * (len(row) - 1)
    i = 1
    n_nodes = len(byte)
    while i < n_nodes:
        d = depth[i]
        entry = table[at[d - 1] * n_classes + classes[byte[i]]]
        n = counted[d - 1]
        if entry < DEAD:
            r = -2 - entry
            if records[r, 0] == SET:
                entry = records[r, 2]
                n = 1
            else:
                n += 1
                entry = records[r, 2 + _zone(n, loops[records[r, 1], 0], loops[records[r, 1], 1])]
        if entry < 0:
            i = skip[i]
            continue
        if live[entry] < 0:
            n = 0
        at[d] = entry
        counted[d] = n
        where = distances[min(offsets[entry] + n, offsets[entry + 1] - 1)]
        bit = np.int64(token[i]) if 0 <= where <= most else spare
        row[bit >> 5] |= np.uint32(1) << np.uint32(bit & 31)
        i += 1
    _copy_twins(twins, row)


#: What no bytes complete costs more than this.
FAR = 1 << 40


@kernel
def cheapest_pops(arena, begins, entries, offsets, costs, most_sweeps):
    """Fewest bytes that take a state off the stack, with all that is put on it on the way.

    Parameters
    ----------
    begins, entries:
        ``int64[states + 1]``, ``int32[*]``: what each state does with bytes that may be used, as in the table.
    offsets:
        As in `count_back`.
    costs:
        ``int64[*]``, in and out: `FAR` where nothing is known, 0 for states that return.

    Values only come down, until nothing changes; returns whether that took no more than ``most_sweeps`` sweeps. Odd
    sweeps go through states from the last to the first, and counts always from the highest, on which the others
    depend.
    """
    n_states = arena[A_STATES]
    for sweep in range(most_sweeps):
        changed = False
        for k in range(n_states):
            state = n_states - 1 - k if sweep & 1 else k
            for count in range(offsets[state + 1] - offsets[state] - 1, -1, -1):
                best = costs[offsets[state] + count]
                for e in range(begins[state], begins[state + 1]):
                    entry = entries[e]
                    if entry < n_states:
                        n = count if arena[arena[A_LIVE] + entry] >= 0 else 0
                        best = min(best, 1 + costs[min(offsets[entry] + n, offsets[entry + 1] - 1)])
                        continue
                    group = arena[A_GROUPS] + entry - n_states
                    for m in range(arena[group], arena[group + 1]):
                        move = arena[A_MOVES] + 2 * m
                        n = count
                        total = np.int64(1)
                        first = True
                        if arena[move] >= 0:
                            r = arena[A_RECORDS] + 5 * arena[move]
                            if arena[r] == SET:
                                target = arena[r + 2]
                                n = 1
                            else:
                                n += 1
                                loop = arena[A_LOOPS] + 2 * arena[r + 1]
                                target = arena[r + 2 + _zone(n, arena[loop], arena[loop + 1])]
                                if target < 0:
                                    continue
                            n = n if arena[arena[A_LIVE] + target] >= 0 else 0
                            total += costs[min(offsets[target] + n, offsets[target + 1] - 1)]
                            first = False
                        for k2 in range(arena[move + 1], arena[move + 3]):
                            target = arena[arena[A_SEQUENCE] + k2]
                            n = n if first and arena[arena[A_LIVE] + target] >= 0 else 0
                            total += costs[min(offsets[target] + n, offsets[target + 1] - 1)]
                            first = False
                        best = min(best, total)
                if best < costs[offsets[state] + count]:
                    costs[offsets[state] + count] = best
                    changed = True
        if not changed:
            return True
    return False


@kernel
def most_gained(byte, depth, skip, first_token, arena, below, least, most, limit, begin, states, gained, stamp,
                where):  # fmt: skip
    """By how much a token can make a stack cost more, whatever the stack is; `FAR` after ``limit`` steps.

    -1 where ``states`` and ``gained`` are too short.

    All states are followed at once, each with the most that was put on the stack on the way to it; what comes up
    after a pop is any state that can lie on a stack.

    Parameters
    ----------
    below:
        ``int32[*]``: the states that can lie below another one.
    least, most:
        ``int64[states]``: what a state costs at least and at most, whatever its count.
    begin, states, gained, stamp, where:
        Scratch, ``int64`` each: ``[max_depth + 3]``; two with more room than there are states; ``[states]``.
    """
    n_states = arena[A_STATES]
    for s in range(n_states):
        states[s] = s
        gained[s] = -least[s]
        stamp[s] = 0
    begin[0] = 0
    begin[1] = n_states
    best = np.int64(0)
    steps = np.int64(0)
    i = 1
    while i < len(byte):
        d = depth[i]
        c = arena[arena[A_CLASS_OF] + byte[i]]
        base = begin[d]
        n = base
        left = -FAR  # gained before a state that was popped
        given = -FAR  # gained before a state that is handed this byte
        for k in range(begin[d - 1], base):
            if arena[arena[A_RETURNS] + states[k]] != 0:
                given = max(given, gained[k])
        n_level = base - begin[d - 1]
        todo = n_level + (len(below) if given > -FAR else 0)
        steps += todo + 1
        for k in range(todo):
            s = states[begin[d - 1] + k] if k < n_level else below[k - n_level]
            g = gained[begin[d - 1] + k] if k < n_level else given - least[s]
            entry = arena[_row(arena, s) + c]
            if entry < 0:
                continue
            first_move = 0
            last_move = 1
            if entry >= n_states:
                group = arena[A_GROUPS] + entry - n_states
                first_move = arena[group]
                last_move = arena[group + 1]
            for m in range(first_move, last_move):
                # The states that the record can lead to, in turn: only the zones of one that adds have several.
                for zone in range(3):
                    here = g
                    top = -1
                    if entry < n_states:
                        if zone:
                            break
                        top = entry
                    else:
                        move = arena[A_MOVES] + 2 * m
                        if arena[move] >= 0:
                            r = arena[A_RECORDS] + 5 * arena[move]
                            if zone and arena[r] != INC:
                                break
                            top = arena[r + 2 + zone]
                            if top < 0:
                                continue
                        elif zone:
                            break
                        for q in range(arena[move + 1], arena[move + 3]):
                            if top >= 0:
                                here += most[top]
                            top = arena[arena[A_SEQUENCE] + q]
                    if top < 0:
                        left = max(left, here)
                        continue
                    if stamp[top] != i:
                        if n == len(states):
                            return np.int64(-1)
                        stamp[top] = i
                        where[top] = n
                        states[n] = top
                        gained[n] = here
                        n += 1
                    elif here > gained[where[top]]:
                        gained[where[top]] = here
        if left > -FAR:
            steps += len(below)
            for k in range(len(below)):
                s = below[k]
                if stamp[s] != i:
                    if n == len(states):
                        return np.int64(-1)
                    stamp[s] = i
                    where[s] = n
                    states[n] = s
                    gained[n] = left - least[s]
                    n += 1
                elif left - least[s] > gained[where[s]]:
                    gained[where[s]] = left - least[s]
        if steps > limit:
            return np.int64(FAR)
        if n == base:
            i = skip[i]
            continue
        begin[d + 1] = n
        if first_token[i] < first_token[i + 1]:
            for k in range(base, n):
                best = max(best, gained[k] + most[states[k]])
        i += 1
    return best
