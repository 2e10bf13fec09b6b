"""The reference walk: which tokens a machine takes, found byte by byte along the vocabulary's trie with plain NumPy.

It serves where a kernel would not pay, and is the judge of those that walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...vocabulary.trie import Trie
from ...vocabulary.vocabulary import Vocabulary
from .machine import Config, Machine


def walk(
    trie: Trie, step: Callable[[Config, int], Config | None], start: Config, node: int = 0
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], list[Config]]]:
    """Tokens below a node of the trie of which a machine takes all bytes from there on, shorter ones first.

    ``step`` says where a byte leads, None for nowhere. One depth after another is yielded: the nodes where tokens
    end, ``int64[n]``, ascending; which configuration each leads to, ``int64[n]``; and the configurations.
    """
    begin, end, no_token = node + 1, int(trie.skip[node]), trie.token[0]
    configs, depth = [start], int(trie.depth[node])
    level, at = np.array([node]), np.zeros(1, np.int64)  # live nodes of one depth, and which configuration each has
    while len(level):
        depth += 1
        nodes = begin + np.flatnonzero(trie.depth[begin:end] == depth)
        above = np.searchsorted(level, nodes) - 1
        below = (above >= 0) & (nodes < trie.skip[level[above]])
        nodes, above = nodes[below], above[below]
        steps, inverse = np.unique(at[above] << 8 | trie.byte[nodes], return_inverse=True)
        targets = [step(configs[each >> 8], each & 255) for each in steps.tolist()]
        numbers = {config: number for number, config in enumerate(dict.fromkeys(targets))}
        at = np.array([-1 if config is None else numbers[config] for config in targets], np.int64)[inverse]
        level, at, configs = nodes[at >= 0], at[at >= 0], list(numbers)
        ends = trie.token[level] != no_token
        yield level[ends], at[ends], configs


def tokens_from(
    vocabulary: Vocabulary, machine: Machine, config: Config, prefix: bytes = b""
) -> Iterator[NDArray[np.int64]]:
    """Tokens that begin with a prefix and are longer, and whose rest can follow a configuration, as nodes."""
    node = vocabulary.trie.find(prefix)
    if node is not None:
        yield from (nodes for nodes, *_ in walk(vocabulary.trie, machine.after, machine.byte_state(config), node))


def row_of_nodes(vocabulary: Vocabulary, parts: Iterable[NDArray[np.int64]]) -> NDArray[np.int32]:
    """The row of all tokens that end at some nodes of the trie: read-only ``int32[words]``."""
    trie, bits = vocabulary.trie, np.zeros(32 * vocabulary.words, np.bool_)
    for nodes in parts:
        bits[trie.token[nodes]] = True
    bits[trie.twins[:, 0]] = bits[trie.twins[:, 1]]
    row = np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)
    row.flags.writeable = False
    return row
