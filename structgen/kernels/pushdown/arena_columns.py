"""Laying a pushdown automaton's columns out in its arena."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel, table
from ..signatures import Out, int32, int64, uint8
from ..values import DEAD, MARK
from .arena import (
    A_CLASS_OF,
    A_CLASSES,
    A_DEAD_ROW,
    A_EDGE_START,
    A_EDGES,
    A_FREE,
    A_GROUPS,
    A_LIKE,
    A_MOVES,
    A_RECORDS,
    A_ROWS,
    A_SETS,
    A_SINGLE,
    A_STATES,
    ARENA_HEADER,
    NOT_SINGLE,
    SET_HEADER,
    SINGLE_POP,
    number_byte_classes,
)

#: The numbers of columns; the last, from `_LIKE` on, are copied as they are.
_STARTS, _LOW, _HIGH, _TARGET, _RECORD, _MOVES, _LIKE, _GROUPS, _COLUMNS = 0, 1, 2, 3, 4, 5, 6, 7, 14

#: The numbers of a column, by their bytes.
_numbers8, _numbers16, _numbers32, _numbers64 = table("uint8"), table("uint16"), table("int32"), table("int64")


@helper
def _lay_out_column(columns, column, arena, to, step, add):
    """Write the numbers of a column, plus ``add``, to every so many words."""
    place = 3 * column
    for i in range(columns[place + 1]):
        if columns[place + 2] == 1:
            number = np.int32(_numbers8(columns, place)[i])
        elif columns[place + 2] == 2:
            number = np.int32(_numbers16(columns, place)[i])
        elif columns[place + 2] == 4:
            number = _numbers32(columns, place)[i]
        else:
            number = np.int32(_numbers64(columns, place)[i])
        arena[to + step * i] = number + np.int32(add)


@kernel(releases_gil=False)
def arena_size(columns: int64[::1], words: int64, sets: int64, class_of: Out[uint8[::1]]) -> int64:
    """How many words the arena of an automaton takes; see `lay_out_arena`. ``class_of`` is out, of zeros."""
    number_byte_classes(_numbers8(columns, 3 * _LOW), _numbers8(columns, 3 * _HIGH), class_of)
    states = columns[3 * _LIKE + 1]
    size = ARENA_HEADER + len(class_of) + states - columns[3 * _HIGH + 1] + columns[3 * _GROUPS + 1]
    for column in range(_COLUMNS):
        size += columns[3 * column + 1]
    if words:
        size += 2 * sets + (sets + 1) * words
    return size + SET_HEADER + (states + 1) * (np.int64(class_of[255]) + 1)  # the last row is that of open states


@kernel(releases_gil=False)
def lay_out_arena(columns: int64[::1], class_of: uint8[::1], words: int64, sets: int64, arena: Out[int32[::1]]) -> None:
    """Lay an automaton's columns out in an arena, with room for all rows and for sets.

    Parameters
    ----------
    columns:
        ``int64[14 * 3]``: addresses, lengths, and bytes of a number of ``edge_start``, ``edge_low``, ``edge_high``,
        ``edge_target``, ``move_record``, ``move_start``, ``like``, ``group_start``, ``sequence``, ``records``,
        ``loops``, ``live``, ``returns`` and ``tests`` of `structgen.runtime.pushdown.tables.PushdownTables`.
    class_of:
        The class of each byte, ``uint8[256]``.
    words, sets:
        Words of a set, and for how many there is room.
    arena:
        ``int32[*]``, out: of zeros where there are sets.
    """
    states, edges = columns[3 * _LIKE + 1], columns[3 * _LOW + 1]
    moves, groups = columns[3 * _RECORD + 1], columns[3 * _GROUPS + 1] - 1
    at = np.int64(ARENA_HEADER)
    for i in range(at):
        arena[i] = 0
    arena[A_CLASS_OF] = at
    for byte in range(256):
        arena[at + byte] = class_of[byte]
    at += 256
    arena[A_ROWS] = at
    for state in range(states):
        arena[at + state] = 0
    at += states
    arena[A_EDGE_START] = at
    _lay_out_column(columns, _STARTS, arena, at, 1, 0)
    at += columns[3 * _STARTS + 1]
    arena[A_EDGES] = at
    low, high = _numbers8(columns, 3 * _LOW), _numbers8(columns, 3 * _HIGH)
    for edge in range(edges):
        arena[at + 2 * edge] = np.int32(low[edge]) + np.int32(high[edge]) * 256
    _lay_out_column(columns, _TARGET, arena, at + 1, 2, -1)
    at += 2 * edges
    arena[A_MOVES] = at
    _lay_out_column(columns, _RECORD, arena, at, 2, -1)
    _lay_out_column(columns, _MOVES, arena, at + 1, 2, 0)
    at += 2 * moves + 2
    arena[at - 2] = 0
    arena[A_SINGLE] = at
    at += groups
    for column in range(_LIKE, _COLUMNS):
        arena[A_LIKE + column - _LIKE] = at
        _lay_out_column(columns, column, arena, at, 1, 0)
        at += columns[3 * column + 1]
    for group in range(groups):
        first = arena[arena[A_GROUPS] + group]
        move = arena[A_MOVES] + 2 * first
        does = arena[move] if arena[move] >= 0 else np.int32(SINGLE_POP)
        if (
            arena[arena[A_GROUPS] + group + 1] != first + 1
            or arena[move + 3] != arena[move + 1]
            or (does >= 0 and arena[arena[A_RECORDS] + 5 * does] == MARK)
        ):
            does = np.int32(NOT_SINGLE)
        arena[arena[A_SINGLE] + group] = does
    arena[A_SETS] = at  # right behind the tests, whose last row ends where no other goes on with it
    arena[at] = words
    arena[at + 1] = sets
    arena[at + 2] = 0
    at += SET_HEADER + (2 * sets + (sets + 1) * words if words else 0)
    arena[A_STATES], arena[A_CLASSES], arena[A_FREE] = states, np.int64(class_of[255]) + 1, at
    arena[A_DEAD_ROW] = len(arena) - arena[A_CLASSES]
    for i in range(arena[A_DEAD_ROW], len(arena)):
        arena[i] = DEAD
