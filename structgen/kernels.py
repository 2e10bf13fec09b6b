"""Every Numba kernel of structgen, in one module because Numba's cache does not notice edits in other files.

Kernels take scalars and arrays only, never slice inside a hot loop (a slice costs two atomic reference counts),
and check no bounds: their callers hand them arrays that were validated or built by structgen itself. Where a
kernel could run for long on a hostile definition it counts its work and stops at a limit.

Why no write passes the end of an array, whatever tables say, if their numbers are in bounds (`runtime.columns`):

- Arrays by depth have more rows than a token has bytes. The trie and the token ids are the vocabulary's own.
- Outputs of tokens or nodes are as long as there are of these, and a walk comes to each node once: it goes on, and
  the nodes that it enters at ascend, none twice (`structgen.runtime.resume_lists`). `walk_lexer`, which enters at one
  after the other, and whatever else may find more, look at the length of an output before they write to it.
- Counting walks cut intervals at bounds that are in order, so that pieces are disjoint and one at most is whole; each
  piece of a depth leads to three at most, for which there is room first.
- Room for threads and cells of a stack is looked at before each one (`_follow`, `_unite`, `_stack_cell`, `_cell`),
  for those that a configuration begins with, too (`_start_stack`).
- What is remembered from call to call has a last number, at which `FULL` is returned, and more slots than numbers.

Conventions: ``-1`` is the dead state. A transition table is ``int32[states * classes]``, row after row; an entry
below -1 is ``-2 - r``, counter record ``r`` (see `structgen.compiler.automata.dfa`).
"""

from __future__ import annotations

import numpy as np

from ._jit import allocating, bare_kernel, inlined, kernel, spliced

DEAD = -1

#: Results of kernels that can stop early. After `TOO_MUCH_WORK` and `NO_ROOM` (in an array) they can go on.
OK, CONFLICT, TOO_MANY_STATES, TOO_MUCH_WORK, NO_ROOM = 0, 1, 2, 3, 4

#: Operations of a record: `SET` starts a loop's count at 1, `INC` adds 1 and looks at the new count; `MARK` adds to
#: a set and tests it.
SET, INC, MARK = 0, 1, 2

#: Where a count lies: below the minimum, from the minimum to below the maximum, at the maximum.
LOW, MID, HIGH = 0, 1, 2

# Kinds of epsilon edges in an NFA: plain, into a counted loop after its first turn, and after a further turn.
_PLAIN, _ENTER, _AGAIN = 0, 1, 2

# How a counter moved on the way into an NFA state.
_SAME, _PLUS_ONE, _AT_ONE = 0, 1, 2


# -- subset construction --------------------------------------------------------------------------------


@inlined
def _zone(count, low, high):
    if count >= high:
        return HIGH
    return MID if count >= low else LOW


@inlined
def _closure(seeds, n_seeds, variant, e_start, e_to, e_kind, owner, loops, t_start, accept, stamp, moved, mark,
             stack, out):  # fmt: skip
    """Epsilon closure of ``seeds`` into ``out``.

    ``variant`` is the zone that a count will be in once it was incremented, or -1 to find out whether any is.
    Returns (size, loop that was incremented or -1, loop in conflict or -1, loop the result is inside or -1,
    how that loop's counter moved, edges followed). In a conflict, the other loop is the one it is inside.
    """
    steps = 0
    top = 0
    for i in range(n_seeds):
        q = seeds[i]
        if stamp[q] != mark:
            stamp[q] = mark
            moved[q] = _SAME
            stack[top] = q
            top += 1
    size = 0
    incremented = -1
    inside = -1
    how = _SAME
    while top:
        top -= 1
        q = stack[top]
        if t_start[q + 1] > t_start[q] or q == accept:
            out[size] = q
            size += 1
            if owner[q] >= 0:
                if inside >= 0 and (inside != owner[q] or how != moved[q]):
                    return size, incremented, owner[q], inside, how, steps
                inside = owner[q]
                how = moved[q]
        for e in range(e_start[q], e_start[q + 1]):
            steps += 1
            kind = e_kind[e]
            if kind == _PLAIN:
                r = e_to[e]
                if stamp[r] != mark:
                    stamp[r] = mark
                    moved[r] = moved[q] if owner[r] >= 0 else _SAME
                    stack[top] = r
                    top += 1
                elif owner[r] >= 0 and moved[r] != moved[q]:
                    return size, incremented, owner[r], inside, how, steps
                continue
            loop = e_to[e]
            if kind == _AGAIN:
                if (incremented >= 0 and incremented != loop) or moved[q] != _SAME:
                    return size, incremented, loop, inside, how, steps
                incremented = loop
                if variant < 0:
                    continue
                zone, turn = variant, _PLUS_ONE
            else:
                zone, turn = _zone(1, loops[loop, 0], loops[loop, 1]), _AT_ONE
            for way in range(2):
                if (way == 0 and zone == HIGH) or (way == 1 and zone == LOW):
                    continue
                r = loops[loop, 2 + way]
                if stamp[r] != mark:
                    stamp[r] = mark
                    moved[r] = turn if owner[r] >= 0 else _SAME
                    stack[top] = r
                    top += 1
                elif owner[r] >= 0 and moved[r] != turn:
                    return size, incremented, loop, inside, how, steps
    return size, incremented, -1, inside, how, steps


@allocating
def _grown(array, size):
    bigger = np.empty(max(size, 2 * len(array)), array.dtype)
    for i in range(len(array)):
        bigger[i] = array[i]
    return bigger


@allocating
def _grown_rows(array):
    """Twice as many rows. (Element by element: a slice assignment takes Numba seconds to compile.)"""
    bigger = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            bigger[i, j] = array[i, j]
    return bigger


