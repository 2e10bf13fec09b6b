"""`Head`: where kernels find tables, as an array of their addresses and lengths (`structgen.kernels.store.layout`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.locks import TABLES
from ...system.sizes import COMMON
from ...system.types import Array, DType


def longer(length: int) -> int:
    """The length of a table that is to replace one of so many items."""
    return 4 * length if length <= kernels.FEW_ITEMS else 2 * length


class FirstTables:
    """The words and the tables that heads of a kind begin with, in one block, of which each head has a copy.

    Parameters
    ----------
    size:
        How many words there are.
    tables:
        What is copied, by place.
    """

    def __init__(self, size: int, tables: Mapping[int, Array]) -> None:
        COMMON.append(self)
        begins = size + np.cumsum([0, *[-(-table.nbytes // 8) for table in tables.values()]])
        self.size = size
        self.block = np.zeros(begins[-1], np.int64)
        #: 1 in words that are addresses, which are told from the block's.
        self.are_addresses = np.zeros(size, np.int64)
        self._views: dict[int, tuple[tuple[int, ...], DType, int]] = {}
        for (place, table), begin in zip(tables.items(), (8 * begins).tolist(), strict=False):
            self._views[place] = table.shape, table.dtype, begin
            self.block[place : place + 2] = begin, len(table)
            self.are_addresses[place] = 1
            self.view(self.block, place)[...] = table

    def view(self, block: NDArray[np.int64], place: int) -> Array:
        """A table in a copy of the block. Raises `KeyError` where there is none."""
        shape, dtype, begin = self._views[place]
        found: Array = np.ndarray(shape, dtype, block, begin)
        return found


@cache
def _no_tables(size: int) -> FirstTables:
    return FirstTables(size, {})


class Head(dict[int, Array]):
    """Tables by their places, those of the first block once somebody asks for them. It keeps each that it has.

    Parameters
    ----------
    first:
        The words and the tables that are there to begin with, or only how many words.
    """

    __slots__ = ("_block", "_first", "_moving", "words")

    def __init__(self, first: FirstTables | int) -> None:
        self._first = _no_tables(first) if isinstance(first, int) else first
        self._block = self._first.block.copy()
        self._moving = _NOTHING
        #: ``int64[*]``, for kernels.
        self.words: NDArray[np.int64] = self._block[: self._first.size]
        self.words += self._first.are_addresses * kernels.address(self._block)

    def __missing__(self, place: int) -> Array:
        found = self[place] = self._first.view(self._block, place)
        return found

    def lend(self, place: int, *arrays: Array) -> None:
        """`put` for arrays that somebody else keeps."""
        words = [word for array in arrays for word in (kernels.address(array), len(array))]
        with TABLES:
            self.words[place : place + len(words)] = words

    def put(self, place: int, *arrays: Array) -> None:
        """Have contiguous arrays at a place and those behind it, all at once: no kernel runs between two of them."""
        before = [self.get(place + 2 * i) for i in range(len(arrays))]
        self.update({place + 2 * i: array for i, array in enumerate(arrays)})
        self.lend(place, *arrays)
        del before

    def lengthen(self, lengths: NDArray[np.int64]) -> None:
        """Have some tables of a store's head longer, ``int64[GROWING_TABLES]``; 0 for those that stay."""
        # An interrupt may come behind each call, so whatever kernels may have moved is kept from before that on.
        self.update({place: each for place, each in self._moving.items() if self.words[place] == kernels.address(each)})
        block, begin, moving = np.empty(kernels.move_tables(self.words, lengths, _NO_WORDS, 0), np.int64), 0, {}
        for (place, dtype, columns), length in zip(_GROWING, lengths.tolist(), strict=True):
            if length:
                moving[place] = np.ndarray((length, columns) if columns else length, dtype, block, begin)
                begin += -(-moving[place].nbytes // 8) * 8
        self._moving = moving
        kernels.move_tables(self.words, lengths, block, kernels.address(block))
        self.update(moving)  # not sooner: the old ones are read while nobody holds the lock
        self._moving = _NOTHING

    def lengthen_tokens(self) -> None:
        """Have room for more tokens of which it is known where they lead, in a store's head."""
        lengths = np.zeros(kernels.GROWING_TABLES, np.int64)
        lengths[[kernels.T_TOKENS, kernels.T_TARGETS]] = longer(int(self.words[kernels.S_TOKENS + 1]))
        self.lengthen(lengths)


_NO_WORDS, _NOTHING = np.empty(0, np.int64), dict[int, Array]()
_INT64, _INT32 = np.dtype(np.int64), np.dtype(np.int32)

#: Tables of stores that grow, by the numbers that kernels have for them: place, dtype, and columns.
_GROWING: tuple[tuple[int, DType, int], ...] = (
    (kernels.S_CELLS, _INT64, kernels.CELL), (kernels.S_CELL_SLOTS, _INT32, 0), (kernels.S_THREADS, _INT64, 3),
    (kernels.S_CONFIGS, _INT64, kernels.CONFIG), (kernels.S_CONFIG_SLOTS, _INT32, 0), (kernels.S_TOKENS, _INT64, 0),
    (kernels.S_TARGETS, _INT32, 0), (kernels.S_UNIONS, _INT32, kernels.UNION), (kernels.S_UNION_ROWS, _INT32, 0),
    (kernels.S_UNION_SLOTS, _INT32, 0), (kernels.S_DENSE, _INT64, 0), (kernels.S_REFUSED, _INT64, 0),
)  # fmt: skip
