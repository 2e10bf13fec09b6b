"""What runs at inference: indexes, guides, bitmasks, and their way onto logits.

Importing this package loads neither torch nor transformers; a name that needs them loads them when it is
first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Guide": "guide",
    "Index": "index",
    "LogitsProcessor": ".integrations.transformers",
    "allocate": "bitmask",
    "apply_bitmask": "logits",
    "fill_batch": "bitmask",
    "heal": "healing",
    "ids_of": "bitmask",
}

__all__ = ["Guide", "Index", "LogitsProcessor", "allocate", "apply_bitmask", "fill_batch", "heal", "ids_of"]

if TYPE_CHECKING:
    from .bitmask import allocate, fill_batch, ids_of
    from .guide import Guide
    from .healing import heal
    from .index import Index
    from .logits import apply_bitmask

    LogitsProcessor: Any  # it lives in structgen.integrations.transformers


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
