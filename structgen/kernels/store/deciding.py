"""What narrow states decide: walks of the trie that are over within a few microseconds, with all that is kept of them.

See `structgen.runtime.pushdown.partial_masks`, which does the same for wide states.
"""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..pushdown.arena import A_CAME_TO, A_LIVE, A_STATES, _row, _weigh, approach_base
from ..pushdown.differences import walk_stack_difference
from ..pushdown.sets import NUMBERED
from ..pushdown.walks import walk_stack
from ..rows import popcount, write_gap
from ..signatures import Out, int32, int64
from ..subset_construction import shell_sort
from .interning import _first_not_below, _hashed
from .layout import *
from .masks import _NOTHING, _ROOT, _count_key, _known_part, _put_part, _rows_of, write_whole_mask
from .rows import _put_list, _put_row

#: Threads that a short walk may follow: nobody else runs beside it.
_MOST_WORK = 1 << 12

#: Partial masks that are decided in one call of `decide_missing`: others have their turn between two calls.
_AT_ONCE = 8

#: How far the widest edges of a state are followed to a configuration that stays in place.
LONGEST_APPROACH = 40

#: Ids that a Shell sort puts in order as fast as anything.
_FEW_IDS = 48


@helper
def _gaps_of(ids, n, bits, gaps):
    """Write ids, which it may put in order, as `write_gaps` does; ``bits`` are a row without any. Returns how many."""
    m, before = np.int64(0), np.int64(0)
    if n <= _FEW_IDS:
        shell_sort(ids, n)
        for i in range(n):
            m = write_gap(np.int64(ids[i]) - before, gaps, m)
            before = np.int64(ids[i])
        return m
    lowest, highest = np.int64(len(bits)), np.int64(-1)
    for i in range(n):
        w = np.int64(ids[i]) >> 5
        bits[w] |= np.uint32(1) << np.uint32(ids[i] & 31)
        lowest, highest = min(lowest, w), max(highest, w)
    for w in range(lowest, highest + 1):
        word = bits[w]
        bits[w] = 0
        while word:
            low = word & (~word + np.uint32(1))
            position = 32 * w + popcount(low - np.uint32(1))
            m = write_gap(position - before, gaps, m)
            before = position
            word ^= low
    return m


@helper
def _is_interior(machine, state):
    """Whether a state at the bottom does as two others do."""
    interiors = words32(machine, M_INTERIORS)
    at = _first_not_below(interiors, np.int64(0), np.int64(len(interiors)), state)
    return at < len(interiors) and interiors[at] == state


@helper
def _beside(state):
    """What stands for a residual list in keys where a state is entered above another one that is known."""
    return -1 - state


@helper
def _differing(nodes, n, others, m, found):
    """Write the nodes that are in one of two residual lists; returns how many."""
    i = j = k = np.int64(0)
    while i < n or j < m:
        if j == m or (i < n and nodes[i] < others[j]):
            found[k] = nodes[i]
            i += 1
            k += 1
        elif i == n or others[j] < nodes[i]:
            found[k] = others[j]
            j += 1
            k += 1
        else:
            i += 1
            j += 1
    return k


@helper
def _changed(machine, row, listed, ids, n, nodes, m):
    """`put_difference` for ``ids[:n]`` and ``nodes[:m]``."""
    trie, pool, lists = words64(machine, M_TRIE), words64(machine, M_POOL), words64(machine, M_LISTS)
    found, after = row, listed
    if n:
        base, start, gaps = words32(pool, R_BASE), words64(pool, R_START), unsigned16(trie, V_GAPS)
        is_empty = base[row] == 0 and start[row] == start[row + 1] and n <= pool[R_WORDS] // 2
        count = _gaps_of(ids, n, unsigned32(trie, V_BITS), gaps)
        found = _put_row(pool, np.int64(0) if is_empty else -1 - row, gaps, count)
        if found < 0:
            return found, np.int64(0)
    if m:
        each = triples64(lists, L_LISTS)[listed]
        if each[0] == 0:
            lists[L_MISSING] = listed
            return np.int64(NO_LIST), np.int64(0)
        shell_sort(nodes, m)
        together = words32(trie, V_NODES)
        after = _put_list(lists, together, _differing(nodes, m, words32(each, 0), each[1], together))
        if after < 0:
            return after, np.int64(0)
    return found, after


