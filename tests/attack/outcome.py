"""`Outcome`: what came of one area."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Outcome:
    """Counts, what did not hold, and the worst that was seen.

    Parameters
    ----------
    cases, refused, left:
        How many were run, how many of them ended in a typed error, as they may, and for how many there was no time.
    violations:
        What did not hold, a line each.
    seconds, nbytes, step:
        The worst case: processor seconds and bytes of a compile, processor seconds of a step. ``places`` says whose.
    absent:
        Why nothing was run.
    """

    cases: int = 0
    refused: int = 0
    left: int = 0
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0
    nbytes: int = 0
    step: float = 0.0
    places: dict[str, str] = field(default_factory=dict)
    absent: str = ""

    def worst(self, measure: str, value: float, name: str) -> None:
        """Take note of a measurement, where it is the worst so far."""
        if value > getattr(self, measure):
            setattr(self, measure, value)
            self.places[measure] = name

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return asdict(self)
