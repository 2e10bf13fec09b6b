"""Which files the kernels are compiled from, and their hash."""

from __future__ import annotations

from pathlib import Path

from .digest import OTHERS, digest, files

__all__ = ["FOLDER", "digest", "kernel_files"]

#: The folder of the kernels' sources.
FOLDER = Path(__file__).parent


def kernel_files() -> list[Path]:
    """The files that kernels are compiled from, in a fixed order."""
    found = [FOLDER / name for name in files()]
    return [each for each in found if each.parent.name != "aot" and each.name not in OTHERS | {"jit.py"}]
