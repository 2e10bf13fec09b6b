"""`Drafts`: tokens that another model proposes for rows of a batch, and what may follow each of them.

A draft moves no sequence. Its masks come in one call; what the model then accepts is appended with
`GuideBatch.advance_many`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import BatchError, StructgenError
from ...kernels import ENDED
from .steppers import Steppers


class Drafts:
    """The tokens of some trees, followed from where rows of a batch were; made by `GuideBatch.draft`.

    Parameters
    ----------
    steppers:
        What the batch moves over; masks can be asked for until it lets go of some.
    tokens, above, begins:
        ``int32[n]``, ``int32[n]``, ``int64[n]``: the tokens, the index of the token before each, an earlier one, or
        -1 for none, and the place of the row that each belongs to.
    """

    def __init__(
        self, steppers: Steppers, tokens: NDArray[np.int32], above: NDArray[np.int32], begins: NDArray[np.int64]
    ) -> None:
        self._steppers = steppers
        self._generation = steppers.generation
        self._reached, errors = steppers.follow(tokens, above, begins)
        #: What was wrong, by index: more than that a token is not allowed.
        self.errors: dict[int, StructgenError] = errors

    @property
    def accepted(self) -> NDArray[np.bool_]:
        """Which tokens are allowed, with all those before them; ``bool[n]``."""
        allowed: NDArray[np.bool_] = self._reached >= 0
        return allowed

    def row_ids(self) -> NDArray[np.int32]:
        """The id of the mask behind each token, as `GuideBatch.row_ids` has them; ``int32[n]``.

        Behind a token that is not allowed, which nothing can come of, it is that of the EOS ids. Raises `BatchError`
        once the batch has forgotten where the draft led.
        """
        numbers, errors = self._steppers.numbers_of_rows(self._places())
        self.errors |= errors
        return self._steppers.rows.ids_of(numbers)

    def fill_bitmask(self, bitmask: object) -> None:
        """Write the mask behind each token into ``bitmask``, ``int32[n, words]`` or wider; see `row_ids`."""
        self.errors |= self._steppers.fill(self._places(), bitmask)

    def _places(self) -> NDArray[np.int64]:
        """Where tokens lead, as it is now; behind one that is not allowed a text has ended."""
        if self._generation != self._steppers.generation:
            raise BatchError(
                "the batch has moved on, and forgotten where a draft led",
                remedy="Ask for a draft's masks before rows are moved.",
            )
        return np.maximum(self._reached, ENDED)
