"""How functions become kernels: the options that Numba compiles them with, ahead of time and at run time.

Kernels allocate nothing, and count no references: Numba would count them, atomically, whenever an array is handed on
or named anew, which takes most of the time of a kernel that calls helpers in its innermost loop. So they do without
its run time (``_nrt``). A division by zero is none of Python's errors (``error_model``): divisors are looked at where
they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import numba
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from ..system.types import Foreign

_OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "_nrt": False, "error_model": "numpy"}


@overload
def kernel(function: Callable[..., object]) -> Foreign: ...
@overload
def kernel(*, releases_gil: bool) -> Callable[[Callable[..., object]], Foreign]: ...
def kernel(function: Callable[..., object] | None = None, *, releases_gil: bool = True) -> Foreign:
    """A function that Python calls, with the types that its annotations state (`structgen.kernels.signatures`).

    Parameters
    ----------
    releases_gil:
        Whether other threads run meanwhile. For kernels of a few microseconds that costs more than it gives.
    """
    if function is None:
        return numba.njit(**_OPTIONS | {"nogil": releases_gil})
    return numba.njit(**_OPTIONS)(function)


def helper(function: Callable[..., object]) -> Foreign:
    """A function that only kernels call: compiled into its callers, not kept on its own.

    Numba translates it once for each combination of its arguments' types, with one for each constant, so signed
    integers are handed over as ``int64``, which they become in any calculation.
    """
    made = numba.njit(no_cpython_wrapper=True, **_OPTIONS)(function)
    if made is function:  # NUMBA_DISABLE_JIT=1
        return made
    typed = made.get_call_template

    def widened(argument: Foreign) -> Foreign:
        argument = types.unliteral(argument)
        return types.int64 if isinstance(argument, types.Integer) and argument.signed else argument

    made.get_call_template = lambda arguments, keywords: typed(tuple(map(widened, arguments)), keywords)
    return made


#: For small helpers in whose place their text is put: a call hands over seven words for each array.
spliced: Foreign = numba.njit(no_cpython_wrapper=True, inline="always", **_OPTIONS)


def table(scalar: str, columns: int = 0, *, rows: int = 0) -> Foreign:
    """A function that gives a kernel an array by its address.

    ``head`` is ``int64[*]``; two of its words, at ``place``, are the address of the array's first number and the
    array's length. Whoever writes them there keeps the array. The array has one dimension, or so many ``columns``, or
    so many ``rows``, which are of that length.
    """
    kind = getattr(types, scalar)
    array = types.Array(kind, 2 if columns or rows else 1, "C")
    itemsize = kind.bitwidth // 8

    def generate(context: Foreign, builder: Foreign, signature: Foreign, arguments: Foreign) -> Foreign:
        head = context.make_array(signature.args[0])(context, builder, arguments[0])
        word = builder.gep(head.data, [arguments[1]])
        address = builder.load(word)
        length = builder.load(builder.gep(word, [context.get_constant(types.int64, 1)]))
        made = context.make_array(array)(context, builder)
        size = context.get_constant(types.intp, itemsize)
        shape, strides = [length], [size]
        if columns:
            shape.append(context.get_constant(types.intp, columns))
            strides.insert(0, context.get_constant(types.intp, itemsize * columns))
        if rows:
            shape.insert(0, context.get_constant(types.intp, rows))
            strides.insert(0, builder.mul(length, size))
        data = builder.inttoptr(address, context.get_data_type(kind).as_pointer())
        populate_array(made, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return made._getvalue()

    @intrinsic
    def found(typing: Foreign, head: Foreign, place: Foreign) -> Foreign:
        return array(head, types.int64), generate

    return found
