"""What a definition may cost. Definitions come from strangers, so every compile runs under a budget."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .errors import BudgetExceededError


@dataclass(frozen=True)
class Budget:
    """Upper bounds on one compile; going over any of them raises `BudgetExceededError`.

    Parameters
    ----------
    states:
        Automaton states, of the largest automaton built on the way.
    memory:
        Bytes held by the compiler's own arrays, token rows included.
    seconds:
        Wall-clock seconds for one compile.
    depth:
        Nesting of groups in a definition.
    """

    states: int = 200_000
    memory: int = 1 << 30
    seconds: float = 20.0
    depth: int = 1_000

    def __post_init__(self) -> None:
        for name in ("states", "memory", "seconds", "depth"):
            if not getattr(self, name) > 0:
                raise ValueError(f"Budget.{name} must be positive, got {getattr(self, name)!r}")


class Meter:
    """Measures one compile against its `Budget`. Made when the compile starts."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._deadline = time.monotonic() + budget.seconds

    def work(self, per_second: int) -> int:
        """Units of work that fit into the time left, at so many a second."""
        return max(0, int((self._deadline - time.monotonic()) * per_second))

    def out_of_time(self, doing: str) -> BudgetExceededError:
        """The error for work that would not be done in time."""
        return BudgetExceededError(
            f"compiling takes longer than {self.budget.seconds:g} seconds",
            where=doing,
            remedy="Simplify the definition, or pass a larger budget=Budget(seconds=...).",
        )

    def check_time(self, doing: str) -> None:
        """Raise `BudgetExceededError` when the time is up; ``doing`` names the phase for the message."""
        if time.monotonic() > self._deadline:
            raise self.out_of_time(doing)

    def check_states(self, states: int, doing: str) -> None:
        """Raise `BudgetExceededError` when an automaton has, or would have, more states than granted."""
        if states > self.budget.states:
            raise BudgetExceededError(
                f"the definition needs at least {states:,} automaton states, the budget is {self.budget.states:,}",
                where=doing,
                remedy="Shrink its counted repeats, or pass a larger budget=Budget(states=...).",
            )

    def check_memory(self, nbytes: int, doing: str) -> None:
        """Raise `BudgetExceededError` when arrays hold, or would hold, more bytes than granted."""
        if nbytes > self.budget.memory:
            raise BudgetExceededError(
                f"the definition needs at least {nbytes:,} bytes, the budget is {self.budget.memory:,}",
                where=doing,
                remedy="Simplify the definition, or pass a larger budget=Budget(memory=...).",
            )
