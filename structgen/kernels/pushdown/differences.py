"""Where two configurations of an automaton with a stack differ over the trie of tokens."""

from __future__ import annotations

import numpy as np

from ..jit import inlined, kernel
from ..values import DEAD
from .arena import A_CLASS_OF, A_CLASSES, A_RETURNS, A_STATES, NOT_SINGLE, TOO_FAR, _row
from .cells import CELL
from .set_walks import _are_same
from .threads import _follow, _may_return, _single_move, _start_stack


@kernel
def heights_of(depth, max_depth):
    """By node of the trie the bytes of the longest way down, ``uint16[nodes]``."""
    height = np.empty(len(depth), np.uint16)
    deepest = np.zeros(max_depth + 2, np.uint16)  # by depth, of the nodes whose parent is still to come
    for i in range(len(depth) - 1, -1, -1):
        d = depth[i]
        below = max(d, deepest[d + 1])
        deepest[d + 1] = 0
        deepest[d] = max(deepest[d], below)
        height[i] = below - d
    return height


@kernel
def kinds_below(byte, depth, max_depth, kinds):
    """By node of the trie which kinds of bytes are on the edge into it and on those below, ``uint64[nodes]``.

    ``kinds`` is ``uint64[256]``: one bit each.
    """
    below = np.empty(len(byte), np.uint64)
    met = np.zeros(max_depth + 2, np.uint64)  # by depth, on edges into nodes whose parent is still to come
    for i in range(len(byte) - 1, -1, -1):
        d = depth[i]
        below[i] = kinds[byte[i]] | met[d + 1]
        met[d + 1] = 0
        met[d] |= below[i]
    return below


#: Pairs of states that are looked at to tell where two states agree, and pairs of which it is remembered.
_MOST_PAIRS, _REMEMBERED = 64, 8

#: All kinds of bytes.
_EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _parting_kinds(arena, state, other, kinds):
    """The kinds of bytes that one of two states takes by a plain move and the other one does not, ``kinds`` those of
    each class; all where either returns."""
    if arena[arena[A_RETURNS] + state] or arena[arena[A_RETURNS] + other]:
        return _EVERY
    row = _row(arena, state)
    row_of_other = _row(arena, other)
    found = np.uint64(0)
    for c in range(arena[A_CLASSES]):
        here = arena[row + c]
        there = arena[row_of_other + c]
        if (here >= 0) != (there >= 0) or here >= arena[A_STATES] or there >= arena[A_STATES]:
            found |= kinds[c]
    return found


@inlined
def _telling_kinds(arena, state, other, kinds, pairs):
    """Kinds of bytes without any of which two states, whatever lies below them, allow the same texts.

    A fixed point: from the kinds that part the two themselves on, each that leads to a pair which others part.

    Parameters
    ----------
    kinds:
        ``uint64[classes]``: of the bytes of each class.
    pairs:
        Room: ``int64[_MOST_PAIRS, 2]``.
    """
    telling = _parting_kinds(arena, state, other, kinds)
    pairs[0, 0] = state
    pairs[0, 1] = other
    n = 0
    while n == 0 and telling != _EVERY:
        n = 1
        here = 0
        while here < n:
            row = _row(arena, pairs[here, 0])
            row_of_other = _row(arena, pairs[here, 1])
            for c in range(arena[A_CLASSES]):
                target = np.int64(arena[row + c])
                its = np.int64(arena[row_of_other + c])
                if kinds[c] & telling or target < 0:
                    continue
                k = 0
                while k < n and (pairs[k, 0] != target or pairs[k, 1] != its):
                    k += 1
                if k < n:
                    continue
                if n == len(pairs):
                    return _EVERY
                pairs[n, 0] = target
                pairs[n, 1] = its
                n += 1
                if _parting_kinds(arena, target, its, kinds) & ~telling:
                    telling |= kinds[c]
                    n = 0  # begin again
                    break
            here += 1
    return telling


#: Pairs of first moves that are remembered to lead to the same.
_PAIRS = 16

#: Trees of fewer nodes are looked at node by node; and it is not asked what tells states apart before so many nodes
#: were, for most differences are over by then.
_FEW_NODES, _MANY_NODES = 4, 256


