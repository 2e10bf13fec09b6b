"""Walks of the trie of tokens through an automaton with a stack; docs/internals/stacks.md derives them."""

from __future__ import annotations

import numpy as np

from .automaton_walks import _FIXED, _count, _join
from .jit import bare_kernel, inlined, kernel
from .rows import sort_to_gaps
from .subset_construction import _grown_rows, _zone
from .values import DEAD, INC, LOW, MARK, MID, NO_ROOM, OK, SET, TOO_MUCH_WORK

#
# A pushdown automaton comes as one int32 array, its *arena* (see `structgen.runtime.pushdown.tables`): a call with
# one array costs a third of one with twelve. The first words say where the parts begin.

#
# What a state does with each class of bytes is its *row*: a state, `A_STATES` + a group of moves, or `DEAD`. Rows are
# laid out one behind the other, from `A_FREE` on, when a walk first comes to their states.

A_STATES, A_CLASSES, A_CLASS_OF, A_ROWS, A_EDGE_START, A_EDGES, A_LIKE, A_GROUPS, A_SINGLE, A_MOVES = range(10)
A_SEQUENCE, A_RECORDS, A_LOOPS, A_LIVE, A_RETURNS, A_TESTS, A_SETS, A_FREE, A_DEAD_ROW, A_CAME_TO = range(10, 20)
ARENA_HEADER = 20

# A state may be *open*: what it does is not known yet. A walk that comes to one takes it to do nothing, and is to be
# taken again: `A_CAME_TO` is then 1 plus such a state, and all of them have the row at `A_DEAD_ROW`.

# A set of members below 62 is one word, a bit each. Any other has a number in the table at `A_SETS`. That begins with
# the words of each set (31 members in each), the sets that there is room for, a power of two, and how many there are;
# then come twice as many slots, 1 plus a number or 0; then the sets, and room for one more, in which each is put
# together. A walk that has no room for a set is to be taken again with more: `A_CAME_TO` is then `NO_SET`.

#: What is added to a set's number, and what is in `A_CAME_TO` where there was no room for one.
NUMBERED, NO_SET = 1 << 62, -1

#: Before the slots of the table of sets; and in place of the least number in what goes on with a test's mask.
SET_HEADER, MORE_OF_TEST = 3, -1

#: What open states are like.
OPEN = -1

#: What the one move of a group does, beside the number of its record, which counts: it pops, or does anything else.
SINGLE_POP, NOT_SINGLE = -1, -2

#: What a walk returns in place of a count where it gave up: too many threads or cells, or too many nodes.
OVERFLOW, TOO_FAR = -1, -2

#: States with no more edges have no row where many are followed.
_FEW_EDGES = 3

#: Less one of these zones: a count that stays in it; only where nothing else is counted or marked.
UNBOUNDED = -1

# Stacks are a graph of *cells*, each ``state, count, below, ends, stamp``: what lies below it, whether all states
# from it down to the unknown bottom may return, and when it was last visited. What lies below is a cell; or
# `_BOTTOM`; or several of these, a list of cells with the state `_LINK`, a member of the set in place of the count
# (ascending), and the next link below, or `_NIL`. Equal cells have the same number, but for a few that are missed.
_BOTTOM, _NIL, _LINK = -1, -2, -2

#: Columns of a cell, and how many slots are looked at for it. There are twice as many slots as cells.
CELL, _PROBES = 5, 16


@inlined
def _add_edges(arena, state, row):
    """Write the edges of a state to a row."""
    classes = arena[A_CLASS_OF]
    begin = arena[arena[A_EDGE_START] + state]
    for edge in range(begin, arena[arena[A_EDGE_START] + state + 1]):
        at = arena[A_EDGES] + 2 * edge
        for c in range(arena[classes + (arena[at] & 255)], arena[classes + (arena[at] >> 8)] + 1):
            arena[row + c] = arena[at + 1]


@inlined
def _come_to_open(arena, state):
    """Note that a walk came to a state that is open; returns its row."""
    arena[A_CAME_TO] = state + 1
    arena[arena[A_ROWS] + state] = arena[A_DEAD_ROW]
    return arena[A_DEAD_ROW]


@inlined
def _lay_out(arena, state):
    """Write a row of the arena; returns where it begins."""
    like = arena[arena[A_LIKE] + state] - 1
    if like == OPEN - 1:
        return _come_to_open(arena, state)
    if like >= 0 and arena[arena[A_LIKE] + like] == OPEN:
        _come_to_open(arena, like)
        return arena[A_DEAD_ROW]
    row = arena[A_FREE]
    arena[A_FREE] = row + arena[A_CLASSES]
    for c in range(arena[A_CLASSES]):
        arena[row + c] = DEAD
    if like >= 0:
        _add_edges(arena, like, row)
    _add_edges(arena, state, row)
    arena[arena[A_ROWS] + state] = row
    return row


@inlined
def _row(arena, state):
    """Where the row of a state begins."""
    row = arena[arena[A_ROWS] + state]
    return row if row else _lay_out(arena, state)


@inlined
def _entry(arena, state, c):
    """What a state does with a class of bytes; no row is laid out for one with few edges."""
    row = arena[arena[A_ROWS] + state]
    begin = arena[arena[A_EDGE_START] + state]
    end = arena[arena[A_EDGE_START] + state + 1]
    if row == 0 and end - begin <= _FEW_EDGES and arena[arena[A_LIKE] + state] == 0:
        classes = arena[A_CLASS_OF]
        for edge in range(begin, end):
            at = arena[A_EDGES] + 2 * edge
            if arena[classes + (arena[at] & 255)] <= c <= arena[classes + (arena[at] >> 8)]:
                return arena[at + 1]
        return np.int32(DEAD)
    return arena[(row if row else _lay_out(arena, state)) + c]


@inlined
def _weigh(arena, row, weights):
    """What the classes weigh together for which a row is not dead."""
    weight = 0.0
    for c in range(len(weights)):
        if arena[row + c] != DEAD:
            weight += weights[c]
    return weight


@bare_kernel
def widest_entry(arena, state, weights):
    """The entry of a state whose classes weigh most together, `DEAD` where all are dead; its share; what all
    weigh.

    ``weights``: ``float64[classes]``.
    """
    row = _row(arena, state)
    total = _weigh(arena, row, weights)
    widest = np.int64(DEAD)
    most = 0.0
    for c in range(len(weights)):
        entry = arena[row + c]
        if entry in (DEAD, widest):
            continue
        weight = 0.0
        for other in range(c, len(weights)):
            if arena[row + other] == entry:
                weight += weights[other]
        if weight > most:
            most = weight
            widest = np.int64(entry)
        if 2 * most > total:
            break
    return widest, most / max(1.0, total), total


