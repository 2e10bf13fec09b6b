"""`Reader`: what has scores for the token behind some ids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Reader(Protocol):
    """A model whose scores are read one sequence at a time, with a cache of the ids that it read last."""

    #: Ids that it can read at most; None for any number.
    window: int | None

    def read(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Return the scores of the token after ``ids``, ``float32[width]``, which the caller may change.

        Only ids after the common prefix with the last call are read.
        """
        ...


def known(before: Sequence[int], ids: Sequence[int]) -> int:
    """How many leading ids were read before, of all but the last, whose scores are asked for."""
    pairs = zip(before, ids[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
