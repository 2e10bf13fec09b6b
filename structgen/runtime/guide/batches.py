"""Masks of several guides in one array."""

from __future__ import annotations

from collections.abc import Sequence

from ...system.arguments import checked_masks
from ..rows.bitmask import common_vocabulary, fill_first
from .guide import Guide


def fill_batch(guides: Sequence[Guide | None], bitmask: object) -> None:
    """Write the mask of each guide into its row, in place.

    Parameters
    ----------
    guides:
        One for each row, of any indexes over one vocabulary. None: a row without a definition, in which every id of
        the vocabulary is allowed.
    bitmask:
        A writable ``int32[batch, words]``: a NumPy array, or a torch tensor on the CPU, as wide as in
        `Guide.fill_bitmask`.

    Raises
    ------
    BitmaskError
        For another dtype, shape or device, a read-only array, or too few words.
    VocabularyMismatchError
        For guides of different vocabularies; names both rows.
    """
    vocabulary = common_vocabulary([None if guide is None else guide.index.vocabulary for guide in guides])
    masks = checked_masks(bitmask, len(guides), 0 if vocabulary is None else vocabulary.least_words)
    for row, guide in zip(masks, guides, strict=True):
        if guide is not None:
            guide.fill_bitmask(row)
        elif vocabulary is None:
            row[:] = -1
        else:
            fill_first(row, min(vocabulary.size, 32 * len(row)))