@bare_kernel
def approach_base(arena, state, weights, narrowest, share, steps, config):
    """Follow the entries that weigh most to a configuration that they stay in.

    Parameters
    ----------
    narrowest, share:
        What the entries of a state on the way weigh at least, and what part of that the one that is followed.
    steps:
        How many are followed at most.
    config:
        ``int64[2 * (frames + 1)]``, out: state and count, then those of the frames, topmost first.

    Returns
    -------
    Length of the configuration; 0 where there is none, it is the state itself, or there are too many frames.
    """
    n = np.int64(0)  # frames, the lowest one first
    here = np.int64(state)
    for _ in range(steps):
        entry, part, weight = widest_entry(arena, here, weights)
        if weight < narrowest:
            return 0
        if entry == here:
            if here == state and n == 0:
                return 0
            for k in range(n // 2):
                config[2 * k], config[2 * (n - 1 - k)] = config[2 * (n - 1 - k)], config[2 * k]
            for k in range(n, 0, -1):
                config[2 * k] = config[2 * (k - 1)]
            config[0] = here
            for k in range(n + 1):
                config[2 * k + 1] = 0
            return 2 * (n + 1)
        if part < share:
            return 0
        if entry >= arena[A_STATES]:
            group = arena[A_GROUPS] + entry - arena[A_STATES]
            move = arena[A_MOVES] + 2 * arena[group]
            first = arena[move + 1]
            last = arena[move + 3]
            if arena[group + 1] != arena[group] + 1 or arena[move] >= 0 or first == last:
                return 0
            if n + last - first - 1 >= len(config) // 2:
                return 0
            for k in range(first, last - 1):
                config[2 * n] = arena[arena[A_SEQUENCE] + k]
                n += 1
            entry = np.int64(arena[arena[A_SEQUENCE] + last - 1])
        here = entry
        if arena[arena[A_LIVE] + here] >= 0:
            return 0
    return 0


@inlined
def _may_end(cells, ref):
    """Whether all states of some stack from ``ref`` down may return."""
    return 1 if ref == _BOTTOM else 0 if ref == _NIL else cells[ref, 3]


@inlined
def _stack_cell(arena, cells, slots, top, state, count, below):
    """The number of a cell, ``top`` for a new one; `OVERFLOW`. Slots may hold anything: what is found is compared."""
    key = (state * 0x9E3779B1) ^ (count * 0x85EBCA6B) ^ (below * 0x27D4EB2F)
    slot = ((key >> 15) ^ key) & (len(slots) - 1)
    for _ in range(_PROBES):
        there = slots[slot]
        if there < 0 or there >= top:
            break
        if cells[there, 0] == state and cells[there, 1] == count and cells[there, 2] == below:
            return there
        slot = (slot + 1) & (len(slots) - 1)
    if top >= len(cells):
        return OVERFLOW
    slots[slot] = top
    cells[top, 0] = state
    cells[top, 1] = count
    cells[top, 2] = below
    if state == _LINK:
        cells[top, 3] = _may_end(cells, count) | _may_end(cells, below)
    else:
        cells[top, 3] = arena[arena[A_RETURNS] + state] & _may_end(cells, below)
    cells[top, 4] = 0
    return top


@inlined
def _is_before(threads, i, j):
    """Whether one thread comes before another one in the order of states, counts and stacks."""
    if threads[i, 0] != threads[j, 0]:
        return threads[i, 0] < threads[j, 0]
    if threads[i, 1] != threads[j, 1]:
        return threads[i, 1] < threads[j, 1]
    return threads[i, 2] < threads[j, 2]


@inlined
def _are_alike(threads, i):
    """Whether a thread and the next one have equal states and counts."""
    return threads[i, 0] == threads[i + 1, 0] and threads[i, 1] == threads[i + 1, 1]


@inlined
def _sort_threads(threads, begin, n):
    """Shell sort in place."""
    gap = 1
    while gap < (n - begin) // 3:
        gap = 3 * gap + 1
    while gap:
        for i in range(begin + gap, n):
            j = i
            while j >= begin + gap and _is_before(threads, j, j - gap):
                for column in range(3):
                    threads[j, column], threads[j - gap, column] = threads[j - gap, column], threads[j, column]
                j -= gap
        gap //= 3


@inlined
def _unite(arena, threads, begin, n, cells, slots, top, united):
    """Leave each of ``threads[begin:n]`` there once, in order; if ``united``, those with equal tops become one.

    Returns (end of the threads or `OVERFLOW`, first free cell).
    """
    _sort_threads(threads, begin, n)
    kept = begin
    i = begin
    while i < n:
        state = threads[i, 0]
        count = threads[i, 1]
        below = threads[i, 2]
        i += 1
        different = False
        first = i - 1
        while i < n and threads[i, 0] == state and threads[i, 1] == count and (united or threads[i, 2] == below):
            different |= threads[i, 2] != below
            i += 1
        if different:
            # The members of all their sets, sorted, behind the threads; then the list, from its end.
            m = n
            for k in range(first, i):
                ref = threads[k, 2]
                if k > first and ref == threads[k - 1, 2]:
                    continue
                if ref == _BOTTOM or cells[ref, 0] != _LINK:
                    if m >= len(threads):
                        return OVERFLOW, top
                    threads[m, 0] = ref
                    m += 1
                    continue
                while ref != _NIL:
                    if m >= len(threads):
                        return OVERFLOW, top
                    threads[m, 0] = cells[ref, 1]
                    m += 1
                    ref = cells[ref, 2]
            for k in range(n, m):
                threads[k, 1] = 0
                threads[k, 2] = 0
            _sort_threads(threads, n, m)
            below = np.int64(_NIL)
            for k in range(m - 1, n - 1, -1):
                if k + 1 < m and threads[k, 0] == threads[k + 1, 0]:
                    continue
                below = _stack_cell(arena, cells, slots, top, np.int64(_LINK), threads[k, 0], below)
                if below < 0:
                    return OVERFLOW, top
                top = max(top, below + 1)
            if cells[below, 2] == _NIL:
                below = cells[below, 1]
        threads[kept, 0] = state
        threads[kept, 1] = count
        threads[kept, 2] = below
        kept += 1
    return kept, top


@inlined
def _set_row(arena, number):
    """Where the words of a set with a number begin."""
    sets = arena[A_SETS]
    return sets + SET_HEADER + 2 * arena[sets + 1] + number * arena[sets]


@inlined
def _number_last(arena):
    """The number of the set that has been put together behind the others: a new one, or that of an equal set.

    -1 where there is no room.
    """
    sets = arena[A_SETS]
    words, room, n = arena[sets], arena[sets + 1], arena[sets + 2]
    new = _set_row(arena, n)
    key = np.int64(0)
    for k in range(words):
        key = (key ^ arena[new + k]) * 0x9E3779B1
        key ^= key >> 29
    slots = sets + SET_HEADER
    slot = key & (2 * room - 1)
    while arena[slots + slot]:
        row = _set_row(arena, arena[slots + slot] - 1)
        k = 0
        while k < words and arena[row + k] == arena[new + k]:
            k += 1
        if k == words:
            return np.int64(arena[slots + slot] - 1)
        slot = (slot + 1) & (2 * room - 1)
    if n == room:
        arena[A_CAME_TO] = NO_SET
        return np.int64(-1)
    arena[slots + slot] = n + 1
    arena[sets + 2] = n + 1
    return np.int64(n)


@bare_kernel
def number_sets(arena, sets):
    """Enter ``int32[*, words]`` into the table of sets; the number of the last one, -1 where there is no room."""
    number = np.int64(-1)
    for i in range(sets.shape[0]):
        row = _set_row(arena, arena[arena[A_SETS] + 2])
        for k in range(sets.shape[1]):
            arena[row + k] = sets[i, k]
        number = _number_last(arena)
    return number


@inlined
def _marked_in_table(arena, members, member):
    """`_marked` where one of both sets has a number; -1, too, where there is no room for the new one."""
    sets = arena[A_SETS]
    new = _set_row(arena, arena[sets + 2])
    if members < NUMBERED:
        for k in range(arena[sets]):
            arena[new + k] = 0
        arena[new] = members & 0x7FFFFFFF
        arena[new + 1] = members >> np.int64(31)
    elif members - NUMBERED < arena[sets + 2]:
        row = _set_row(arena, members - NUMBERED)
        for k in range(arena[sets]):
            arena[new + k] = arena[row + k]
    else:  # a file may have it that to a set is added as to a count
        return np.int64(-1)
    word = new + member // 31
    bit = 1 << member % 31
    if arena[word] & bit:
        return np.int64(-1)
    arena[word] |= bit
    number = _number_last(arena)
    return number if number < 0 else NUMBERED + number


@inlined
def _marked(arena, members, member):
    """The set ``members`` with ``member`` added, unchanged for member -1; -1 if it was a member already."""
    if member < 0:
        return members
    if member >= 62 or members >= NUMBERED:
        return _marked_in_table(arena, members, np.int64(member))
    bit = np.int64(1) << np.int64(member)
    return np.int64(-1) if members & bit else members | bit


@inlined
def _in_both(members, mask):
    """How many members of a set are in a mask."""
    tested = members & mask
    n = 0
    while tested:
        tested &= tested - 1
        n += 1
    return n


@inlined
def _passes(arena, members, test):
    """Whether a set passes a test."""
    t = arena[A_TESTS] + 4 * test
    if members < NUMBERED:
        n = _in_both(members, np.int64(arena[t + 2]) | np.int64(arena[t + 3]) << np.int64(31))
        return arena[t] <= n <= arena[t + 1]
    if members - NUMBERED >= arena[arena[A_SETS] + 2]:
        return False
    row = _set_row(arena, members - NUMBERED)
    words = np.int64(arena[arena[A_SETS]])
    n = 0
    at = t
    for k in range(0, words, 2):
        n += _in_both(np.int64(arena[row + k]), np.int64(arena[at + 2]))
        if k + 1 < words:
            n += _in_both(np.int64(arena[row + k + 1]), np.int64(arena[at + 3]))
        at += 4
        if arena[at] != MORE_OF_TEST:
            break
    return arena[t] <= n <= arena[t + 1]


@inlined
def _next_count(count):
    """A count and one more."""
    return count + 1 if count >= 0 else count


@inlined
def _counted_to(arena, r, count):
    """The state that a record, which adds to a count, leads to."""
    loop = arena[A_LOOPS] + 2 * arena[r + 1]
    return arena[r + 2 + (_zone(count, arena[loop], arena[loop + 1]) if count >= 0 else UNBOUNDED - count)]


@inlined
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


@inlined
def _stays_in(arena, state, count, bytes_):
    """The zone that a count of a state stays in for so many bytes; -1 where it may leave it, or is a set."""
    if count < 0:
        return UNBOUNDED - count
    loop = arena[A_LOOPS] + 2 * arena[arena[A_LIVE] + state]
    if count + bytes_ < arena[loop]:
        return np.int64(LOW)
    return np.int64(MID if 0 <= arena[loop] <= count + 1 and count + bytes_ < arena[loop + 1] else -1)


@inlined
def _follow(arena, c, threads, begin, end, cells, slots, top, stamp, united):
    """Take every thread of ``threads[begin:end]`` over a byte of class ``c``; the next ones stand behind ``end``.

    ``stamp`` is a positive number that no other call of the walk has. Returns (end of the next threads or `OVERFLOW`,
    first free cell, whether some thread popped below the bottom). See `_unite` for ``united``.
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
            past, top = _unite(arena, threads, source, past, cells, slots, top, united)
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
                    here = _stack_cell(arena, cells, slots, top, state_now, count_now, here)
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
        n, top = _unite(arena, threads, past, n, cells, slots, top, united)
    if past > end and n > 0:
        for i in range(past, n):
            for column in range(3):
                threads[i - past + end, column] = threads[i, column]
        n -= past - end
    return n, top, escaped


@inlined
def _may_return(arena, threads, begin, end, cells):
    """Whether some thread could hand the next byte to what lies below the bottom."""
    found = False
    for i in range(begin, end):
        if arena[arena[A_RETURNS] + threads[i, 0]]:
            found |= _may_end(cells, threads[i, 2]) != 0
    return found


@inlined
def _start_stack(arena, config, cells, slots, top):
    """Lay out the cells of ``config``, pairs of state and count, the current state first and the lowest cell last.

    Returns (first free cell or `OVERFLOW`, state, count, cell below the state or `_BOTTOM`).
    """
    cell = np.int64(_BOTTOM)
    for i in range(len(config) // 2 - 1, 0, -1):
        cell = _stack_cell(arena, cells, slots, top, config[2 * i], config[2 * i + 1], cell)
        if cell < 0:
            return OVERFLOW, config[0], config[1], cell
        top = max(top, cell + 1)
    return top, config[0], config[1], cell


@inlined
def _next_live(arena, row, upper, at, end):
    """The first node of ``upper[:, at:end]`` whose byte is not dead in a row; ``end`` where there is none."""
    while at < end and arena[row + arena[arena[A_CLASS_OF] + upper[0, at]]] == DEAD:
        at += 1
    return at


@kernel
def walk_stack(byte, depth, skip, first_token, token_ids, max_depth, upper, arena, residual, config, room, work,
               nodes, ids, below):  # fmt: skip
    """The tokens that a configuration with an unknown stack below allows, from several places of the trie.

    Parameters
    ----------
    upper:
        ``int32[3, *]``: bytes, numbers and first children of the nodes that have at most two bytes, breadth first. A
        walk from the root looks at those alone that the thread above has a move for.
    residual:
        ``int32[*]``, ascending nodes; the subtree below each is walked from ``config``. Node 0 is the whole trie.
    config:
        ``int64[2 * n]``: state and count, then those of the stack cells above the unknown bottom, topmost first.
    room:
        Threads and stack cells that the walk can have, a power of two.
    work:
        Threads that it may follow, where there is more to do than to look up where one moves.
    nodes:
        Nodes that it may look at.
    ids:
        ``int32[tokens]``, out: allowed token ids, in the trie's order.
    below:
        ``int32[nodes]``, out: ascending nodes at which the rest of the token is up to the state below the bottom.

    Returns
    -------
    (number of ids, number of nodes below, the node to go on at): the number of nodes where there is nothing left to
    do, a smaller one where ``room``, ``work`` or ``nodes`` did not suffice. From there on it is up to `walk_sets`.

    Nodes of ``residual`` may lie below one another: there the configuration joins the threads that came down.
    """
    threads = np.empty((room, 3), np.int64)  # a set takes 64 bits
    cells = np.empty((room, CELL), np.int64)
    slots = np.empty(2 * room, np.int32)
    first = np.zeros(max_depth + 3, np.int32)  # threads of depth d: first[d + 1]..first[d + 2]
    tops = np.zeros(max_depth + 3, np.int64)  # first free cell, likewise
    base_top, state, count, cell = _start_stack(arena, config, cells, slots, np.int64(0))
    if base_top < 0:
        return 0, 0, 0
    stamp = 0
    n_ids = 0
    n_below = 0
    # What the loop reads at every node is in locals: an array that is written to hides that it stays the same.
    n_states = arena[A_STATES]
    class_of = arena[A_CLASS_OF]
    rows = arena[A_ROWS]
    singles = arena[A_SINGLE] - n_states
    records = arena[A_RECORDS]
    loops = arena[A_LOOPS]
    live = arena[A_LIVE]
    returns = arena[A_RETURNS]
    entered = 0  # nodes of residual so far
    pending = residual[0] if len(residual) else len(byte)
    # Where the root alone is entered, by a thread that leaves no byte to others: its children that come next, and
    # those of the child that has been looked at, with the rows of what has moves for them.
    child = last_child = grandchild = last_grandchild = 0
    root_row = child_row = arena[A_FREE]
    from_root = False
    end = 0
    i = 0
    while True:
        if i >= end:
            if from_root:
                if grandchild < 0:
                    grandchild = last_grandchild = 0
                    if i == end and i < skip[i - 1]:  # the child is alive
                        s = threads[first[2], 0]
                        if first[3] != first[2] + 1 or (arena[returns + s] and threads[first[2], 2] != _BOTTOM):
                            end = skip[i - 1]
                            continue
                        child_row = _row(arena, s)
                        grandchild = upper[2, child - 1]
                        last_grandchild = upper[2, child]
                grandchild = _next_live(arena, child_row, upper, grandchild, last_grandchild)
                if grandchild < last_grandchild:
                    i = upper[1, grandchild]
                    end = skip[i]
                    grandchild += 1
                    continue
                child = _next_live(arena, root_row, upper, child, last_child)
                if child == last_child:
                    break
                i = upper[1, child]
                end = i + 1
                child += 1
                grandchild = -1
                continue
            if entered == len(residual):
                break
            i = pending
            end = skip[i]
            first[depth[i]] = 0
            first[depth[i] + 1] = 0
            tops[depth[i]] = base_top
        if nodes == 0:
            return n_ids, n_below, i
        nodes -= 1
        d = depth[i]
        above = first[d]
        begin = first[d + 1]
        if above + 1 == begin and i != pending:  # nearly always: one thread, which moves or dies
            s = threads[above, 0]
            row = arena[rows + s]
            if row == 0:
                row = _lay_out(arena, s)
            entry = arena[row + arena[class_of + byte[i]]]
            now = threads[above, 1]
            alone = threads[above, 2] == _BOTTOM  # so what returns leaves a byte to nobody here
            if entry >= n_states and arena[singles + entry] >= 0:  # the only move: it counts
                r = records + 5 * arena[singles + entry]
                if arena[r] == SET:
                    now = np.int64(1)
                    entry = arena[r + 2]
                else:
                    now += 1
                    loop = loops + 2 * arena[r + 1]
                    entry = arena[r + 2 + _zone(now, arena[loop], arena[loop + 1])]
            if entry < n_states and (alone or arena[returns + s] == 0):
                if entry >= 0 and begin < room and (alone or arena[returns + entry] == 0):
                    for t in range(first_token[i], first_token[i + 1]):
                        ids[n_ids] = token_ids[t]
                        n_ids += 1
                    threads[begin, 0] = entry
                    threads[begin, 1] = now if arena[live + entry] >= 0 else 0
                    threads[begin, 2] = threads[above, 2]
                    first[d + 2] = begin + 1
                    tops[d + 1] = tops[d]
                    if arena[returns + entry] and i + 1 < skip[i]:
                        below[n_below] = i
                        n_below += 1
                    i += 1  # at a leaf that is where it skips to
                    continue
                if entry < 0 and pending >= skip[i]:
                    i = skip[i]
                    continue
            elif alone and entry >= n_states and arena[singles + entry] == SINGLE_POP and pending >= skip[i]:
                for t in range(first_token[i], first_token[i + 1]):
                    ids[n_ids] = token_ids[t]
                    n_ids += 1
                if i + 1 < skip[i]:
                    below[n_below] = i
                    n_below += 1
                i = skip[i]
                continue
        n = begin
        top = tops[d]
        escaped = False
        if above < begin:
            stamp += 1
            n, top, escaped = _follow(
                arena, arena[class_of + byte[i]], threads, above, begin, cells, slots, top, stamp, True
            )
            work -= _COST_OF_NODE + n - above + top - tops[d]
            if n < 0 or work < 0:
                return n_ids, n_below, i
        alive = n > begin or escaped
        if i == pending:
            if n >= room:
                return n_ids, n_below, i
            threads[n, 0] = state
            threads[n, 1] = count
            threads[n, 2] = cell
            n += 1
            if n > begin + 1:
                n, top = _unite(arena, threads, begin, n, cells, slots, top, True)
                if n < 0:
                    return n_ids, n_below, i
            entered += 1
            pending = residual[entered] if entered < len(residual) else len(byte)
        if alive:
            for t in range(first_token[i], first_token[i + 1]):
                ids[n_ids] = token_ids[t]
                n_ids += 1
        after = skip[i]
        if i + 1 < after:
            if escaped or _may_return(arena, threads, begin, n, cells):
                below[n_below] = i
                n_below += 1
            if n > begin:
                first[d + 2] = n
                tops[d + 1] = top
                i += 1
                if i == 1 and len(residual) == 1 and (arena[returns + state] == 0 or cell == _BOTTOM):
                    from_root = True
                    root_row = _row(arena, state)
                    child = 1
                    last_child = upper[2, 1]
                    end = 1
                continue
            if pending < after:
                # Nothing is alive between here and the next place to enter.
                i = pending
                for e in range(d, depth[i]):
                    first[e + 2] = begin
                    tops[e + 1] = top
                continue
        i = after
    return n_ids, n_below, len(byte)


#: Ids that a Shell sort puts in order as fast as NumPy does.
FEW_IDS = 64


@kernel
def decide_state(byte, depth, skip, first_token, token_ids, max_depth, upper, arena, residual, state, count, room,
                 work, weights, wide, widest, nodes, long_gap, ids, below, gaps):  # fmt: skip
    """`walk_stack`, unless that would take long where the same can be found by walking less.

    Parameters
    ----------
    weights:
        ``float64[classes]``: how many nodes of the trie are below the bytes of each class.
    wide, widest:
        A state that takes bytes above fewer than ``wide`` nodes is walked to the end, as is one that is entered at
        others than the root, and one that is like another with fewer than ``widest``; one with ``widest`` is not
        walked, nor one that counts with ``wide``.
    nodes:
        How many any other may look at.
    gaps:
        ``uint16[*]``, out: up to `FEW_IDS` ids as `write_gaps` has them; room for ids and ``tokens / long_gap`` more.

    Returns
    -------
    Numbers of ids and of nodes below, that of gaps or -1, whether the walk came to its end, and how many nodes are
    below the bytes that a state takes which is entered at the root, else -1.
    """
    most = np.int64(len(byte))
    weight = -1.0
    if len(residual) == 1 and residual[0] == 0:
        weight = _weigh(arena, _row(arena, state), weights)
        if weight >= widest or (count and weight >= wide):
            return 0, 0, -1, False, weight
        if weight >= wide and arena[arena[A_LIKE] + state] == 0:
            most = np.int64(nodes)
    config = np.empty(2, np.int64)
    config[0] = state
    config[1] = count
    n, m, node = walk_stack(
        byte, depth, skip, first_token, token_ids, max_depth, upper, arena, residual, config, room, work, most, ids,
        below,
    )
    if node < len(byte):
        return n, m, -1, False, weight
    return n, m, sort_to_gaps(ids[:n], long_gap, gaps) if n <= FEW_IDS else -1, True, weight


#: What `walk_sets` goes on with: the node, where the tree below the last node of ``residual`` ends, how many of these
#: were entered, the numbers of ids and nodes found, cells, sets, and a stamp.
P_NODE, P_END, P_ENTERED, P_IDS, P_BELOW, P_CELLS, P_SETS, P_STAMP, PROGRESS = range(9)

# What it costs to follow one thread more, in nodes that are looked up.
_COST_OF_NODE, _COST_OF_THREAD = 8, 8


@kernel
def walk_sets(byte, depth, skip, first_token, token_ids, arena, residual, entering, start, work, progress, at,
              threads, cells, slots, begins, members, returning, set_slots, following, ids, sets, below):  # fmt: skip
    """`walk_stack` in slices, with numbers for sets of threads, and where each leads to remembered: a lazy DFA.

    For walks that take long. A node costs a look-up, however many threads there are, once its set was met with its
    byte.

    Parameters
    ----------
    residual:
        Those that have ``start`` before the end of their tree.
    entering:
        ``int64[*, 3]``: the threads that enter at each of these, as state, count, and cell or `_BOTTOM`.
    start:
        The first node that is looked at; what leads to it was found before.
    work:
        Nodes to look at, about; one that takes more than a look-up counts for many.
    progress:
        ``int64[PROGRESS]``, in and out: all 0 but for `P_IDS`, `P_BELOW` and `P_CELLS` to begin with.
    at:
        ``int32[max_depth + 2]``, kept between slices: the set of the node above, by depth.
    threads, cells, slots:
        Room for the threads of a node, ``int64[*, 3]``; for cells, ``int64[*, 5]``, with ``int32[2 ** k]`` to find
        them.
    begins, members, returning, set_slots, following:
        The sets: ``int32[sets + 1]``, ``int64[*, 3]``, ``bool[sets]``, ``int32[2 ** k]``; and by set and class the
        set that follows: twice its number, plus 1 where a thread popped below the bottom, -1 while it is unknown. One
        more class stands for the threads that enter, which join the set.
    ids, below:
        As in `walk_stack`.
    sets:
        ``int32[tokens]``, out: by id where the token leads, as in ``following``.

    Returns
    -------
    `OK` at the end, `TOO_MUCH_WORK` after a slice, `NO_ROOM` where an array is too short: with more room, or with all
    sets forgotten, it can begin anew at the node that it came to.
    """
    n_classes = arena[A_CLASSES]
    width = n_classes + 1
    class_of = arena[A_CLASS_OF]
    top = progress[P_CELLS]
    n_sets = progress[P_SETS]
    if n_sets == 0:  # the empty set
        begins[0] = 0
        begins[1] = 0
        returning[0] = False
        for c in range(width):
            following[c] = 0
        following[n_classes] = -1
        n_sets = 1
    i = progress[P_NODE]
    end = progress[P_END]
    entered = progress[P_ENTERED]
    n_ids = progress[P_IDS]
    n_below = progress[P_BELOW]
    stamp = progress[P_STAMP]
    pending = residual[entered] if entered < len(residual) else len(byte)
    status = OK
    while True:
        if work <= 0:
            status = TOO_MUCH_WORK
            break
        work -= 1
        if i >= end:
            if entered == len(residual):
                break
            i = pending
            end = skip[i]
            at[depth[i]] = 0
        elif i < start and skip[i] <= start:
            i = skip[i]
            continue
        d = depth[i]
        here = at[d]
        step = 0
        if here:
            where = here * width + arena[class_of + byte[i]]
            step = following[where]
            if step < 0:
                n = np.int64(OVERFLOW)
                size = begins[here + 1] - begins[here]
                escaped = False
                if size <= len(threads):
                    _copy_threads(members, begins[here], size, threads)
                    stamp += 1
                    work -= _COST_OF_THREAD * size
                    n, more, escaped = _follow(
                        arena, arena[class_of + byte[i]], threads, 0, size, cells, slots, top, stamp, True
                    )
                if n < 0:
                    status = NO_ROOM
                    break
                work -= _COST_OF_THREAD * (n - size + more - top)
                top = more
                number = _set_number(arena, threads, size, n, cells, begins, members, returning, set_slots, n_sets)
                if number < 0 or (number + 1) * width > len(following):
                    status = NO_ROOM
                    break
                if number == n_sets:
                    n_sets += 1
                    _begin_set(arena, cells, members, begins[number], begins[n_sets], following, number * width)
                    work -= n - size
                step = 2 * number + (1 if escaped else 0)
                following[where] = step
        here = step >> 1
        if i == pending:
            where = here * width + n_classes
            if following[where] < 0:
                size = begins[here + 1] - begins[here]
                n = np.int64(OVERFLOW)
                if size + len(entering) <= len(threads):
                    _copy_threads(members, begins[here], size, threads)
                    for k in range(len(entering)):
                        for column in range(3):
                            threads[size + k, column] = entering[k, column]
                    n, top = _unite(arena, threads, 0, size + len(entering), cells, slots, top, True)
                if n < 0:
                    status = NO_ROOM
                    break
                number = _set_number(arena, threads, 0, n, cells, begins, members, returning, set_slots, n_sets)
                if number < 0 or (number + 1) * width > len(following):
                    status = NO_ROOM
                    break
                if number == n_sets:
                    n_sets += 1
                    _begin_set(arena, cells, members, begins[number], begins[n_sets], following, number * width)
                following[where] = number
                work -= _COST_OF_THREAD * n
            here = following[where]
            entered += 1
            pending = residual[entered] if entered < len(residual) else len(byte)
        after = skip[i]
        if i >= start:
            if step:
                for t in range(first_token[i], first_token[i + 1]):
                    ids[n_ids] = token_ids[t]
                    sets[n_ids] = step
                    n_ids += 1
            if i + 1 < after and (step & 1 or returning[here]):
                below[n_below] = i
                n_below += 1
        if i + 1 < after and here:
            at[d + 1] = here
            i += 1
        elif pending < after:
            # Nothing is alive between here and the next place to enter.
            i = pending
            for e in range(d, depth[i]):
                at[e + 1] = 0
        else:
            i = after
    progress[P_NODE] = i
    progress[P_END] = end
    progress[P_ENTERED] = entered
    progress[P_IDS] = n_ids
    progress[P_BELOW] = n_below
    progress[P_CELLS] = top
    progress[P_SETS] = n_sets
    progress[P_STAMP] = stamp
    return status


@inlined
def _mark_edges(arena, state, following, where):
    """Make the classes unknown for which a state, or the one that it is like, has edges; all where one is open."""
    classes = arena[A_CLASS_OF]
    while state >= 0:
        if arena[arena[A_LIKE] + state] == OPEN:
            for c in range(arena[A_CLASSES]):
                following[where + c] = -1
            return
        for edge in range(arena[arena[A_EDGE_START] + state], arena[arena[A_EDGE_START] + state + 1]):
            at = arena[A_EDGES] + 2 * edge
            for c in range(arena[classes + (arena[at] & 255)], arena[classes + (arena[at] >> 8)] + 1):
                following[where + c] = -1
        state = np.int64(arena[arena[A_LIKE] + state]) - 1


@inlined
def _begin_set(arena, cells, members, begin, end, following, where):
    """Nothing is known of what follows a set, but that classes without an edge lead nowhere.

    A byte may be left to the frames below as well; where it may be left to lower ones, nothing is known of any class.
    """
    n_classes = arena[A_CLASSES]
    returns = arena[A_RETURNS]
    for c in range(n_classes):
        following[where + c] = 0
    following[where + n_classes] = -1
    for k in range(begin, end):
        _mark_edges(arena, members[k, 0], following, where)
        cell = members[k, 2] if arena[returns + members[k, 0]] else np.int64(_NIL)
        while cell >= 0:
            frame = cell
            if cells[cell, 0] == _LINK:
                frame = cells[cell, 1]
                cell = cells[cell, 2]
            else:
                cell = np.int64(_NIL)
            if frame < 0:
                continue
            if arena[returns + cells[frame, 0]] and cells[frame, 2] >= 0:
                for c in range(n_classes):
                    following[where + c] = -1
                return
            _mark_edges(arena, cells[frame, 0], following, where)


@inlined
def _copy_threads(members, begin, size, threads):
    """Lay some threads of a set out for `_follow`."""
    for k in range(size):
        for column in range(3):
            threads[k, column] = members[begin + k, column]


@inlined
def _set_number(arena, threads, begin, end, cells, begins, members, returning, slots, n_sets):
    """The number of the set ``threads[begin:end]``, which are in order: ``n_sets`` for a new one; `OVERFLOW`.

    Slots may hold anything: what is found is compared.
    """
    if begin == end:
        return np.int64(0)
    size = end - begin
    key = np.int64(size)
    for k in range(begin, end):
        key = (key * 31) ^ (threads[k, 0] * 0x9E3779B1) ^ (threads[k, 1] * 0x85EBCA6B) ^ (threads[k, 2] * 0x27D4EB2F)
    slot = ((key >> 15) ^ key) & (len(slots) - 1)
    for _ in range(_PROBES):
        there = np.int64(slots[slot])
        if there <= 0 or there >= n_sets:
            break
        first = begins[there]
        same = begins[there + 1] - first == size
        k = 0
        while same and k < size:
            for column in range(3):
                same &= members[first + k, column] == threads[begin + k, column]
            k += 1
        if same:
            return there
        slot = (slot + 1) & (len(slots) - 1)
    first = begins[n_sets]
    if n_sets + 1 >= len(begins) or first + size > len(members):
        return np.int64(OVERFLOW)
    for k in range(size):
        for column in range(3):
            members[first + k, column] = threads[begin + k, column]
    begins[n_sets + 1] = first + size
    returning[n_sets] = _may_return(arena, threads, begin, end, cells)
    slots[slot] = n_sets
    return np.int64(n_sets)


@inlined
def _agree(agreeing, bytes_, state, other):
    """Whether two states are known to do the same for so many bytes; see `structgen.runtime.pushdown.flow`."""
    return bytes_ < agreeing.shape[0] and agreeing[bytes_, state] == agreeing[bytes_, other]


@inlined
def _are_same(arena, agreeing, threads, begin, others, other, n, bytes_):
    """Whether so many threads do the same for so many bytes: 2 for equal ones, 1 where states differ that agree for
    so long, or counts that stay in one zone, or 0."""
    found = 2
    for k in range(n):
        state = threads[begin + k, 0]
        count = threads[begin + k, 1]
        counted = others[other + k, 1]
        if threads[begin + k, 2] != others[other + k, 2]:
            return 0
        its = others[other + k, 0]
        if state != its:
            if not _agree(agreeing, bytes_, state, its):
                return 0
            found = 1
        if count != counted:
            zone = _stays_in(arena, state, count, bytes_)
            if zone < 0 or zone != _stays_in(arena, its, counted, bytes_):
                return 0
            found = 1
    return found


@kernel
def heights_of(depth, max_depth):
    """By node of the trie the bytes of the longest way down, ``uint16[nodes]``."""
    height = np.empty(len(depth), np.uint16)
    deepest = np.zeros(max_depth + 2, np.uint16)  # by depth, of the nodes whose parent is still to come
    for i in range(len(depth) - 1, -1, -1):
        d = depth[i]
        below = max(d, deepest[d + 1])
        deepest[d + 1] = 0
        deepest[d] = max(deepest[d], below)
        height[i] = below - d
    return height


@kernel
def kinds_below(byte, depth, max_depth, kinds):
    """By node of the trie which kinds of bytes are on the edge into it and on those below, ``uint64[nodes]``.

    ``kinds`` is ``uint64[256]``: one bit each.
    """
    below = np.empty(len(byte), np.uint64)
    met = np.zeros(max_depth + 2, np.uint64)  # by depth, on edges into nodes whose parent is still to come
    for i in range(len(byte) - 1, -1, -1):
        d = depth[i]
        below[i] = kinds[byte[i]] | met[d + 1]
        met[d + 1] = 0
        met[d] |= below[i]
    return below


#: Pairs of states that are looked at to tell where two states agree, and pairs of which it is remembered.
_MOST_PAIRS, _REMEMBERED = 64, 8

#: All kinds of bytes.
_EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _parting_kinds(arena, state, other, kinds):
    """The kinds of bytes that one of two states takes by a plain move and the other one does not, ``kinds`` those of
    each class; all where either returns."""
    if arena[arena[A_RETURNS] + state] or arena[arena[A_RETURNS] + other]:
        return _EVERY
    row = _row(arena, state)
    row_of_other = _row(arena, other)
    found = np.uint64(0)
    for c in range(arena[A_CLASSES]):
        here = arena[row + c]
        there = arena[row_of_other + c]
        if (here >= 0) != (there >= 0) or here >= arena[A_STATES] or there >= arena[A_STATES]:
            found |= kinds[c]
    return found


@inlined
def _telling_kinds(arena, state, other, kinds, pairs):
    """Kinds of bytes without any of which two states, whatever lies below them, allow the same texts.

    A fixed point: from the kinds that part the two themselves on, each that leads to a pair which others part.

    Parameters
    ----------
    kinds:
        ``uint64[classes]``: of the bytes of each class.
    pairs:
        Room: ``int64[_MOST_PAIRS, 2]``.
    """
    telling = _parting_kinds(arena, state, other, kinds)
    pairs[0, 0] = state
    pairs[0, 1] = other
    n = 0
    while n == 0 and telling != _EVERY:
        n = 1
        here = 0
        while here < n:
            row = _row(arena, pairs[here, 0])
            row_of_other = _row(arena, pairs[here, 1])
            for c in range(arena[A_CLASSES]):
                target = np.int64(arena[row + c])
                its = np.int64(arena[row_of_other + c])
                if kinds[c] & telling or target < 0:
                    continue
                k = 0
                while k < n and (pairs[k, 0] != target or pairs[k, 1] != its):
                    k += 1
                if k < n:
                    continue
                if n == len(pairs):
                    return _EVERY
                pairs[n, 0] = target
                pairs[n, 1] = its
                n += 1
                if _parting_kinds(arena, target, its, kinds) & ~telling:
                    telling |= kinds[c]
                    n = 0  # begin again
                    break
            here += 1
    return telling


#: Pairs of first moves that are remembered to lead to the same.
_PAIRS = 16

#: Trees of fewer nodes are looked at node by node; and it is not asked what tells states apart before so many nodes
#: were, for most differences are over by then.
_FEW_NODES, _MANY_NODES = 4, 256


@kernel
def walk_stack_difference(
    byte, depth, skip, first_token, token_ids, max_depth, upper, height, met, kinds, agreeing, arena, config, base,
    room, limit, ids, below
):  # fmt: skip
    """Where ``config`` and ``base`` differ over the whole trie, in tokens and in nodes left to what is below.

    Like `walk_stack` from the root, except that ``ids`` and ``below`` get what one allows and the other does not.
    A subtree is left out as soon as both have come to the same threads, or to some that differ in counts which no
    token below brings to a bound, or in states which no byte below tells apart, or which agree for as many bytes as
    there are below. ``(TOO_FAR, 0)`` where more than ``limit`` nodes, threads and cells tell them apart, or they need
    more than ``room``.

    Parameters
    ----------
    upper:
        As in `walk_stack`: of the nodes in it, those are looked at after which it is not known that both have come to
        the same.
    height:
        ``uint16[nodes]``: the bytes of the longest way down from a node.
    met, kinds:
        ``uint64[nodes]``: which kinds of bytes are into a node and below it; ``uint64[classes]``: those of a class.
    agreeing:
        ``int32[bytes, states]``: states with equal numbers in a row do the same for so many bytes; maybe no rows.
    config, base:
        ``int64[2 * n]``: state and count, then those of the stack cells above the unknown bottom, topmost first. The
        count of a state may be `UNBOUNDED`, less a zone.
    """
    threads = np.empty((room, 3), np.int64)
    others = np.empty((room, 3), np.int64)
    cells = np.empty((room, CELL), np.int64)  # of both
    slots = np.empty(2 * room, np.int32)
    first = np.zeros(max_depth + 2, np.int32)
    second = np.zeros(max_depth + 2, np.int32)
    tops = np.zeros(max_depth + 2, np.int64)
    top, others[0, 0], others[0, 1], others[0, 2] = _start_stack(arena, base, cells, slots, np.int64(0))
    if top < 0:
        return TOO_FAR, 0
    top, threads[0, 0], threads[0, 1], threads[0, 2] = _start_stack(arena, config, cells, slots, top)
    if top < 0:
        return TOO_FAR, 0
    tops[0] = top
    first[1] = 1
    second[1] = 1
    n_ids = 0
    n_below = 0
    if _may_return(arena, threads, 0, 1, cells) != _may_return(arena, others, 0, 1, cells):
        below[0] = 0
        n_below = 1
    visited = 0
    # Of the root, and of its child that has been looked at: classes of bytes after which both have come to the same,
    # and where one thread each leaves no byte to frames below, the two moves, of which there are fewer; the rows of
    # these threads; and in `upper` the next child, and the end of the children.
    same_after = np.zeros((2, 256), np.bool_)
    pairs = np.empty((2, _PAIRS, 2), np.int64)
    n_pairs = np.zeros(2, np.int64)
    rows = np.zeros((2, 2), np.int64)
    child = np.ones((2, 2), np.int64)
    child[0, 1] = upper[2, 1]
    level = 0
    opened = True
    room_for_pairs = np.empty((_MOST_PAIRS, 2), np.int64)
    known = np.empty((_REMEMBERED, 2), np.int64)  # pairs of states, and what tells them apart
    telling = np.empty(_REMEMBERED, np.uint64)
    n_known = 0
    i = end = np.int64(0)
    while True:
        if i >= end:
            if opened:
                opened = False
                rows[level] = 0
                if first[level + 1] == first[level] + 1 and second[level + 1] == second[level] + 1:
                    state = threads[first[level], 0]
                    its = others[second[level], 0]
                    if not arena[arena[A_RETURNS] + state] and not arena[arena[A_RETURNS] + its]:
                        rows[level, 0] = _row(arena, state)
                        rows[level, 1] = _row(arena, its)
            while level >= 0:
                while child[level, 0] < child[level, 1]:
                    c = arena[arena[A_CLASS_OF] + upper[0, child[level, 0]]]
                    for k in range(n_pairs[level]):
                        if (
                            pairs[level, k, 0] == arena[rows[level, 0] + c]
                            and pairs[level, k, 1] == arena[rows[level, 1] + c]
                        ):
                            same_after[level, c] = True
                    if not same_after[level, c]:
                        break
                    child[level, 0] += 1
                if child[level, 0] < child[level, 1]:
                    break
                level -= 1
            if level < 0:
                break
            i = np.int64(upper[1, child[level, 0]])
            end = np.int64(skip[i]) if level else i + 1
            child[level, 0] += 1
        d = depth[i]
        begin = first[d]
        other = second[d]
        c = arena[arena[A_CLASS_OF] + byte[i]]
        if (
            visited > _MANY_NODES and skip[i] > i + _FEW_NODES
            and begin == first[d - 1] + 1 and other == second[d - 1] + 1
        ):  # fmt: skip
            state = threads[begin - 1, 0]
            its = others[other - 1, 0]
            k = 0
            while k < n_known and (known[k, 0] != state or known[k, 1] != its):
                k += 1
            if k == n_known and n_known < _REMEMBERED:
                known[k, 0] = state
                known[k, 1] = its
                telling[k] = _telling_kinds(arena, state, its, kinds, room_for_pairs)
                n_known += 1
            if k < n_known and not met[i] & telling[k]:
                i = skip[i]
                continue
        visited += 1
        top = tops[d - 1]
        if begin >= room or other >= room:
            return TOO_FAR, 0
        escaped = False
        leapt = False
        now = np.int64(DEAD)
        then = np.int64(DEAD)
        count = np.int64(0)
        counted = np.int64(0)
        if begin > first[d - 1]:
            now, count = _single_move(arena, threads[begin - 1, 0], threads[begin - 1, 1], c)
        if other > second[d - 1]:
            then, counted = _single_move(arena, others[other - 1, 0], others[other - 1, 1], c)
        if now != NOT_SINGLE and then != NOT_SINGLE and begin <= first[d - 1] + 1 and other <= second[d - 1] + 1:
            n = begin
            m = other
            if now >= 0:
                threads[n, 0] = now
                threads[n, 1] = count
                threads[n, 2] = threads[begin - 1, 2]
                n += 1
            if then >= 0:
                others[m, 0] = then
                others[m, 1] = counted
                others[m, 2] = others[other - 1, 2]
                m += 1
            limit -= 1
        else:
            n, top, escaped = _follow(
                arena, c, threads, first[d - 1], begin, cells, slots, top, 2 * visited - 1, True
            )
            m, top, leapt = _follow(
                arena, c, others, second[d - 1], other, cells, slots, top, 2 * visited, True
            )
            limit -= n - first[d - 1] + m - second[d - 1] + top - tops[d - 1] - 3
        if n < 0 or m < 0 or limit < 0:
            return TOO_FAR, 0
        if escaped == leapt and n - begin == m - other:
            same = _are_same(arena, agreeing, threads, begin, others, other, n - begin, np.int64(height[i]))
            if same:
                if d <= 2 and same == 2:
                    same_after[d - 1, c] = True
                    if rows[d - 1, 0] and n_pairs[d - 1] < _PAIRS:
                        pairs[d - 1, n_pairs[d - 1], 0] = arena[rows[d - 1, 0] + c]
                        pairs[d - 1, n_pairs[d - 1], 1] = arena[rows[d - 1, 1] + c]
                        n_pairs[d - 1] += 1
                i = skip[i]
                continue
        if (n > begin or escaped) != (m > other or leapt):
            for t in range(first_token[i], first_token[i + 1]):
                ids[n_ids] = token_ids[t]
                n_ids += 1
        deeper = i + 1 < skip[i]
        if deeper:
            here = escaped or _may_return(arena, threads, begin, n, cells)
            there = leapt or _may_return(arena, others, other, m, cells)
            if here != there:
                below[n_below] = i
                n_below += 1
        if not deeper or (n == begin and m == other):
            i = skip[i]
            continue
        first[d + 1] = n
        second[d + 1] = m
        tops[d] = top
        i += 1
        if d == 1:
            level = 1
            opened = True
            same_after[1] = False
            n_pairs[1] = 0
            child[1, 0] = upper[2, child[0, 0] - 1]
            child[1, 1] = upper[2, child[0, 0]]
    return n_ids, n_below


#: Pairs of states that two states may lead to by one token.
_MOST_ALIKE = 32


@inlined
def _pair(arena, agreeing, bytes_, state, other, pairs, begin, n):
    """Note a pair of states that are to do the same for so many bytes; the end of the pairs, or `TOO_FAR`."""
    if state == other or bytes_ == 0 or _agree(agreeing, bytes_, state, other):
        return n
    live = arena[A_LIVE]
    returns = arena[A_RETURNS]
    if arena[returns + state] != arena[returns + other] or arena[live + state] != arena[live + other]:
        return np.int64(TOO_FAR)
    for k in range(begin, n):
        if pairs[k, 0] == state and pairs[k, 1] == other:
            return n
    if n - begin >= _MOST_ALIKE:
        return np.int64(TOO_FAR)
    pairs[n, 0] = state
    pairs[n, 1] = other
    return n + 1


@inlined
def _pair_records(arena, agreeing, bytes_, record, other, pairs, begin, n):
    """`_pair` for the states that two moves lead to which count or mark, and push nothing; both do the same."""
    if (record < 0) != (other < 0):
        return np.int64(TOO_FAR)
    if record == other:
        return n
    r = arena[A_RECORDS] + 5 * record
    s = arena[A_RECORDS] + 5 * other
    if arena[r] != arena[s] or arena[r + 1] != arena[s + 1]:
        return np.int64(TOO_FAR)
    if arena[r] == MARK and arena[r + 3] != arena[s + 3]:
        return np.int64(TOO_FAR)
    for column in range(2, 3 if arena[r] == SET or arena[r] == MARK else 5):
        state = np.int64(arena[r + column])
        its = np.int64(arena[s + column])
        if (state < 0) != (its < 0):
            return np.int64(TOO_FAR)
        if state >= 0:
            n = _pair(arena, agreeing, bytes_, state, its, pairs, begin, n)
            if n < 0:
                return n
    return n


@inlined
def _pair_targets(arena, agreeing, bytes_, entry, its, pairs, begin, n):
    """`_pair` for the states that two entries of rows lead to, if both otherwise do the same."""
    if entry == its:
        return n
    if entry < 0 or its < 0:
        return np.int64(TOO_FAR)
    n_states = arena[A_STATES]
    if entry < n_states and its < n_states:
        return _pair(arena, agreeing, bytes_, entry, its, pairs, begin, n)
    if entry < n_states or its < n_states:
        return np.int64(TOO_FAR)
    group = arena[A_GROUPS] + entry - n_states
    its_group = arena[A_GROUPS] + its - n_states
    if arena[group + 1] - arena[group] != 1 or arena[its_group + 1] - arena[its_group] != 1:
        return np.int64(TOO_FAR)
    move = arena[A_MOVES] + 2 * arena[group]
    its_move = arena[A_MOVES] + 2 * arena[its_group]
    first = arena[move + 1]
    its_first = arena[its_move + 1]
    size = arena[move + 3] - first
    if arena[its_move + 3] - its_first != size:
        return np.int64(TOO_FAR)
    if size == 0:
        return _pair_records(arena, agreeing, bytes_, arena[move], arena[its_move], pairs, begin, n)
    if arena[move] != arena[its_move]:
        return np.int64(TOO_FAR)
    for k in range(size - 1):
        if arena[arena[A_SEQUENCE] + first + k] != arena[arena[A_SEQUENCE] + its_first + k]:
            return np.int64(TOO_FAR)
    state = np.int64(arena[arena[A_SEQUENCE] + first + size - 1])
    other = np.int64(arena[arena[A_SEQUENCE] + its_first + size - 1])
    return _pair(arena, agreeing, bytes_, state, other, pairs, begin, n)


@kernel
def agree_on_tokens(byte, depth, skip, max_depth, height, agreeing, arena, state, other, limit):
    """Whether two states allow the same tokens, and leave the same nodes to what is below, with any equal counts.

    Pairs of states that the two come to by the same bytes are followed through the trie, as far as they are not known
    to do the same for as many bytes as there are below: by any count, so to all zones. False, too, where that takes
    more than ``limit`` pairs, or more than one move for a byte.

    Parameters
    ----------
    height, agreeing:
        As in `walk_stack_difference`.
    """
    pairs = np.empty(((max_depth + 3) * _MOST_ALIKE, 2), np.int64)
    first = np.zeros(max_depth + 3, np.int64)
    n = _pair(arena, agreeing, np.int64(height[0]), state, other, pairs, np.int64(0), np.int64(0))
    if n < 0:
        return False
    first[1] = n
    i = np.int64(1) if n else np.int64(len(byte))
    while i < len(byte):
        d = depth[i]
        begin = first[d]
        n = begin
        c = arena[arena[A_CLASS_OF] + byte[i]]
        limit -= begin - first[d - 1]
        if limit < 0:
            return False
        for k in range(first[d - 1], begin):
            entry = np.int64(arena[_row(arena, pairs[k, 0]) + c])
            its = np.int64(arena[_row(arena, pairs[k, 1]) + c])
            n = _pair_targets(arena, agreeing, np.int64(height[i]), entry, its, pairs, begin, n)
            if n < 0:
                return False
        if n == begin:
            i = skip[i]
        else:
            first[d + 1] = n
            i += 1
    return True


@kernel
def walk_stack_counted(byte, depth, skip, first_token, token_ids, max_depth, arena, state, minimum, maximum, start,
                       work, ids, tokens, token_first, token_last, below, nodes, node_first, node_last):  # fmt: skip
    """The tokens that a state which counts, the stack below unknown, allows for each count from 1 to ``maximum``.

    ``minimum`` and ``maximum`` are the bounds of the loop that the state counts in, whatever the arena says.

    For automata that move, count and pop, but never call, such as the inside of a string; pieces are those of
    `walk_counted`. What holds for every count goes to ``ids`` and ``below``, as in `walk_stack`. The rest goes to
    ``tokens`` or ``nodes`` with its first and last count, disjoint intervals each.

    Looks at the nodes from ``start`` on, and at ``work`` pieces, about.

    Returns the numbers of ``ids``, ``tokens``, ``below`` and ``nodes``, and the node to go on at; `OVERFLOW` first
    where an array is too short or the automaton calls.
    """
    n_states = arena[A_STATES]
    popped = n_states
    begin = np.zeros(max_depth + 2, np.int64)
    pieces = np.empty((256, 4), np.int64)
    n_ids = 0
    n_tokens = 0
    n_below = 0
    n_nodes = 0
    low = 1
    high = maximum
    counter = arena[arena[A_LIVE] + state]
    pieces[0, 0] = state
    pieces[0, 1] = low
    pieces[0, 2] = high
    pieces[0, 3] = 0
    begin[1] = 1
    i = 1
    while i < len(byte) and (work > 0 or i < start):
        if i < start and skip[i] <= start:
            i = skip[i]
            continue
        d = depth[i]
        c = arena[arena[A_CLASS_OF] + byte[i]]
        base = begin[d]
        work -= base - begin[d - 1] if i >= start else 0
        n = base
        for p in range(begin[d - 1], base):
            if pieces[p, 0] == popped:
                continue
            entry = arena[_row(arena, pieces[p, 0]) + c]
            if entry == DEAD:
                continue
            if n + 3 > len(pieces):
                pieces = _grown_rows(pieces)
            lo = pieces[p, 1]
            hi = pieces[p, 2]
            add = pieces[p, 3]
            if entry < n_states:
                n = _join(pieces, base, n, entry, lo, hi, add if arena[arena[A_LIVE] + entry] >= 0 else 0)
                continue
            m = arena[arena[A_GROUPS] + entry - n_states]
            if arena[arena[A_GROUPS] + entry - n_states + 1] != m + 1:
                return OVERFLOW, 0, 0, 0, i
            move = arena[A_MOVES] + 2 * m
            if arena[move] < 0:
                if arena[move + 1] < arena[move + 3]:
                    return OVERFLOW, 0, 0, 0, i
                n = _join(pieces, base, n, popped, lo, hi, 0)
                continue
            if arena[move + 1] < arena[move + 3]:
                return OVERFLOW, 0, 0, 0, i
            r = arena[A_RECORDS] + 5 * arena[move]
            if arena[r] == MARK:
                return OVERFLOW, 0, 0, 0, i
            if arena[r] == SET:
                n = _join(pieces, base, n, arena[r + 2], lo, hi, _FIXED + 1)
                continue
            least = np.int64(minimum)
            most = np.int64(maximum)
            if arena[r + 1] != counter:
                least = np.int64(arena[arena[A_LOOPS] + 2 * arena[r + 1]])
                most = np.int64(arena[arena[A_LOOPS] + 2 * arena[r + 1] + 1])
            n = _count(pieces, base, n, lo, hi, add, arena, r + 2, least, most, arena, arena[A_LIVE])
        if n == base:
            i = skip[i]
            continue
        begin[d + 1] = n
        if i < start:
            i += 1
            continue
        p = base
        while p < n and first_token[i] < first_token[i + 1]:
            lo = pieces[p, 1]
            hi = pieces[p, 2]
            p += 1
            while p < n and pieces[p, 1] == hi + 1:
                hi = pieces[p, 2]
                p += 1
            for k in range(first_token[i], first_token[i + 1]):
                if lo == low and hi == high:
                    ids[n_ids] = token_ids[k]
                    n_ids += 1
                    continue
                if n_tokens == len(tokens):
                    return OVERFLOW, 0, 0, 0, i
                tokens[n_tokens] = token_ids[k]
                token_first[n_tokens] = lo
                token_last[n_tokens] = hi
                n_tokens += 1
        if i + 1 < skip[i]:
            for p in range(base, n):
                if pieces[p, 0] != popped:
                    continue
                if pieces[p, 1] == low and pieces[p, 2] == high:
                    below[n_below] = i
                    n_below += 1
                    continue
                if n_nodes == len(nodes):
                    return OVERFLOW, 0, 0, 0, i
                nodes[n_nodes] = i
                node_first[n_nodes] = pieces[p, 1]
                node_last[n_nodes] = pieces[p, 2]
                n_nodes += 1
        i += 1
    return n_ids, n_tokens, n_below, n_nodes, i


@inlined
def _add_count(live, counts, known, todo, n, state, count):
    """Note that a state can have a count, or any for -1, and that it is to be passed on; the new end of ``todo``."""
    if state < 0 or live[state] < 0 or known[state] < 0:
        return n
    for k in range(known[state]):
        if counts[state, k] == count:
            return n
    if count < 0 or known[state] == counts.shape[1]:
        known[state] = -1
        count = np.int64(-1)
    else:
        counts[state, known[state]] = count
        known[state] += 1
    todo[n, 0] = state
    todo[n, 1] = count
    return n + 1


@bare_kernel
def spread_counts(edge_start, edge_target, like, group_start, move_record, move_start, sequence, records, loops, live,
                  counts, known, todo, n):  # fmt: skip
    """The counts that states can have, by a flow along the moves that keep, set or add to a count.

    Parameters
    ----------
    counts, known:
        ``int64[states, *]``, ``int32[states]``, out: the counts of a state, and how many; -1 for more than there is
        room for, to begin with for states with sets.
    todo, n:
        ``int64[*, 2]``: room for all counts of all states and two more each; the first ``n`` are the states that can
        be entered without a count.

    The other arrays are the columns of `structgen.runtime.pushdown.tables.PushdownTables`, ``int32`` each.
    """
    n_states = len(live)
    for group in range(len(group_start) - 1):
        for m in range(group_start[group], group_start[group + 1]):
            r = move_record[m] - 1
            if r >= 0 and records[r, 0] == SET:
                n = _add_count(live, counts, known, todo, n, records[r, 2], np.int64(1))
    while n:
        n -= 1
        state = todo[n, 0]
        count = todo[n, 1]
        here = state
        while here >= 0:
            for e in range(edge_start[here], edge_start[here + 1]):
                target = edge_target[e] - 1
                if target < n_states:
                    if count:
                        n = _add_count(live, counts, known, todo, n, target, count)
                    continue
                for m in range(group_start[target - n_states], group_start[target - n_states + 1]):
                    r = move_record[m] - 1
                    if r < 0:
                        if count and move_start[m] < move_start[m + 1]:
                            n = _add_count(live, counts, known, todo, n, sequence[move_start[m]], count)
                    elif count < 0:
                        n = _add_count(live, counts, known, todo, n, records[r, 2], count)
                        if records[r, 0] == INC:
                            n = _add_count(live, counts, known, todo, n, records[r, 3], count)
                            n = _add_count(live, counts, known, todo, n, records[r, 4], count)
                    elif records[r, 0] == INC:
                        zone = _zone(count + 1, loops[records[r, 1], 0], loops[records[r, 1], 1])
                        n = _add_count(live, counts, known, todo, n, records[r, 2 + zone], count + 1)
            here = like[here] - 1


#: The words of `name_subautomaton`'s text.
_ALIVE, _NO_LOOP, _COMMA = (np.frombuffer(text, np.uint8) for text in (b"[True", b"[False", b", "))
_POP, _OPENED, _CLOSED, _END = (np.frombuffer(text, np.uint8) for text in (b"'pop'", b"(", b")", b"]"))


@inlined
def _write(text, n, words):
    """Append words to a text of length ``n``; returns the length, which exceeds the room where they do not fit."""
    for i in range(len(words)):
        if n < len(text):
            text[n] = words[i]
        n += 1
    return n


@inlined
def _write_number(text, n, number):
    """`_write` of a number in decimal digits."""
    rest = number
    if number < 0:
        if n < len(text):
            text[n] = 45
        n += 1
        rest = -number
    digits = 1
    power = np.int64(10)
    while rest >= power:
        digits += 1
        power *= 10
    for k in range(digits - 1, -1, -1):
        if n + k < len(text):
            text[n + k] = 48 + rest % 10
        rest //= 10
    return n + digits


@inlined
def _local(states, known, n, state):
    """The number of a state among ``states[:n]``, found by its hash; ``n`` for a new one, which is entered if there
    is room."""
    slot = (np.int64(state) * 0x9E3779B1 >> 7) & (len(known) - 1)
    while known[slot] >= 0:
        if states[known[slot]] == state:
            return known[slot]
        slot = (slot + 1) & (len(known) - 1)
    if n < len(states):
        states[n] = state
        known[slot] = n
    return n


@bare_kernel
def name_subautomaton(arena, zone_kept, states, known, table, text):
    """What tells the automaton that begins at a state from others, whatever it lies in, as a text.

    Parameters
    ----------
    zone_kept:
        A zone that all counts are taken to stay in, so that bounds do not matter; or -1.
    states:
        ``int32[largest]``: the state to begin with, out: all that it comes to, numbered in the order of their edges.
    known:
        ``int32[2 ** k]``, -1 each, with more room than ``states``.
    table:
        ``int32[largest, classes]``, out: by number what each does with a class of bytes, the length of ``states``
        for a pop; 0 where it counts.
    text:
        ``uint8[*]``, out: state after state the first bytes of its edges, the last ones, whether it counts, and the
        numbers of where they lead, as Python writes a list.

    Returns
    -------
    (how many states, how long a text, the last loop or -1): no states where one calls, returns, branches, has a set,
    is open or like another, where the automaton counts in several loops, begins to count and stays in a zone, or
    finds no room.
    """
    far = zone_kept >= 0
    n_states = arena[A_STATES]
    n_classes = arena[A_CLASSES]
    classes = arena[A_CLASS_OF]
    slot = (np.int64(states[0]) * 0x9E3779B1 >> 7) & (len(known) - 1)
    known[slot] = 0
    n = np.int64(1)
    length = np.int64(0)
    loop = np.int64(-1)
    here = 0
    while here < n:
        state = states[here]
        begin = arena[arena[A_EDGE_START] + state]
        end = arena[arena[A_EDGE_START] + state + 1]
        if arena[arena[A_LIKE] + state] == OPEN:
            _come_to_open(arena, state)
        if arena[arena[A_RETURNS] + state] or arena[arena[A_LIKE] + state] or length + 2 * (end - begin) > len(text):
            return 0, 0, -1
        for edge in range(begin, end):
            text[length + edge - begin] = arena[arena[A_EDGES] + 2 * edge] & 255
            text[length + end + edge - 2 * begin] = arena[arena[A_EDGES] + 2 * edge] >> 8
        length += 2 * (end - begin)
        length = _write(text, length, _ALIVE if arena[arena[A_LIVE] + state] >= 0 and not far else _NO_LOOP)
        for c in range(n_classes):
            table[here, c] = DEAD
        for edge in range(begin, end):
            length = _write(text, length, _COMMA)
            at = arena[A_EDGES] + 2 * edge
            target = np.int64(arena[at + 1])
            into = np.int64(DEAD)
            if target >= n_states:
                single = arena[arena[A_SINGLE] + target - n_states]
                if single == NOT_SINGLE:
                    return 0, 0, -1
                if single == SINGLE_POP:
                    length = _write(text, length, _POP)
                    into = np.int64(len(states))
                    target = np.int64(-2)
                else:
                    r = arena[A_RECORDS] + 5 * single
                    if far and arena[r] == SET:
                        return 0, 0, -1
                    if far:
                        target = np.int64(arena[r + 2 + zone_kept])
                    else:
                        if loop >= 0 and loop != arena[r + 1]:
                            return 0, 0, -1
                        loop = np.int64(arena[r + 1])
                        length = _write(text, length, _OPENED)
                        length = _write_number(text, length, np.int64(arena[r]))
                        for zone in range(1 if arena[r] == SET else 3):
                            length = _write(text, length, _COMMA)
                            number = np.int64(arena[r + 2 + zone])
                            if number >= 0:
                                number = np.int64(_local(states, known, n, number))
                                if number == len(states):
                                    return 0, 0, -1
                                n = max(n, number + 1)
                            length = _write_number(text, length, number)
                        length = _write(text, length, _CLOSED)
                        into = np.int64(0)
                        target = np.int64(-2)
            if target != -2:
                if target >= 0:
                    target = np.int64(_local(states, known, n, target))
                    if target == len(states):
                        return 0, 0, -1
                    n = max(n, target + 1)
                length = _write_number(text, length, target)
                into = target
            for c in range(arena[classes + (arena[at] & 255)], arena[classes + (arena[at] >> 8)] + 1):
                table[here, c] = into
        length = _write(text, length, _END)
        if length > len(text):
            return 0, 0, -1
        here += 1
    return n, length, loop
