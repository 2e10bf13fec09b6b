"""Where two configurations of an automaton with a stack differ over the trie of tokens."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, int32, int64, uint8, uint16
from ..values import DEAD
from .agreement import _agree_for
from .arena import A_CLASS_OF, A_RETURNS, NOT_SINGLE, TOO_FAR, _row
from .threads import _follow, _may_return, _single_move, _start_stack, _stays_in


@kernel
def heights_of(depth: uint16[::1], deepest: Out[uint16[::1]], height: Out[uint16[::1]]) -> None:
    """By node of the trie the bytes of the longest way down, ``uint16[nodes]``, out.

    ``deepest`` is scratch, zeros, ``uint16[max_depth + 2]``: by depth, of the nodes whose parent is still to come.
    """
    for i in range(len(depth) - 1, -1, -1):
        d = depth[i]
        below = max(d, deepest[d + 1])
        deepest[d + 1] = 0
        deepest[d] = max(deepest[d], below)
        height[i] = below - d


@helper
def _are_same(arena, threads, begin, others, other, n, bytes_):
    """Whether so many threads do the same for so many bytes: 2 for equal ones, 1 where counts differ that stay in one
    zone, or 0."""
    found = 2
    for k in range(n):
        state = threads[begin + k, 0]
        count = threads[begin + k, 1]
        counted = others[other + k, 1]
        if threads[begin + k, 2] != others[other + k, 2] or state != others[other + k, 0]:
            return 0
        if count != counted:
            zone = _stays_in(arena, state, count, bytes_)
            if zone < 0 or zone != _stays_in(arena, state, counted, bytes_):
                return 0
            found = 1
    return found


#: Pairs of first moves that are remembered to lead to the same.
_PAIRS = 16

#: Columns of notes on the root, and on its child that has been looked at: by class of bytes whether both have come to
#: the same after it; where one thread each leaves no byte to frames below, the two moves after which they have, of
#: which there are fewer, how many these are, and the rows of these threads; and in ``upper`` the next child, and the
#: end of the children.
_SAME_AFTER, _FIRST_PAIR, _N_PAIRS, _ROWS, _CHILD, NOTES = 0, 256, 256 + 2 * _PAIRS, 289, 291, 293


@kernel
def walk_stack_difference(
    byte: uint8[::1], depth: uint16[::1], skip: int32[::1], first_token: int32[::1], token_ids: int32[::1],
    upper: int32[:, ::1], height: uint16[::1],
    arena: Out[int32[::1]], config: int64[::1], base: int64[::1], limit: int64, stacks: Out[int64[:, ::1]],
    slots: Out[int32[::1]], by_depth: Out[int64[:, ::1]], notes: Out[int64[:, ::1]],
    pairs: int64[::1], distances: int32[::1], pair_slots: int32[::1], ids: Out[int32[::1]], below: Out[int32[::1]],
) -> tuple[int64, int64]:  # fmt: skip
    """Where ``config`` and ``base`` differ over the whole trie, in tokens and in nodes left to what is below.

     Like `walk_stack` from the root, except that ``ids`` and ``below`` get what one allows and the other does not.
     A subtree is left out as soon as both have come to the same threads, or to some that differ in counts which no
     token below brings to a bound, or to states that do the same for as many bytes as there are below.
    ``(TOO_FAR, 0)`` where more than ``limit`` nodes, threads and cells tell them apart,
     or they need more room than there is.

     Parameters
     ----------
     upper:
         As in `walk_stack`: of the nodes in it, those are looked at after which it is not known that both have come to
         the same.
     height:
         ``uint16[nodes]``: the bytes of the longest way down from a node.
     config, base:
         ``int64[2 * n]``: state and count, then those of the stack cells above the unknown bottom, topmost first. The
         count of a state may be `UNBOUNDED`, less a zone.
     stacks, slots, by_depth:
         Scratch, as in `walk_stack`, but that there are three rows in place of two.
     notes:
         Scratch: ``int64[2, NOTES]``.
     pairs, distances, pair_slots:
         For how many bytes some states do the same, as `agreement` has it; empty ones where that is not known.
    """
    room = len(slots) // 2
    threads = stacks[:room]
    others = stacks[room : 2 * room]
    cells = stacks[2 * room : 3 * room]  # of both
    first = by_depth[0]
    second = by_depth[1]
    tops = by_depth[2]
    top, others[0, 0], others[0, 1], others[0, 2] = _start_stack(arena, base, cells, slots, np.int64(0))
    if top < 0:
        return TOO_FAR, 0
    top, threads[0, 0], threads[0, 1], threads[0, 2] = _start_stack(arena, config, cells, slots, top)
    if top < 0:
        return TOO_FAR, 0
    tops[0] = top
    first[0] = 0
    first[1] = 1
    second[0] = 0
    second[1] = 1
    n_ids = 0
    n_below = 0
    if _may_return(arena, threads, 0, 1, cells) != _may_return(arena, others, 0, 1, cells):
        below[0] = 0
        n_below = 1
    visited = 0
    for c in range(NOTES):
        notes[0, c] = 0
        notes[1, c] = 0
    notes[0, _CHILD] = 1
    notes[0, _CHILD + 1] = upper[2, 1]
    level = 0
    opened = True
    i = end = np.int64(0)
    while True:
        if i >= end:
            if opened:
                opened = False
                notes[level, _ROWS] = 0
                notes[level, _ROWS + 1] = 0
                if first[level + 1] == first[level] + 1 and second[level + 1] == second[level] + 1:
                    state = threads[first[level], 0]
                    its = others[second[level], 0]
                    if not arena[arena[A_RETURNS] + state] and not arena[arena[A_RETURNS] + its]:
                        notes[level, _ROWS] = _row(arena, state)
                        notes[level, _ROWS + 1] = _row(arena, its)
            while level >= 0:
                while notes[level, _CHILD] < notes[level, _CHILD + 1]:
                    c = arena[arena[A_CLASS_OF] + upper[0, notes[level, _CHILD]]]
                    for pair in range(_FIRST_PAIR, _FIRST_PAIR + 2 * notes[level, _N_PAIRS], 2):
                        if (
                            notes[level, pair] == arena[notes[level, _ROWS] + c]
                            and notes[level, pair + 1] == arena[notes[level, _ROWS + 1] + c]
                        ):
                            notes[level, _SAME_AFTER + c] = 1
                    if not notes[level, _SAME_AFTER + c]:
                        break
                    notes[level, _CHILD] += 1
                if notes[level, _CHILD] < notes[level, _CHILD + 1]:
                    break
                level -= 1
            if level < 0:
                break
            i = np.int64(upper[1, notes[level, _CHILD]])
            end = np.int64(skip[i]) if level else i + 1
            notes[level, _CHILD] += 1
        d = depth[i]
        begin = first[d]
        other = second[d]
        c = arena[arena[A_CLASS_OF] + byte[i]]
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
                arena, c, threads, first[d - 1], begin, cells, slots, top, 2 * visited - 1, True, slots[:0]
            )
            m, top, leapt = _follow(
                arena, c, others, second[d - 1], other, cells, slots, top, 2 * visited, True, slots[:0]
            )
            limit -= n - first[d - 1] + m - second[d - 1] + top - tops[d - 1] - 3
        if n < 0 or m < 0 or limit < 0:
            return TOO_FAR, 0
        if escaped == leapt and n - begin == m - other:
            same = _are_same(arena, threads, begin, others, other, n - begin, np.int64(height[i]))
            if not same and n == begin + 1 and threads[begin, 2] == others[other, 2]:
                same = np.int64(_agree_for(
                    arena, threads[begin, 0], threads[begin, 1], others[other, 0], others[other, 1],
                    np.int64(height[i]), pairs, distances, pair_slots,
                ))  # fmt: skip
            if same:
                if d <= 2 and same == 2:
                    notes[d - 1, _SAME_AFTER + c] = 1
                    pair = _FIRST_PAIR + 2 * notes[d - 1, _N_PAIRS]
                    if notes[d - 1, _ROWS] and pair < _N_PAIRS:
                        notes[d - 1, pair] = arena[notes[d - 1, _ROWS] + c]
                        notes[d - 1, pair + 1] = arena[notes[d - 1, _ROWS + 1] + c]
                        notes[d - 1, _N_PAIRS] += 1
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
            for c in range(_N_PAIRS + 1):
                notes[1, c] = 0
            notes[1, _CHILD] = upper[2, notes[0, _CHILD] - 1]
            notes[1, _CHILD + 1] = upper[2, notes[0, _CHILD]]
    return n_ids, n_below
