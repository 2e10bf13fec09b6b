"""Lexer states that watch a match: which of them can let it stand, and which of them do the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def may_stand(
    table: NDArray[np.int32], beats: NDArray[np.bool_], lapses: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """By state: whether a match that it watches can be one after all, or is undone however the text goes on."""
    found = ~lapses | (table < 0).any(axis=1)
    while True:
        more = found | (found[table] & ~beats[table] & (table >= 0)).any(axis=1)
        if (more == found).all():
            return found
        found = more


def simplest(
    watching: set[int], table: NDArray[np.int32], beats: NDArray[np.bool_], lapses: NDArray[np.bool_]
) -> dict[int, int]:
    """By state that watches: the first one that does just as it does, -1 where there is nothing to watch; -1 for -1.

    Which lexeme it was makes no difference to what may follow; what it could have become does (Moore 1956).
    """
    rows = table.tolist()
    states = sorted(watching)
    number = {state: i for i, state in enumerate(states)}
    for state in states:  # grows as it goes
        for target in {*rows[state]}:
            if target >= 0 and not beats[target] and target not in number:
                number[target] = len(states)
                states.append(target)
    # The last one is dead and stays so. What beats is told apart, wherever it leads.
    dead = len(states)
    names = np.array([*(number.get(state, -1) for state in range(len(table))), dead])
    after = np.concatenate([names[table[states]], np.full((1, table.shape[1]), dead)])
    after[:-1][(table[states] >= 0) & beats[table[states]]] = -1
    block = np.append(lapses[states], False).astype(np.int32)
    while True:
        found: dict[bytes, int] = {}
        keys = np.column_stack([block, np.where(after < 0, -1, block[after])]).astype(np.int32)
        finer = np.array([found.setdefault(key.tobytes(), len(found)) for key in keys], np.int32)
        if len(found) == len(np.unique(block)):
            break
        block = finer
    first = {int(block[dead]): -1}
    return {state: first.setdefault(int(block[number[state]]), state) for state in sorted(watching)} | {-1: -1}
