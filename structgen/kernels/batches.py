"""Histories of sequences, as a forest."""

from __future__ import annotations

from .jit import kernel
from .signatures import Out, int32, int64


@kernel(releases_gil=False)
def roll_back(
    counts: int32[::1], which: int32[::1], at: int32[::1], befores: int32[::1], reached: Out[int32[::1]]
) -> None:
    """The histories' nodes that lie ``counts`` tokens back, ``int32[n]``; -1 before the beginning."""
    for i in range(len(counts)):
        node = at[which[i]]
        for _ in range(counts[i]):
            if node < 0:
                break
            node = befores[node]
        reached[i] = node


@kernel(releases_gil=False)
def mark_nodes(at: int32[::1], befores: int32[::1], most: int64, marks: Out[int32[::1]]) -> None:
    """Mark the nodes where sequences are, and so many before each (``int32[nodes]``)."""
    for i in range(len(at)):
        node = at[i]
        for _ in range(most + 1):
            if node < 0:
                break
            marks[node] = 1
            node = befores[node]


@kernel
def take_texts(
    last: int64[::1], befores: int32[::1], tokens: int32[::1], stops: int64[::1], found: Out[int32[::1]],
    tops: Out[int32[::1]], starts: Out[int64[::1]],
) -> None:  # fmt: skip
    """The tokens of chains of nodes, without those of their first nodes.

    Parameters
    ----------
    last:
        ``int32[n]``: the last node of each chain.
    befores, tokens:
        ``int32[capacity]`` each: the forest.
    stops:
        ``int64[n]``: where each text ends in ``found``.
    found:
        ``int32[total]``; of length 0, tokens are only counted.
    tops, starts:
        ``int32[n]``, ``int64[n]``: filled with the chains' first nodes, and with where their texts begin.
    """
    for i in range(len(last)):
        node, at = last[i], stops[i]
        while befores[node] >= 0:
            at -= 1
            if len(found):
                found[at] = tokens[node]
            node = befores[node]
        tops[i] = node
        starts[i] = at
