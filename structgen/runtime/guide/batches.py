"""Masks of several guides in one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError
from ...system.arguments import check_distinct
from ..rows.bitmask import ALLOCATE, check_bitmask, common_vocabulary, fill_first
from .guide import Guide


def fill_batch(guides: Sequence[Guide | None], bitmask: NDArray[np.int32]) -> None:
    """Write the mask of each guide into its row, in place.

    Parameters
    ----------
    guides:
        One for each row, of any indexes over one vocabulary. ``None`` is a row without a definition: every
        id of the guides' vocabulary is allowed (every bit of the row, where no row has a guide).
    bitmask:
        ``int32[batch, words]``, writable. It may be wider than the vocabulary; the tail is set to zero.

    Raises
    ------
    BitmaskError
        For another dtype or shape, a read-only array, or too few words.
    VocabularyMismatchError
        Where two guides belong to different vocabularies; names both rows.
    """
    check_bitmask(bitmask, dimensions=(2,))
    if not bitmask.flags.writeable:
        raise BitmaskError("the bitmask is read-only", remedy=ALLOCATE)
    check_distinct(bitmask, "bitmask")
    if len(guides) != len(bitmask):
        raise BitmaskError(f"{len(guides)} guides for a bitmask of {len(bitmask)} rows", remedy=ALLOCATE)
    vocabulary = common_vocabulary([None if guide is None else guide.index.vocabulary for guide in guides])
    if vocabulary is not None and vocabulary.words > bitmask.shape[1]:
        raise BitmaskError(
            f"the vocabulary needs {vocabulary.words} words, the bitmask has {bitmask.shape[1]}",
            remedy=ALLOCATE,
        )
    for row, guide in zip(bitmask, guides, strict=True):
        if guide is not None:
            guide.fill_bitmask(row)
        elif vocabulary is None:
            row[:] = -1
        else:
            fill_first(row, vocabulary.size)
