"""structgen: exact token masks for structured generation, compiled ahead of time.

>>> import structgen as sg
>>> vocab = sg.Vocabulary.from_bytes([b"a", b"b", b"ab", None], eos_ids=[3])
>>> index = sg.compile(sg.Regex("(ab)+"), vocab)
>>> guide = sg.Guide(index)
>>> [t for t in range(4) if guide.allows(t)]
[0, 2]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

#: Where each public name lives; modules load when a name is first used, so that the import stays cheap.
_HOMES = {
    "Vocabulary": "vocabulary.vocabulary",
    "Regex": "definitions",
    "Fsm": "definitions",
    "JsonSchema": "definitions",
    "Grammar": "definitions",
    "Indentation": "definitions",
    "Gbnf": "definitions",
    "Definition": "definitions",
    "Budget": "budget",
    "compile": "api",
    "compile_base_rows": "api",
    "Index": "runtime.index.index",
    "Guide": "runtime.guide.guide",
    "GuideBatch": "runtime.batch.batch",
    "JsonEvents": "runtime.events.events",
    "Cache": "cache.cache",
    "Error": "errors",
    "errors": "errors",
}

__all__ = [
    "Budget",
    "Cache",
    "Definition",
    "Error",
    "Fsm",
    "Gbnf",
    "Grammar",
    "Guide",
    "GuideBatch",
    "Indentation",
    "Index",
    "JsonEvents",
    "JsonSchema",
    "Regex",
    "Vocabulary",
    "compile",
    "compile_base_rows",
]

if TYPE_CHECKING:
    from . import errors as errors
    from .api import compile, compile_base_rows
    from .budget import Budget
    from .cache.cache import Cache
    from .definitions import Definition, Fsm, Gbnf, Grammar, Indentation, JsonSchema, Regex
    from .errors import Error
    from .runtime.batch.batch import GuideBatch
    from .runtime.events.events import JsonEvents
    from .runtime.guide.guide import Guide
    from .runtime.index.index import Index
    from .vocabulary.vocabulary import Vocabulary


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'structgen' has no attribute {name!r}")
    module = import_module(f".{home}", __name__)
    value = module if name == "errors" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "errors"])
