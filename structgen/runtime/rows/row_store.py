"""`RowStore`: the masks that sequences of a batch are at, each distinct one once, as one array.

A device holds the same array and needs only numbers then (`structgen.runtime.logits.devices`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import BatchError
from ...vocabulary.vocabulary import Vocabulary
from .bitmask import fill_first
from .head import Head

#: Rows that are always there: nothing is allowed; the EOS ids; every id of the vocabulary.
NO_IDS, EOS_IDS, ALL_IDS = 0, 1, 2

#: So many ids are given out before they are given out again.
_MOST_IDS = 1 << 30

#: Rows and bytes at most; there is room for so many rows at first, and at least for four times as many.
_MOST_ROWS, MOST_BYTES, _FEW = 1 << 15, 1 << 27, 64


def pages(most: int, words: int) -> Head:
    """Room for so many different rows by number, for kernels. The system gives memory as they are written."""
    head, slots = Head(kernels.PAGES_HEAD), np.full(2 << most.bit_length(), -1, np.int32)
    head.put(kernels.G_ROWS, np.empty(most * words, np.int32), np.empty(most, np.int64), slots)
    return head


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
        self._most = min(max(4 * _FEW, most_bytes // (4 * self.words)), _MOST_ROWS)
        #: How often the store began anew: rows of an earlier generation have other numbers.
        self.generation = 0
        self._ahead = 0  # of its number each row's id is, but for rows that are always there
        #: The rows that are always there, ``int32[3, words]``.
        self.always = np.zeros((3, self.words), np.int32)
        self.always[EOS_IDS] = vocabulary.eos_row
        fill_first(self.always[ALL_IDS], vocabulary.size)
        self._begin()

    def _begin(self) -> None:
        self._pages = pages(_FEW + len(self.always), self.words)
        self._put(self.always, are_new=True)

    @property
    def _rows(self) -> NDArray[np.int32]:
        found: NDArray[np.int32] = self._pages[kernels.G_ROWS].reshape(-1, self.words)[: len(self)]
        return found

    def __len__(self) -> int:
        return int(self._pages.words[kernels.N_PAGES])

    def is_full(self) -> bool:
        """Whether it is time to `forget`; there still is room for one step."""
        return len(self) >= self._most

    def forget(self) -> None:
        """Begin anew."""
        self.generation += 1
        self._ahead = (self._ahead + len(self) - len(self.always)) % _MOST_IDS
        self._begin()

    def dense(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Rows by number, ``int32[n]``, as a new ``int32[n, words]``."""
        found: NDArray[np.int32] = self._rows[numbers]
        return found

    def ids_of(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The ids of rows, ``int32[n]``: a new array."""
        ids: NDArray[np.int32] = numbers.copy()
        if self._ahead:
            ids[ids >= len(self.always)] += np.int32(self._ahead)
        return ids

    def numbers_of(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of rows, by their ids. Raises `BatchError` for ids from before the store began anew."""
        if not self.generation:
            return ids
        least = len(self.always)
        numbers = np.where(ids < least, ids, np.maximum(ids - np.int32(self._ahead), -1))
        wrong = (numbers >= len(self)) | ((numbers < least) & (ids >= least))
        if wrong.any():
            raise BatchError(
                f"row id {ids[wrong][0]} is of a mask that is not kept any more",
                remedy="Ask for row_ids() in the step that uses them.",
            )
        return numbers

    def add(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers, ``int32[n]``, of rows, ``int32[n, words]``: of equal ones, or the next, under which there are
        copies.
        """
        while len(self) + len(rows) > len(self._pages[kernels.G_HASHES]):
            before, self._pages = self._rows, pages(2 * len(self._pages[kernels.G_HASHES]), self.words)
            self._put(before, are_new=True)
        return self._put(rows, are_new=False)

    def _put(self, rows: NDArray[np.int32], *, are_new: bool) -> NDArray[np.int32]:
        numbers = np.empty(len(rows), np.int32)
        kernels.add_pages(self._pages.words, np.ascontiguousarray(rows), are_new, numbers)
        return numbers
