"""Packed bitmasks with NumPy: one bit for each token id.

Token ``t`` is bit ``t % 32`` of word ``t // 32``, least significant bit first, in int32 words. It is the
layout of XGrammar, llguidance and outlines-core, so their kernels take these masks as they are. Words are
signed: token 31 of a word is its sign bit, and an arithmetic right shift copies it downwards, so shift first
and mask after.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError, VocabularyMismatchError
from ...system.arguments import describe, integer
from ...system.types import Foreign

if TYPE_CHECKING:
    from ...vocabulary.vocabulary import Vocabulary

#: Tokens in a word.
BITS = 32

#: Remedy in messages.
ALLOCATE = "Allocate it with structgen.allocate_bitmask(batch, width)."


def words_for(width: int) -> int:
    """Number of int32 words that hold ``width`` bits: ``ceil(width / 32)``."""
    return -(-width // BITS)


def check_width(words: int, width: int) -> None:
    """Raise `BitmaskError` where masks have more words than logits of a width need."""
    if words > words_for(width):
        raise BitmaskError(
            f"the bitmask has {words} words, logits of width {width} need {words_for(width)}",
            remedy="Is the vocabulary that of this model?",
        )


def allocate_bitmask(batch: int, width: int) -> NDArray[np.int32]:
    """Allocate bitmasks for `Guide.fill_bitmask`, `GuideBatch.fill_bitmask` and `structgen.runtime.fill_batch`.

    Parameters
    ----------
    batch:
        Number of rows, one for each sequence; 0 or more.
    width:
        Number of token ids, 1 or more: the size of the vocabulary, or the width of the logits where these are padded.

    Returns
    -------
    numpy.ndarray
        ``int32[batch, ceil(width / 32)]`` of zeros, which forbid every token. ``torch.from_numpy`` makes a tensor of
        the same memory.

    Raises
    ------
    BitmaskError
        For a batch or a width that is no integer, or too small.

    Notes
    -----
    The counterpart of ``allocate_token_bitmask`` in XGrammar and llguidance, with the same shape and layout. Theirs
    begins with all bits set and, except in ``llguidance.numpy``, is a torch tensor.

    Examples
    --------
    >>> import structgen as sg
    >>> sg.allocate_bitmask(2, 100).shape
    (2, 4)
    """
    batch, width = (integer(n, name, BitmaskError) for n, name in ((batch, "batch"), (width, "width")))
    if batch < 0 or width < 1:
        raise BitmaskError(f"a bitmask has at least 0 rows and 1 token, got {batch} rows and {width} tokens")
    return np.zeros((batch, words_for(width)), np.int32)


def ids_of(bitmask: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the token ids whose bits are set in ``bitmask``, ascending, as ``int64[count]``.

    Raises
    ------
    BitmaskError
        Unless ``bitmask`` is ``int32[words]``.
    """
    check_bitmask(bitmask, ndims=(1,))
    return np.flatnonzero(_bits(bitmask)).astype(np.int64, copy=False)


def pack(allowed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Pack ``bool[width]`` or ``bool[batch, width]`` into ``int32[..., ceil(width / 32)]``; spare bits are
    zero."""
    if not isinstance(allowed, np.ndarray) or allowed.dtype != np.bool_ or allowed.ndim not in (1, 2):
        raise BitmaskError(f"expected bool[width] or bool[batch, width], got {describe(allowed)}")
    spare = -allowed.shape[-1] % BITS
    padded = np.pad(allowed, [(0, 0)] * (allowed.ndim - 1) + [(0, spare)])
    packed: NDArray[np.int32] = np.packbits(padded, axis=-1, bitorder="little").view("<i4").astype(np.int32)
    return packed


def unpack(bitmask: NDArray[np.int32], width: int) -> NDArray[np.bool_]:
    """The first ``width`` bits of ``int32[words]`` or ``int32[batch, words]``, as ``bool[..., width]``.

    Raises `BitmaskError` for another dtype or shape, and where the bitmask has fewer than ``width`` bits.
    """
    check_bitmask(bitmask, ndims=(1, 2))
    if not 0 <= integer(width, "width", BitmaskError) <= bitmask.shape[-1] * BITS:
        raise BitmaskError(f"cannot read {width} bits from {bitmask.shape[-1]} words of {BITS}")
    return _bits(bitmask)[..., :width]


def common_vocabulary(vocabularies: Sequence[Vocabulary | None]) -> Vocabulary | None:
    """The one vocabulary of all rows that have any; `VocabularyMismatchError` naming two rows that differ."""
    first, vocabulary = 0, None
    for i, other in enumerate(vocabularies):
        if other is None or other is vocabulary:
            continue
        if vocabulary is None:
            first, vocabulary = i, other
        elif other.fingerprint != vocabulary.fingerprint:
            raise VocabularyMismatchError(
                f"the indexes belong to different vocabularies: {vocabulary!r} and {other!r}",
                where=f"rows {first} and {i}",
                remedy="Compile every definition of a batch with the model's own vocabulary.",
            )
    return vocabulary


def check_bitmask(bitmask: Foreign, ndims: Sequence[int], kind: Foreign = np.ndarray, dtype: object = np.int32) -> None:
    """Raise `BitmaskError` for anything but masks, of a library's arrays, with one of these numbers of dimensions."""
    if not isinstance(bitmask, kind) or bitmask.dtype != dtype or bitmask.ndim not in ndims:
        shapes = " or ".join("int32[words]" if n == 1 else "int32[batch, words]" for n in ndims)
        library = kind.__module__.partition(".")[0].replace("numpy", "NumPy")
        raise BitmaskError(f"expected a {library} {shapes}, got {describe(bitmask)}", remedy=ALLOCATE)


def _bits(bitmask: NDArray[np.int32]) -> NDArray[np.bool_]:
    octets = little_endian_bytes(bitmask)
    return np.unpackbits(octets, axis=-1, bitorder="little").view(np.bool_)


def little_endian_bytes(bitmask: NDArray[np.int32]) -> NDArray[np.uint8]:
    """The words as ``uint8[..., 4 * words]``, token ``t`` in byte ``t // 8``: a view on little-endian
    machines."""
    words = np.ascontiguousarray(bitmask)
    return (words if sys.byteorder == "little" else words.byteswap()).view(np.uint8)


def widened(row: NDArray[np.int32], words: int) -> NDArray[np.int32]:
    """A row, ``int32[*]``, as a new ``int32[words]``: with zeros behind it, or without the words beyond."""
    found = np.zeros(words, np.int32)
    found[: len(row)] = row[:words]
    return found


def fill_first(row: NDArray[np.int32], count: int) -> None:
    """Set the first ``count`` bits and clear the rest."""
    full, rest = divmod(count, BITS)
    row[:full] = -1
    row[full:] = 0
    if rest:
        row[full] = (1 << rest) - 1
