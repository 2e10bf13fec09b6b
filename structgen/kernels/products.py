"""Products of two automata: intersection, union, difference."""

from __future__ import annotations

import numpy as np

from .jit import inlined, kernel
from .values import DEAD, NO_ROOM, OK, TOO_MANY_STATES, TOO_MUCH_WORK


@kernel
def intersect(table_a, accepting_a, table_b, accepting_b, n_classes, max_states, max_work, at, left, right, table,
              slots):  # fmt: skip
    """Reachable product of two DFAs over the same classes, for some time.

    ``at`` says how many states there are and which comes next; state ``s`` is the pair ``left[s], right[s]``, the
    first of them given; ``slots`` is their hash table, a power of two, -1 where empty. The construction goes on from
    there, until it is done, ``max_work`` is, or a state may need more room than these arrays have (NO_ROOM).

    Returns (status, slots).
    """
    n_b = len(accepting_b)
    n = at[0]
    s = at[1]
    work = 0
    if n == 1:
        slots[np.int64(_pair_hash(left[0], right[0], n_b) & np.uint64(len(slots) - 1))] = 0
    while s < n:
        if n + n_classes > len(left) or (s + 1) * n_classes > len(table) or work > max_work:
            at[0] = n
            at[1] = s
            return TOO_MUCH_WORK if work > max_work else NO_ROOM, slots
        work += n_classes
        for c in range(n_classes):
            p = table_a[left[s] * n_classes + c]
            q = table_b[right[s] * n_classes + c]
            target = DEAD
            if p >= 0 and q >= 0:
                slot = np.int64(_pair_hash(p, q, n_b) & np.uint64(len(slots) - 1))
                while slots[slot] >= 0:
                    r = slots[slot]
                    if left[r] == p and right[r] == q:
                        target = r
                        break
                    slot = (slot + 1) & (len(slots) - 1)
                if target < 0:
                    if n >= max_states:
                        return TOO_MANY_STATES, slots
                    target = n
                    left[n] = p
                    right[n] = q
                    slots[slot] = n
                    n += 1
                    if 2 * n > len(slots):
                        slots = np.full(2 * len(slots), -1, np.int32)
                        for r in range(n):
                            slot = np.int64(_pair_hash(left[r], right[r], n_b) & np.uint64(len(slots) - 1))
                            while slots[slot] >= 0:
                                slot = (slot + 1) & (len(slots) - 1)
                            slots[slot] = r
            table[s * n_classes + c] = target
        s += 1
    at[0] = n
    return OK, slots


@inlined
def _pair_hash(p, q, n_q):
    h = np.uint64(np.int64(p) * n_q + q) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@kernel
def co_accessible(tails, heads, goals):
    """Which nodes of a graph reach a goal: ``uint8[nodes]``, like ``goals``. Edges are ``int32[m]`` each."""
    n = len(goals)
    into = np.zeros(n + 2, np.int64)
    for i in range(len(heads)):
        into[heads[i] + 2] += 1
    for s in range(n):
        into[s + 2] += into[s + 1]
    sources = np.empty(len(tails), np.int32)
    for i in range(len(heads)):
        sources[into[heads[i] + 1]] = tails[i]
        into[heads[i] + 1] += 1
    alive = goals.copy()
    stack = np.empty(n, np.int32)
    top = 0
    for s in range(n):
        if alive[s]:
            stack[top] = s
            top += 1
    while top:
        top -= 1
        s = stack[top]
        for i in range(into[s], into[s + 1]):
            p = sources[i]
            if not alive[p]:
                alive[p] = 1
                stack[top] = p
                top += 1
    return alive
