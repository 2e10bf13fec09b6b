"""The interface between a `Guide` and the kind of automaton behind its index.

A machine is shared and immutable to its users; a configuration is one sequence's place in it. For a regex a
configuration is an integer; tables with a stack will use a tuple with a persistent stack. The guide only keeps
configurations and hands them back, so that rollback and fork cost nothing whatever the machine is.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Config = Hashable


class Machine(Protocol):
    """One compiled definition over one vocabulary."""

    @property
    def start(self) -> Config:
        """The configuration before the first token."""
        ...

    def advance(self, config: Config, token_id: int) -> Config | None:
        """Where a token that has bytes leads, or ``None`` where it is not allowed. EOS ids are not passed."""
        ...

    def row(self, config: Config) -> NDArray[np.int32]:
        """The bitmask of a configuration, EOS ids included: a read-only ``int32[words]``."""
        ...

    def is_accepting(self, config: Config) -> bool:
        """Whether the text so far is complete."""
        ...
