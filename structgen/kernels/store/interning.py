"""Cells, configurations and tokens of a store under their numbers."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..pushdown.arena import A_RETURNS, OVERFLOW
from ..pushdown.cells import _BOTTOM, _LINK, _may_end, _sort_threads, _stack_cell
from ..pushdown.subsumption import _unite
from ..signatures import Out, int32, int64
from .layout import *


@helper
def _hashed(key, number):
    """A key with a number more in it."""
    key = (key ^ number) * 0x1E3779B97F4A7C15
    return key ^ ((key >> 29) & 0x7FFFFFFFF)


@helper
def token_slot(keys, config, token):
    """The slot of a configuration's token, which holds -1 where it is new. (Linear probing, TAOCP 3, section 6.4.)"""
    mask = len(keys) - 1
    key = np.int64(config) << 32 | np.int64(token)
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while keys[slot] != key and keys[slot] >= 0:
        slot = (slot + 1) & mask
    return slot


@helper
def _first_not_below(numbers, first, end, least):
    """The place of the first of some ascending numbers, between two places, that is not below another; or the end."""
    while first < end:
        middle = (first + end) >> 1
        if np.int64(numbers[middle]) < least:
            first = middle + 1
        else:
            end = middle
    return first


@helper
def _is_run(numbers, at, others, begin, n):
    """Whether ``numbers[at : at + n]`` are ``others[begin : begin + n]``."""
    i = np.int64(0)
    while i < n and numbers[at + i] == others[begin + i]:
        i += 1
    return i == n


@helper
def _config_key(threads, begin, n, ended):
    key = np.int64(2 * (n - begin) + ended + 1)
    for k in range(begin, n):
        for column in range(3):
            key = _hashed(key, threads[k, column])
    return key


@helper
def _is_complete(arena, cells, threads, n):
    """Whether the text is complete in some of ``threads[:n]``."""
    found = np.int64(0)
    for k in range(n):
        if arena[arena[A_RETURNS] + threads[k, 0]]:
            found |= np.int64(_may_end(cells, threads[k, 2]))
    return found


@helper
def _config_of(head, threads, n, ended, accepts):
    """The number of the configuration ``threads[:n]``, which are in order; `NO_SPACE`."""
    configs = configs64(head, S_CONFIGS)
    members = triples64(head, S_THREADS)
    slots = words32(head, S_CONFIG_SLOTS)
    slot = _config_key(threads, np.int64(0), n, ended) & (len(slots) - 1)
    while slots[slot] >= 0:
        there = np.int64(slots[slot])
        if configs[there, C_COUNT] == n and configs[there, C_ENDED] == ended:
            first = configs[there, C_FIRST]
            same = True
            for k in range(n):
                for column in range(3):
                    same &= members[first + k, column] == threads[k, column]
            if same:
                return there
        slot = (slot + 1) & (len(slots) - 1)
    number = head[N_CONFIGS]
    first = head[N_THREADS]
    if number >= len(configs) or first + n > len(members) or 2 * number + 2 > len(slots):
        return np.int64(NO_SPACE)
    for k in range(n):
        for column in range(3):
            members[first + k, column] = threads[k, column]
    configs[number, C_FIRST] = first
    configs[number, C_COUNT] = n
    configs[number, C_ENDED] = ended
    configs[number, C_ACCEPTS] = accepts
    configs[number, C_UNION] = -1
    configs[number, C_SET] = -1
    slots[slot] = number
    head[N_CONFIGS] = number + 1
    head[N_THREADS] = first + n
    return number


@kernel(releases_gil=False)
def begin_configs(head: Out[int64[::1]], state: int64, accepts: int64) -> int64:
    """The number of the configuration of a state with nothing below it; `NO_SPACE`."""
    threads = triples64(head, S_ROOM)
    threads[0, 0] = state
    threads[0, 1] = 0
    threads[0, 2] = _BOTTOM
    return _config_of(head, threads, np.int64(1), np.int64(0), accepts)


@kernel(releases_gil=False)
def add_cell(head: Out[int64[::1]], state: int64, count: int64, below: int64) -> int64:
    """The number of a stack cell (see `structgen.kernels.pushdown.cells`); `NO_SPACE`, or `NO_ARENA`."""
    arena = words32(words64(head, S_MACHINE), M_ARENA)
    if not len(arena):
        return NO_ARENA
    top, slots = head[N_CELLS], words32(head, S_CELL_SLOTS)
    number = _stack_cell(arena, cells64(head, S_CELLS), slots, top, state, count, below, len(slots))
    if number == OVERFLOW:
        return NO_SPACE
    head[N_CELLS] = max(top, number + 1)
    return number


