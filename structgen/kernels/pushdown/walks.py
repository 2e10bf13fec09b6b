"""Walks of the trie of tokens through an automaton with a stack; docs/internals/stacks.md derives them."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, int32, int64, uint8, uint16
from ..subset_construction import _zone
from ..values import DEAD, SET
from .arena import (
    A_CLASS_OF,
    A_FREE,
    A_LIVE,
    A_LOOPS,
    A_RECORDS,
    A_RETURNS,
    A_ROWS,
    A_SINGLE,
    A_STATES,
    SINGLE_POP,
    _lay_out,
    _row,
)
from .cells import _BOTTOM
from .subsumption import _unite
from .threads import _COST_OF_NODE, _follow, _may_return, _start_stack


@helper
def _next_live(arena, row, upper, at, end):
    """The first node of ``upper[:, at:end]`` whose byte is not dead in a row; ``end`` where there is none."""
    while at < end and arena[row + arena[arena[A_CLASS_OF] + upper[0, at]]] == DEAD:
        at += 1
    return at


@kernel
def walk_stack(
    byte: uint8[::1], depth: uint16[::1], skip: int32[::1], first_token: int32[::1], token_ids: int32[::1],
    upper: int32[:, ::1], arena: Out[int32[::1]], residual: int32[::1], config: int64[::1], work: int64, nodes: int64,
    stacks: Out[int64[:, ::1]], slots: Out[int32[::1]], by_depth: Out[int64[:, ::1]], ids: Out[int32[::1]],
    below: Out[int32[::1]],
) -> tuple[int64, int64, int64]:  # fmt: skip
    """The tokens that a configuration with an unknown stack below allows, from several places of the trie.

    Parameters
    ----------
    upper:
        ``int32[3, *]``: bytes, numbers and first children of the nodes that have at most two bytes, breadth first. A
        walk from the root looks at those alone that the thread above has a move for.
    residual:
        ``int32[*]``, ascending nodes; the subtree below each is walked from ``config``. Node 0 is the whole trie.
    config:
        ``int64[2 * n]``: state and count, then those of the stack cells above the unknown bottom, topmost first.
    work:
        Threads that it may follow, where there is more to do than to look up where one moves.
    nodes:
        Nodes that it may look at.
    stacks, slots, by_depth:
        Scratch: ``int64[*, CELL]``, with two rows for each thread and stack cell that the walk can have at most;
        ``int32[*]``, twice as many as there can be, a power of two; ``int64[3, max_depth + 3]``.
    ids:
        ``int32[tokens]``, out: allowed token ids, in the trie's order.
    below:
        ``int32[nodes]``, out: ascending nodes at which the rest of the token is up to the state below the bottom.

    Returns
    -------
    (number of ids, number of nodes below, the node to go on at): the number of nodes where there is nothing left to
    do, a smaller one where the room, ``work`` or ``nodes`` did not suffice. From there on it is up to `walk_sets`.

    Nodes of ``residual`` may lie below one another: there the configuration joins the threads that came down.
    """
    room = len(slots) // 2
    threads = stacks[:room]
    cells = stacks[room : 2 * room]
    first = by_depth[0]  # threads of depth d: first[d + 1]..first[d + 2]
    tops = by_depth[1]  # first free cell, likewise
    base_top, state, count, cell = _start_stack(arena, config, cells, slots, np.int64(0))
    if base_top < 0:
        return 0, 0, 0
    stamp = 0
    nothing = slots[:0]
    n_ids = 0
    n_below = 0
    # What the loop reads at every node is in locals: an array that is written to hides that it stays the same.
    n_states = arena[A_STATES]
    class_of = arena[A_CLASS_OF]
    rows = arena[A_ROWS]
    singles = arena[A_SINGLE] - n_states
    records = arena[A_RECORDS]
    loops = arena[A_LOOPS]
    live = arena[A_LIVE]
    returns = arena[A_RETURNS]
    entered = 0  # nodes of residual so far
    pending = residual[0] if len(residual) else len(byte)
    # Where the root alone is entered, by a thread that leaves no byte to others: its children that come next, and
    # those of the child that has been looked at, with the rows of what has moves for them.
    child = last_child = grandchild = last_grandchild = 0
    root_row = child_row = arena[A_FREE]
    from_root = False
    end = 0
    i = 0
    while True:
        if i >= end:
            if from_root:
                if grandchild < 0:
                    grandchild = last_grandchild = 0
                    if i == end and i < skip[i - 1]:  # the child is alive
                        s = threads[first[2], 0]
                        if first[3] != first[2] + 1 or (arena[returns + s] and threads[first[2], 2] != _BOTTOM):
                            end = skip[i - 1]
                            continue
                        child_row = _row(arena, s)
                        grandchild = upper[2, child - 1]
                        last_grandchild = upper[2, child]
                grandchild = _next_live(arena, child_row, upper, grandchild, last_grandchild)
                if grandchild < last_grandchild:
                    i = upper[1, grandchild]
                    end = skip[i]
                    grandchild += 1
                    continue
                child = _next_live(arena, root_row, upper, child, last_child)
                if child == last_child:
                    break
                i = upper[1, child]
                end = i + 1
                child += 1
                grandchild = -1
                continue
            if entered == len(residual):
                break
            i = pending
            end = skip[i]
            first[depth[i]] = 0
            first[depth[i] + 1] = 0
            tops[depth[i]] = base_top
        if nodes == 0:
            return n_ids, n_below, i
        nodes -= 1
        d = depth[i]
        above = first[d]
        begin = first[d + 1]
        if above + 1 == begin and i != pending:  # nearly always: one thread, which moves or dies
            s = threads[above, 0]
            row = arena[rows + s]
            if row == 0:
                row = _lay_out(arena, s)
            entry = arena[row + arena[class_of + byte[i]]]
            now = threads[above, 1]
            alone = threads[above, 2] == _BOTTOM  # so what returns leaves a byte to nobody here
            if entry >= n_states and arena[singles + entry] >= 0:  # the only move: it counts
                r = records + 5 * arena[singles + entry]
                if arena[r] == SET:
                    now = np.int64(1)
                    entry = arena[r + 2]
                else:
                    now += 1
                    loop = loops + 2 * arena[r + 1]
                    entry = arena[r + 2 + _zone(now, arena[loop], arena[loop + 1])]
            if entry < n_states and (alone or arena[returns + s] == 0):
                if entry >= 0 and begin < room and (alone or arena[returns + entry] == 0):
                    for t in range(first_token[i], first_token[i + 1]):
                        ids[n_ids] = token_ids[t]
                        n_ids += 1
                    threads[begin, 0] = entry
                    threads[begin, 1] = now if arena[live + entry] >= 0 else 0
                    threads[begin, 2] = threads[above, 2]
                    first[d + 2] = begin + 1
                    tops[d + 1] = tops[d]
                    if arena[returns + entry] and i + 1 < skip[i]:
                        below[n_below] = i
                        n_below += 1
                    i += 1  # at a leaf that is where it skips to
                    continue
                if entry < 0 and pending >= skip[i]:
                    i = skip[i]
                    continue
            elif alone and entry >= n_states and arena[singles + entry] == SINGLE_POP and pending >= skip[i]:
                for t in range(first_token[i], first_token[i + 1]):
                    ids[n_ids] = token_ids[t]
                    n_ids += 1
                if i + 1 < skip[i]:
                    below[n_below] = i
                    n_below += 1
                i = skip[i]
                continue
        n = begin
        top = tops[d]
        escaped = False
        if above < begin:
            stamp += 1
            n, top, escaped = _follow(
                arena, arena[class_of + byte[i]], threads, above, begin, cells, slots, top, stamp, True, nothing
            )
            work -= _COST_OF_NODE + n - above + top - tops[d]
            if n < 0 or work < 0:
                return n_ids, n_below, i
        alive = n > begin or escaped
        if i == pending:
            if n >= room:
                return n_ids, n_below, i
            threads[n, 0] = state
            threads[n, 1] = count
            threads[n, 2] = cell
            n += 1
            if n > begin + 1:
                n, top = _unite(arena, threads, begin, n, cells, slots, top, True, nothing)
                if n < 0:
                    return n_ids, n_below, i
            entered += 1
            pending = residual[entered] if entered < len(residual) else len(byte)
        if alive:
            for t in range(first_token[i], first_token[i + 1]):
                ids[n_ids] = token_ids[t]
                n_ids += 1
        after = skip[i]
        if i + 1 < after:
            if escaped or _may_return(arena, threads, begin, n, cells):
                below[n_below] = i
                n_below += 1
            if n > begin:
                first[d + 2] = n
                tops[d + 1] = top
                i += 1
                if i == 1 and len(residual) == 1 and (arena[returns + state] == 0 or cell == _BOTTOM):
                    from_root = True
                    root_row = _row(arena, state)
                    child = 1
                    last_child = upper[2, 1]
                    end = 1
                continue
            if pending < after:
                # Nothing is alive between here and the next place to enter.
                i = pending
                for e in range(d, depth[i]):
                    first[e + 2] = begin
                    tops[e + 1] = top
                continue
        i = after
    return n_ids, n_below, len(byte)
