"""How structgen compiles its kernels: one place for Numba's options and for where compiled code is kept.

Numba's own on-disk cache writes next to the source file, which fails for read-only installs, and judges
freshness by the file's time stamp, which upgrades and container layers do not keep. So each module's kernels get a
folder of their own, named by a hash of their sources; Numba's index inside it is keyed by signature, processor and
Numba version, and its files are replaced atomically, so that processes may fill it at the same time. Those that begin
together on a new machine take turns: a kernel is compiled by one of them, and loaded by the others.

Numba stores its index with pickle: whoever can place a file there runs code. So nothing is read from the folder, nor
kept in it, unless nobody else can change what its path means (`structgen.system.private_folder`), which is seen to
again before each time that Numba opens files there by name. Where there is no such folder, kernels are compiled for
this process alone; temporary folders would keep them no longer, and others can write above them.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import ClassVar

import numba
from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock

from ..errors import CacheError, CacheWarning
from ..system import private_folder
from ..system.folders import ENVIRONMENT_VARIABLE, cache_root
from ..system.locks import at_fork
from ..system.types import Foreign

_KERNELS = Path(__file__).parent

# A child of a process in which a thread compiles would wait for that thread for ever.
at_fork(before=global_compiler_lock.acquire, after=global_compiler_lock.release)


def _sources(module: Path) -> list[Path]:
    """A module and those that it imports from beside or above it, directly or not.

    A kernel holds the code of all that it calls.
    """
    sources = [module]
    for source in sources:
        for dots, name in re.findall(r"^from (\.+)([\w.]+) import", source.read_text("utf-8"), re.MULTILINE):
            found = source.parents[len(dots) - 1] / f"{name.replace('.', '/')}.py"
            if found not in sources and found.is_relative_to(_KERNELS):
                sources.append(found)
    return sorted(sources)


@cache
def _folder(module: Path) -> Path | None:
    """A private folder for the kernels compiled from this module; None, with a warning, where there is none."""
    hashed = hashlib.blake2b(digest_size=8)
    for source in _sources(module):
        hashed.update(source.read_bytes())
    digest = hashed.hexdigest()
    name = f"py{sys.version_info[0]}{sys.version_info[1]}-numba{numba.__version__}-{digest}"
    if numba.config.BOUNDSCHECK:  # other code from the same source
        name += "-checked"
    folder = cache_root() / "kernels" / name
    try:
        private_folder.make(folder)
        private_folder.check_files(folder)
    except (CacheError, OSError) as error:
        what = error.what if isinstance(error, CacheError) else str(error)
        warnings.warn(
            CacheWarning(
                f"compiled kernels are not kept, and every process compiles them anew, which takes a minute: {what}. "
                f"Name a folder of your own with {ENVIRONMENT_VARIABLE}."
            ),
            stacklevel=2,
        )
        return None
    return folder


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Puts a function's compiled code into `_folder`; the folder's name already is the source stamp."""

    def __init__(self, folder: Path, file: str, line: int) -> None:
        self._folder = folder
        self._py_file, self._line = file, line  # Numba warns of code there that can't be kept

    def ensure_cache_path(self) -> None:
        private_folder.make(self._folder)

    def get_cache_path(self) -> str:
        return os.fspath(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> _Locator | None:
        folder = _folder(Path(py_file))
        return None if folder is None else cls(folder, py_file, py_func.__code__.co_firstlineno)


class _CacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


#: Seconds to wait for another process that compiles kernels of a module.
_LONGEST_WAIT = 120.0


def _takes(lock: Callable[[], None]) -> bool:
    """Whether a lock is free, and taken now."""
    try:
        lock()
    except BlockingIOError:
        return False
    return True


class _MissingError(Exception):
    """There is no compiled code, and another process may be at it."""


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's function cache in structgen's folder; a damaged or unwritable one means compiling again."""

    _impl_class = _CacheImpl
    _held: ClassVar[set[str]] = set()  # folders that are this process's alone; changed under Numba's own lock

    def load_overload(self, sig: object, target_context: object) -> object:
        found = None
        try:
            private_folder.check(Path(self.cache_path))
            found = super().load_overload(sig, target_context)
        except Exception:
            return None
        if found is None and self.cache_path not in self._held:
            raise _MissingError
        return found

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process compiles kernels of this module meanwhile, where the folder allows to tell them.

        Who compiles a kernel compiles those that it calls, of modules that it imports from: nobody waits in a circle.
        """
        with ExitStack() as held:
            try:
                import fcntl

                # A link is not followed; the folder is private, so that nobody else made one.
                file = os.open(Path(self.cache_path) / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
                held.callback(os.close, file)
                until = time.monotonic() + _LONGEST_WAIT
                while not _takes(partial(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)):
                    if time.monotonic() > until:
                        break  # that process may have been stopped
                    time.sleep(0.02)
            except (ImportError, OSError):
                pass  # then each compiles for itself
            self._held.add(self.cache_path)
            held.callback(self._held.discard, self.cache_path)
            yield

    def save_overload(self, sig: object, data: object) -> None:
        try:
            super().save_overload(sig, data)
        except (CacheError, OSError):
            self.disable()
        except Exception:  # a damaged index: start it afresh
            self.flush()
            super().save_overload(sig, data)


def _kept(compiled: Foreign, function: Callable[..., object]) -> Foreign:
    """A kernel whose machine code is kept across processes."""
    # With NUMBA_DISABLE_JIT=1, njit hands the function back.
    if hasattr(compiled, "_cache") and _folder(Path(inspect.getfile(function))) is not None:
        cache, compile = _KernelCache(function), compiled.compile
        compiled._cache = cache

        def compile_once(signature: object) -> object:
            try:
                return compile(signature)
            except _MissingError:
                # Numba's lock first, which threads of this process wait for in the middle of a compile.
                with global_compiler_lock, cache.alone():
                    return compile(signature)

        compiled.compile = compile_once
    return compiled


# Numba counts references to arrays, atomically, whenever one is handed on or named anew; in a kernel that calls
# helpers in its innermost loop that takes most of the time. Without its run time (`_nrt`) it counts none, and can't
# allocate. By NumPy's model of errors a division looks at no divisor, and raises nothing.
_OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "_nrt": False, "error_model": "numpy"}


def kernel(function: Callable[..., object]) -> Foreign:
    """Compile a function lazily, without the GIL, and keep the machine code across processes."""
    return _kept(numba.njit(**_OPTIONS)(function), function)


#: For helpers that only other kernels call: compiled into their callers, not kept on their own.
inlined: Foreign = numba.njit(**_OPTIONS, no_cpython_wrapper=True)

#: For small helpers, in whose place their text is put: a call hands over seven words for each array.
spliced: Foreign = numba.njit(**_OPTIONS, no_cpython_wrapper=True, inline="always")
