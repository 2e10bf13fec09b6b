"""How far `structgen.warm` scales: bounds on paper beside a simulation of events. See benchmarks/README.md.

Run ``python -m benchmarks.fleet.model CALIBRATION``, a file that ``benchmarks.fleet.warm --save`` wrote: how long
definitions take is drawn from what was measured there, together with that by which they are ordered.

*The simulation.* One process plans, looks into the store as long as that has most, and cuts the tasks into batches,
by structgen's own code, which learns meanwhile what took long, or is late; it hands them out one after another, no
more of them at a time than are in flight, and takes what comes back; so does the scheduler. In between it makes base
rows of each vocabulary, if the cache lacks them, one sample after another. A worker loads structgen's kernels
before its first batch, and each vocabulary and its base rows, two requests, before the first of that. Then it asks
the store for all tasks of the batch, some at a time, and compiles one after another; what it made is on its way to
the store meanwhile, and the batch is done when all of that is there. What it has no time for goes back. The store
takes so many writes a second in all, and more reads. What each takes was measured beside the definitions (`costs`).

A fleet is simulated twice: as it is when all begins; and where its workers are up, as those of Dask stay, and base
rows are in the cache, before a store that takes whatever comes.

*On paper.* No schedule ends before any of these: all work divided by the workers; the longest task; what is handed
out one after another; all requests at the store's rate. The sum of planning, beginning and the largest of them is the
bound. What *binds* is that without which the simulation ends the soonest.
"""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import structgen as sg
from structgen.base_rows import samples
from structgen.cache.cache import _PREFETCHED_AT_ONCE
from structgen.warming import plan
from structgen.warming.pipeline import WRITTEN_AT_ONCE
from structgen.warming.warm import _LOOKED_AT, _MISSING_BEFORE_BASE_ROWS
from structgen.warming.worker import LONGEST_BATCH

from .. import run
from .costs import Costs

#: Pieces in which base rows are made.
_SAMPLES = len(samples())

WORKERS = (1, 4, 16, 64, 128, 256, 512, 1000)


#: What can bind, and the costs without it.
WITHOUT: dict[str, Callable[[Costs], Costs]] = {
    "planning": lambda costs: replace(costs, plan=0.0, key=0.0, publish=0.0),
    "the caller": lambda costs: replace(costs, hand_out=0.0, settle=0.0),
    "the scheduler": lambda costs: replace(costs, schedule=0.0),
    "the store's rate": lambda costs: replace(costs, rate=float("inf")),
    "the store's latency": lambda costs: replace(costs, latency=0.0),
    "base rows": lambda costs: replace(costs, base_rows=0.0),
    "workers' beginning": lambda costs: replace(costs, begin=0.0, unpack=0.0),
}

#: How far from its own weight a definition that is drawn has one.
_APART = 0.2

#: Vocabularies of one byte, of which nothing is used but that they differ.
_VOCABULARIES = [sg.Vocabulary.from_bytes([bytes([65 + number]), None], eos_ids=[1]) for number in range(26)]


def draw(measured: list[tuple[float, float]], definitions: int, vocabularies: int, seed: int) -> Tasks:
    """Definitions in the order of `structgen.warming.plan`, the largest first, for so many vocabularies."""
    dice = random.Random(seed)
    chosen = dice.choices(measured, k=definitions)
    # What is drawn twice is no neighbour of itself in that order: no two of so many definitions are the same.
    chosen = [(weight * dice.uniform(1 - _APART, 1 + _APART), seconds) for weight, seconds in chosen]
    chosen.sort(key=lambda each: -each[0])
    return Tasks(chosen, _VOCABULARIES[:vocabularies])


@dataclass(frozen=True)
class Tasks:
    """Definitions, each by what it weighs and the seconds that it takes, for each of some vocabularies."""

    definitions: list[tuple[float, float]]
    vocabularies: list[sg.Vocabulary]

    def __len__(self) -> int:
        return len(self.definitions) * len(self.vocabularies)

    @property
    def seconds(self) -> list[float]:
        return [seconds for _, seconds in self.definitions] * len(self.vocabularies)

    def change(self, change: Callable[[float], float]) -> Tasks:
        """The same with other seconds."""
        return replace(self, definitions=[(weight, change(seconds)) for weight, seconds in self.definitions])

    def planned(self) -> tuple[plan.Workload, dict[plan.DistinctDefinition, float]]:
        """As `structgen.warm` plans them, and the seconds that each definition will take."""
        distinct = [plan.DistinctDefinition(sg.Regex("a"), b"", weight, []) for weight, _ in self.definitions]
        takes = {each: seconds for each, (_, seconds) in zip(distinct, self.definitions, strict=True)}
        return plan.Workload(distinct, self.vocabularies, (1, 1), []), takes


