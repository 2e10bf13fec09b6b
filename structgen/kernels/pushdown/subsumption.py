"""Stacks that add nothing to others, and are left out; see `structgen.runtime.pushdown.stacks`."""

from __future__ import annotations

import numpy as np

from ..jit import helper
from .arena import A_RETURNS, OVERFLOW
from .cells import _BOTTOM, _LINK, _NIL, _sort_threads, _stack_cell

#: Among so many threads or stacks it is looked for what adds nothing, through so many frames that a byte may be left
#: to; and how often frames are compared. (What is not found costs time, no more.)
_FEW, _LOOKED, _COMPARED = 32, 32, 1 << 12

#: Where scratch says that a list of stacks was too long.
TOO_LONG = 1

#: Room for the frames that a byte may be left to, of one stack; where that of the first begins, and that of members.
_ROOM, _FIRST, _MEMBERS = 64, 64, 512


@helper
def _add_handed(cells, ref, found, base, n):
    """Add the frames of a stack, one or the members of a list, to ``found[base:base + n]``."""
    while ref >= 0 and n < _ROOM:
        frame = ref
        ref = np.int64(_NIL)
        if cells[frame, 0] == _LINK:
            ref = cells[frame, 2]
            frame = cells[frame, 1]
        if frame >= 0:
            k = 0
            while k < n and found[base + k] != frame:
                k += 1
            if k == n:
                found[base + n] = frame
                n += 1
    return n


@helper
def _handed(arena, cells, ref, found, base):
    """Write the frames that the next byte may be left to, the upper ones first; returns how many."""
    n = _add_handed(cells, ref, found, base, np.int64(0))
    i = 0
    while i < n and i < _LOOKED:
        frame = np.int64(found[base + i])
        i += 1
        if arena[arena[A_RETURNS] + cells[frame, 0]]:
            n = _add_handed(cells, cells[frame, 2], found, base, n)
    return n


@helper
def _are_the_same(arena, cells, stack, other, found, base):
    """The innermost comparison."""
    return stack == other


def _comparing(deeper):
    """A comparison of stacks, which compares those below equal frames by another one."""

    @helper
    def subsumes(arena, cells, stack, other, found, base):
        if stack == other:
            return True
        if stack < 0 or found[0] <= 0:
            return False
        n = _handed(arena, cells, stack, found, base)
        ref = other
        while ref != _NIL:
            member = ref
            ref = np.int64(_NIL)
            if member >= 0 and cells[member, 0] == _LINK:
                ref = cells[member, 2]
                member = cells[member, 1]
            if member == _BOTTOM:
                if not cells[stack, 3]:
                    return False
                continue
            k = 0
            while k < n:
                frame = np.int64(found[base + k])
                found[0] -= 1
                if frame == member or (
                    cells[frame, 0] == cells[member, 0]
                    and cells[frame, 1] == cells[member, 1]
                    and deeper(arena, cells, cells[frame, 2], cells[member, 2], found, base + _ROOM)
                ):
                    break
                k += 1
            if k == n:
                return False
        return True

    return subsumes


#: Whether a stack is seen to add nothing to another one, so far below equal frames.
_subsumes = _comparing(_comparing(_comparing(_comparing(_are_the_same))))


@helper
def _thinned_list(arena, cells, slots, top, ref, found):
    """A list of stacks without those that add nothing to another one: a stack, or a shorter list.

    Returns (the stack or `OVERFLOW`, the first free cell).
    """
    m = 0
    here = ref
    while here >= 0:
        if m == _FEW:
            return ref, top
        found[_MEMBERS + m] = cells[here, 1]
        m += 1
        here = cells[here, 2]
    left = m
    for i in range(m):
        frame = np.int64(found[_MEMBERS + i])
        if frame < 0:  # the bottom, or gone
            continue
        if arena[arena[A_RETURNS] + cells[frame, 0]]:
            n = _handed(arena, cells, cells[frame, 2], found, np.int64(_FIRST))
            for j in range(m):
                lower = np.int64(found[_MEMBERS + j])
                is_there = lower == _BOTTOM and cells[frame, 3] != 0
                for k in range(n):
                    is_there |= lower >= 0 and lower == found[_FIRST + k]
                if is_there and j != i:
                    found[_MEMBERS + j] = _NIL
                    left -= 1
        for j in range(i):
            other = np.int64(found[_MEMBERS + j])
            if other < 0 or cells[other, 0] != cells[frame, 0] or cells[other, 1] != cells[frame, 1]:
                continue
            if _subsumes(arena, cells, cells[other, 2], cells[frame, 2], found, np.int64(_FIRST)):
                found[_MEMBERS + i] = _NIL
                left -= 1
                break
            if _subsumes(arena, cells, cells[frame, 2], cells[other, 2], found, np.int64(_FIRST)):
                found[_MEMBERS + j] = _NIL
                left -= 1
    if left == m:
        return ref, top
    below = np.int64(_NIL)
    for i in range(m - 1, -1, -1):
        member = np.int64(found[_MEMBERS + i])
        if member == _NIL:
            continue
        if left == 1:
            return member, top
        below = _stack_cell(arena, cells, slots, top, np.int64(_LINK), member, below, len(found))
        if below < 0:
            return np.int64(OVERFLOW), top
        top = max(top, below + 1)
    return below, top


