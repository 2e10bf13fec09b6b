"""Bitmasks applied to logits: NumPy arrays, torch tensors on any device, MLX arrays.

The backends of `apply_bitmask`, which give the same result:

- *kernel*: one pass over the bits of logits in CPU memory, which are kept or replaced, on the calling thread. A row
  of 128,256 float32 logits takes 12 µs with any mask; `masked_fill_` takes 250 to 500 µs, most of it in branches, and
  waits for all cores.
- *torch*: a broadcast shift and `masked_fill_`, with static shapes and no transfer to the host, so that
  `torch.compile` can fuse it. ``torch.minimum`` would keep a NaN at a disallowed token, and ``argmax`` prefers NaN.
- *triton*: one kernel launch on CUDA, which neither reads nor writes the logits of allowed tokens.
- *mlx*: one lazy expression.

The module imports neither torch nor MLX.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import BitmaskError
from ...system.arguments import Integers, check_written, describe, integers, overlaps, sharing
from ...system.types import Array, Foreign
from ..rows.bitmask import BITS, check_bitmask, check_width, ids_of, words_for

if TYPE_CHECKING:
    import torch

Logits = TypeVar("Logits")
Backend: TypeAlias = Literal["kernel", "torch", "triton", "mlx"]

#: The score of tokens that others forbid and that are all that is allowed: of a beam that is to lose, and finite in
#: float16 whatever the temperature.
LAST_RESORT = -1e3

_NEVER = float("-inf")

#: The bits of ``-inf``, as integers of the logits' size.
_FLOAT32, _FLOAT16, _BFLOAT16 = np.int32(-0x800000), np.int16(-0x400), np.int16(-0x80)
_BITS_OF_NEVER = {np.dtype(np.float32): _FLOAT32, np.dtype(np.float16): _FLOAT16}


def apply_bitmask(
    logits: Logits, bitmask: Foreign, *, rows: Integers | None = None, backend: Backend | None = None
) -> Logits:
    """Set the logits of disallowed tokens to ``-inf``.

    NumPy arrays and torch tensors change in place. An MLX array stays as it is, and the result is a new one: use the
    return value, and the same code works with all three.

    Arguments are checked before anything is written. On an accelerator no step waits for the device: calls work
    inside a CUDA stream and under `torch.compile`.

    Parameters
    ----------
    logits:
        ``[width]``, one row, or ``[batch, width]``, with any strides: a NumPy array of float32 or float16, a torch
        tensor of float32, float16 or bfloat16 on any device, or an MLX array of these three dtypes. ``width`` may
        exceed the bitmask and the vocabulary (padding): logits without a bit become ``-inf``.
    bitmask:
        ``int32[words]``, for every row, or ``int32[batch, words]``: see `allocate_bitmask`, `Guide.bitmask`,
        `GuideBatch.bitmask`. A NumPy array; with torch logits also a tensor on any device, with MLX logits also an
        MLX array. A bitmask on another device is copied to the logits' device, to CUDA without waiting.
    rows:
        The rows of ``logits`` to mask, each once: row ``i`` of ``bitmask`` is for row ``rows[i]``, and the other rows
        stay as they are. None masks all rows. Numbers in a tensor on an accelerator are not checked.
    backend:
        None, or the name of an implementation. All give the same result, bit for bit.

        - ``"kernel"``: NumPy arrays, and torch tensors on the CPU outside of `torch.compile`. The default for both.
        - ``"torch"``: torch tensors. The default on CUDA and MPS, and under `torch.compile`.
        - ``"triton"``: torch tensors on CUDA with rows of stride 1, outside of `torch.compile`.
        - ``"mlx"``: MLX arrays. The default for them.

        ``"triton"`` needs Triton. It does not read the logits, and allocates no mask of the logits' size.

    Returns
    -------
    Logits
        The masked logits: the object ``logits`` itself, or a new MLX array, which is not evaluated.

    Raises
    ------
    BitmaskError
        - Logits of another type, dtype, layout or shape; read-only logits; logits that require a gradient; logits
          whose elements share memory with each other or with the bitmask.
        - A bitmask of another type, dtype or shape, with more words than the logits need, or with another number of
          rows.
        - A row that is out of range or named twice, or that is no integer.
        - A backend that does not exist or does not take these logits.
    BatchError
        ``rows`` of another shape, or on an accelerator while the logits are not.

    Notes
    -----
    The counterpart of ``apply_token_bitmask_inplace`` in XGrammar, ``llguidance.torch`` and ``llguidance.numpy``, and
    of ``apply_token_bitmask`` in ``llguidance.mlx``. Bitmasks have the same layout in all of them. Two things differ
    from XGrammar: its ``indices`` select rows of the bitmask, too, and it leaves logits beyond the bitmask unmasked.

    Examples
    --------
    >>> import numpy as np, structgen as sg
    >>> sg.apply_bitmask(np.zeros(4, np.float32), np.array([0b0101], np.int32))
    array([  0., -inf,   0., -inf], dtype=float32)
    """
    if isinstance(logits, np.ndarray):
        _mask_array(logits, bitmask, rows, backend)
    elif isinstance(logits, getattr(sys.modules.get("torch"), "Tensor", ())):
        _mask_tensor(logits, bitmask, rows, backend)
    elif isinstance(logits, getattr(sys.modules.get("mlx.core"), "array", ())):
        logits = _masked_by_mlx(logits, bitmask, rows, backend)
    else:
        raise BitmaskError(f"logits are a NumPy array, a torch tensor or an MLX array, got {describe(logits)}")
    return logits


# -- NumPy ----------------------------------------------------------------------------------------------------


def _mask_array(logits: Array, bitmask: Foreign, rows: Integers | None, backend: object) -> None:
    never = _BITS_OF_NEVER.get(logits.dtype)
    if never is None or logits.ndim not in (1, 2):
        raise _no_logits(logits, "float32 or float16")
    _chosen(backend, logits, ["kernel"])
    check_bitmask(bitmask, (1, 2))
    check_written(logits, "logits")
    chosen = None if rows is None else _check_rows(integers(rows, "rows", BitmaskError), logits)
    _check_shapes(logits, bitmask, chosen)
    mask_bits(np.asarray(logits).view(never.dtype), bitmask, never, chosen)  # of a subclass the memory alone


def mask_bits(bits: Array, words: NDArray[np.int32], never: Foreign, rows: NDArray[np.int64] | None = None) -> None:
    """Replace the bits of disallowed tokens by ``never``, in place.

    Parameters
    ----------
    bits:
        ``[width]`` or ``[batch, width]``, with any strides: the logits' own bits, as integers of their size.
    words:
        ``int32[words]`` or ``int32[batch, words]``. Logits without a bit are not allowed.
    never:
        The bits of ``-inf``, a scalar of the dtype of ``bits``.
    rows:
        The rows to mask; None for all.
    """
    if np.may_share_memory(bits, words):
        raise BitmaskError("the logits and the bitmask share memory", remedy="Pass a copy of the bitmask.")
    bits = bits[None] if bits.ndim == 1 else bits
    masked = np.empty(bits.shape[1], bits.dtype)
    chosen = bits if rows is None else (bits[row] for row in rows)
    for row, row_words in zip(chosen, words if words.ndim == 2 else [words] * len(bits), strict=False):
        copy_allowed(row, row_words, never, masked)
        row[:] = masked


def copy_allowed(row: Array, words: NDArray[np.int32], never: Foreign, target: Array) -> None:
    """Write one masked row, ``[width]``, to ``target``, contiguous, which shares no memory with it."""
    keep = kernels.keep_allowed if row.itemsize == 4 else kernels.keep_allowed_halves
    keep(np.ascontiguousarray(row), np.ascontiguousarray(words), never, target)


# -- torch ----------------------------------------------------------------------------------------------------


def _mask_tensor(logits: Foreign, bitmask: Foreign, rows: Integers | None, backend: object) -> None:
    import torch

    check_logits(logits)
    on_host = logits.device.type == "cpu" and not torch.compiler.is_compiling()
    fitting = (("kernel", on_host), ("torch", True), ("triton", is_for_triton(logits)))
    backend = _chosen(backend, logits, [name for name, fits in fitting if fits])
    words = _words_on(logits.device, bitmask)
    chosen = None if rows is None else selection(rows, logits)
    _check_shapes(logits, words, chosen)
    if backend == "kernel":
        bits, never = _bits(logits)
        mask_bits(bits, words.numpy(), never, None if chosen is None else chosen.numpy())
        return
    batch = logits[None] if logits.ndim == 1 else logits
    masked = batch if chosen is None else batch.index_select(0, chosen)
    (_mask_by_triton if backend == "triton" else _mask_by_shift)(masked, words)
    if chosen is not None:
        batch.index_copy_(0, chosen, masked)


def is_for_triton(tensor: torch.Tensor) -> bool:
    """Whether a Triton kernel takes a tensor: on CUDA, with rows of stride 1, outside `torch.compile`."""
    import torch

    return tensor.is_cuda and tensor.stride(-1) == 1 and not torch.compiler.is_compiling() and has_triton()


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def mask_rows(logits: torch.Tensor, pool: torch.Tensor, slots: torch.Tensor) -> None:
    """Mask ``logits[batch, width]`` by rows ``slots[batch]`` of a pool ``int32[slots, words]``, in place, unchecked.

    All on one device; static shapes and no transfer, so that it can be captured in a CUDA graph, or compiled.
    """
    if is_for_triton(logits):
        from .triton_masks import launch_mask

        launch_mask(logits, pool, slots)
    else:
        apply_bitmask(logits, pool.index_select(0, slots))


def apply_masks(logits: torch.Tensor, masks: Mapping[int, NDArray[np.int32]]) -> None:
    """`apply_bitmask` with a mask, ``int32[words]``, for some rows by number, ascending; the others stay."""
    if masks:
        rows = None if len(masks) == len(logits) else list(masks)
        apply_bitmask(logits, np.stack(list(masks.values())), rows=rows)


def masked_copy(logits: torch.Tensor, masks: Sequence[NDArray[np.int32]]) -> torch.Tensor:
    """Return a copy of logits on the CPU, ``[batch, width]``, with a mask for each row, each ``int32[words]``.

    One pass less over the logits than a copy and `apply_bitmask`. Raises `BitmaskError` as that does.
    """
    import torch

    check_logits(logits, (2,), is_written=False)
    if len(masks) != len(logits):
        raise BitmaskError(f"{len(masks)} masks for {len(logits)} rows of logits")
    # Few calls: after a model's pass nothing of this is in the caches any more.
    target = torch.empty_like(logits, memory_format=torch.contiguous_format)
    (source, never), (bits, _) = _bits(logits), _bits(target)
    for row, words in enumerate(masks):
        check_width(len(words), source.shape[1])
        copy_allowed(source[row], words, never, bits[row])
    return target


def check_logits(logits: torch.Tensor, dimensions: tuple[int, ...] = (1, 2), *, is_written: bool = True) -> None:
    """Raise `BitmaskError` unless these are torch logits that can be masked, in place where they are written."""
    import torch

    if (
        not isinstance(logits, torch.Tensor) or logits.dtype not in (torch.float32, torch.float16, torch.bfloat16)
        or logits.layout is not torch.strided or logits.is_nested or logits.ndim not in dimensions
    ):  # fmt: skip
        raise _no_logits(logits, "float32, float16 or bfloat16", dimensions)
    if logits.requires_grad:
        raise BitmaskError("the logits require a gradient", remedy="Use torch.no_grad(), or pass logits.detach().")
    if is_written and not logits.is_contiguous() and overlaps(logits.shape, logits.stride(), 1):
        raise sharing("logits")


def selection(rows: Integers, logits: torch.Tensor) -> torch.Tensor:
    """Return ``rows`` as ``int64[count]`` on the logits' device, checked where that needs no transfer to the host."""
    import torch

    chosen = rows if isinstance(rows, torch.Tensor) else torch.from_numpy(integers(rows, "rows", BitmaskError))
    if chosen.dtype != torch.int64 or chosen.ndim != 1:
        raise BitmaskError(f"rows are int64[count], got {describe(chosen)}")
    if chosen.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_rows(chosen.numpy(), logits)
    return chosen.to(logits.device, non_blocking=logits.device.type == "cuda")


