"""A finite set of texts as the automaton of its UTF-8 bytes.

The texts are sorted, and each adds to the trie what it doesn't share with the one before; then the trie's suffixes
are shared. Both are linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from .dfa import Dfa

_NO_RECORDS = np.zeros((0, 5), np.int32)
_NO_LOOPS = np.zeros((0, 2), np.int64)
_DEAD = -1
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
    tail, byte, ends = trie(words, meter)
    if not ends:
        return nothing()
    states = _shared_suffixes(tail, byte, ends, meter)
    meter.check_states(len(states), _DOING, _REMEDY)
    classes, first = _classes(np.array(byte, np.int64))
    meter.check_memory(4 * len(states) * len(first), _DOING)
    table = np.full((len(states), len(first)), _DEAD, np.int32)
    last = len(states) - 1
    moves = [(last - state, move & 0xFF, last - (move >> 8)) for state, (_, *to) in enumerate(states) for move in to]
    if moves:
        source, label, target = np.array(moves, np.int64).T
        table[source, classes[label]] = target
    return plain_dfa(table, classes, np.array([state[0] for state in reversed(states)], np.uint8))


def _shared_suffixes(tail: list[int], byte: list[int], ends: list[int], meter: Meter) -> list[tuple[int, ...]]:
    """The states of the minimal automaton, the start last: each whether it accepts, and its moves.

    A move is the state that it leads to, times 256, plus the byte. (Revuz 1992: states of a trie are equal if their
    moves are, once the targets are settled.)
    """
    accepting = bytearray(len(tail) + 1)
    for end in ends:
        accepting[end] = 1
    known: dict[tuple[int, ...], int] = {}
    moves: dict[int, tuple[int, ...]] = {}
    for state in meter.each(range(len(tail), 0, -1), _DOING):
        key = (accepting[state], *moves.pop(state, ()))
        number = known.setdefault(key, len(known))
        above = tail[state - 1]
        moves[above] = (*moves.get(above, ()), number << 8 | byte[state - 1])
    start = (accepting[0], *moves.pop(0, ()))
    known[start] = len(known)
    return list(known)


def _classes(byte: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """A class for each used byte, and for each run of others; the first byte of each class."""
    cuts = np.zeros(257, bool)
    cuts[byte] = cuts[byte + 1] = True
    cuts[0] = False
    return np.cumsum(cuts[:256], dtype=np.int32), np.flatnonzero(np.r_[True, cuts[1:256]])


def trie(words: Iterable[str], meter: Meter) -> tuple[list[int], list[int], list[int]]:
    """The trie: edge ``k`` leads from state ``tail[k]`` on ``byte[k]`` to state ``k + 1``; and where texts end."""
    texts = sorted({word.encode() for word in words})
    path: list[int] = [0]
    tail: list[int] = []
    pieces: list[bytes] = []
    ends: list[int] = []
    before = b""
    for text in texts:
        # A trie's state costs a fraction of what the automaton's does, and many of them will be shared.
        meter.check_states((len(tail) + len(text)) // 4, _DOING, _REMEDY)
        shared = _shared(before, text)
        del path[shared + 1 :]
        new = range(len(tail) + 1, len(tail) + 1 + len(text) - shared)
        if new:
            tail.append(path[-1])
            tail.extend(new[:-1])
        path.extend(new)
        pieces.append(text[shared:])
        ends.append(path[-1])
        before = text
    return tail, list(b"".join(pieces)), ends


def _shared(a: bytes, b: bytes) -> int:
    """Length of the longest common prefix."""
    size = min(len(a), len(b))
    if a[:size] == b[:size]:
        return size
    low, high = 0, size  # equal up to low, different by high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