@helper
def _decide_beside(machine, state):
    """`_decide` for a state that leads far, from the root, by where it differs from what its widest edges lead to."""
    arena, trie, shares = words32(machine, M_ARENA), words64(machine, M_TRIE), floats(machine, M_SHARES)
    config, by_depth = words64(trie, V_CONFIG), rows64(trie, V_BY_DEPTH)
    n = approach_base(
        arena, state, floats(machine, M_WEIGHTS), shares[0], shares[1], np.int64(LONGEST_APPROACH), config
    )
    if arena[A_CAME_TO]:
        return np.int64(NOT_LOWERED)
    if n != 2 and n != 4:
        return np.int64(NOT_NARROW)
    held, left = _known_part(machine, np.int64(_ROOT) if n == 2 else _beside(config[2]), config[0], np.int64(0))
    if held < 0:
        return np.int64(NOT_NARROW)
    own = by_depth[2, :2]
    own[0] = state
    own[1] = 0
    ids, nodes = words32(trie, V_FOUND), words32(trie, V_BELOW)
    count, m = walk_stack_difference(
        octets(trie, V_BYTE), unsigned16(trie, V_DEPTH), words32(trie, V_SKIP), words32(trie, V_FIRST),
        words32(trie, V_IDS), rows32(trie, V_UPPER), unsigned16(trie, V_HEIGHTS), arena, own, config[:n],
        machine[M_SHORT], cells64(trie, V_STACKS), words32(trie, V_SLOTS), by_depth, notes64(trie, V_NOTES),
        config[:0], ids[:0], ids[:0], ids, nodes,
    )  # fmt: skip
    if arena[A_CAME_TO]:
        return np.int64(NOT_LOWERED)
    if count < 0:
        return np.int64(NOT_NARROW)
    row, after = _changed(machine, held, left, ids, count, nodes, m)
    if row < 0:
        return row
    return _put_part(machine, np.int64(_ROOT), state, np.int64(0), row, after)


@helper
def _decide(machine, listed, state, number):
    """Decide a partial mask by its key, if that is quickly done, and keep it. Returns `WRITTEN` or a reason."""
    arena = words32(machine, M_ARENA)
    if not len(arena):
        return np.int64(NO_ARENA)
    if arena[A_CAME_TO]:
        return np.int64(NOT_LOWERED)
    if number >= NUMBERED or not 0 <= state < arena[A_STATES]:
        return np.int64(NOT_NARROW)
    if machine[M_TRIE] == 0:
        return np.int64(NO_TRIE)
    if listed == _ROOT:
        weight = _weigh(arena, _row(arena, state), floats(machine, M_WEIGHTS))
        if arena[A_CAME_TO]:
            return np.int64(NOT_LOWERED)
        if _is_interior(machine, state) or (number and weight >= machine[M_WIDE]):
            return np.int64(NOT_NARROW)
        if weight >= floats(machine, M_SHARES)[0]:
            return np.int64(NOT_NARROW) if number else _decide_beside(machine, state)
    lists = words64(machine, M_LISTS)
    if triples64(lists, L_LISTS)[listed, 0] == 0:
        lists[L_MISSING] = listed
        return np.int64(NO_LIST)
    trie, pool = words64(machine, M_TRIE), words64(machine, M_POOL)
    byte, ids, below = octets(trie, V_BYTE), words32(trie, V_FOUND), words32(trie, V_BELOW)
    by_depth = rows64(trie, V_BY_DEPTH)
    config = by_depth[2, :2]
    config[0] = state
    config[1] = number
    n, m, node = walk_stack(
        byte, unsigned16(trie, V_DEPTH), words32(trie, V_SKIP), words32(trie, V_FIRST), words32(trie, V_IDS),
        rows32(trie, V_UPPER), arena, words32(triples64(lists, L_LISTS)[listed], 0), config, np.int64(_MOST_WORK),
        machine[M_SHORT], cells64(trie, V_STACKS), words32(trie, V_SLOTS), by_depth, ids, below,
    )  # fmt: skip
    if arena[A_CAME_TO]:
        return np.int64(NOT_LOWERED)
    gaps = unsigned16(trie, V_GAPS)
    if node < len(byte):
        return np.int64(NOT_NARROW)
    if n > pool[R_WORDS] // 2:
        return np.int64(NOT_LISTED)
    row = _put_row(pool, np.int64(0), gaps, _gaps_of(ids, n, unsigned32(trie, V_BITS), gaps))
    if row < 0:
        return row
    after = _put_list(lists, below, m)
    if after < 0:
        return after
    return _put_part(machine, listed, state, number, row, after)


@kernel(releases_gil=False)
def decide_part(machine: Out[int64[::1]], listed: int64, state: int64, number: int64) -> int64:
    """Decide the partial mask of a residual list, a state, and what stands for its count, and keep it.

    Returns `WRITTEN`, `NOT_NARROW` where it takes longer, `NOT_LISTED` where it is more than a list of tokens, or what
    is to be done first (see `layout`).
    """
    if not 0 <= listed < words64(machine, M_LISTS)[L_COUNT]:
        return NOT_NARROW
    return _decide(machine, listed, state, number)


@kernel(releases_gil=False)
def put_difference(
    machine: Out[int64[::1]], row: int64, listed: int64, ids: Out[int32[::1]], nodes: Out[int32[::1]]
) -> tuple[int64, int64]:
    """The row and the residual list that differ from others in some token ids and in some nodes of the trie.

    ``ids`` and ``nodes``, ``int32[*]`` each and in any order, are put in order. Returns a reason and 0 in place of
    numbers where something is to be done first.
    """
    if machine[M_TRIE] == 0:
        return NO_TRIE, 0
    found, after = _changed(machine, row, listed, ids, np.int64(len(ids)), nodes, np.int64(len(nodes)))
    return found, after


