"""Walks of the trie of tokens through a byte automaton; docs/internals/walks.md derives them."""

from __future__ import annotations

import numpy as np

from .jit import inlined, kernel
from .subset_construction import _zone
from .values import DEAD, LOW, MID, SET

#
# docs/internals/walks.md derives these loops. A walk visits the trie in preorder with one automaton state for each
# depth; a dead byte skips the subtree. A node costs some nanoseconds, most of it for the loads that depend on one
# another.


@kernel
def walk_narrow(byte, depth, skip, first_token, token_ids, table, classes, n_classes, states, limit, at, counts,
                ids):  # fmt: skip
    """The allowed tokens of many states, as lists, as long as they stay short.

    Writes to ``counts``, ``int32[states]``, how many tokens each state allows, or -1 for more than ``limit``; and
    the ids, one list after another and none for -1, to ``ids``, ``int32[states * limit]``. Returns how many ids
    there are. ``at`` is scratch, ``int32[max_depth + 1]``.
    """
    n_nodes = len(byte)
    n_ids = 0
    for k in range(len(states)):
        at[0] = states[k]
        begin = n_ids
        i = 1
        while i < n_nodes:
            d = depth[i]
            s = table[at[d - 1] * n_classes + classes[byte[i]]]
            if s < 0:
                i = skip[i]
                continue
            at[d] = s
            last = first_token[i + 1]
            if n_ids - begin + last - first_token[i] > limit:
                break
            for t in range(first_token[i], last):
                ids[n_ids] = token_ids[t]
                n_ids += 1
            i += 1
        if i < n_nodes:
            n_ids = begin
            counts[k] = -1
        else:
            counts[k] = n_ids - begin
    return n_ids


@kernel
def walk_row(byte, depth, skip, token, twins, table, classes, n_classes, state, at, row, n_states, below):
    """Set the bit of every token that ``state`` allows in ``row``, ``uint32[words + 1]``.

    ``token`` is ``int32[nodes]``: the id that ends at a node, or ``32 * words``, a spare bit, where none does, so
    that the loop has no branch for it. Further ids with the same bytes are set at the end: ``twins`` is
    ``int32[*, 2]``, such an id and the one at the node.

    From ``n_states`` on an entry of the table pops the state off a stack: the rest of a token is up to what lies
    below. Writes the nodes where tokens go on there to ``below``, ``int32[nodes]``, and returns their number.

    ``at`` is scratch, ``int32[max_depth + 1]``.
    """
    n_nodes = len(byte)
    at[0] = state
    n_below = 0
    i = 1
    while i < n_nodes:
        d = depth[i]
        s = table[at[d - 1] * n_classes + classes[byte[i]]]
        if s < 0:
            i = skip[i]
            continue
        t = token[i]
        row[t >> 5] |= np.uint32(1) << np.uint32(t & 31)
        if s >= n_states:
            if i + 1 < skip[i]:
                below[n_below] = i
                n_below += 1
            i = skip[i]
            continue
        at[d] = s
        i += 1
    _copy_twins(twins, row)
    return n_below


@inlined
def _copy_twins(twins, row):
    """Give each twin the bit of the id that has the same bytes."""
    for i in range(len(twins)):
        twin = twins[i, 0]
        t = twins[i, 1]
        bit = (row[t >> 5] >> np.uint32(t & 31)) & np.uint32(1)
        mask = np.uint32(1) << np.uint32(twin & 31)
        row[twin >> 5] = (row[twin >> 5] & ~mask) | (mask if bit else np.uint32(0))


@kernel
def walk_difference(byte, depth, skip, token, twins, table, classes, n_classes, state, base, at, other, row):
    """Turn ``row``, the row of state ``base``, into the row of ``state``, walking only where the two differ.

    For ``token``, ``twins``, ``row``, and ``at`` and ``other`` see `walk_row`.
    """
    n_nodes = len(byte)
    at[0] = state
    other[0] = base
    i = 1
    while i < n_nodes:
        d = depth[i]
        c = classes[byte[i]]
        s = at[d - 1]
        s = table[s * n_classes + c] if s >= 0 else s
        p = other[d - 1]
        p = table[p * n_classes + c] if p >= 0 else p
        if s == p:
            i = skip[i]
            continue
        if (s < 0) != (p < 0):
            t = token[i]
            row[t >> 5] ^= np.uint32(1) << np.uint32(t & 31)
        at[d] = s
        other[d] = p
        i += 1
    _copy_twins(twins, row)


