"""From the cache to the first mask: how long a server waits for a definition that was compiled before.

Two processes: one compiles every regex into a cache, then one that has never compiled opens them. In the second,
the vocabulary is in memory and the `Cache` object has been used once; the files are in the page cache, for the
first process has just written them.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import structgen as sg

from .. import vocabularies, worker

#: Opened before the clock starts, so that the cache's database is open and modules are loaded.
_DECOY = "decoy"


def measure(patterns: list[str], vocabulary: Path, repeats: int) -> tuple[list[list[int]], int]:
    """Nanoseconds from `structgen.compile` on a cache hit to the first mask.

    Returns ``repeats`` times for each pattern, and the time of the very first hit in the process, modules and
    database included.
    """
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        with worker.Process(Opening, vocabulary, folder, one_thread=False) as process:
            process.call("warm", patterns)
        with worker.Process(Opening, vocabulary, folder, one_thread=False) as process:
            found: tuple[list[list[int]], int] = process.call("open_all", patterns, repeats)
    return found


class Opening:
    """A vocabulary and a cache, in a process of its own."""

    def __init__(self, vocabulary: Path, folder: str) -> None:
        self._vocabulary, self._cache = vocabularies.read(vocabulary), sg.Cache(folder)

    def warm(self, patterns: list[str]) -> None:
        """Compile everything into the cache."""
        for pattern in [_DECOY, *patterns]:
            sg.compile(sg.Regex(pattern), self._vocabulary, cache=self._cache)

    def open_all(self, patterns: list[str], repeats: int) -> tuple[list[list[int]], int]:
        """Time the hits; see `measure`. Raises `RuntimeError` for a miss."""
        bitmask = np.zeros(self._vocabulary.words, np.int32)
        very_first = self._open(_DECOY, bitmask)
        times: list[list[int]] = [[] for _ in patterns]
        for _ in range(repeats):
            for pattern, found in zip(patterns, times, strict=True):
                found.append(self._open(pattern, bitmask))
        return times, very_first

    def _open(self, pattern: str, bitmask: np.typing.NDArray[np.int32]) -> int:
        begin = time.perf_counter_ns()
        index = sg.compile(sg.Regex(pattern), self._vocabulary, cache=self._cache)
        sg.Guide(index).fill_bitmask(bitmask)
        taken = time.perf_counter_ns() - begin
        if index.origin != "cache":
            raise RuntimeError(f"{pattern!r} was not in the cache")
        return taken
