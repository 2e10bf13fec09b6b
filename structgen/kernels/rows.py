"""Rows of bitmasks: decoding, combining, writing ids."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .signatures import Out, int16, int32, int64, uint16, uint32
from .values import LONG_GAP


@kernel
def nearest_base(row: uint32[::1], bases: uint32[:, ::1], n_bases: int64, good_enough: int64) -> tuple[int64, int64]:
    """Which base differs from ``row`` in the fewest bits: 0 is the empty row, ``b`` is ``bases[b - 1]``.

    ``bases`` is ``uint32[*, words]``. Returns (base, bits); stops at the first that is ``good_enough``, the
    empty row first.
    """
    best = 0
    fewest = 0
    for w in range(len(row)):
        fewest += popcount(row[w])
    for b in range(n_bases):
        if fewest <= good_enough:
            break
        bits = 0
        for w in range(len(row)):
            bits += popcount(row[w] ^ bases[b, w])
            if bits >= fewest:
                break
        if bits < fewest:
            fewest = bits
            best = b + 1
    return best, fewest


@helper
def change_gaps(row, kind, gaps, flip):
    """Flip or set the bits of a stored list of ids in a row of a kind: ``uint16`` gaps, see `encode_gaps`."""
    position = 0
    for i in range(len(gaps)):
        gap = np.int64(gaps[i])
        position += gap
        if gap != LONG_GAP:
            bit = kind(np.uint32(1) << np.uint32(position & 31))
            row[position >> 5] = row[position >> 5] ^ bit if flip else row[position >> 5] | bit


@kernel(releases_gil=False)
def flip_gaps(row: Out[uint32[::1]], gaps: uint16[::1]) -> None:
    """Flip the bits of a stored list of ids in ``row``, ``uint32[words]``."""
    change_gaps(row, np.uint32, gaps, True)


@kernel(releases_gil=False)
def set_gaps(row: Out[int32[::1]], gaps: uint16[::1]) -> None:
    """Set the bits of a stored list of ids in ``row``, ``int32[words]``."""
    change_gaps(row, np.int32, gaps, False)


@helper
def write_gap(gap, gaps, position):
    """From one id to the next, from a position on; returns where that ends."""
    while gap >= LONG_GAP:
        gaps[position] = LONG_GAP
        gap -= LONG_GAP
        position += 1
    gaps[position] = gap
    return position + 1


@kernel(releases_gil=False)
def write_gaps(ids: int32[::1], gaps: Out[uint16[::1]]) -> int64:
    """Ascending ids as ``uint16`` gaps, see `encode_gaps`; returns how many."""
    n = 0
    before = np.int64(0)
    for i in range(len(ids)):
        n = write_gap(ids[i] - before, gaps, n)
        before = np.int64(ids[i])
    return n


@kernel(releases_gil=False)
def missing_gaps(row: uint32[::1], gaps: uint16[::1], out: Out[uint16[::1]]) -> int64:
    """Those of a stored list of ids whose bits a row, ``uint32[words]``, does not have, as `write_gaps` has them.

    ``out`` is as long as ``gaps``. Returns how many.
    """
    n = 0
    position = np.int64(0)
    before = np.int64(0)
    for i in range(len(gaps)):
        position += gaps[i]
        if gaps[i] != LONG_GAP and not row[position >> 5] >> np.uint32(position & 31) & np.uint32(1):
            n = write_gap(position - before, out, n)
            before = position
    return n


@kernel(releases_gil=False)
def flip_ids(row: Out[uint32[::1]], ids: int32[::1]) -> None:
    """Flip the bits of token ids in ``row``, ``uint32[words]``."""
    for i in range(len(ids)):
        t = ids[i]
        row[t >> 5] ^= np.uint32(1) << np.uint32(t & 31)


@kernel
def set_bits(row: uint32[::1], base: uint32[::1], out: Out[uint32[::1]]) -> None:
    """Write the ascending positions of the bits in which two rows differ, ``uint32[bits]``."""
    n = 0
    for w in range(len(row)):
        word = row[w] ^ base[w]
        while word:
            low = word & (~word + np.uint32(1))
            out[n] = 32 * w + popcount(low - np.uint32(1))
            n += 1
            word ^= low


@kernel
def keep_allowed(bits: int32[::1], words: int32[::1], never: int32, out: Out[int32[::1]]) -> None:
    """Copy the bits of logits to ``out``, with ``never`` where a token is forbidden, or has no bit in ``words``.

    ``bits`` and ``out`` are as long, and share no memory.
    """
    _keep_allowed(bits, words, never, out)


@kernel
def keep_allowed_halves(bits: int16[::1], words: int32[::1], never: int16, out: Out[int16[::1]]) -> None:
    """`keep_allowed` for logits of 16 bits."""
    _keep_allowed(bits, words, never, out)


@helper
def _keep_allowed(bits, words, never, out):
    """See `keep_allowed`.

    Nothing branches: where allowed and forbidden tokens mix, a branch would be foreseen wrongly half of the time.
    """
    whole = min(len(bits) // 32, len(words))
    for w in range(whole):
        word = words[w]
        for i in range(32):
            keep = -((word >> np.int32(i)) & np.int32(1))
            out[32 * w + i] = ((bits[32 * w + i] ^ never) & keep) ^ never
    for t in range(32 * whole, len(bits)):
        allowed = t // 32 < len(words) and (words[t // 32] >> np.int32(t % 32)) & np.int32(1)
        out[t] = bits[t] if allowed else never


@helper
def popcount(word):
    """How many bits of a ``uint32`` are set."""
    word = word - ((word >> np.uint32(1)) & np.uint32(0x55555555))
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    # Numba computes in 64 bits here: only the fourth byte of the product is the sum.
    return np.int64((word * np.uint32(0x01010101)) >> np.uint32(24)) & 0xFF
