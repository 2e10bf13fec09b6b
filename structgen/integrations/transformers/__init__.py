"""transformers: a processor for ``generate()``, a loop of its own, continuous batching, serving.

Comes in: an `Index`, or one for each prompt. Goes out: scores. Each name loads its module when it is first used.

Read `processor`, `custom_generate` (what must follow is appended without asking the model) with `loops`,
`optimistic` and `caches` (choosing without masks, and going back), `batching`, `serve`. `tracing`, `traced_generate`
and `traced_batching` record what these do, to be looked at.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...system.types import Foreign
    from .batching import ContinuousBatchingLogitsProcessor as ContinuousBatchingLogitsProcessor
    from .custom_generate import generate as generate
    from .processor import LogitsProcessor as LogitsProcessor
    from .traced_batching import TracedBatchingProcessor as TracedBatchingProcessor
    from .traced_generate import TracedGenerate as TracedGenerate
    from .tracing import TracingProcessor as TracingProcessor

__all__ = [
    "ContinuousBatchingLogitsProcessor",
    "LogitsProcessor",
    "TracedBatchingProcessor",
    "TracedGenerate",
    "TracingProcessor",
    "generate",
]

_HOMES = {
    "ContinuousBatchingLogitsProcessor": ".batching",
    "LogitsProcessor": ".processor",
    "TracedBatchingProcessor": ".traced_batching",
    "TracedGenerate": ".traced_generate",
    "TracingProcessor": ".tracing",
    "generate": ".custom_generate",
}


def __getattr__(name: str) -> Foreign:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
