"""A lexer with as few states as it can do with, or nearly.

A lexer state serves in two ways. *On the way* of a lexeme it says what can end there and how the lexeme goes on. As
one that is *watched* it only says whether the lexeme that ended is beaten by a longer one, or lapses: what ends there
does not matter, nor what comes after it was beaten. So what cannot matter in the ways in which a state is come to is
left out first: ends, moves, and what is watched for nothing. Then states are merged by the coarsest partition.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ....runtime.core.digraph import set_of, solve
from ...automata.dfa import coarsest_partition, reaching
from .leftmost_dfa import Edges, edges_of, quotient, targets
from .scanner import Lexer

_States: TypeAlias = NDArray[np.bool_]

#: States of which the successors are found at a time.
_CHUNK = 1024


def merged(lexer: Lexer, meter: Meter) -> Lexer:
    """A lexer that reads the same, its starts ascending. Raises `BudgetExceededError`."""
    lexer = _without_needless(lexer, meter)
    table = lexer.table
    is_start = np.zeros(len(table), np.bool_)
    is_start[lexer.starts] = True
    numbers: dict[object, int] = {}
    terminals = (tuple(t for t, _ in there) for there in lexer.ends)
    flags = (lexer.beats, lexer.lapses, is_start.tolist())
    kinds = np.array([numbers.setdefault(kind, len(numbers)) for kind in zip(terminals, *flags, strict=True)])
    # What is watched is told apart as what bytes lead to.
    watching = targets([[watch for _, watch in there] for there in lexer.ends])
    block = coarsest_partition(np.column_stack([table, watching]), kinds, meter)
    used = reached(is_start, edges_of(np.column_stack([table, watching])))
    first, name = quotient(block, used)
    class_of, rows = _with_merged_classes(lexer.class_of, name[table[first]])
    return replace(
        lexer, class_of=class_of, table=rows, starts=name[lexer.starts].tolist(), cuts={},
        ends=[[(t, int(name[watch])) for t, watch in lexer.ends[state]] for state in first.tolist()],
        beats=[lexer.beats[state] for state in first.tolist()],
        lapses=[lexer.lapses[state] for state in first.tolist()],
    )  # fmt: skip


def _without_needless(lexer: Lexer, meter: Meter) -> Lexer:
    """Without ends that no match can have, and what does not matter in the ways in which states are come to.

    Of states that do the same where they are watched, one is.
    """
    table, beats, lapses = lexer.table, np.array(lexer.beats, np.bool_), np.array(lexer.lapses, np.bool_)
    starts = np.zeros(len(table), np.bool_)
    starts[lexer.starts] = True
    edges = edges_of(table)
    on_way = reached(starts, edges)
    is_beaten = (table >= 0) & beats[table]
    left = np.where(is_beaten, -1, table)  # of what is watched
    # A match is settled where the text may end, and where no byte leads on.
    left_edges = edges_of(left)
    stands = reaching(*left_edges, ~lapses | (table < 0).any(axis=1))
    matters = reaching(*left_edges, lapses | is_beaten.any(axis=1))
    left[~matters[left]] = -1
    alike = _alike(left, np.column_stack([lapses, is_beaten]), on_way, meter)
    watched = np.where(matters, alike, -1).tolist()
    ends = [
        [(t, watched[watch] if watch >= 0 else -1) for t, watch in there if watch < 0 or stands[watch]] if here else []
        for there, here in zip(lexer.ends, on_way.tolist(), strict=True)
    ]
    seeds = np.zeros(len(table), np.bool_)
    seeds[[watch for there in ends for _, watch in there if watch >= 0]] = True
    is_watched = reached(seeds, edges_of(left))
    may_end = reaching(*edges, np.array([bool(there) for there in ends]))
    kept = on_way[:, None] & may_end[table] | is_watched[:, None] & (is_beaten | (left >= 0))
    return replace(
        lexer,
        table=np.where((table >= 0) & kept, table, -1),
        ends=ends,
        lapses=(lapses & (on_way | is_watched)).tolist(),
    )


def _alike(table: NDArray[np.int32], flags: _States, first: _States, meter: Meter) -> NDArray[np.int64]:
    """By state: one with the same flags, from which on it is the same; one of ``first``, if there is one."""
    numbers: dict[bytes, int] = {}
    kinds = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in np.packbits(flags, axis=1)])
    block = coarsest_partition(table, kinds, meter)
    order = np.argsort(~first, kind="stable")
    _, where, number = np.unique(block[order], return_index=True, return_inverse=True)
    found = np.empty(len(table), np.int64)
    found[order] = order[where][number]
    return found


def futures(lexer: Lexer, meter: Meter) -> list[int]:
    """By state: the terminals that a lexeme can become, however it goes on. Raises `BudgetExceededError`."""
    found = [set_of({t for t, _ in there}) for there in lexer.ends]
    solve(found, successors(lexer.table, meter), lambda: meter.check_time("building the lexer"))
    return found


def successors(table: NDArray[np.int32], meter: Meter) -> list[list[int]]:
    """By state: the states that bytes lead to, ascending, each once. Raises `BudgetExceededError`."""
    found: list[list[int]] = []
    for begin in range(0, len(table), _CHUNK):
        meter.check_time("building the lexer")
        rows = np.sort(table[begin : begin + _CHUNK], axis=1)
        is_first = rows >= 0
        is_first[:, 1:] &= rows[:, 1:] != rows[:, :-1]
        targets, ends = rows[is_first].tolist(), np.cumsum(is_first.sum(axis=1)).tolist()
        found += (targets[first:last] for first, last in pairwise([0, *ends]))
    return found


def _with_merged_classes(
    class_of: NDArray[np.uint8], table: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The same for bytes that are no longer told apart."""
    numbers: dict[bytes, int] = {}
    name = [numbers.setdefault(column.tobytes(), len(numbers)) for column in table.T]
    first = np.unique(name, return_index=True)[1]
    return np.array(name, np.uint8)[class_of], np.ascontiguousarray(table[:, first])


def reached(seeds: _States, edges: Edges) -> _States:
    """The states to which some lead, and these."""
    return reaching(*edges[::-1], seeds)