def _words_on(device: torch.device, bitmask: Foreign) -> torch.Tensor:
    """A bitmask as a tensor on a device."""
    import torch

    if isinstance(bitmask, np.ndarray) and bitmask.dtype == np.int32:
        # torch warns of read-only arrays, such as a guide's own row, though nothing writes to them here.
        bitmask = torch.from_numpy(bitmask if bitmask.flags.writeable else bitmask.copy())
    check_bitmask(bitmask, (1, 2), torch.Tensor, torch.int32)
    if bitmask.layout is not torch.strided or (bitmask.device.type == "meta" and device.type != "meta"):
        raise BitmaskError(f"the bitmask is a dense tensor with data, got {bitmask.layout} on {bitmask.device}")
    # Towards the CPU a copy that nobody waits for would be read before it has arrived.
    words: torch.Tensor = bitmask.to(device, non_blocking=device.type == "cuda")
    return words


def _bits(logits: torch.Tensor) -> tuple[Array, Foreign]:
    """The memory of logits on the CPU as integers of their size, and the bits of ``-inf``."""
    import torch

    if logits.dtype is torch.float32:
        return logits.numpy().view(np.int32), _FLOAT32
    # NumPy has no bfloat16.
    return logits.view(torch.int16).numpy(), _FLOAT16 if logits.dtype is torch.float16 else _BFLOAT16


