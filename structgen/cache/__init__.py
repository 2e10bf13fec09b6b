"""The on-disk cache of compiled indexes and vocabularies; docs/guide/cache.md tells how it works."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["Cache", "Entry", "Problem"]

if TYPE_CHECKING:
    from .audit import Problem
    from .cache import Cache
    from .entry import Entry


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import cache

    return getattr(cache, name)
