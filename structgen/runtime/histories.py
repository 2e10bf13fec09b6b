"""`Histories`: where each sequence of a batch is, and where it was: a forest of configurations.

A node is a configuration and the node before it, so that sequences with a common beginning share it: to fork, or to
reorder beams, is to copy numbers, and to roll back is to follow them. Nodes that nobody comes back to are swept out
when the forest has doubled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import kernels

_FEW = 1 << 12


class Histories:
    """Nodes of sequences.

    Parameters
    ----------
    most:
        So many tokens, at least, can be taken back; None for all.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        #: ``int32[sequences]``: the node where each is.
        self.at = np.zeros(0, np.int32)
        #: ``int32[capacity]``: the node before each, -1 where there is none, and its configuration.
        self.befores = np.zeros(_FEW, np.int32)
        self.configs = np.zeros(_FEW, np.int32)
        #: ``int64[1]``: how many nodes there are.
        self.used = np.zeros(1, np.int64)
        self._sweep_at = _FEW

    def here(self) -> NDArray[np.int32]:
        """The configurations where sequences are, ``int32[sequences]``."""
        return self.configs[self.at]

    def grow(self, path: list[int]) -> int:
        """New nodes, one behind the other, with nothing before the first; returns the last."""
        self.reserve(len(path))
        first = int(self.used[0])
        last = first + len(path) - 1
        self.befores[first : last + 1] = [-1, *range(first, last)]
        self.configs[first : last + 1] = path
        self.used[0] = last + 1
        return last

    def reserve(self, count: int) -> None:
        """Have room for so many nodes."""
        if self.used[0] + count <= len(self.befores):
            return
        if self.used[0] >= self._sweep_at:
            self.sweep()
            self._sweep_at = max(_FEW, 2 * int(self.used[0]))
        while self.used[0] + count > len(self.befores):
            self.befores = np.concatenate([self.befores, np.zeros_like(self.befores)])
            self.configs = np.concatenate([self.configs, np.zeros_like(self.configs)])

    def sweep(self) -> None:
        """Forget the nodes that no sequence can come back to; the others stay in their order."""
        used = int(self.used[0])
        marks = np.zeros(used, np.int32)
        kernels.mark_nodes(self.at, self.befores, used if self._most is None else self._most, marks)
        kept = np.flatnonzero(marks)
        numbers = np.append(np.cumsum(marks, dtype=np.int32) - 1, np.int32(-1))
        befores = self.befores[kept]
        befores = np.where((befores >= 0) & (marks[befores] > 0), numbers[befores], -1)
        self.befores[: len(kept)], self.configs[: len(kept)] = befores, self.configs[kept]
        self.at = numbers[self.at]
        self.used[0] = len(kept)

    def before(self, which: NDArray[np.int32], counts: NDArray[np.int32]) -> NDArray[np.int32]:
        """The nodes so many tokens back, -1 past the beginning; ``int32[n]`` each."""
        found = np.empty(len(which), np.int32)
        kernels.roll_back(counts, which, self.at, self.befores, found)
        return found

    def path(self, sequence: int) -> list[int]:
        """The configurations that a sequence was at, the first one first."""
        found: list[int] = []
        node = int(self.at[sequence])
        while node >= 0:
            found.append(int(self.configs[node]))
            node = int(self.befores[node])
        return found[::-1]

    def live(self) -> NDArray[np.int32]:
        """The configurations of all nodes, after a sweep, each once."""
        self.sweep()
        return np.unique(self.configs[: int(self.used[0])])

    def renumber(self, numbers: NDArray[np.int32]) -> None:
        """Give configurations other numbers."""
        used = int(self.used[0])
        self.configs[:used] = numbers[self.configs[:used]]
