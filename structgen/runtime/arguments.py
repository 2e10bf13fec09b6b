"""Arguments of batches: arrays of integers and of masks, from NumPy, torch or lists."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import BatchError, BitmaskError
from .bitmask import describe

#: Numbers of rows, of tokens, or token ids: a sequence or an array of integers, or a tensor on the CPU.
Integers: TypeAlias = Any


def integers(values: Integers, name: str, *, few: bool = False) -> NDArray[np.int64]:
    """``int64[n]``; a single number only where there may be one (``few``). Raises `BatchError`, which names them."""
    device = getattr(values, "device", None)
    if device is not None and getattr(device, "type", "cpu") != "cpu":
        raise BatchError(f"{name} are read on the CPU, got a tensor on {device}", remedy="Copy it there first.")
    array = np.asarray(values)
    if not array.size:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or (array.ndim != 1 and not (few and array.ndim == 0)):
        raise BatchError(f"{name} are int[n], got {describe(array)}")
    return array.astype(np.int64, copy=False)


def checked_masks(bitmask: Any, count: int, words: int) -> NDArray[np.int32]:
    """``int32[count, width]``, at least so many words wide, writable. Raises `BitmaskError`."""
    device = getattr(bitmask, "device", None)
    if device is not None and getattr(device, "type", "cpu") != "cpu":
        raise BitmaskError(
            f"masks are written to CPU memory, got a tensor on {device}",
            remedy="Use structgen.runtime.devices.DeviceRows, which keeps masks on the device.",
        )
    masks: Any = np.asarray(bitmask) if hasattr(bitmask, "__array__") else bitmask
    if (
        not isinstance(masks, np.ndarray) or masks.dtype != np.int32
        or masks.ndim != 2 or len(masks) != count or masks.shape[1] < words
    ):  # fmt: skip
        raise BitmaskError(
            f"the bitmask is int32[{count}, {words}] or wider, got {describe(bitmask)}",
            remedy="Allocate structgen.runtime.allocate(batch, width).",
        )
    if not masks.flags.writeable:
        raise BitmaskError("the bitmask is read-only", remedy="Pass an array that can be written.")
    return masks  # type: ignore[no-any-return]
