"""Conversion of other engines' definitions, with a report of the differences.

Each function takes the arguments of its engine's own calls, as text or as the engine's object, and imports no
engine. An option that structgen does not support is refused by name, here or when the definition is compiled.
Differences in meaning are listed in `Migrated.changes`.
"""

from __future__ import annotations

from .llama_cpp import from_llama_cpp
from .llguidance import from_guidance, from_llguidance
from .lm_format_enforcer import from_lm_format_enforcer
from .migrated import Migrated
from .outlines import from_outlines
from .syncode import from_syncode
from .xgrammar import from_xgrammar

__all__ = [
    "Migrated",
    "from_guidance",
    "from_llama_cpp",
    "from_llguidance",
    "from_lm_format_enforcer",
    "from_outlines",
    "from_syncode",
    "from_xgrammar",
]
