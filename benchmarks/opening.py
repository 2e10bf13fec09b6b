"""From the cache to the first mask: how long a server waits for a definition that was compiled before.

Two processes: one compiles every regex into a cache, then one that has never compiled opens them. In the second,
the vocabulary is in memory and the `Cache` object has been used once; the files are in the page cache, for the
first process has just written them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import structgen as sg

from . import vocabularies
from .trial import ROOT

#: Opened before the clock starts, so that the cache's database is open and modules are loaded.
_DECOY = "decoy"


def measure(patterns: list[str], vocabulary: Path, repeats: int) -> tuple[list[list[int]], int]:
    """Nanoseconds from `structgen.compile` on a cache hit to the first mask.

    Returns ``repeats`` times for each pattern, and the time of the very first hit in the process, modules and
    database included.
    """
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        task = {"patterns": patterns, "vocabulary": str(vocabulary), "cache": folder, "repeats": repeats}
        for step in ("warm", "open"):
            done = subprocess.run(
                [sys.executable, "-m", __name__, step], input=json.dumps(task), text=True, cwd=ROOT,
                stdout=subprocess.PIPE, check=True,
            )  # fmt: skip
    answer = json.loads(done.stdout)
    return answer["times"], answer["very_first"]


def warm(patterns: list[str], vocabulary: sg.Vocabulary, cache: sg.Cache) -> None:
    """Compile everything into the cache."""
    for pattern in [_DECOY, *patterns]:
        sg.compile(sg.Regex(pattern), vocabulary, cache=cache)


def open_all(
    patterns: list[str], vocabulary: sg.Vocabulary, cache: sg.Cache, repeats: int
) -> dict[str, list[list[int]] | int]:
    """Time the hits. Raises `RuntimeError` for a miss."""
    bitmask = np.zeros(vocabulary.words, np.int32)
    very_first = _open(_DECOY, vocabulary, cache, bitmask)
    times: list[list[int]] = [[] for _ in patterns]
    for _ in range(repeats):
        for pattern, found in zip(patterns, times, strict=True):
            found.append(_open(pattern, vocabulary, cache, bitmask))
    return {"times": times, "very_first": very_first}


def _open(pattern: str, vocabulary: sg.Vocabulary, cache: sg.Cache, bitmask: np.typing.NDArray[np.int32]) -> int:
    begin = time.perf_counter_ns()
    index = sg.compile(sg.Regex(pattern), vocabulary, cache=cache)
    sg.Guide(index).fill_bitmask(bitmask)
    taken = time.perf_counter_ns() - begin
    if index.origin != "cache":
        raise RuntimeError(f"{pattern!r} was not in the cache")
    return taken


def main(step: str) -> None:
    """Do one of the two steps, for the task on standard input."""
    task = json.load(sys.stdin)
    vocabulary = vocabularies.read(Path(task["vocabulary"]))
    with sg.Cache(task["cache"]) as cache:
        if step == "warm":
            warm(task["patterns"], vocabulary, cache)
        else:
            print(json.dumps(open_all(task["patterns"], vocabulary, cache, task["repeats"])))


if __name__ == "__main__":
    main(sys.argv[1])
