"""Bitmasks applied to logits in NumPy arrays, by a kernel that keeps or replaces the logits' own bits.

`structgen.runtime.logits.logits` has the measurements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import BitmaskError
from ...system.arguments import check_distinct, describe
from ...system.types import Array, DType, Foreign
from ..rows.bitmask import BITS, check_width, ids_of

#: For each dtype of logits, the integer dtype of the same size.
BITS_OF: dict[DType, DType] = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float16): np.dtype(np.int16)}


def apply_bitmask(logits: Array, bitmask: NDArray[np.int32]) -> None:
    """Set the logits of disallowed tokens to ``-inf``, in place.

    Parameters
    ----------
    logits:
        ``[width]`` or ``[batch, width]``, float32 or float16, writable, with any strides. It may be wider than the
        bitmask, or than the vocabulary (padding): logits without a bit become ``-inf``.
    bitmask:
        ``int32[words]``, for every row, or ``int32[batch, words]``.

    Raises
    ------
    BitmaskError
        For logits or a bitmask of another dtype or shape, read-only logits, logits that share memory with each other
        or with the bitmask, more words than the logits need, or a bitmask with another number of rows.
    """
    if not isinstance(logits, np.ndarray) or logits.dtype not in BITS_OF or logits.ndim not in (1, 2):
        raise BitmaskError(f"logits are float32 or float16 [width] or [batch, width], got {describe(logits)}")
    if not isinstance(bitmask, np.ndarray) or bitmask.dtype != np.int32 or bitmask.ndim not in (1, 2):
        raise BitmaskError(f"a bitmask is int32[words] or int32[batch, words], got {describe(bitmask)}")
    if not logits.flags.writeable:
        raise BitmaskError("the logits are read-only", remedy="Pass a copy.")
    check_distinct(logits, "logits")
    if np.may_share_memory(logits, bitmask):
        raise BitmaskError("the logits and the bitmask share memory", remedy="Pass a copy of the bitmask.")
    check_width(bitmask.shape[-1], logits.shape[-1])
    rows = np.atleast_2d(np.asarray(logits))  # of a subclass the memory alone
    if bitmask.ndim == 2 and len(bitmask) != len(rows):
        raise BitmaskError(f"{len(bitmask)} rows of bitmask for {len(rows)} rows of logits")
    integers = BITS_OF[logits.dtype]
    mask_bits(rows.view(integers), bitmask, np.array(-np.inf, logits.dtype).view(integers)[()])


#: The score of tokens that others forbid and that are all that is allowed: of a beam that is to lose, and finite in
#: float16 whatever the temperature.
LAST_RESORT = -1e3


def revive(scores: Foreign, words: NDArray[np.int32]) -> bool:
    """Give the allowed tokens of a row `LAST_RESORT` where somebody else has forbidden all of them.

    Parameters
    ----------
    scores:
        ``[width]``, masked by ``words``; a NumPy array, or a torch tensor.
    words:
        ``int32[words]``.

    Returns
    -------
    bool
        Whether that was so. Where a token is left, one look at the scores tells.
    """
    place = int(np.argmax(words != 0))
    word = int(words[place]) & 0xFFFFFFFF
    first = place * BITS + (word & -word).bit_length() - 1
    if not word or scores[first] > -np.inf or scores.max() != -np.inf:
        return False
    scores[ids_of(words).tolist()] = LAST_RESORT
    return True


def mask_bits(bits: Array, words: NDArray[np.int32], never: Foreign) -> None:
    """Replace the bits of disallowed tokens by ``never``, in place.

    Parameters
    ----------
    bits:
        ``[batch, width]``, with any strides: the logits' own bits, as integers of their size.
    words:
        ``int32[words]`` or ``int32[batch, words]``. Logits without a bit are not allowed.
    never:
        The bits of ``-inf``, a scalar of the dtype of ``bits``.
    """
    masked = np.empty(bits.shape[1], bits.dtype)
    for row, row_words in zip(bits, np.broadcast_to(words, (len(bits), words.shape[-1])), strict=True):
        copy_allowed(row, row_words, never, masked)
        row[:] = masked


def copy_allowed(row: Array, words: NDArray[np.int32], never: Foreign, target: Array) -> None:
    """The same for one row, ``[width]``, written to ``target``, contiguous, which shares no memory with it."""
    keep = kernels.keep_allowed if row.itemsize == 4 else kernels.keep_allowed_halves
    keep(np.ascontiguousarray(row), np.ascontiguousarray(words), never, target)