@kernel
def walk_stack_difference(
    byte, depth, skip, first_token, token_ids, max_depth, upper, height, met, kinds, arena, config, base, room, limit,
    ids, below
):  # fmt: skip
    """Where ``config`` and ``base`` differ over the whole trie, in tokens and in nodes left to what is below.

    Like `walk_stack` from the root, except that ``ids`` and ``below`` get what one allows and the other does not.
    A subtree is left out as soon as both have come to the same threads, or to some that differ in counts which no
    token below brings to a bound, or in states which no byte below tells apart. ``(TOO_FAR, 0)`` where more than
    ``limit`` nodes, threads and cells tell them apart, or they need more than ``room``.

    Parameters
    ----------
    upper:
        As in `walk_stack`: of the nodes in it, those are looked at after which it is not known that both have come to
        the same.
    height:
        ``uint16[nodes]``: the bytes of the longest way down from a node.
    met, kinds:
        ``uint64[nodes]``: which kinds of bytes are into a node and below it; ``uint64[classes]``: those of a class.
    config, base:
        ``int64[2 * n]``: state and count, then those of the stack cells above the unknown bottom, topmost first. The
        count of a state may be `UNBOUNDED`, less a zone.
    """
    threads = np.empty((room, 3), np.int64)
    others = np.empty((room, 3), np.int64)
    cells = np.empty((room, CELL), np.int64)  # of both
    slots = np.empty(2 * room, np.int32)
    first = np.zeros(max_depth + 2, np.int32)
    second = np.zeros(max_depth + 2, np.int32)
    tops = np.zeros(max_depth + 2, np.int64)
    top, others[0, 0], others[0, 1], others[0, 2] = _start_stack(arena, base, cells, slots, np.int64(0))
    if top < 0:
        return TOO_FAR, 0
    top, threads[0, 0], threads[0, 1], threads[0, 2] = _start_stack(arena, config, cells, slots, top)
    if top < 0:
        return TOO_FAR, 0
    tops[0] = top
    first[1] = 1
    second[1] = 1
    n_ids = 0
    n_below = 0
    if _may_return(arena, threads, 0, 1, cells) != _may_return(arena, others, 0, 1, cells):
        below[0] = 0
        n_below = 1
    visited = 0
    # Of the root, and of its child that has been looked at: classes of bytes after which both have come to the same,
    # and where one thread each leaves no byte to frames below, the two moves, of which there are fewer; the rows of
    # these threads; and in `upper` the next child, and the end of the children.
    same_after = np.zeros((2, 256), np.bool_)
    pairs = np.empty((2, _PAIRS, 2), np.int64)
    n_pairs = np.zeros(2, np.int64)
    rows = np.zeros((2, 2), np.int64)
    child = np.ones((2, 2), np.int64)
    child[0, 1] = upper[2, 1]
    level = 0
    opened = True
    room_for_pairs = np.empty((_MOST_PAIRS, 2), np.int64)
    known = np.empty((_REMEMBERED, 2), np.int64)  # pairs of states, and what tells them apart
    telling = np.empty(_REMEMBERED, np.uint64)
    n_known = 0
    i = end = np.int64(0)
    while True:
        if i >= end:
            if opened:
                opened = False
                rows[level] = 0
                if first[level + 1] == first[level] + 1 and second[level + 1] == second[level] + 1:
                    state = threads[first[level], 0]
                    its = others[second[level], 0]
                    if not arena[arena[A_RETURNS] + state] and not arena[arena[A_RETURNS] + its]:
                        rows[level, 0] = _row(arena, state)
                        rows[level, 1] = _row(arena, its)
            while level >= 0:
                while child[level, 0] < child[level, 1]:
                    c = arena[arena[A_CLASS_OF] + upper[0, child[level, 0]]]
                    for k in range(n_pairs[level]):
                        if (
                            pairs[level, k, 0] == arena[rows[level, 0] + c]
                            and pairs[level, k, 1] == arena[rows[level, 1] + c]
                        ):
                            same_after[level, c] = True
                    if not same_after[level, c]:
                        break
                    child[level, 0] += 1
                if child[level, 0] < child[level, 1]:
                    break
                level -= 1
            if level < 0:
                break
            i = np.int64(upper[1, child[level, 0]])
            end = np.int64(skip[i]) if level else i + 1
            child[level, 0] += 1
        d = depth[i]
        begin = first[d]
        other = second[d]
        c = arena[arena[A_CLASS_OF] + byte[i]]
        if (
            visited > _MANY_NODES and skip[i] > i + _FEW_NODES
            and begin == first[d - 1] + 1 and other == second[d - 1] + 1
        ):  # fmt: skip
            state = threads[begin - 1, 0]
            its = others[other - 1, 0]
            k = 0
            while k < n_known and (known[k, 0] != state or known[k, 1] != its):
                k += 1
            if k == n_known and n_known < _REMEMBERED:
                known[k, 0] = state
                known[k, 1] = its
                telling[k] = _telling_kinds(arena, state, its, kinds, room_for_pairs)
                n_known += 1
            if k < n_known and not met[i] & telling[k]:
                i = skip[i]
                continue
        visited += 1
        top = tops[d - 1]
        if begin >= room or other >= room:
            return TOO_FAR, 0
        escaped = False
        leapt = False
        now = np.int64(DEAD)
        then = np.int64(DEAD)
        count = np.int64(0)
        counted = np.int64(0)
        if begin > first[d - 1]:
            now, count = _single_move(arena, threads[begin - 1, 0], threads[begin - 1, 1], c)
        if other > second[d - 1]:
            then, counted = _single_move(arena, others[other - 1, 0], others[other - 1, 1], c)
        if now != NOT_SINGLE and then != NOT_SINGLE and begin <= first[d - 1] + 1 and other <= second[d - 1] + 1:
            n = begin
            m = other
            if now >= 0:
                threads[n, 0] = now
                threads[n, 1] = count
                threads[n, 2] = threads[begin - 1, 2]
                n += 1
            if then >= 0:
                others[m, 0] = then
                others[m, 1] = counted
                others[m, 2] = others[other - 1, 2]
                m += 1
            limit -= 1
        else:
            n, top, escaped = _follow(
                arena, c, threads, first[d - 1], begin, cells, slots, top, 2 * visited - 1, True
            )
            m, top, leapt = _follow(arena, c, others, second[d - 1], other, cells, slots, top, 2 * visited, True)
            limit -= n - first[d - 1] + m - second[d - 1] + top - tops[d - 1] - 3
        if n < 0 or m < 0 or limit < 0:
            return TOO_FAR, 0
        if escaped == leapt and n - begin == m - other:
            same = _are_same(arena, threads, begin, others, other, n - begin, np.int64(height[i]))
            if same:
                if d <= 2 and same == 2:
                    same_after[d - 1, c] = True
                    if rows[d - 1, 0] and n_pairs[d - 1] < _PAIRS:
                        pairs[d - 1, n_pairs[d - 1], 0] = arena[rows[d - 1, 0] + c]
                        pairs[d - 1, n_pairs[d - 1], 1] = arena[rows[d - 1, 1] + c]
                        n_pairs[d - 1] += 1
                i = skip[i]
                continue
        if (n > begin or escaped) != (m > other or leapt):
            for t in range(first_token[i], first_token[i + 1]):
                ids[n_ids] = token_ids[t]
                n_ids += 1
        deeper = i + 1 < skip[i]
        if deeper:
            here = escaped or _may_return(arena, threads, begin, n, cells)
            there = leapt or _may_return(arena, others, other, m, cells)
            if here != there:
                below[n_below] = i
                n_below += 1
        if not deeper or (n == begin and m == other):
            i = skip[i]
            continue
        first[d + 1] = n
        second[d + 1] = m
        tops[d] = top
        i += 1
        if d == 1:
            level = 1
            opened = True
            same_after[1] = False
            n_pairs[1] = 0
            child[1, 0] = upper[2, child[0, 0] - 1]
            child[1, 1] = upper[2, child[0, 0]]
    return n_ids, n_below
