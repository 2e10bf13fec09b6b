"""Counts of an automaton with a stack: all at once over the trie, and which its states can have."""

from __future__ import annotations

import numpy as np

from ..automaton_walks import _FIXED, _count, _join
from ..jit import inlined, kernel
from ..subset_construction import _zone
from ..values import DEAD, INC, MARK, SET
from .arena import A_CLASS_OF, A_GROUPS, A_LIVE, A_LOOPS, A_MOVES, A_RECORDS, A_STATES, OVERFLOW, _row


@kernel
def walk_stack_counted(byte, depth, skip, first_token, token_ids, arena, state, minimum, maximum, start, work, begin,
                       pieces, ids, tokens, token_first, token_last, below, nodes, node_first,
                       node_last):  # fmt: skip
    """The tokens that a state which counts, the stack below unknown, allows for each count from 1 to ``maximum``.

    ``minimum`` and ``maximum`` are the bounds of the loop that the state counts in, whatever the arena says.

    For automata that move, count and pop, but never call, such as the inside of a string; pieces, and the scratch
    for them, are those of `walk_counted`. What holds for every count goes to ``ids`` and ``below``, as in
    `walk_stack`. The rest goes to ``tokens`` or ``nodes`` with its first and last count, disjoint intervals each.

    Looks at the nodes from ``start`` on, and at ``work`` pieces, about.

    Returns the numbers of ``ids``, ``tokens``, ``below`` and ``nodes``, and the node to go on at; `OVERFLOW` first
    where an array is too short or the automaton calls.
    """
    n_states = arena[A_STATES]
    popped = n_states
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
    begin[0] = 0
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
                return OVERFLOW, 0, 0, 0, i
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
            targets = arena[r + 2], arena[r + 3], arena[r + 4]
            n = _count(pieces, base, n, lo, hi, add, targets, least, most, arena, arena[A_LIVE])
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


@kernel
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
