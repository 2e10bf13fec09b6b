"""Kinds of bytes: those below each node of a trie, by which walks of a lexer tell what they need not look at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.memo import Memo
from ...system.types import Array
from ...vocabulary.vocabulary import Vocabulary

#: The kinds of bytes, 44 of 64: what strings' patterns tell apart.
_FIRST_OF_KINDS = [0, *range(32, 49), *range(58, 66), 71, *range(91, 98), 103, *range(123, 129), 192, 224, 240]
_KINDS = np.uint64(1) << (np.searchsorted(_FIRST_OF_KINDS, np.arange(256), side="right") - 1).astype(np.uint64)

#: Of the vocabularies that were walked last, by fingerprint.
_known: Memo[str, NDArray[np.uint64]] = Memo(4)


def kinds_below(vocabulary: Vocabulary) -> NDArray[np.uint64]:
    """By node of the trie the kinds of bytes on the way to it and below, ``uint64[nodes]``."""
    known = _known.get(vocabulary.fingerprint)
    if known is None:
        trie = vocabulary.trie
        known = np.empty(len(trie.byte), np.uint64)
        kernels.kinds_below(trie.byte, trie.depth, _KINDS, np.zeros(trie.max_depth + 2, np.uint64), known)
        _known[vocabulary.fingerprint] = known
    return known


def kinds_of(class_of: Array) -> NDArray[np.uint64]:
    """The kinds of the bytes of each class, ``uint64[classes]``; ``class_of`` is ``uint[256]``."""
    kinds = np.zeros(int(class_of.max()) + 1, np.uint64)
    np.bitwise_or.at(kinds, class_of, _KINDS)
    return kinds
