"""How far the subtrees of a vocabulary's trie reach, so that walks can tell that one need not be looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...vocabulary.vocabulary import Vocabulary


def heights(vocabulary: Vocabulary) -> NDArray[np.uint16]:
    """By node of the trie the bytes of the longest way down, ``uint16[nodes]``."""
    known: NDArray[np.uint16] | None = vocabulary.for_walks.get("heights")
    if known is None:
        trie = vocabulary.trie
        known = np.empty(len(trie.byte), np.uint16)
        kernels.heights_of(trie.depth, np.zeros(trie.max_depth + 2, np.uint16), known)
        vocabulary.for_walks["heights"] = known
    return known
