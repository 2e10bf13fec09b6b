"""Which files the kernels are compiled from, and their hash, which whoever runs from a checkout compares first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..system.digest import blake2b

if TYPE_CHECKING:
    from pathlib import Path

#: The folder of the kernels' sources.
FOLDER = os.path.dirname(__file__)

#: Files of the folder that have no kernels.
_OTHERS = {"__init__.py", "fallback.py", "signatures.py", "sources.py"}


def kernel_files() -> list[Path]:
    """The files that kernels are compiled from, in a fixed order."""
    from pathlib import Path

    names = [name for name in _sources() if not name.startswith("aot/") and name != "jit.py"]
    return [Path(FOLDER, name) for name in names]


def digest() -> str:
    """The hash of everything that the compiled module is made from, in hexadecimal."""
    hashed = blake2b(digest_size=16)
    for name in _sources():
        with open(f"{FOLDER}/{name}", "rb") as file:
            data = file.read()
        hashed.update(f"{name}\n{len(data)}\n".encode())
        hashed.update(data)
    return hashed.hexdigest()


def _sources() -> list[str]:
    """Their names in the folder, in a fixed order."""
    found = [
        os.path.relpath(os.path.join(within, name), FOLDER).replace(os.sep, "/")
        for within, _, names in os.walk(FOLDER)
        for name in names
        if name.endswith((".py", ".h")) and name not in _OTHERS
    ]
    return sorted(found, key=lambda name: name.split("/"))