def _mask_by_shift(logits: torch.Tensor, words: torch.Tensor) -> None:
    import torch

    covered = min(logits.shape[-1], words.shape[-1] * BITS)
    forbidden = _spread(words, torch.arange(BITS, dtype=torch.int32, device=words.device), covered) == 0
    logits[..., :covered].masked_fill_(forbidden, _NEVER)
    if covered < logits.shape[-1]:
        logits[..., covered:].fill_(_NEVER)


def _spread(words: Foreign, shifts: Foreign, width: int) -> Foreign:
    """``int32[..., width]``: 1 for each bit that is set, of torch or MLX, whose numbers 0 to 31 are ``shifts``."""
    # The shift is arithmetic and drags the sign bit along; the & 1 after it is what makes that harmless.
    return ((words[..., None] >> shifts) & 1).reshape((*words.shape[:-1], BITS * words.shape[-1]))[..., :width]


def _mask_by_triton(logits: torch.Tensor, words: torch.Tensor) -> None:
    import torch

    pool, numbers = (words[None], torch.zeros) if words.ndim == 1 else (words, torch.arange)
    mask_rows(logits, pool.contiguous(), numbers(len(logits), dtype=torch.int32, device=logits.device))


# -- MLX ------------------------------------------------------------------------------------------------------


