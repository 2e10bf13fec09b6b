"""Where `LogitsProcessor` used to live: it is `structgen.integrations.transformers.LogitsProcessor`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    LogitsProcessor: Any

__all__ = ["LogitsProcessor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("structgen.integrations.transformers"), name)
