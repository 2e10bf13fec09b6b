"""How structgen compiles its kernels: one place for Numba's options and for where compiled code is kept.

Numba's own on-disk cache writes next to the source file, which fails for read-only installs, and judges
freshness by the file's time stamp, which upgrades and container layers do not keep. So the kernels get a folder
of their own, named by a hash of their source text; Numba's index inside it is keyed by signature, processor and
Numba version, and its files are replaced atomically, so that processes may fill it at the same time.

Numba stores its index with pickle, hence the folder is private to the user (mode 0700) and one that belongs to
somebody else is not used.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock

from .folders import cache_root
from .locks import at_fork

# A child of a process in which a thread compiles would wait for that thread for ever.
at_fork(before=global_compiler_lock.acquire, after=global_compiler_lock.release)


def _folder(source: str) -> str:
    """A private folder for the kernels compiled from this source file."""
    digest = hashlib.blake2b(Path(source).read_bytes(), digest_size=8).hexdigest()
    name = f"py{sys.version_info[0]}{sys.version_info[1]}-numba{numba.__version__}-{digest}"
    for root in (cache_root() / "kernels", Path(tempfile.gettempdir()) / f"structgen-kernels-{_user()}"):
        folder = root / name
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            if not folder.is_dir():
                continue
        if _is_private(folder):
            return str(folder)
    return tempfile.mkdtemp(prefix="structgen-kernels-")


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


def _is_private(folder: Path) -> bool:
    """Whether only this user, or root, can write there."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Puts a function's compiled code into `_folder`; the folder's name already is the source stamp."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._path = _folder(py_file)
        self._line = py_func.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return self._path

    def get_source_stamp(self) -> str:
        return os.path.basename(self._path)

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _CacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's function cache in structgen's folder; a damaged or unwritable one means compiling again."""

    _impl_class = _CacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            self.disable()
        except Exception:  # a damaged index: start it afresh
            self.flush()
            super().save_overload(sig, data)


def _kept(compiled: Any, function: Callable[..., Any]) -> Any:
    """A kernel whose machine code is kept across processes."""
    if hasattr(compiled, "_cache"):  # with NUMBA_DISABLE_JIT=1, njit hands the function back
        compiled._cache = _KernelCache(function)
    return compiled


# Numba counts references to arrays, atomically, whenever one is handed on or named anew; in a kernel that calls
# helpers in its innermost loop that takes most of the time. Without its run time (`_nrt`) it counts none, and can't
# allocate.
_HELPER = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function lazily, without the GIL, and keep the machine code across processes."""
    return _kept(numba.njit(nogil=True, no_cfunc_wrapper=True)(function), function)


def bare_kernel(function: Callable[..., Any]) -> Any:
    """As `kernel`, for a function that allocates nothing."""
    return _kept(numba.njit(nogil=True, no_cfunc_wrapper=True, _nrt=False)(function), function)


#: For helpers that only other kernels call, and that allocate nothing: compiled into their callers, not kept on their
#: own.
inlined: Any = numba.njit(**_HELPER, _nrt=False)

#: For small helpers of bare kernels, in whose place their text is put: a call hands over seven words for each array.
spliced: Any = numba.njit(**_HELPER, _nrt=False, inline="always")

#: For helpers that allocate.
allocating: Any = numba.njit(**_HELPER)
