"""Stacks as a graph of cells, and threads of a walk that meet in them."""

from __future__ import annotations

from ..jit import helper
from .arena import A_RETURNS, OVERFLOW

# Stacks are a graph of *cells*, each ``state, count, below, ends, stamp``: what lies below it, whether all states
# from it down to the unknown bottom may return, and when it was last visited. What lies below is a cell; or
# `_BOTTOM`; or several of these, a list of cells with the state `_LINK`, a member of the set in place of the count
# (ascending), and the next link below, or `_NIL`. Equal cells have the same number, but for a few that are missed.
_BOTTOM, _NIL, _LINK = -1, -2, -2

#: Columns of a cell, and how many slots are looked at for it. There are twice as many slots as cells.
CELL, _PROBES = 5, 16


@helper
def _may_end(cells, ref):
    """Whether all states of some stack from ``ref`` down may return."""
    return 1 if ref == _BOTTOM else 0 if ref == _NIL else cells[ref, 3]


@helper
def _cell_slot(slots, state, count, below):
    """The first slot in which a cell may be found."""
    key = (state * 0x9E3779B1) ^ (count * 0x85EBCA6B) ^ (below * 0x27D4EB2F)
    return ((key >> 15) ^ key) & (len(slots) - 1)


@helper
def _stack_cell(arena, cells, slots, top, state, count, below, more):
    """The number of a cell, ``top`` for a new one; `OVERFLOW`. Slots may hold anything: what is found is compared.

    ``more`` slots than usually are looked at, where these hold nothing else and equal cells must have one number.
    """
    slot = _cell_slot(slots, state, count, below)
    for _ in range(_PROBES + more):
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


@helper
def _is_before(threads, i, j):
    """Whether one thread comes before another one in the order of states, counts and stacks."""
    if threads[i, 0] != threads[j, 0]:
        return threads[i, 0] < threads[j, 0]
    if threads[i, 1] != threads[j, 1]:
        return threads[i, 1] < threads[j, 1]
    return threads[i, 2] < threads[j, 2]


@helper
def _are_alike(threads, i):
    """Whether a thread and the next one have equal states and counts."""
    return threads[i, 0] == threads[i + 1, 0] and threads[i, 1] == threads[i + 1, 1]


@helper
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