@kernel(releases_gil=False)
def add_config(head: Out[int64[::1]], threads: int64[:, ::1], ended: int64) -> int64:
    """The number of the configuration of some threads, ``int64[*, 3]``; `NO_SPACE`, `TOO_MANY_WAYS` or `NO_ARENA`.

    ``ended`` is 1 where the text may have ended with an empty stack.
    """
    arena = words32(words64(head, S_MACHINE), M_ARENA)
    if not len(arena):
        return NO_ARENA
    own, members = cells64(head, S_CELLS), triples64(head, S_ROOM)
    if len(threads) >= len(members):
        return TOO_MANY_WAYS
    for k in range(len(threads)):
        for column in range(3):
            members[k, column] = threads[k, column]
    n, top = _unite(
        arena, members, np.int64(0), np.int64(len(threads)), own, words32(head, S_CELL_SLOTS), head[N_CELLS], True,
        words32(head, S_FOUND)[:0],
    )  # fmt: skip
    if n == OVERFLOW:
        return NO_SPACE
    head[N_CELLS] = top
    return _config_of(head, members, n, ended, ended | _is_complete(arena, own, members, n))


@kernel(releases_gil=False)
def stand_apart(head: Out[int64[::1]], config: int64) -> int64:
    """The number of a new configuration with the threads of another one, whose steps Python makes; `NO_SPACE`."""
    configs, number = configs64(head, S_CONFIGS), head[N_CONFIGS]
    if not 0 <= config < number:
        return NO_CONFIG
    if number >= len(configs) or 2 * number + 2 > len(words32(head, S_CONFIG_SLOTS)):
        return NO_SPACE
    for column in range(CONFIG):
        configs[number, column] = configs[config, column]
    configs[number, C_ENDED] |= (number + 1) << 1  # so that slots tell it from others, when they are longer
    head[N_CONFIGS] = number + 1
    return number


@kernel(releases_gil=False)
def adopt_configs(
    source: int64[::1], head: Out[int64[::1]], configs: int32[::1], numbers: Out[int64[::1]], found: Out[int32[::1]]
) -> int64:  # fmt: skip
    """The numbers of configurations of another store of the same automaton, ``int32[n]``, in this one.

    ``numbers`` is ``int64[cells]``, for the cells of the other one; ``found`` is ``int32[n]``. A number below 0 stays.
    Returns 0, `NO_SPACE`, `NO_CONFIG` or `NO_ARENA`.
    """
    machine = words64(head, S_MACHINE)
    arena = words32(machine, M_ARENA)
    if not len(arena):
        return NO_ARENA
    theirs, threads, cells = configs64(source, S_CONFIGS), triples64(source, S_THREADS), cells64(source, S_CELLS)
    for i in range(len(numbers)):
        numbers[i] = 0
    for i in range(len(configs)):
        if configs[i] >= source[N_CONFIGS]:
            return NO_CONFIG
        if configs[i] >= 0:
            first = theirs[configs[i], C_FIRST]
            for k in range(first, first + theirs[configs[i], C_COUNT]):
                if threads[k, 2] >= 0:
                    numbers[threads[k, 2]] = 1
    for i in range(source[N_CELLS] - 1, -1, -1):  # what lies below a cell has a smaller number
        if numbers[i]:
            if cells[i, 2] >= 0:
                numbers[cells[i, 2]] = 1
            if cells[i, 0] == _LINK and cells[i, 1] >= 0:
                numbers[cells[i, 1]] = 1
    own, slots = cells64(head, S_CELLS), words32(head, S_CELL_SLOTS)
    top = head[N_CELLS]
    for i in range(source[N_CELLS]):
        if numbers[i]:
            count, below = cells[i, 1], cells[i, 2]
            if cells[i, 0] == _LINK and count >= 0:
                count = numbers[count]
            below = numbers[below] if below >= 0 else below
            numbers[i] = _stack_cell(arena, own, slots, top, cells[i, 0], count, below, len(slots))
            if numbers[i] == OVERFLOW:
                return NO_SPACE
            top = max(top, numbers[i] + 1)
    head[N_CELLS] = top
    members = triples64(head, S_ROOM)
    for i in range(len(configs)):
        found[i] = configs[i]
        if configs[i] < 0:
            continue
        first, n = theirs[configs[i], C_FIRST], theirs[configs[i], C_COUNT]
        if n >= len(members):
            return NO_SPACE
        for k in range(n):
            members[k, 0] = threads[first + k, 0]
            members[k, 1] = threads[first + k, 1]
            members[k, 2] = numbers[threads[first + k, 2]] if threads[first + k, 2] >= 0 else threads[first + k, 2]
        _sort_threads(members, np.int64(0), n)
        number = _config_of(head, members, n, theirs[configs[i], C_ENDED], theirs[configs[i], C_ACCEPTS])
        if number < 0:
            return number
        found[i] = number
    return 0
