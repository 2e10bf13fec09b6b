"""For how many bytes two states of an automaton do the same."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, int32, int64
from .arena import A_CAME_TO, A_CLASSES, A_LIVE, A_RETURNS, NOT_SINGLE, UNBOUNDED, _row
from .threads import _single_move, _stays_in

#: There are too many pairs, open states are among them, or it takes too long.
NOT_TOLD = -2

#: How many moves are compared at most, and how often a number is looked at for two pairs: two milliseconds, about.
_MOST_MOVES, _MOST_LOOKS = 1 << 17, 1 << 20


@helper
def _zone_of(arena, state, count, bytes_):
    """1 and the zone that a count stays in for so many bytes; 0 where nothing is counted, -1 where it may leave it."""
    return _stays_in(arena, state, count, bytes_) + 1 if arena[arena[A_LIVE] + state] >= 0 else np.int64(0)


@helper
def _agreeing_slot(pairs, slots, pair):
    """The slot of a pair of states, each with its zone, or a free one. (Linear probing, TAOCP 3, section 6.4.)"""
    slot = np.int64((np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (len(slots) - 1)
    while slots[slot] >= 0 and pairs[slots[slot]] != pair:
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@helper
def _agreeing(state, zone, its, other):
    """A pair of states, each with its zone, as one number."""
    return (4 * state + zone) << 32 | (4 * its + other)


@helper
def _agree_for(arena, state, count, its, counted, bytes_, pairs, distances, slots):
    """Whether it is known that two states with their counts do the same for so many bytes."""
    if len(slots) == 0:
        return False
    zone, other = _zone_of(arena, state, count, bytes_), _zone_of(arena, its, counted, bytes_)
    if zone < 0 or other < 0:
        return False
    found = slots[_agreeing_slot(pairs, slots, _agreeing(state, zone, its, other))]
    return found >= 0 and distances[found] >= bytes_


@kernel
def agreement(
    arena: Out[int32[::1]], config: int64[::1], base: int64[::1], longest: int64, pairs: Out[int64[::1]],
    distances: Out[int32[::1]], slots: Out[int32[::1]], used: Out[int64[::1]], edges: Out[int32[:, ::1]],
) -> int64:  # fmt: skip
    """For how many bytes two states do the same, whatever is below them.

    Of pairs that one byte leads to, some do the same for fewer bytes: that is one more, at most, for the pair itself.
    So the numbers are those of a breadth-first search from pairs that a single byte tells apart. (Moore's partition
    refinement, in steps; of the pairs alone that come of the first.)

    Parameters
    ----------
    config, base:
        ``int64[2]``: a state and its count, or `UNBOUNDED` less a zone.
    longest:
        Bytes of the longest text that matters.
    pairs, distances, slots, used:
        What is known: pairs, ``int64[room]``, for how many bytes they do the same, ``int32[room]``, slots to find
        them, ``int32[*]``, a power of two, -1 each at first, and how many there are, ``int64[1]``.
    edges:
        Scratch, ``int32[*, 2]``.

    Returns a number of bytes, more than ``longest`` where nothing tells them apart, -1 where one may return, or
    `NOT_TOLD`.
    """
    zone, other = _zone_of(arena, config[0], config[1], longest), _zone_of(arena, base[0], base[1], longest)
    if zone < 0 or other < 0:
        return NOT_TOLD
    pair = _agreeing(config[0], zone, base[0], other)
    slot = _agreeing_slot(pairs, slots, pair)
    if slots[slot] >= 0:
        return np.int64(distances[slots[slot]])
    first = here = used[0]
    n, n_edges = first, np.int64(0)
    if n == len(pairs):
        return NOT_TOLD
    slots[slot] = n
    pairs[n] = pair
    distances[n] = longest + 1
    n += 1
    is_told, moves, looks = True, np.int64(0), np.int64(0)
    while here < n and is_told:
        state, its = pairs[here] >> 34, (pairs[here] & 0xFFFFFFFF) >> 2
        zone, other = (pairs[here] >> 32) & 3, pairs[here] & 3
        if arena[arena[A_RETURNS] + state] or arena[arena[A_RETURNS] + its]:
            distances[here] = -1
            here += 1
            continue
        row, its_row = _row(arena, state), _row(arena, its)
        last = np.int64(-1)
        for c in range(arena[A_CLASSES]):
            if arena[row + c] == arena[its_row + c] and zone == other:
                continue
            moves += 1
            if moves > _MOST_MOVES:
                is_told = False
                break
            count = UNBOUNDED - (zone - 1) if zone else np.int64(0)
            counted = UNBOUNDED - (other - 1) if other else np.int64(0)
            now, count = _single_move(arena, state, count, np.int64(c))
            then, counted = _single_move(arena, its, counted, np.int64(c))
            if now == then and count == counted and now != NOT_SINGLE:  # both `DEAD`, too
                continue
            if min(now, then) < 0:  # `NOT_SINGLE` or `DEAD`
                distances[here] = 0
                break
            after, others = _zone_of(arena, now, count, longest), _zone_of(arena, then, counted, longest)
            if after < 0 or others < 0:
                distances[here] = 0
                break
            pair = _agreeing(now, after, then, others)
            slot = _agreeing_slot(pairs, slots, pair)
            if slots[slot] < 0:
                if n == len(pairs):
                    is_told = False
                    break
                slots[slot] = n
                pairs[n] = pair
                distances[n] = longest + 1
                n += 1
            to = np.int64(slots[slot])
            if to != last:
                if n_edges == len(edges):
                    is_told = False
                    break
                edges[n_edges, 0] = here
                edges[n_edges, 1] = to
                n_edges += 1
                last = to
        if here == first and distances[here] <= 0:  # nothing else is asked for
            while n > first + 1:
                n -= 1
                slots[_agreeing_slot(pairs, slots, pairs[n])] = -1
        here += 1
    used[0] = n
    changes = is_told and not arena[A_CAME_TO]
    while changes and looks <= _MOST_LOOKS:
        changes = False
        looks += n_edges
        for e in range(n_edges - 1, -1, -1):
            if distances[edges[e, 1]] + 1 < distances[edges[e, 0]]:
                distances[edges[e, 0]] = distances[edges[e, 1]] + 1
                changes = True
    if not is_told or arena[A_CAME_TO] or changes:
        for k in range(first, n):
            distances[k] = -1  # which is always right
        return NOT_TOLD
    return np.int64(distances[first])
