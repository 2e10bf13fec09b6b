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

def compile_regex(regex: Regex, meter: Meter) -> Tables:
    """Parse, build, determinise, minimise. Raises the errors of `parse` and `regex_to_dfa`."""
    tree = parse(regex.pattern, regex.flags, depth=meter.budget.depth)
    return to_tables(regex_to_dfa(tree, meter))


def to_tables(dfa: Dfa) -> Tables:
    """The converter from the compiler's form of an automaton to the one that is stored and run."""
    state, low, high, entry = dfa.edges()
    return Tables(
        edge_start=np.searchsorted(state, np.arange(dfa.states + 1)).astype(np.uint32),
        edge_low=low.astype(np.uint8),
        edge_high=high.astype(np.uint8),
        edge_target=np.where(entry >= 0, entry, dfa.states - 2 - entry).astype(np.uint32),
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
    tails, classes = np.nonzero(dfa.table >= 0)
    heads = dfa.table[tails, classes]
    increments = np.append(dfa.records[:, OPERATION] == kernels.INC, False)
    for loop in range(len(dfa.loops)):
        here = increments & np.append(dfa.records[:, LOOP] == loop, False)
        counts = here[np.where(dfa.table < kernels.DEAD, -2 - dfa.table, -1)].any(axis=1)
        reaches = kernels.co_accessible(tails.astype(np.int32), heads, counts.astype(np.uint8))
        live[reaches.astype(bool)] = loop
    return live
