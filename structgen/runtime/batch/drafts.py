"""`Drafts`: tokens that another model proposes for rows of a batch, and what may follow each of them.

A draft moves no sequence. Its masks come in one call; what the model then accepts is appended with
`GuideBatch.advance_many`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import BatchError, StructgenError
from ...kernels import DEAD, UNKNOWN
from ..rows.row_store import EOS_IDS, RowStore
from .lazy_automaton import LazyAutomaton


class Drafts:
    """The tokens of some trees, followed from where rows of a batch were; made by `GuideBatch.draft`.

    Parameters
    ----------
    automaton:
        What the batch moves over; masks can be asked for until it begins anew.
    rows:
        The batch's masks.
    tokens, above, begins:
        ``int32[n]``: the tokens, the index of the token before each, an earlier one, or -1 for none, and the
        configuration of the row that each belongs to.
    """

    def __init__(
        self,
        automaton: LazyAutomaton,
        rows: RowStore,
        tokens: NDArray[np.int32],
        above: NDArray[np.int32],
        begins: NDArray[np.int32],
    ) -> None:
        self._automaton, self._rows = automaton, rows
        self._generation = automaton.generation
        #: What was wrong, by index: more than that a token is not allowed.
        self.errors: dict[int, StructgenError] = {}
        self._reached = self._follow(tokens, above, begins)

    def _follow(
        self, tokens: NDArray[np.int32], above: NDArray[np.int32], begins: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        automaton = self._automaton
        reached = np.full(len(tokens), UNKNOWN, np.int32)
        while True:
            index = kernels.follow_tree(
                tokens, above, begins, automaton.offsets, automaton.blob, automaton.following, automaton.spelled_in,
                automaton.keys, automaton.values, automaton.used_at, automaton.now, reached,
            )  # fmt: skip
            if index < 0:
                return reached
            before = above[index]
            pair = int(begins[index] if before < 0 else reached[before]), int(tokens[index])
            for error in automaton.find_targets([pair]).values():
                self.errors[index], reached[index] = error, DEAD

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
        return self._rows.ids_of(self._find_rows())

    def _find_rows(self) -> NDArray[np.int32]:
        """The numbers of the masks, as they are now."""
        if self._generation != self._automaton.generation:
            raise BatchError(
                "the batch has moved on, and forgotten where a draft led",
                remedy="Ask for a draft's masks before rows are moved.",
            )
        allowed = np.flatnonzero(self._reached >= 0)
        configs = self._reached[allowed]
        for config, error in self._automaton.find_rows(configs).items():
            self.errors |= dict.fromkeys(allowed[configs == config].tolist(), error)
        found = np.full(len(self._reached), EOS_IDS, np.int32)
        rows = self._automaton.row_of[configs]
        found[allowed] = np.where(rows == UNKNOWN, EOS_IDS, rows)
        return found

    def fill_bitmask(self, bitmask: object) -> None:
        """Write the mask behind each token into ``bitmask``, ``int32[n, words]`` or wider; see `row_ids`."""
        self._rows.copy(self._find_rows(), bitmask)