def _masked_by_mlx(logits: Foreign, bitmask: Foreign, rows: Integers | None, backend: object) -> Foreign:
    import mlx.core as mx

    if logits.dtype not in (mx.float32, mx.float16, mx.bfloat16) or logits.ndim not in (1, 2):
        raise _no_logits(logits, "float32, float16 or bfloat16")
    _chosen(backend, logits, ["mlx"])
    if isinstance(bitmask, np.ndarray) and bitmask.dtype == np.int32:
        bitmask = mx.array(bitmask)
    check_bitmask(bitmask, (1, 2), mx.array, mx.int32)
    chosen = None if rows is None else _check_rows(integers(rows, "rows", BitmaskError), logits)
    _check_shapes(logits, bitmask, chosen)
    missing = words_for(logits.shape[-1]) - bitmask.shape[-1]
    words = mx.pad(bitmask, [(0, 0)] * (bitmask.ndim - 1) + [(0, missing)])
    if chosen is not None:
        few, words = words, mx.full((_count(logits), words.shape[-1]), -1, mx.int32)
        if len(chosen):  # MLX refuses to write nothing
            words[mx.array(chosen)] = few
    allowed = _spread(words, mx.arange(BITS, dtype=mx.int32), logits.shape[-1]).astype(mx.bool_)
    return mx.where(allowed, logits, mx.array(_NEVER, logits.dtype)).reshape(logits.shape)


# -- where a definition has the last word ---------------------------------------------------------------------


