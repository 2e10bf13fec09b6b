"""Walks of the trie in slices, with sets of threads numbered: a lazy DFA."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, boolean, int32, int64, uint8, uint16
from ..values import NO_ROOM, OK, TOO_MUCH_WORK
from .arena import A_CLASS_OF, A_CLASSES, A_EDGE_START, A_EDGES, A_LIKE, A_RETURNS, OPEN, OVERFLOW
from .cells import _LINK, _NIL, _PROBES
from .subsumption import _unite
from .threads import _COST_OF_THREAD, _follow, _may_return

#: What `walk_sets` goes on with: the node, where the tree below the last node of ``residual`` ends, how many of these
#: were entered, the numbers of ids and nodes found, cells, sets, and a stamp.
P_NODE, P_END, P_ENTERED, P_IDS, P_BELOW, P_CELLS, P_SETS, P_STAMP, PROGRESS = range(9)


@kernel
def walk_sets(
    byte: uint8[::1], depth: uint16[::1], skip: int32[::1], first_token: int32[::1], token_ids: int32[::1],
    arena: Out[int32[::1]], residual: int32[::1], entering: int64[:, ::1], start: int64, work: int64,
    progress: Out[int64[::1]], at: Out[int32[::1]], threads: Out[int64[:, ::1]], cells: Out[int64[:, ::1]],
    slots: Out[int32[::1]], begins: Out[int32[::1]], members: Out[int64[:, ::1]], returning: Out[boolean[::1]],
    set_slots: Out[int32[::1]], following: Out[int32[::1]], ids: Out[int32[::1]], sets: Out[int32[::1]],
    below: Out[int32[::1]],
) -> int64:  # fmt: skip
    """`walk_stack` in slices, with numbers for sets of threads, and where each leads to remembered: a lazy DFA.

    For walks that take long. A node costs a look-up, however many threads there are, once its set was met with its
    byte.

    Parameters
    ----------
    residual:
        Those that have ``start`` before the end of their tree.
    entering:
        ``int64[*, 3]``: the threads that enter at each of these, as state, count, and cell or `_BOTTOM`.
    start:
        The first node that is looked at; what leads to it was found before.
    work:
        Nodes to look at, about; one that takes more than a look-up counts for many.
    progress:
        ``int64[PROGRESS]``, in and out: all 0 but for `P_IDS`, `P_BELOW` and `P_CELLS` to begin with.
    at:
        ``int32[max_depth + 2]``, kept between slices: the set of the node above, by depth.
    threads, cells, slots:
        Room for the threads of a node, ``int64[*, 3]``; for cells, ``int64[*, 5]``, with ``int32[2 ** k]`` to find
        them.
    begins, members, returning, set_slots, following:
        The sets: ``int32[sets + 1]``, ``int64[*, 3]``, ``bool[sets]``, ``int32[2 ** k]``; and by set and class the
        set that follows: twice its number, plus 1 where a thread popped below the bottom, -1 while it is unknown. One
        more class stands for the threads that enter, which join the set.
    ids, below:
        As in `walk_stack`.
    sets:
        ``int32[tokens]``, out: by id where the token leads, as in ``following``.

    Returns
    -------
    `OK` at the end, `TOO_MUCH_WORK` after a slice, `NO_ROOM` where an array is too short: with more room, or with all
    sets forgotten, it can begin anew at the node that it came to.
    """
    n_classes = arena[A_CLASSES]
    width = n_classes + 1
    class_of = arena[A_CLASS_OF]
    nothing = slots[:0]
    top = progress[P_CELLS]
    n_sets = progress[P_SETS]
    if n_sets == 0:  # the empty set
        begins[0] = 0
        begins[1] = 0
        returning[0] = False
        for c in range(width):
            following[c] = 0
        following[n_classes] = -1
        n_sets = 1
    i = progress[P_NODE]
    end = progress[P_END]
    entered = progress[P_ENTERED]
    n_ids = progress[P_IDS]
    n_below = progress[P_BELOW]
    stamp = progress[P_STAMP]
    pending = residual[entered] if entered < len(residual) else len(byte)
    status = OK
    while True:
        if work <= 0:
            status = TOO_MUCH_WORK
            break
        work -= 1
        if i >= end:
            if entered == len(residual):
                break
            i = pending
            end = skip[i]
            at[depth[i]] = 0
        elif i < start and skip[i] <= start:
            i = skip[i]
            continue
        d = depth[i]
        here = at[d]
        step = 0
        if here:
            where = here * width + arena[class_of + byte[i]]
            step = following[where]
            if step < 0:
                n = np.int64(OVERFLOW)
                size = begins[here + 1] - begins[here]
                escaped = False
                if size <= len(threads):
                    _copy_threads(members, begins[here], size, threads)
                    stamp += 1
                    work -= _COST_OF_THREAD * size
                    n, more, escaped = _follow(
                        arena, arena[class_of + byte[i]], threads, 0, size, cells, slots, top, stamp, True, nothing
                    )
                if n < 0:
                    status = NO_ROOM
                    break
                work -= _COST_OF_THREAD * (n - size + more - top)
                top = more
                number = _set_number(arena, threads, size, n, cells, begins, members, returning, set_slots, n_sets)
                if number < 0 or (number + 1) * width > len(following):
                    status = NO_ROOM
                    break
                if number == n_sets:
                    n_sets += 1
                    _begin_set(arena, cells, members, begins[number], begins[n_sets], following, number * width)
                    work -= n - size
                step = 2 * number + (1 if escaped else 0)
                following[where] = step
        here = step >> 1
        if i == pending:
            where = here * width + n_classes
            if following[where] < 0:
                size = begins[here + 1] - begins[here]
                n = np.int64(OVERFLOW)
                if size + len(entering) <= len(threads):
                    _copy_threads(members, begins[here], size, threads)
                    for k in range(len(entering)):
                        for column in range(3):
                            threads[size + k, column] = entering[k, column]
                    n, top = _unite(arena, threads, 0, size + len(entering), cells, slots, top, True, nothing)
                if n < 0:
                    status = NO_ROOM
                    break
                number = _set_number(arena, threads, 0, n, cells, begins, members, returning, set_slots, n_sets)
                if number < 0 or (number + 1) * width > len(following):
                    status = NO_ROOM
                    break
                if number == n_sets:
                    n_sets += 1
                    _begin_set(arena, cells, members, begins[number], begins[n_sets], following, number * width)
                following[where] = number
                work -= _COST_OF_THREAD * n
            here = following[where]
            entered += 1
            pending = residual[entered] if entered < len(residual) else len(byte)
        after = skip[i]
        if i >= start:
            if step:
                for t in range(first_token[i], first_token[i + 1]):
                    ids[n_ids] = token_ids[t]
                    sets[n_ids] = step
                    n_ids += 1
            if i + 1 < after and (step & 1 or returning[here]):
                below[n_below] = i
                n_below += 1
        if i + 1 < after and here:
            at[d + 1] = here
            i += 1
        elif pending < after:
            # Nothing is alive between here and the next place to enter.
            i = pending
            for e in range(d, depth[i]):
                at[e + 1] = 0
        else:
            i = after
    progress[P_NODE] = i
    progress[P_END] = end
    progress[P_ENTERED] = entered
    progress[P_IDS] = n_ids
    progress[P_BELOW] = n_below
    progress[P_CELLS] = top
    progress[P_SETS] = n_sets
    progress[P_STAMP] = stamp
    return status


@helper
def _mark_edges(arena, state, following, where):
    """Make the classes unknown for which a state, or the one that it is like, has edges; all where one is open."""
    classes = arena[A_CLASS_OF]
    while state >= 0:
        if arena[arena[A_LIKE] + state] == OPEN:
            for c in range(arena[A_CLASSES]):
                following[where + c] = -1
            return
        for edge in range(arena[arena[A_EDGE_START] + state], arena[arena[A_EDGE_START] + state + 1]):
            at = arena[A_EDGES] + 2 * edge
            for c in range(arena[classes + (arena[at] & 255)], arena[classes + (arena[at] >> 8)] + 1):
                following[where + c] = -1
        state = np.int64(arena[arena[A_LIKE] + state]) - 1


@helper
def _begin_set(arena, cells, members, begin, end, following, where):
    """Nothing is known of what follows a set, but that classes without an edge lead nowhere.

    A byte may be left to the frames below as well; where it may be left to lower ones, nothing is known of any class.
    """
    n_classes = arena[A_CLASSES]
    returns = arena[A_RETURNS]
    for c in range(n_classes):
        following[where + c] = 0
    following[where + n_classes] = -1
    for k in range(begin, end):
        _mark_edges(arena, members[k, 0], following, where)
        cell = members[k, 2] if arena[returns + members[k, 0]] else np.int64(_NIL)
        while cell >= 0:
            frame = cell
            if cells[cell, 0] == _LINK:
                frame = cells[cell, 1]
                cell = cells[cell, 2]
            else:
                cell = np.int64(_NIL)
            if frame < 0:
                continue
            if arena[returns + cells[frame, 0]] and cells[frame, 2] >= 0:
                for c in range(n_classes):
                    following[where + c] = -1
                return
            _mark_edges(arena, cells[frame, 0], following, where)


@helper
def _copy_threads(members, begin, size, threads):
    """Lay some threads of a set out for `_follow`."""
    for k in range(size):
        for column in range(3):
            threads[k, column] = members[begin + k, column]


@helper
def _set_number(arena, threads, begin, end, cells, begins, members, returning, slots, n_sets):
    """The number of the set ``threads[begin:end]``, which are in order: ``n_sets`` for a new one; `OVERFLOW`.

    Slots may hold anything: what is found is compared.
    """
    if begin == end:
        return np.int64(0)
    size = end - begin
    key = np.int64(size)
    for k in range(begin, end):
        key = (key * 31) ^ (threads[k, 0] * 0x9E3779B1) ^ (threads[k, 1] * 0x85EBCA6B) ^ (threads[k, 2] * 0x27D4EB2F)
    slot = ((key >> 15) ^ key) & (len(slots) - 1)
    for _ in range(_PROBES):
        there = np.int64(slots[slot])
        if there <= 0 or there >= n_sets:
            break
        first = begins[there]
        same = begins[there + 1] - first == size
        k = 0
        while same and k < size:
            for column in range(3):
                same &= members[first + k, column] == threads[begin + k, column]
            k += 1
        if same:
            return there
        slot = (slot + 1) & (len(slots) - 1)
    first = begins[n_sets]
    if n_sets + 1 >= len(begins) or first + size > len(members):
        return np.int64(OVERFLOW)
    for k in range(size):
        for column in range(3):
            members[first + k, column] = threads[begin + k, column]
    begins[n_sets + 1] = first + size
    returning[n_sets] = _may_return(arena, threads, begin, end, cells)
    slots[slot] = n_sets
    return np.int64(n_sets)
