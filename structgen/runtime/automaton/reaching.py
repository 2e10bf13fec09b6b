"""Which nodes of a graph lead to some."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.types import Array


def reaching(tails: Array, heads: Array, goals: Array) -> NDArray[np.bool_]:
    """The nodes from which a goal is reached, ``bool[nodes]`` as ``goals``; edges are integers ``[m]`` each."""
    found = goals.astype(np.bool_)
    scratch = np.empty(len(tails) + 2 * len(goals) + 2, np.int32)
    kernels.co_accessible(tails.astype(np.int32), heads.astype(np.int32), found.view(np.uint8), scratch)
    return found