@helper
def _thinned(arena, threads, n, ended, cells, slots, top, found):
    """Leave out of ``threads[:n]`` those whose texts another one takes as well, and of their stacks likewise.

    Returns (how many are left or `OVERFLOW`, whether the text may have ended with an empty stack, the first free cell).
    """
    found[0] = _COMPARED
    for i in range(n):
        ref = threads[i, 2]
        if ref >= 0 and cells[ref, 0] == _LINK:
            ref, top = _thinned_list(arena, cells, slots, top, ref, found)
            if ref == OVERFLOW:
                return np.int64(OVERFLOW), ended, top
            threads[i, 2] = ref
    if n > _FEW:
        return n, ended, top
    left = n
    for i in range(n):
        state, stack = threads[i, 0], threads[i, 2]
        if state < 0 or not arena[arena[A_RETURNS] + state]:
            continue
        if stack == _BOTTOM or cells[stack, 3]:
            ended = np.int64(0)
        frames = _handed(arena, cells, stack, found, np.int64(_FIRST))
        for k in range(frames):
            frame = np.int64(found[_FIRST + k])
            for j in range(n):
                if j == i or threads[j, 0] != cells[frame, 0] or threads[j, 1] != cells[frame, 1]:
                    continue
                if _subsumes(arena, cells, cells[frame, 2], threads[j, 2], found, np.int64(_FIRST + _ROOM)):
                    threads[j, 0] = -1
                    left -= 1
    if left == n:
        return n, ended, top
    kept = 0
    for i in range(n):
        if threads[i, 0] >= 0:
            for column in range(3):
                threads[kept, column] = threads[i, column]
            kept += 1
    return np.int64(kept), ended, top


@helper
def _unite(arena, threads, begin, n, cells, slots, top, united, found):
    """Leave each of ``threads[begin:n]`` there once, in order; if ``united``, those with equal tops become one.

    With scratch in ``found``, stacks are left out that add nothing to others, and too many at once are an `OVERFLOW`
    that it tells of. Returns (end of the threads or
    `OVERFLOW`, first free cell).
    """
    _sort_threads(threads, begin, n)
    kept = begin
    i = begin
    while i < n:
        state = threads[i, 0]
        count = threads[i, 1]
        below = threads[i, 2]
        i += 1
        different = False
        first = i - 1
        while i < n and threads[i, 0] == state and threads[i, 1] == count and (united or threads[i, 2] == below):
            different |= threads[i, 2] != below
            i += 1
        if different:
            # The members of all their sets, sorted, behind the threads; then the list, from its end.
            m = n
            for k in range(first, i):
                ref = threads[k, 2]
                if k > first and ref == threads[k - 1, 2]:
                    continue
                if ref == _BOTTOM or cells[ref, 0] != _LINK:
                    if m >= len(threads):
                        return OVERFLOW, top
                    threads[m, 0] = ref
                    m += 1
                    continue
                while ref != _NIL:
                    if m >= len(threads):
                        return OVERFLOW, top
                    threads[m, 0] = cells[ref, 1]
                    m += 1
                    ref = cells[ref, 2]
            if len(found) and m - n > _FEW:
                found[TOO_LONG] = 1
                return OVERFLOW, top
            for k in range(n, m):
                threads[k, 1] = 0
                threads[k, 2] = 0
            _sort_threads(threads, n, m)
            below = np.int64(_NIL)
            for k in range(m - 1, n - 1, -1):
                if k + 1 < m and threads[k, 0] == threads[k + 1, 0]:
                    continue
                below = _stack_cell(arena, cells, slots, top, np.int64(_LINK), threads[k, 0], below, len(found))
                if below < 0:
                    return OVERFLOW, top
                top = max(top, below + 1)
            if cells[below, 2] == _NIL:
                below = cells[below, 1]
            elif len(found):
                found[0] = _COMPARED
                below, top = _thinned_list(arena, cells, slots, top, below, found)
                if below == OVERFLOW:
                    return OVERFLOW, top
        threads[kept, 0] = state
        threads[kept, 1] = count
        threads[kept, 2] = below
        kept += 1
    return kept, top
