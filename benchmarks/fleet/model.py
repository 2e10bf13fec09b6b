"""How far `structgen.warm` scales: bounds on paper beside a simulation of events. See benchmarks/README.md.

Run ``python -m benchmarks.fleet.model CALIBRATION``, a file that ``benchmarks.fleet.warm --save`` wrote: how long
definitions take is drawn from what was measured there, together with that by which they are ordered.

*The simulation.* One process plans, looks into the store as long as that has most, and cuts the tasks into batches,
by structgen's own code; it hands them out one after another, no more of them at a time than are in flight, and takes
what comes back; so does the scheduler. A worker loads structgen's kernels before its first batch, and each
vocabulary, one request, before the first of that; then for each task it asks the store, compiles, and writes what it
made, one request after another. The store takes so many writes a second in all, and more reads. What each takes was
measured beside the definitions (`costs`).

*On paper.* No schedule ends before any of these: all work divided by the workers; the longest task; what is handed
out one after another; all requests at the store's rate. The sum of planning, beginning and the largest of them is the
bound. What *binds* is that without which the simulation ends the soonest.
"""

from __future__ import annotations

import heapq
import json
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import structgen as sg
from structgen.cache.cache import _PREFETCHED_AT_ONCE
from structgen.warming import plan
from structgen.warming.warm import _LOOKED_AT

from .. import run
from .costs import Costs

WORKERS = (1, 4, 16, 64, 128, 256, 512, 1000)


#: What can bind, and the costs without it.
WITHOUT: dict[str, Callable[[Costs], Costs]] = {
    "planning": lambda costs: replace(costs, plan=0.0, key=0.0, publish=0.0),
    "the caller": lambda costs: replace(costs, hand_out=0.0, settle=0.0),
    "the scheduler": lambda costs: replace(costs, schedule=0.0),
    "the store's rate": lambda costs: replace(costs, rate=float("inf")),
    "the store's latency": lambda costs: replace(costs, latency=0.0),
    "workers' beginning": lambda costs: replace(costs, begin=0.0, unpack=0.0),
}

#: Vocabularies of one byte, of which nothing is used but that they differ.
_VOCABULARIES = [sg.Vocabulary.from_bytes([bytes([65 + number]), None], eos_ids=[1]) for number in range(26)]


def draw(measured: list[tuple[float, float]], definitions: int, vocabularies: int, seed: int) -> Tasks:
    """Definitions in the order of `structgen.warming.plan`, the largest first, for so many vocabularies."""
    chosen = random.Random(seed).choices(measured, k=definitions)
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

    def batches(self, workers: int) -> Iterator[tuple[str, list[float]]]:
        """As `structgen.warm` cuts them for so many workers: a vocabulary, and the seconds of each task."""
        distinct = [plan.DistinctDefinition(sg.Regex("a"), b"", weight, []) for weight, _ in self.definitions]
        takes = {each: seconds for each, (_, seconds) in zip(distinct, self.definitions, strict=True)}
        planned = plan.Workload(distinct, self.vocabularies, (1, 1), [])
        underway: deque[plan.Batch] = deque()
        for batch in planned.batches(planned, 2 * workers):
            underway.append(batch)
            if len(underway) > 2 * workers:
                for task in underway.popleft():
                    task.of.seconds = takes[task.of]
            yield batch[0].vocabulary.fingerprint, [takes[task.of] for task in batch]


def simulate(tasks: Tasks, workers: int, costs: Costs) -> float:
    """The seconds until all is done."""
    looks = _LOOKED_AT / _PREFETCHED_AT_ONCE * costs.latency
    now = costs.plan * len(tasks.definitions) + looks  # of the caller
    free = [(0.0, number) for number in range(workers)]  # workers, by when they can take a batch
    has: list[set[str]] = [set() for _ in range(workers)]
    published: set[str] = set()
    underway: list[float] = []  # when they end, at most so many
    store, scheduler, end = now, now, now
    for vocabulary, batch in tasks.batches(workers):
        if len(underway) >= 2 * workers:
            now = max(now, heapq.heappop(underway))
        if vocabulary not in published:
            published.add(vocabulary)
            now += costs.publish + costs.latency
        now += costs.hand_out + (costs.key + costs.settle) * len(batch)
        scheduler = max(scheduler, now) + costs.schedule
        ready, number = heapq.heappop(free)
        begin = max(scheduler, ready) + (0.0 if has[number] else costs.begin)
        if vocabulary not in has[number]:
            has[number].add(vocabulary)
            begin += costs.unpack + costs.latency
        requests = costs.requests * len(batch)
        store = max(store, begin) + requests / 2 / costs.rate
        done = max(begin + sum(batch) + requests * costs.latency, store + costs.latency)
        heapq.heappush(free, (done, number))
        heapq.heappush(underway, done)
        end = max(end, done)
    return end


def on_paper(tasks: Tasks, workers: int, costs: Costs) -> float:
    """Seconds before which no schedule ends."""
    each = [seconds + costs.requests * costs.latency for seconds in tasks.seconds]
    batches = sum(1 for _ in tasks.batches(workers))
    work = sum(each) / workers + costs.unpack
    handed = max(costs.schedule * batches, costs.hand_out * batches + (costs.key + costs.settle) * len(tasks))
    rate = costs.requests / 2 * len(tasks) / costs.rate
    return costs.plan * len(tasks.definitions) + costs.begin + max(work, max(each), handed - costs.begin, rate)


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
        float, typer.Option(help="Writes a second; S3 takes 3,500 of a prefix, and 5,500 reads.")
    ] = 3500.0,
    seed: Annotated[int, typer.Option(help="Draws the definitions.")] = 0,
) -> None:
    """Simulate, and show what binds."""
    console = run.console()
    measured, costs = read(calibration)
    tasks = draw(measured, definitions, vocabularies, seed)
    costs = replace(costs, latency=latency / 1e3, requests=requests or costs.requests, rate=rate)
    one = simulate(tasks, 1, costs)
    title = f"{definitions:,} definitions for {vocabularies} vocabularies, drawn from {len(measured):,}"
    table = Table(title=f"{title}; the longest takes {max(tasks.seconds):.1f} s; {costs}")
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
