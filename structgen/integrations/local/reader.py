"""`Reader`: what has scores for the token behind some ids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Reader(Protocol):
    """A model, with what it keeps of the ids that it read last."""

    #: Ids that it can read at most; None for any number.
    window: int | None

    def read(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """The scores of the token behind some ids, ``float32[width]``, the caller's own.

        Only ids that follow those it has in common with the last call are read; what was read of others is forgotten.
        """
        ...


def known(before: Sequence[int], ids: Sequence[int]) -> int:
    """How many leading ids were read before, of all but the last, whose scores are asked for."""
    pairs = zip(before, ids[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
