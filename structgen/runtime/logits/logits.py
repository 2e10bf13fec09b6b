"""Bitmasks applied to torch logits, on any device.

Two ways to the same result. *On the CPU*, `_mask_by_kernel`: one pass over the logits' own bits, which are kept
or replaced. Nothing branches, which is what `masked_fill_` spends its time on where allowed and disallowed tokens
mix, and it happens on the calling thread: torch splits arrays of this size over all cores, and when those
are busy with other work, each operation waits for the slowest. *Elsewhere*, and under `torch.compile`,
`_mask_by_shift`: a broadcast shift and a `masked_fill_`, with static shapes and no transfer to the host, for
a compiler to fuse.

Measured on two cores of a shared machine (torch 2.13, NumPy 2.3), microseconds for one row of 128,256 tokens,
half of them allowed at random / 96% allowed in runs and pieces; the last column is eight float32 rows, half
allowed, while other processes kept both cores busy:

==================================================  ===============  ===============  ============
way                                                 float32          bfloat16         8 rows, busy
==================================================  ===============  ===============  ============
shift, compare, `masked_fill_`                      501 / 249        509 / 257
`numpy.unpackbits` (20 of it), `masked_fill_`       385 / 146        335 / 111        11,400
table of bytes to eight booleans, `masked_fill_`    416 / 203        350 / 167
`numpy.copyto(where=)`                              730 / 174
skip full and empty words, then as above            536 / 306        660 / 298
`numpy.unpackbits`, `torch.where`                   345 / 127        292 / 122
table of infinities, `torch.minimum`                65 / 90          56 / 110
table of bits, bitwise, by torch                    80 / 69          67 / 74          8,900
table of bits, bitwise, by NumPy, row by row        78 / 79          41 / 42          1,100
==================================================  ===============  ===============  ============

The kernel takes 12 in float32 and 9 in two bytes, whatever the mask, with everything in the caches; in
``generate()``, right after a pass of the model, a row's copy (`masked_copy`) takes 150 in place of 250.

`torch.minimum` would leave a NaN where a token is forbidden, and `argmax` prefers NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import BitmaskError
from ...system.arguments import describe, integers, overlaps, sharing
from ...system.types import Array, Foreign
from ..guide.batches import fill_batch
from ..rows.bitmask import BITS, check_width
from .array_logits import LAST_RESORT, copy_allowed, mask_bits
from .array_logits import revive as revive_row

__all__ = ["apply_bitmask", "fill_batch"]

#: For each dtype of logits, the integer dtype of the same size, in which the bits are kept or replaced.
LOGITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}

_NEVER = float("-inf")


def apply_bitmask(
    logits: torch.Tensor,
    bitmask: torch.Tensor | NDArray[np.int32],
    *,
    rows: torch.Tensor | Sequence[int] | None = None,
) -> None:
    """Set the logits of disallowed tokens to ``-inf``, in place.

    Shapes, dtypes and (for ``rows`` that the host knows) row numbers are checked; on an accelerator nothing
    waits for the device, so it can be called inside a CUDA stream and under `torch.compile`.

    Parameters
    ----------
    logits:
        ``[width]`` or ``[batch, width]``, float32, float16 or bfloat16, with any strides, on any device. It
        may be wider than the bitmask, or than the vocabulary (padding): logits without a bit become
        ``-inf``.
    bitmask:
        ``int32[words]``, for every row, or ``int32[batch, words]``: a NumPy array, or a tensor on any
        device. What lies elsewhere is copied to the logits' device, without waiting where that is CUDA.
    rows:
        The rows of ``logits`` to mask, each once; row ``i`` of ``bitmask`` is for row ``rows[i]``. The
        others stay as they are. On an accelerator a tensor of rows is taken as it is, unchecked.

    Raises
    ------
    BitmaskError
        For logits or a bitmask of another dtype, layout or shape, logits whose elements share memory (of a tensor
        that was expanded) or that require a gradient, more words than the logits need, a bitmask with another
        number of rows, or a row that is out of range or named twice.
    """
    check_logits(logits, (1, 2))
    words = _tensor_of(bitmask, logits.device)
    check_width(words.shape[-1], logits.shape[-1])
    if rows is None:
        _check_rows(words, logits, logits.shape[0])
        _mask(logits, words)
        return
    if logits.dim() != 2:
        raise BitmaskError("rows= needs logits of shape [batch, width]", where=describe(logits))
    selected = selection(rows, logits)
    _check_rows(words, logits, selected.shape[0])
    masked = logits.index_select(0, selected)
    _mask(masked, words)
    logits.index_copy_(0, selected, masked)


def apply_masks(logits: torch.Tensor, masks: Mapping[int, NDArray[np.int32]]) -> None:
    """`apply_bitmask` with a mask, ``int32[words]``, for some rows by number, ascending; the others stay."""
    if masks:
        rows = None if len(masks) == len(logits) else list(masks)
        apply_bitmask(logits, np.stack(list(masks.values())), rows=rows)


def revive(logits: torch.Tensor, masks: Mapping[int, NDArray[np.int32]]) -> bool:
    """Allow the tokens of masks again in masked rows of which somebody else has forbidden all that is left.

    Returns whether there are such rows. On an accelerator this waits for the device.
    """
    rows = list(masks)
    if logits.device.type != "cpu":
        rows = [row for row in (logits.amax(-1) == _NEVER).nonzero().flatten().tolist() if row in masks]
    return bool(sum(revive_row(logits[row], masks[row]) for row in rows))


def revive_all(logits: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """`revive` for all rows, by ``int32[batch, words]`` on their device, for which nothing waits.

    Returns whether there are such rows, ``bool[]`` on the device.
    """
    dead = logits.amax(-1, keepdim=True) == _NEVER
    found = dead.any()
    if logits.device.type != "cpu" or bool(found):
        again = torch.full_like(logits, LAST_RESORT)
        _mask(again, words)
        torch.where(dead, again, logits, out=logits)
    return found


def check_logits(logits: torch.Tensor, dimensions: tuple[int, ...], *, is_written: bool = True) -> None:
    """Raise `BitmaskError` unless these are logits that can be masked, in place where they are written."""
    if (
        not isinstance(logits, torch.Tensor) or logits.dtype not in LOGITS
        or logits.layout is not torch.strided or logits.is_nested or logits.dim() not in dimensions
    ):  # fmt: skip
        shapes = " or ".join("[width]" if n == 1 else "[batch, width]" for n in dimensions)
        raise BitmaskError(f"logits are float32, float16 or bfloat16 {shapes}, got {_shown(logits)}")
    if logits.requires_grad:
        raise BitmaskError(
            "the logits require a gradient, which a mask would not be part of",
            remedy="Run the model under torch.no_grad(), or pass logits.detach().",
        )
    if is_written and not logits.is_contiguous() and overlaps(logits.shape, logits.stride(), 1):
        raise sharing("logits")


def _shown(logits: object) -> str:
    if not isinstance(logits, torch.Tensor) or (logits.layout is torch.strided and not logits.is_nested):
        return describe(logits)
    return f"a tensor of layout {logits.layout}" + (", nested" if logits.is_nested else "")


def _mask(logits: torch.Tensor, words: torch.Tensor) -> None:
    by_kernel = logits.device.type == "cpu" and not torch.compiler.is_compiling()
    (_mask_by_kernel if by_kernel else _mask_by_shift)(logits, words)


def masked_copy(logits: torch.Tensor, masks: Sequence[NDArray[np.int32]]) -> torch.Tensor:
    """A copy of logits on the CPU, ``[batch, width]``, with a mask for each row, each ``int32[words]``.

    One pass less over the logits than a copy and `apply_bitmask`. Raises `BitmaskError` as that does.
    """
    check_logits(logits, (2,), is_written=False)
    if len(masks) != len(logits):
        raise BitmaskError(f"{len(masks)} masks for {len(logits)} rows of logits")
    width = logits.shape[1]
    # Few calls: after a model's pass nothing of this is in the caches any more.
    target = torch.empty_like(logits, memory_format=torch.contiguous_format)
    source, bits, never = _bits(logits), _bits(target), _bits_of_never(logits.dtype)
    for row, words in enumerate(masks):
        check_width(len(words), width)
        copy_allowed(source[row], words, never, bits[row])
    return target


def _bits(logits: torch.Tensor) -> Array:
    """The memory of logits on the CPU as integers of their size."""
    if logits.dtype is not torch.float32:  # NumPy has no bfloat16
        return logits.view(torch.int16).numpy()
    floats: Array = logits.numpy()
    return floats.view(np.int32)


def _mask_by_kernel(logits: torch.Tensor, words: torch.Tensor) -> None:
    bits, masks = np.atleast_2d(_bits(logits)), words.numpy()
    if np.may_share_memory(bits, masks):
        raise BitmaskError("the logits and the bitmask share memory", remedy="Pass a copy of the bitmask.")
    mask_bits(bits, masks, _bits_of_never(logits.dtype))


@cache
def _bits_of_never(dtype: torch.dtype) -> Foreign:
    """The bits of ``-inf``, a NumPy scalar."""
    return torch.tensor(_NEVER, dtype=dtype).view(LOGITS[dtype]).numpy()[()]


def _mask_by_shift(logits: torch.Tensor, words: torch.Tensor) -> None:
    covered = min(logits.shape[-1], words.shape[-1] * BITS)
    # The shift is arithmetic and drags the sign bit along; the & 1 after it is what makes that harmless.
    shifts = torch.arange(BITS, dtype=torch.int32, device=words.device)
    forbidden = ((words.unsqueeze(-1) >> shifts) & 1) == 0
    logits[..., :covered].masked_fill_(forbidden.flatten(-2)[..., :covered], _NEVER)
    if covered < logits.shape[-1]:
        logits[..., covered:].fill_(_NEVER)


def _tensor_of(bitmask: torch.Tensor | NDArray[np.int32], device: torch.device) -> torch.Tensor:
    if isinstance(bitmask, np.ndarray) and bitmask.dtype == np.int32:
        # torch warns of read-only arrays, such as a guide's own row, though nothing writes to them here.
        bitmask = torch.from_numpy(bitmask if bitmask.flags.writeable else bitmask.copy())
    if not isinstance(bitmask, torch.Tensor) or bitmask.dtype != torch.int32 or bitmask.dim() not in (1, 2):
        raise BitmaskError(
            f"a bitmask is a NumPy or torch int32[words] or int32[batch, words], got {describe(bitmask)}"
        )
    if bitmask.layout is not torch.strided or (bitmask.device.type == "meta" and device.type != "meta"):
        raise BitmaskError(f"the bitmask is a dense tensor with data, got {bitmask.layout} on {bitmask.device}")
    # Towards the CPU a copy that nobody waits for would be read before it has arrived.
    return bitmask.to(device, non_blocking=device.type == "cuda")


def _check_rows(words: torch.Tensor, logits: torch.Tensor, count: int) -> None:
    if words.dim() == 1:
        return
    if logits.dim() == 1:
        raise BitmaskError(
            f"a bitmask of {words.shape[0]} rows for logits of one row", remedy="Pass one row: bitmask[i]."
        )
    if words.shape[0] != count:
        few, what = min(words.shape[0], count), "bitmask" if words.shape[0] < count else "logits"
        raise BitmaskError(
            f"{words.shape[0]} rows of bitmask for {count} rows of logits", where=f"row {few} has no {what}"
        )


def selection(rows: torch.Tensor | Sequence[int], logits: torch.Tensor) -> torch.Tensor:
    """``rows`` as ``int64[count]`` on the logits' device, checked where that needs no transfer to the
    host."""
    selected = rows if isinstance(rows, torch.Tensor) else torch.from_numpy(integers(rows, "rows", BitmaskError))
    if selected.dtype != torch.int64 or selected.dim() != 1:
        raise BitmaskError(f"rows are int64[count], got {describe(selected)}")
    if selected.device.type == "cpu" and not torch.compiler.is_compiling():
        seen: set[int] = set()
        for row in selected.tolist():
            if not 0 <= row < logits.shape[0]:
                raise BitmaskError(f"the logits have {logits.shape[0]} rows", where=f"row {row}")
            if row in seen:
                raise BitmaskError("a row is named twice in rows=", where=f"row {row}")
            seen.add(row)
    return selected.to(logits.device, non_blocking=logits.device.type == "cuda")
