"""The tokens in which an item of an array may begin: so few that each is followed, where items must differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....vocabulary.vocabulary import Vocabulary
from .items import COMMA, QUOTE


class ItemTokens(NamedTuple):
    """The tokens that may have an item in them that did not begin before: ids, ``int64[*]``.

    Parameters
    ----------
    outside:
        With a comma.
    in_string:
        With a quote, and a comma behind it.
    """

    outside: NDArray[np.int64]
    in_string: NDArray[np.int64]

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> ItemTokens:
        """Those of a vocabulary."""
        trie = vocabulary.trie
        commas = trie.byte == COMMA
        behind_quote = _below(np.flatnonzero(trie.byte == QUOTE), trie.skip)
        found = []
        for tops in (commas, commas & behind_quote):
            nodes = np.flatnonzero(_below(np.flatnonzero(tops), trie.skip))
            counts = trie.first_token[nodes + 1] - trie.first_token[nodes]
            first = np.repeat(trie.first_token[nodes] - np.cumsum(counts) + counts, counts)
            found.append(trie.token_ids[first + np.arange(counts.sum())].astype(np.int64))
        return cls(*found)


def _below(tops: NDArray[np.int64], skip: NDArray[np.int32]) -> NDArray[np.bool_]:
    """``bool[nodes]``: the nodes at or below some."""
    change = np.zeros(len(skip) + 1, np.int64)
    np.add.at(change, tops, 1)
    np.subtract.at(change, skip[tops], 1)
    is_below: NDArray[np.bool_] = np.cumsum(change)[:-1] > 0
    return is_below
