"""Which states of an automaton with a stack do the same for so many bytes, or for all tokens."""

from __future__ import annotations

import numpy as np

from ..jit import inlined, kernel
from ..values import MARK, SET
from .arena import (
    A_CLASS_OF,
    A_GROUPS,
    A_LIVE,
    A_MOVES,
    A_RECORDS,
    A_RETURNS,
    A_SEQUENCE,
    A_STATES,
    TOO_FAR,
    _row,
)
from .threads import _stays_in


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


#: Pairs of states that two states may lead to by one token.
MOST_ALIKE = 32


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
    if n - begin >= MOST_ALIKE:
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
def agree_on_tokens(byte, depth, skip, height, agreeing, arena, state, other, limit, first, pairs):
    """Whether two states allow the same tokens, and leave the same nodes to what is below, with any equal counts.

    Pairs of states that the two come to by the same bytes are followed through the trie, as far as they are not known
    to do the same for as many bytes as there are below: by any count, so to all zones. False, too, where that takes
    more than ``limit`` pairs, or more than one move for a byte.

    Parameters
    ----------
    height, agreeing:
        As in `walk_stack_difference`.
    first, pairs:
        Scratch, ``int64[max_depth + 3]`` and, `MOST_ALIKE` for each of these, ``int64[*, 2]``.
    """
    first[0] = 0
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
