"""How far the subtrees of a vocabulary's trie reach, so that walks can tell that one need not be looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.memo import Memo
from ...vocabulary.vocabulary import Vocabulary

#: Of the vocabularies that were walked last, by fingerprint.
_known: Memo[str, NDArray[np.uint16]] = Memo(4)


def heights(vocabulary: Vocabulary) -> NDArray[np.uint16]:
    """By node of the trie the bytes of the longest way down, ``uint16[nodes]``."""
    known = _known.get(vocabulary.fingerprint)
    if known is None:
        trie = vocabulary.trie
        known = np.empty(len(trie.byte), np.uint16)
        kernels.heights_of(trie.depth, np.zeros(trie.max_depth + 2, np.uint16), known)
        _known[vocabulary.fingerprint] = known
    return known
