"""The modules that run at inference: indexes, guides, bitmasks, and their way onto logits.

Importing this package loads neither torch nor transformers; a name that needs them loads them when it is
first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "Guide": "guide.guide",
    "Index": "index.index",
    "LogitsProcessor": ".integrations.transformers",
    "fill_batch": "guide.batches",
    "heal": "index.healing",
    "ids_of": "rows.bitmask",
}

__all__ = ["Guide", "Index", "LogitsProcessor", "fill_batch", "heal", "ids_of"]

if TYPE_CHECKING:
    from ..system.types import Foreign
    from .guide.batches import fill_batch
    from .guide.guide import Guide
    from .index.healing import heal
    from .index.index import Index
    from .rows.bitmask import ids_of

    LogitsProcessor: Foreign  # it lives in structgen.integrations.transformers


def __getattr__(name: str) -> Foreign:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
