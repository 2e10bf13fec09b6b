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


#: For helpers that only kernels call: compiled into their callers, not kept on their own.
helper: Foreign = numba.njit(no_cpython_wrapper=True, **_OPTIONS)

#: For small helpers in whose place their text is put: a call hands over seven words for each array.
spliced: Foreign = numba.njit(no_cpython_wrapper=True, inline="always", **_OPTIONS)
