"""`Limits`: how many tokens the rows of a batch have left, and from when on that matters.

Far from the end a row is at an ordinary configuration of its index, and only its tokens are counted. When what is
left comes near the distance to the end, the row goes on in a `LimitedMachine`, whose configurations
hold what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import TokenBudgetError
from ...system.arguments import Integers, integer
from ...system.memo import Memo
from ..core.machine import Config
from ..index.token_budget import LimitedMachine, checked

if TYPE_CHECKING:
    from ..guide.guide import Guide
    from ..index.index import Index
    from .histories import Histories
    from .steppers import Steppers

#: Of a row that may have any number of tokens, and of one that is to be looked at no more.
_ANY, _NEVER = 1 << 62, -(1 << 62)

#: Tokens that a row can have, which no text reaches.
_MOST = _ANY - 1

#: Machines that are kept ready.
_MOST_MACHINES = 1 << 10


class Limits:
    """What rows have left.

    Parameters
    ----------
    steppers, histories:
        What the batch's rows move over, and where they are.
    """

    def __init__(self, steppers: Steppers, histories: Histories) -> None:
        self._steppers = steppers
        self._histories = histories
        self._machines: Memo[int, LimitedMachine] = Memo(_MOST_MACHINES)
        #: ``int64[rows]``: the tokens that each row began with, and has left; it is looked at when no more than
        #: ``near`` are left.
        self.given = np.zeros(0, np.int64)
        self.left = np.zeros(0, np.int64)
        self._near = np.zeros(0, np.int64)
        self._is_used = False

    def add(self, index: Index | None, given: int | None, left: int | None = None) -> None:
        """Append a row, which has all left that it was given if nothing else is said; None for any number of tokens.

        Raises `TokenBudgetError` as `LimitedMachine` does.
        """
        if given is not None:
            given = integer(given, "max_tokens", TokenBudgetError)
        if index is None or given is None:
            given = left = _ANY
        else:
            self._machine(index)
            given = min(checked(index, given), _MOST)
            left = given if left is None else min(left, _MOST)
            self._is_used = True
        self.given, self.left = np.append(self.given, np.int64(given)), np.append(self.left, np.int64(left))
        self._near = np.append(self._near, np.int64(_NEVER))

    def _machine(self, index: Index) -> LimitedMachine:
        found = self._machines.get(id(index))  # which the machine keeps alive
        if found is None:
            found = self._machines[id(index)] = LimitedMachine(index)
        return found

    def of(self, row: int) -> int | None:
        """The tokens that a row began with; None for any number."""
        return int(self.given[row]) if self.given[row] < _ANY else None

    def reorder(self, chosen: NDArray[np.int32]) -> None:
        """Have row ``i`` be what row ``chosen[i]`` was."""
        self.given, self.left, self._near = self.given[chosen], self.left[chosen], self._near[chosen]
        self._is_used = bool((self.given < _ANY).any())

    def take(self, rows: NDArray[np.int32], indexes: Sequence[Index | None]) -> None:
        """Rows have accepted a token each."""
        if self._is_used:
            self.left[rows] -= 1
            self.look(rows[self.left[rows] <= self._near[rows]], indexes)

    def give_back(self, rows: NDArray[np.int32], counts: Integers, indexes: Sequence[Index | None]) -> None:
        """Tokens of rows have been taken back."""
        if self._is_used:
            self.left[rows] += counts
            self.look(rows, indexes)

    def look(self, rows: NDArray[np.int32], indexes: Sequence[Index | None], ahead: int = 0) -> None:
        """Move rows that are near the end, or may be so many tokens ahead, to configurations that hold what is left.

        ``indexes`` are those of all rows.
        """
        if not self._is_used:
            return
        steppers, histories = self._steppers, self._histories
        for row in rows.tolist():
            if self.given[row] >= _ANY:
                continue
            node = int(histories.at[row])
            pair, index = steppers.config(int(histories.places[node])), indexes[row]
            self._near[row] = _NEVER
            if pair is None or index is None or pair[0] is not index.machine:  # it has ended, or is there already
                continue
            machine, left = self._machine(index), int(self.left[row])
            near = machine.distances.near(pair[1], left)
            if left - ahead > near:
                self._near[row] = near
                continue
            [histories.places[node]] = steppers.places(machine, [machine.at(pair[1], left)])

    def path(self, row: int, configs: list[Config]) -> list[Config]:
        """The configurations that a row was at, None for the end, those of a `LimitedMachine` if it has one."""
        if self.given[row] >= _ANY:
            return configs
        first = int(self.left[row]) + len(configs) - 1
        return [c if c is None or type(c) is tuple else (c, first - i, first - i) for i, c in enumerate(configs)]


def unlimited_path(guide: Guide) -> tuple[list[Config], int | None, int | None]:
    """The path of a guide as configurations of its index, its token budget, and what is left of that."""
    path = guide.path()
    if guide.machine is guide.index.machine:
        return path, None, None
    given = guide.machine.start[1]
    return [pair and pair[0] for pair in path], given, given - len(guide.tokens())
