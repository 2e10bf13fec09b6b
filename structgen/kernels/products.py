"""Products of two automata: intersection, union, difference. Minimisation (Valmari & Lehtinen 2008)."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .signatures import Out, boolean, int32, int64, uint8
from .values import DEAD, NO_ROOM, OK, TOO_MANY_STATES, TOO_MUCH_WORK


@kernel
def intersect(
    table_a: int32[::1], accepting_a: uint8[::1], table_b: int32[::1], accepting_b: uint8[::1], n_classes: int64,
    max_states: int64, max_work: int64, at: Out[int64[::1]], left: Out[int32[::1]], right: Out[int32[::1]],
    table: Out[int32[::1]], slots: Out[int32[::1]],
) -> int64:  # fmt: skip
    """Reachable product of two DFAs over the same classes, for some time.

    ``at`` says how many states there are, which comes next, and whether the slots are to be filled anew; state ``s``
    is the pair ``left[s], right[s]``, the first of them given; ``slots`` is their hash table, a power of two, -1
    where empty. The construction goes on from there, until it is done, ``max_work`` is, or a state may need more room
    than these arrays have (NO_ROOM), of slots twice as many as states. Returns the status.
    """
    n_b = len(accepting_b)
    n = at[0]
    s = at[1]
    work = 0
    if at[2]:
        at[2] = 0
        for r in range(n):
            slots[_product_slot(slots, left, right, left[r], right[r], n_b)] = r
    while s < n:
        is_full = n + n_classes > len(left) or (s + 1) * n_classes > len(table) or 2 * (n + n_classes) > len(slots)
        if is_full or work > max_work:
            at[0] = n
            at[1] = s
            return TOO_MUCH_WORK if work > max_work else NO_ROOM
        work += n_classes
        for c in range(n_classes):
            p = table_a[left[s] * n_classes + c]
            q = table_b[right[s] * n_classes + c]
            target = DEAD
            if p >= 0 and q >= 0:
                slot = _product_slot(slots, left, right, p, q, n_b)
                target = slots[slot]
                if target < 0:
                    if n >= max_states:
                        return TOO_MANY_STATES
                    target = n
                    left[n] = p
                    right[n] = q
                    slots[slot] = n
                    n += 1
            table[s * n_classes + c] = target
        s += 1
    at[0] = n
    return OK


@helper
def _product_slot(slots, left, right, p, q, n_q):
    """The slot of a pair of states, which is free where the pair is new."""
    h = np.uint64(np.int64(p) * n_q + q) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(len(slots) - 1))
    while slots[slot] >= 0 and (left[slots[slot]] != p or right[slots[slot]] != q):
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel
def co_accessible(tails: int32[::1], heads: int32[::1], alive: Out[uint8[::1]], scratch: Out[int32[::1]]) -> None:
    """Which nodes of a graph reach a goal: ``uint8[nodes]``, in and out. Edges are ``int32[m]`` each.

    ``scratch``: ``int32[m + 2 * nodes + 2]``.
    """
    n = len(alive)
    into = scratch[: n + 2]
    stack = scratch[n + 2 : 2 * n + 2]
    sources = scratch[2 * n + 2 :]
    for s in range(n + 2):
        into[s] = 0
    for i in range(len(heads)):
        into[heads[i] + 2] += 1
    for s in range(n):
        into[s + 2] += into[s + 1]
    for i in range(len(heads)):
        sources[into[heads[i] + 1]] = tails[i]
        into[heads[i] + 1] += 1
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


@kernel
def prove_places(
    options: int64[::1], groups: int64[::1], first: int64[::1], members: int64[::1], is_lower: boolean[::1],
    good: Out[uint8[::1]], proved: Out[uint8[::1]], at: Out[int64[::1]], most: int64,
) -> boolean:  # fmt: skip
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


@helper
def _mark(e, elements, location, set_of, first, marked, touched, n_touched):
    s = set_of[e]
    i = location[e]
    j = first[s] + marked[s]
    if i >= j:
        elements[i] = elements[j]
        location[elements[i]] = i
        elements[j] = e
        location[e] = j
        if marked[s] == 0:
            touched[n_touched] = s
            n_touched += 1
        marked[s] += 1
    return n_touched


@helper
def _split(elements, set_of, first, past, marked, touched, n_touched, n_sets):
    while n_touched:
        n_touched -= 1
        s = touched[n_touched]
        j = first[s] + marked[s]
        if j == past[s]:
            marked[s] = 0
            continue
        if marked[s] <= past[s] - j:
            first[n_sets] = first[s]
            past[n_sets] = j
            first[s] = j
        else:
            past[n_sets] = past[s]
            first[n_sets] = j
            past[s] = j
        for i in range(first[n_sets], past[n_sets]):
            set_of[elements[i]] = n_sets
        marked[s] = 0
        marked[n_sets] = 0
        n_sets += 1
    return n_sets


@kernel
def coarsest_partition(
    tails: int32[::1], labels_order: int32[::1], label_starts: int32[::1], heads: int32[::1], accepting: uint8[::1],
    max_work: int64, at: Out[int64[::1]], blocks: Out[int32[:, ::1]], cords: Out[int32[:, ::1]],
    marks: Out[int32[:, ::1]], in_first: Out[int32[::1]], incoming: Out[int32[::1]],
) -> int64:  # fmt: skip
    """The coarsest partition of a partial DFA's states that respects acceptance and all transitions, for some time.

    Valmari & Lehtinen 2008, "Efficient minimization of DFAs with partial transition functions":
    O(m log n) for m live transitions. Every state must be able to reach an accepting one.

    ``tails, heads`` are ``int32[m]``; ``labels_order`` holds the transition numbers sorted by label and
    ``label_starts`` where each label's run begins (plus the end). The rest is where it stands, zeros at first: ``at``
    (blocks, cords, and how many of each are done), ``blocks`` ``int32[5, n + 1]`` (elements, location, block, first,
    past), ``cords`` ``int32[5, m + 1]``, ``marks`` ``int32[4, max(n, m) + 1]``, ``in_first`` ``int32[n + 2]``,
    ``incoming`` ``int32[m]``. It goes on from there until it is done, or ``max_work`` is.

    Returns the status; then ``blocks[2]`` holds the block of each state.
    """
    n_states = len(accepting)
    m = len(tails)
    b_elements, b_location, b_set, b_first, b_past = blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]
    c_elements, c_location, c_set, c_first, c_past = cords[0], cords[1], cords[2], cords[3], cords[4]
    marked, touched, c_marked, c_touched = marks[0], marks[1], marks[2], marks[3]
    if at[0] == 0:
        for q in range(n_states):
            b_elements[q] = q
            b_location[q] = q
        b_past[0] = n_states
        n_touched = 0
        for q in range(n_states):
            if accepting[q]:
                n_touched = _mark(q, b_elements, b_location, b_set, b_first, marked, touched, n_touched)
        at[0] = _split(b_elements, b_set, b_first, b_past, marked, touched, n_touched, 1)
        at[1] = len(label_starts) - 1
        at[2] = 1
        for s in range(at[1]):
            c_first[s] = label_starts[s]
            c_past[s] = label_starts[s + 1]
            for i in range(label_starts[s], label_starts[s + 1]):
                c_elements[i] = labels_order[i]
                c_set[c_elements[i]] = s
                c_location[c_elements[i]] = i
        for t in range(m):
            in_first[heads[t] + 2] += 1
        for q in range(n_states):
            in_first[q + 2] += in_first[q + 1]
        for t in range(m):
            q = heads[t]
            incoming[in_first[q + 1]] = t
            in_first[q + 1] += 1

    b_sets = at[0]
    c_sets = at[1]
    b = at[2]
    c = at[3]
    work = 0
    while c < c_sets or (c and b < b_sets):
        if work > max_work:
            at[0] = b_sets
            at[1] = c_sets
            at[2] = b
            at[3] = c
            return TOO_MUCH_WORK
        n_touched = 0
        if c and b < b_sets:
            for i in range(b_first[b], b_past[b]):
                q = b_elements[i]
                work += in_first[q + 1] - in_first[q]
                for j in range(in_first[q], in_first[q + 1]):
                    n_touched = _mark(
                        incoming[j], c_elements, c_location, c_set, c_first, c_marked, c_touched, n_touched
                    )
            c_sets = _split(c_elements, c_set, c_first, c_past, c_marked, c_touched, n_touched, c_sets)
            b += 1
        else:
            work += c_past[c] - c_first[c]
            for i in range(c_first[c], c_past[c]):
                n_touched = _mark(
                    tails[c_elements[i]], b_elements, b_location, b_set, b_first, marked, touched, n_touched
                )
            b_sets = _split(b_elements, b_set, b_first, b_past, marked, touched, n_touched, b_sets)
            c += 1
    return OK
