"""The parser and its stacks as `structgen.kernels.walk_stack_masks` reads them.

The kernel remembers stacks, what they accept and where terminals lead to, from mask to mask: texts come to the same
stacks again and again, and new ones mostly differ from known ones in a state or two. All of that can be forgotten at
any time.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .indentation import LevelTable
from .tables import GrammarTables

#: Bytes of `KernelGss.hits` at most, where there are many sets.
_MOST_HITS = 1 << 23

_Array: TypeAlias = "NDArray[np.int32] | NDArray[np.uint32] | NDArray[np.uint8] | NDArray[np.int64]"


class ParserTables:
    """The parser's actions, a row for each state."""

    def __init__(self, tables: GrammarTables) -> None:
        states, words = len(tables.context), len(tables.ignored)
        shift = np.full((states, tables.end + 1), -1, np.int32)
        shift[tables.shift[:, 0], tables.shift[:, 1]] = tables.shift[:, 2]
        symbols, number = np.unique(tables.goto[:, 1], return_inverse=True)
        goto = np.full((states, len(symbols) + 1), -1, np.int32)  # the last one is for what nothing goes to
        goto[tables.goto[:, 0], number.reshape(-1)] = tables.goto[:, 2]
        origin = np.searchsorted(symbols, tables.reduce[:, 2])
        known = np.append(symbols, -1)[origin] == tables.reduce[:, 2]
        reduce = np.stack([tables.reduce[:, 1], np.where(known, origin, len(symbols))], axis=1).astype(np.int32)
        starts = np.searchsorted(tables.reduce[:, 0], np.arange(states + 1)).astype(np.int32)
        self.levels = LevelTable(tables.layout, tables.end, words)
        self._actions = (
            shift, goto, starts, reduce, tables.before, tables.shifted, tables.certain, tables.context,
            tables.ignored,
        )  # fmt: skip

    def arrays(self) -> tuple[_Array, ...]:
        """The kernel's arguments, from ``shift`` to ``levels``."""
        levels = self.levels
        return (
            *self._actions, levels.lines, levels.brackets, levels.keep, levels.given, levels.moves, levels.levels,
        )  # fmt: skip


class KernelGss:
    """What the kernel remembers, and its scratch.

    Parameters
    ----------
    words:
        Words of a set of terminals.
    cells:
        How many cells there is room for, a power of 2.
    sets:
        How many sets groups have.
    """

    def __init__(self, words: int, cells: int, sets: int) -> None:
        from ... import kernels

        self.size, self.width = cells, max(64, 2 * sets)
        accepts, shifts = max(256, cells // 16), 2 * cells
        offers = min(accepts, max(256, _MOST_HITS // self.width))
        self.cells = np.zeros((cells, 5), np.int32)
        self._cell_slots = np.zeros(2 * cells, np.int32)
        self._shifts = np.zeros((shifts, 5), np.int32)
        self._shift_slots = np.zeros(2 * shifts, np.int32)
        self._accepted = np.zeros((accepts, words), np.uint32)
        self._accept_slots = np.zeros(2 * accepts, np.int32)
        self._offers = np.zeros((offers, 2), np.int32)
        self._offer_slots = np.zeros(2 * accepts, np.int32)
        self._offered = np.zeros((offers, words), np.uint32)
        self._hits = np.zeros((offers, self.width), np.uint8)
        self._counts = np.zeros(kernels.GSS_PROGRESS, np.int64)
        self._waiting = np.zeros((1 << 12, 2), np.int32)
        self._masks = np.zeros((1 << 12, words), np.uint32)
        self._todo = np.zeros((1 << 14, 4), np.int32)
        self.allowed = np.zeros(1 << 16, np.int32)
        self.missing = np.zeros((1 << 10, 2), np.int32)
        self.questions = np.zeros((1 << 14, 4), np.int32)

    def __len__(self) -> int:
        return int(self._counts[0])

    def clear(self) -> None:
        """Forget all stacks."""
        for slots in (self._cell_slots, self._shift_slots, self._accept_slots, self._offer_slots):
            slots[:] = 0
        self._counts[:] = 0

    def arrays(self) -> tuple[_Array, ...]:
        """The kernel's arguments, from ``cells`` to ``todo``."""
        return (
            self.cells, self._cell_slots, self._shifts, self._shift_slots, self._accepted, self._accept_slots,
            self._offers, self._offer_slots, self._offered, self._hits, self._counts, self._waiting, self._masks,
            self._todo,
        )  # fmt: skip

    def above(self, cell: int) -> tuple[list[int], int]:
        """The states that a stack has above the last mask's stack, the lowest first, and how many of that stay."""
        depth_of, here = {}, int(self._counts[4])
        while here >= 0:
            depth_of[here] = int(self.cells[here, 2])
            here = int(self.cells[here, 0])
        states: list[int] = []
        while cell not in depth_of:
            if cell < 0:
                return states[::-1], 0
            states.append(int(self.cells[cell, 1]))
            cell = int(self.cells[cell, 0])
        return states[::-1], depth_of[cell] + 1
