"""Masks that stay on a device: the rows of a batch are uploaded once, and a step sends one number a sequence.

What the logits' device needs is a *pool* of rows, ``int32[slots, words]``, and the slot of each sequence. A row that
the device does not have yet is uploaded, into the slot that was not used for longest; of all rows that guides need
most are known after a few texts, and those of a regex from the beginning (`DeviceRows.preload`).

On CUDA the kernel is Triton's, elsewhere, and under `torch.compile`, plain torch. Nothing waits for the device.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import BitmaskError
from ...system.arguments import integer
from ..index.index import Index
from ..rows.bitmask import check_width
from ..rows.row_store import RowStore
from .masks import check_logits, mask_rows, selection

#: Bytes of a pool.
_POOL_BYTES = 1 << 26


class DeviceRows:
    """A batch's masks on a device.

    Parameters
    ----------
    store:
        The masks by number, `GuideBatch.rows`.
    device:
        Where the logits are.
    slots:
        How many masks the device holds at a time; 64 MiB of them by default. One step cannot use more.
    """

    def __init__(self, store: RowStore, device: torch.device | str, *, slots: int | None = None) -> None:
        slots = max(1024, _POOL_BYTES // (4 * store.words)) if slots is None else slots
        slots = integer(slots, "slots", BitmaskError, least=1)
        self.pool = torch.zeros((slots, store.words), dtype=torch.int32, device=torch.device(device))
        #: That of the pool: for ``"cuda"`` the GPU that was torch's current one.
        self.device = self.pool.device
        #: Bytes that went to the device: masks, and numbers of slots.
        self.bytes_of_rows = self.bytes_of_slots = 0
        self._store = store
        self._clock = 0
        self._flush()

    def _flush(self) -> None:
        self._generation = self._store.generation
        self._slot_of = np.full(64, -1, np.int32)  # by row
        self._row_in = np.full(len(self.pool), -1, np.int32)  # by slot
        self._used = np.zeros(len(self.pool), np.int64)  # when, by slot

    def preload(self, index: Index) -> None:
        """Upload the masks of an index that are known ahead of time: those of a regex, where it was compiled eagerly.

        Of other definitions masks are put together as they are met. More than the pool holds are left out.
        """
        rows = [*islice(index.machine.stored_rows(), len(self.pool))]
        self.slots(self._store.ids_of(self._store.add(np.array(rows, np.int32).reshape(-1, self._store.words))))

    def slots(self, row_ids: NDArray[np.int32]) -> torch.Tensor:
        """Where the masks of rows are in the pool, ``int32[n]`` on the device; those that are missing are uploaded.

        Parameters
        ----------
        row_ids:
            ``int32[n]``, as `GuideBatch.row_ids` gives them.

        Raises
        ------
        BatchError
            For ids from before the store began anew.
        BitmaskError
            For more different rows than the pool has slots.
        """
        row_ids = self._store.numbers_of(row_ids)
        if self._generation != self._store.generation:
            self._flush()
        if len(self._store) > len(self._slot_of):
            room = max(len(self._store), 2 * len(self._slot_of)) - len(self._slot_of)
            self._slot_of = np.pad(self._slot_of, (0, room), constant_values=-1)
        self._clock += 1
        slots = self._slot_of[row_ids]
        self._used[slots[slots >= 0]] = self._clock
        if (slots < 0).any():
            self._upload(np.unique(row_ids[slots < 0]))
            slots = self._slot_of[row_ids]
        self.bytes_of_slots += slots.nbytes
        return self._sent(torch.from_numpy(slots))

    def _upload(self, rows: NDArray[np.int32]) -> None:
        oldest = np.argsort(self._used, kind="stable")[: len(rows)]
        if len(oldest) < len(rows) or (self._used[oldest] == self._clock).any():
            raise BitmaskError(
                f"a step needs more different masks than the {len(self.pool)} that the device has room for",
                remedy="Pass a larger slots=.",
            )
        before = self._row_in[oldest]
        self._slot_of[before[before >= 0]] = -1
        self._row_in[oldest], self._slot_of[rows], self._used[oldest] = rows, oldest, self._clock
        staged = torch.from_numpy(self._store.dense(rows))
        self.bytes_of_rows += staged.nbytes
        self.pool.index_copy_(0, self._sent(torch.from_numpy(oldest)), self._sent(staged))

    def _sent(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor on the device. From pinned memory, which torch keeps until the copy is done, nobody waits."""
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def mask(self, logits: torch.Tensor, row_ids: NDArray[np.int32], *, rows: torch.Tensor | None = None) -> None:
        """Set the logits of disallowed tokens to ``-inf``, in place.

        Parameters
        ----------
        logits:
            ``[n, width]``, float32, float16 or bfloat16, with any strides, on the device. They may be wider than the
            vocabulary (padding): logits without a bit become ``-inf``.
        row_ids:
            ``int32[n]``: the masks, as `GuideBatch.row_ids` gives them.
        rows:
            ``int64[n]``, rather on the device: the rows of ``logits`` to mask, each once; None for all. The others
            stay as they are.

        Raises
        ------
        BitmaskError
            For logits of another dtype, shape, width or device, or another number of rows.
        """
        check_logits(logits, (2,))
        rows = None if rows is None else selection(rows, logits)
        masked = logits if rows is None else logits.index_select(0, rows)
        check_fit(masked, self.pool, len(row_ids))
        mask_rows(masked, self.pool, self.slots(row_ids))
        if rows is not None:
            logits.index_copy_(0, rows, masked)


def check_fit(logits: torch.Tensor, pool: torch.Tensor, count: int) -> None:
    """Raise `BitmaskError` unless logits have ``count`` rows and can be masked by rows of a pool."""
    check_logits(logits, (2,))
    if not is_same_device(logits.device, pool.device):
        remedy = "Make the masks with the device of the logits: device=logits.device."
        raise BitmaskError(f"the masks are on {pool.device}, the logits on {logits.device}", remedy=remedy)
    if len(logits) != count:
        raise BitmaskError(f"{count} masks for {len(logits)} rows of logits")
    check_width(pool.shape[1], logits.shape[1])


def is_same_device(one: torch.device, other: torch.device) -> bool:
    """Whether two tensors' devices are the same one; only what has one of a kind may leave out the number."""
    return one.type == other.type and (one.index or 0) == (other.index or 0)
