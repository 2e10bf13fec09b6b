"""Rows of a pool and residual lists under their numbers: equal ones have the same."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, int32, int64, uint16
from .interning import _hashed, _is_run
from .layout import *
from .masks import _NOTHING


@helper
def _row_slot(pool, base, gaps, begin, n):
    """The slot of the row with a base and ``gaps[begin : begin + n]``, or a free one."""
    bases, start, known = words32(pool, R_BASE), words64(pool, R_START), unsigned16(pool, R_GAPS)
    slots = words32(pool, R_SLOTS)
    key = _hashed(n + 1, base)
    for i in range(begin, begin + n):
        key = _hashed(key, np.int64(gaps[i]))
    slot = key & (len(slots) - 1)
    while slots[slot] >= 0:
        there = np.int64(slots[slot])
        is_as_long = bases[there] == base and start[there + 1] - start[there] == n
        if is_as_long and _is_run(known, start[there], gaps, begin, n):
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@helper
def _put_row(pool, base, gaps, n):
    """The number of the row with a base and ``gaps[:n]``; `NO_SPACE`."""
    bases, start, known = words32(pool, R_BASE), words64(pool, R_START), unsigned16(pool, R_GAPS)
    slots = words32(pool, R_SLOTS)
    number = pool[R_COUNT]
    if 2 * number + 2 > len(slots):
        pool[R_WANTED] = n
        return np.int64(NO_SPACE)
    slot = _row_slot(pool, base, gaps, np.int64(0), n)
    if slots[slot] >= 0:
        return np.int64(slots[slot])
    first = start[number]
    if number >= len(bases) or first + n > len(known):
        pool[R_WANTED] = n
        return np.int64(NO_SPACE)
    for i in range(n):
        known[first + i] = gaps[i]
    bases[number] = base
    start[number + 1] = first + n
    slots[slot] = number
    pool[R_COUNT] = number + 1
    return number


@kernel(releases_gil=False)
def put_row(pool: Out[int64[::1]], base: int64, gaps: uint16[::1]) -> int64:
    """The number of the row with a base and some gaps in a pool, which has it from now on; `NO_SPACE`."""
    return _put_row(pool, base, gaps, np.int64(len(gaps)))


@kernel(releases_gil=False)
def number_rows(pool: Out[int64[::1]]) -> None:
    """Find the rows of a pool by slots, all of them -1; the first of equal ones."""
    bases, start, gaps = words32(pool, R_BASE), words64(pool, R_START), unsigned16(pool, R_GAPS)
    slots = words32(pool, R_SLOTS)
    for number in range(pool[R_COUNT]):
        slot = _row_slot(pool, np.int64(bases[number]), gaps, start[number], start[number + 1] - start[number])
        if slots[slot] < 0:
            slots[slot] = number


@helper
def _list_key(nodes, n):
    """The hash of a residual list."""
    key = np.int64(n + 1)
    for i in range(n):
        key = _hashed(key, np.int64(nodes[i]))
    return key & 0x7FFFFFFFFFFFFFFF


@helper
def _list_slot(head, key, nodes, n):
    """The slot of a residual list, or a free one."""
    lists, slots = triples64(head, L_LISTS), words32(head, L_SLOTS)
    slot = key & (len(slots) - 1)
    while slots[slot] >= 0:
        there = lists[slots[slot]]
        is_like = there[1] == n and there[2] == key
        if is_like and _is_run(words32(there, 0), np.int64(0), nodes, np.int64(0), n):
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@helper
def _put_list(head, nodes, n):
    """The number of the residual list ``nodes[:n]``; `NO_SPACE`."""
    if n == 0:
        return np.int64(_NOTHING)
    lists, slots, own = triples64(head, L_LISTS), words32(head, L_SLOTS), words32(head, L_NODES)
    number, used = head[L_COUNT], head[L_USED]
    if 2 * number + 2 > len(slots):
        head[L_WANTED] = n
        return np.int64(NO_SPACE)
    key = _list_key(nodes, n)
    slot = _list_slot(head, key, nodes, n)
    if slots[slot] >= 0:
        return np.int64(slots[slot])
    if number >= len(lists) or used + n > len(own):
        head[L_WANTED] = n
        return np.int64(NO_SPACE)
    for i in range(n):
        own[used + i] = nodes[i]
    lists[number, 0] = head[L_NODES] + 4 * used
    lists[number, 1] = n
    lists[number, 2] = key
    slots[slot] = number
    head[L_COUNT] = number + 1
    head[L_USED] = used + n
    return number


@kernel(releases_gil=False)
def put_list(head: Out[int64[::1]], nodes: int32[::1]) -> int64:
    """The number of a residual list, which is there from now on; `NO_SPACE`."""
    return _put_list(head, nodes, np.int64(len(nodes)))


@kernel(releases_gil=False)
def number_lists(head: Out[int64[::1]]) -> None:
    """Find the residual lists that were fetched by slots, all of them -1; none that belongs to the vocabulary."""
    lists, slots = triples64(head, L_LISTS), words32(head, L_SLOTS)
    for number in range(head[L_COUNT]):
        each = lists[number]
        if each[0] == 0 or each[1] == 0 or each[2] == ELSEWHERE:
            continue
        nodes = words32(each, 0)
        each[2] = _list_key(nodes, each[1])
        slot = _list_slot(head, each[2], nodes, each[1])
        if slots[slot] < 0:
            slots[slot] = number


@kernel(releases_gil=False)
def read_list(head: int64[::1], number: int64, nodes: Out[int32[::1]]) -> None:
    """Copy a residual list that was fetched, ``int32[*]``."""
    known = words32(triples64(head, L_LISTS)[number], 0)
    for i in range(min(len(known), len(nodes))):
        nodes[i] = known[i]