@kernel
def walk_counted(byte, depth, skip, first_token, token_ids, table, classes, n_classes, records, loops, live, state,
                 low, high, begin, pieces, row, tokens, firsts, lasts):  # fmt: skip
    """The tokens that ``state`` allows for each count from ``low`` to ``high``.

    Every depth holds *pieces*: disjoint, ascending intervals of start counts, each with the state they have led
    to and what was added to the count since. A record that looks at the count splits a piece; neighbours that
    come to the same configuration are joined again. So one walk settles all counts.

    Tokens allowed for every count are set in ``row``, ``uint32[words]``. The others are written to ``tokens``,
    ``firsts`` and ``lasts``, ``int32`` each: such a token is allowed for the counts ``first..last``, and its
    intervals are disjoint. Returns how many were written, or -1 where the arrays are too short.

    ``begin`` and ``pieces`` are scratch, ``int64[max_depth + 2]`` and ``int64[*, 4]``.
    """
    n_nodes = len(byte)
    # The pieces of depth d are begin[d]..begin[d + 1] of these columns: state, lowest, highest, added.
    n_out = 0
    begin[0] = 0
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
                # From here on the count is known: 1, whatever it was at the start.
                n = _join(pieces, base, n, records[r, 2], lo, hi, _FIXED + 1)
                continue
            loop = records[r, 1]
            targets = records[r, 2], records[r, 3], records[r, 4]
            n = _count(pieces, base, n, lo, hi, add, targets, loops[loop, 0], loops[loop, 1], live, 0)
        if n == base:
            i = skip[i]
            continue
        begin[d + 1] = n
        if first_token[i] < first_token[i + 1]:
            p = base
            while p < n:
                lo = pieces[p, 1]
                hi = pieces[p, 2]
                p += 1
                while p < n and pieces[p, 1] == hi + 1:
                    hi = pieces[p, 2]
                    p += 1
                for k in range(first_token[i], first_token[i + 1]):
                    token = token_ids[k]
                    if lo == low and hi == high:
                        row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
                        continue
                    if n_out == len(tokens):
                        return -1
                    tokens[n_out] = token
                    firsts[n_out] = lo
                    lasts[n_out] = hi
                    n_out += 1
        i += 1
    return n_out


@inlined
def _join(pieces, base, n, state, lo, hi, add):
    """Append a piece, or widen the last one where both have come to the same configuration."""
    if n > base and pieces[n - 1, 0] == state and pieces[n - 1, 3] == add and pieces[n - 1, 2] + 1 == lo:
        pieces[n - 1, 2] = hi
        return n
    pieces[n, 0] = state
    pieces[n, 1] = lo
    pieces[n, 2] = hi
    pieces[n, 3] = add
    return n + 1


@inlined
def _count(pieces, base, n, lo, hi, add, targets, minimum, maximum, live, counts):
    """Append where a piece leads by one more turn of a loop, split by zone; returns the number of pieces.

    ``targets[zone]`` is the state for a count in that zone, or negative: none. What is added to the count is dropped
    in states that don't count, those with ``live[counts + state]`` negative.
    """
    add += 1
    if add > _FIXED:
        target = targets[_zone(add - _FIXED, minimum, maximum)]
        if target >= 0:
            n = _join(pieces, base, n, target, lo, hi, add if live[counts + target] >= 0 else 0)
        return n
    for zone in range(3):
        target = targets[zone]
        if target < 0:
            continue
        z_lo = lo
        z_hi = hi
        if zone == LOW:
            z_hi = min(hi, minimum - 1 - add)
        elif zone == MID:
            z_lo = max(lo, minimum - add)
            z_hi = min(hi, maximum - 1 - add)
        else:
            z_lo = max(lo, maximum - add)
        if z_lo <= z_hi:
            n = _join(pieces, base, n, target, z_lo, z_hi, add if live[counts + target] >= 0 else 0)
    return n


#: Added to an offset that is a known count rather than relative to the start; far above any count.
_FIXED = 1 << 40
