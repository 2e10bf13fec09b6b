"""Steps of a store: where tokens and bytes lead from a configuration."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..pushdown.arena import A_CAME_TO, A_CLASS_OF, OVERFLOW
from ..pushdown.cells import _LINK
from ..pushdown.subsumption import TOO_LONG, _thinned
from ..pushdown.threads import _follow
from ..signatures import Out, int32, int64, uint8
from ..values import DEAD
from .interning import _config_of, _is_complete, token_slot
from .layout import *


@helper
def _after_bytes(head, machine, config, data, begin, end, whole):
    """The configuration behind ``data[begin:end]``, and how many bytes were followed.

    If ``whole``, it is `DEAD` where one of them dies; otherwise that before the one that dies.
    """
    arena = words32(machine, M_ARENA)
    if not len(arena):
        return np.int64(NO_ARENA), np.int64(0)
    configs, members, threads = configs64(head, S_CONFIGS), triples64(head, S_THREADS), triples64(head, S_ROOM)
    cells, slots, found = cells64(head, S_CELLS), words32(head, S_CELL_SLOTS), words32(head, S_FOUND)
    n, first, ended = configs[config, C_COUNT], configs[config, C_FIRST], configs[config, C_ENDED]
    top, stamp, work = head[N_CELLS], head[S_STAMP], head[S_WORK]
    for k in range(n):
        for column in range(3):
            threads[k, column] = members[first + k, column]
    came_to = arena[A_CAME_TO]  # of a walk that has given way
    found[TOO_LONG] = 0
    tells = machine[M_TELLS]
    thins = found[:0] if tells else found
    at = begin
    while at < end:
        stamp += 1
        c = arena[arena[A_CLASS_OF] + data[at]]
        m, now, escaped = n, top, False
        arena[A_CAME_TO] = 0
        if n:
            m, now, escaped = _follow(arena, c, threads, np.int64(0), n, cells, slots, top, stamp, True, thins)
        if arena[A_CAME_TO]:
            head[S_STAMP] = stamp
            return np.int64(NOT_LOWERED), np.int64(0)
        arena[A_CAME_TO] = came_to
        if m == OVERFLOW:
            head[S_STAMP] = stamp
            return np.int64(TOO_MANY_WAYS if found[TOO_LONG] else NO_SPACE), np.int64(0)
        if m == n and not escaped:
            break
        at += 1
        top = now
        work -= m
        if work < 0:
            head[S_STAMP] = stamp
            return np.int64(TOO_MANY_WAYS), np.int64(0)
        for k in range(n, m):
            for column in range(3):
                threads[k - n, column] = threads[k, column]
        n = m - n
        ended = np.int64(escaped)
        if not tells and (n > 1 or (n == 1 and threads[0, 2] >= 0 and cells[threads[0, 2], 0] == _LINK)):
            n, ended, top = _thinned(arena, threads, n, ended, cells, slots, top, found)
            if n == OVERFLOW:
                return np.int64(NO_SPACE), np.int64(0)
    head[S_STAMP] = stamp
    if whole and at < end:
        return np.int64(DEAD), at - begin
    if at == begin:
        return config, np.int64(0)
    head[N_CELLS] = top
    return _config_of(head, threads, n, ended, ended | _is_complete(arena, cells, threads, n)), at - begin


@kernel(releases_gil=False)
def find_token(head: int64[::1], config: int64, token: int64) -> int64:
    """Where a token leads, a configuration or `DEAD`, if that is known; `NOT_STEPPED`, or `NO_CONFIG`."""
    if not 0 <= config < head[N_CONFIGS]:
        return NO_CONFIG
    keys = words64(head, S_TOKENS)
    slot = token_slot(keys, config, token)
    return np.int64(words32(head, S_TARGETS)[slot]) if keys[slot] >= 0 else np.int64(NOT_STEPPED)


@kernel(releases_gil=False)
def find_targets(head: int64[::1], keys: int64[::1], found: Out[int32[::1]]) -> int64:
    """What was put for keys, ``configuration << 32 | token``, ``int64[n]``; -1 where nothing was.

    Returns how many these are.
    """
    known, targets = words64(head, S_TOKENS), words32(head, S_TARGETS)
    missing = 0
    for i in range(len(keys)):
        slot = token_slot(known, keys[i] >> 32, keys[i] & 0xFFFFFFFF)
        found[i] = targets[slot] if known[slot] >= 0 else -1
        missing += known[slot] < 0
    return missing


@kernel(releases_gil=False)
def step_token(head: Out[int64[::1]], config: int64, token: int64) -> int64:
    """Where a token of the vocabulary leads: a configuration, `DEAD`, or what is to be done first (see `layout`).

    No walk of the automaton may run meanwhile: both lay out its rows.
    """
    if not 0 <= config < head[N_CONFIGS]:
        return NO_CONFIG
    keys, targets = words64(head, S_TOKENS), words32(head, S_TARGETS)
    slot = token_slot(keys, config, token)
    if keys[slot] >= 0:
        return np.int64(targets[slot])
    if 2 * head[N_TOKENS] + 2 > len(keys):
        return NO_SPACE
    machine, apart = words64(head, S_MACHINE), words32(head, S_APART)
    if machine[M_BEYOND] or configs64(head, S_CONFIGS)[config, C_ENDED] > 1:
        return BEYOND
    if token >> 5 < len(apart) and apart[token >> 5] >> np.int32(token & 31) & 1:
        return BEYOND
    offsets = unsigned32(machine, M_OFFSETS)
    begin, end = np.int64(offsets[token]), np.int64(offsets[token + 1])
    target = np.int64(DEAD)
    if begin < end:
        target, _ = _after_bytes(head, machine, config, octets(machine, M_BYTES), begin, end, True)
        if target < DEAD:
            return target
    keys[slot] = config << 32 | token
    targets[slot] = target
    head[N_TOKENS] += 1
    return target


@kernel(releases_gil=False)
def put_target(head: Out[int64[::1]], config: int64, token: int64, target: int64) -> int64:
    """Say where a token leads, a configuration or `DEAD`. Returns 0 or `NO_SPACE`."""
    keys, targets = words64(head, S_TOKENS), words32(head, S_TARGETS)
    slot = token_slot(keys, config, token)
    if keys[slot] < 0:
        if 2 * head[N_TOKENS] + 2 > len(keys):
            return NO_SPACE
        head[N_TOKENS] += 1
    keys[slot] = config << 32 | token
    targets[slot] = target
    return 0


@kernel(releases_gil=False)
def step_bytes(head: Out[int64[::1]], config: int64, data: uint8[::1]) -> tuple[int64, int64]:
    """The configuration behind some bytes, as far as texts go on with them, and how many these are; as `step_token`."""
    if not 0 <= config < head[N_CONFIGS]:
        return NO_CONFIG, 0
    if words64(head, S_MACHINE)[M_BEYOND]:
        return BEYOND, 0
    machine = words64(head, S_MACHINE)
    target, count = _after_bytes(head, machine, config, data, np.int64(0), np.int64(len(data)), False)
    return target, count
