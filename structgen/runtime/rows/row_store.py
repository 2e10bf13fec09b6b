"""`RowStore`: the masks that sequences of a batch are at, each distinct one once, as one array.

A device holds the same array and needs only numbers then (`structgen.runtime.logits.devices`).
"""

from __future__ import annotations

from weakref import ref

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import BatchError
from ...system.arguments import checked_masks
from ...system.memo import Memo
from ...vocabulary.vocabulary import Vocabulary
from .bitmask import fill_first

#: Rows that are always there: nothing is allowed; the EOS ids; every id of the vocabulary.
NO_IDS, EOS_IDS, ALL_IDS = 0, 1, 2

#: Rows with more words that are not zero are written whole.
_NARROW = 64

#: So many ids are given out before they are given out again.
_MOST_IDS = 1 << 30

#: Rows to begin with, and bytes at most.
_FEW, MOST_BYTES = 64, 1 << 27


class RowStore:
    """Distinct rows by number.

    When the store begins anew, rows get numbers that others had. To whoever keeps them they are known by ids, which
    are not used twice: the numbers at first, and then others.

    Parameters
    ----------
    vocabulary:
        The tokens.
    most_bytes:
        Bytes of rows that are kept; past that the store begins anew.
    """

    def __init__(self, vocabulary: Vocabulary, most_bytes: int = MOST_BYTES) -> None:
        self.words = vocabulary.words
        self._most = max(4 * _FEW, most_bytes // (4 * self.words))
        #: How often the store began anew: rows of an earlier generation have other numbers.
        self.generation = 0
        self._ahead = 0  # of its number each row's id is, but for rows that are always there
        #: ``int32[capacity, words]``
        self.rows = np.zeros((_FEW, self.words), np.int32)
        #: ``int32[capacity]``, ``int32[capacity, 64]``: how many words are not zero, -1 for many; where they are.
        self.counts = np.zeros(_FEW, np.int32)
        self.offsets = np.zeros((_FEW, _NARROW), np.int32)
        every = np.zeros(self.words, np.int32)
        fill_first(every, vocabulary.size)
        self._always = [np.zeros(self.words, np.int32), vocabulary.eos_row, every]
        self._begin()

    def _begin(self) -> None:
        self._numbers: dict[int, list[int]] = {}  # by the hash of a row's bytes
        self._by_identity: Memo[int, tuple[ref[NDArray[np.int32]], int]] = Memo(self._most)
        self._count = 0
        for row in self._always:
            self._numbers.setdefault(hash(row.tobytes()), []).append(self._append(row))

    def __len__(self) -> int:
        return self._count

    def is_full(self) -> bool:
        """Whether it is time to `forget`; there still is room for one step."""
        return self._count >= self._most

    def forget(self) -> None:
        """Begin anew."""
        self.generation += 1
        self._ahead = (self._ahead + self._count - len(self._always)) % _MOST_IDS
        self._begin()

    def copy(self, numbers: NDArray[np.int32], bitmask: object) -> None:
        """Write rows by number, ``int32[n]``, into ``int32[n, words]`` or wider; see `GuideBatch.fill_bitmask`."""
        masks = checked_masks(bitmask, len(numbers), self.words)
        whole = masks if masks.flags.c_contiguous else np.empty(masks.shape, np.int32)
        kernels.copy_rows(numbers, self.rows, self.counts, self.offsets, whole)
        if whole is not masks:
            masks[...] = whole

    def ids_of(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The ids of rows, ``int32[n]``: a new array."""
        ids: NDArray[np.int32] = numbers.copy()
        if self._ahead:
            ids[ids >= len(self._always)] += np.int32(self._ahead)
        return ids

    def numbers_of(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of rows, by their ids. Raises `BatchError` for ids from before the store began anew."""
        if not self.generation:
            return ids
        least = len(self._always)
        numbers = np.where(ids < least, ids, np.maximum(ids - np.int32(self._ahead), -1))
        wrong = (numbers >= self._count) | ((numbers < least) & (ids >= least))
        if wrong.any():
            raise BatchError(
                f"row id {ids[wrong][0]} is of a mask that is not kept any more",
                remedy="Ask for row_ids() in the step that uses them.",
            )
        return numbers

    def add(self, row: NDArray[np.int32]) -> int:
        """The number of a row, ``int32[words]``, which nobody writes to any more."""
        known = self._by_identity.get(id(row))
        if known is not None and known[0]() is row:  # and not another one where that was
            return known[1]
        data = row.tobytes()
        alike = self._numbers.setdefault(hash(data), [])
        number = next((each for each in alike if self.rows[each].tobytes() == data), None)
        if number is None:
            number = self._append(row)
            alike.append(number)
        self._by_identity[id(row)] = ref(row), number
        return number

    def _append(self, row: NDArray[np.int32]) -> int:
        number = self._count
        if number == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
            self.offsets = np.concatenate([self.offsets, np.zeros_like(self.offsets)])
        self.rows[number] = row
        offsets = np.flatnonzero(row)
        self.counts[number] = len(offsets) if len(offsets) <= _NARROW else -1
        if len(offsets) <= _NARROW:
            self.offsets[number, : len(offsets)] = offsets
        self._count += 1
        return number
