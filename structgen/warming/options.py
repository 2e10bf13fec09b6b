"""`WarmOptions`: how `structgen.warm` compiles, and how it deals with those who work for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..budget import Budget


@dataclass(frozen=True)
class WarmOptions:
    """Options of `structgen.warm`.

    Parameters
    ----------
    eager, budget, threads:
        As in `structgen.compile`.
    shard:
        ``(3, 16)`` selects the third of 16 parts of the work. Machines with the same definitions and different
        shards divide it among them.
    retries:
        Number of times that a definition is tried again after its worker died or failed with an unexpected error.
    patience:
        Wall-clock seconds after which a worker process that has not finished a definition ends itself, with a stack
        trace of its threads on standard error. It is for workers that hang; slow compiles end by their budget.
        None: never. Threads of this process are waited for. Default: 600.
    in_flight:
        Number of batches of definitions that the executor holds at a time. Their sizes are chosen for two batches
        per worker.
    hand_back:
        Workers return the values and the caller writes them, for workers that reach neither the cache's folder nor
        its object store.

    Raises
    ------
    ArgumentError
        For an invalid shard, negative ``retries``, no ``patience``, or ``in_flight`` below 1.
    """

    eager: bool = True
    budget: Budget | None = None
    threads: int | None = None
    shard: tuple[int, int] = (1, 1)
    retries: int = 1
    patience: float | None = 600.0
    in_flight: int = 64
    hand_back: bool = False

    def __post_init__(self) -> None:
        part, parts = self.shard
        if not (type(part) is int and type(parts) is int and 1 <= part <= parts):
            raise ArgumentError(f"{part!r} of {parts!r} is no shard", remedy="Write (1, 4) for the first of four.")
        if self.retries < 0 or self.in_flight < 1:
            raise ArgumentError(f"retries is {self.retries!r} and in_flight {self.in_flight!r}: at least 0 and 1")
        if self.patience is not None and not self.patience > 0:
            raise ArgumentError(f"patience is {self.patience!r}: more than no seconds, or None")
