"""Sets of small numbers in the forms that are used side by side: integers, rows of ``uint32`` words, of booleans."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...system.types import Array


def words_of(sets: list[int], members: int) -> NDArray[np.uint32]:
    """Sets of integers below ``members`` as ``uint32[sets, words]``."""
    words = -(-members // 32)
    data = b"".join(each.to_bytes(4 * words, "little") for each in sets)
    return np.frombuffer(data, "<u4").reshape(len(sets), words).astype(np.uint32)


def sets_of(words: NDArray[np.uint32]) -> list[int]:
    """The inverse of `words_of`."""
    width = 4 * words.shape[1]
    data = words.astype("<u4").tobytes()
    return [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(len(words))]


def set_at(words: NDArray[np.uint32], row: int) -> int:
    """One of `sets_of`."""
    return int.from_bytes(words[row].astype("<u4").tobytes(), "little")


def bits_of(words: NDArray[np.uint32], members: int) -> NDArray[np.bool_]:
    """Words as ``bool[sets, members]``; numbers from ``members`` on are left out."""
    data = np.ascontiguousarray(words, "<u4").view(np.uint8)
    return np.unpackbits(data, axis=1, count=members, bitorder="little").view(np.bool_)


def from_bits(bits: Array) -> NDArray[np.uint32]:
    """The inverse of `bits_of`."""
    data = np.packbits(bits, axis=1, bitorder="little")
    data = np.pad(data, [(0, 0), (0, -data.shape[1] % 4)])
    return data.view("<u4").astype(np.uint32)
