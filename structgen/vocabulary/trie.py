"""The vocabulary's prefix tree, flattened for one forward scan.

Nodes stand in preorder, which is the lexicographic order of the tokens. A walk is a loop over node numbers:
on a live byte go to ``i + 1``, on a dead one jump to ``skip[i]``, past the whole subtree. Because the order
is lexicographic, the tokens that end at node ``i`` are ``token_ids[first_token[i]:first_token[i + 1]]``, and
those at or below it reach to ``first_token[skip[i]]``.

(The layout follows llguidance's ``toktrie``, which derives it down to the memory reads per node.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ..system.properties import cached_property
from ..system.types import Array

#: Bytes that the sort compares at a time.
_WORD = 8


@dataclass(frozen=True, eq=False)
class Trie:
    """The flattened prefix tree of a vocabulary's tokens; node 0 is the root.

    Parameters
    ----------
    byte:
        ``uint8[nodes]``, the byte on the edge into each node; 0 for the root.
    depth:
        ``uint16[nodes]``, bytes from the root.
    skip:
        ``int32[nodes]``, the next node that is not below this one; ``nodes`` at the end.
    first_token:
        ``int32[nodes + 1]``, where the tokens ending at a node begin in ``token_ids``.
    token_ids:
        ``int32[tokens]``, ids in lexicographic order of their bytes; equal bytes in order of id.
    token:
        ``int32[nodes]``, the first id that ends at a node, or where none does the number of the first bit after a
        bitmask row: for loops without a branch.
    twins:
        ``int32[*, 2]``, every further id that ends at a node, and the first one there.
    """

    byte: NDArray[np.uint8]
    depth: NDArray[np.uint16]
    skip: NDArray[np.int32]
    first_token: NDArray[np.int32]
    token_ids: NDArray[np.int32]
    token: NDArray[np.int32]
    twins: NDArray[np.int32]

    @cached_property
    def max_depth(self) -> int:
        """Bytes of the longest token."""
        return int(self.depth.max())

    def child(self, node: int, byte: int) -> int | None:
        """The node that a byte leads to; None where no token goes on with it."""
        if not node:
            return self._tops.get(byte)
        bytes_, skip, i = self.byte.data, self.skip.data, node + 1  # these yield ints, faster than arrays
        end = skip[node]
        while i < end:
            if bytes_[i] == byte:
                return i
            i = skip[i]
        return None

    def children(self, node: int, wanted: frozenset[int]) -> list[tuple[int, int]]:
        """The nodes that some bytes lead to, each behind its byte."""
        if not node:
            return [(byte, self._tops[byte]) for byte in wanted if byte in self._tops]
        bytes_, skip, i = self.byte.data, self.skip.data, node + 1
        end, found = skip[node], []
        while i < end:
            if (byte := bytes_[i]) in wanted:
                found.append((byte, i))
            i = skip[i]
        return found

    def find(self, prefix: bytes) -> int | None:
        """The node of a prefix; None where no token begins with it."""
        node: int | None = 0
        for byte in prefix:
            if node is None:
                break
            node = self.child(node, byte)
        return node

    @cached_property
    def upper(self) -> NDArray[np.int32]:
        """The nodes of at most two bytes, breadth first, and one more column: ``int32[3, *]``.

        Byte, node, and the column of the first child; the children of a node end where those of the next begin.
        """
        levels = [np.flatnonzero(self.depth == depth) for depth in range(3)]
        nodes = np.concatenate(levels)
        upper = np.zeros((3, len(nodes) + 1), np.int32)
        upper[0, :-1], upper[1, :-1], upper[2] = self.byte[nodes], nodes, len(nodes)
        upper[2, : len(levels[1]) + 1] = 1 + np.append(0, len(levels[1]) + np.searchsorted(levels[2], levels[1]))
        return upper

    @cached_property
    def _tops(self) -> dict[int, int]:
        """The nodes of depth 1 by their bytes."""
        tops = np.flatnonzero(self.depth == 1)
        return dict(zip(self.byte[tops].tolist(), tops.tolist(), strict=True))

    def nodes_below(self, classes: Array) -> NDArray[np.float64]:
        """Nodes whose first byte is in each class: what a live transition may cost. ``classes``: ``uint[256]``."""
        return np.bincount(classes, self._below_byte, int(classes[-1]) + 1).astype(np.float64)

    @cached_property
    def _below_byte(self) -> NDArray[np.float64]:
        """``float64[256]``: how many nodes begin with each byte."""
        tops = np.flatnonzero(self.depth == 1)
        return np.bincount(self.byte[tops], self.skip[tops] - tops, 256).astype(np.float64)

    @cached_property
    def runs(self) -> list[int]:
        """By byte: how many of it are a token together, at most."""
        runs = [0] * 256
        top = 1
        while top < len(self.byte):
            byte, node, length = int(self.byte[top]), top, 1
            while True:
                if self.first_token[node] < self.first_token[node + 1]:
                    runs[byte] = length
                below = node + 1 + np.flatnonzero(self.byte[node + 1 : self.skip[node]] == byte)
                below = below[self.depth[below] == length + 1]
                if not len(below):
                    break
                node, length = int(below[0]), length + 1
            top = int(self.skip[top])
        return runs

    @classmethod
    def build(cls, offsets: NDArray[np.uint32], blob: NDArray[np.uint8]) -> Trie:
        """Sort tokens, the i-th being ``blob[offsets[i]:offsets[i + 1]]``; one node for each distinct prefix."""
        lengths = np.diff(offsets.astype(np.int64))
        ids = np.flatnonzero(lengths)
        order = _sorted(blob, offsets[ids].astype(np.int64), lengths[ids])
        token_ids = ids[order].astype(np.int32)
        starts, lengths = offsets[token_ids].astype(np.int64), lengths[token_ids]
        shared = _common_prefixes(blob, starts, lengths)

        # Token t adds the nodes of depths shared[t]+1 .. lengths[t]; node 0 is the root.
        added = lengths - shared
        owner = np.repeat(np.arange(len(token_ids)), added)
        first_node = np.cumsum(added) - added + 1
        depth = np.concatenate([[0], shared[owner] + 1 + np.arange(len(owner)) - (first_node[owner] - 1)])
        byte = np.concatenate([[0], blob[starts[owner] + depth[1:] - 1]]).astype(np.uint8)
        depth = depth.astype(np.uint16)
        # Tokens before `owner` end at earlier nodes; `owner` itself, and later equals, at its deepest node.
        first_token = np.concatenate([[0], owner, [len(token_ids)]]).astype(np.int32)
        ends = first_token[:-1] < first_token[1:]
        token = np.full(len(byte), 32 * (-(-(len(offsets) - 1) // 32)), np.int32)
        token[ends] = token_ids[first_token[:-1][ends]]
        again = np.flatnonzero(added == 0)  # a token that adds no node has the bytes of the one before it
        first = np.searchsorted(first_token, again, side="right") - 1
        twins = np.stack([token_ids[again], token[first]], axis=1)
        return cls(byte, depth, _skips(depth), first_token, token_ids, token, twins)


def _sorted(blob: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order that sorts the tokens by their bytes; equal tokens stay as they were.

    Compares eight bytes at a time, as one big-endian integer, and goes on with the tokens that are still
    tied, which takes a quarter of the time of sorting bytes objects. Padding is told from real zero bytes by
    the length that is left.
    """
    windows = sliding_window_view(np.append(blob, np.zeros(_WORD, np.uint8)), _WORD)
    order = np.arange(len(starts))
    slots, group, position = order.copy(), np.zeros_like(order), 0
    while len(slots):
        tokens = order[slots]
        left = np.minimum(lengths[tokens] - position, _WORD + 1)
        chunks = windows[starts[tokens] + position]
        chunks[np.arange(_WORD) >= left[:, None]] = 0
        word = chunks.view(">u8")[:, 0].astype(np.uint64)
        by = np.lexsort((left, word, group))
        order[slots] = tokens[by]
        left, word, group = left[by], word[by], group[by]
        changes = (word[1:] != word[:-1]) | (left[1:] != left[:-1]) | (group[1:] != group[:-1])
        group = np.concatenate([[0], np.cumsum(changes)])
        tied = (left > _WORD) & (np.bincount(group)[group] > 1)
        slots, group = slots[tied], group[tied]
        position += _WORD
    return order


def _common_prefixes(
    blob: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Length of the prefix that each of the sorted tokens shares with the one before it."""
    shared = np.zeros(len(starts), np.int64)
    undecided = np.arange(1, len(starts))
    position = 0
    while len(undecided):
        inside = (lengths[undecided] > position) & (lengths[undecided - 1] > position)
        undecided = undecided[inside]
        same = blob[starts[undecided] + position] == blob[starts[undecided - 1] + position]
        undecided = undecided[same]
        shared[undecided] += 1
        position += 1
    return shared


def _skips(depth: NDArray[np.uint16]) -> NDArray[np.int32]:
    """For each node in preorder, the next node of the same or a smaller depth.

    That is the next node of its own depth, or where its parent skips to, whichever comes first.
    """
    nodes = len(depth)
    by_depth = np.split(np.argsort(depth, kind="stable"), np.cumsum(np.bincount(depth))[:-1])
    skip = np.full(nodes, nodes, np.int32)
    for above, level in pairwise(by_depth):
        parent = above[np.searchsorted(above, level) - 1]
        skip[level] = np.minimum(np.append(level[1:], nodes), skip[parent])
    return skip
