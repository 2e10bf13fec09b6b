"""Sets of code points as automata over UTF-8 bytes.

A range of code points is a handful of sequences of byte ranges (RFC 3629, section 4; the splitting is Russ
Cox's, as in RE2 and Rust's utf8-ranges). Sequences of a set are folded into the smallest deterministic automaton
by giving equal sets of continuations the same state.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .charset import Ranges

#: One byte range for each byte of a character.
ByteSequence: TypeAlias = tuple[tuple[int, int], ...]

_LENGTH_ENDS = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)


@lru_cache(maxsize=1024)
def utf8_edges(ranges: Ranges) -> NDArray[np.int32]:
    """The automaton of one character out of ``ranges``.

    Returns
    -------
    ``int32[edges, 4]``: source, lowest byte, highest byte, target. State 0 is the start, 1 the end, both with
    no other role; further states are numbered from 2.
    """
    by_suffixes: dict[tuple[ByteSequence, ...], int] = {((),): 1}
    edges: list[tuple[int, int, int, int]] = []
    todo = [(0, tuple(s for low, high in ranges for s in byte_sequences(low, high)))]
    while todo:
        state, sequences = todo.pop()
        # Neighbouring first bytes with the same continuations are one edge.
        suffixes: dict[tuple[int, int], list[ByteSequence]] = {}
        for sequence in sequences:
            suffixes.setdefault(sequence[0], []).append(sequence[1:])
        previous: tuple[int, int, int] | None = None
        for (low, high), tails in suffixes.items():
            key = tuple(tails)
            target = by_suffixes.get(key)
            if target is None:
                target = by_suffixes[key] = len(by_suffixes) + 1
                todo.append((target, key))
            if previous and previous[1] + 1 == low and previous[2] == target:
                edges[-1] = (state, previous[0], high, target)
                previous = (previous[0], high, target)
            else:
                edges.append((state, low, high, target))
                previous = (low, high, target)
    return np.array(edges, np.int32).reshape(-1, 4)


def byte_sequences(low: int, high: int) -> list[ByteSequence]:
    """The byte sequences, in order, whose union is the UTF-8 of the code points ``low..high``."""
    out: list[ByteSequence] = []
    todo = [(low, high)]
    while todo:
        low, high = todo.pop()
        cut = _cut(low, high)
        if cut is not None:
            todo.append((cut + 1, high))
            todo.append((low, cut))
            continue
        out.append(tuple(zip(chr(low).encode(), chr(high).encode(), strict=True)))
    return out


def _cut(low: int, high: int) -> int | None:
    """Where to split a range that is not a single sequence yet: the end of its first part."""
    for end in _LENGTH_ENDS:
        if low <= end < high:
            return end
    if high <= 0x7F:
        return None
    for bits in (6, 12, 18):
        mask = (1 << bits) - 1
        if low & ~mask != high & ~mask:
            if low & mask:
                return low | mask
            if high & mask != mask:
                return (high & ~mask) - 1
    return None
