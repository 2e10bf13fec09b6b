"""Minimisation by partition refinement (Hopcroft 1971)."""

from __future__ import annotations

from .jit import inlined, kernel
from .values import OK, TOO_MUCH_WORK


@inlined
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


@inlined
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
def coarsest_partition(tails, labels_order, label_starts, heads, accepting, max_work, at, blocks, cords, marks,
                       in_first, incoming):  # fmt: skip
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
