"""The classes of Outlines 1.3 that structgen derives its own from, for where Outlines is not installed."""

from __future__ import annotations

from typing import Any


class OutlinesLogitsProcessor:
    def __init__(self, tensor_library_name: str) -> None:
        self.tensor_library_name = tensor_library_name


class BaseBackend:
    pass


MODULES: dict[str, dict[str, Any]] = {
    "outlines": {},
    "outlines.backends": {"_get_backend": lambda name, model: None},
    "outlines.backends.base": {"BaseBackend": BaseBackend},
    "outlines.processors": {"OutlinesLogitsProcessor": OutlinesLogitsProcessor},
}
