"""What stands somewhere in a text, by the suffixes of it in order (see `structgen.runtime.grammar.substrings`)."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .signatures import Out, boolean, int32, int64, uint8, uint16


@helper
def _first_from(text, order, low, high, length, byte):
    """The first of some suffixes that has this byte or a higher one behind so many; nothing is below any byte."""
    while low < high:
        middle = (low + high) >> 1
        at = np.int64(order[middle]) + length
        if at < len(text) and text[at] >= byte:
            high = middle
        else:
            low = middle + 1
    return low


@helper
def _ends_behind(order, is_end, low, high, length):
    for i in range(low, high):
        at = np.int64(order[i]) + length
        if at < len(is_end) and is_end[at]:
            return True
    return False


@kernel(releases_gil=False)
def narrowed(
    text: uint8[::1], order: int32[::1], low: int64, high: int64, length: int64, byte: int64
) -> tuple[int64, int64]:
    """The suffixes, of those from ``low`` on before ``high``, that have this byte behind so many, as two bounds."""
    first = _first_from(text, order, low, high, length, np.int64(byte))
    return first, _first_from(text, order, first, high, length, np.int64(byte) + 1)


@kernel(releases_gil=False)
def may_end(order: int32[::1], is_end: uint8[::1], low: int64, high: int64, length: int64) -> boolean:
    """Whether some of these suffixes may end behind so many bytes."""
    return _ends_behind(order, is_end, low, high, length)


@kernel
def walk_text(
    byte: uint8[::1], depth: uint16[::1], skip: int32[::1], first_token: int32[::1], token_ids: int32[::1],
    nodes: int32[::1], text: uint8[::1], order: int32[::1], is_end: uint8[::1], low: int64, high: int64,
    length: int64, path: Out[int64[:, ::1]], tokens: Out[uint8[::1]], below: Out[uint8[::1]],
) -> None:  # fmt: skip
    """Which tokens go on in the text from ``nodes`` of the trie, and at which nodes what was read may end.

    ``path``: ``int64[2, max_depth + 2]``. Sets ``tokens``, ``uint8`` by id, and ``below``, ``uint8`` by node: two of
    the nodes may lie one below the other, and lead to the same.
    """
    for k in range(len(nodes)):
        root = nodes[k]
        top = np.int64(depth[root])
        path[0, top] = low
        path[1, top] = high
        i = root + 1
        while i < skip[root]:
            d = np.int64(depth[i])
            behind = length + d - 1 - top
            first = _first_from(text, order, path[0, d - 1], path[1, d - 1], behind, np.int64(byte[i]))
            last = _first_from(text, order, first, path[1, d - 1], behind, np.int64(byte[i]) + 1)
            if first == last:
                i = skip[i]
                continue
            path[0, d] = first
            path[1, d] = last
            for t in range(first_token[i], first_token[i + 1]):
                tokens[token_ids[t]] = 1
            if _ends_behind(order, is_end, first, last, behind + 1):
                below[i] = 1
            i += 1
