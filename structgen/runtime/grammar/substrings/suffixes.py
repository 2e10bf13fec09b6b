"""The suffixes of a text that begin with one of its units, in order: a sparse suffix array.

That is the array of Manber & Myers (1993, Suffix arrays: a new method for on-line string searches) without what
begins within a unit. It is made by doubling: what is in order by so many bytes is put in order by twice as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Bytes that are compared first, as one number to the base of all bytes and the end of the text.
_FIRST, _BASE = 7, 257

#: Bytes that an order takes, by character of the text, while it is made.
BYTES_WHILE_SORTING = 64


class Suffixes(NamedTuple):
    """A text, and what begins in it.

    Parameters
    ----------
    text:
        ``uint8[n]``, its bytes.
    order:
        ``int32[units]``: where units begin, by what stands from there on to the end of the text.
    is_end:
        ``uint8[n + 1]``: whether a unit ends before this byte, or begins with it.
    """

    text: NDArray[np.uint8]
    order: NDArray[np.int32]
    is_end: NDArray[np.uint8]


def suffixes_of(units: Sequence[str], look_at: Callable[[], None]) -> Suffixes:
    """The suffixes of some units in a row. ``look_at`` is called between the steps, each of which sorts once."""
    spelled = [unit.encode("utf-8", "surrogatepass") for unit in units if unit]
    look_at()
    text = np.frombuffer(b"".join(spelled), np.uint8).copy()
    is_end = np.zeros(len(text) + 1, np.uint8)
    is_end[np.cumsum([0, *map(len, spelled)])] = 1
    order = _in_order(text, look_at)
    return Suffixes(text, order[is_end[order] > 0].astype(np.int32), is_end)


def _in_order(text: NDArray[np.uint8], look_at: Callable[[], None]) -> NDArray[np.int64]:
    """All suffixes of a text in order, one that is the beginning of another before it."""
    padded = np.zeros(len(text) + _FIRST, np.int64)
    padded[: len(text)] = text
    padded[: len(text)] += 1
    key = np.zeros(len(text), np.int64)
    for at in range(_FIRST):
        key = key * _BASE + padded[at : at + len(text)]
    known = _FIRST
    while True:
        look_at()
        order = np.argsort(key, kind="stable")
        key = key[order]
        ranked = np.append(0, np.cumsum(key[1:] != key[:-1]))[: len(text)]
        if not len(text) or ranked[-1] == len(text) - 1:
            return order
        rank = np.empty(len(text), np.int64)
        rank[order] = ranked
        key = rank * (len(text) + 1)
        key[:-known] += rank[known:] + 1
        known *= 2
