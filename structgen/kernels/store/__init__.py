"""Kernels of a store: configurations of an automaton with a stack, where tokens lead from them, and their masks.

And the same of automata without a stack, whose configurations need no tables (`automata`).

`layout` says which tables there are; `structgen.runtime.pushdown.store` owns them. `sequences` has the kernels of
batches, over many stores.
"""

from __future__ import annotations

from .automata import *
from .deciding import *
from .growing import *
from .interning import *
from .layout import *
from .masks import *
from .rows import *
from .sequences import *
from .steps import *
