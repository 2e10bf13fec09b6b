"""Sets of members that configurations carry, and what is asked of them."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, int32, int64
from .arena import A_CAME_TO, A_SETS, A_TESTS, SET_HEADER

# A set of members below 62 is one word, a bit each. Any other has a number in the table at `A_SETS`. That begins with
# the words of each set (31 members in each), the sets that there is room for, a power of two, and how many there are;
# then come twice as many slots, 1 plus a number or 0; then the sets, and room for one more, in which each is put
# together. A walk that has no room for a set is to be taken again with more: `A_CAME_TO` is then `NO_SET`.

#: What is added to a set's number, and what is in `A_CAME_TO` where there was no room for one.
NUMBERED, NO_SET = 1 << 62, -1

#: In place of the least number in what goes on with a test's mask.
MORE_OF_TEST = -1


@helper
def _set_row(arena, number):
    """Where the words of a set with a number begin."""
    sets = arena[A_SETS]
    return sets + SET_HEADER + 2 * arena[sets + 1] + number * arena[sets]


@helper
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


@kernel
def number_sets(arena: Out[int32[::1]], sets: int32[:, ::1]) -> int64:
    """Enter ``int32[*, words]`` into the table of sets; the number of the last one, -1 where there is no room."""
    number = np.int64(-1)
    for i in range(sets.shape[0]):
        row = _set_row(arena, arena[arena[A_SETS] + 2])
        for k in range(sets.shape[1]):
            arena[row + k] = sets[i, k]
        number = _number_last(arena)
    return number


@helper
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


@helper
def _marked(arena, members, member):
    """The set ``members`` with ``member`` added, unchanged for member -1; -1 if it was a member already."""
    if member < 0:
        return members
    if member >= 62 or members >= NUMBERED:
        return _marked_in_table(arena, members, np.int64(member))
    bit = np.int64(1) << np.int64(member)
    return np.int64(-1) if members & bit else members | bit


@helper
def _in_both(members, mask):
    """How many members of a set are in a mask."""
    tested = members & mask
    n = 0
    while tested:
        tested &= tested - 1
        n += 1
    return n


@helper
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
