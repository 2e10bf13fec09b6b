"""The pool of an index's bitmask rows: each distinct row once, and most of them small.

A row is a *base* with some bits flipped. Base 0 is the empty row, so that a row of a few tokens is a short list
of ids; further bases are whole rows, and a row that nearly equals one is a short list of differences. A row is
stored whole, as a new base, when no list shorter than half of it would do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .container import smallest

#: Bytes of decoded rows that a pool keeps at hand; past that it starts afresh.
DECODED_BYTES = 64 << 20


@dataclass(frozen=True)
class Segments:
    """The rows of one state: ``rows[i]`` holds for counts from ``begins[i]`` up to the next one's beginning.

    A state without a live counter has the single segment that begins at 0.
    """

    begins: tuple[int, ...]
    rows: tuple[int, ...]


class RowPool:
    """Bitmask rows of one vocabulary, deduplicated. Rows are only ever added.

    Lists of ids are kept as gaps (see `encode_gaps`), two bytes for nearly every id.

    Parameters
    ----------
    size:
        Number of token ids; rows are ``int32[ceil(size / 32)]``.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.words = -(-size // 32)
        self._rows: list[tuple[int, NDArray[np.uint16]]] = []
        self._bases = np.zeros((0, self.words), np.uint32)  # the first `_n_bases` rows are in use
        self._n_bases = 0
        self._known: dict[bytes, int] = {}
        self._decoded: dict[int, NDArray[np.int32]] = {}

    @property
    def longest_list(self) -> int:
        """Rows of at most this many tokens are always lists of ids."""
        return self.words // 2

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows as stored, without what was decoded for use."""
        return 4 * self.words * self._n_bases + sum(4 + gaps.nbytes for _, gaps in self._rows)

    # -- adding ----------------------------------------------------------------------------------------

    def add_ids(self, ids: NDArray[Any]) -> int:
        """The number of the row with exactly these token ids, ascending, at most `longest_list` of them."""
        gaps = encode_gaps(ids)
        return self._add(gaps.tobytes(), 0, gaps)

    def add_dense(self, row: NDArray[np.uint32]) -> int:
        """The number of this row, ``uint32[words]``; the array may be reused by the caller."""
        from .. import kernels

        key = row.tobytes()
        known = self._known.get(key)
        if known is not None:
            return known
        base, bits = kernels.nearest_base(row, self._bases, self._n_bases, self.longest_list)
        if bits > self.longest_list:
            return self._add(key, self._new_base(row), encode_gaps(np.zeros(0, np.uint32)))
        if base == 0:
            return self.add_ids(kernels.set_bits(row, np.zeros_like(row), bits))
        return self._add(key, base, encode_gaps(kernels.set_bits(row, self._bases[base - 1], bits)))

    def _new_base(self, row: NDArray[np.uint32]) -> int:
        if self._n_bases == len(self._bases):
            wider = np.empty((2 * self._n_bases + 2, self.words), np.uint32)
            wider[: self._n_bases] = self._bases[: self._n_bases]
            self._bases = wider
        self._bases[self._n_bases] = row
        self._n_bases += 1
        return self._n_bases

    def _add(self, key: bytes, base: int, gaps: NDArray[np.uint16]) -> int:
        known = self._known.get(key)
        if known is not None:
            return known
        self._rows.append((base, gaps))
        self._known[key] = len(self._rows) - 1
        return len(self._rows) - 1

    # -- reading ---------------------------------------------------------------------------------------

    def dense(self, row: int) -> NDArray[np.int32]:
        """A row as a read-only ``int32[words]``; the stored array itself where the row is stored whole."""
        found = self._decoded.get(row)
        if found is not None:
            return found
        base, gaps = self._rows[row]
        if base and not len(gaps):
            bits = self._bases[base - 1]
        else:
            bits = self._bases[base - 1].copy() if base else np.zeros(self.words, np.uint32)
            ids = decode_gaps(gaps)
            np.bitwise_xor.at(bits, ids >> 5, np.uint32(1) << (ids & np.uint32(31)))
        dense: NDArray[np.int32] = bits.view(np.int32)
        dense.flags.writeable = False
        if len(self._decoded) * 4 * self.words > DECODED_BYTES:
            self._decoded.clear()
        self._decoded[row] = dense
        return dense

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """The sections ``bases``, ``row_base``, ``row_start`` and ``row_gaps`` (see docs/format.md)."""
        lengths = np.array([0] + [len(gaps) for _, gaps in self._rows], np.int64)
        return {
            "bases": self._bases[: self._n_bases],
            "row_base": smallest(np.array([base for base, _ in self._rows], np.int64)),
            "row_start": smallest(np.cumsum(lengths)),
            "row_gaps": np.concatenate([np.zeros(0, np.uint16), *(gaps for _, gaps in self._rows)]),
        }

    @classmethod
    def from_sections(cls, size: int, sections: dict[str, NDArray[Any]], where: str) -> RowPool:
        """Rows used where they lie, after a check of every index in them. Raises `FormatError`."""
        pool = cls(size)
        try:
            bases, row_base = sections["bases"], sections["row_base"]
            row_start, gaps = sections["row_start"], sections["row_gaps"]
        except KeyError as error:
            raise FormatError(f"section {error} is missing", where=where) from error
        starts = row_start.astype(np.int64)
        sound = (
            bases.ndim == 2 and bases.dtype == np.uint32 and bases.shape[1] == pool.words
            and row_base.ndim == row_start.ndim == gaps.ndim == 1
            and row_base.dtype.kind == row_start.dtype.kind == "u" and gaps.dtype == np.uint16
            and len(starts) == len(row_base) + 1 and starts[0] == 0 and starts[-1] == len(gaps)
            and not (np.diff(starts) < 0).any()
            and (not len(row_base) or int(row_base.max()) <= len(bases))
            and (size % 32 == 0 or not (bases[:, -1] >> np.uint32(size % 32)).any())
            and _largest_ids(gaps, starts) < size
        )  # fmt: skip
        if not sound:
            raise FormatError("the rows point outside the vocabulary or the pool", where=where)
        bounds = starts.tolist()
        pool._bases, pool._n_bases = bases, len(bases)
        pool._rows = [(base, gaps[bounds[i] : bounds[i + 1]]) for i, base in enumerate(row_base.tolist())]
        return pool

    def index_known(self) -> None:
        """Prepare to add to rows that were loaded, so that none is stored twice."""
        self._bases = self._bases.copy()  # what was mapped read-only is another type to the kernels
        for number, (base, gaps) in enumerate(self._rows):
            key = gaps if base == 0 else self.dense(number)
            self._known.setdefault(key.tobytes(), number)


#: Stands for a step of this many ids without a token at its end.
_LONG_GAP = 0xFFFF


def encode_gaps(ids: NDArray[Any]) -> NDArray[np.uint16]:
    """Ascending ids as the steps between them, the first from 0; a step too long for 16 bits is several."""
    steps = np.diff(ids.astype(np.int64), prepend=0)
    long = steps // _LONG_GAP
    if not long.any():
        return steps.astype(np.uint16)
    gaps = np.full(len(steps) + int(long.sum()), _LONG_GAP, np.uint16)
    gaps[np.cumsum(long + 1) - 1] = steps % _LONG_GAP
    return gaps


def decode_gaps(gaps: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """The inverse of `encode_gaps`."""
    ids: NDArray[np.uint32] = np.cumsum(gaps, dtype=np.uint32)[gaps != _LONG_GAP]
    return ids


def _largest_ids(gaps: NDArray[np.uint16], starts: NDArray[np.int64]) -> int:
    """The largest position that any of the lists reaches; -1 where there is none."""
    sums = np.concatenate([[0], np.cumsum(gaps, dtype=np.int64)])
    return int((sums[starts[1:]] - sums[starts[:-1]]).max(initial=-1))
