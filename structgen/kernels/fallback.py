"""All kernels, compiled when they are called: for those who change them (see `structgen.kernels`).

Numba's own on-disk cache writes next to the source file, which fails for read-only installs, and judges
freshness by the file's time stamp, which upgrades and container layers do not keep. So each module's kernels get a
folder of their own, named by a hash of their sources; Numba's index inside it is keyed by signature, processor and
Numba version, and its files are replaced atomically, so that processes may fill it at the same time.

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
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType

import numba
from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from ..errors import CacheError, CacheWarning
from ..system import clock, private_folder
from ..system.folders import ENVIRONMENT_VARIABLE, cache_root
from ..system.locks import at_fork
from ..system.types import Foreign
from .sources import FOLDER, kernel_files

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
            if found not in sources and found.is_relative_to(FOLDER):
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


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's function cache in structgen's folder; a damaged or unwritable one means compiling again."""

    _impl_class = _CacheImpl

    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            private_folder.check(Path(self.cache_path))
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: object, data: object) -> None:
        try:
            super().save_overload(sig, data)
        except (CacheError, OSError):
            self.disable()
        except Exception:  # a damaged index: start it afresh
            self.flush()
            super().save_overload(sig, data)


def _keep(kernel: Foreign) -> None:
    """Keep a kernel's machine code across processes, and compile it outside of any definition's budget."""
    if _folder(Path(inspect.getfile(kernel.py_func))) is not None:
        kernel._cache = _KernelCache(kernel.py_func)
    compile = kernel.compile

    def compile_outside(signature: object) -> object:
        with clock.stopped():
            return compile(signature)

    kernel.compile = compile_outside


def _namespace() -> dict[str, object]:
    found: dict[str, object] = {}
    for file in kernel_files():
        module = import_module("." + ".".join(file.relative_to(FOLDER).with_suffix("").parts), __package__)
        found.update({name: value for name, value in vars(module).items() if not name.startswith("_")})
    for each in found.values():
        # With NUMBA_DISABLE_JIT=1, njit hands the function back.
        if isinstance(each, CPUDispatcher) and not each.targetoptions.get("no_cpython_wrapper"):
            _keep(each)
    return found


def _address(array: Foreign) -> int:
    """Where the first number of a contiguous array is."""
    if not array.flags.c_contiguous:
        raise TypeError("address: the array is not contiguous")
    found: int = array.ctypes.data
    return found


#: Every public name of the kernels' files, what the C face has besides, and what stands for a processor.
NAMESPACE = _namespace() | {"address": _address, "PROCESSOR": "jit"}
