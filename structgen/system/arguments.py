"""Arguments of calls: numbers, and arrays of integers and of masks from NumPy, torch or lists.

A number is an ``int`` or anything else with ``__index__``, such as NumPy's scalars and tensors of one element.
Booleans, floats, strings and None are none. What is wrong raises the error that the caller names: each kind of
argument has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import index as as_int
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, BatchError, BitmaskError, RollbackError, StructgenError, TokenIdError
from .types import Array, Foreign, with_article

#: Numbers of rows, of tokens, or token ids: a sequence or an array of integers, or a tensor on the CPU.
Integers: TypeAlias = Foreign

#: Temperatures besides 0. By others, and by quotients of others, single precision can't multiply: infinity times 0
#: is no number, and a sampler on a device that is handed one takes the process down.
LEAST_TEMPERATURE, MOST_TEMPERATURE = 1e-9, 1e9

_largest = np.maximum.reduce  # the methods of short arrays take longer than the work


def describe(array: Foreign) -> str:
    """``int32[2, 4008]`` for anything with a dtype and a shape, the type's name for anything else."""
    try:
        found = f"{str(array.dtype).removeprefix('torch.')}{list(array.shape)}"
    except (AttributeError, RuntimeError, TypeError):  # nested tensors have no shape
        return type(array).__name__
    layout = str(getattr(array, "layout", "torch.strided"))
    return found if layout == "torch.strided" else f"{found} of layout {layout}"


def integer(value: object, name: str, error: type[StructgenError], *, least: int | None = None) -> int:
    """A number, of at least ``least``. Raises ``error``, which names it."""
    number = value if type(value) is int else _index(value, name, error)
    if least is not None and number < least:
        raise error(f"{name} is {number}", remedy=f"Use a number of at least {least}.")
    return number


def _index(value: Foreign, name: str, error: type[StructgenError]) -> int:
    try:
        if isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool"):
            raise TypeError
        return as_int(value)
    except (TypeError, ValueError, RuntimeError) as cause:  # the last is torch's
        raise error(f"{name} is an integer, got {describe(value)}") from cause


def is_scalar(value: object) -> bool:
    """Whether this is an array or a tensor of no dimensions, which Python takes for an iterable."""
    return getattr(value, "ndim", None) == 0


def check_type(value: object, wanted: type, remedy: str) -> None:
    """Raise `ArgumentError`, which says what was expected, unless a value is of a class."""
    if not isinstance(value, wanted):
        raise ArgumentError(f"{with_article(wanted)} was expected, got {type(value).__name__}", remedy=remedy)


def checked_token(token_id: object, size: int) -> int:
    """A token id of a vocabulary of so many. Raises `TokenIdError`."""
    number = integer(token_id, "a token id", TokenIdError)
    if not 0 <= number < size:
        raise _outside(number, size)
    return number


def checked_tokens(token_ids: Integers, size: int, *, dimensions: int = 1, name: str = "token_ids") -> Array:
    """`integers`, ids of a vocabulary of so many.

    Raises `TokenIdError` for anything else, `BatchError` for another shape.
    """
    found = integers(token_ids, name, TokenIdError, dimensions=dimensions)
    check_range(found, size)
    return found


def check_range(token_ids: NDArray[np.int64], size: int) -> None:
    """Raise `TokenIdError`, which names the place, unless all ids are of a vocabulary of so many."""
    unsigned = token_ids.view(np.uint64)  # those that are negative are large
    if unsigned.size and int(_largest(unsigned, None)) >= size:
        place = int((unsigned >= size).argmax())
        raise _outside(int(token_ids[place]), size, f"place {place}, ")


def _outside(number: int, size: int, place: str = "") -> TokenIdError:
    return TokenIdError(f"token id {number} is outside the vocabulary", where=f"{place}0..{size - 1}")


def checked_rollback(max_rollback: object) -> int | None:
    """How many tokens are to be remembered; None for all. Raises `RollbackError`."""
    if max_rollback is None:
        return None
    return integer(max_rollback, "max_rollback", RollbackError, least=0)


def integers(
    values: Integers, name: str, error: type[StructgenError] = BatchError, *, dimensions: int = 1, few: bool = False
) -> NDArray[np.int64]:
    """``int64[n]``, or with two ``dimensions`` ``int64[n, k]``; a single number where there may be one (``few``).

    Raises ``error``, which names them, for what holds anything but numbers, and `BatchError` for another shape.
    """
    if type(values) is list and dimensions == 1 and values and {int}.issuperset(map(type, values)):
        with suppress(OverflowError):
            return np.fromiter(values, np.int64, len(values))
    if device := _device(values):
        raise BatchError(f"{name} are read on the CPU, got a tensor on {device}", remedy="Copy it there first.")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as cause:  # ragged lists; sparse tensors
        raise BatchError(f"{name} are int[{'n, k' if dimensions == 2 else 'n'}], got {describe(values)}") from cause
    if not array.size:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or (isinstance(values, list | tuple) and _has_bool(values)):
        raise error(f"{name} are integers, got {describe(array if array is values else values)} of {_kinds(values)}")
    if array.ndim != dimensions and not (few and array.ndim == 0):
        raise BatchError(f"{name} are int[{'n, k' if dimensions == 2 else 'n'}], got {describe(array)}")
    if array.dtype == np.uint64 and array.size and array.max() >= 1 << 63:
        raise error(f"{name} are int64, got {array.max()}")
    return array.astype(np.int64, copy=False)


