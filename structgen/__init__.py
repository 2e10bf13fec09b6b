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
    "Ebnf": "definitions",
    "Gbnf": "definitions",
    "StructuralTag": "definitions",
    "tag": "definitions",
    "sequence": "definitions",
    "one_of": "definitions",
    "text": "definitions",
    "Definition": "definitions",
    "load_definitions": "definitions.loading",
    "NamedDefinition": "definitions.loading",
    "Budget": "budget",
    "ToolStyle": "tools",
    "register_tool_style": "tools",
    "tool_calls": "tools",
    "compile": "api",
    "compile_base_rows": "api",
    "warm": "warming.warm",
    "WarmOptions": "warming.options",
    "Report": "warming.values",
    "Outcome": "warming.values",
    "Index": "runtime.index.index",
    "Guide": "runtime.guide.guide",
    "GuideBatch": "runtime.batch.batch",
    "allocate_bitmask": "runtime.rows.bitmask",
    "apply_bitmask": "runtime.logits.masks",
    "JsonEvents": "runtime.events.events",
    "ReplyEvent": "replies.events",
    "ToolCallReader": "replies.reader",
    "correct": "correction.correct",
    "acorrect": "correction.correct",
    "candidates": "correction.correct",
    "Candidates": "correction.candidates",
    "Correction": "correction.values",
    "Trace": "traces.trace",
    "TracedBatch": "traces.batch",
    "TracedGuide": "traces.guide",
    "explain": "explanations.explain",
    "Explanation": "explanations.values",
    "certify": "certificates.certify",
    "Certificate": "certificates.values",
    "difference": "certificates.difference",
    "Difference": "certificates.difference",
    "Cache": "cache.cache",
    "ObjectStore": "cache.remote.values",
    "cache_key": "index_store",
    "Error": "errors",
    "errors": "errors",
    "grammars": "grammars",
    "integrations": "integrations",
    "migrate": "migrate",
    "runtime": "runtime",
}

#: Modules have the names of their homes.
_MODULES = [name for name, home in _HOMES.items() if name == home]

__all__ = [name for name in _HOMES if name not in _MODULES]

if TYPE_CHECKING:
    from . import errors as errors
    from . import grammars as grammars
    from . import integrations as integrations
    from . import migrate as migrate
    from . import runtime as runtime
    from .api import compile as compile
    from .api import compile_base_rows as compile_base_rows
    from .budget import Budget as Budget
    from .cache.cache import Cache as Cache
    from .cache.remote.values import ObjectStore as ObjectStore
    from .certificates.certify import certify as certify
    from .certificates.difference import Difference as Difference
    from .certificates.difference import difference as difference
    from .certificates.values import Certificate as Certificate
    from .correction.candidates import Candidates as Candidates
    from .correction.correct import acorrect as acorrect
    from .correction.correct import candidates as candidates
    from .correction.correct import correct as correct
    from .correction.values import Correction as Correction
    from .definitions import Definition as Definition
    from .definitions import Ebnf as Ebnf
    from .definitions import Fsm as Fsm
    from .definitions import Gbnf as Gbnf
    from .definitions import Grammar as Grammar
    from .definitions import Indentation as Indentation
    from .definitions import JsonSchema as JsonSchema
    from .definitions import Regex as Regex
    from .definitions import StructuralTag as StructuralTag
    from .definitions import one_of as one_of
    from .definitions import sequence as sequence
    from .definitions import tag as tag
    from .definitions import text as text
    from .definitions.loading import NamedDefinition as NamedDefinition
    from .definitions.loading import load_definitions as load_definitions
    from .errors import Error as Error
    from .explanations.explain import explain as explain
    from .explanations.values import Explanation as Explanation
    from .index_store import cache_key as cache_key
    from .replies.events import ReplyEvent as ReplyEvent
    from .replies.reader import ToolCallReader as ToolCallReader
    from .runtime.batch.batch import GuideBatch as GuideBatch
    from .runtime.events.events import JsonEvents as JsonEvents
    from .runtime.guide.guide import Guide as Guide
    from .runtime.index.index import Index as Index
    from .runtime.logits.masks import apply_bitmask as apply_bitmask
    from .runtime.rows.bitmask import allocate_bitmask as allocate_bitmask
    from .system.types import Foreign
    from .tools import ToolStyle as ToolStyle
    from .tools import register_tool_style as register_tool_style
    from .tools import tool_calls as tool_calls
    from .traces.batch import TracedBatch as TracedBatch
    from .traces.guide import TracedGuide as TracedGuide
    from .traces.trace import Trace as Trace
    from .vocabulary.vocabulary import Vocabulary as Vocabulary
    from .warming.options import WarmOptions as WarmOptions
    from .warming.values import Outcome as Outcome
    from .warming.values import Report as Report
    from .warming.warm import warm as warm


def __getattr__(name: str) -> Foreign:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'structgen' has no attribute {name!r}")
    module = import_module(f".{home}", __name__)
    value = module if name == home else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
