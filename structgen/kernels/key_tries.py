"""The states that read names of objects: along compressed tries and, at once, through the automata of other names."""

from __future__ import annotations

import numpy as np

from .jit import inlined, kernel
from .values import CONFLICT, DEAD, NO_ROOM, OK

#: The class of which no other name is left, and what the end of a node says where no name ends.
NO_CLASS, _NO_NAME = 0, -1

#: A place that is not known, and by how much a state that a place will get lies below that.
_ABSENT, _TO_COME = -2, -3

_QUOTE = 0x22

#: So that a byte, a target and a class are a number of 63 bits.
_MOST_CLASSES = 1 << 24


@inlined
def _slot_of(keys, key):
    slot = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & np.uint64(len(keys) - 1)
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & np.uint64(len(keys) - 1)
    return slot


@inlined
def _found(keys, values, position, which):
    """The state of a place: a position in the tries, and a class."""
    key = np.int64(position) << 32 | which
    slot = _slot_of(keys, key)
    return values[slot] if keys[slot] == key else _ABSENT


@inlined
def _move(tables, classes, which, byte):
    """How a class goes on: -1 not at all, -2 to one class, or by a record that counts."""
    found = -1
    for k in range(1, classes.shape[1]):
        if classes[which, k] >= 0:
            target = tables[classes[which, k], byte]
            if target >= 0 and found == -1:
                found = -2
            elif target < DEAD:
                return -2 - target
    return found


@inlined
def _next(tables, records, classes, slots, n, which, byte, zone):
    """The class after a byte, by the zone of a count where one counts; ``n``, written, where it is new.

    Is ``len(classes)`` where there is no room for it.
    """
    if n == len(classes) or 2 * n >= len(slots):
        return np.int64(len(classes))
    classes[n, 0] = classes[which, 0]
    some = False
    h = np.uint64(classes[n, 0])
    for k in range(1, classes.shape[1]):
        target = DEAD
        if classes[which, k] >= 0:
            target = tables[classes[which, k], byte]
            if target < DEAD:
                target = records[-2 - target, 2 + zone]
        classes[n, k] = target
        some = some or target >= 0
        h = (h ^ np.uint64(target + 1)) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    if not some:
        return np.int64(NO_CLASS)
    slot = h & np.uint64(len(slots) - 1)
    while slots[slot] >= 0:
        same = True
        for k in range(classes.shape[1]):
            same = same and classes[slots[slot], k] == classes[n, k]
        if same:
            return np.int64(slots[slot])
        slot = (slot + np.uint64(1)) & np.uint64(len(slots) - 1)
    slots[slot] = n
    return np.int64(n)


