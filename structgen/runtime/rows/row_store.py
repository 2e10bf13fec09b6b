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

#: Rows with more words that are not zero are kept whole.
_NARROW = 64

#: So many ids are given out before they are given out again.
_MOST_IDS = 1 << 30

#: Rows and bytes at most; so many more rows have room at once, and a quarter of the least that are kept.
_MOST_ROWS, MOST_BYTES, _FEW = 1 << 15, 1 << 27, 64


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
        self.words, self._least = vocabulary.words, vocabulary.least_words
        self._most = min(max(4 * _FEW, most_bytes // (4 * self.words)), _MOST_ROWS)
        #: How often the store began anew: rows of an earlier generation have other numbers.
        self.generation = 0
        self._ahead = 0  # of its number each row's id is, but for rows that are always there
        every = np.zeros(self.words, np.int32)
        fill_first(every, vocabulary.size)
        self._always = [np.zeros(self.words, np.int32), vocabulary.eos_row, every]
        for row in self._always:  # as those of machines: a kernel is compiled for either kind
            row.flags.writeable = False
        self._hold(self._most + _FEW)
        self._begin()

    def _hold(self, capacity: int) -> None:
        """Have room for so many rows; the system gives memory as they are written."""
        narrow = capacity, _NARROW
        # See `kernels.copy_rows`.
        self._rows = (
            np.empty((capacity, self.words), np.int32),
            np.empty(capacity, np.int32),
            np.empty(narrow, np.int32),
            np.empty(narrow, np.int32),
        )
        self._hashes = np.empty(capacity, np.int64)
        self._slots = np.full(1 << (2 * capacity).bit_length(), -1, np.int32)  # see `kernels.add_row`

    def _begin(self) -> None:
        self._by_identity: Memo[int, tuple[ref[NDArray[np.int32]], int]] = Memo(self._most)
        self._used = np.zeros(2, np.int64)  # rows, and wide ones
        self._slots[:] = -1
        for row in self._always:
            self.add(row)

    def __len__(self) -> int:
        return int(self._used[0])

    def is_full(self) -> bool:
        """Whether it is time to `forget`; there still is room for one step."""
        return len(self) >= self._most

    def forget(self) -> None:
        """Begin anew."""
        self.generation += 1
        self._ahead = (self._ahead + len(self) - len(self._always)) % _MOST_IDS
        self._begin()

    def copy(self, numbers: NDArray[np.int32], bitmask: object) -> None:
        """Write rows by number, ``int32[n]``, into ``int32[n, words]`` or wider; see `GuideBatch.fill_bitmask`."""
        masks = checked_masks(bitmask, len(numbers), self._least)
        width = max(self.words, masks.shape[1])
        is_direct = masks.flags.c_contiguous and width == masks.shape[1]
        whole = masks if is_direct else np.empty((len(numbers), width), np.int32)
        kernels.copy_rows(numbers, *self._rows, whole)
        if whole is not masks:
            masks[...] = whole[:, : masks.shape[1]]

    def change(self, numbers: NDArray[np.int32], shown: NDArray[np.int32], masks: NDArray[np.int32]) -> None:
        """`copy` into masks that hold the rows ``shown``, which become ``numbers``."""
        kernels.change_rows(numbers, shown, *self._rows, masks)

    def dense(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Rows by number, ``int32[n]``, as a new ``int32[n, words]``."""
        found = np.empty((len(numbers), self.words), np.int32)
        kernels.copy_rows(numbers, *self._rows, found)
        return found

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
        wrong = (numbers >= len(self)) | ((numbers < least) & (ids >= least))
        if wrong.any():
            raise BatchError(
                f"row id {ids[wrong][0]} is of a mask that is not kept any more",
                remedy="Ask for row_ids() in the step that uses them.",
            )
        return numbers

    def add(self, row: NDArray[np.int32], *, keeps: bool = True) -> int:
        """The number of a row, ``int32[words]``, which nobody writes to any more.

        ``keeps`` is whether it may come again as this array.
        """
        known = self._by_identity.get(id(row)) if keeps else None
        if known is not None and known[0]() is row:  # and not another one where that was
            return known[1]
        self._make_room(1)
        number: int = kernels.add_row(row, *self._rows, self._hashes, self._slots, self._used)
        if keeps:
            self._by_identity[id(row)] = ref(row), number
        return number

    def _make_room(self, count: int) -> None:
        """Have room for so many more rows."""
        before, hashes, used = self._rows, self._hashes, len(self)
        if used + count <= len(hashes):
            return
        self._hold(max(2 * used, used + count))
        for i in range(len(before)):
            self._rows[i][:used] = before[i][:used]
        self._hashes[:used] = hashes[:used]
        kernels.place_rows(self._hashes, used, self._slots)
