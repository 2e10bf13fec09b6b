"""Bitmasks applied to logits in NumPy arrays.

A table of 256 entries turns each byte of the mask into eight lanes of all ones or all zeros, and three bitwise
operations keep or replace the logits' own bits; `structgen.runtime.logits.logits` has the measurements.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError
from ...system.arguments import check_distinct, describe
from ...system.types import Array, DType
from ..rows.bitmask import BITS, check_width, little_endian_bytes

#: Where one word in so many has a bit set, the others are not looked into.
_SPARSE = 8

#: For each dtype of logits, the integer dtype of the same size.
_BITS_OF: dict[DType, DType] = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float16): np.dtype(np.int16)}


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
    if not isinstance(logits, np.ndarray) or logits.dtype not in _BITS_OF or logits.ndim not in (1, 2):
        raise BitmaskError(f"logits are float32 or float16 [width] or [batch, width], got {describe(logits)}")
    if not isinstance(bitmask, np.ndarray) or bitmask.dtype != np.int32 or bitmask.ndim not in (1, 2):
        raise BitmaskError(f"a bitmask is int32[words] or int32[batch, words], got {describe(bitmask)}")
    if not logits.flags.writeable:
        raise BitmaskError("the logits are read-only", remedy="Pass a copy.")
    check_distinct(logits, "logits")
    if np.may_share_memory(logits, bitmask):
        raise BitmaskError("the logits and the bitmask share memory", remedy="Pass a copy of the bitmask.")
    width, words = logits.shape[-1], bitmask.shape[-1]
    check_width(words, width)
    rows = np.atleast_2d(np.asarray(logits))  # of a subclass the memory alone
    if bitmask.ndim == 2 and len(bitmask) != len(rows):
        raise BitmaskError(f"{len(bitmask)} rows of bitmask for {len(rows)} rows of logits")
    covered = min(width, words * 32)
    integers = _BITS_OF[logits.dtype]
    never = int(np.array(-np.inf, logits.dtype).view(integers))
    mask_bits(rows[:, :covered].view(integers), bitmask, never)
    rows[:, covered:] = -np.inf


def mask_bits(bits: Array, words: NDArray[np.int32], never: int) -> None:
    """Replace the bits of disallowed tokens by ``never``, in place.

    Parameters
    ----------
    bits:
        ``[batch, width]``: the logits' own bits, as integers of their size.
    words:
        ``int32[words]`` or ``int32[batch, words]``, with ``width`` bits at least.
    never:
        The bits of ``-inf``.
    """
    rows = np.broadcast_to(words, (len(bits), words.shape[-1]))
    for row, row_words in zip(bits, rows, strict=True):
        mask_row(row, row_words, never, row)


def mask_row(row: Array, words: NDArray[np.int32], never: int, target: Array) -> None:
    """The same for one row, ``[width]``, written to ``target``, which may be the row itself."""
    places = words.nonzero()[0]
    if len(places) * _SPARSE < len(words) and row.flags.c_contiguous and target.flags.c_contiguous:
        _mask_few(row, words, places, never, target)
    else:
        _mask_dense(row, words, never, target)


def _mask_dense(row: Array, words: NDArray[np.int32], never: int, target: Array) -> None:
    keep = _lanes(row.dtype).take(little_endian_bytes(words), axis=0).reshape(-1)[: len(row)]
    # ((x ^ never) & keep) ^ never: x where keep is all ones, never where it is zero.
    np.bitwise_xor(row, never, out=target)
    target &= keep
    target ^= never


def _mask_few(row: Array, words: NDArray[np.int32], places: NDArray[np.intp], never: int, target: Array) -> None:
    """The same, where few words have a bit set: only those are looked into."""
    whole = len(row) // BITS
    places = places[: np.searchsorted(places, whole)]
    kept, rest = row[: whole * BITS].reshape(-1, BITS)[places], row[whole * BITS :].copy()
    _mask_dense(kept.reshape(-1), words[places], never, kept.reshape(-1))
    target.fill(never)
    target[: whole * BITS].reshape(-1, BITS)[places] = kept
    if len(rest):
        _mask_dense(rest, words[whole : whole + 1], never, target[whole * BITS :])


@cache
def _lanes(dtype: DType) -> Array:
    """``dtype[256, 8]``: all ones where the bit of the byte is set, else zero."""
    return -(np.arange(256)[:, None] >> np.arange(8) & 1).astype(dtype)
