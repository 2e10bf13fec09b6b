"""What a grammar costs besides its steps: compiling it, opening it, seeing it for the first time, keeping a guide.

Each part has a process of its own.
"""

from __future__ import annotations

import gc
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import structgen as sg

from .. import engines as peers
from .. import vocabularies, worker
from . import corpora, engines

#: Tokens after which the memory of a guide is looked at.
LENGTHS = (1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Task:
    """What to measure: a workload's grammar as a text, the files of the vocabulary, and how often.

    ``shapes`` are token ids by name: how a text begins, and what is repeated then.
    """

    workload: str
    grammar: str
    vocabulary: str
    tokenizer_json: str | None = None
    repeats: int = 5
    shapes: Mapping[str, tuple[list[int], list[int]]] = field(default_factory=dict)

    def definition(self, comment: str = "") -> sg.Grammar:
        """The grammar; with a comment it is one that nothing has seen before."""
        options = corpora.WORKLOADS[self.workload].options()
        return sg.Grammar(self.grammar + (f"\n// {comment}\n" if comment else ""), **options)


def run(part: str, task: Task, *more: str) -> dict[str, Any]:
    """A part of `Costs` in a new process."""
    with worker.Process(Costs, task) as process:
        found: dict[str, Any] = process.call(part, *more)
        return found


def measure(task: Task) -> dict[str, Any]:
    """Compile and open: nanoseconds and bytes."""
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        return run("compile", task, folder) | run("open", task, folder) | run("new", task)


# -- in the process of its own -------------------------------------------------------------------------


def _timed(action: Callable[[], Any]) -> tuple[int, Any]:
    gc.collect()
    begin = time.perf_counter_ns()
    result = action()
    return time.perf_counter_ns() - begin, result


class Costs:
    """A task, and its vocabulary."""

    def __init__(self, task: Task) -> None:
        self._task, self._vocabulary = task, vocabularies.read(Path(task.vocabulary))

    def compile(self, cache: str) -> dict[str, Any]:
        """Eager compiles, kernels loaded and trie built; one goes to the cache."""
        task, vocabulary = self._task, self._vocabulary
        _ = vocabulary.trie
        times, budget = [], sg.Budget(seconds=600)
        for _ in range(min(task.repeats, 3)):
            taken, index = _timed(lambda: sg.compile(task.definition(), vocabulary, threads=1, budget=budget))
            times.append(taken)
        with sg.Cache(cache) as kept:
            sg.compile(task.definition(), vocabulary, cache=kept, threads=1, budget=budget)
        states, filled = index.states, index.machine.is_filled()
        nbytes = len(index.to_bytes(with_vocabulary=False))
        return {"eager": times, "bytes": nbytes, "states": states, "filled": filled}

    def open(self, cache: str) -> dict[str, Any]:
        """From the cache to the first mask, in a process that has not compiled; the very first one loads modules."""
        task, vocabulary = self._task, self._vocabulary
        bitmask, times = np.zeros(vocabulary.words, np.int32), []
        with sg.Cache(cache) as kept:

            def first_mask() -> sg.Index:
                index = sg.compile(task.definition(), vocabulary, cache=kept)
                sg.Guide(index).fill_bitmask(bitmask)
                return index

            for _ in range(1 + task.repeats):
                taken, index = _timed(first_mask)
                if index.origin != "cache":
                    raise RuntimeError("the grammar was not in the cache")
                del index
                times.append(taken)
        return {"very first open": times[0], "open": times[1:]}

    def new(self) -> dict[str, Any]:
        """From a grammar that was never seen to the first mask, kernels loaded and trie built; and the peer's."""
        task, vocabulary = self._task, self._vocabulary
        _ = vocabulary.trie
        bitmask = np.zeros(vocabulary.words, np.int32)

        def first_mask(number: int) -> None:
            index = sg.compile(task.definition(f"{number}"), vocabulary, eager=False, threads=1)
            sg.Guide(index).fill_bitmask(bitmask)

        found = {"new": [_timed(partial(first_mask, number))[0] for number in range(task.repeats)]}
        if "llguidance" in engines.available():
            tokenizer = Path(task.tokenizer_json) if task.tokenizer_json else None
            try:
                found["new, llguidance"] = _new_in_llguidance(task, vocabulary, tokenizer, bitmask)
            except peers.RefusedError:
                return found
        return found

    def memory(self) -> dict[str, Any]:
        """Bytes of Python's objects, by shape and length: the guide's own, and what the index keeps for others."""
        task, vocabulary = self._task, self._vocabulary
        engine = engines.Structgen(vocabulary, task.definition())
        anything = sg.compile(sg.Regex(r"(?s).*"), vocabulary)
        bitmask = np.zeros(vocabulary.words, np.int32)
        found: dict[str, Any] = {}
        for name, (head, repeated) in task.shapes.items():
            for length in LENGTHS:
                tokens = (head + repeated * (length // len(repeated)))[:length]
                index = engine.ready(engines.EAGER)
                sg.Guide(index).fill_bitmask(bitmask)
                tracemalloc.start()
                read, own, kept = _weigh(index, tokens, bitmask)
                _, rollback, _ = _weigh(anything, tokens[:read], bitmask)
                tracemalloc.stop()
                found.setdefault(name, []).append({"tokens": read, "own": own, "rollback": rollback, "kept": kept})
                if read < length:
                    break
        return found


def _new_in_llguidance(
    task: Task, vocabulary: sg.Vocabulary, tokenizer: Path | None, bitmask: peers.Bitmask
) -> list[int]:
    """From the converted grammar to the first mask; converting is not its work and is left out."""
    engine = engines.LLGuidance(vocabulary, tokenizer, task.definition())

    def first_mask() -> None:
        stepper = engine.stepper(engine.ready(engines.LAZY), bitmask)
        stepper.fill(*stepper.fill_arguments)

    return [_timed(first_mask)[0] for _ in range(task.repeats)]


def _weigh(index: sg.Index, tokens: Sequence[int], bitmask: peers.Bitmask) -> tuple[int, int, int]:
    """How many tokens a guide read, the bytes that go with it, and those that stay with the index."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    guide: sg.Guide | None = sg.Guide(index)
    assert guide is not None
    read = 0
    for token in tokens:
        guide.fill_bitmask(bitmask)
        if not guide.advance(token):
            break
        read += 1
    gc.collect()
    full = tracemalloc.get_traced_memory()[0]
    guide = None
    gc.collect()
    left = tracemalloc.get_traced_memory()[0]
    return read, full - left, left - before
