"""The tables of a store as they grow: how long they are to be, and moving them to a longer block."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..pushdown.cells import CELL, _cell_slot
from ..signatures import Out, int64
from .interning import _config_key, token_slot
from .layout import *
from .masks import _forget_unions

#: Tables that grow, by the numbers that `move_tables` has for them.
T_CELLS, T_CELL_SLOTS, T_THREADS, T_CONFIGS, T_CONFIG_SLOTS, T_TOKENS, T_TARGETS = range(7)
T_UNIONS, T_UNION_ROWS, T_UNION_SLOTS, T_DENSE, T_REFUSED, GROWING_TABLES = range(7, 13)

#: Up to so many items a table grows fourfold at once: most of those that grow at all come to hold some hundred.
FEW_ITEMS = 1 << 9

#: Cells of which there is always room for more than twice as many.
_FEW_CELLS = 1 << 5


@helper
def _longer(length):
    return 4 * length if length <= FEW_ITEMS else 2 * length


@helper
def _place_of(number):
    """Where a head has a table."""
    return S_DENSE + 2 * (number - T_DENSE) if number >= T_DENSE else S_CELLS + 2 * number


@helper
def _words_of(number, items):
    """Words of 8 bytes that so many items of a table take."""
    size = 8 if number == T_TOKENS or number >= T_DENSE else 4
    if number == T_CELLS:
        size = 8 * CELL
    elif number == T_THREADS:
        size = 8 * 3
    elif number == T_CONFIGS:
        size = 8 * CONFIG
    elif number == T_UNIONS:
        size = 4 * UNION
    return (items * size + 7) >> 3


@kernel(releases_gil=False)
def longer_tables(head: int64[::1], lengths: Out[int64[::1]]) -> None:
    """How many items the tables of a store are to have that are full, or nearly; 0 for those that stay.

    ``lengths`` is ``int64[GROWING_TABLES]``. If no table is, one step needs more than there is in use: all grow then.
    """
    for number in range(GROWING_TABLES):
        lengths[number] = 0
    tokens = 4 * head[N_TOKENS] > head[S_TOKENS + 1]
    is_full = tokens
    for everything in range(2):
        if everything and is_full:
            break
        if everything or 2 * head[N_THREADS] >= head[S_THREADS + 1]:
            lengths[T_THREADS] = _longer(head[S_THREADS + 1])
        if everything or 2 * head[N_CONFIGS] >= head[S_CONFIGS + 1]:
            lengths[T_CONFIGS] = _longer(head[S_CONFIGS + 1])
        if everything or 2 * head[N_UNIONS] >= head[S_UNIONS + 1]:
            lengths[T_UNIONS] = _longer(head[S_UNIONS + 1])
        if everything or 2 * head[N_UNION_ROWS] >= head[S_UNION_ROWS + 1]:
            lengths[T_UNION_ROWS] = _longer(head[S_UNION_ROWS + 1])
        is_full |= lengths[T_THREADS] + lengths[T_CONFIGS] + lengths[T_UNIONS] + lengths[T_UNION_ROWS] > 0
        if everything or head[S_CELLS + 1] < 2 * head[N_CELLS] + _FEW_CELLS:
            lengths[T_CELLS] = _longer(head[S_CELLS + 1])
            lengths[T_CELL_SLOTS] = 2 * lengths[T_CELLS]
    if head[S_CONFIG_SLOTS + 1] < 2 * lengths[T_CONFIGS]:
        lengths[T_CONFIG_SLOTS] = 2 * lengths[T_CONFIGS]
    if head[S_REFUSED + 1] and head[S_REFUSED + 1] < 2 * lengths[T_CONFIGS]:
        lengths[T_REFUSED] = 2 * lengths[T_CONFIGS]
    if head[S_UNION_SLOTS + 1] < 2 * lengths[T_UNIONS]:
        lengths[T_UNION_SLOTS] = 2 * lengths[T_UNIONS]
    if tokens:
        lengths[T_TOKENS] = lengths[T_TARGETS] = _longer(head[S_TOKENS + 1])


@helper
def _insert_cells(head):
    """Put cells into slots that are free."""
    cells, slots = cells64(head, S_CELLS), words32(head, S_CELL_SLOTS)
    for number in range(head[N_CELLS]):
        slot = _cell_slot(slots, cells[number, 0], cells[number, 1], cells[number, 2])
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number


@helper
def _insert_configs(head):
    """Put configurations into slots that are free."""
    configs, threads, slots = configs64(head, S_CONFIGS), triples64(head, S_THREADS), words32(head, S_CONFIG_SLOTS)
    for number in range(head[N_CONFIGS]):
        first = configs[number, C_FIRST]
        key = _config_key(threads, first, first + configs[number, C_COUNT], configs[number, C_ENDED])
        slot = key & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number


@helper
def _insert_tokens(keys, values, new_keys, new_values):
    """Put tokens into slots that are free, with where they lead."""
    for i in range(len(keys)):
        if keys[i] >= 0:
            slot = token_slot(new_keys, keys[i] >> 32, keys[i] & 0xFFFFFFFF)
            new_keys[slot] = keys[i]
            new_values[slot] = values[i]


@kernel(releases_gil=False)
def move_tables(head: Out[int64[::1]], lengths: int64[::1], block: Out[int64[::1]], address: int64) -> int64:
    """Move tables of a store to a block, where they are longer; nothing is done where the block is too short.

    Parameters
    ----------
    lengths:
        ``int64[GROWING_TABLES]``: how many items they are to have there, 0 for those that stay where they are. Tokens
        come with their targets.
    block, address:
        ``int64[*]``, and where it begins. Tables come to lie one behind the other, each from a whole word on.

    Returns
    -------
    How many words of the block it takes
    """
    size = np.int64(0)
    for number in range(GROWING_TABLES):
        size += _words_of(number, lengths[number])
    if size > len(block):
        return size
    keys, values = words64(head, S_TOKENS), words32(head, S_TARGETS)
    at = np.int64(0)
    for number in range(GROWING_TABLES):
        if lengths[number] == 0:
            continue
        place, end = _place_of(number), at + _words_of(number, lengths[number])
        is_found_anew = number in (T_CELL_SLOTS, T_CONFIG_SLOTS, T_TOKENS, T_UNION_SLOTS)
        for i in range(at, end):
            block[i] = -1 if is_found_anew else 0
        if not is_found_anew and number != T_TARGETS:
            block[at], block[at + 1] = head[place], _words_of(number, head[place + 1])
            old = words64(block, at)
            block[at] = block[at + 1] = 0
            for i in range(len(old)):
                block[at + i] = old[i]
        head[place], head[place + 1] = address + 8 * at, lengths[number]
        at = end
    if lengths[T_CELL_SLOTS]:
        _insert_cells(head)
    if lengths[T_CONFIG_SLOTS]:
        _insert_configs(head)
    if lengths[T_TOKENS]:
        _insert_tokens(keys, values, words64(head, S_TOKENS), words32(head, S_TARGETS))
    if lengths[T_UNION_SLOTS]:
        _forget_unions(head)
    return size