@inlined
def _hash_of(items, first, last):
    h = np.uint64(last - first)
    for i in range(first, last):
        h = (h ^ np.uint64(items[i])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@inlined
def _sort(items, n):
    """Shell sort in place; subsets are short and often almost sorted."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, n):
            x = items[i]
            j = i
            while j >= gap and items[j - gap] > x:
                items[j] = items[j - gap]
                j -= gap
            items[j] = x
        gap //= 3


@inlined
def _next_zone(zone, past_minimum, minimum, maximum):
    """The zone after ``zone`` (-1: the first) that a count can be in after a further turn, or 3.

    A count below the minimum comes to stand below it or at it; one past it never falls back.
    """
    if zone < LOW and not past_minimum and minimum > 2:
        return LOW
    if zone < MID and minimum < maximum:
        return MID
    if zone < HIGH and (past_minimum or minimum == maximum):
        return HIGH
    return 3


@kernel
def determinize(t_start, t_lo, t_hi, t_to, e_start, e_to, e_kind, owner, loops, start, accept, n_classes, max_states,
                max_work, at, table, accepting, items, first, slots, records):  # fmt: skip
    """Subset construction (Rabin & Scott 1959) of an NFA with counted loops, for some time.

    A subset is the set of NFA states with transitions; at most one counted loop is active in it, and all of
    its threads share one count (otherwise the result is CONFLICT and one or two loops, and the caller spells one
    of them out). A subset whose count has reached the loop's minimum holds ``len(owner)`` as a last item. When a
    count is incremented the transition becomes a record with a target for each zone.

    ``at`` says how many states, items and records there are, and which state and class come next; the subset of
    state ``s`` is ``items[first[s]:first[s + 1]]``, ``slots`` their hash table, a power of two; ``records`` is
    ``int32[*, 5]``: operation, loop, targets for LOW, MID and HIGH (for SET all three are the same). It goes on from
    there, until it is done, ``max_work`` is, or a round may need more room than these arrays have (NO_ROOM).

    Returns (status, loop, other loop or -1, slots).
    """
    n_nfa = len(owner)
    stamp = np.zeros(n_nfa, np.int32)
    moved = np.zeros(n_nfa, np.int32)
    stack = np.empty(n_nfa + 1, np.int32)
    out = np.empty(n_nfa + 2, np.int32)
    seeds = np.empty(n_nfa + 1, np.int32)
    seeded = np.zeros(n_nfa, np.int32)
    mark = 0
    seed_mark = 0
    cuts = np.zeros(n_classes + 1, np.uint8)
    cut_for = -1
    work = 0

    n_states = at[0]
    n_items = at[1]
    n_records = at[2]
    state = at[3]
    lo = at[4]
    n_seeds = 1
    seeds[0] = start
    while state < n_states:
        # One round of this loop settles one segment [lo, hi) of classes of `state`; the first makes state 0.
        is_full = n_states + 4 > len(first) or n_states + 3 > len(accepting) or n_records + 2 > len(records)
        is_full = is_full or n_items + 3 * (n_nfa + 1) > len(items) or (n_states + 3) * n_classes > len(table)
        if is_full or work > max_work:
            at[0] = n_states
            at[1] = n_items
            at[2] = n_records
            at[3] = state
            at[4] = lo
            return TOO_MUCH_WORK if work > max_work else NO_ROOM, -1, -1, slots
        hi = n_classes
        past_minimum = False
        if state >= 0:
            end = first[state + 1]
            past_minimum = items[end - 1] == n_nfa
            if past_minimum:
                end -= 1
            if cut_for != state:
                cut_for = state
                for c in range(n_classes + 1):
                    cuts[c] = 0
                for i in range(first[state], end):
                    q = items[i]
                    for t in range(t_start[q], t_start[q + 1]):
                        cuts[t_lo[t]] = 1
                        cuts[t_hi[t] + 1] = 1
            hi = lo + 1
            while hi < n_classes and not cuts[hi]:
                hi += 1
            n_seeds = 0
            seed_mark += 1
            for i in range(first[state], end):
                q = items[i]
                for t in range(t_start[q], t_start[q + 1]):
                    work += 1
                    if t_lo[t] <= lo <= t_hi[t] and seeded[t_to[t]] != seed_mark:
                        seeded[t_to[t]] = seed_mark
                        seeds[n_seeds] = t_to[t]
                        n_seeds += 1
        entry = DEAD
        variant = -1
        record = -1
        while n_seeds:
            mark += 1
            size, incremented, conflict, inside, how, steps = _closure(
                seeds, n_seeds, variant, e_start, e_to, e_kind, owner, loops, t_start, accept, stamp, moved, mark,
                stack, out)  # fmt: skip
            work += 4 * size + steps  # most of it for putting them in order
            if conflict >= 0:
                return CONFLICT, conflict, inside, slots
            if incremented >= 0 and variant < 0:
                # The count decides: build the target for each zone it can be in.
                variant = _next_zone(-1, past_minimum, loops[incremented, 0], loops[incremented, 1])
                record = n_records
                n_records += 1
                records[record, 0] = INC
                records[record, 1] = incremented
                records[record, 2] = DEAD
                records[record, 3] = DEAD
                records[record, 4] = DEAD
                entry = -2 - record
                continue
            if variant >= 0 and inside >= 0 and (inside != incremented or how != _PLUS_ONE):
                return CONFLICT, incremented, inside, slots
            target = DEAD
            if size:
                _sort(out, size)
                if inside >= 0 and (
                    variant >= MID or (how == _SAME and past_minimum) or (how == _AT_ONE and loops[inside, 0] <= 1)
                ):
                    out[size] = n_nfa
                    size += 1
                h = _hash_of(out, 0, size)
                slot = np.int64(h & np.uint64(len(slots) - 1))
                while slots[slot] >= 0:
                    s = slots[slot]
                    if first[s + 1] - first[s] == size:
                        same = True
                        for i in range(size):
                            if items[first[s] + i] != out[i]:
                                same = False
                                break
                        if same:
                            target = s
                            break
                    slot = (slot + 1) & (len(slots) - 1)
                if target < 0:
                    target = n_states
                    if n_states >= max_states:
                        return TOO_MANY_STATES, -1, -1, slots
                    accepting[n_states] = 0
                    for i in range(size):
                        items[n_items + i] = out[i]
                        if out[i] == accept:
                            accepting[n_states] = 1
                    first[n_states] = n_items
                    n_items += size
                    n_states += 1
                    first[n_states] = n_items
                    slots[slot] = target
                    if 2 * n_states > len(slots):
                        slots = np.full(2 * len(slots), -1, np.int32)
                        for s in range(n_states):
                            slot = np.int64(_hash_of(items, first[s], first[s + 1]) & np.uint64(len(slots) - 1))
                            while slots[slot] >= 0:
                                slot = (slot + 1) & (len(slots) - 1)
                            slots[slot] = s
            if variant < 0:
                entry = target
                if inside >= 0 and how == _AT_ONE:
                    records[n_records, 0] = SET
                    records[n_records, 1] = inside
                    records[n_records, 2] = target
                    records[n_records, 3] = target
                    records[n_records, 4] = target
                    entry = -2 - n_records
                    n_records += 1
                break
            records[record, 2 + variant] = target
            loop = records[record, 1]
            variant = _next_zone(variant, past_minimum, loops[loop, 0], loops[loop, 1])
            if variant > HIGH:
                break
        if state >= 0:
            for c in range(lo, hi):
                table[state * n_classes + c] = entry
        lo = hi
        if lo >= n_classes:
            lo = 0
            state += 1
    at[0] = n_states
    at[1] = n_items
    at[2] = n_records
    return OK, -1, -1, slots


# -- minimisation ---------------------------------------------------------------------------------------


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


# -- product --------------------------------------------------------------------------------------------


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


# -- token walks ----------------------------------------------------------------------------------------
#
# docs/walks.md derives these loops. A walk visits the trie in preorder with one automaton state for each depth;
# a dead byte skips the subtree. A node costs some nanoseconds, most of it for the loads that depend on one another.


@kernel
def walk_narrow(byte, depth, skip, first_token, token_ids, table, classes, n_classes, states, max_depth, limit):
    """The allowed tokens of many states, as lists, as long as they stay short.

    Returns (counts, ids): ``counts[i]`` is the number of tokens that state ``states[i]`` allows, their ids
    stand one list after another in ``ids``; -1 means more than ``limit``, with no ids.
    """
    n_nodes = len(byte)
    at = np.empty(max_depth + 1, np.int32)
    counts = np.empty(len(states), np.int32)
    ids = np.empty(1024, np.int32)
    n_ids = 0
    for k in range(len(states)):
        at[0] = states[k]
        begin = n_ids
        i = 1
        while i < n_nodes:
            d = depth[i]
            s = table[at[d - 1] * n_classes + classes[byte[i]]]
            if s < 0:
                i = skip[i]
                continue
            at[d] = s
            last = first_token[i + 1]
            for t in range(first_token[i], last):
                if n_ids == len(ids):
                    ids = _grown(ids, n_ids + 1)
                ids[n_ids] = token_ids[t]
                n_ids += 1
            if n_ids - begin > limit:
                break
            i += 1
        if n_ids - begin > limit:
            n_ids = begin
            counts[k] = -1
        else:
            counts[k] = n_ids - begin
    return counts, ids[:n_ids]


@kernel
def walk_row(byte, depth, skip, token, twins, table, classes, n_classes, state, max_depth, row):
    """Set the bit of every token that ``state`` allows in ``row``, ``uint32[words + 1]``.

    ``token`` is ``int32[nodes]``: the id that ends at a node, or ``32 * words``, a spare bit, where none does, so
    that the loop has no branch for it. Further ids with the same bytes are set at the end: ``twins`` is
    ``int32[*, 2]``, such an id and the one at the node.
    """
    n_nodes = len(byte)
    at = np.empty(max_depth + 1, np.int32)
    at[0] = state
    i = 1
    while i < n_nodes:
        d = depth[i]
        s = table[at[d - 1] * n_classes + classes[byte[i]]]
        if s < 0:
            i = skip[i]
            continue
        at[d] = s
        t = token[i]
        row[t >> 5] |= np.uint32(1) << np.uint32(t & 31)
        i += 1
    _copy_twins(twins, row)


@inlined
def _copy_twins(twins, row):
    """Give each twin the bit of the id that has the same bytes."""
    for i in range(len(twins)):
        twin = twins[i, 0]
        t = twins[i, 1]
        bit = (row[t >> 5] >> np.uint32(t & 31)) & np.uint32(1)
        mask = np.uint32(1) << np.uint32(twin & 31)
        row[twin >> 5] = (row[twin >> 5] & ~mask) | (mask if bit else np.uint32(0))


@kernel
def walk_difference(byte, depth, skip, token, twins, table, classes, n_classes, state, base, max_depth, row):
    """Turn ``row``, the row of state ``base``, into the row of ``state``, walking only where the two differ.

    For ``token``, ``twins`` and ``row`` see `walk_row`.
    """
    n_nodes = len(byte)
    at = np.empty(max_depth + 1, np.int32)
    other = np.empty(max_depth + 1, np.int32)
    at[0] = state
    other[0] = base
    i = 1
    while i < n_nodes:
        d = depth[i]
        c = classes[byte[i]]
        s = at[d - 1]
        s = table[s * n_classes + c] if s >= 0 else s
        p = other[d - 1]
        p = table[p * n_classes + c] if p >= 0 else p
        if s == p:
            i = skip[i]
            continue
        if (s < 0) != (p < 0):
            t = token[i]
            row[t >> 5] ^= np.uint32(1) << np.uint32(t & 31)
        at[d] = s
        other[d] = p
        i += 1
    _copy_twins(twins, row)


@kernel
def walk_counted(byte, depth, skip, first_token, token_ids, table, classes, n_classes, records, loops, live, state,
                 low, high, max_depth, row, tokens, firsts, lasts):  # fmt: skip
    """The tokens that ``state`` allows for each count from ``low`` to ``high``.

    Every depth holds *pieces*: disjoint, ascending intervals of start counts, each with the state they have led
    to and what was added to the count since. A record that looks at the count splits a piece; neighbours that
    come to the same configuration are joined again. So one walk settles all counts.

    Tokens allowed for every count are set in ``row``, ``uint32[words]``. The others are written to ``tokens``,
    ``firsts`` and ``lasts``, ``int32`` each: such a token is allowed for the counts ``first..last``, and its
    intervals are disjoint. Returns how many were written, or -1 where the arrays are too short. (They do not grow
    here: an array that a loop may replace costs it a reference count for each access.)
    """
    n_nodes = len(byte)
    # The pieces of depth d are begin[d]..begin[d + 1] of these columns: state, lowest, highest, added.
    begin = np.zeros(max_depth + 2, np.int64)
    pieces = np.empty((256, 4), np.int64)
    n_out = 0
    pieces[0, 0] = state
    pieces[0, 1] = low
    pieces[0, 2] = high
    pieces[0, 3] = 0
    begin[1] = 1
    i = 1
    while i < n_nodes:
        d = depth[i]
        c = classes[byte[i]]
        base = begin[d]
        n = base
        for p in range(begin[d - 1], base):
            entry = table[pieces[p, 0] * n_classes + c]
            if entry == DEAD:
                continue
            if n + 3 > len(pieces):
                pieces = _grown_rows(pieces)
            lo = pieces[p, 1]
            hi = pieces[p, 2]
            add = pieces[p, 3]
            if entry >= 0:
                n = _join(pieces, base, n, entry, lo, hi, add if live[entry] >= 0 else 0)
                continue
            r = -2 - entry
            if records[r, 0] == SET:
                # From here on the count is known: 1, whatever it was at the start.
                n = _join(pieces, base, n, records[r, 2], lo, hi, _FIXED + 1)
                continue
            minimum = loops[records[r, 1], 0]
            maximum = loops[records[r, 1], 1]
            add += 1
            if add > _FIXED:
                target = records[r, 2 + _zone(add - _FIXED, minimum, maximum)]
                if target >= 0:
                    n = _join(pieces, base, n, target, lo, hi, add if live[target] >= 0 else 0)
                continue
            for zone in range(3):
                target = records[r, 2 + zone]
                if target < 0:
                    continue
                z_lo = lo
                z_hi = hi
                if zone == LOW:
                    z_hi = min(hi, minimum - 1 - add)
                elif zone == MID:
                    z_lo = max(lo, minimum - add)
                    z_hi = min(hi, maximum - 1 - add)
                else:
                    z_lo = max(lo, maximum - add)
                if z_lo <= z_hi:
                    n = _join(pieces, base, n, target, z_lo, z_hi, add if live[target] >= 0 else 0)
        if n == base:
            i = skip[i]
            continue
        begin[d + 1] = n
        if first_token[i] < first_token[i + 1]:
            p = base
            while p < n:
                lo = pieces[p, 1]
                hi = pieces[p, 2]
                p += 1
                while p < n and pieces[p, 1] == hi + 1:
                    hi = pieces[p, 2]
                    p += 1
                for k in range(first_token[i], first_token[i + 1]):
                    token = token_ids[k]
                    if lo == low and hi == high:
                        row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
                        continue
                    if n_out == len(tokens):
                        return -1
                    tokens[n_out] = token
                    firsts[n_out] = lo
                    lasts[n_out] = hi
                    n_out += 1
        i += 1
    return n_out


@inlined
def _join(pieces, base, n, state, lo, hi, add):
    """Append a piece, or widen the last one where both have come to the same configuration."""
    if n > base and pieces[n - 1, 0] == state and pieces[n - 1, 3] == add and pieces[n - 1, 2] + 1 == lo:
        pieces[n - 1, 2] = hi
        return n
    pieces[n, 0] = state
    pieces[n, 1] = lo
    pieces[n, 2] = hi
    pieces[n, 3] = add
    return n + 1


#: Added to an offset that is a known count rather than relative to the start; far above any count.
_FIXED = 1 << 40


# -- token walks with a stack ----------------------------------------------------------------------------
#
# A pushdown automaton comes as one int32 array, its *arena* (see `structgen.runtime.pushdown_tables`): a call with
# one array costs a third of one with twelve. The first words say where the parts begin.

A_STATES, A_CLASSES, A_CLASS_OF, A_TABLE, A_GROUPS, A_MOVES = range(6)
A_SEQUENCE, A_RECORDS, A_LOOPS, A_LIVE, A_RETURNS, A_TESTS, ARENA_HEADER = range(6, 13)

#: What a walk returns in place of a count where it gave up: too many threads or cells, or too many nodes.
OVERFLOW, TOO_FAR = -1, -2

# Stacks are a graph of *cells*, each ``state, count, below, ends, stamp``: what lies below it, whether all states
# from it down to the unknown bottom may return, and when it was last visited. What lies below is a cell; or
# `_BOTTOM`; or several of these, a list of cells with the state `_LINK`, a member of the set in place of the count
# (ascending), and the next link below, or `_NIL`. Equal cells have the same number, but for a few that are missed.
_BOTTOM, _NIL, _LINK = -1, -2, -2

#: Columns of a cell, and how many slots are looked at for it. There are twice as many slots as cells.
CELL, _PROBES = 5, 16


@inlined
def _may_end(cells, ref):
    """Whether all states of some stack from ``ref`` down may return."""
    return 1 if ref == _BOTTOM else 0 if ref == _NIL else cells[ref, 3]


@inlined
def _stack_cell(arena, cells, slots, top, state, count, below):
    """The number of a cell, ``top`` for a new one; `OVERFLOW`. Slots may hold anything: what is found is compared."""
    key = (state * 0x9E3779B1) ^ (count * 0x85EBCA6B) ^ (below * 0x27D4EB2F)
    slot = ((key >> 15) ^ key) & (len(slots) - 1)
    for _ in range(_PROBES):
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


@inlined
def _is_before(threads, i, j):
    """Whether one thread comes before another one in the order of states, counts and stacks."""
    if threads[i, 0] != threads[j, 0]:
        return threads[i, 0] < threads[j, 0]
    if threads[i, 1] != threads[j, 1]:
        return threads[i, 1] < threads[j, 1]
    return threads[i, 2] < threads[j, 2]


@inlined
def _are_alike(threads, i):
    """Whether a thread and the next one have equal states and counts."""
    return threads[i, 0] == threads[i + 1, 0] and threads[i, 1] == threads[i + 1, 1]


@inlined
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


@inlined
def _unite(arena, threads, begin, n, cells, slots, top, united):
    """Leave each of ``threads[begin:n]`` there once, in order; if ``united``, those with equal tops become one.

    Returns (end of the threads or `OVERFLOW`, first free cell).
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
            for k in range(n, m):
                threads[k, 1] = 0
                threads[k, 2] = 0
            _sort_threads(threads, n, m)
            below = np.int64(_NIL)
            for k in range(m - 1, n - 1, -1):
                if k + 1 < m and threads[k, 0] == threads[k + 1, 0]:
                    continue
                below = _stack_cell(arena, cells, slots, top, np.int64(_LINK), threads[k, 0], below)
                if below < 0:
                    return OVERFLOW, top
                top = max(top, below + 1)
            if cells[below, 2] == _NIL:
                below = cells[below, 1]
        threads[kept, 0] = state
        threads[kept, 1] = count
        threads[kept, 2] = below
        kept += 1
    return kept, top


@inlined
def _marked(members, member):
    """The set ``members`` with another one, or as it is for -1; -1 where that one is in it."""
    if member < 0:
        return members
    bit = np.int64(1) << np.int64(member)
    return np.int64(-1) if members & bit else members | bit


@inlined
def _passes(arena, members, test):
    """Whether a set passes a test."""
    t = arena[A_TESTS] + 4 * test
    tested = members & (np.int64(arena[t + 2]) | np.int64(arena[t + 3]) << np.int64(31))
    n = 0
    while tested:
        tested &= tested - 1
        n += 1
    return arena[t] <= n <= arena[t + 1]


@inlined
def _follow(arena, c, threads, begin, end, cells, slots, top, stamp, united):
    """Take every thread of ``threads[begin:end]`` over a byte of class ``c``; the next ones stand behind ``end``.

    ``stamp`` is a positive number that no other call of the walk has. Returns (end of the next threads or `OVERFLOW`,
    first free cell, whether some thread popped below the bottom). See `_unite` for ``united``.
    """
    n_states = arena[A_STATES]
    n_classes = arena[A_CLASSES]
    returns = arena[A_RETURNS]
    source = begin
    past = end
    for i in range(begin, end):
        if arena[returns + threads[i, 0]] and threads[i, 2] >= 0:
            source = end
    if source != begin:
        # Threads, and all that the byte may be left to: one for each top, or there would be too many pushes.
        if 2 * end - begin > len(threads):
            return OVERFLOW, top, False
        for i in range(begin, end):
            for column in range(3):
                threads[i + end - begin, column] = threads[i, column]
        past = 2 * end - begin
        i = source
        while i < past:
            cell = threads[i, 2] if arena[returns + threads[i, 0]] else np.int64(_NIL)
            i += 1
            while cell >= 0:
                member = cell
                if cells[cell, 0] == _LINK:
                    member = cells[cell, 1]
                    cell = cells[cell, 2]
                else:
                    cell = np.int64(_NIL)
                if member < 0 or cells[member, 4] == stamp:
                    continue
                cells[member, 4] = stamp
                if past >= len(threads):
                    return OVERFLOW, top, False
                for column in range(3):
                    threads[past, column] = cells[member, column]
                past += 1
        if past - source != 2 or _are_alike(threads, source):  # nearly always a value's end, above what holds it
            past, top = _unite(arena, threads, source, past, cells, slots, top, united)
            if past < 0:
                return OVERFLOW, top, False
    n = past
    escaped = False
    for at in range(source, past):
        state = threads[at, 0]
        count = threads[at, 1]
        cell = threads[at, 2]
        entry = arena[arena[A_TABLE] + state * n_classes + c]
        if entry >= n_states:
            group = arena[A_GROUPS] + entry - n_states
            for m in range(arena[group], arena[group + 1]):
                move = arena[A_MOVES] + 2 * m
                first = arena[move + 1]
                last = arena[move + 3]
                record = arena[move]
                here = cell
                state_now = np.int64(-1)
                count_now = np.int64(0)
                if record >= 0:
                    r = arena[A_RECORDS] + 5 * record
                    if arena[r] == SET:
                        state_now = np.int64(arena[r + 2])
                        count_now = np.int64(1)
                    elif arena[r] == MARK:
                        count_now = _marked(count, arena[r + 3])
                        if count_now < 0 or not _passes(arena, count_now, arena[r + 1]):
                            continue
                        state_now = np.int64(arena[r + 2])
                    else:
                        count_now = count + 1
                        loop = arena[A_LOOPS] + 2 * arena[r + 1]
                        state_now = np.int64(arena[r + 2 + _zone(count_now, arena[loop], arena[loop + 1])])
                        if state_now < 0:
                            continue
                elif first < last:
                    state_now = np.int64(arena[arena[A_SEQUENCE] + first])
                    count_now = count
                    first += 1
                else:
                    while here != _NIL:
                        member = here
                        if here != _BOTTOM and cells[here, 0] == _LINK:
                            member = cells[here, 1]
                            here = cells[here, 2]
                        else:
                            here = np.int64(_NIL)
                        if member == _BOTTOM:
                            escaped = True
                            continue
                        if n >= len(threads):
                            return OVERFLOW, top, escaped
                        threads[n, 0] = cells[member, 0]
                        threads[n, 1] = cells[member, 1]
                        threads[n, 2] = cells[member, 2]
                        n += 1
                    continue
                if arena[arena[A_LIVE] + state_now] < 0:
                    count_now = np.int64(0)
                for k in range(first, last):
                    here = _stack_cell(arena, cells, slots, top, state_now, count_now, here)
                    if here < 0:
                        return OVERFLOW, top, escaped
                    top = max(top, here + 1)
                    state_now = np.int64(arena[arena[A_SEQUENCE] + k])
                    count_now = np.int64(0)
                if n >= len(threads):
                    return OVERFLOW, top, escaped
                threads[n, 0] = state_now
                threads[n, 1] = count_now
                threads[n, 2] = here
                n += 1
        elif entry >= 0:
            if n >= len(threads):
                return OVERFLOW, top, escaped
            threads[n, 0] = entry
            threads[n, 1] = count if arena[arena[A_LIVE] + entry] >= 0 else 0
            threads[n, 2] = cell
            n += 1
    if n == past + 2 and not _are_alike(threads, past):
        if _is_before(threads, past + 1, past):
            for column in range(3):
                threads[past, column], threads[past + 1, column] = threads[past + 1, column], threads[past, column]
    elif n > past + 1:
        n, top = _unite(arena, threads, past, n, cells, slots, top, united)
    if past > end and n > 0:
        for i in range(past, n):
            for column in range(3):
                threads[i - past + end, column] = threads[i, column]
        n -= past - end
    return n, top, escaped


@inlined
def _may_return(arena, threads, begin, end, cells):
    """Whether some thread could hand the next byte to what lies below the bottom."""
    found = False
    for i in range(begin, end):
        if arena[arena[A_RETURNS] + threads[i, 0]]:
            found |= _may_end(cells, threads[i, 2]) != 0
    return found


@inlined
def _start_stack(arena, config, cells, slots, top):
    """Lay out the cells of ``config``, pairs of state and count, the current state first and the lowest cell last.

    Returns (first free cell or `OVERFLOW`, state, count, cell below the state or `_BOTTOM`).
    """
    cell = np.int64(_BOTTOM)
    for i in range(len(config) // 2 - 1, 0, -1):
        cell = _stack_cell(arena, cells, slots, top, config[2 * i], config[2 * i + 1], cell)
        if cell < 0:
            return OVERFLOW, config[0], config[1], cell
        top = max(top, cell + 1)
    return top, config[0], config[1], cell


@kernel
def walk_stack(byte, depth, skip, first_token, token_ids, max_depth, arena, resume, config, room, work, ids, below):
    """The tokens that a configuration with an unknown stack below allows, from several places of the trie.

    Parameters
    ----------
    resume:
        ``int32[*]``, ascending nodes; the subtree below each is walked from ``config``. Node 0 is the whole trie.
    config:
        ``int64[2 * n]``: state and count, then those of the stack cells above the unknown bottom, topmost first.
    room:
        Threads and stack cells that the walk can have, a power of two.
    work:
        Threads that it may follow, where there is more to do than to look up where one moves.
    ids:
        ``int32[tokens]``, out: allowed token ids, in the trie's order.
    below:
        ``int32[nodes]``, out: ascending nodes at which the rest of the token is up to the state below the bottom.

    Returns
    -------
    (number of ids, number of nodes below, the node to go on at): the number of nodes where there is nothing left to
    do, a smaller one where ``room`` or ``work`` did not suffice. From there on it is up to `walk_sets`.

    Nodes of ``resume`` may lie below one another: there the configuration joins the threads that came down.
    """
    threads = np.empty((room, 3), np.int64)  # a set takes 64 bits
    cells = np.empty((room, CELL), np.int64)
    slots = np.empty(2 * room, np.int32)
    first = np.zeros(max_depth + 3, np.int32)  # threads of depth d: first[d + 1]..first[d + 2]
    tops = np.zeros(max_depth + 3, np.int64)  # first free cell, likewise
    base_top, state, count, cell = _start_stack(arena, config, cells, slots, np.int64(0))
    if base_top < 0:
        return 0, 0, 0
    stamp = 0
    n_ids = 0
    n_below = 0
    # What the loop reads at every node is in locals: an array that is written to hides that it stays the same.
    n_states = arena[A_STATES]
    n_classes = arena[A_CLASSES]
    class_of = arena[A_CLASS_OF]
    table = arena[A_TABLE]
    live = arena[A_LIVE]
    returns = arena[A_RETURNS]
    entered = 0  # nodes of resume so far
    pending = resume[0] if len(resume) else len(byte)
    end = 0
    i = 0
    while True:
        if i >= end:
            if entered == len(resume):
                break
            i = pending
            end = skip[i]
            first[depth[i]] = 0
            first[depth[i] + 1] = 0
            tops[depth[i]] = base_top
        d = depth[i]
        above = first[d]
        begin = first[d + 1]
        if above + 1 == begin and i != pending:  # nearly always: one thread, which moves or dies
            s = threads[above, 0]
            entry = arena[table + s * n_classes + arena[class_of + byte[i]]]
            if entry < n_states and arena[returns + s] == 0:
                if entry >= 0 and begin < room and arena[returns + entry] == 0:
                    for t in range(first_token[i], first_token[i + 1]):
                        ids[n_ids] = token_ids[t]
                        n_ids += 1
                    threads[begin, 0] = entry
                    threads[begin, 1] = threads[above, 1] if arena[live + entry] >= 0 else 0
                    threads[begin, 2] = threads[above, 2]
                    first[d + 2] = begin + 1
                    tops[d + 1] = tops[d]
                    i += 1  # at a leaf that is where it skips to
                    continue
                if entry < 0 and pending >= skip[i]:
                    i = skip[i]
                    continue
        n = begin
        top = tops[d]
        escaped = False
        if above < begin:
            stamp += 1
            n, top, escaped = _follow(
                arena, arena[class_of + byte[i]], threads, above, begin, cells, slots, top, stamp, True
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
                n, top = _unite(arena, threads, begin, n, cells, slots, top, True)
                if n < 0:
                    return n_ids, n_below, i
            entered += 1
            pending = resume[entered] if entered < len(resume) else len(byte)
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


#: What `walk_sets` goes on with: the node, where the tree below the last node of ``resume`` ends, how many of these
#: were entered, the numbers of ids and nodes found, cells, sets, and a stamp.
P_NODE, P_END, P_ENTERED, P_IDS, P_BELOW, P_CELLS, P_SETS, P_STAMP, PROGRESS = range(9)

# What it costs to follow one thread more, in nodes that are looked up.
_COST_OF_NODE, _COST_OF_THREAD = 8, 8


@kernel
def walk_sets(byte, depth, skip, first_token, token_ids, arena, resume, entering, start, work, progress, at, threads,
              cells, slots, begins, members, returning, set_slots, following, ids, below):  # fmt: skip
    """`walk_stack` in slices, with numbers for sets of threads, and where each leads to remembered: a lazy DFA.

    For walks that take long. A node costs a look-up, however many threads there are, once its set was met with its
    byte.

    Parameters
    ----------
    resume:
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

    Returns
    -------
    `OK` at the end, `TOO_MUCH_WORK` after a slice, `NO_ROOM` where an array is too short: with more room, or with all
    sets forgotten, it can begin anew at the node that it came to.
    """
    n_classes = arena[A_CLASSES]
    width = n_classes + 1
    class_of = arena[A_CLASS_OF]
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
    pending = resume[entered] if entered < len(resume) else len(byte)
    status = OK
    while True:
        if work <= 0:
            status = TOO_MUCH_WORK
            break
        work -= 1
        if i >= end:
            if entered == len(resume):
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
                        arena, arena[class_of + byte[i]], threads, 0, size, cells, slots, top, stamp, True
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
                    for c in range(number * width, (number + 1) * width):
                        following[c] = -1
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
                    n, top = _unite(arena, threads, 0, size + len(entering), cells, slots, top, True)
                if n < 0:
                    status = NO_ROOM
                    break
                number = _set_number(arena, threads, 0, n, cells, begins, members, returning, set_slots, n_sets)
                if number < 0 or (number + 1) * width > len(following):
                    status = NO_ROOM
                    break
                if number == n_sets:
                    n_sets += 1
                    for c in range(number * width, (number + 1) * width):
                        following[c] = -1
                following[where] = number
                work -= _COST_OF_THREAD * n
            here = following[where]
            entered += 1
            pending = resume[entered] if entered < len(resume) else len(byte)
        after = skip[i]
        if i >= start:
            if step:
                for t in range(first_token[i], first_token[i + 1]):
                    ids[n_ids] = token_ids[t]
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


@inlined
def _copy_threads(members, begin, size, threads):
    """Lay some threads of a set out for `_follow`."""
    for k in range(size):
        for column in range(3):
            threads[k, column] = members[begin + k, column]


@inlined
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


@kernel
def walk_closed(byte, depth, skip, token, twins, max_depth, arena, state, row, below):
    """`walk_stack` from the root for a state whose automaton only moves and pops, three times as fast.

    ``token``, ``twins`` and ``row`` are those of `walk_row`. Returns the number of nodes written to ``below``.
    """
    n_nodes = len(byte)
    n_states = arena[A_STATES]
    n_classes = arena[A_CLASSES]
    class_of = arena[A_CLASS_OF]
    table = arena[A_TABLE]
    at = np.empty(max_depth + 1, np.int32)
    at[0] = state
    n_below = 0
    i = 1
    while i < n_nodes:
        d = depth[i]
        entry = arena[table + at[d - 1] * n_classes + arena[class_of + byte[i]]]
        if entry < 0:
            i = skip[i]
            continue
        t = token[i]
        row[t >> 5] |= np.uint32(1) << np.uint32(t & 31)
        if entry >= n_states:
            if i + 1 < skip[i]:
                below[n_below] = i
                n_below += 1
            i = skip[i]
            continue
        at[d] = entry
        i += 1
    _copy_twins(twins, row)
    return n_below


@kernel
def walk_stack_difference(
    byte, depth, skip, first_token, token_ids, max_depth, arena, config, base, room, limit, ids, below
):
    """Where ``config`` and ``base`` differ over the whole trie, in tokens and in nodes left to what is below.

    Like `walk_stack` from the root, except that ``ids`` and ``below`` get what one allows and the other does not.
    A subtree is left out as soon as both have come to the same threads. ``(TOO_FAR, 0)`` where more than ``limit``
    nodes, threads and cells tell them apart, or they need more than ``room``.
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
    same_after = np.zeros(256, np.bool_)  # classes of first bytes after which both have come to the same
    i = 1
    n_nodes = len(byte)
    while i < n_nodes:
        d = depth[i]
        begin = first[d]
        other = second[d]
        c = arena[arena[A_CLASS_OF] + byte[i]]
        if d == 1 and same_after[c]:
            i = skip[i]
            continue
        visited += 1
        top = tops[d - 1]
        n, top, escaped = _follow(
            arena, c, threads, first[d - 1], begin, cells, slots, top, 2 * visited - 1, True
        )
        m, top, leapt = _follow(
            arena, c, others, second[d - 1], other, cells, slots, top, 2 * visited, True
        )
        limit -= n - first[d - 1] + m - second[d - 1] + top - tops[d - 1] - 3
        if n < 0 or m < 0 or limit < 0:
            return TOO_FAR, 0
        if escaped == leapt and n - begin == m - other:
            same = True
            for k in range(n - begin):
                if (
                    threads[begin + k, 0] != others[other + k, 0]
                    or threads[begin + k, 1] != others[other + k, 1]
                    or threads[begin + k, 2] != others[other + k, 2]
                ):
                    same = False
                    break
            if same:
                same_after[c] |= d == 1
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
    return n_ids, n_below


@kernel
def walk_stack_counted(byte, depth, skip, first_token, token_ids, max_depth, arena, state, low, high, start, work,
                       ids, tokens, token_first, token_last, below, nodes, node_first, node_last):  # fmt: skip
    """The tokens that a state which counts, the stack below unknown, allows for each count from ``low`` to ``high``.

    For automata that move, count and pop, but never call, such as the inside of a string; pieces are those of
    `walk_counted`. What holds for every count goes to ``ids`` and ``below``, as in `walk_stack`. The rest goes to
    ``tokens`` or ``nodes`` with its first and last count, disjoint intervals each.

    Looks at the nodes from ``start`` on, and at ``work`` pieces, about.

    Returns the numbers of ``ids``, ``tokens``, ``below`` and ``nodes``, and the node to go on at; `OVERFLOW` first
    where an array is too short or the automaton calls.
    """
    n_states = arena[A_STATES]
    n_classes = arena[A_CLASSES]
    popped = n_states
    begin = np.zeros(max_depth + 2, np.int64)
    pieces = np.empty((256, 4), np.int64)
    n_ids = 0
    n_tokens = 0
    n_below = 0
    n_nodes = 0
    pieces[0, 0] = state
    pieces[0, 1] = low
    pieces[0, 2] = high
    pieces[0, 3] = 0
    begin[1] = 1
    i = 1
    while i < len(byte) and (work > 0 or i < start):
        if i < start and skip[i] <= start:
            i = skip[i]
            continue
        d = depth[i]
        c = arena[arena[A_CLASS_OF] + byte[i]]
        base = begin[d]
        work -= base - begin[d - 1] if i >= start else 0
        n = base
        for p in range(begin[d - 1], base):
            if pieces[p, 0] == popped:
                continue
            entry = arena[arena[A_TABLE] + pieces[p, 0] * n_classes + c]
            if entry == DEAD:
                continue
            if n + 3 > len(pieces):
                pieces = _grown_rows(pieces)
            lo = pieces[p, 1]
            hi = pieces[p, 2]
            add = pieces[p, 3]
            if entry < n_states:
                n = _join(pieces, base, n, entry, lo, hi, add if arena[arena[A_LIVE] + entry] >= 0 else 0)
                continue
            m = arena[arena[A_GROUPS] + entry - n_states]
            if arena[arena[A_GROUPS] + entry - n_states + 1] != m + 1:
                return OVERFLOW, 0, 0, 0, i
            move = arena[A_MOVES] + 2 * m
            if arena[move] < 0:
                if arena[move + 1] < arena[move + 3]:
                    return OVERFLOW, 0, 0, 0, i
                n = _join(pieces, base, n, popped, lo, hi, 0)
                continue
            if arena[move + 1] < arena[move + 3]:
                return OVERFLOW, 0, 0, 0, i
            r = arena[A_RECORDS] + 5 * arena[move]
            if arena[r] == MARK:
                return OVERFLOW, 0, 0, 0, i
            if arena[r] == SET:
                n = _join(pieces, base, n, arena[r + 2], lo, hi, _FIXED + 1)
                continue
            minimum = arena[arena[A_LOOPS] + 2 * arena[r + 1]]
            maximum = arena[arena[A_LOOPS] + 2 * arena[r + 1] + 1]
            add += 1
            if add > _FIXED:
                target = arena[r + 2 + _zone(add - _FIXED, minimum, maximum)]
                if target >= 0:
                    n = _join(pieces, base, n, target, lo, hi, add if arena[arena[A_LIVE] + target] >= 0 else 0)
                continue
            for zone in range(3):
                target = arena[r + 2 + zone]
                if target < 0:
                    continue
                z_lo = lo
                z_hi = hi
                if zone == LOW:
                    z_hi = min(hi, minimum - 1 - add)
                elif zone == MID:
                    z_lo = max(lo, minimum - add)
                    z_hi = min(hi, maximum - 1 - add)
                else:
                    z_lo = max(lo, maximum - add)
                if z_lo <= z_hi:
                    n = _join(pieces, base, n, target, z_lo, z_hi, add if arena[arena[A_LIVE] + target] >= 0 else 0)
        if n == base:
            i = skip[i]
            continue
        begin[d + 1] = n
        if i < start:
            i += 1
            continue
        p = base
        while p < n and first_token[i] < first_token[i + 1]:
            lo = pieces[p, 1]
            hi = pieces[p, 2]
            p += 1
            while p < n and pieces[p, 1] == hi + 1:
                hi = pieces[p, 2]
                p += 1
            for k in range(first_token[i], first_token[i + 1]):
                if lo == low and hi == high:
                    ids[n_ids] = token_ids[k]
                    n_ids += 1
                    continue
                if n_tokens == len(tokens):
                    return OVERFLOW, 0, 0, 0, i
                tokens[n_tokens] = token_ids[k]
                token_first[n_tokens] = lo
                token_last[n_tokens] = hi
                n_tokens += 1
        if i + 1 < skip[i]:
            for p in range(base, n):
                if pieces[p, 0] != popped:
                    continue
                if pieces[p, 1] == low and pieces[p, 2] == high:
                    below[n_below] = i
                    n_below += 1
                    continue
                if n_nodes == len(nodes):
                    return OVERFLOW, 0, 0, 0, i
                nodes[n_nodes] = i
                node_first[n_nodes] = pieces[p, 1]
                node_last[n_nodes] = pieces[p, 2]
                n_nodes += 1
        i += 1
    return n_ids, n_tokens, n_below, n_nodes, i


@inlined
def _add_count(live, counts, known, todo, n, state, count):
    """Note that a state can have a count, or any for -1, and that it is to be passed on; the new end of ``todo``."""
    if state < 0 or live[state] < 0 or known[state] < 0:
        return n
    for k in range(known[state]):
        if counts[state, k] == count:
            return n
    if count < 0 or known[state] == counts.shape[1]:
        known[state] = -1
        count = np.int64(-1)
    else:
        counts[state, known[state]] = count
        known[state] += 1
    todo[n, 0] = state
    todo[n, 1] = count
    return n + 1


@bare_kernel
def spread_counts(edge_start, edge_target, like, group_start, move_record, move_start, sequence, records, loops, live,
                  counts, known, todo, n):  # fmt: skip
    """The counts that states can have, by a flow along the moves that keep, set or add to a count.

    Parameters
    ----------
    counts, known:
        ``int64[states, *]``, ``int32[states]``, out: the counts of a state, and how many; -1 for more than there is
        room for, to begin with for states with sets.
    todo, n:
        ``int64[*, 2]``: room for all counts of all states and two more each; the first ``n`` are the states that can
        be entered without a count.

    The other arrays are the columns of `structgen.runtime.pushdown_tables.PushdownTables`, ``int32`` each.
    """
    n_states = len(live)
    for group in range(len(group_start) - 1):
        for m in range(group_start[group], group_start[group + 1]):
            r = move_record[m] - 1
            if r >= 0 and records[r, 0] == SET:
                n = _add_count(live, counts, known, todo, n, records[r, 2], np.int64(1))
    while n:
        n -= 1
        state = todo[n, 0]
        count = todo[n, 1]
        here = state
        while here >= 0:
            for e in range(edge_start[here], edge_start[here + 1]):
                target = edge_target[e] - 1
                if target < n_states:
                    if count:
                        n = _add_count(live, counts, known, todo, n, target, count)
                    continue
                for m in range(group_start[target - n_states], group_start[target - n_states + 1]):
                    r = move_record[m] - 1
                    if r < 0:
                        if count and move_start[m] < move_start[m + 1]:
                            n = _add_count(live, counts, known, todo, n, sequence[move_start[m]], count)
                    elif count < 0:
                        n = _add_count(live, counts, known, todo, n, records[r, 2], count)
                        if records[r, 0] == INC:
                            n = _add_count(live, counts, known, todo, n, records[r, 3], count)
                            n = _add_count(live, counts, known, todo, n, records[r, 4], count)
                    elif records[r, 0] == INC:
                        zone = _zone(count + 1, loops[records[r, 1], 0], loops[records[r, 1], 1])
                        n = _add_count(live, counts, known, todo, n, records[r, 2 + zone], count + 1)
            here = like[here] - 1


# -- rows -----------------------------------------------------------------------------------------------


@bare_kernel
def nearest_base(row, bases, n_bases, good_enough):
    """Which base differs from ``row`` in the fewest bits: 0 is the empty row, ``b`` is ``bases[b - 1]``.

    ``bases`` is ``uint32[*, words]``. Returns (base, bits); stops at the first that is ``good_enough``, the
    empty row first.
    """
    best = 0
    fewest = 0
    for w in range(len(row)):
        fewest += _popcount(row[w])
    for b in range(n_bases):
        if fewest <= good_enough:
            break
        bits = 0
        for w in range(len(row)):
            bits += _popcount(row[w] ^ bases[b, w])
            if bits >= fewest:
                break
        if bits < fewest:
            fewest = bits
            best = b + 1
    return best, fewest


@bare_kernel
def flip_gaps(row, gaps, long_gap):
    """Flip the bits of a stored list of ids in ``row``, ``uint32[words]``: ``uint16`` gaps, see `encode_gaps`."""
    position = 0
    for i in range(len(gaps)):
        gap = np.int64(gaps[i])
        position += gap
        if gap != long_gap:
            row[position >> 5] ^= np.uint32(1) << np.uint32(position & 31)


@bare_kernel
def flip_ids(row, ids):
    """Flip the bits of token ids in ``row``, ``uint32[words]``."""
    for i in range(len(ids)):
        t = ids[i]
        row[t >> 5] ^= np.uint32(1) << np.uint32(t & 31)


@kernel
def set_bits(row, base, count):
    """The ascending positions of the ``count`` bits in which two rows differ."""
    out = np.empty(count, np.uint32)
    n = 0
    for w in range(len(row)):
        word = row[w] ^ base[w]
        while word:
            low = word & (~word + np.uint32(1))
            out[n] = 32 * w + _popcount(low - np.uint32(1))
            n += 1
            word ^= low
    return out


@inlined
def _popcount(word):
    word = word - ((word >> np.uint32(1)) & np.uint32(0x55555555))
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    # Numba computes in 64 bits here: only the fourth byte of the product is the sum.
    return np.int64((word * np.uint32(0x01010101)) >> np.uint32(24)) & 0xFF


# -- token walks with a lexer ----------------------------------------------------------------------------


#: Where sets of watched states lead: to a lexeme that must not be completed, or where nobody has looked.
BEATEN = -2
NOT_FOLLOWED = -3


@kernel
def walk_lexer(byte, depth, skip, first_token, token_ids, max_depth, class_of, table, goes_on, beats, sets, resume,
               state, watch, ids, ends, end_watch, below, below_state, below_watch, missing):  # fmt: skip
    """The tokens that a lexeme in progress allows, and where in the trie it can be complete.

    Parameters
    ----------
    class_of, table, goes_on, beats:
        The lexer, as in `structgen.runtime.grammar_tables`.
    sets:
        ``int32[sets, classes]``: where a byte leads sets of several states that are watched, which are numbered
        behind the lexer's states: a state, a set, -1 for nothing, `BEATEN`, or `NOT_FOLLOWED`.
    resume:
        ``int32[*]``, nodes; the subtree below each is walked from ``state``.
    state:
        The lexer state at these nodes.
    watch:
        A state of an earlier lexeme that must not be completed any more, a set of such, or -1: the walk ends where
        it beats.
    ids, ends, end_watch:
        ``int32[*]``, out: allowed tokens in the trie's order, the lexer state after each, and, where something was
        watched, what is after it.
    below, below_state, below_watch:
        ``int32[*]``, out: nodes at which the lexeme may be complete and a token may go on with another one, its state
        there, and what is watched there.
    missing:
        ``int32[*]``, out: sets that lead somewhere unknown; the walk has to be made again then.

    Returns
    -------
    (number of tokens, number of nodes, number of sets), or ``(OVERFLOW, 0, 0)`` where an output is too short.
    """
    states = np.empty(max_depth + 2, np.int32)
    watched = np.empty(max_depth + 2, np.int32)
    n = 0
    m = 0
    unknown = 0
    for r in range(len(resume)):
        root = resume[r]
        states[depth[root]] = state
        watched[depth[root]] = watch
        i = root + 1
        end = skip[root]
        while i < end:
            d = depth[i]
            c = class_of[byte[i]]
            s = table[states[d - 1], c]
            if s < 0:
                i = skip[i]
                continue
            w = watched[d - 1]
            if w >= len(table):
                before = w
                w = sets[before - len(table), c]
                if w == NOT_FOLLOWED and unknown < len(missing) and (not unknown or missing[unknown - 1] != before):
                    missing[unknown] = before
                    unknown += 1
                if w < -1:
                    i = skip[i]
                    continue
            elif w >= 0:
                w = table[w, c]
                if w >= 0 and beats[w]:
                    i = skip[i]
                    continue
            for t in range(first_token[i], first_token[i + 1]):
                if n == len(ids):
                    return OVERFLOW, 0, 0
                ids[n] = token_ids[t]
                ends[n] = s
                if watch >= 0:
                    end_watch[n] = w
                n += 1
            if i + 1 < skip[i]:
                # Only where some token goes on behind a lexeme that ends here.
                child = i + 1
                while child < skip[i] and not goes_on[s, class_of[byte[child]]]:
                    child = skip[child]
                if child < skip[i]:
                    if m == len(below):
                        return OVERFLOW, 0, 0
                    below[m] = i
                    below_state[m] = s
                    below_watch[m] = w
                    m += 1
                states[d] = s
                watched[d] = w
            i += 1
    return n, m, unknown


@kernel
def most_completed(byte, depth, skip, first_token, max_depth, class_of, table, goes_on, ends, begins, added, starts,
                   limit):  # fmt: skip
    """The most that the lexemes which a token completes add up to, from whatever lexer state it begins in.

    Parameters
    ----------
    class_of, table, goes_on, starts:
        The lexer, as in `structgen.runtime.grammar_tables`.
    ends, begins:
        ``int32[*]``, ``int64[lexer states + 1]``: the terminals that a lexeme can be where it ends, state by state.
    added:
        ``int64[terminals + 1, terminals]``: what a terminal adds behind another one, or behind any; -1 for one that
        leaves what was before it the one before.
    limit:
        So many states, each with the terminal before, are looked at below nodes at most.

    Returns
    -------
    The sum, or -1 where that takes too long.
    """
    count = len(table)
    kinds = added.shape[0]
    width = 2 * count + 4096
    states = np.empty((max_depth + 2, width), np.int32)  # with the terminal before
    sums = np.empty((max_depth + 2, width), np.int64)
    lengths = np.zeros(max_depth + 2, np.int64)
    seen = np.full(count * kinds, -1, np.int64)
    slots = np.empty(count * kinds, np.int64)
    for s in range(count):
        states[depth[0], s] = s * kinds + kinds - 1
        sums[depth[0], s] = 0
    lengths[depth[0]] = count
    most = 0
    steps = 0
    i = 1
    while i < len(byte):
        d = depth[i]
        c = class_of[byte[i]]
        n = 0
        for k in range(lengths[d - 1]):
            s = states[d - 1, k] // kinds
            before = states[d - 1, k] % kinds
            turns = (begins[s + 1] - begins[s]) * len(starts) if goes_on[s, c] else 0
            steps += 1 + turns
            for j in range(-1, turns):
                total = sums[d - 1, k]
                last = before
                if j < 0:
                    target = table[s, c]
                else:
                    target = table[starts[j % len(starts)], c]
                    terminal = ends[begins[s] + j // len(starts)]
                    if added[before, terminal] >= 0:
                        total += added[before, terminal]
                        last = terminal
                if target < 0:
                    continue
                key = target * kinds + last
                if seen[key] != i:
                    if n == width:
                        return -1
                    seen[key] = i
                    slots[key] = n
                    states[d, n] = key
                    sums[d, n] = total
                    n += 1
                elif sums[d, slots[key]] < total:
                    sums[d, slots[key]] = total
        if steps > limit:
            return -1
        lengths[d] = n
        if first_token[i] < first_token[i + 1]:
            for k in range(n):
                most = max(most, sums[d, k])
        i = i + 1 if n else skip[i]
    return most


# -- masks on a parser's stack -----------------------------------------------------------------------------
#
# Stacks are cells: a state and the cell below. Equal ones have the same number, from call to call, so that what a
# stack accepts and where a terminal leads to is worked out once. All that is remembered lies in tables that hold
# numbered pairs, each with the slots by which a pair is found: the number and 1, or 0 for a free one. Slots are a
# power of 2, and at least twice as many as there can be pairs.

# Places in `counts`: how many there are, and the cell of the stack that the last mask was for.
_N_CELLS, _N_SHIFTS, _N_ACCEPTS, _N_OFFERS, _STACK = 0, 1, 2, 3, 4

#: What stands for a cell: the terminal can't come; the stack is too short, or reduces without end; a table is full.
REFUSED, SHORT, FULL = -1, -2, -3

# Reductions, and states followed, in a row; only damaged tables need more.
_MOST_STEPS = 1000000


@spliced
def _slot(slots, pairs, a, b, bits):
    """The slot of a pair of numbers, which is free where the pair is new.

    It lies near those of pairs with neighbouring ``a``, which come at the same time, if it can: a cell has few others
    above it. From there on it is double hashing (Knuth, TAOCP 3, section 6.4, algorithm D).
    """
    mask = len(slots) - 1
    mixed = np.uint64(b + 1) * np.uint64(0x9E3779B97F4A7C15)
    slot = (np.int64(a + 1) << bits) + np.int64(mixed >> np.uint64(64 - bits)) & mask
    step = np.int64((mixed ^ np.uint64(a + 1) * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(33)) | 1
    while slots[slot]:
        pair = slots[slot] - 1
        if pairs[pair, 0] == a and pairs[pair, 1] == b:
            break
        slot = (slot + step) & mask
    return slot


@spliced
def _cell(cells, cell_slots, counts, state, below):
    """The cell of a state on top of another cell, or `FULL`."""
    slot = _slot(cell_slots, cells, below, state, 1)
    if cell_slots[slot]:
        return cell_slots[slot] - 1
    c = counts[_N_CELLS]
    if c == len(cells):
        return FULL
    counts[_N_CELLS] = c + 1
    cell_slots[slot] = c + 1
    cells[c, 0] = below
    cells[c, 1] = state
    cells[c, 2] = cells[below, 2] + 1 if below >= 0 else 0
    cells[c, 3] = 0
    return c


@spliced
def _reduced(goto, cells, cell_slots, counts, state, below, length, nonterminal):
    """The state and the cell below it after a reduction of a stack given likewise; the cell may be `SHORT` or `FULL`.

    So the stacks on the way to a shift, of which there are many in a row of operators of growing precedence, need no
    cells.
    """
    if length == 0:
        below = _cell(cells, cell_slots, counts, state, below)
    else:
        for _ in range(length - 1):
            if below < 0:
                break
            below = cells[below, 0]
        if below < 0:
            below = SHORT
    state = -1
    if below >= 0:
        state = goto[cells[below, 1], nonterminal]
        if state < 0:
            below = SHORT
    return state, below


@inlined
def _shifted(shift, goto, reductions, reduce, before, certain, cells, cell_slots, shifts, shift_slots, counts, cell,
             terminal):  # fmt: skip
    """The number in ``shifts`` of what a terminal leads to, which may be `REFUSED`; or `SHORT` or `FULL`."""
    slot = _slot(shift_slots, shifts, cell, terminal, 2)
    if shift_slots[slot]:
        return shift_slots[slot] - 1
    known = counts[_N_SHIFTS]
    if known == len(shifts):
        return FULL
    s = np.int64(cells[cell, 1])
    below = np.int64(cells[cell, 0])
    looked = cells[cell, 2]
    word = terminal >> 5
    bit = np.uint32(1) << np.uint32(terminal & 31)
    steps = 0
    state = np.int64(0)
    here = np.int64(REFUSED)
    while shift[s, terminal] < 0:
        r = reductions[s]
        while r < reductions[s + 1] and not before[r, word] & bit:
            r += 1
        if r == reductions[s + 1]:
            break
        steps += 1
        if steps > _MOST_STEPS:
            return SHORT
        s, below = _reduced(goto, cells, cell_slots, counts, s, below, reduce[r, 0], reduce[r, 1])
        if below < 0:
            return below
        looked = min(looked, cells[below, 2])
    if shift[s, terminal] >= 0:
        state = np.int64(shift[s, terminal])
        below = _cell(cells, cell_slots, counts, s, below)
        s = state
        while below >= 0 and certain[s]:
            r = reductions[s]
            steps += 1
            if steps > _MOST_STEPS:
                return SHORT
            s, below = _reduced(goto, cells, cell_slots, counts, s, below, reduce[r, 0], reduce[r, 1])
            if below >= 0:
                looked = min(looked, cells[below, 2])
        here = _cell(cells, cell_slots, counts, s, below) if below >= 0 else below
        if here < 0:
            return here
    counts[_N_SHIFTS] = known + 1
    shift_slots[slot] = known + 1
    shifts[known, 0] = cell
    shifts[known, 1] = terminal
    shifts[known, 2] = here
    shifts[known, 3] = looked
    shifts[known, 4] = state
    return known


@inlined
def _line_ended(shift, goto, reductions, reduce, before, certain, cells, cell_slots, shifts, shift_slots, counts,
                cell, move, newline, indent, dedent):  # fmt: skip
    """What a line end leads to, with indents or dedents: -2 for an indent, else 1 plus the number of dedents.

    Returns the cell, or what stands for it, the lowest depth looked at, and the state that shifted the last terminal.
    """
    looked = cells[cell, 2]
    state = np.int32(0)
    for k in range(2 if move == -2 else move):
        terminal = newline if k == 0 else indent if move == -2 else dedent
        known = _shifted(
            shift, goto, reductions, reduce, before, certain, cells, cell_slots, shifts, shift_slots, counts,
            cell, terminal,
        )  # fmt: skip
        if known < 0:
            return known, looked, state
        cell = shifts[known, 2]
        looked = min(looked, shifts[known, 3])
        state = shifts[known, 4]
        if cell < 0:
            break
    return cell, looked, state


@spliced
def _same_words(rows, a, b):
    w = 0
    while w < rows.shape[1] and rows[a, w] == rows[b, w]:
        w += 1
    return w == rows.shape[1]


@inlined
def _find_accepted(goto, reductions, reduce, before, shifted, ignored, cells, cell_slots, accepted, accept_slots,
                   counts, waiting, masks, cell):  # fmt: skip
    """Note in a cell what its stack accepts, from all terminals' reductions at once; 0, or `SHORT` or `FULL`."""
    words = len(ignored)
    new = counts[_N_ACCEPTS]
    if new == len(accepted):
        return FULL
    for w in range(words):
        accepted[new, w] = ignored[w]
        masks[0, w] = np.uint32(0xFFFFFFFF)
    looked = cells[cell, 2]
    waiting[0, 0] = cells[cell, 1]
    waiting[0, 1] = cells[cell, 0]
    n = 1
    steps = 0
    while n:
        n -= 1
        s = np.int64(waiting[n, 0])
        below = np.int64(waiting[n, 1])
        steps += 1
        if steps > _MOST_STEPS or n + 1 + reductions[s + 1] - reductions[s] >= len(waiting):
            return SHORT
        for w in range(words):
            accepted[new, w] |= shifted[s, w] & masks[n, w]
        # What is read is overwritten by the first of them, so that one comes last.
        first = n
        n += 1
        for r in range(reductions[s] + 1, reductions[s + 1]):
            any_left = False
            for w in range(words):
                masks[n, w] = masks[first, w] & before[r, w]
                if masks[n, w]:
                    any_left = True
            if any_left:
                after, under = _reduced(goto, cells, cell_slots, counts, s, below, reduce[r, 0], reduce[r, 1])
                if under < 0:
                    return under
                looked = min(looked, cells[under, 2])
                waiting[n, 0] = after
                waiting[n, 1] = under
                n += 1
        any_left = False
        if reductions[s] < reductions[s + 1]:
            r = reductions[s]
            for w in range(words):
                masks[first, w] &= before[r, w]
                if masks[first, w]:
                    any_left = True
        if any_left:
            after, under = _reduced(goto, cells, cell_slots, counts, s, below, reduce[r, 0], reduce[r, 1])
            if under < 0:
                return under
            looked = min(looked, cells[under, 2])
            waiting[first, 0] = after
            waiting[first, 1] = under
        else:
            n -= 1
            waiting[first, 0] = waiting[n, 0]
            waiting[first, 1] = waiting[n, 1]
            for w in range(words):
                masks[first, w] = masks[n, w]
    mixed = np.uint64(0)
    for w in range(words):
        mixed = (mixed ^ accepted[new, w]) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    mask = len(accept_slots) - 1
    slot = np.int64(mixed) & mask
    while accept_slots[slot] and not _same_words(accepted, accept_slots[slot] - 1, new):
        slot = (slot + 1) & mask
    if not accept_slots[slot]:
        accept_slots[slot] = new + 1
        counts[_N_ACCEPTS] = new + 1
    cells[cell, 3] = accept_slots[slot]
    cells[cell, 4] = looked
    return 0


@spliced
def _offer(keep, given, accepted, offers, offer_slots, offered, hits, counts, number, level):
    """The number of what is accepted at a level, or `FULL`."""
    slot = _slot(offer_slots, offers, number, level, 1)
    if offer_slots[slot]:
        return offer_slots[slot] - 1
    new = counts[_N_OFFERS]
    if new == len(offers):
        return FULL
    counts[_N_OFFERS] = new + 1
    offer_slots[slot] = new + 1
    offers[new, 0] = number
    offers[new, 1] = level
    for w in range(offered.shape[1]):
        offered[new, w] = accepted[number, w] & keep[level, w] | given[level, w]
    for k in range(hits.shape[1]):
        hits[new, k] = 0
    return new


@inlined
def _accepts(shift, goto, reductions, reduce, before, certain, lines, moves, sets, number, has_columns, cells,
             cell_slots, shifts, shift_slots, offered, counts, cell, offer, level):  # fmt: skip
    """Whether one of a set of terminals is accepted: 1, 0, or `SHORT` or `FULL`; and the lowest depth looked at."""
    for w in range(sets.shape[1]):
        if sets[number, w] & offered[offer, w]:
            return 1, cells[cell, 2]
    looked = cells[cell, 2]
    if not has_columns:
        return 0, looked
    # One of the columns that a line may begin at here; the first that is an indent stands for all that are wider.
    columns = moves.shape[1] - 2
    for column in range(columns):
        move = moves[level, column]
        if move > 0 or move == -2:
            wanted = False
            for c in range(column, columns if move == -2 else column + 1):
                t = lines[3] + c
                if moves[level, c] != -1 and sets[number, t >> 5] >> np.uint32(t & 31) & np.uint32(1):
                    wanted = True
                    break
            if wanted:
                here, depth, _ = _line_ended(
                    shift, goto, reductions, reduce, before, certain, cells, cell_slots, shifts, shift_slots, counts,
                    cell, move, lines[0], lines[1], lines[2],
                )  # fmt: skip
                looked = min(looked, depth)
                if here >= 0:
                    return 1, looked
                if here != REFUSED:
                    return here, looked
            if move == -2:
                break
    return 0, looked


@inlined
def _allows(shift, goto, reductions, reduce, before, certain, lines, moves, sets, tight, number, cells, cell_slots,
            shifts, shift_slots, offered, counts, cell, offer, level):  # fmt: skip
    """As `_accepts`, for what a lexeme can become; -1 where that is up to what can follow it."""
    answer, looked = _accepts(
        shift, goto, reductions, reduce, before, certain, lines, moves, sets, 2 * number, tight[number] & 2, cells,
        cell_slots, shifts, shift_slots, offered, counts, cell, offer, level,
    )  # fmt: skip
    if answer or not tight[number] & 1:
        return answer, looked
    answer, depth = _accepts(
        shift, goto, reductions, reduce, before, certain, lines, moves, sets, 2 * number + 1, tight[number] & 4,
        cells, cell_slots, shifts, shift_slots, offered, counts, cell, offer, level,
    )  # fmt: skip
    return -1 if answer == 1 else answer, min(looked, depth)


#: Of the groups of a record (see `walk_stack_masks`): those with at most so many ids have them in it. Others have the
#: number of a row, or where in a list their ids lie.
MOST_IDS, IS_ROW, IS_LONG = 29, 30, 31


@bare_kernel
def lay_out_places(group_start, groups, end_start, ends, ids_start, ids, is_list, records, at):
    """Write the records of places one after another.

    Parameters
    ----------
    group_start, groups, end_start, ends:
        Place ``p`` has the groups ``group_start[p]:group_start[p + 1]``, ``int32[*, 2]`` set and row, and likewise
        ends, ``int32[*, 2]`` terminal and way.
    ids_start, ids, is_list:
        The ids of row ``r`` are ``ids[ids_start[r]:ids_start[r + 1]]``, where it is a list of them.
    records, at:
        ``int32[*]``, out: the records, and where that of each place begins.
    """
    n = 0
    for p in range(len(at)):
        at[p] = n
        records[n] = end_start[p + 1] - end_start[p]
        records[n + 1] = group_start[p + 1] - group_start[p]
        n += 2
        for e in range(end_start[p], end_start[p + 1]):
            records[n] = ends[e, 0]
            records[n + 1] = ends[e, 1]
            n += 2
        for g in range(group_start[p], group_start[p + 1]):
            r = groups[g, 1]
            first = ids_start[r]
            count = ids_start[r + 1] - first
            if not is_list[r]:
                records[n] = groups[g, 0] << 5 | IS_ROW
                records[n + 1] = r
                n += 2
            elif count > MOST_IDS:
                records[n] = groups[g, 0] << 5 | IS_LONG
                records[n + 1] = first
                records[n + 2] = count
                n += 3
            else:
                records[n] = groups[g, 0] << 5 | count
                n += 1
                for k in range(count):
                    records[n] = ids[first + k]
                    n += 1


@bare_kernel
def add_groups(records, ids, groups, row, pool_rows):
    """Set the bits of groups' ids in a row.

    Parameters
    ----------
    records, ids:
        ``int32[*]``. A group is 32 times its set, plus the number of its ids, `IS_ROW` or `IS_LONG`, and behind that
        its ids, or the row of the pool that has them, or where they begin in ``ids`` and how many they are.
    groups:
        ``int32[*]``: where groups begin in ``records``.
    row:
        ``uint32[words]``, out.
    pool_rows:
        ``int32[*]``, out, as long as ``groups``: the rows of the pool, which are not added.

    Returns
    -------
    The number of these.
    """
    n = 0
    for at in groups:
        count = records[at] & 31
        if count == IS_ROW:
            pool_rows[n] = records[at + 1]
            n += 1
        elif count == IS_LONG:
            first = records[at + 1]
            for k in range(first, first + records[at + 2]):
                i = ids[k]
                row[i >> 5] |= np.uint32(1) << np.uint32(i & 31)
        else:
            for k in range(at + 1, at + 1 + count):
                i = records[k]
                row[i >> 5] |= np.uint32(1) << np.uint32(i & 31)
    return n


@bare_kernel
def walk_stack_masks(shift, goto, reductions, reduce, before, shifted, certain, context, ignored, lines, brackets,
                     keep, given, moves, levels, records, sets, tight, target, stack, place,
                     within, level, cells, cell_slots, shifts, shift_slots, accepted,
                     accept_slots, offers, offer_slots, offered, hits, counts, waiting, masks, todo, allowed, missing,
                     open_questions):  # fmt: skip
    """Everything that a place allows on a stack, through all terminals that tokens complete.

    Parameters
    ----------
    shift, goto:
        ``int32[states, terminals + 1]`` and ``int32[states, nonterminals]``: the next state, -1 for none.
    reductions, reduce, before:
        The reductions of state ``s`` are ``reductions[s]:reductions[s + 1]``; ``int32[*, 2]`` length and nonterminal;
        ``uint32[*, words]`` the terminals before which each is made.
    shifted, certain, context, ignored:
        ``uint32[states, words]``; ``uint8[states]``: whether a state makes its only reduction whatever comes next;
        ``int32[states]``; ``uint32[words]``.
    lines, brackets:
        ``int32[4]``: the terminals of line ends, indents and dedents, and the one that stands for a line end with
        column 0; ``uint8[terminals]``: 1 for opening brackets, 2 for closing ones.
    keep, given:
        ``uint32[levels, words]``: the terminals that a level leaves to the parser, and those that it accepts itself.
    moves, levels:
        ``int32[levels, columns + 2]``: what a line end with a column, or behind these a bracket, comes to at a level:
        -1 can't come, 0 nothing, 1 a line end, 1 + d with d dedents, -2 with an indent; and the level after, -1
        where it is not known yet.
    records:
        ``int32[*]`` (see `add_groups`). A place is where its record begins: the number of its ends and of its
        groups; for each end its terminal and way; and its groups.
    sets, tight:
        ``uint32[*, words]``, two for each set: terminals that are enough, and terminals that are if something can
        follow; ``uint8[*]``: 1 where there are some of these, 2 and 4 for columns among the two.
    target:
        ``int32[ways, contexts]``: the place that goes on from a way in a context, or -1.
    stack, place, within, level:
        ``int32[*]``, the states from the lowest up; where to begin, in which context, and at which level.
    cells, cell_slots:
        ``int32[*, 5]``: cell below, state, depth, and, as soon as it is known, 1 plus the number of what is
        accepted, and the lowest depth looked at for that. The slots of this table and the next ones are ``int32[*]``.
    shifts, shift_slots:
        ``int32[*, 5]``: cell, terminal, cell after it, lowest depth looked at, and the state that shifted it.
    accepted, accept_slots:
        ``uint32[*, words]``: the different sets of terminals that stacks accept.
    offers, offer_slots, offered, hits:
        ``int32[offers, 2]`` number of such a set, and level; ``uint32[offers, words]``: what of it the level leaves;
        ``uint8[offers, sets]``: whether a set has one of these, 1 for no, 2 for yes, 0 where it is not known yet.
    counts:
        ``int64[5]``: how many cells, shifts, sets and offers there are, which are left to the next call; and, out,
        the cell of ``stack``.
    waiting, masks, todo:
        Scratch: ``int32[*, 2]``, ``uint32[*, words]``, ``int32[*, 4]``.
    allowed, missing, open_questions:
        ``int32[*]``, ``int32[*, 2]`` and ``int32[*, 4]``, out: where the groups that are allowed lie in ``records``;
        ways and contexts without a place, or -1 minus a level, and a column or bracket, without a level after; cell,
        context, level and the place of a group in ``records`` that are left open.

    Returns
    -------
    (number of groups, number missing, number left open, lowest depth looked at); the first is `SHORT` where more of
    the stack is needed or scratch does not suffice, and `FULL` where the tables have to be emptied.
    """
    below = -1
    for k in range(len(stack)):
        below = _cell(cells, cell_slots, counts, stack[k], below)
        if below < 0:
            return below, 0, 0, 0
    counts[_STACK] = below
    looked = cells[below, 2]
    n_allowed = 0
    n_missing = 0
    n_open = 0
    newline = lines[0]
    at_zero = lines[3]
    columns = moves.shape[1] - 2
    todo[0, 0] = place
    todo[0, 1] = below
    todo[0, 2] = within
    todo[0, 3] = level
    n_todo = 1
    visited = 0
    while n_todo:
        n_todo -= 1
        visited += 1
        if visited > 10000000:  # a circle, which only a damaged file holds
            return SHORT, 0, 0, 0
        p = todo[n_todo, 0]
        c = todo[n_todo, 1]
        p_context = todo[n_todo, 2]
        p_level = todo[n_todo, 3]
        if cells[c, 3] == 0:
            failed = _find_accepted(
                goto, reductions, reduce, before, shifted, ignored, cells, cell_slots, accepted, accept_slots, counts,
                waiting, masks, c,
            )  # fmt: skip
            if failed:
                return failed, 0, 0, 0
        looked = min(looked, cells[c, 4])
        offer = _offer(
            keep, given, accepted, offers, offer_slots, offered, hits, counts, cells[c, 3] - 1, p_level
        )
        if offer < 0:
            return offer, 0, 0, 0
        e_end = p + 2 + 2 * records[p]
        for e in range(p + 2, e_end, 2):
            t = records[e]
            here = c
            where = p_context
            after_level = p_level
            operation = -1
            if t >= at_zero:
                operation = t - at_zero
            else:
                if not offered[offer, t >> 5] >> np.uint32(t & 31) & np.uint32(1):
                    continue
                if brackets[t]:
                    operation = columns + brackets[t] - 1
            if operation >= 0:
                move = moves[p_level, operation]
                if move == -1:
                    continue
                after_level = levels[p_level, operation]
                if after_level < 0:
                    if n_missing < len(missing):
                        missing[n_missing, 0] = -1 - p_level
                        missing[n_missing, 1] = operation
                        n_missing += 1
                    continue
            if t >= at_zero:
                if move:
                    here, depth, state = _line_ended(
                        shift, goto, reductions, reduce, before, certain, cells, cell_slots, shifts, shift_slots,
                        counts, c, move, newline, lines[1], lines[2],
                    )  # fmt: skip
                    looked = min(looked, depth)
                    if here == REFUSED:
                        continue
                    where = context[state]
            elif t != newline and not ignored[t >> 5] >> np.uint32(t & 31) & np.uint32(1):
                slot = _slot(shift_slots, shifts, c, t, 2)
                known = shift_slots[slot] - 1
                if known < 0:
                    known = _shifted(
                        shift, goto, reductions, reduce, before, certain, cells, cell_slots, shifts, shift_slots,
                        counts, c, t,
                    )  # fmt: skip
                    if known < 0:
                        return known, 0, 0, 0
                here = shifts[known, 2]
                looked = min(looked, shifts[known, 3])
                where = context[shifts[known, 4]]
            if here < 0:
                return min(here, SHORT), 0, 0, 0
            following = target[records[e + 1], where]
            if following < 0:
                if n_missing < len(missing):
                    missing[n_missing, 0] = records[e + 1]
                    missing[n_missing, 1] = where
                    n_missing += 1
                continue
            if n_todo == len(todo):
                return SHORT, 0, 0, 0
            todo[n_todo, 0] = following
            todo[n_todo, 1] = here
            todo[n_todo, 2] = where
            todo[n_todo, 3] = after_level
            n_todo += 1
        g = e_end
        for _ in range(records[p + 1]):
            number = records[g] >> 5
            count = records[g] & 31
            group = g
            g += 2 if count == IS_ROW else 3 if count == IS_LONG else 1 + count
            if hits[offer, number] == 0:
                hits[offer, number] = 1
                for w in range(sets.shape[1]):
                    if sets[2 * number, w] & offered[offer, w]:
                        hits[offer, number] = 2
                        break
            if hits[offer, number] == 1:
                if not tight[number]:
                    continue
                answer, depth = _allows(
                    shift, goto, reductions, reduce, before, certain, lines, moves, sets, tight, number, cells,
                    cell_slots, shifts, shift_slots, offered, counts, c, offer, p_level,
                )  # fmt: skip
                looked = min(looked, depth)
                if answer == 0:
                    continue
                if answer < -1:
                    return answer, 0, 0, 0
                if answer == -1:
                    if n_open == len(open_questions):
                        return SHORT, 0, 0, 0
                    open_questions[n_open, 0] = c
                    open_questions[n_open, 1] = p_context
                    open_questions[n_open, 2] = p_level
                    open_questions[n_open, 3] = group
                    n_open += 1
                    continue
            if n_allowed == len(allowed):
                return SHORT, 0, 0, 0
            allowed[n_allowed] = group
            n_allowed += 1
    return n_allowed, n_missing, n_open, looked


# -- batches of sequences -----------------------------------------------------------------------------------

#: Of a transition: not taken before; see `structgen.runtime.lazy_automaton`.
UNKNOWN = -2

#: What became of a row's token: it is not worked out yet, it was refused, it was accepted.
PENDING, REJECTED, ACCEPTED = 0, 1, 2

#: The configuration of a text that has ended, and that of one without a definition.
ENDED, FREE = 0, 1


@spliced
def token_slot(keys, config, token):
    """The slot of a configuration's token, which holds -1 where it is new. (Linear probing, TAOCP 3, section 6.4.)"""
    mask = len(keys) - 1
    key = np.int64(config) << 32 | np.int64(token)
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while keys[slot] != key and keys[slot] >= 0:
        slot = (slot + 1) & mask
    return slot


@spliced
def _token_target(config, token, offsets, blob, following, spelled_in, keys, values):
    """Where a token leads from a configuration: its number, `DEAD` or `UNKNOWN`."""
    if config == FREE:
        return FREE
    begin, end = offsets[token], offsets[token + 1]
    target = config
    while begin < end and target >= 0:
        target = following[spelled_in[target], blob[begin]]
        begin += 1
    if target == UNKNOWN or offsets[token] == end:
        slot = token_slot(keys, config, token)
        target = values[slot] if keys[slot] >= 0 else UNKNOWN
    return target


@bare_kernel
def find_token(keys, config, token):
    """`token_slot`, for Python."""
    return token_slot(keys, config, token)


@bare_kernel
def advance_batch(tokens, which, at, nodes, used, offsets, blob, following, spelled_in, keys, values, row_of, outcome,
                  rows):  # fmt: skip
    """Append a token to each of some sequences.

    Parameters
    ----------
    tokens, which:
        ``int32[n]``: the tokens, in the vocabulary, and the sequences that they are for.
    at:
        ``int32[sequences]``: the node where each is; moved.
    nodes, used:
        The forest, ``int32[3, capacity]``: the node before each, its configuration, the token that led there; and
        how many there are. It has room for ``n`` more.
    offsets, blob:
        The vocabulary.
    following, spelled_in, keys, values, row_of:
        The transitions by byte and by token, and the rows; see `structgen.runtime.lazy_automaton`.
    outcome:
        ``int8[n]``: what became of each token; those that are `PENDING` are looked at.
    rows:
        ``int32[sequences]``: the row of each sequence that was moved, where it is known, else `UNKNOWN`.

    Returns how many are still pending, and how many rows are unknown.
    """
    pending = 0
    unknown = 0
    for i in range(len(tokens)):
        if outcome[i] != PENDING:
            continue
        s = which[i]
        target = _token_target(nodes[1, at[s]], tokens[i], offsets, blob, following, spelled_in, keys, values)
        if target == UNKNOWN:
            pending += 1
            continue
        if target < 0:
            outcome[i] = REJECTED
            continue
        node = used[0]
        used[0] = node + 1
        nodes[0, node] = at[s]
        nodes[1, node] = target
        nodes[2, node] = tokens[i]
        at[s] = node
        rows[s] = row_of[target]
        if rows[s] < 0:
            unknown += 1
        outcome[i] = ACCEPTED
    return pending, unknown


@bare_kernel
def follow_tree(tokens, above, begins, offsets, blob, following, spelled_in, keys, values, reached):
    """Follow trees of tokens, without a change to any sequence.

    Parameters
    ----------
    tokens, above, begins:
        ``int32[n]``: the tokens, the place of the token before each, an earlier one, or -1, and the configuration
        that one without begins at.
    reached:
        ``int32[n]``: where each token leads, `DEAD` where it or one before it is refused; the `UNKNOWN` are looked
        at.

    Returns the place of the first that stays unknown, or -1.
    """
    first = -1
    for i in range(len(tokens)):
        if reached[i] != UNKNOWN:
            continue
        config = begins[i] if above[i] < 0 else reached[above[i]]
        if config >= 0:
            config = _token_target(config, tokens[i], offsets, blob, following, spelled_in, keys, values)
        reached[i] = config
        if config == UNKNOWN and first < 0:
            first = i
    return first


@bare_kernel
def copy_rows(numbers, rows, counts, places, masks):
    """Write rows into masks.

    Parameters
    ----------
    numbers:
        ``int32[batch]``: the row of each mask.
    rows, counts, places:
        ``int32[rows, words]``; how many words of each are not zero, -1 for many; and where these are.
    masks:
        ``int32[batch, width]``, at least as wide; what is wider becomes zero.
    """
    words = rows.shape[1]
    for i in range(len(numbers)):
        number = numbers[i]
        if counts[number] < 0:
            for w in range(words):
                masks[i, w] = rows[number, w]
            for w in range(words, masks.shape[1]):
                masks[i, w] = 0
            continue
        for w in range(masks.shape[1]):
            masks[i, w] = 0
        for k in range(counts[number]):
            w = places[number, k]
            masks[i, w] = rows[number, w]


@bare_kernel
def change_rows(numbers, shown, rows, counts, places, masks):
    """As `copy_rows`, for masks that hold the rows ``shown`` (``int32[batch]``, updated); nobody else writes them."""
    words = rows.shape[1]
    for i in range(len(numbers)):
        number = numbers[i]
        before = shown[i]
        if number == before:
            continue
        shown[i] = number
        if counts[number] < 0:
            for w in range(words):
                masks[i, w] = rows[number, w]
            continue
        if before < 0 or counts[before] < 0:
            for w in range(words):
                masks[i, w] = 0
        else:
            for k in range(counts[before]):
                masks[i, places[before, k]] = 0
        for k in range(counts[number]):
            w = places[number, k]
            masks[i, w] = rows[number, w]


@bare_kernel
def roll_back(counts, which, at, befores, reached):
    """The nodes so many tokens before those where sequences are (``int32[n]``); -1 where there is none."""
    for i in range(len(counts)):
        node = at[which[i]]
        for _ in range(counts[i]):
            if node < 0:
                break
            node = befores[node]
        reached[i] = node


@bare_kernel
def mark_nodes(at, befores, most, marks):
    """Mark the nodes where sequences are, and so many before each (``int32[nodes]``)."""
    for i in range(len(at)):
        node = at[i]
        for _ in range(most + 1):
            if node < 0:
                break
            marks[node] = 1
            node = befores[node]


@bare_kernel
def take_texts(last, befores, tokens, stops, found, tops, starts):
    """The tokens of chains of nodes, without those of their first nodes.

    Parameters
    ----------
    last:
        ``int32[n]``: the last node of each chain.
    befores, tokens:
        ``int32[capacity]`` each: the forest.
    stops:
        ``int64[n]``: where each text ends in ``found``.
    found:
        ``int32[total]``; of length 0, tokens are only counted.
    tops, starts:
        ``int32[n]``, ``int64[n]``: filled with the chains' first nodes, and with where their texts begin.
    """
    for i in range(len(last)):
        node, at = last[i], stops[i]
        while befores[node] >= 0:
            at -= 1
            if len(found):
                found[at] = tokens[node]
            node = befores[node]
        tops[i] = node
        starts[i] = at


# -- distances to the end of a text ----------------------------------------------------------------------
#
# See `structgen.runtime.distances`.


@kernel
def walk_outcomes(byte, depth, skip, first_token, table, classes, n_classes, records, loops, live, state, low, high,
                  max_depth, slots, outcomes):  # fmt: skip
    """Where tokens lead from ``state`` with each count from ``low`` to ``high``, each outcome once.

    The walk is that of `walk_counted`. An outcome, a row of ``outcomes`` (``int64[*, 4]``), is a state, the lowest
    and the highest count that it holds for, and what is added to the count, or `FIXED` plus the new count.
    ``slots``: ``int32[2 ** k]``, all -1. Returns how many outcomes there are, or -1 where the arrays are too short.
    """
    n_nodes = len(byte)
    begin = np.zeros(max_depth + 2, np.int64)
    pieces = np.empty((256, 4), np.int64)
    mask = len(slots) - 1
    n_out = 0
    last = -1
    pieces[0, 0] = state
    pieces[0, 1] = low
    pieces[0, 2] = high
    pieces[0, 3] = 0
    begin[1] = 1
    i = 1
    while i < n_nodes:
        d = depth[i]
        c = classes[byte[i]]
        base = begin[d]
        n = base
        for p in range(begin[d - 1], base):
            entry = table[pieces[p, 0] * n_classes + c]
            if entry == DEAD:
                continue
            if n + 3 > len(pieces):
                pieces = _grown_rows(pieces)
            lo = pieces[p, 1]
            hi = pieces[p, 2]
            add = pieces[p, 3]
            if entry >= 0:
                n = _join(pieces, base, n, entry, lo, hi, add if live[entry] >= 0 else 0)
                continue
            r = -2 - entry
            if records[r, 0] == SET:
                n = _join(pieces, base, n, records[r, 2], lo, hi, FIXED + 1 if live[records[r, 2]] >= 0 else 0)
                continue
            minimum = loops[records[r, 1], 0]
            maximum = loops[records[r, 1], 1]
            add += 1
            if add > FIXED:
                target = records[r, 2 + _zone(add - FIXED, minimum, maximum)]
                if target >= 0:
                    n = _join(pieces, base, n, target, lo, hi, add if live[target] >= 0 else 0)
                continue
            for zone in range(3):
                target = records[r, 2 + zone]
                if target < 0:
                    continue
                z_lo = lo
                z_hi = hi
                if zone == LOW:
                    z_hi = min(hi, minimum - 1 - add)
                elif zone == MID:
                    z_lo = max(lo, minimum - add)
                    z_hi = min(hi, maximum - 1 - add)
                else:
                    z_lo = max(lo, maximum - add)
                if z_lo <= z_hi:
                    n = _join(pieces, base, n, target, z_lo, z_hi, add if live[target] >= 0 else 0)
        if n == base:
            i = skip[i]
            continue
        begin[d + 1] = n
        if first_token[i] < first_token[i + 1]:
            for p in range(base, n):
                if last >= 0 and _is_outcome(outcomes, last, pieces, p):
                    continue  # nearly always
                slot = (pieces[p, 0] * 0x9E3779B1 ^ pieces[p, 1] * 0x85EBCA6B ^ pieces[p, 2] * 0xC2B2AE35
                        ^ pieces[p, 3] * 0x27D4EB2F) & mask  # fmt: skip
                while slots[slot] >= 0 and not _is_outcome(outcomes, slots[slot], pieces, p):
                    slot = (slot + 1) & mask
                if slots[slot] < 0:
                    if n_out == len(outcomes) or 2 * n_out > mask:
                        return -1
                    slots[slot] = n_out
                    for k in range(4):
                        outcomes[n_out, k] = pieces[p, k]
                    n_out += 1
                last = slots[slot]
        i += 1
    return n_out


#: What `walk_outcomes` adds where the count does not depend on the one at the start.
FIXED = _FIXED


@inlined
def _is_outcome(outcomes, k, pieces, p):
    return (
        outcomes[k, 0] == pieces[p, 0]
        and outcomes[k, 1] == pieces[p, 1]
        and outcomes[k, 2] == pieces[p, 2]
        and outcomes[k, 3] == pieces[p, 3]
    )


@bare_kernel
def count_back(begins, sources, outcomes, places, live, distances, states, counts, n_queue):
    """Fewest tokens to the end, by breadth-first search backwards over outcomes; see `walk_outcomes`.

    Parameters
    ----------
    begins:
        ``int64[states + 1]``: the outcomes that lead to state ``t`` are ``outcomes[begins[t]:begins[t + 1]]``.
    sources:
        ``int32[outcomes]``: the state that each comes from.
    places:
        ``int64[states + 1]``: the distance of a state and a count is ``distances[places[state] + count]``; a count
        past the last is as the last.
    distances:
        ``int32[*]``, in and out: -1 where it is not known.
    states, counts:
        ``int32[*]``: the queue. The first ``n_queue`` are there, in order of their distances.
    """
    head = 0
    while head < n_queue:
        state = states[head]
        count = counts[head]
        head += 1
        most = places[state + 1] - places[state] - 1
        further = distances[places[state] + count] + 1
        for k in range(begins[state], begins[state + 1]):
            source = sources[k]
            low = outcomes[k, 1]
            high = outcomes[k, 2]
            if live[state] >= 0:
                add = outcomes[k, 3]
                if add >= FIXED:
                    if min(add - FIXED, most) != count:
                        continue
                else:
                    low = max(low, count - add)
                    if count < most:
                        high = min(high, count - add)
            for before in range(low, high + 1):
                if distances[places[source] + before] < 0:
                    distances[places[source] + before] = further
                    states[n_queue] = source
                    counts[n_queue] = before
                    n_queue += 1


@kernel
def walk_within(byte, depth, skip, token, twins, table, classes, n_classes, records, loops, live, state, count,
                places, distances, most, max_depth, row):  # fmt: skip
    """Set the bits of the tokens that lead where the distance is at most ``most``; see `count_back`.

    ``row``: ``uint32[words + 1]``, the last word for the spare bit.
    """
    at = np.empty(max_depth + 1, np.int64)
    counted = np.empty(max_depth + 1, np.int64)
    at[0] = state
    counted[0] = count
    spare = np.int64(32) * (len(row) - 1)
    i = 1
    n_nodes = len(byte)
    while i < n_nodes:
        d = depth[i]
        entry = table[at[d - 1] * n_classes + classes[byte[i]]]
        n = counted[d - 1]
        if entry < DEAD:
            r = -2 - entry
            if records[r, 0] == SET:
                entry = records[r, 2]
                n = 1
            else:
                n += 1
                entry = records[r, 2 + _zone(n, loops[records[r, 1], 0], loops[records[r, 1], 1])]
        if entry < 0:
            i = skip[i]
            continue
        if live[entry] < 0:
            n = 0
        at[d] = entry
        counted[d] = n
        where = distances[min(places[entry] + n, places[entry + 1] - 1)]
        bit = np.int64(token[i]) if 0 <= where <= most else spare
        row[bit >> 5] |= np.uint32(1) << np.uint32(bit & 31)
        i += 1
    _copy_twins(twins, row)


#: What no bytes complete costs more than this.
FAR = 1 << 40


@bare_kernel
def cheapest_pops(arena, begins, entries, places, costs, most_sweeps):
    """Fewest bytes that take a state off the stack, with all that is put on it on the way.

    Parameters
    ----------
    begins, entries:
        ``int64[states + 1]``, ``int32[*]``: what each state does with bytes that may be used, as in the table.
    places:
        As in `count_back`.
    costs:
        ``int64[*]``, in and out: `FAR` where nothing is known, 0 for states that return.

    Values only come down, until nothing changes; returns whether that took no more than ``most_sweeps`` sweeps. Odd
    sweeps go through states from the last to the first, and counts always from the highest, on which the others
    depend.
    """
    n_states = arena[A_STATES]
    for sweep in range(most_sweeps):
        changed = False
        for k in range(n_states):
            state = n_states - 1 - k if sweep & 1 else k
            for count in range(places[state + 1] - places[state] - 1, -1, -1):
                best = costs[places[state] + count]
                for e in range(begins[state], begins[state + 1]):
                    entry = entries[e]
                    if entry < n_states:
                        n = count if arena[arena[A_LIVE] + entry] >= 0 else 0
                        best = min(best, 1 + costs[min(places[entry] + n, places[entry + 1] - 1)])
                        continue
                    group = arena[A_GROUPS] + entry - n_states
                    for m in range(arena[group], arena[group + 1]):
                        move = arena[A_MOVES] + 2 * m
                        n = count
                        total = np.int64(1)
                        first = True
                        if arena[move] >= 0:
                            r = arena[A_RECORDS] + 5 * arena[move]
                            if arena[r] == SET:
                                target = arena[r + 2]
                                n = 1
                            else:
                                n += 1
                                loop = arena[A_LOOPS] + 2 * arena[r + 1]
                                target = arena[r + 2 + _zone(n, arena[loop], arena[loop + 1])]
                                if target < 0:
                                    continue
                            n = n if arena[arena[A_LIVE] + target] >= 0 else 0
                            total += costs[min(places[target] + n, places[target + 1] - 1)]
                            first = False
                        for k2 in range(arena[move + 1], arena[move + 3]):
                            target = arena[arena[A_SEQUENCE] + k2]
                            n = n if first and arena[arena[A_LIVE] + target] >= 0 else 0
                            total += costs[min(places[target] + n, places[target + 1] - 1)]
                            first = False
                        best = min(best, total)
                if best < costs[places[state] + count]:
                    costs[places[state] + count] = best
                    changed = True
        if not changed:
            return True
    return False


@kernel
def most_gained(byte, depth, skip, first_token, max_depth, arena, below, least, most, limit):
    """By how much a token can make a stack cost more, whatever the stack is; `FAR` after ``limit`` steps.

    All states are followed at once, each with the most that was put on the stack on the way to it; what comes up
    after a pop is any state that can lie on a stack.

    Parameters
    ----------
    below:
        ``int32[*]``: the states that can lie below another one.
    least, most:
        ``int64[states]``: what a state costs at least and at most, whatever its count.
    """
    n_states = arena[A_STATES]
    n_classes = arena[A_CLASSES]
    states = np.empty(4 * n_states + 64, np.int64)
    gained = np.empty(4 * n_states + 64, np.int64)
    begin = np.zeros(max_depth + 3, np.int64)
    stamp = np.zeros(n_states, np.int64)
    where = np.zeros(n_states, np.int64)
    for s in range(n_states):
        states[s] = s
        gained[s] = -least[s]
    begin[1] = n_states
    best = np.int64(0)
    steps = np.int64(0)
    i = 1
    while i < len(byte):
        d = depth[i]
        c = arena[arena[A_CLASS_OF] + byte[i]]
        base = begin[d]
        n = base
        left = -FAR  # gained before a state that was popped
        given = -FAR  # gained before a state that is handed this byte
        for k in range(begin[d - 1], base):
            if arena[arena[A_RETURNS] + states[k]] != 0:
                given = max(given, gained[k])
        n_level = base - begin[d - 1]
        todo = n_level + (len(below) if given > -FAR else 0)
        steps += todo + 1
        for k in range(todo):
            s = states[begin[d - 1] + k] if k < n_level else below[k - n_level]
            g = gained[begin[d - 1] + k] if k < n_level else given - least[s]
            entry = arena[arena[A_TABLE] + s * n_classes + c]
            if entry < 0:
                continue
            first_move = 0
            last_move = 1
            if entry >= n_states:
                group = arena[A_GROUPS] + entry - n_states
                first_move = arena[group]
                last_move = arena[group + 1]
            for m in range(first_move, last_move):
                # The states that the record can lead to, in turn: only the zones of one that adds have several.
                for zone in range(3):
                    here = g
                    top = -1
                    if entry < n_states:
                        if zone:
                            break
                        top = entry
                    else:
                        move = arena[A_MOVES] + 2 * m
                        if arena[move] >= 0:
                            r = arena[A_RECORDS] + 5 * arena[move]
                            if zone and arena[r] != INC:
                                break
                            top = arena[r + 2 + zone]
                            if top < 0:
                                continue
                        elif zone:
                            break
                        for q in range(arena[move + 1], arena[move + 3]):
                            if top >= 0:
                                here += most[top]
                            top = arena[arena[A_SEQUENCE] + q]
                    if top < 0:
                        left = max(left, here)
                        continue
                    if stamp[top] != i:
                        if n + len(below) + 2 >= len(states):
                            states = _grown(states, 2 * len(states))
                            gained = _grown(gained, 2 * len(gained))
                        stamp[top] = i
                        where[top] = n
                        states[n] = top
                        gained[n] = here
                        n += 1
                    elif here > gained[where[top]]:
                        gained[where[top]] = here
        if left > -FAR:
            steps += len(below)
            for k in range(len(below)):
                s = below[k]
                if stamp[s] != i:
                    if n + 2 >= len(states):
                        states = _grown(states, 2 * len(states))
                        gained = _grown(gained, 2 * len(gained))
                    stamp[s] = i
                    where[s] = n
                    states[n] = s
                    gained[n] = left - least[s]
                    n += 1
                elif left - least[s] > gained[where[s]]:
                    gained[where[s]] = left - least[s]
        if steps > limit:
            return np.int64(FAR)
        if n == base:
            i = skip[i]
            continue
        begin[d + 1] = n
        if first_token[i] < first_token[i + 1]:
            for k in range(base, n):
                best = max(best, gained[k] + most[states[k]])
        i += 1
    return best


@kernel
def walk_reached(byte, depth, skip, first_token, max_depth, arena, config, room, start, work, n_pairs, n_found, keys,
                 starts, found, nodes, numbers):  # fmt: skip
    """The threads that tokens lead to from a configuration whose whole stack is known, each once.

    Parameters
    ----------
    config:
        ``int64[2 * n]``: state and count, then those of the whole stack, topmost first.
    room:
        Threads and stack cells that the walk can have, a power of two.
    start, work, n_pairs, n_found:
        The first node that is looked at, how many threads are followed, about, and how much was found before.
    keys:
        ``int32[2 ** k]``, all -1 to begin with.
    starts, found:
        ``int64[*]``, out: thread ``t`` is ``found[starts[t]:starts[t + 1]]``: state and count, the cell of the stack
        that is left (0 is the lowest, -1 none), and state and count of those above it, topmost first. A state of -1
        is the end of a text.
    nodes, numbers:
        ``int32[*]``, out: pairs of a node where tokens end and a thread that they lead to.

    Returns
    -------
    (number of pairs, number of threads, the node to go on at), or `OVERFLOW` for the first where an array is too
    short.
    """
    threads = np.empty((room, 3), np.int64)
    cells = np.empty((room, CELL), np.int64)
    slots = np.empty(2 * room, np.int32)
    first = np.zeros(max_depth + 3, np.int32)
    tops = np.zeros(max_depth + 3, np.int64)
    base_top, state, count, cell = _start_stack(arena, config, cells, slots, np.int64(0))
    if base_top < 0:
        return OVERFLOW, 0, 0
    threads[0, 0] = state
    threads[0, 1] = count
    threads[0, 2] = cell
    # The threads of depth d are first[d]..first[d + 1].
    first[1] = 1
    tops[0] = base_top
    mask = len(keys) - 1
    stamp = 0
    starts[0] = 0
    i = 1
    while i < len(byte) and (work > 0 or i < start):
        if i < start and skip[i] <= start:
            i = skip[i]
            continue
        d = depth[i]
        begin = first[d]
        stamp += 1
        n, top, escaped = _follow(
            arena, arena[arena[A_CLASS_OF] + byte[i]], threads, first[d - 1], begin, cells, slots, tops[d - 1], stamp,
            False,
        )  # fmt: skip
        if n < 0:
            return OVERFLOW, 0, i
        work -= n - first[d - 1] if i >= start else 0
        if n == begin and not escaped:
            i = skip[i]
            continue
        if i >= start and first_token[i] < first_token[i + 1]:
            if escaped:
                if n >= room:
                    return OVERFLOW, 0, i
                threads[n, 0] = -1
                threads[n, 1] = 0
                threads[n, 2] = -1
            for k in range(begin, n + 1 if escaped else n):
                key = threads[k, 0] * 0x9E3779B1 ^ threads[k, 1] * 0x85EBCA6B
                left = threads[k, 2]
                size = 3
                while left >= base_top:
                    key = (key * 31) ^ (cells[left, 0] * 0xC2B2AE35 + cells[left, 1])
                    left = cells[left, 2]
                    size += 2
                slot = ((key >> 7) ^ key ^ left * 0x27D4EB2F) & mask
                while keys[slot] >= 0 and not _is_thread(found, starts, keys[slot], threads, k, cells, left, size):
                    slot = (slot + 1) & mask
                if keys[slot] < 0:
                    if 2 * n_found > mask or n_found + 2 > len(starts) or starts[n_found] + size > len(found):
                        return OVERFLOW, 0, i
                    keys[slot] = n_found
                    at = starts[n_found]
                    found[at] = threads[k, 0]
                    found[at + 1] = threads[k, 1]
                    found[at + 2] = left
                    at += 3
                    above = threads[k, 2]
                    while above >= base_top:
                        found[at] = cells[above, 0]
                        found[at + 1] = cells[above, 1]
                        above = cells[above, 2]
                        at += 2
                    n_found += 1
                    starts[n_found] = at
                if n_pairs == len(nodes):
                    return OVERFLOW, 0, i
                nodes[n_pairs] = i
                numbers[n_pairs] = keys[slot]
                n_pairs += 1
        if n == begin:
            i = skip[i]
            continue
        first[d + 1] = n
        tops[d] = top
        i += 1
    return n_pairs, n_found, i


@inlined
def _is_thread(found, starts, number, threads, k, cells, left, size):
    """Whether a thread is one that was found; ``left`` is the cell of the first stack that it still stands on."""
    at = starts[number]
    if (
        starts[number + 1] - at != size
        or found[at] != threads[k, 0]
        or found[at + 1] != threads[k, 1]
        or found[at + 2] != left
    ):
        return False
    above = threads[k, 2]
    for where in range(at + 3, at + size, 2):
        if found[where] != cells[above, 0] or found[where + 1] != cells[above, 1]:
            return False
        above = cells[above, 2]
    return True
