"""One engine on a batch, in a process of its own: which texts it takes, then the times of its steps."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import structgen as sg

from .. import engines as peers
from .. import worker
from ..json_schema.engines import Setting
from . import engines


@dataclass(frozen=True)
class Task:
    """What a process does.

    Parameters
    ----------
    engine:
        A key of `engines.ENGINES`.
    tokenizer:
        The tokenizer's folder.
    cases:
        Schemas, each with texts as token ids.
    batch, steps, threads, seed:
        Sequences, tokens of each, threads of the engine, and for drawing texts.
    """

    engine: str
    tokenizer: Path
    cases: Sequence[tuple[Any, Sequence[Sequence[int]]]]
    batch: int
    steps: int
    threads: int
    seed: int


class Trial:
    """An engine and a task, in a process of its own."""

    def __init__(self, task: Task) -> None:
        self._task = task
        vocabulary = sg.Vocabulary.from_pretrained(task.tokenizer)
        setting = Setting(task.tokenizer / "tokenizer.json", Path("never used"), {"property_order": "any"})
        self._engine = engines.make(task.engine, vocabulary, setting, task.threads)

    def texts_taken(self) -> list[list[bool]]:
        """By case and text, whether the engine takes it; none of a schema that it doesn't compile."""
        task, engine = self._task, self._engine
        found = []
        for schema, texts in task.cases:
            try:
                compiled = engine.compile(schema)
                found.append([engine.accepts(compiled, text) for text in texts])
            except (peers.RefusedError, RuntimeError):
                found.append([False] * len(texts))
        return found

    def step_times(self) -> list[dict[str, list[float]]]:
        """Seconds of each step, by the wall and by the processor, all threads; when the texts are new, and once more.

        Each sequence of the batch goes through texts drawn at random, one after the other, as in continuous batching.
        """
        task, engine = self._task, self._engine
        compiled = [engine.compile(schema) for schema, _ in task.cases]
        chance = random.Random(task.seed)
        plans: list[list[tuple[int, Sequence[int]]]] = []
        for _ in range(task.batch):
            plan: list[tuple[int, Sequence[int]]] = []
            while sum(len(text) for _, text in plan) < task.steps:
                case = chance.randrange(len(compiled))
                plan.append((case, chance.choice(task.cases[case][1])))
            plans.append(plan)
        rounds = []
        batch = engine.batch([compiled[plan[0][0]] for plan in plans])
        for turn in range(2):
            if turn:  # the same sequences once more, in the batch as it is
                for row, plan in enumerate(plans):
                    batch.replace(row, compiled[plan[0][0]])
            at = [(0, 0)] * task.batch  # the text of its plan that a row is at, and the token of that
            wall, processor = [], []
            for _ in range(task.steps):
                tokens = [plan[text][1][token] for plan, (text, token) in zip(plans, at, strict=True)]
                begun, spent = time.perf_counter(), time.process_time()
                batch.step(tokens)
                wall.append(time.perf_counter() - begun)
                processor.append(time.process_time() - spent)
                for row, (text, token) in enumerate(at):
                    at[row] = (text, token + 1)
                    if token + 1 == len(plans[row][text][1]):
                        at[row] = ((text + 1) % len(plans[row]), 0)
                        batch.replace(row, compiled[plans[row][at[row][0]][0]])
            rounds.append({"wall": wall, "processor": processor})
        return rounds


def in_process(task: Task, part: str, seconds: float) -> Any:
    """What a method of `Trial` returns, from a new process. Raises `TimeoutError` and `worker.DiedError`."""
    with worker.Process(Trial, task, one_thread=False) as process:
        return process.call(part, seconds=seconds)


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Microseconds: the mean, median, 99th percentile and maximum."""
    times = np.array(seconds) * 1e6
    return {
        "mean": float(times.mean()),
        "p50": float(np.median(times)),
        "p99": float(np.quantile(times, 0.99)),
        "max": float(times.max()),
    }
