"""The states that read names of objects: along tries and, at once, through the automata of other names."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .signatures import Out, int32, int64, uint8
from .values import CONFLICT, DEAD, NO_ROOM, OK

#: The class of which no other name is left, and the end of a node where no name ends.
NO_CLASS, _NO_NAME = 0, -1

#: By how much a state that a place will get lies below 0.
_TO_COME = -2

# Rows of scratch. Of nodes: the end, where the cells of its children begin, and their number. Of places: the node, the
# class and the state. Then two of the stack, the node of each end, and that of each insertion.
_END, _FIRST, _CHILDREN, _NODE, _CLASS, _STATE, _STACK, _FINAL, _INSERTED = 0, 1, 2, 3, 4, 5, 6, 8, 9

#: Rows with results: what states are like, and the loops that they live in; where names end; edges whose targets are
#: still to be made; and how many there are of all that.
KEY_LIKE, KEY_LIVE, KEY_ENDS, KEY_LATE, KEY_NUMBERS = 10, 11, 12, 14, 19
_EDGES, _STATES, _ENDS, _LATE, _CLASSES, _PLACES, _NODES, _CELLS = 0, 1, 2, 3, 4, 5, 6, 7

#: How many rows there are, and children of a node at most.
KEY_ROWS, KEY_CHILDREN = 20, 256

#: In place of a node: off the trie; and from there downwards the only edge of a state, if its target is not too large.
_OFF, _ONLY, _MOST_LINKED = -1, -2, 1 << 22

_QUOTE = 0x22


@helper
def _first_slot(slots, h):
    """The slot to begin with."""
    h *= np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    h *= np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(32)) * np.uint64(slots.shape[1]) >> np.uint64(32))


@helper
def _place(scratch, slots, oldest, node, which):
    """The slot of a place: a node, -1 for none, and a class; the free one for it if it is not known."""
    slot = _first_slot(slots, np.uint64(np.int64(node + 1) << 32 | which))
    while True:
        known = slots[0, slot]
        if known < 0 or (known >= oldest and scratch[_NODE, known] == node and scratch[_CLASS, known] == which):
            return slot
        slot = slot + 1 if slot + 1 < slots.shape[1] else 0


@helper
def _keep_place(scratch, slots, oldest, node, which, state):
    n = scratch[KEY_NUMBERS, _PLACES]
    slots[0, _place(scratch, slots, oldest, node, which)] = n
    scratch[_NODE, n] = node
    scratch[_CLASS, n] = which
    scratch[_STATE, n] = state
    scratch[KEY_NUMBERS, _PLACES] = n + 1


@helper
def _child(scratch, cells, node, byte):
    """The child of a node, -1 where there is none."""
    if node >= 0:
        for cell in range(scratch[_FIRST, node], scratch[_FIRST, node] + scratch[_CHILDREN, node]):
            if cells[0, cell] == byte:
                return np.int64(cells[1, cell])
    return np.int64(-1)


@helper
def _copy_node(scratch, cells, node, end):
    """A new node with the children of another, if that is none: -1. -1 as well where there is no room."""
    new, first = scratch[KEY_NUMBERS, _NODES], scratch[KEY_NUMBERS, _CELLS]
    if new == scratch.shape[1] or first + KEY_CHILDREN > cells.shape[1]:
        return np.int64(-1)
    n = scratch[_CHILDREN, node] if node >= 0 else 0
    for cell in range(n):
        cells[0, first + cell] = cells[0, scratch[_FIRST, node] + cell]
        cells[1, first + cell] = cells[1, scratch[_FIRST, node] + cell]
    scratch[_END, new] = end
    scratch[_FIRST, new] = first
    scratch[_CHILDREN, new] = n
    scratch[KEY_NUMBERS, _NODES] = new + 1
    scratch[KEY_NUMBERS, _CELLS] = first + n
    return np.int64(new)


@helper
def _put_child(scratch, cells, byte, child):
    """A child of the node that was made last."""
    node = scratch[KEY_NUMBERS, _NODES] - 1
    cell = scratch[_FIRST, node]
    while cell < scratch[KEY_NUMBERS, _CELLS] and cells[0, cell] != byte:
        cell += 1
    cells[0, cell] = byte
    cells[1, cell] = child
    if cell == scratch[KEY_NUMBERS, _CELLS]:
        scratch[_CHILDREN, node] += 1
        scratch[KEY_NUMBERS, _CELLS] += 1


@helper
def _insert_text(texts, begin, stop, end, root, cells, scratch):
    """The root of a trie with a text added; -1 where there is no room."""
    node = np.int64(root)
    at = begin
    while node >= 0 and at < stop:
        scratch[_STACK, at - begin] = node
        node = _child(scratch, cells, node, texts[at])
        at += 1
    depth = at - begin
    if node >= 0:
        node = _copy_node(scratch, cells, node, end)
    else:
        node = np.int64(scratch[_FINAL, end + 2])
        if node < 0:
            node = _copy_node(scratch, cells, -1, end)
            scratch[_FINAL, end + 2] = node
        at = stop
    while at > begin and node >= 0:
        at -= 1
        passed = scratch[_STACK, at - begin] if at - begin < depth else -1
        child = node
        node = _copy_node(scratch, cells, passed, scratch[_END, passed] if passed >= 0 else _NO_NAME)
        if node >= 0:
            _put_child(scratch, cells, texts[at], child)
    return node


@helper
def _insert_automaton(edges, begins, accepts, start, end, root, cells, slots, scratch):
    """The same of the texts of an automaton without cycles."""
    oldest = scratch[KEY_NUMBERS, _PLACES]
    scratch[_STACK, 0] = root
    scratch[_STACK + 1, 0] = start
    top = 1
    while top:
        node = scratch[_STACK, top - 1]
        state = scratch[_STACK + 1, top - 1]
        cell = scratch[KEY_NUMBERS, _CELLS]
        its_end = scratch[_END, node] if node >= 0 else _NO_NAME
        new = _copy_node(scratch, cells, node, end if accepts[state] else its_end)
        if new < 0 or max(top, scratch[KEY_NUMBERS, _PLACES]) >= scratch.shape[1]:
            return np.int64(-1)
        below = top
        for edge in range(begins[state], begins[state + 1]):
            for byte in range(edges[0, edge], edges[1, edge] + 1):
                child = _child(scratch, cells, node, byte)
                known = slots[0, _place(scratch, slots, oldest, child, edges[2, edge])]
                if known >= 0:
                    _put_child(scratch, cells, byte, scratch[_STATE, known])
                elif top == below:  # what it leads to comes first
                    scratch[_STACK, top] = child
                    scratch[_STACK + 1, top] = edges[2, edge]
                    top += 1
        if top == below:
            _keep_place(scratch, slots, oldest, node, state, new)
            top -= 1
        else:
            scratch[KEY_NUMBERS, _NODES] = new
            scratch[KEY_NUMBERS, _CELLS] = cell
    return np.int64(scratch[_STATE, scratch[KEY_NUMBERS, _PLACES] - 1])


@helper
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


@helper
def _next(tables, records, classes, slots, scratch, which, byte, zone):
    """The class after a byte, by the zone of a count where one counts; -1 where there is no room for it."""
    n = np.int64(scratch[KEY_NUMBERS, _CLASSES])
    if n == len(classes):
        return DEAD
    classes[n, 0] = classes[which, 0]
    some = False
    same = True
    for k in range(1, classes.shape[1]):
        target = DEAD
        if classes[which, k] >= 0:
            target = tables[classes[which, k], byte]
            if target < DEAD:
                target = records[-2 - target, 2 + zone]
        classes[n, k] = target
        some = some or target >= 0
        same = same and target == classes[which, k]
    if same:
        return np.int64(which)
    return _add_class(classes, slots, scratch) if some else NO_CLASS


@helper
def _add_class(classes, slots, scratch):
    """The class that is the same as the one written last, which is counted where it is new."""
    n = np.int64(scratch[KEY_NUMBERS, _CLASSES])
    h = np.uint64(0)
    for k in range(classes.shape[1]):
        h = (h ^ np.uint64(classes[n, k] + 1)) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    slot = _first_slot(slots, h)
    while slots[1, slot] >= 0:
        same = True
        for k in range(classes.shape[1]):
            same = same and classes[slots[1, slot], k] == classes[n, k]
        if same:
            return np.int64(slots[1, slot])
        slot = slot + 1 if slot + 1 < slots.shape[1] else 0
    slots[1, slot] = n
    scratch[KEY_NUMBERS, _CLASSES] = n + 1
    return n


@helper
def _is_full(scratch, block, n):
    """Whether there may be no room for so many edges of a state, and for what they lead to."""
    full = scratch[KEY_NUMBERS, _EDGES] + n > block.shape[1]
    for each in range(_STATES, _PLACES + 1):
        full = full or scratch[KEY_NUMBERS, each] + n + 4 > scratch.shape[1]
    return full


@helper
def _edge(block, scratch, state, low, high, target):
    n = scratch[KEY_NUMBERS, _EDGES]
    block[0, n] = state
    block[1, n] = low
    block[2, n] = high
    block[3, n] = target
    scratch[KEY_NUMBERS, _EDGES] = n + 1


@helper
def _late_edge(block, scratch, state, low, high, record):
    """An edge whose target is made of a record, and states that are there already."""
    n = scratch[KEY_NUMBERS, _LATE]
    scratch[KEY_LATE, n] = scratch[KEY_NUMBERS, _EDGES]
    scratch[KEY_LATE + 1, n] = record
    scratch[KEY_NUMBERS, _LATE] = n + 1
    _edge(block, scratch, state, low, high, 0)


@helper
def _end_name(block, scratch, action_edges, action_begins, state, action):
    n = scratch[KEY_NUMBERS, _ENDS]
    scratch[KEY_ENDS, n] = state
    scratch[KEY_ENDS + 1, n] = action
    scratch[KEY_NUMBERS, _ENDS] = n + 1
    for e in range(action_begins[action], action_begins[action + 1]):
        edge = action_edges[e]
        _edge(block, scratch, state, edge & 0xFF, edge >> 8 & 0xFF, edge >> 16)


@helper
def _describe(scratch, classes, live, n, which, like):
    """Of a state what it is like, and the loop that it lives in."""
    scratch[KEY_LIKE, n] = like
    scratch[KEY_LIVE, n] = -1
    for k in range(1, classes.shape[1]):
        if classes[which, k] >= 0 and live[classes[which, k]] >= 0:
            scratch[KEY_LIVE, n] = live[classes[which, k]]


@helper
def _base(scratch, slots, classes, live, first_state, which):
    """The state off the trie, -1 where no name is left."""
    if which == NO_CLASS:
        return np.int64(DEAD)
    known = slots[0, _place(scratch, slots, 0, _OFF, which)]
    if known >= 0:
        state = scratch[_STATE, known]
        return np.int64(state if state >= 0 else _TO_COME - state)
    n = scratch[KEY_NUMBERS, _STATES]
    _describe(scratch, classes, live, n, which, -1)
    scratch[KEY_NUMBERS, _STATES] = n + 1
    _keep_place(scratch, slots, 0, _OFF, which, first_state + n)
    return np.int64(first_state + n)


@helper
def _is_call(classes, ways, which):
    """Whether the one class that is left goes on by states of its own."""
    alive = 0
    calls = False
    for k in range(1, classes.shape[1]):
        if classes[which, k] >= 0:
            alive += 1
            calls = ways[classes[which, 0], classes.shape[1] + k - 2] != 0
    return calls and alive == 1


@helper
def _last_alike(tables, classes, which, byte):
    """The last byte up to which a class goes on as after a byte."""
    same = True
    while same and byte < 255:
        for k in range(1, classes.shape[1]):
            row = classes[which, k]
            same = same and (row < 0 or tables[row, byte] == tables[row, byte + 1])
        byte += same
    return byte


@kernel
def build_key_states(
    texts: uint8[::1], names: int32[:, ::1], spelling_edges: int32[:, ::1], spelling_begins: int32[::1],
    spelling_accepts: uint8[::1], action_edges: int64[::1], action_begins: int32[::1], roots: int32[:, ::1],
    tables: int32[:, ::1], accepting: uint8[::1], live: int32[::1], records: int32[:, ::1], starts: int32[:, ::1],
    ways: int32[:, ::1], first_state: int64, block: Out[int32[:, ::1]], classes: Out[int32[:, ::1]],
    cells: Out[int32[:, ::1]], slots: Out[int32[:, ::1]], scratch: Out[int32[:, ::1]],
) -> int64:  # fmt: skip
    """Insert names into tries, and make a state for each place that names come to: a node, with what is left of others.

    Tries are persistent: inserting makes a new root, and new nodes along the name, and shares all else. Off the trie,
    a state is *like* the one of no node and the same others.

    Parameters
    ----------
    texts, names:
        ``int32[names, 4]``: the insertion that made the trie to insert into, -1 for the empty one; the name, from where
        to where in ``texts``, or -1 and the state that begins its spellings; and the number of the action at its end,
        which is -2 for a name that is forbidden.
    spelling_edges, spelling_begins, spelling_accepts:
        ``int32[3, edges]``: lowest and highest byte and target of the edges of automata of spellings; by state, where
        its edges begin; and whether it accepts.
    action_edges, action_begins:
        By action, the edges at the end of a name, as a program has them, and where they begin.
    roots:
        ``int32[roots, 3]``: insertion, -1 for no trie, class and state of each trie. A trie comes once with a class.
    tables, accepting, live:
        ``int32[rows, 256]``, by row: the automata of other names one below the other; a target is a row, -1, or
        ``-2 - r`` for record ``r``. A row lives in a loop, or -1.
    records:
        ``int32[*, 5]``: operation, loop, and the rows for a count below its minimum, between, and at its maximum.
    starts:
        ``int32[*, 1 + width]``, the first classes: `NO_CLASS`, then those of the roots, one for each family. A class
        is a family, and for each of its automata the row, or -1.
    ways:
        ``int32[*, 2 * width]``, by family and automaton: the action at the end of such a name; and whether what is left
        of it alone is called: that the automaton goes on by states of its own.
    first_state:
        The number of the first state that is made, less the number of roots.
    block:
        ``int32[4, *]``, out: the edges, as a program has them.
    classes:
        ``int32[room, 1 + width]``, out.
    cells, slots:
        ``int32[2, *]``, ``int32[2, 2 * room]``: room for children of nodes, and for hash tables.
    scratch:
        ``int32[KEY_ROWS, room]``. Out: from `KEY_LIKE` on, of each root and then each new state, the state that it is
        like, and the loop; from `KEY_ENDS` on the states where names end, and the actions; from `KEY_LATE` on edges,
        each with its record and three states, or -2 and the class that is called; in `KEY_NUMBERS` how many edges,
        states, ends and such edges.
        There is room for each text, insertion, root and action, and 16 more.

    Returns
    -------
    `OK`, `NO_ROOM` or `CONFLICT`, where a root leads to no name
    """
    slots[:] = -1
    scratch[_FINAL] = -1
    scratch[KEY_NUMBERS] = 0
    for i in range(len(names)):
        root = scratch[_INSERTED, names[i, 0]] if names[i, 0] >= 0 else _OFF
        if names[i, 1] >= 0:
            made = _insert_text(texts, names[i, 1], names[i, 2], names[i, 3], root, cells, scratch)
        else:
            made = _insert_automaton(
                spelling_edges, spelling_begins, spelling_accepts, names[i, 2], names[i, 3], root, cells, slots, scratch
            )
        if made < 0:
            return NO_ROOM
        scratch[_INSERTED, i] = made
    slots[0] = -1
    scratch[KEY_NUMBERS, _PLACES] = 0
    scratch[KEY_NUMBERS, _STATES] = len(roots)
    for c in range(len(starts)):
        for k in range(classes.shape[1]):
            classes[c, k] = starts[c, k]
        _add_class(classes, slots, scratch)
    for r in range(len(roots)):
        node = scratch[_INSERTED, roots[r, 0]] if roots[r, 0] >= 0 else _OFF
        _keep_place(scratch, slots, 0, node, roots[r, 1], _TO_COME - roots[r, 2])
        _describe(scratch, classes, live, r, roots[r, 1], -1)
    for r in range(len(roots)):
        scratch[_STACK, 0] = scratch[_NODE, r]
        scratch[_STACK + 1, 0] = roots[r, 1]
        top = 1 if scratch[_NODE, r] != _OFF and scratch[_STATE, r] <= _TO_COME else 0
        while top:
            node = scratch[_STACK, top - 1]
            which = scratch[_STACK + 1, top - 1]
            begin = scratch[_FIRST, node]
            n = scratch[_CHILDREN, node]
            if top == scratch.shape[1] or _is_full(scratch, block, n + 1 + len(action_edges)):
                return NO_ROOM
            known = slots[0, _place(scratch, slots, 0, node, which)]
            number = known if known >= 0 else scratch[KEY_NUMBERS, _STATES]
            state = _TO_COME - scratch[_STATE, known] if known >= 0 else first_state + number
            end = scratch[_END, node]
            closes = False
            for k in range(1, classes.shape[1]):
                closes = closes or (classes[which, k] >= 0 and accepting[classes[which, k]] != 0)
            lives = end >= 0 or (end == _NO_NAME and closes)
            edge = scratch[KEY_NUMBERS, _EDGES]
            late = scratch[KEY_NUMBERS, _LATE]
            below = top
            for cell in range(begin, begin + n):
                byte = cells[0, cell]
                move = _move(tables, classes, which, byte) if which != NO_CLASS else -1
                some = False
                for zone in range(3 if move >= 0 else 1):
                    after = NO_CLASS
                    if move != -1:
                        after = _next(tables, records, classes, slots, scratch, which, byte, zone)
                        if after < 0:
                            return NO_ROOM
                    there = slots[0, _place(scratch, slots, 0, cells[1, cell], after)]
                    target = scratch[_STATE, there] if there >= 0 else _TO_COME
                    if target <= _TO_COME and top == below:  # what it leads to comes first
                        scratch[_STACK, top] = cells[1, cell]
                        scratch[_STACK + 1, top] = after
                        top += 1
                    scratch[KEY_LATE + 2 + zone, scratch[KEY_NUMBERS, _LATE]] = target
                    some = some or target >= 0
                lives = lives or some
                if top > below:
                    break
                if some and move >= 0:
                    _late_edge(block, scratch, state, byte, byte, move)
                elif some or move != -1:
                    _edge(block, scratch, state, byte, byte, 1 + target if some else 0)
            if top > below:
                scratch[KEY_NUMBERS, _EDGES] = edge
                scratch[KEY_NUMBERS, _LATE] = late
                continue
            if not lives:  # but for bytes that leave the trie
                for byte in range(256):
                    if _move(tables, classes, which, byte) != -1 and _child(scratch, cells, node, byte) < 0:
                        lives = True
                        break
            if end >= 0:
                _end_name(block, scratch, action_edges, action_begins, state, end)
            elif end != _NO_NAME and closes:
                _edge(block, scratch, state, _QUOTE, _QUOTE, 0)
            if known >= 0 and not lives:
                return CONFLICT
            is_only = scratch[KEY_NUMBERS, _EDGES] == edge + 1 and scratch[KEY_NUMBERS, _LATE] == late
            if not lives:
                state = DEAD
            elif known < 0 and is_only and end < 0 and block[3, edge] < _MOST_LINKED:
                only = _ONLY - (block[3, edge] << 8 | block[1, edge])
                same = slots[0, _place(scratch, slots, 0, only, which)]
                if same >= 0:
                    state = scratch[_STATE, same]
                    lives = False
                else:
                    _keep_place(scratch, slots, 0, only, which, state)
            if known >= 0:
                scratch[_STATE, known] = state
            else:
                _keep_place(scratch, slots, 0, node, which, state)
                scratch[KEY_NUMBERS, _STATES] += lives
            if lives:
                base = _base(scratch, slots, classes, live, first_state, which)
                _describe(scratch, classes, live, number, which, base)
            else:
                scratch[KEY_NUMBERS, _EDGES] = edge
            top -= 1
    place = 0
    while place < scratch[KEY_NUMBERS, _PLACES]:
        if scratch[_NODE, place] == _OFF:
            which = scratch[_CLASS, place]
            state = _base(scratch, slots, classes, live, first_state, which)
            if _is_full(scratch, block, 1 + len(action_edges)):
                return NO_ROOM
            for k in range(1, classes.shape[1]):
                if classes[which, k] >= 0 and accepting[classes[which, k]]:
                    _end_name(block, scratch, action_edges, action_begins, state, ways[classes[which, 0], k - 1])
            low = 0
            while low < 256:
                if _is_full(scratch, block, 1 + len(action_edges)):
                    return NO_ROOM
                high = _last_alike(tables, classes, which, low)
                move = _move(tables, classes, which, low)
                late = scratch[KEY_NUMBERS, _LATE]
                calls = False
                for zone in range(0 if move == -1 else 3 if move >= 0 else 1):
                    after = _next(tables, records, classes, slots, scratch, which, low, zone)
                    calls = move < 0 and _is_call(classes, ways, after)
                    target = after if calls else _base(scratch, slots, classes, live, first_state, after)
                    scratch[KEY_LATE + 2 + zone, late] = target
                if calls or move >= 0:
                    _late_edge(block, scratch, state, low, high, move)
                elif move != -1:
                    _edge(block, scratch, state, low, high, 1 + target)
                low = high + 1
        place += 1
    return OK
