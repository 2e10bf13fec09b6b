"""Which files the kernels are compiled from, and their hash."""

from __future__ import annotations

from pathlib import Path

from ..system.digest import blake2b

#: The folder of the kernels' sources.
FOLDER = Path(__file__).parent

#: Files of the folder that have no kernels.
_OTHERS = {"__init__.py", "fallback.py", "signatures.py", "sources.py"}


def kernel_files() -> list[Path]:
    """The files that kernels are compiled from, in a fixed order."""
    return [each for each in _all_files() if each.parent.name != "aot" and each.name not in _OTHERS | {"jit.py"}]


def digest() -> str:
    """The hash of everything that the compiled module is made from, in hexadecimal."""
    hashed = blake2b(digest_size=16)
    for file in _all_files():
        if file.name not in _OTHERS:
            data = file.read_bytes()
            hashed.update(f"{file.relative_to(FOLDER).as_posix()}\n{len(data)}\n".encode())
            hashed.update(data)
    return hashed.hexdigest()


def _all_files() -> list[Path]:
    return sorted(each for each in FOLDER.rglob("*") if each.suffix in {".py", ".h"})
