"""`WarmOptions`: how `structgen.warm` compiles, and how it deals with those who work for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..budget import Budget


@dataclass(frozen=True)
class WarmOptions:
    """What `structgen.warm` does beyond its defaults.

    Parameters
    ----------
    eager, budget, threads:
        As in `structgen.compile`.
    shard:
        ``(3, 16)``: the third of 16 parts of the work, which are each other's rest for the same definitions.
    retries:
        Times that a definition is tried again whose worker died, or broke off with an error that is none of
        structgen's.
    patience:
        Wall-clock seconds after which a worker's process ends itself, with the stacks of its threads on its standard
        error, if a definition is not done: one that hangs, for those that only take long end by their budget, and the
        default is thirty times its. None: never. Threads of this process are waited for.
    in_flight:
        Batches of definitions that the executor has at a time: two for each worker, by which their sizes go.
    hand_back:
        Workers send the values back and the caller writes them, for workers that reach neither the cache's folder
        nor an object store behind it.

    Raises
    ------
    ArgumentError
        For a shard that is none, negative retries, no patience, or fewer than one in flight.
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
