"""Finite sets of words as automata: their trie, and the minimal automaton that it becomes (Revuz 1992)."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .signatures import Out, int32, int64, uint8


@kernel
def word_trie(
    texts: uint8[::1], begins: int64[::1], path: Out[int32[::1]], tail: Out[int32[::1]], labels: Out[uint8[::1]],
    ends: Out[int32[::1]],
) -> int64:  # fmt: skip
    """The trie of words that are sorted and differ: edge ``k`` leads from state ``tail[k]`` to state ``k + 1``.

    Parameters
    ----------
    texts, begins:
        ``uint8[letters]``, ``int64[words + 1]``: one word after the other, and where each begins.
    path:
        ``int32[1 + longest]``: scratch.
    tail, labels:
        ``int32[letters]``, ``uint8[letters]``, out: the state that an edge leaves, and its byte.
    ends:
        ``int32[words]``, out: the state where each word ends.

    Returns
    -------
    The number of edges.
    """
    edges = 0
    path[0] = 0
    for word in range(len(begins) - 1):
        begin, size = begins[word], begins[word + 1] - begins[word]
        shared = 0
        if word:
            before = begins[word - 1]
            most = min(size, begin - before)
            while shared < most and texts[before + shared] == texts[begin + shared]:
                shared += 1
        for depth in range(shared, size):
            tail[edges] = path[depth]
            labels[edges] = texts[begin + depth]
            edges += 1
            path[depth + 1] = edges
        ends[word] = path[size]
    return edges


@helper
def _same_moves(begins, labels, targets, one, other):
    """Whether two states have the same moves."""
    number = begins[one + 1] - begins[one]
    same = number == begins[other + 1] - begins[other]
    for k in range(number if same else 0):
        a, b = begins[one] + k, begins[other] + k
        same = same and labels[a] == labels[b] and targets[a] == targets[b]
    return same


@kernel
def share_suffixes(
    tail: int32[::1], labels: uint8[::1], is_end: uint8[::1], first: int64, beyond: int64, states: int64,
    below: Out[int32[::1]], beside: Out[int32[::1]], numbers: Out[int32[::1]], accepting: Out[uint8[::1]],
    begins: Out[int32[::1]], moves: Out[uint8[::1]], targets: Out[int32[::1]], slots: Out[int32[::1]],
) -> int64:  # fmt: skip
    """The states of the minimal automaton that states of a trie become, the last ones first.

    Two are the same if both end words or none does, and their moves are the same, once the targets are settled.

    Parameters
    ----------
    tail, labels, is_end:
        The trie, as of `word_trie`; by state, whether a word ends there.
    first, beyond:
        From the first state on, but not beyond. Those from there on have been looked at.
    states:
        How many states there are already.
    below, beside:
        ``int32[states of the trie]``: the first edge of each state, and the next one beside each edge, by the state
        that it leads to; -1 for none. -1 throughout, to begin with.
    numbers:
        ``int32[states of the trie]``: what each becomes.
    accepting, begins, moves, targets:
        ``uint8[*]``, ``int32[*]``, ``uint8[*]``, ``int32[*]``: by new state, whether it accepts, and where its moves
        begin; by move, the byte and the new state. ``begins[0]`` is 0.
    slots:
        ``int32[2 ** k]``: more of them than states. -1 throughout, to begin with.

    Returns
    -------
    How many states there are.
    """
    mask = len(slots) - 1
    for state in range(beyond - 1, first - 1, -1):
        end = begins[states]
        h = np.uint64(is_end[state] + 1)
        child = below[state]
        while child >= 0:
            moves[end] = labels[child - 1]
            targets[end] = numbers[child]
            h = (h ^ np.uint64(np.int64(targets[end]) << 8 | np.int64(moves[end]))) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
            end += 1
            child = beside[child]
        accepting[states] = is_end[state]
        begins[states + 1] = end
        slot = np.int64(h >> np.uint64(16)) & mask
        while slots[slot] >= 0 and not (
            accepting[slots[slot]] == is_end[state] and _same_moves(begins, moves, targets, slots[slot], states)
        ):
            slot = slot + 1 & mask
        if slots[slot] < 0:
            slots[slot] = states
            states += 1
        numbers[state] = slots[slot]
        if state:
            above = tail[state - 1]
            beside[state] = below[above]
            below[above] = state
    return states
