"""From the edges and moves of a program with a stack to the columns of its tables."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, int32, int64, uint8
from ..values import MARK

#: The target of the first several moves that are made together; those of single ones are above it.
TOGETHER = -(1 << 30)

#: The rows of `flatten`'s room: where the edges of each state begin and end, where the moves of each group and each
#: move begin, which pair leads from a node, counted from 1, and which other one from the same node.
_EDGES, _ENDS, _GROUPS, _MOVES, _PAIRS, _MORE = range(6)


@kernel
def order_edges(
    edges: int32[:, ::1], counts: Out[int32[::1]], order: Out[int32[::1]], ordered: Out[int32[:, ::1]],
    overlapping: Out[uint8[::1]],
) -> int64:  # fmt: skip
    """Put edges in the order of their states, those of a state in that of their lowest bytes, others as they come.

    Parameters
    ----------
    edges, ordered:
        ``int32[4, edges]``: state, lowest and highest byte, target.
    counts, order:
        ``int32[1 + max(256, states)]`` and ``int32[edges]``: room.
    overlapping:
        ``uint8[states]`` of zeros, out: which states have edges that overlap.

    Returns
    -------
    How many edges begin before the one before them ends.
    """
    n, states = edges.shape[1], len(overlapping)
    for i in range(257):
        counts[i] = 0
    for e in range(n):
        counts[edges[1, e] + 1] += 1
    for i in range(256):
        counts[i + 1] += counts[i]
    for e in range(n):
        order[counts[edges[1, e]]] = e
        counts[edges[1, e]] += 1
    for i in range(states + 1):
        counts[i] = 0
    for e in range(n):
        counts[edges[0, e] + 1] += 1
    for i in range(states):
        counts[i + 1] += counts[i]
    for i in range(n):
        e = order[i]
        at = counts[edges[0, e]]
        counts[edges[0, e]] = at + 1
        for column in range(4):
            ordered[column, at] = edges[column, e]
    found = np.int64(0)
    for i in range(1, n):
        if ordered[0, i] == ordered[0, i - 1] and ordered[1, i] <= ordered[2, i - 1]:
            overlapping[ordered[0, i]] = 1
            found += 1
    return found


@helper
def _node_of(target, states, singles):
    """The node that a target is: a state, or behind all states a group of moves; -1 for none."""
    if target > 0:
        return target - 1
    if target > TOGETHER:
        return states - 1 - target if target else -1
    return states + singles + TOGETHER - target


@helper
def _come_to(node, to, stack, top):
    """Put a node on the stack that was not there yet; returns how many are on it."""
    if node >= 0 and not to[node]:
        to[node] = 1
        stack[top] = node
        return top + 1
    return top


@helper
def _is_state(records, record, field):
    """Whether a field of a record is a state."""
    return field >= 2 and records[record, field] >= 0 and (field == 2 or records[record, 0] != MARK)


@helper
def _reach(edges, of_states, groups, moves, records, pairs, singles, begins, to, stack, top):
    """Mark the nodes that those on the stack lead to."""
    states = of_states.shape[1]
    while top:
        top -= 1
        node = stack[top]
        pair = begins[_PAIRS, node]
        while pair:
            top = _come_to(pairs[1, pair - 1], to, stack, top)
            pair = begins[_MORE, pair - 1]
        if node < states:
            top = _come_to(of_states[0, node], to, stack, top)
            for e in range(begins[_EDGES, node], begins[_ENDS, node]):
                top = _come_to(_node_of(edges[3, e], states, singles), to, stack, top)
        elif node < states + groups:
            for move in range(begins[_GROUPS, node - states], begins[_GROUPS, node - states + 1]):
                begin = begins[_MOVES, move]
                if moves[begin]:
                    top = _come_to(states + groups - 1 + moves[begin], to, stack, top)
                for i in range(begin + 1, begins[_MOVES, move + 1]):
                    top = _come_to(moves[i], to, stack, top)
        else:
            record = node - states - groups
            for field in range(2, 5):
                if _is_state(records, record, field):
                    top = _come_to(records[record, field], to, stack, top)


@kernel
def flatten(
    edges: int32[:, ::1], of_states: int32[:, ::1], sizes: int32[::1], lengths: int32[::1], moves: int32[::1],
    records: int32[:, ::1], pairs: int32[:, ::1], singles: int64, start: int64, begins: Out[int32[:, ::1]],
    stack: Out[int32[::1]], to: Out[int32[::1]], read: Out[uint8[::1]], columns: Out[int32[::1]],
) -> tuple[int64, int64, int64, int64, int64, int64]:  # fmt: skip
    """Number what the start leads to, and write it as tables have it.

    *Nodes* are the states, then the groups of moves, then the records.

    Parameters
    ----------
    edges:
        Those of a state stand together, as `order_edges` has them, and are disjoint. A target is 1 plus a state, -1
        minus a group, or `TOGETHER` minus one of those behind the first ``singles`` groups; 0 where the bytes are
        refused.
    of_states:
        ``int32[3, states]``: the state that each is like, or -1; the loop that it is live in, or -1; whether it
        returns.
    sizes:
        ``int32[groups]``: the moves of each; those of one group come after the other's.
    lengths, moves:
        ``int32[moves]``, ``int32[*]``: each move's record, 0 for none, else 1 plus its number, then its states; and
        how many numbers these are.
    records:
        ``int32[records, 5]``.
    pairs:
        ``int32[2, *]``: nodes that lead to nodes besides.
    start:
        A state, or -1 where all are numbered.
    begins, stack:
        ``int32[6, *]``, as long as there are nodes, moves or pairs and one more, of zeros, and ``int32[nodes]``: room.
    to:
        ``int32[nodes]`` of zeros, out: 0 for a node that is left out, else its target, or 1 plus the record.
    read:
        ``uint8[*]``, out: ``edge_low``, ``edge_high`` and ``returns`` of
        `structgen.runtime.pushdown.tables.PushdownTables`.
    columns:
        ``int32[*]``, out: its ``edge_start``, ``edge_target``, ``like``, ``live``, ``group_start``, ``move_record``,
        ``move_start``, ``sequence`` and ``records``.

    Returns
    -------
    Numbers of states, edges, groups, moves, states of all sequences, and records
    """
    states, groups = of_states.shape[1], len(sizes)
    n = states + groups
    for e in range(edges.shape[1]):
        if not begins[_ENDS, edges[0, e]]:
            begins[_EDGES, edges[0, e]] = e
        begins[_ENDS, edges[0, e]] = e + 1
    for i in range(groups):
        begins[_GROUPS, i + 1] = begins[_GROUPS, i] + sizes[i]
    for i in range(len(lengths)):
        begins[_MOVES, i + 1] = begins[_MOVES, i] + lengths[i]
    for i in range(pairs.shape[1]):
        begins[_MORE, i] = begins[_PAIRS, pairs[0, i]]
        begins[_PAIRS, pairs[0, i]] = i + 1
    if start < 0:
        for node in range(len(to)):
            to[node] = 1
    else:
        top = _come_to(start, to, stack, 0)
        _reach(edges, of_states, groups, moves, records, pairs, singles, begins, to, stack, top)
    n_states = np.int64(0)
    n_edges = np.int64(0)
    for state in range(states):
        if to[state]:
            n_states += 1
            to[state] = n_states
            for e in range(begins[_EDGES, state], begins[_ENDS, state]):
                n_edges += edges[3, e] != 0 or of_states[0, state] >= 0
    n_groups = np.int64(0)
    n_moves = np.int64(0)
    n_sequence = np.int64(0)
    for group in range(groups):
        if to[states + group]:
            n_groups += 1
            to[states + group] = n_states + n_groups
            n_moves += sizes[group]
            for move in range(begins[_GROUPS, group], begins[_GROUPS, group + 1]):
                n_sequence += lengths[move] - 1
    n_records = np.int64(0)
    for node in range(n, len(to)):
        if to[node]:
            n_records += 1
            to[node] = n_records
    columns[0] = 0
    edge = np.int64(0)
    target_at = n_states + 1
    like_at = target_at + n_edges
    for state in range(states):
        if not to[state]:
            continue
        like = of_states[0, state]
        for e in range(begins[_EDGES, state], begins[_ENDS, state]):
            node = _node_of(edges[3, e], states, singles)
            if node >= 0 or like >= 0:
                read[edge] = edges[1, e]
                read[n_edges + edge] = edges[2, e]
                columns[target_at + edge] = to[node] if node >= 0 else 0
                edge += 1
        at = to[state]
        columns[at] = edge
        columns[like_at - 1 + at] = to[like] if like >= 0 else 0
        columns[like_at + n_states - 1 + at] = of_states[1, state]
        read[2 * n_edges - 1 + at] = of_states[2, state]
    group_at = like_at + 2 * n_states
    record_at = group_at + n_groups + 1
    start_at = record_at + n_moves
    sequence_at = start_at + n_moves + 1
    columns[group_at] = 0
    columns[start_at] = 0
    done = np.int64(0)
    length = np.int64(0)
    for group in range(groups):
        if not to[states + group]:
            continue
        for move in range(begins[_GROUPS, group], begins[_GROUPS, group + 1]):
            begin = begins[_MOVES, move]
            columns[record_at + done] = to[n - 1 + moves[begin]] if moves[begin] else 0
            for i in range(begin + 1, begins[_MOVES, move + 1]):
                columns[sequence_at + length] = to[moves[i]] - 1
                length += 1
            done += 1
            columns[start_at + done] = length
        group_at += 1
        columns[group_at] = done
    at = sequence_at + n_sequence
    for record in range(len(records)):
        if to[n + record]:
            for field in range(5):
                value = np.int64(records[record, field])
                columns[at] = to[value] - 1 if _is_state(records, record, field) else value
                at += 1
    return n_states, n_edges, n_groups, n_moves, n_sequence, n_records
