"""Subset construction over ordered threads (Pike's); see `structgen.compiler.grammar.lexer.ordered`."""

from __future__ import annotations

from ..jit import inlined, kernel
from ..subset_construction import _append_row, _found_row
from ..values import NO_ROOM, OK, TOO_MUCH_WORK

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
    _append_row(slots, first, items, row, size, number, slot)
    at[_ITEMS] += size
    at[_STATES] += 1
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


@kernel
def ordered_subsets(
    move_first, move_to, move_look, edge_first, edge_low, edge_high, edge_to, turn, after,
    ahead, column, negate, paid, begun, kept, followed, accepting, begins, start, letters, most,
    at, table, items, first, slots, end_first, watching, flags, seeds, before, stack, row, seen, stamp, last,
):  # fmt: skip
    """The subset construction over lists of threads, in order of preference, of one regex, for some time.

    A *row* is a state: whether the last byte beats; the states of the look-behind automata, -1 for none; and of each
    thread four times the state of the program and its role, and what is owed.

    Parameters
    ----------
    move_first, move_to, move_look, edge_first, edge_low, edge_high, edge_to, turn, after:
        By state: the first of its empty moves, the preferred ones first; of these the target and a look-around or
        -1; the first of its edges; of these lowest and highest byte and target; whether the turn of a loop begins
        there; where a turn that ends there leads that has read nothing, or -1. Right after the start is the match.
    ahead, column, negate:
        By look-around: its look-ahead or -1; else the place of its automaton in a row; whether it must fail.
    paid, begun, kept:
        By what is owed: what is after each byte (``int32[*, 256]``), what is with a look-ahead more, and whether it
        is kept at the end of the text. `UNPAID` where it can't be paid, `UNASKED` where that is to be worked out.
    followed, accepting, begins:
        Of look-behind automata: next states by byte, whether each accepts, and those to begin in.
    letters:
        ``uint8[classes]``: a byte of each class.
    most:
        Steps before TOO_MUCH_WORK.
    at, items, first, slots:
        What was found so far: counts, the integers of rows, the first of each state, and slots (a power of two). The
        construction goes on from there, also after ASKS (see ``at``) and NO_ROOM.
    table, end_first, watching, flags:
        By state and class the next state or -1; by state the first of its matches, and the states that watch them;
        whether a match is certain, whether one that is watched would lapse, whether all would be the match.
    seeds, before, stack, row, seen, stamp, last:
        Scratch, and what is kept of it from call to call.

    Returns
    -------
    A status.
    """
    program = move_first, move_to, move_look, edge_first, edge_low, edge_high, edge_to, turn, after
    looks, rows, ends = (ahead, column, negate), (items, first, slots), (end_first, watching)
    memory = seeds, before, stack, row, seen, stamp, last
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
