"""The regex front end: a `Regex` in, the `Tables` of its byte automaton out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...budget import Meter
from ...definitions import Regex
from ...runtime.tables import DEAD, Tables
from ..automata.dfa import LOOP, OPERATION, Dfa
from .lower import regex_to_dfa
from .parser import parse

#: Rows of the transition table that are turned into ranges at a time, to bound the memory in flight.
_CHUNK = 4096


def compile_regex(regex: Regex, meter: Meter) -> Tables:
    """Parse, build, determinise, minimise. Raises the errors of `parse` and `regex_to_dfa`."""
    tree = parse(regex.pattern, regex.flags, depth=meter.budget.depth)
    return to_tables(regex_to_dfa(tree, meter))


def to_tables(dfa: Dfa) -> Tables:
    """The converter from the compiler's form of an automaton to the one that is stored and run."""
    starts, lows, highs, entries = [np.zeros(1, np.int64)], [], [], []
    for first in range(0, dfa.states, _CHUNK):
        row = dfa.table[first : first + _CHUNK][:, dfa.classes]
        begins = np.ones(row.shape, np.bool_)
        begins[:, 1:] = row[:, 1:] != row[:, :-1]
        state, low = np.nonzero(begins)
        entry = row[state, low]
        high = np.append(low[1:] - 1, 255)
        high[np.append(state[1:] != state[:-1], True)] = 255
        live = entry != kernels.DEAD
        lows.append(low[live])
        highs.append(high[live])
        entries.append(entry[live])
        starts.append(starts[-1][-1] + np.cumsum(np.bincount(state[live], minlength=len(row))))
    entry = np.concatenate(entries)
    target = np.where(entry >= 0, entry, dfa.states - 2 - entry)
    return Tables(
        edge_start=np.concatenate(starts).astype(np.uint32),
        edge_low=np.concatenate(lows).astype(np.uint8),
        edge_high=np.concatenate(highs).astype(np.uint8),
        edge_target=target.astype(np.uint32),
        accepting=dfa.accepting,
        records=dfa.records.astype(np.int32),
        loops=dfa.loops.astype(np.int32) if len(dfa.records) else np.zeros((0, 2), np.int32),
        live=_live_loops(dfa),
        start=dfa.start,
    )


def _live_loops(dfa: Dfa) -> NDArray[np.int32]:
    """The loop whose count each state depends on: one that it increments before anything resets it."""
    live = np.full(dfa.states, DEAD, np.int32)
    if not len(dfa.records):
        return live
    plain = np.where(dfa.table >= 0, dfa.table, kernels.DEAD).astype(np.int32).reshape(-1)
    increments = np.append(dfa.records[:, OPERATION] == kernels.INC, False)
    for loop in range(len(dfa.loops)):
        here = increments & np.append(dfa.records[:, LOOP] == loop, False)
        counts = here[np.where(dfa.table < kernels.DEAD, -2 - dfa.table, -1)].any(axis=1)
        reaches = kernels.co_accessible(plain, counts.astype(np.uint8), dfa.n_classes)
        live[reaches.astype(bool)] = loop
    return live