@dataclass(order=True)
class Underway:
    """A batch that a worker has: when it is back, and how many of its tasks are done then."""

    end: float
    number: int
    batch: plan.Batch = field(compare=False)
    begun: int = field(compare=False)


class Fleet:
    """The state of a simulation: one caller, one scheduler, one store, and workers."""

    def __init__(self, tasks: Tasks, workers: int, costs: Costs) -> None:
        self._costs, self._at_a_time = costs, 2 * workers
        self._planned, self._takes = tasks.planned()
        self._fresh = self._planned.batches(self._planned, self._at_a_time)
        self._left: deque[plan.Batch] = deque()  # what workers had no time for
        self._free = [(0.0, number) for number in range(workers)]  # workers, by when they can take a batch
        self._has: list[set[str]] = [set() for _ in range(workers)]
        self._handed: Counter[str] = Counter()  # tasks, by vocabulary
        self._underway: list[Underway] = []
        looks = _LOOKED_AT / _PREFETCHED_AT_ONCE * costs.latency
        self._now = self._scheduler = self._store = costs.plan * len(tasks.definitions) + looks
        self.handed_out = 0
        self._samples, self._seen = 0, 0.0  # of base rows, that are to be made; and when the caller last looked

    def run(self) -> float:
        """The seconds until all is done."""
        while True:
            while self._underway and self._underway[0].end <= (self._seen if self._samples else self._now):
                self._take()
            batch = self._next() if len(self._underway) < self._at_a_time else None
            if batch is not None:
                self._hand_out(batch)
            elif self._samples:
                self._samples -= 1
                self._now += self._costs.base_rows / _SAMPLES
                self._seen = self._now
            elif self._underway:
                self._take()
            else:
                return self._now

    def _next(self) -> plan.Batch | None:
        return self._left.popleft() if self._left else next(self._fresh, None)

    def _take(self) -> None:
        """The caller learns what became of a batch."""
        done = heapq.heappop(self._underway)
        self._now = max(self._now, done.end) + self._costs.settle * done.begun
        for task in done.batch[: done.begun]:
            task.of.seconds = self._takes[task.of]
        self._left.extend(self._planned.take_back(done.batch, done.begun, self._at_a_time, self._now))

    def _hand_out(self, batch: plan.Batch) -> None:
        costs, vocabulary = self._costs, batch[0].vocabulary.fingerprint
        before, self._handed[vocabulary] = self._handed[vocabulary], self._handed[vocabulary] + len(batch)
        if not before:
            self._now += costs.publish + costs.latency
        if before < _MISSING_BEFORE_BASE_ROWS <= self._handed[vocabulary] and costs.base_rows:
            self._samples += _SAMPLES
            self._seen = self._now
        self._planned.hand_out(batch, self._now)
        self.handed_out += 1
        self._now += costs.hand_out + costs.key * len(batch)
        self._scheduler = max(self._scheduler, self._now) + costs.schedule
        ready, worker = heapq.heappop(self._free)
        begin = max(self._scheduler, ready) + (0.0 if self._has[worker] else costs.begin)
        if vocabulary not in self._has[worker]:
            self._has[worker].add(vocabulary)
            begin += costs.unpack + 2 * costs.latency  # with its base rows
        end, begun = self._work(batch, begin)
        heapq.heappush(self._free, (end, worker))
        heapq.heappush(self._underway, Underway(end, self.handed_out, batch, begun))

    def _work(self, batch: plan.Batch, begin: float) -> tuple[float, int]:
        """When a worker is done with a batch that it begins, and with how many of its tasks."""
        costs, each = self._costs, self._costs.requests / 2
        # All indexes are asked for at once; rows that are objects of their own, when an index needs them.
        now = begin + min(1.0, each) * costs.latency * -(-len(batch) // _PREFETCHED_AT_ONCE)
        rows = max(0.0, each - 1) * costs.latency
        until, begun = now + LONGEST_BATCH, 0
        writers = deque([now] * WRITTEN_AT_ONCE)
        for task in batch:
            now += self._takes[task.of] + rows
            writers.append(max(now, writers.popleft()) + each * costs.latency)
            begun += 1
            if now > until:
                break
        self._store = max(self._store, begin) + each * begun / costs.rate
        return max(now, *writers, self._store + min(1.0, each) * costs.latency), begun


def simulate(tasks: Tasks, workers: int, costs: Costs) -> float:
    """The seconds until all is done."""
    return Fleet(tasks, workers, costs).run()


def on_paper(tasks: Tasks, workers: int, costs: Costs) -> float:
    """Seconds before which no schedule ends."""
    batches = len(tasks) / plan._MOST
    around = min(2.0, costs.requests) * costs.latency  # looking before the first, writing after the last
    work = max(sum(tasks.seconds) / workers, max(tasks.seconds)) + costs.unpack + 2 * costs.latency + around
    handed = max(costs.schedule * batches, costs.hand_out * batches + (costs.key + costs.settle) * len(tasks))
    handed += costs.base_rows * len(tasks.vocabularies)
    rate = costs.requests / 2 * len(tasks) / costs.rate
    return costs.plan * len(tasks.definitions) + costs.begin + max(work, handed - costs.begin, rate)


def binding(tasks: Tasks, workers: int, costs: Costs) -> dict[str, float]:
    """By what might bind: how much sooner all would be done without it, as a share of the time it takes."""
    now = simulate(tasks, workers, costs)
    longest, middle = max(tasks.seconds), sorted(tasks.seconds)[len(tasks) // 2]
    found = {name: simulate(tasks, workers, without(costs)) for name, without in WITHOUT.items()}
    shorter = tasks.change(lambda seconds: min(seconds, longest / 2 + middle / 2))
    found["the longest definitions"] = simulate(shorter, workers, costs)
    found["the work itself"] = simulate(tasks.change(lambda _: 0.0), workers, costs)
    return {name: 1 - each / now for name, each in sorted(found.items(), key=lambda item: item[1])}


def read(path: Path) -> tuple[list[tuple[float, float]], Costs]:
    """What definitions weigh, and seconds of their compiles, and costs, as `benchmarks.fleet.warm` wrote them."""
    kept = json.loads(path.read_text())
    measured = max((way["compiled"] for way in kept["ways"]), key=len)
    return [(weight, seconds) for weight, seconds in measured], Costs(**kept["costs"])


def main(
    calibration: Annotated[Path, typer.Argument(help="What benchmarks.fleet.warm --save wrote.")],
    definitions: Annotated[int, typer.Option(help="To be compiled.")] = 10_000,
    vocabularies: Annotated[int, typer.Option(help="For each of them.")] = 3,
    latency: Annotated[float, typer.Option(help="Milliseconds of the store.")] = 20.0,
    requests: Annotated[
        float | None,
        typer.Option(help="For a definition; 22 on six workers without base rows.", show_default="measured"),
    ] = None,
    rate: Annotated[
        float, typer.Option(help="Writes a second; S3 takes 3,500 for each partition, and 5,500 reads.")
    ] = 3500.0,
    seed: Annotated[int, typer.Option(help="Draws the definitions.")] = 0,
) -> None:
    """Simulate, and show what binds."""
    console = run.console()
    measured, costs = read(calibration)
    tasks = draw(measured, definitions, vocabularies, seed)
    costs = replace(costs, latency=latency / 1e3, requests=requests or costs.requests, rate=rate)
    console.print(f"{definitions:,} definitions for {vocabularies} vocabularies, drawn from {len(measured):,}")
    console.print(costs)
    console.print(f"In all they take {sum(tasks.seconds):,.0f} s, the longest {max(tasks.seconds):.1f} s.")
    show(console, f"Workers that begin; a store that takes {rate:,.0f} writes a second", tasks, costs)
    up = replace(costs, begin=0.0, base_rows=0.0, rate=float("inf"))
    show(console, "Workers that are up, with base rows; a store that takes whatever comes", tasks, up)


def show(console: Console, title: str, tasks: Tasks, costs: Costs) -> None:
    """A table: by the number of workers, how long all takes, and what binds."""
    one = simulate(tasks, 1, costs)
    table = Table(title=title)
    for name in ("workers", "s", "on paper s", "speed-up", "of linear", "without which it would be sooner by"):
        table.add_column(name, justify="left" if name.startswith("without") else "right")
    for workers in WORKERS:
        seconds = simulate(tasks, workers, costs)
        shares = list(binding(tasks, workers, costs).items())[:3]
        table.add_row(
            f"{workers:,}", f"{seconds:,.1f}", f"{on_paper(tasks, workers, costs):,.1f}", f"{one / seconds:.1f}",
            f"{one / seconds / workers:.0%}", ", ".join(f"{name} {share:.0%}" for name, share in shares),
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
