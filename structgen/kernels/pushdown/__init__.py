"""Kernels of automata with a stack: their arena, stacks and sets, and walks of the trie through them.

What holds of all kernels holds here (`structgen.kernels`); docs/internals/stacks.md derives the walks.
"""

from __future__ import annotations

from .agreement import *
from .arena import *
from .arena_columns import *
from .cells import *
from .count_tables import *
from .counts import *
from .differences import *
from .flattening import *
from .set_walks import *
from .sets import *
from .subautomata import *
from .threads import *
from .walks import *
