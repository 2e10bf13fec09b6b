"""The moves of an automaton with a stack as a graph, in arrays: for what is asked of all states at once.

Its nodes are the states, and behind them the groups of moves. A state leads to the targets of its edges, and to the
state that it is like; a group to where its moves lead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ..automaton.tables import DEAD, MARK, SET
from .tables import PushdownTables

#: Bytes up to which it is known which states agree: few tokens are longer.
_LONGEST = 32

#: What the hash of a row is made with, powers of an odd number: any would do, for rows of equal hashes are compared.
_FACTORS = np.cumprod(np.full(257, 0x9E3779B97F4A7C15, np.uint64), dtype=np.uint64)


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


def agreeing(tables: PushdownTables, meter: Meter) -> NDArray[np.int32]:
    """Which states do the same for so many bytes: equal numbers in a row, ``int32[bytes, states]``.

    That is whatever lies below, and with equal counts and sets. Moore's partition refinement (1956), a row a round:
    any states do the same for no byte; and for one more than their targets by each byte, if these are reached by the
    same operation on counters and sets, with the same states pushed below them. A group of several moves is like
    itself alone. No state is open. Raises `BudgetExceededError`.
    """
    doing, states = "comparing states", tables.states
    table, _ = tables.dense()
    width = table.shape[1]
    meter.check_memory(states * (4 * _LONGEST + 16 * width), doing)
    kinds, targets = _operations(tables)
    own = np.stack([tables.returns.astype(np.int32), tables.live.astype(np.int32)], axis=1)
    found = [np.zeros(states, np.int32)]
    many = 0
    while len(found) < _LONGEST:
        meter.check_time(doing)
        nodes = np.append(found[-1], np.int32(-1))  # the last is that of `DEAD`
        of_groups = _numbered(np.column_stack([kinds, nodes[targets]]))
        if of_groups is None:
            break
        nodes = np.concatenate([found[-1], states + of_groups, nodes[-1:]]).astype(np.int32)
        numbers = _numbered(np.column_stack([own, nodes[table]]))
        if numbers is None:
            break
        found.append(numbers)
        if int(numbers.max(initial=-1)) + 1 == many:  # and so for any number of bytes
            found += [numbers] * (_LONGEST - len(found))
        many = int(numbers.max(initial=-1)) + 1
    return np.stack(found)


def _operations(tables: PushdownTables) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """What the move of each group does, as a number, without the states that it goes on in: ``int32[groups, 3]``."""
    numbers: dict[object, int] = {}
    kinds, targets = [], []
    for moves in tables.all_moves():
        kind: object = moves
        goes_on = (DEAD, DEAD, DEAD)
        if len(moves) == 1:
            ((record, sequence),) = moves
            if sequence:
                kind, goes_on = (record, sequence[:-1]), (sequence[-1], DEAD, DEAD)
            elif record is not None:
                operation, on, low, mid, high = record
                if operation in (SET, MARK):
                    kind, goes_on = (operation, on, mid if operation == MARK else DEAD), (low, DEAD, DEAD)
                else:
                    kind, goes_on = (operation, on), (low, mid, high)
        kinds.append(numbers.setdefault(kind, len(numbers)))
        targets.append(goes_on)
    return np.array(kinds, np.int32), np.array(targets, np.int32).reshape(-1, 3)


def _numbered(rows: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """A number for each row, equal ones for equal rows; None where different ones have the same hash."""
    factors = _FACTORS[np.arange(rows.shape[1]) % len(_FACTORS)]
    hashes = (rows.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    return which.astype(np.int32) if np.array_equal(rows, rows[first[which]]) else None
