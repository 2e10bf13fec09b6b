"""What objects keep in memory, found by following their references as the collector of garbage does."""

from __future__ import annotations

import gc
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

import numpy as np

#: What belongs to the program, and packages whose objects (kernels, the cache) are no part of what refers to them.
_PROGRAM = (type, ModuleType, CodeType, BuiltinFunctionType)
_ELSEWHERE = "structgen.cache.", "numba."

#: Shorter texts are names in the program, and these numbers are there once in a process.
_SHORT, _SMALL_NUMBERS = 64, range(-5, 257)

#: What there is once for all objects of a process.
COMMON: list[object] = []


def held_bytes(root: object, *, shared: object = None, without: object = None) -> int:
    """Bytes of an object and all that it leads to, but for ``without``, and what ``shared`` and `COMMON` lead to.

    Each object counts once, with what Python's allocator and NumPy's took for it. A mapped file does not count, nor
    do classes, functions, kernels, and caches on disk. It takes about a microsecond an object.
    """
    seen = {id(without)}
    _reach([shared, COMMON], seen)
    return _reach(root, seen)


def _reach(root: object, seen: set[int]) -> int:
    total, todo = 0, [root]
    while todo:
        found = todo.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, _PROGRAM) or type(found).__module__.startswith(_ELSEWHERE):
            continue
        if isinstance(found, str) and len(found) < _SHORT:
            continue
        if isinstance(found, int) and found in _SMALL_NUMBERS:
            continue
        total += sys.getsizeof(found)
        if isinstance(found, np.ndarray):
            todo.append(found.base)
        elif isinstance(found, FunctionType):
            todo += [found.__closure__, found.__defaults__]
        else:
            todo += gc.get_referents(found)
    return total
