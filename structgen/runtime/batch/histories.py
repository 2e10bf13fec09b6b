"""`Histories`: where each sequence of a batch is, and where it was: a forest of configurations.

A node is a configuration, the token that led there, and the node before it, so that sequences with a common
beginning share it: to fork, or to reorder beams, is to copy numbers, and to roll back is to follow them. Nodes that
nobody comes back to are swept out when the forest has doubled; their tokens are kept, for a copy in another process.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.types import Array
from ..guide.guide import NO_TOKEN

#: Tokens of which no nodes are left, ``int32``, behind those before them; chains share them.
_Texts: TypeAlias = "tuple[_Texts | None, bytes]"

_FEW = 1 << 13


class Histories:
    """Nodes of sequences.

    Parameters
    ----------
    most:
        So many tokens, at least, can be taken back; None for all.
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        #: ``int32[sequences]``: the node where each is.
        self.at = np.zeros(0, np.int32)
        self._hold(np.zeros((3, _FEW), np.int32))
        #: ``int64[1]``: how many nodes there are.
        self.used = np.zeros(1, np.int64)
        self._sweep_at = _FEW
        #: The tokens of which no nodes are left, by the first node behind them.
        self._texts: dict[int, _Texts | None] = {}

    def _hold(self, nodes: NDArray[np.int32]) -> None:
        #: ``int32[3, capacity]``: the node before each, -1 where there is none; its configuration; the token that led
        #: there, -1 where there is none, or it is not known.
        self.nodes = nodes
        self.befores, self.configs, self.tokens = nodes

    def here(self) -> NDArray[np.int32]:
        """The configurations where sequences are, ``int32[sequences]``."""
        found: NDArray[np.int32] = self.configs[self.at]
        return found

    def begin(self, config: int) -> int:
        """A new node with nothing before it."""
        return self.grow([config], [NO_TOKEN])

    def grow(self, path: Sequence[int], tokens: Sequence[int], text: bytes = b"") -> int:
        """New nodes, one behind the other; returns the last.

        Parameters
        ----------
        path, tokens:
            The configuration of each, and the token that led there.
        text:
            The tokens before the first, ``int32``.
        """
        self.reserve(len(path))
        first = int(self.used[0])
        last = first + len(path) - 1
        self.befores[first : last + 1] = [-1, *range(first, last)]
        self.configs[first : last + 1] = path
        self.tokens[first : last + 1] = tokens
        if text:
            self._texts[first] = None, text
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
            self._hold(np.concatenate([self.nodes, np.zeros_like(self.nodes)], axis=1))

    def sweep(self) -> None:
        """Forget the nodes that no sequence can come back to; the others stay in their order."""
        used = int(self.used[0])
        marks = np.zeros(used, np.int32)
        kernels.mark_nodes(self.at, self.befores, used if self.most is None else self.most, marks)
        kept = np.flatnonzero(marks)
        numbers = np.append(np.cumsum(marks, dtype=np.int32) - 1, np.int32(-1))
        befores = self.befores[kept]
        goes_on = (befores >= 0) & (marks[befores] > 0)
        self._cut(kept[~goes_on & (befores >= 0)], marks, numbers)
        self.nodes[:, : len(kept)] = self.nodes[:, kept]
        self.befores[: len(kept)] = np.where(goes_on, numbers[befores], -1)
        self.at = numbers[self.at]
        self.used[0] = len(kept)

    def _cut(self, firsts: Array, marks: NDArray[np.int32], numbers: NDArray[np.int32]) -> None:
        """Keep the tokens before nodes that become the first ones of their chains."""
        stops, tops, starts = (np.zeros(len(firsts), np.int64), np.zeros(len(firsts), np.int32),
                               np.zeros(len(firsts), np.int64))  # fmt: skip
        found = np.zeros(0, np.int32)
        kernels.take_texts(firsts, self.befores, self.tokens, stops, found, tops, starts)
        stops = np.cumsum(-starts)
        if len(firsts):
            found = np.zeros(stops[-1], np.int32)
            kernels.take_texts(firsts, self.befores, self.tokens, stops, found, tops, starts)
        texts = {int(numbers[node]): text for node, text in self._texts.items() if marks[node]}
        data, bounds = found.tobytes(), zip((4 * starts).tolist(), (4 * stops).tolist(), strict=True)
        for node, top, (start, stop) in zip(numbers[firsts].tolist(), tops.tolist(), bounds, strict=True):
            texts[node] = self._texts.get(top), data[start:stop]
        self._texts = texts

    def before(self, which: NDArray[np.int32], counts: NDArray[np.int32]) -> NDArray[np.int32]:
        """The nodes that lie ``counts`` tokens back, -1 before the beginning; ``int32[n]`` each."""
        found = np.empty(len(which), np.int32)
        kernels.roll_back(counts, which, self.at, self.befores, found)
        return found

    def path(self, sequence: int) -> list[int]:
        """The configurations that a sequence was at, the first one first."""
        found: list[int] = self.configs[self._chain(sequence)].tolist()
        return found

    def tokens_of(self, sequence: int) -> array[int]:
        """All tokens of a sequence, those of which no nodes are left included."""
        chain = self._chain(sequence)
        parts, text = [self.tokens[chain[1:]].tobytes()], self._texts.get(chain[0])
        while text is not None:
            text, earlier = text
            parts.append(earlier)
        return array("i", b"".join(reversed(parts)))

    def _chain(self, sequence: int) -> list[int]:
        """The nodes that a sequence was at, the first one first."""
        found: list[int] = []
        node = int(self.at[sequence])
        while node >= 0:
            found.append(node)
            node = int(self.befores[node])
        return found[::-1]

    def standing(self) -> NDArray[np.int32]:
        """The configurations of all nodes, after a sweep."""
        self.sweep()
        found: NDArray[np.int32] = self.configs[: int(self.used[0])]
        return found