def _device(values: object) -> str:
    """The device of a tensor that is not on the CPU; empty for anything else."""
    device = getattr(values, "device", None)
    return "" if device is None or getattr(device, "type", "cpu") == "cpu" else str(device)


def _has_bool(values: Iterable[object]) -> bool:
    """Whether a list, or a list in it, holds a boolean among numbers, where NumPy makes a number of it."""
    types = set(map(type, values))
    if not types.isdisjoint((bool, np.bool_)):
        return True
    return not types.isdisjoint((list, tuple)) and any(_has_bool(v) for v in values if isinstance(v, list | tuple))


def _kinds(values: Foreign) -> str:
    """What an argument holds, for a message."""
    if hasattr(values, "dtype"):
        return str(values.dtype).removeprefix("torch.")
    kinds = {type(value).__name__ for value in values[:100]} if isinstance(values, list | tuple) else ()
    return ", ".join(sorted(kinds)) or type(values).__name__


def overlaps(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Whether elements of an array may share memory, as in an expanded tensor.

    Parameters
    ----------
    shape, strides:
        The array's, strides in the unit of ``size``.
    size:
        The size of an element.

    True also for the few arrays whose dimensions interleave without sharing any.
    """
    room = size
    for stride, count in sorted((abs(stride), count) for stride, count in zip(strides, shape, strict=True)):
        if count > 1:
            if stride < room:
                return True
            room += stride * (count - 1)
    return False


def check_written(array: Array, name: str) -> None:
    """Raise `BitmaskError` unless an array can be written: it is not read-only, and its elements share no memory."""
    if not array.flags.writeable:
        raise BitmaskError(f"the memory of the {name} is read-only", remedy="Pass an array that can be written.")
    if not array.flags.c_contiguous and overlaps(array.shape, array.strides, array.itemsize):
        raise sharing(name)


def sharing(name: str) -> BitmaskError:
    """The error for an array that is to be written, elements of which share memory."""
    return BitmaskError(f"elements of the {name} share memory", remedy="Pass a copy: .clone(), .copy().")


def array_of(bitmask: object, wanted: str) -> Array:
    """The NumPy view of a bitmask that is to be written: an array, or a dense tensor on the CPU.

    Raises `BitmaskError`, which says what is ``wanted``.
    """
    if device := _device(bitmask):
        raise BitmaskError(
            f"masks are written to CPU memory, got a tensor on {device}",
            remedy="Use structgen.runtime.logits.devices.DeviceRows, which keeps masks on the device, or fill a CPU "
            "bitmask and copy it.",
        )
    try:
        if not hasattr(bitmask, "__array__"):
            raise TypeError
        array = np.asarray(bitmask)
    except (TypeError, ValueError, RuntimeError) as cause:
        raise BitmaskError(
            f"a bitmask is {wanted}, an array or a dense tensor, got {describe(bitmask)}", where=str(cause)
        ) from cause
    check_written(array, "bitmask")
    return array


def checked_masks(bitmask: object, count: int, words: int) -> NDArray[np.int32]:
    """``int32[count, width]``, at least so many words wide, writable. Raises `BitmaskError`."""
    masks = array_of(bitmask, f"int32[{count}, {words}]")
    if masks.dtype != np.int32 or masks.ndim != 2 or len(masks) != count or masks.shape[1] < words:
        raise BitmaskError(
            f"the bitmask is int32[{count}, {words}] or wider, got {describe(bitmask)}",
            remedy="Allocate structgen.allocate_bitmask(batch, width).",
        )
    return masks


#: What `is_temperature` takes, for messages.
TEMPERATURES = f"0, or from {LEAST_TEMPERATURE} to {MOST_TEMPERATURE:.0e}"


def is_temperature(temperature: float) -> bool:
    """Whether single precision can divide by it without making what is no number, or it is 0."""
    return temperature == 0 or LEAST_TEMPERATURE <= temperature <= MOST_TEMPERATURE


def checked_temperature(temperature: float) -> float:
    """The temperature of an engine. Raises `ArgumentError` for one that is no positive number, or out of bounds."""
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not is_number or not temperature or not is_temperature(temperature):
        bounds = f"{LEAST_TEMPERATURE} to {MOST_TEMPERATURE:.0e}"
        raise ArgumentError(f"temperature is a number from {bounds}, got {temperature!r}")
    return temperature
