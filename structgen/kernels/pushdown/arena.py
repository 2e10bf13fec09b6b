"""A pushdown automaton as one array, and what its states do with bytes."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, float64, int32, int64, uint8
from ..values import DEAD

# A pushdown automaton comes as one int32 array, its *arena* (see `structgen.runtime.pushdown.tables`): a call with
# one array costs a third of one with twelve. The first words say where the parts begin.

# What a state does with each class of bytes is its *row*: a state, `A_STATES` + a group of moves, or `DEAD`. Rows are
# laid out one behind the other, from `A_FREE` on, when a walk first comes to their states.

A_STATES, A_CLASSES, A_CLASS_OF, A_ROWS, A_EDGE_START, A_EDGES, A_MOVES, A_SINGLE, A_LIKE, A_GROUPS = range(10)
A_SEQUENCE, A_RECORDS, A_LOOPS, A_LIVE, A_RETURNS, A_TESTS, A_SETS, A_FREE, A_DEAD_ROW, A_CAME_TO = range(10, 20)
ARENA_HEADER = 20

#: Words before the members of sets: how many a set has, how many sets there is room for, and how many there are.
SET_HEADER = 3

# A state may be *open*: what it does is not known yet. A walk that comes to one takes it to do nothing, and is to be
# taken again: `A_CAME_TO` is then 1 plus such a state, and all of them have the row at `A_DEAD_ROW`.

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


@helper
def _add_edges(arena, state, row):
    """Write the edges of a state to a row."""
    classes = arena[A_CLASS_OF]
    begin = arena[arena[A_EDGE_START] + state]
    for edge in range(begin, arena[arena[A_EDGE_START] + state + 1]):
        at = arena[A_EDGES] + 2 * edge
        for c in range(arena[classes + (arena[at] & 255)], arena[classes + (arena[at] >> 8)] + 1):
            arena[row + c] = arena[at + 1]


@helper
def _come_to_open(arena, state):
    """Note that a walk came to a state that is open; returns its row."""
    arena[A_CAME_TO] = state + 1
    arena[arena[A_ROWS] + state] = arena[A_DEAD_ROW]
    return arena[A_DEAD_ROW]


@helper
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


@helper
def _row(arena, state):
    """Where the row of a state begins."""
    row = arena[arena[A_ROWS] + state]
    return row if row else _lay_out(arena, state)


@helper
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


@helper
def _weigh(arena, row, weights):
    """What the classes weigh together for which a row is not dead."""
    weight = 0.0
    for c in range(len(weights)):
        if arena[row + c] != DEAD:
            weight += weights[c]
    return weight


@kernel(releases_gil=False)
def number_byte_classes(low: uint8[::1], high: uint8[::1], class_of: Out[uint8[::1]]) -> None:
    """Give bytes that no range tells apart the same class, numbered in their order.

    ``class_of`` is ``uint8[256]`` of zeros.
    """
    for i in range(len(low)):
        class_of[low[i]] = 1
        if high[i] < 255:
            class_of[high[i] + 1] = 1
    class_of[0] = 0
    for byte in range(1, 256):
        class_of[byte] += class_of[byte - 1]


@kernel
def widest_entry(arena: Out[int32[::1]], state: int64, weights: float64[::1]) -> tuple[int64, float64, float64]:
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


@kernel
def approach_base(
    arena: Out[int32[::1]], state: int64, weights: float64[::1], narrowest: float64, share: float64, steps: int64,
    config: Out[int64[::1]],
) -> int64:  # fmt: skip
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
