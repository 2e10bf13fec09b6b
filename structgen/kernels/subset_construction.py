"""Subset construction (Rabin and Scott 1959), with counters beside the states; and over ordered threads (Pike's)."""

from __future__ import annotations

import numpy as np

from .jit import allocating, bare_kernel, inlined, kernel
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


@inlined
def _zone(count, low, high):
    if count >= high:
        return HIGH
    return MID if count >= low else LOW


@inlined
def _closure(seeds, n_seeds, variant, e_start, e_to, e_kind, owner, loops, t_start, accept, stamp, moved, mark,
             stack, out):  # fmt: skip
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


@allocating
def _grown(array, size):
    bigger = np.empty(max(size, 2 * len(array)), array.dtype)
    for i in range(len(array)):
        bigger[i] = array[i]
    return bigger


@allocating
def _grown_rows(array):
    """Twice as many rows. (Element by element: a slice assignment takes Numba seconds to compile.)"""
    bigger = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            bigger[i, j] = array[i, j]
    return bigger


@inlined
def _hash_of(items, first, last):
    h = np.uint64(last - first)
    for i in range(first, last):
        h = (h ^ np.uint64(items[i])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@inlined
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


@inlined
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


@inlined
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
def determinize(t_start, t_lo, t_hi, t_to, e_start, e_to, e_kind, owner, loops, start, accept, n_classes, max_states,
                max_work, at, table, accepting, items, first, slots, records):  # fmt: skip
    """Subset construction (Rabin & Scott 1959) of an NFA with counted loops, for some time.

    A subset is the set of NFA states with transitions; at most one counted loop is active in it, and all of
    its threads share one count (otherwise the result is CONFLICT and one or two loops, and the caller spells one
    of them out). A subset whose count has reached the loop's minimum holds ``len(owner)`` as a last item. When a
    count is incremented the transition becomes a record with a target for each zone.

    ``at`` says how many states, items and records there are, and which state and class come next; the subset of
    state ``s`` is ``items[first[s]:first[s + 1]]``, ``slots`` their hash table, a power of two; ``records`` is
    ``int32[*, 5]``: operation, loop, targets for LOW, MID and HIGH (for SET all three are the same). It goes on from
    there, until it is done, ``max_work`` is, or a round may need more room than these arrays have (NO_ROOM).

    Returns (status, loop, other loop or -1, slots).
    """
    n_nfa = len(owner)
    stamp = np.zeros(n_nfa, np.int32)
    moved = np.zeros(n_nfa, np.int32)
    stack = np.empty(n_nfa + 1, np.int32)
    out = np.empty(n_nfa + 2, np.int32)
    seeds = np.empty(n_nfa + 1, np.int32)
    seeded = np.zeros(n_nfa, np.int32)
    mark = 0
    seed_mark = 0
    cuts = np.zeros(n_classes + 1, np.uint8)
    cut_for = -1
    work = 0

    n_states = at[0]
    n_items = at[1]
    n_records = at[2]
    state = at[3]
    lo = at[4]
    n_seeds = 1
    seeds[0] = start
    while state < n_states:
        # One round of this loop settles one segment [lo, hi) of classes of `state`; the first makes state 0.
        is_full = n_states + 4 > len(first) or n_states + 3 > len(accepting) or n_records + 2 > len(records)
        is_full = is_full or n_items + 3 * (n_nfa + 1) > len(items) or (n_states + 3) * n_classes > len(table)
        if is_full or work > max_work:
            at[0] = n_states
            at[1] = n_items
            at[2] = n_records
            at[3] = state
            at[4] = lo
            return TOO_MUCH_WORK if work > max_work else NO_ROOM, -1, -1, slots
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
                return CONFLICT, conflict, inside, slots
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
                return CONFLICT, incremented, inside, slots
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
                        return TOO_MANY_STATES, -1, -1, slots
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
                    if 2 * n_states > len(slots):
                        slots = np.full(2 * len(slots), -1, np.int32)
                        for s in range(n_states):
                            slots[_found_row(slots, first, items, items, first[s], first[s + 1])[1]] = s
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
    return OK, -1, -1, slots


# -- threads in order of preference: see `structgen.compiler.grammar.lexer.ordered` ----------------------------------

#: What ``at`` counts: states, integers of their rows, watching states; the state that comes next; whether ``slots``
#: are to be filled anew; calls of `_closed`; and what is asked for: what is owed, and the look-ahead that begins, or
#: -1 for what is owed after each byte.
_STATES, _ITEMS, _ENDS, _NEXT, IS_NEW, _MARK, OWED, AHEAD = range(8)
ORDERED_COUNTS = 8

#: Roles of a thread: one that goes on or matches here; a match that ended before and is pending; such a match that is
#: watched.
_HERE, _PENDING, _WATCHED = range(3)

#: What can't be paid any more, and what was not worked out yet; the status where that is needed.
UNPAID, UNASKED = -1, -2
ASKS = 5


@inlined
def _closed(program, looks, begun, accepting, match, memory, at, n_seeds, n_behind, beats):
    """All that empty moves lead to from the seeds, in order, each once, up to the first match that owes nothing.

    Writes a row; ``row[1:1 + n_behind]`` are the states of the look-behind automata. Returns its size, or -status.
    """
    move_first, move_to, move_look, edge_first = program[0], program[1], program[2], program[3]
    turn, after = program[7], program[8]
    ahead, column, negate = looks
    seeds, stack, row, seen, stamp, last = memory[0], memory[2], memory[3], memory[4], memory[5], memory[6]
    at[_MARK] += 1
    mark = at[_MARK]
    n_seen, size, n, moving = 0, 1 + n_behind, 0, False
    for i in range(n_seeds - 1, -1, -1):
        for j in range(3):
            stack[n, j] = seeds[i, j]
        stack[n, 3] = 0
        n += 1
    while n:
        n -= 1
        # Of the loops around a state, the inmost so many were begun on the way here; those before have read a byte.
        state, owed, role, loops = stack[n, 0], stack[n, 1], stack[n, 2], stack[n, 3]
        if stamp[state] != mark:
            stamp[state] = mark
            last[state] = -1
        is_known = is_listed = False
        i = last[state]
        while i >= 0:
            if seen[i, 0] == owed:
                is_listed = True
                is_known |= seen[i, 1] == loops
            i = seen[i, 2]
        moves = move_first[state + 1] - move_first[state]
        if n_seen == len(seen) or size + 2 > len(row) - n_behind or n + moves + 1 > len(stack):
            return -NO_ROOM
        if not is_known:
            seen[n_seen, 0] = owed
            seen[n_seen, 1] = loops
            seen[n_seen, 2] = last[state]
            last[state] = n_seen
            n_seen += 1
        if not is_listed and (state == match or edge_first[state + 1] > edge_first[state]):
            row[size] = state << 2 | (role if state == match else _HERE)
            row[size + 1] = owed
            size += 2
        if state == match:
            # Of two matches that owe the same the preferred one will be it, if any.
            beats |= role == _WATCHED and is_listed
            if not owed:
                break
            continue
        if is_known:
            continue
        moving |= edge_first[state + 1] > edge_first[state]
        if after[state] >= 0 and loops:
            stack[n, 0] = after[state]
            stack[n, 1] = owed
            stack[n, 2] = _HERE
            stack[n, 3] = loops - 1
            n += 1
            continue
        for m in range(move_first[state + 1] - 1, move_first[state] - 1, -1):
            passed, look = owed, move_look[m]
            if look >= 0 and ahead[look] >= 0:
                passed = begun[owed, ahead[look]]
                if passed == UNASKED:
                    at[OWED] = owed
                    at[AHEAD] = ahead[look]
                    return -ASKS
            elif look >= 0:
                behind = row[1 + column[look]]
                if (behind >= 0 and accepting[behind] != 0) == (negate[look] != 0):
                    passed = UNPAID
            if passed != UNPAID:
                stack[n, 0] = move_to[m]
                stack[n, 1] = passed
                stack[n, 2] = _HERE
                stack[n, 3] = loops + turn[state]
                n += 1
    row[0] = beats
    if not moving:  # what is before the match no longer matters
        for i in range(n_behind):
            row[1 + i] = -1
    return size


@inlined
def _state_of(rows, row, size, at):
    """The number of the state with a row; -1 where there is no room for a new one."""
    items, first, slots = rows
    known, slot = _found_row(slots, first, items, row, 0, size)
    if known >= 0:
        return known
    number = at[_STATES]
    if number + 2 > len(first) or at[_ITEMS] + size > len(items) or 2 * number + 2 > len(slots):
        return -1
    for i in range(size):
        items[at[_ITEMS] + i] = row[i]
    at[_ITEMS] += size
    at[_STATES] += 1
    first[number + 1] = at[_ITEMS]
    slots[slot] = number
    return number


@inlined
def _look_at_matches(rows, memory, at, state, match, n_behind, kept, ends, flags):
    """Write the matches of a state, and what is known of it; False where there is no room."""
    items, first, row = rows[0], rows[1], memory[3]
    end_first, watching = ends
    begin, end = first[state], first[state + 1]
    at[_ENDS] = end_first[state]
    beats, lapses, whole = items[begin] != 0, False, -1
    if end - begin > len(row) - n_behind:
        return False
    for i in range(begin + 1 + n_behind, end, 2):
        role, owed = items[i] & 3, items[i + 1]
        if items[i] >> 2 != match:
            continue
        lapses |= owed != 0 and (kept[owed] != 0) != (role == _WATCHED)
        if whole < 0 and kept[owed]:
            whole = int(role == _HERE)
        if role != _HERE:
            continue
        watch = state
        if owed:
            row[0] = 0
            for j in range(begin + 1, i):
                row[j - begin] = items[j]
            row[i - begin] = match << 2 | _WATCHED
            row[i - begin + 1] = owed
            watch = _state_of(rows, row, i - begin + 2, at)
        else:
            beats = True
        if watch < 0 or at[_ENDS] == len(watching):
            return False
        watching[at[_ENDS]] = watch
        at[_ENDS] += 1
    end_first[state + 1] = at[_ENDS]
    flags[state, 0] = beats
    flags[state, 1] = lapses
    flags[state, 2] = whole == 1
    return True


@inlined
def _moved(program, paid, rows, match, memory, at, state, n_behind, byte):
    """Write the threads that a byte leads to as seeds; how many, twice that and 1 where it beats, or -status."""
    edge_first, edge_low, edge_high, edge_to = program[3], program[4], program[5], program[6]
    items, first, seeds, n = rows[0], rows[1], memory[0], 0
    for i in range(first[state] + 1 + n_behind, first[state + 1], 2):
        here, role, owed = items[i] >> 2, items[i] & 3, items[i + 1]
        left = paid[owed, byte] if owed else 0
        if left == UNASKED:
            at[OWED] = owed
            at[AHEAD] = -1
            return -ASKS
        if here != match:
            for e in range(edge_first[here], edge_first[here + 1] if left != UNPAID else 0):
                if edge_low[e] <= byte <= edge_high[e]:
                    if n == len(seeds):
                        return -NO_ROOM
                    seeds[n, 0] = edge_to[e]
                    seeds[n, 1] = left
                    seeds[n, 2] = _HERE
                    n += 1
        elif left > 0:
            if n == len(seeds):
                return -NO_ROOM
            seeds[n, 0] = match
            seeds[n, 1] = left
            seeds[n, 2] = max(role, _PENDING)
            n += 1
        elif owed and (left == 0 or role == _WATCHED):  # paid, or the end of what is watched
            return 2 * n + int((left == UNPAID) == (role == _WATCHED))
    return 2 * n


@bare_kernel
def ordered_subsets(program, looks, owed, behinds, start, letters, most, at, table, rows, ends, flags, memory):
    """The subset construction over lists of threads, in order of preference, of one regex, for some time.

    A *row* is a state: whether the last byte beats; the states of the look-behind automata, -1 for none; and of each
    thread four times the state of the program and its role, and what is owed.

    Parameters
    ----------
    program:
        By state: the first of its empty moves, the preferred ones first; of these the target and a look-around or
        -1; the first of its edges; of these lowest and highest byte and target; whether the turn of a loop begins
        there; where a turn that ends there leads that has read nothing, or -1. Right after the start is the match.
    looks:
        By look-around: its look-ahead or -1; else the place of its automaton in a row; whether it must fail.
    owed:
        By what is owed: what is after each byte (``int32[*, 256]``), what is with a look-ahead more, and whether it
        is kept at the end of the text. `UNPAID` where it can't be paid, `UNASKED` where that is to be worked out.
    behinds:
        Of look-behind automata: next states by byte, whether each accepts, and those to begin in.
    letters:
        ``uint8[classes]``: a byte of each class.
    most:
        Steps before TOO_MUCH_WORK.
    at, rows, memory:
        What was found so far; ``rows`` are integers, the first of each state, and slots (a power of two). The
        construction goes on from there, also after ASKS (see ``at``) and NO_ROOM.
    table, ends, flags:
        By state and class the next state or -1; by state the first of its matches, and the states that watch them;
        whether a match is certain, whether one that is watched would lapse, whether all would be the match.

    Returns
    -------
    A status.
    """
    paid, begun, kept = owed
    followed, accepting, begins = behinds
    items, first, slots = rows
    seeds, before, row = memory[0], memory[1], memory[3]
    match, n_behind, n_classes, work = start + 1, len(begins), len(letters), 0
    if at[IS_NEW]:
        for state in range(at[_STATES]):
            slots[_found_row(slots, first, items, items, first[state], first[state + 1])[1]] = state
        at[IS_NEW] = 0
    if not at[_STATES]:
        seeds[0, 0] = start
        seeds[0, 1] = seeds[0, 2] = 0
        for i in range(n_behind):
            row[1 + i] = begins[i]
        size = _closed(program, looks, begun, accepting, match, memory, at, 1, n_behind, False)
        if size < 0:
            return -size
        if _state_of(rows, row, size, at) < 0:
            return NO_ROOM
    while at[_NEXT] < at[_STATES]:
        state = at[_NEXT]
        if work > most:
            return TOO_MUCH_WORK
        is_full = (state + 1) * n_classes > len(table) or state == len(flags)
        if is_full or not _look_at_matches(rows, memory, at, state, match, n_behind, kept, ends, flags):
            return NO_ROOM
        target, found_before = -1, -1
        for c in range(n_classes):
            found = _moved(program, paid, rows, match, memory, at, state, n_behind, letters[c])
            if found < 0:
                return -found
            work += 4 + first[state + 1] - first[state]
            is_same = found == found_before
            for i in range(n_behind):
                behind = items[first[state] + 1 + i]
                behind = followed[behind, letters[c]] if behind >= 0 else -1
                is_same &= row[len(row) - 1 - i] == behind  # the last places are kept for these
                row[len(row) - 1 - i] = row[1 + i] = behind
            for i in range(found >> 1):
                for j in range(3):
                    is_same &= before[i, j] == seeds[i, j]
                    before[i, j] = seeds[i, j]
            found_before = found
            if not is_same:
                n = found >> 1
                size = _closed(program, looks, begun, accepting, match, memory, at, n, n_behind, found & 1 > 0)
                if size < 0:
                    return -size
                work += 4 * size
                target = -1
                if row[0] or size > 1 + n_behind:
                    target = _state_of(rows, row, size, at)
                    if target < 0:
                        return NO_ROOM
            table[state * n_classes + c] = target
        at[_NEXT] += 1
    return OK
