"""Walks of the trie of tokens through a grammar's lexer."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..rows import popcount, write_gap
from ..signatures import Out, int32, int64, uint8, uint16, uint32, uint64
from ..values import CONFLICT, NO_ROOM, OK, TOO_MUCH_WORK

#: Where sets of watched states lead: to a lexeme that must not be completed, or where nobody has looked.
BEATEN = -2
NOT_FOLLOWED = -3

#: Numbers in `progress` of `walk_lexer`: the walk that it is in, the residual node that it is below, and the node
#: that it came to, or -1 where it has not begun below that; numbers of runs and nodes found; what is watched where it
#: does not know how to go on, and the lexer state there, or -1 where it does not know what comes of the watched set.
L_WALK, L_RESIDUAL, L_NODE, L_RUNS, L_BELOW, L_SET, L_STATE, LEXER_PROGRESS = range(8)

#: Whether a lexeme can become anything while another one is watched.
LIVE, STUCK = 1, 2


@kernel
def kinds_below(
    byte: uint8[::1], depth: uint16[::1], kinds: uint64[::1], met: Out[uint64[::1]], below: Out[uint64[::1]]
) -> None:
    """By node of the trie which kinds of bytes are on the edge into it and on those below, ``uint64[nodes]``, out.

    ``kinds`` is ``uint64[256]``: one bit each. ``met`` is scratch, zeros, ``uint64[max_depth + 2]``: by depth, on
    edges into nodes whose parent is still to come.
    """
    for i in range(len(byte) - 1, -1, -1):
        d = depth[i]
        below[i] = kinds[byte[i]] | met[d + 1]
        met[d + 1] = 0
        met[d] |= below[i]


@kernel
def looping_kinds(table: int32[:, ::1], goes_on: uint8[:, ::1], kinds: uint64[::1], found: Out[uint64[::1]]) -> None:
    """By lexer state: the kinds of bytes that all lead back to it, none of which begins another lexeme there.

    ``kinds`` is ``uint64[classes]``, those of the bytes of each class (see `kinds_below`); ``found``, out,
    ``uint64[lexer states]``.
    """
    for s in range(len(table)):
        others = np.uint64(0)
        for c in range(len(kinds)):
            if table[s, c] != s or goes_on[s, c]:
                others |= kinds[c]
        found[s] = ~others


@kernel
def walk_lexer(
    byte: uint8[::1], depth: uint16[::1], skip: int32[::1], first_token: int32[::1], kinds: uint64[::1],
    class_of: uint8[::1], table: int32[:, ::1], goes_on: uint8[:, ::1], beats: uint8[::1], loops: uint64[::1],
    sets: int32[:, ::1], row_of: int32[::1], lives: uint8[:, ::1], residuals: int32[::1], starts: int32[:, ::1],
    most: int64, progress: Out[int64[::1]], path: Out[int32[:, ::1]], runs: Out[int32[:, ::1]],
    below: Out[int32[:, ::1]], found: Out[int64[:, ::1]],
) -> int64:  # fmt: skip
    """The tokens that lexemes in progress allow, one after the other, and where in the trie each can be complete.

    Where all bytes of a subtree of the trie lead back to the state, it is not looked at: its tokens are one run.

    Parameters
    ----------
    kinds:
        ``uint64[nodes]``: the kinds of bytes on the way into each node and below.
    class_of, table, goes_on, beats:
        The lexer, as in `structgen.runtime.grammar.tables`.
    loops:
        `looping_kinds`.
    sets:
        ``int32[sets, classes]``: where a byte leads sets of several states that are watched, which are numbered
        behind the lexer's states: a state, a set, -1 for nothing, `BEATEN`, or `NOT_FOLLOWED`.
    row_of, lives:
        By what is watched, a row, -1 for none yet, and ``uint8[rows, lexer states]``: `LIVE`, `STUCK`, or 0 where
        nobody has looked.
    residuals, starts:
        ``int32[*]``, nodes, and ``int32[walks, 3]``: where the nodes of each walk end; the lexer state at these,
        from which the subtree below each is walked; and a state of an earlier lexeme that must not be completed any
        more, a set of such, or -1: the walk ends where it beats.
    most:
        So many nodes are looked at in this call.
    progress, path:
        ``int64[LEXER_PROGRESS]`` and ``int32[2, max_depth + 2]``: where an earlier call came to. In the beginning
        ``L_NODE`` is -1, all else 0.
    runs, below, found:
        ``int32[4, *]``, out: the first of a run of allowed tokens in the trie's order, and the one behind the last;
        the lexer state there, and what is watched there. ``int32[3, *]``, out: nodes at which the lexeme may be
        complete and a token may go on with another one, with the same. ``int64[2, walks + 1]``, in and out: how many
        runs and nodes there are with those of each walk, behind a zero.

    Returns
    -------
    `OK`; or, where it can go on, `TOO_MUCH_WORK`, `CONFLICT` where ``sets`` or ``lives`` is not known, and `NO_ROOM`.
    """
    n = progress[L_RUNS]
    m = progress[L_BELOW]
    i = progress[L_NODE]
    r = progress[L_RESIDUAL]
    k = progress[L_WALK]
    status = OK
    while k < len(starts):
        if r == starts[k, 0]:
            k += 1
            found[0, k] = n
            found[1, k] = m
            continue
        root = residuals[r]
        if i < 0:
            path[0, depth[root]] = starts[k, 1]
            path[1, depth[root]] = starts[k, 2]
            i = root + 1
        end = skip[root]
        while i < end:
            if most == 0:
                status = TOO_MUCH_WORK
                break
            most -= 1
            d = depth[i]
            s = path[0, d - 1]
            w = path[1, d - 1]
            stays = loops[s]
            if w >= 0:
                stays &= loops[w] if w < len(table) and not beats[w] else np.uint64(0)
            behind = i + 1
            if kinds[i] & ~stays == 0:
                behind = skip[i]
            else:
                c = class_of[byte[i]]
                s = table[s, c]
                if s < 0:
                    i = skip[i]
                    continue
                if w >= len(table):
                    before = w
                    w = sets[before - len(table), c]
                    if w == NOT_FOLLOWED:
                        progress[L_SET] = before
                        progress[L_STATE] = -1
                        status = CONFLICT
                        break
                    if w == BEATEN:
                        i = skip[i]
                        continue
                elif w >= 0:
                    w = table[w, c]
                    if w >= 0 and beats[w]:
                        i = skip[i]
                        continue
                if w >= 0:
                    life = lives[row_of[w], s] if row_of[w] >= 0 else np.uint8(0)
                    if life == 0:
                        progress[L_SET] = w
                        progress[L_STATE] = s
                        status = CONFLICT
                        break
                    if life == STUCK:
                        i = skip[i]
                        continue
            if n == runs.shape[1] or m == below.shape[1]:
                status = NO_ROOM
                break
            first = first_token[i]
            last = first_token[behind]
            if first < last:
                if n > found[0, k] and runs[1, n - 1] == first and runs[2, n - 1] == s and runs[3, n - 1] == w:
                    runs[1, n - 1] = last
                else:
                    runs[0, n] = first
                    runs[1, n] = last
                    runs[2, n] = s
                    runs[3, n] = w
                    n += 1
            if behind == i + 1 and i + 1 < skip[i]:
                # Only where some token goes on behind a lexeme that ends here.
                child = i + 1
                while child < skip[i] and not goes_on[s, class_of[byte[child]]]:
                    child = skip[child]
                if child < skip[i]:
                    below[0, m] = i
                    below[1, m] = s
                    below[2, m] = w
                    m += 1
                path[0, d] = s
                path[1, d] = w
            i = np.int64(behind)
        if status != OK:
            break
        r += 1
        i = np.int64(-1)
    progress[L_WALK] = k
    progress[L_RUNS] = n
    progress[L_BELOW] = m
    progress[L_NODE] = i
    progress[L_RESIDUAL] = r
    return status


@kernel
def rows_of_runs(
    token_ids: int32[::1], runs: int32[:, ::1], begin: int64, end: int64, numbers: int32[::1], low: int64,
    slot_of: Out[int32[::1]], rows: Out[uint32[:, ::1]], limit: int64, gaps: Out[uint16[::1]],
    found: Out[int32[:, ::1]],
) -> int64:  # fmt: skip
    """The rows of some runs of tokens, those with one number together, as many as there is room for.

    Parameters
    ----------
    runs, numbers:
        As `walk_lexer` has them; of those from ``begin`` to ``end`` the number of each.
    low:
        So many of the numbers, in the order in which they come, were done before.
    slot_of:
        By number -1, and again so in the end.
    rows:
        ``uint32[*, words]``, out.
    limit, gaps:
        Rows of so many tokens at most are written as `write_gaps` does, one behind the other.
    found:
        ``int32[3, *]``, out, for each row: the number, how many tokens it has, and where its gaps end.

    Returns
    -------
    How many numbers there are.
    """
    n = 0
    for r in range(begin, end):
        slot = slot_of[numbers[r]]
        if slot < 0:
            slot = n
            slot_of[numbers[r]] = n
            if low <= n < low + len(rows):
                found[0, n - low] = numbers[r]
                for w in range(rows.shape[1]):
                    rows[n - low, w] = 0
            n += 1
        slot -= low
        if 0 <= slot < len(rows):
            for t in range(runs[0, r], runs[1, r]):
                rows[slot, token_ids[t] >> 5] |= np.uint32(1) << np.uint32(token_ids[t] & 31)
    for r in range(begin, end):
        slot_of[numbers[r]] = -1
    position = 0
    for k in range(min(n - low, len(rows))):
        count = 0
        for w in range(rows.shape[1]):
            if rows[k, w]:
                count += popcount(rows[k, w])
        found[1, k] = count
        if count <= limit:
            position = _write_row(rows, k, gaps, position)
        found[2, k] = position
    return n


@kernel
def lists_of_runs(
    token_ids: int32[::1], runs: int32[:, ::1], starts: int64[::1], numbers: int32[::1], most: int64,
    ids: Out[int32[::1]], gaps: Out[uint16[::1]], found: Out[int32[:, ::1]],
) -> int64:  # fmt: skip
    """The rows of walks that allow few tokens, those of one walk with one number together.

    Parameters
    ----------
    runs, starts, numbers:
        As `walk_lexer` has them, of all walks; ``int64[walks + 1]``, where those of each begin; each run's number.
    most, ids:
        So many tokens are few; ``int32[most]``, scratch.
    gaps:
        The tokens as `write_gaps` does, one row behind the other, out.
    found:
        ``int32[*, 3]``, out, for each row: the walk, the number, and where its gaps end. The number is -1 for a walk
        that allows more. There is room for ``most`` rows of each walk.

    Returns
    -------
    How many rows there are.
    """
    n = 0
    position = 0
    for k in range(len(starts) - 1):
        total = 0
        for r in range(starts[k], starts[k + 1]):
            total += runs[1, r] - runs[0, r]
        if total > most:
            found[n, 0] = k
            found[n, 1] = -1
            found[n, 2] = position
            n += 1
            continue
        for r in range(starts[k], starts[k + 1]):
            number = numbers[r]
            before = starts[k]
            while numbers[before] != number:
                before += 1
            if before < r:
                continue  # with the first of that number
            count = 0
            for other in range(r, starts[k + 1]):
                if numbers[other] != number:
                    continue
                for t in range(runs[0, other], runs[1, other]):
                    count = _put(ids, 0, count, token_ids[t])
            last = 0
            for place in range(count):
                position = write_gap(ids[place] - last, gaps, position)
                last = ids[place]
            found[n, 0] = k
            found[n, 1] = number
            found[n, 2] = position
            n += 1
    return n


@kernel
def lists_of_ends(
    below: int32[:, ::1], starts: int64[::1], begins: int32[::1], ends: int32[:, ::1], most: int64,
    nodes: Out[int32[::1]], found: Out[int32[:, ::1]],
) -> int64:  # fmt: skip
    """Where lexemes end, in walks that come to few nodes at which they can: nodes by terminal and what is watched.

    Parameters
    ----------
    below, starts:
        As `walk_lexer` has them, of all walks, and ``int64[walks + 1]``, where those of each begin.
    begins, ends:
        ``int32[lexer states + 1]``, and ``int32[*, 3]``: the lexer state, the terminal that a lexeme can be there,
        and the state that is watched from then on or -1.
    most:
        So many nodes, each for as often as its state has ends, are few.
    nodes:
        ``int32[*]``, out, ascending in each list, one list behind the other.
    found:
        ``int32[*, 5]``, out, for each list: the walk, the terminal, what is watched from then on and from before,
        each -1 for nothing, and where its nodes end. The terminal is -1 for a walk that comes to more. There is room
        for ``most`` lists and nodes of each walk.

    Returns
    -------
    How many lists there are.
    """
    n = 0
    position = 0
    for k in range(len(starts) - 1):
        first = n
        total = 0
        for at in range(starts[k], starts[k + 1]):
            total += begins[below[1, at] + 1] - begins[below[1, at]]
        if total > most:
            found[n, 0] = k
            found[n, 1] = -1
            found[n, 4] = position
            n += 1
            continue
        for at in range(starts[k], starts[k + 1]):
            before = below[2, at]
            for end in range(begins[below[1, at]], begins[below[1, at] + 1]):
                terminal = ends[end, 1]
                watch = ends[end, 2]
                here = first
                while here < n and (found[here, 1] != terminal or found[here, 2] != watch or found[here, 3] != before):
                    here += 1
                if here == n:
                    found[n, 0] = k
                    found[n, 1] = terminal
                    found[n, 2] = watch
                    found[n, 3] = before
                    n += 1
        for here in range(first, n):
            begin = position
            for at in range(starts[k], starts[k + 1]):
                if found[here, 3] != below[2, at]:
                    continue
                for end in range(begins[below[1, at]], begins[below[1, at] + 1]):
                    if found[here, 1] == ends[end, 1] and found[here, 2] == ends[end, 2]:
                        position = _put(nodes, begin, position, below[0, at])
            found[here, 4] = position
    return n


@helper
def _put(values, begin, end, value):
    """Put a value into an ascending list, if it is not there; returns where the list ends."""
    at = end
    while at > begin and values[at - 1] > value:
        at -= 1
    if at > begin and values[at - 1] == value:
        return end
    for place in range(end, at, -1):
        values[place] = values[place - 1]
    values[at] = value
    return end + 1


@helper
def _write_row(rows, k, gaps, position):
    """The ids of a row as gaps, from a position on; returns where they end."""
    before = 0
    for w in range(rows.shape[1]):
        word = rows[k, w]
        while word:
            low = word & (~word + np.uint32(1))
            token = np.int64(32 * w + popcount(low - np.uint32(1)))
            position = write_gap(token - before, gaps, position)
            before = token
            word ^= low
    return position


@kernel
def most_completed(
    byte: uint8[::1], depth: uint16[::1], skip: int32[::1], first_token: int32[::1], class_of: uint8[::1],
    table: int32[:, ::1], goes_on: uint8[:, ::1], ends: int32[::1], begins: int64[::1], added: int64[:, ::1],
    starts: int32[::1], limit: int64, states: Out[int32[:, ::1]], sums: Out[int64[:, ::1]], lengths: Out[int64[::1]],
    seen: Out[int64[::1]], slots: Out[int64[::1]],
) -> int64:  # fmt: skip
    """The most that the lexemes which a token completes add up to, from whatever lexer state it begins in.

    Parameters
    ----------
    class_of, table, goes_on, starts:
        The lexer, as in `structgen.runtime.grammar.tables`.
    ends, begins:
        ``int32[*]``, ``int64[lexer states + 1]``: the terminals that a lexeme can be where it ends, state by state.
    added:
        ``int64[terminals + 1, terminals]``: what a terminal adds behind another one, or behind any; -1 for one that
        leaves what was before it the one before.
    limit:
        So many states, each with the terminal before, are looked at below nodes at most.
    states, sums, lengths, seen, slots:
        Scratch: ``int32`` and ``int64[max_depth + 2, room]``, with room for more than the lexer's states;
        ``int64[max_depth + 2]``; and twice ``int64[lexer states * (terminals + 1)]``.

    Returns
    -------
    The sum, or -1 where that takes too long, or there is no room.
    """
    count = len(table)
    kinds = added.shape[0]
    if kinds == 0:
        return 0
    for key in range(len(seen)):
        seen[key] = -1
    for s in range(count):
        states[depth[0], s] = s * kinds + kinds - 1  # with the terminal before
        sums[depth[0], s] = 0
    lengths[depth[0]] = count
    most = 0
    steps = 0
    i = 1
    while i < len(byte):
        d = depth[i]
        c = class_of[byte[i]]
        n = 0
        for k in range(lengths[d - 1]):
            s = states[d - 1, k] // kinds
            before = states[d - 1, k] % kinds
            turns = (begins[s + 1] - begins[s]) * len(starts) if goes_on[s, c] else 0
            steps += 1 + turns
            for j in range(-1, turns):
                total = sums[d - 1, k]
                last = before
                if j < 0:
                    target = table[s, c]
                else:
                    target = table[starts[j % len(starts)], c]
                    terminal = ends[begins[s] + j // len(starts)]
                    if added[before, terminal] >= 0:
                        total += added[before, terminal]
                        last = terminal
                if target < 0:
                    continue
                key = target * kinds + last
                if seen[key] != i:
                    if n == states.shape[1]:
                        return -1
                    seen[key] = i
                    slots[key] = n
                    states[d, n] = key
                    sums[d, n] = total
                    n += 1
                elif sums[d, slots[key]] < total:
                    sums[d, slots[key]] = total
        if steps > limit:
            return -1
        lengths[d] = n
        if first_token[i] < first_token[i + 1]:
            for k in range(n):
                most = max(most, sums[d, k])
        i = i + 1 if n else skip[i]
    return most
