"""The fewest bytes that end a lexeme as a given terminal, and which bytes these are.

Beside a lexeme earlier ones may be watched, which its bytes must not complete
(`structgen.runtime.grammar.partial_masks`). Without obligations, the way to the end is a question of
the lexer state alone: a search backwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....errors import FormatError
from ...core.lazy_table import LazyTable
from ..completability.obligations import Watched
from ..tables import GrammarTables
from .parser_costs import FAR

#: Where a lexeme is: a lexer state and the obligations, ascending.
Spot = tuple[int, Watched]


class LexemeCosts:
    """Costs of one lexer's lexemes.

    Parameters
    ----------
    tables:
        The lexer.
    chosen:
        A byte of each class that may be used, the preferred ones first.
    """

    def __init__(self, tables: GrammarTables, chosen: list[int]) -> None:
        self._rows = tables.rows
        self._ends = tables.ends_of
        self._obligations = tables.obligations
        #: The bytes that may be used, each with its class.
        self.chosen = [(byte, int(tables.class_of[byte])) for byte in chosen]
        self._tables = tables
        self._targets = tables.table[:, [c for _, c in self.chosen]]
        targets = self._targets
        sources, which = np.nonzero(targets >= 0)
        into = targets[sources, which]
        order = np.argsort(into, kind="stable")
        self._sources = sources[order].astype(np.int32)
        self._begins = np.searchsorted(into[order], np.arange(len(targets) + 1))
        #: By terminal, by lexer state: bytes up to an end without obligations.
        self.plain = LazyTable(self._backwards)
        self._known: dict[tuple[Spot, int], int] = {}
        self._steps: dict[tuple[Spot, int], tuple[int, Spot]] = {}

    def least(self, starts: list[int]) -> dict[int, int]:
        """By terminal the fewest bytes from some state of the lexer up to an end without obligations."""
        ends = self._tables.ends
        far = np.full(len(self._targets), FAR, np.int64)
        level: NDArray[np.int64] = np.unique(starts).astype(np.int64)
        count = 0
        while len(level):
            far[level] = count
            count += 1
            after = np.unique(self._targets[level])
            level = after[(after >= 0) & (far[after] >= FAR)].astype(np.int64)
        found: dict[int, int] = {}
        for terminal, cost in zip(ends[:, 1].tolist(), far[ends[:, 0]].tolist(), strict=True):
            found[terminal] = min(cost, found.get(terminal, FAR))
        return found

    def _backwards(self, terminal: int) -> list[int]:
        ends = self._tables.ends
        far = np.full(len(self._tables.table), FAR, np.int64)
        level: NDArray[np.int64] = np.unique(ends[ends[:, 1] == terminal, 0]).astype(np.int64)
        count = 0
        while len(level):
            far[level] = count
            count += 1
            parts = [self._sources[self._begins[s] : self._begins[s + 1]] for s in level.tolist()]
            before = np.unique(np.concatenate(parts))
            level = before[far[before] >= FAR].astype(np.int64)
        found: list[int] = far.tolist()
        return found

    def moved(self, spot: Spot, c: int) -> Spot | None:
        """Where a byte of a class leads; None where the lexeme cannot go on, or it violates an obligation."""
        state, watched = spot
        target = self._rows[state][c]
        if target < 0:
            return None
        left = self._obligations.after(watched, c)
        return None if left is None else (target, left)

    def ended(self, spot: Spot, terminal: int) -> Watched | None:
        """The boundary behind a lexeme that ends right here as a terminal; None where it does not."""
        state, watched = spot
        for each, watch in self._ends[state]:
            if each == terminal:
                return self._obligations.with_state(watch, watched)
        return None

    def bytes(self, spot: Spot, terminal: int) -> int:
        """The fewest bytes up to an end; `FAR` where there is none."""
        plain = self.plain[terminal]
        if not spot[1]:
            return plain[spot[0]]
        found = self._known.get((spot, terminal))
        if found is None:
            found = self._known[spot, terminal] = self._search(spot, terminal, plain)
        return found

    def _search(self, spot: Spot, terminal: int, plain: list[int]) -> int:
        best, count, level, seen = FAR, 0, [spot], {spot}
        while level and count < best:
            following = []
            for here in level:
                if count + plain[here[0]] >= best:
                    continue  # even with nothing watched
                if not here[1] or not plain[here[0]]:
                    best = count + plain[here[0]]
                    continue
                for _, c in self.chosen:
                    after = self.moved(here, c)
                    if after is not None and after not in seen:
                        seen.add(after)
                        following.append(after)
            level, count = following, count + 1
        return best

    def step(self, spot: Spot, terminal: int) -> tuple[int, Spot]:
        """The first byte on the way to an end, which is not here, and where it leads."""
        found = self._steps.get((spot, terminal))
        if found is None:
            wanted = self.bytes(spot, terminal) - 1
            for byte, c in self.chosen:
                after = self.moved(spot, c)
                if after is not None and self.bytes(after, terminal) == wanted:
                    found = self._steps[spot, terminal] = byte, after
                    break
            else:
                raise FormatError("the lexer's tables contradict themselves: no byte leads to a lexeme's end")
        return found

    def path(self, spot: Spot, terminal: int) -> list[Spot]:
        """The lexer's spots after each byte of the shortest path to the lexeme's end, which must exist."""
        found = [spot]
        while self.bytes(found[-1], terminal):
            found.append(self.step(found[-1], terminal)[1])
        return found

    def boundary(self, spot: Spot, terminal: int) -> Watched:
        """The boundary behind the lexeme's end."""
        boundary = self.ended(self.path(spot, terminal)[-1], terminal)
        assert boundary is not None
        return boundary

    @property
    def remembered(self) -> int:
        """How many costs of lexemes with obligations are remembered."""
        return len(self._known) + len(self._steps)

    def forget(self) -> None:
        """Forget the costs of lexemes with obligations."""
        self._known, self._steps = {}, {}
