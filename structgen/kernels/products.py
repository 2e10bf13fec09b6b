"""Products of two automata: intersection, union, difference."""

from __future__ import annotations

import numpy as np

from .jit import bare_kernel, inlined, kernel
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


@bare_kernel
def prove_places(options, groups, first, members, is_lower, good, proved, at, most):
    """The largest set of places such that each is come to be left, supposed of what is lower: a least solution within
    a greatest one, for some time.

    Place ``p`` has the options ``options[p]`` to ``options[p + 1]``, an option has groups likewise, a group the
    members from ``first`` on. A place is *proved* by an option of which each group has a member that is: ``good``
    where the option is lower, else proved before. What is not proved is not good. It goes on at ``at``, ``int64[2]``:
    the next place of this sweep, how many it proved. Returns whether it is done, or looked at ``most`` members.
    """
    while True:
        while at[0] >= 0:
            place = at[0]
            if most < 0:
                return False
            for option in range(options[place], options[place + 1]):
                if proved[place] or not good[place]:
                    break
                most -= 1
                holds = True
                for group in range(groups[option], groups[option + 1]):
                    has_one = False
                    for i in range(first[group], first[group + 1]):
                        most -= 1
                        has_one |= (good[members[i]] if is_lower[option] else proved[members[i]]) != 0
                    if not has_one:
                        holds = False
                        break
                if holds:
                    proved[place] = 1
                    at[1] += 1
            at[0] -= 1
        at[0] = len(good) - 1
        if at[1]:
            at[1] = 0
            continue
        is_done = True
        for place in range(len(good)):
            if good[place] != proved[place]:
                is_done = False
        if is_done:
            return True
        for place in range(len(good)):
            good[place] = proved[place]
            proved[place] = 0
