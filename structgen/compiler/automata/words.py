"""A finite set of texts as the automaton of its UTF-8 bytes.

The texts are sorted, and each adds to the trie what it doesn't share with the one before; then the trie's suffixes
are shared. Both are linear in the text (`structgen.kernels.words`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...budget import Meter
from .dfa import Dfa

_NO_RECORDS = np.zeros((0, 5), np.int32)
_NO_LOOPS = np.zeros((0, 2), np.int64)
_DEAD = -1

#: What a letter of a trie takes, and a state of it while its suffixes are shared; so many of these at a time.
_BYTES_OF_LETTER, _BYTES_OF_NODE, _TOGETHER = 7, 48, 1 << 20

_DOING = "building the automaton of an enumeration"
_REMEDY = "List fewer or shorter values, or describe them by a pattern"


def nothing() -> Dfa:
    """No text at all."""
    return plain_dfa(np.zeros((0, 1), np.int32), np.zeros(256, np.int32), np.zeros(0, np.uint8))


def plain_dfa(table: NDArray[np.int32], classes: NDArray[np.int32], accepting: NDArray[np.uint8]) -> Dfa:
    """An automaton without counters whose start is its first state."""
    return Dfa(np.ascontiguousarray(table), classes, accepting, _NO_RECORDS, _NO_LOOPS, 0)


def words_dfa(words: Iterable[str], meter: Meter) -> Dfa:
    """The minimal automaton of the texts. Raises `BudgetExceededError`."""
    tail, labels, ends = trie(words, meter)
    if not len(ends):
        return nothing()
    accepting, source, byte, target = _shared_suffixes(tail, labels, ends, meter)
    states = len(accepting)
    meter.check_states(states, _DOING, _REMEDY)
    classes, first = _classes(labels)
    meter.check_memory(4 * states * len(first), _DOING)
    table = np.full((states, len(first)), _DEAD, np.int32)
    table[source, classes[byte]] = target
    return plain_dfa(table, classes, accepting)


def _shared_suffixes(
    tail: NDArray[np.int32], labels: NDArray[np.uint8], ends: NDArray[np.int32], meter: Meter
) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]:
    """The minimal automaton: by state, the start first, whether it accepts; and state, byte and target of its moves."""
    nodes = len(tail) + 1
    meter.check_memory(_BYTES_OF_NODE * nodes, _DOING)
    is_end, below = np.zeros(nodes, np.uint8), np.full((2, nodes), -1, np.int32)
    is_end[ends] = 1
    numbers, begins, targets = np.empty(nodes, np.int32), np.zeros(nodes + 1, np.int32), np.empty(nodes, np.int32)
    accepting, moves = np.empty(nodes, np.uint8), np.empty(nodes, np.uint8)
    slots = np.full(2 << nodes.bit_length(), -1, np.int32)
    states = 0
    for begin in meter.each(range(-(-nodes // _TOGETHER) - 1, -1, -1), _DOING, every=1):
        states = kernels.share_suffixes(
            tail, labels, is_end, begin * _TOGETHER, min(nodes, (begin + 1) * _TOGETHER), states, *below, numbers,
            accepting, begins, moves, targets, slots,
        )  # fmt: skip
    last, number = states - 1, begins[states]
    source = last - np.repeat(np.arange(states, dtype=np.int32), np.diff(begins[: states + 1]))
    return accepting[last::-1].copy(), source, moves[:number], last - targets[:number]


def _classes(labels: NDArray[np.uint8]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """A class for each used byte, and for each run of others; the first byte of each class."""
    cuts = cuts_around(labels)
    return np.cumsum(cuts[:256], dtype=np.int32), np.flatnonzero(np.r_[True, cuts[1:256]])


def cuts_around(labels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """``bool[257]``: before which bytes classes begin where some bytes have one of their own; not the first."""
    cuts = np.zeros(257, bool)
    cuts[labels] = True
    cuts[1:] |= cuts[:-1]
    cuts[0] = False
    return cuts


def trie(words: Iterable[str], meter: Meter) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]:
    """The trie: edge ``k`` leads from state ``tail[k]`` on ``labels[k]`` to state ``k + 1``; and where texts end.

    ``int32[edges]``, ``uint8[edges]``, ``int32[texts]``. Raises `BudgetExceededError`.
    """
    texts = sorted({word.encode() for word in words})
    letters = b"".join(texts)
    meter.check_memory(_BYTES_OF_LETTER * len(letters), _DOING)
    sizes = [*map(len, texts)]
    begins = np.array([0, *accumulate(sizes)])
    tail, labels = np.empty(len(letters), np.int32), np.empty(len(letters), np.uint8)
    path, ends = np.empty(1 + max(sizes, default=0), np.int32), np.empty(len(texts), np.int32)
    edges = kernels.word_trie(np.frombuffer(letters, np.uint8), begins, path, tail, labels, ends)
    # A trie's state costs a fraction of what the automaton's does, and many of them will be shared.
    meter.check_states(edges // 4, _DOING, _REMEDY)
    return tail[:edges], labels[:edges], ends