@kernel(releases_gil=False)
def decide_missing(head: Out[int64[::1]], config: int64, most: int64) -> int64:
    """Decide a few partial masks that a configuration's mask lacks, as far as that is quickly done.

    Returns `WRITTEN`, `NO_PARTS` where more than ``most`` are missing at once, or as `decide_part`; the head of the
    machine has the key of the one that was not decided.
    """
    if not 0 <= config < head[N_CONFIGS]:
        return NO_CONFIG
    machine = words64(head, S_MACHINE)
    decided = 0
    while decided < _AT_ONCE:
        n = _rows_of(head, machine, config)
        if n != NO_PARTS:
            return n if n < 0 else WRITTEN
        if head[N_MISSING] > most:
            return NO_PARTS
        missing = triples64(head, S_MISSING)
        for k in range(head[N_MISSING]):
            listed, state = missing[k, 0], missing[k, 1]
            number = _count_key(machine, state, missing[k, 2])
            row, _ = _known_part(machine, listed, state, number)
            if row >= 0:  # which was missing twice
                continue
            status = _decide(machine, listed, state, number)
            decided += 1
            if status != WRITTEN:
                machine[M_LISTED] = listed
                machine[M_STATE] = state
                machine[M_NUMBER] = number
                return status
    return WRITTEN


@kernel(releases_gil=False)
def decide_and_write(head: Out[int64[::1]], config: int64, most: int64, out: Out[int32[::1]]) -> int64:
    """`decide_missing`, and then `write_whole_mask`; returns what the first of them says that is not `WRITTEN`."""
    status = decide_missing(head, config, most)
    return status if status != WRITTEN else write_whole_mask(head, config, out)


@helper
def _listed_slot(pairs, slots, listed, state):
    """The slot of a pair of a residual list and a state, or a free one."""
    slot = _hashed(_hashed(np.int64(1), listed), state) & (len(slots) - 1)
    while slots[slot] >= 0:
        there = slots[slot]
        if pairs[there, 0] == listed and pairs[there, 1] == state:
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel(releases_gil=False)
def decide_all(
    machine: Out[int64[::1]], pairs: Out[int64[:, ::1]], slots: Out[int32[::1]], progress: Out[int64[::1]],
    starts: int32[::1], lower: int32[::1], given: int32[::1], most: int64,
) -> int64:  # fmt: skip
    """Decide what states decide at residual lists, and where that leaves some open, at these what can lie below.

    Parameters
    ----------
    pairs:
        ``int64[*, 2]``: residual list and state, those that are decided first. More are added.
    slots:
        To find them, ``int32[*]``, a power of two; -1 where they are not found yet.
    progress:
        ``int64[3]``: how many pairs are decided, how many there are, and how many of these have slots.
    starts, lower:
        What can lie below state ``s``: ``lower[starts[s]:starts[s + 1]]``.
    given:
        The residual lists that the next pair leaves open, where somebody else decided it.
    most:
        Decide no more.

    Returns
    -------
    `WRITTEN` after as many or at the end, `NO_PAIRS` where there are to be more pairs or slots, `NOT_NARROW` where
    somebody else has to decide a pair, as those of states that count, or as `decide_part`.
    """
    for number in range(progress[2], progress[1]):
        slots[_listed_slot(pairs, slots, pairs[number, 0], pairs[number, 1])] = number
    progress[2] = progress[1]
    arena = words32(machine, M_ARENA)
    if not len(arena):
        return NO_ARENA
    left = np.int64(len(given))
    for _ in range(most):
        done, used = progress[0], progress[1]
        if done == used:
            return WRITTEN
        listed, state = pairs[done, 0], pairs[done, 1]
        after = np.int64(-1)
        if left == 0:
            if arena[arena[A_LIVE] + state] >= 0:
                return NOT_NARROW
            row, after = _known_part(machine, listed, state, np.int64(0))
            if row < 0:
                status = _decide(machine, listed, state, np.int64(0))
                if status != WRITTEN:
                    return status
                row, after = _known_part(machine, listed, state, np.int64(0))
            left = 1
        count = starts[state + 1] - starts[state]
        if used + left * count > len(pairs) or 2 * (used + left * count) + 2 > len(slots):
            return NO_PAIRS
        for i in range(left):
            if i < len(given):
                after = np.int64(given[i])
            if after == _NOTHING:
                continue
            for k in range(starts[state], starts[state + 1]):
                slot = _listed_slot(pairs, slots, after, np.int64(lower[k]))
                if slots[slot] < 0:
                    slots[slot] = used
                    pairs[used, 0] = after
                    pairs[used, 1] = lower[k]
                    used += 1
        left = np.int64(0)
        given = given[:0]
        progress[0] = done + 1
        progress[1] = used
        progress[2] = used
    return WRITTEN