@kernel
def build_key_states(
    labels, label_start, positions, child_start, child_bytes, child_nodes, ends, roots, tables, accepting, records,
    n_classes, first_state, keys, values, links, linked, classes, class_slots, made, edges, end_of, counted, stack,
):  # fmt: skip
    """Make a state for each place that names come to: a position in the tries, with what is left of other names.

    Parameters
    ----------
    labels, label_start:
        The label of node ``n`` is ``labels[label_start[n]:label_start[n + 1]]``.
    positions:
        ``int32[nodes]``: the number of the label's first position.
    child_start, child_bytes, child_nodes:
        The children of node ``n`` are ``child_nodes[child_start[n]:child_start[n + 1]]``, each with its byte.
    ends:
        ``int32[nodes]``: what a name that ends there leads to, -1 where none does; others are forbidden.
    roots:
        ``int32[roots, 3]``: node, class and state of each trie. A position comes once with a class.
    tables, accepting:
        ``int32[rows, 256]``, ``uint8[rows]``: the automata of other names one below the other; a target is a row,
        -1, or ``-2 - r`` for record ``r``.
    records:
        ``int32[*, 5]``: operation, loop, and the rows for a count below its minimum, between, and at its maximum.
    n_classes:
        How many ``classes`` there are to begin with: `NO_CLASS`, then those of the roots, all different.
    first_state:
        The number of the first state that is made.
    keys, values:
        ``int64[2 ** k]``, -1 each, and ``int32[2 ** k]``: room for places, with their states.
    links, linked:
        The same for states with one edge, by its byte and target and the class: the ends of names are much alike.
    classes, class_slots:
        ``int32[*, 1 + width]``: a family, and for each of its automata the row, or -1. ``int32[2 ** k]``, -1 each.
    made:
        ``int32[*, 2]``, out: each state with its class.
    edges:
        ``int32[*, 3]``, out: state, byte and target, which is -1 where the byte is refused.
    end_of:
        ``int32[*, 2]``, out: states where a name ends, with the ``ends``.
    counted:
        ``int32[*, 6]``, out: state, byte, record, and its three targets.
    stack:
        ``int32[*, 4]``: room for the places in hand.

    Returns
    -------
    (`OK`, `NO_ROOM` or `CONFLICT`, where a root leads to no name; how many were made, edges, ends, counted edges and
    classes)
    """
    n_made = np.int64(0)
    n_edges = np.int64(0)
    n_ends = np.int64(0)
    n_counted = np.int64(0)
    n_new = np.int64(0)
    n_places = np.int64(len(roots))
    for r in range(len(roots)):
        key = np.int64(positions[roots[r, 0]]) << 32 | roots[r, 1]
        slot = _slot_of(keys, key)
        keys[slot] = key
        values[slot] = _TO_COME - roots[r, 2]
    for c in range(1, n_classes):
        h = np.uint64(classes[c, 0])
        for k in range(1, classes.shape[1]):
            h = (h ^ np.uint64(classes[c, k] + 1)) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        slot = h & np.uint64(len(class_slots) - 1)
        while class_slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(len(class_slots) - 1)
        class_slots[slot] = c
    for r in range(len(roots)):
        if _found(keys, values, positions[roots[r, 0]], roots[r, 1]) >= 0:
            continue
        stack[0, 0] = roots[r, 0]
        stack[0, 1] = 0
        stack[0, 2] = roots[r, 1]
        stack[0, 3] = 0
        top = 1
        while top:
            node = stack[top - 1, 0]
            which = stack[top - 1, 2]
            at = label_start[node] + stack[top - 1, 1]
            inside = at < label_start[node + 1]
            begin = child_start[node]
            n = 1 if inside else child_start[node + 1] - begin
            # What it leads to comes first.
            pending = False
            while stack[top - 1, 3] < 3 * n:
                turn = stack[top - 1, 3]
                byte = labels[at] if inside else child_bytes[begin + turn // 3]
                move = _move(tables, classes, which, byte)
                if move < 0 and turn % 3:
                    stack[top - 1, 3] += 3 - turn % 3
                    continue
                after = np.int64(NO_CLASS)
                if move != -1:
                    after = _next(tables, records, classes, class_slots, n_classes, which, byte, turn % 3)
                    if after == len(classes):
                        return NO_ROOM, n_made, n_edges, n_ends, n_counted, n_classes
                    n_classes = max(n_classes, after + 1)
                child = node if inside else child_nodes[begin + turn // 3]
                read = stack[top - 1, 1] + 1 if inside else 0
                stack[top - 1, 3] += 1
                if _found(keys, values, positions[child] + read, after) <= _ABSENT:
                    if top == len(stack):
                        return NO_ROOM, n_made, n_edges, n_ends, n_counted, n_classes
                    stack[top, 0] = child
                    stack[top, 1] = read
                    stack[top, 2] = after
                    stack[top, 3] = 0
                    top += 1
                    pending = True
                    break
            if pending:
                continue
            n_places += 1
            if (
                n_made == len(made)
                or n_edges + n + 1 > len(edges)
                or n_counted + n > len(counted)
                or n_ends == len(end_of)
                or n_classes == len(classes)
                or 2 * n_places >= len(keys)
                or n_classes > _MOST_CLASSES
            ):
                return NO_ROOM, n_made, n_edges, n_ends, n_counted, n_classes
            key = np.int64(positions[node] + stack[top - 1, 1]) << 32 | which
            slot = _slot_of(keys, key)
            is_root = keys[slot] == key
            state = _TO_COME - values[slot] if is_root else first_state + n_new
            end = np.int64(_NO_NAME) if inside else np.int64(ends[node])
            closes = False
            for k in range(1, classes.shape[1]):
                closes = closes or (classes[which, k] >= 0 and accepting[classes[which, k]] != 0)
            lives = end >= 0 or (end == _NO_NAME and closes)
            edges_before = n_edges
            counted_before = n_counted
            for i in range(n):
                byte = labels[at] if inside else child_bytes[begin + i]
                child = node if inside else child_nodes[begin + i]
                position = positions[child] + (stack[top - 1, 1] + 1 if inside else 0)
                move = _move(tables, classes, which, byte)
                if move < 0:
                    after = np.int64(NO_CLASS)
                    if move == -2:
                        after = _next(tables, records, classes, class_slots, n_classes, which, byte, 0)
                    target = _found(keys, values, position, after)
                    if target >= 0 or move == -2:
                        edges[n_edges, 0] = state
                        edges[n_edges, 1] = byte
                        edges[n_edges, 2] = target
                        n_edges += 1
                    lives = lives or target >= 0
                    continue
                some = False
                for zone in range(3):
                    after = _next(tables, records, classes, class_slots, n_classes, which, byte, zone)
                    target = _found(keys, values, position, after)
                    counted[n_counted, 3 + zone] = target
                    some = some or target >= 0
                if some:
                    counted[n_counted, 0] = state
                    counted[n_counted, 1] = byte
                    counted[n_counted, 2] = move
                    n_counted += 1
                    lives = True
                else:
                    edges[n_edges, 0] = state
                    edges[n_edges, 1] = byte
                    edges[n_edges, 2] = DEAD
                    n_edges += 1
            if not lives:  # but for bytes that leave the trie
                for byte in range(256):
                    if _move(tables, classes, which, byte) != -1:
                        leaves = True
                        for i in range(n):
                            leaves = leaves and byte != (labels[at] if inside else child_bytes[begin + i])
                        lives = lives or leaves
            if not lives:
                if is_root:
                    return CONFLICT, n_made, n_edges, n_ends, n_counted, n_classes
                n_edges = edges_before
                state = DEAD
            else:
                if end >= 0:
                    end_of[n_ends, 0] = state
                    end_of[n_ends, 1] = end
                    n_ends += 1
                elif end != _NO_NAME and closes:
                    edges[n_edges, 0] = state
                    edges[n_edges, 1] = _QUOTE
                    edges[n_edges, 2] = DEAD
                    n_edges += 1
                if n_edges == edges_before + 1 and n_counted == counted_before and end < 0 and not is_root:
                    link = (np.int64(edges[edges_before, 2] + 1) << 8 | edges[edges_before, 1]) << 24 | which
                    link_slot = _slot_of(links, link)
                    if links[link_slot] == link:
                        n_edges = edges_before
                        keys[slot] = key
                        values[slot] = linked[link_slot]
                        top -= 1
                        continue
                    links[link_slot] = link
                    linked[link_slot] = state
                made[n_made, 0] = state
                made[n_made, 1] = which
                n_made += 1
                n_new += not is_root
            keys[slot] = key
            values[slot] = state
            top -= 1
    return OK, n_made, n_edges, n_ends, n_counted, n_classes
