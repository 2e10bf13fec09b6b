"""What stands somewhere in a text, by the suffixes of it in order (see `structgen.runtime.grammar.substrings`)."""

from __future__ import annotations

import numpy as np

from .jit import inlined, kernel


@inlined
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


@inlined
def _ends_behind(order, is_end, low, high, length):
    for i in range(low, high):
        at = np.int64(order[i]) + length
        if at < len(is_end) and is_end[at]:
            return True
    return False


@kernel
def narrowed(text, order, low, high, length, byte):
    """The suffixes, of those from ``low`` on before ``high``, that have this byte behind so many, as two bounds."""
    first = _first_from(text, order, low, high, length, np.int64(byte))
    return first, _first_from(text, order, first, high, length, np.int64(byte) + 1)


@kernel
def may_end(order, is_end, low, high, length):
    """Whether some of these suffixes may end behind so many bytes."""
    return _ends_behind(order, is_end, low, high, length)


@kernel
def walk_text(byte, depth, skip, first_token, token_ids, nodes, text, order, is_end, low, high, length, path,
              tokens, below):  # fmt: skip
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