def revive_row(scores: Foreign, words: NDArray[np.int32]) -> bool:
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
    if not word or scores[first] > _NEVER or scores.max() != _NEVER:
        return False
    scores[ids_of(words).tolist()] = LAST_RESORT
    return True


def revive(logits: torch.Tensor, masks: Mapping[int, NDArray[np.int32]]) -> bool:
    """`revive_row` for some rows, by number, of a tensor. Returns whether one of them was revived.

    On an accelerator this waits for the device.
    """
    rows = list(masks)
    if logits.device.type != "cpu":
        rows = [row for row in (logits.amax(-1) == _NEVER).nonzero().flatten().tolist() if row in masks]
    return bool(sum(revive_row(logits[row], masks[row]) for row in rows))


def revive_all(logits: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """`revive` for all rows, by ``int32[batch, words]`` on their device, for which nothing waits.

    Returns whether there are such rows, ``bool[]`` on the device.
    """
    import torch

    dead = logits.amax(-1, keepdim=True) == _NEVER
    found: torch.Tensor = dead.any()
    if logits.device.type != "cpu" or bool(found):
        torch.where(dead, apply_bitmask(torch.full_like(logits, LAST_RESORT), words), logits, out=logits)
    return found


# -- the temperature of a grammar's rule, where an engine samples at one of its own ----------------------------


def temper(scores: Foreign, wanted: float, given: float) -> None:
    """Change scores in place, so that dividing them by one temperature samples at another.

    Parameters
    ----------
    scores:
        ``[width]``, a tensor or an array of floats, masked.
    wanted:
        The temperature to sample at; with 0 the largest scores alone are left.
    given:
        The one that they will be divided by.
    """
    most = scores.max()
    if not most > -float("inf"):
        return
    scores -= most  # or half floats might overflow
    if not wanted:
        scores[scores < 0] = -float("inf")
        return
    factor = given / wanted
    if scores.dtype == np.float16:  # its numbers go from 6e-8 to 65,504, and so must the factor
        factor = min(max(factor, 2.0**-24), 2.0**15)
    scores *= factor


# -- checks ---------------------------------------------------------------------------------------------------


def _no_logits(logits: Foreign, dtypes: str, dimensions: tuple[int, ...] = (1, 2)) -> BitmaskError:
    shapes = " or ".join("[width]" if n == 1 else "[batch, width]" for n in dimensions)
    return BitmaskError(f"logits are {dtypes} {shapes}, got {describe(logits)}")


def _chosen(backend: object, logits: Foreign, fitting: list[str]) -> object:
    """Return a backend, of None the first that fits. Raises `BitmaskError` for one that does not."""
    if backend is not None and backend not in fitting:
        what = f"no such backend takes {describe(logits)} on {getattr(logits, 'device', 'the CPU')}"
        raise BitmaskError(what, where=f"backend={backend!r}", remedy=f"Use {', '.join(fitting)}, or None.")
    return backend or fitting[0]


def _count(logits: Foreign) -> Foreign:
    """Rows of logits, of which ``[width]`` has one."""
    return logits.shape[0] if logits.ndim == 2 else 1


def _check_rows(rows: NDArray[np.int64], logits: Foreign) -> NDArray[np.int64]:
    """Return rows, each of which logits have, and each once; `BitmaskError` for others."""
    for row, times in Counter(rows.tolist()).items():
        if times > 1:
            raise BitmaskError("a row is named twice in rows=", where=f"row {row}")
        if not 0 <= row < _count(logits):
            raise BitmaskError(f"the logits have {_count(logits)} rows", where=f"row {row}")
    return rows


def _check_shapes(logits: Foreign, words: Foreign, rows: Foreign | None) -> None:
    """Raise `BitmaskError` where a bitmask has too many words, or another number of rows than logits."""
    check_width(words.shape[-1], logits.shape[-1])
    found, count = words.shape[0], _count(logits) if rows is None else rows.shape[0]
    if words.ndim == 2 and found != count:
        where = f"row {min(found, count)} has no {'bitmask' if found < count else 'logits'}"
        raise BitmaskError(f"{found} rows of bitmask for {count} rows of logits", where=where)
