"""The moves of an automaton with a stack as a graph, in arrays: for what is asked of all states at once.

Its nodes are the states, and behind them the groups of moves. A state leads to the targets of its edges, and to the
state that it is like; a group to where its moves lead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tables import PushdownTables


class Flow(NamedTuple):
    """The graph's edges from states, and what the moves of groups have.

    Parameters
    ----------
    tails, heads:
        ``int64[edges]``: from states, each to a node.
    groups, records:
        ``int64[moves]``: the group's node, and the record or -1.
    pushed, by, first:
        ``int64[*]``, ``int64[*]``, ``bool[*]``: the states of all sequences, each with its move, and whether it is
        the first of its sequence.
    """

    tails: NDArray[np.int64]
    heads: NDArray[np.int64]
    groups: NDArray[np.int64]
    records: NDArray[np.int64]
    pushed: NDArray[np.int64]
    by: NDArray[np.int64]
    first: NDArray[np.bool_]


def flow_of(tables: PushdownTables) -> Flow:
    """The graph of an automaton."""
    targets, like = tables.edge_target.astype(np.int64) - 1, tables.like.astype(np.int64) - 1
    sources = np.repeat(np.arange(tables.states), np.diff(tables.edge_start.astype(np.int64)))
    alike = np.flatnonzero(like >= 0)
    starts, groups = tables.move_start.astype(np.int64), tables.group_start.astype(np.int64)
    by = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return Flow(
        np.concatenate([sources[targets >= 0], alike]),
        np.concatenate([targets[targets >= 0], like[alike]]),
        tables.states + np.repeat(np.arange(len(groups) - 1), np.diff(groups)),
        tables.move_record.astype(np.int64) - 1,
        tables.sequence.astype(np.int64),
        by,
        np.arange(len(by)) == starts[by],
    )


def all_edges(tables: PushdownTables) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges on bytes and on tokens together: where those of each state begin, and their targets as they are kept.

    An exhausted state is a target of the state that it takes the place of.
    """
    starts, targets = tables.edge_start.astype(np.int64), tables.edge_target.astype(np.int64)
    if tables.tokens is None:
        return starts, targets
    tails, heads = tables.tokens.moves()
    sources = np.concatenate([np.repeat(np.arange(tables.states), np.diff(starts)), tails])
    order = np.argsort(sources, kind="stable")
    begins = np.searchsorted(sources[order], np.arange(tables.states + 1))
    return begins, np.concatenate([targets, heads + 1])[order]
