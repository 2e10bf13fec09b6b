"""A lexer with as few states as it can do with.

A lexer state serves in two ways. *On the way* of a lexeme it says what can end there and how the lexeme goes on. As
one that is *watched* it only says whether the lexeme that ended is beaten by a longer one, or lapses: what ends there
does not matter, nor what comes after it was beaten. So states are merged twice, for either use by the coarsest
partition. What is watched is then a state on the way again where one does the same, and a state of its own where none
does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....budget import Meter
from ....runtime.core.digraph import set_of, solve
from ...automata.dfa import coarsest_partition
from .leftmost_dfa import reaching
from .scanner import Lexer

_States: TypeAlias = NDArray[np.bool_]

#: States of which the successors are found at a time.
_CHUNK = 1024


def merged(lexer: Lexer, meter: Meter) -> Lexer:
    """A lexer that reads the same, its starts ascending. Raises `BudgetExceededError`."""
    is_start = np.zeros(len(lexer.table), np.bool_)
    is_start[lexer.starts] = True
    lexemes = reached(is_start, lexer.table)
    watched = _watched(lexer, lexemes, meter)
    way = _way(lexer, lexemes, is_start, watched, meter)
    return _together(lexer, watched, way)


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


@dataclass(frozen=True, eq=False)
class _Watched:
    """What states do that are watched.

    Parameters
    ----------
    table:
        ``int32[states + 1, classes]``: the next state, the last for what is beaten; -1 where nothing happens.
    lapses:
        By state.
    block:
        By state: the number of what it does; -1 where nothing can happen, or it is never watched.
    stands:
        By state: whether a match that it watches may be one after all.
    """

    table: NDArray[np.int32]
    lapses: _States
    block: NDArray[np.int32]
    stands: _States


def _watched(lexer: Lexer, lexemes: _States, meter: Meter) -> _Watched:
    count = len(lexer.table)
    table = np.append(lexer.table, np.full((1, lexer.table.shape[1]), -1, np.int32), axis=0)
    table[np.append(lexer.beats, False)[table] & (table >= 0)] = count
    seeds = np.zeros(count + 1, np.bool_)
    of_lexemes = (there for there, here in zip(lexer.ends, lexemes, strict=True) if here)
    seeds[list({watch for there in of_lexemes for _, watch in there if watch >= 0})] = True
    is_watched = reached(seeds, table)
    table[~is_watched] = -1
    lapses = np.append(lexer.lapses, False) & is_watched
    # A match is settled where the text may end, and where no byte leads on.
    stands = reaching(is_watched & (~lapses | (table < 0).any(axis=1)) & (np.arange(count + 1) < count), table)
    beaten = np.arange(count + 1) == count
    matters = reaching(lapses | beaten, table)
    table[~matters[table] & (table >= 0)] = -1
    block = coarsest_partition(table, lapses + 2 * beaten.astype(np.int64), meter)
    return _Watched(table, lapses, np.where(is_watched & matters, block, -1), stands)


@dataclass(frozen=True, eq=False)
class _Way:
    """What states do on the way of lexemes.

    Parameters
    ----------
    table:
        ``int32[states, classes]``: the next state, -1 where nothing can end any more.
    ends:
        By state: the terminals that end there, and the block of `_Watched` or -1.
    block:
        By state: the number of what it does.
    first:
        The first state of each block, ascending.
    watches:
        By state: the block of `_Watched` that it is in and can stand for, or -1.
    """

    table: NDArray[np.int32]
    ends: list[tuple[tuple[int, int], ...]]
    block: NDArray[np.int32]
    first: NDArray[np.int64]
    watches: NDArray[np.int32]


def _way(lexer: Lexer, lexemes: _States, is_start: _States, watched: _Watched, meter: Meter) -> _Way:
    blocks, stands = watched.block.tolist(), watched.stands.tolist()
    ends = [
        tuple((t, blocks[watch] if watch >= 0 else -1) for t, watch in there if watch < 0 or stands[watch])
        if here
        else ()
        for there, here in zip(lexer.ends, lexemes.tolist(), strict=True)
    ]
    table = np.where(lexemes[:, None], lexer.table, -1)
    may_end = reaching(np.array([bool(there) for there in ends]), table)
    table[~may_end[table] & (table >= 0)] = -1
    # Where no lexeme goes on, what is watched may: such a state cannot be both.
    differs = reaching(np.any((table < 0) & (watched.table[:-1] >= 0), axis=1), table)
    watches = np.where(lexemes & ~differs, watched.block[:-1], -1)
    numbers: dict[object, int] = {}
    flags = (each.tolist() for each in (np.array(lexer.beats), np.array(lexer.lapses), is_start, watches))
    kinds = np.array([numbers.setdefault(kind, len(numbers)) for kind in zip(ends, *flags, strict=True)])
    block = coarsest_partition(table, kinds, meter)
    states = np.flatnonzero(lexemes)
    first = states[np.sort(np.unique(block[states], return_index=True)[1])]
    return _Way(table, ends, block, first, watches)


def _together(lexer: Lexer, watched: _Watched, way: _Way) -> Lexer:
    """One lexer out of both: first the states on the way."""
    name = np.full(len(lexer.table), -1, np.int32)
    name[way.block[way.first]] = np.arange(len(way.first))
    rows = way.table[way.first]
    table = np.where(rows >= 0, name[way.block[rows]], -1).astype(np.int32)
    beats = np.array(lexer.beats, np.bool_)[way.first].tolist()
    lapses = np.array(lexer.lapses, np.bool_)[way.first].tolist()
    #: By block of what is watched: a state that stands for it, as the first that is watched, and as one come to.
    watching: dict[int, int] = {}
    come_to: dict[int, int] = {}
    for number, (block, is_beaten) in enumerate(zip(way.watches[way.first].tolist(), beats, strict=True)):
        if block >= 0:
            watching.setdefault(block, number)
            if not is_beaten:
                come_to.setdefault(block, number)
    own: list[int] = []

    def state_of(block: int, known: dict[int, int]) -> int:
        if block >= 0 and block not in known:
            come_to[block] = len(way.first) + len(own)
            watching.setdefault(block, come_to[block])
            own.append(block)
        return known[block] if block >= 0 else -1

    ends = [[(t, state_of(block, watching)) for t, block in way.ends[state]] for state in way.first.tolist()]
    member = dict(zip(watched.block.tolist(), range(len(watched.block)), strict=True))
    more: list[list[int]] = []
    for block in own:  # grows as it goes
        targets = watched.table[member[block]].tolist()
        more.append([state_of(int(watched.block[target]), come_to) if target >= 0 else -1 for target in targets])
        ends.append([])
        beats.append(member[block] == len(lexer.table))
        lapses.append(bool(watched.lapses[member[block]]))
    class_of, table = _with_merged_classes(
        lexer.class_of, np.concatenate([table, np.array(more, np.int32).reshape(-1, table.shape[1])])
    )
    starts = name[way.block[lexer.starts]].tolist()
    return replace(
        lexer, class_of=class_of, table=table, ends=ends, beats=beats, lapses=lapses, starts=starts, cuts={}
    )


def _with_merged_classes(
    class_of: NDArray[np.uint8], table: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The same for bytes that are no longer told apart."""
    numbers: dict[bytes, int] = {}
    name = [numbers.setdefault(column.tobytes(), len(numbers)) for column in table.T]
    first = np.unique(name, return_index=True)[1]
    return np.array(name, np.uint8)[class_of], np.ascontiguousarray(table[:, first])


def reached(seeds: _States, table: NDArray[np.int32]) -> _States:
    """The states to which some lead, and these."""
    tails, classes = np.nonzero(table >= 0)
    heads = table[tails, classes]
    found: _States = kernels.co_accessible(heads, tails.astype(np.int32), seeds.astype(np.uint8)).astype(np.bool_)
    return found
