"""How far `structgen.warm` scales: bounds on paper beside a simulation of events. See benchmarks/README.md.

Run ``python -m benchmarks.fleet.model CALIBRATION``, a file that ``benchmarks.fleet.warm --save`` wrote: how long
definitions take is drawn from what was measured there, together with that by which they are ordered.

*The simulation.* One process plans, looks into the store as long as that has most, and hands out tasks one after
another, no more of them at a time than are in flight; it also sends each worker each vocabulary once. A worker loads
structgen's kernels and each vocabulary before its first task; then it asks the store, compiles, and writes what it
made, one request after another. The store answers so many requests a second in all.

*On paper.* No schedule ends before any of these: all work divided by the workers; the longest task; what is handed
out and sent one after another; all requests at the store's rate. The sum of planning, beginning and the largest of
them is the bound. What *binds* is that without which the simulation ends the soonest.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from .. import run

WORKERS = (1, 4, 16, 64, 128, 256, 512, 1000)


@dataclass(frozen=True)
class Costs:
    """Seconds, but for the last two: what each part takes.

    ``plan`` and ``hand_out`` are the caller's for each task; ``send`` is its time for one vocabulary; ``begin`` and
    ``unpack`` are a worker's, once, and for each vocabulary; ``latency`` is the store's for one request.
    """

    plan: float = 0.0002
    hand_out: float = 0.001
    send: float = 0.01
    begin: float = 2.0
    unpack: float = 0.3
    latency: float = 0.02
    requests: int = 2
    """Of the store for a definition: one look, and one write. (Of 60 MaskBench schemas on 6 workers 2.1.)"""
    rate: float = 3500.0
    """Requests that the store answers in a second."""


@dataclass(frozen=True)
class Task:
    """One definition for one vocabulary."""

    seconds: float
    vocabulary: int


#: What can bind, and the costs without it.
WITHOUT: dict[str, Callable[[Costs], Costs]] = {
    "planning": lambda costs: replace(costs, plan=0.0),
    "the scheduler": lambda costs: replace(costs, hand_out=0.0, send=0.0),
    "the store's rate": lambda costs: replace(costs, rate=float("inf")),
    "the store's latency": lambda costs: replace(costs, latency=0.0),
    "workers' beginning": lambda costs: replace(costs, begin=0.0, unpack=0.0),
}


def draw(measured: list[tuple[float, float]], definitions: int, vocabularies: int, seed: int) -> list[Task]:
    """Tasks in the order of `structgen.warming.plan`: vocabularies one after another, the largest first."""
    chosen = random.Random(seed).choices(measured, k=definitions)
    chosen.sort(key=lambda each: -each[0])
    return [Task(seconds, vocabulary) for vocabulary in range(vocabularies) for _, seconds in chosen]


def simulate(tasks: list[Task], workers: int, costs: Costs) -> float:
    """The seconds until all is done."""
    now = costs.plan * len(tasks)  # of the caller
    free = [(now + costs.begin, number) for number in range(workers)]  # workers, by when they can take a task
    heapq.heapify(free)
    has: list[set[int]] = [set() for _ in range(workers)]
    underway: list[float] = []  # when they end, at most so many
    store, end = now, now
    for task in tasks:
        if len(underway) >= 2 * workers:
            now = max(now, heapq.heappop(underway))
        now += costs.hand_out
        ready, number = heapq.heappop(free)
        begin = max(now, ready)
        if task.vocabulary not in has[number]:
            has[number].add(task.vocabulary)
            now += costs.send
            begin = max(begin, now) + costs.unpack
        store = max(store, begin) + costs.requests / costs.rate
        done = max(begin + task.seconds + costs.requests * costs.latency, store + costs.latency)
        heapq.heappush(free, (done, number))
        heapq.heappush(underway, done)
        end = max(end, done)
    return end


def on_paper(tasks: list[Task], workers: int, costs: Costs) -> float:
    """Seconds before which no schedule ends."""
    each = [task.seconds + costs.requests * costs.latency for task in tasks]
    many = len({task.vocabulary for task in tasks})
    work = (sum(each) + costs.unpack * many) / workers
    handed = costs.hand_out * len(tasks) - costs.begin
    rate = costs.requests * len(tasks) / costs.rate
    return costs.plan * len(tasks) + costs.begin + max(work, max(each), handed, rate)


def binding(tasks: list[Task], workers: int, costs: Costs) -> dict[str, float]:
    """By what might bind: how much sooner all would be done without it, as a share of the time it takes."""
    now = simulate(tasks, workers, costs)
    longest = max(task.seconds for task in tasks)
    middle = sorted(task.seconds for task in tasks)[len(tasks) // 2]
    shorter = [replace(task, seconds=min(task.seconds, longest / 2 + middle / 2)) for task in tasks]
    found = {name: simulate(tasks, workers, without(costs)) for name, without in WITHOUT.items()}
    found["the longest definitions"] = simulate(shorter, workers, costs)
    found["the work itself"] = simulate([replace(task, seconds=0.0) for task in tasks], workers, costs)
    return {name: 1 - each / now for name, each in sorted(found.items(), key=lambda item: item[1])}


def read(path: Path) -> list[tuple[float, float]]:
    """What definitions are ordered by, and seconds of their compiles, as `benchmarks.fleet.warm` wrote them."""
    ways = json.loads(path.read_text())["ways"]
    measured = max((way["compiled"] for way in ways), key=len)
    return [(weight, seconds) for weight, seconds in measured]


def main(
    calibration: Annotated[Path, typer.Argument(help="What benchmarks.fleet.warm --save wrote.")],
    definitions: Annotated[int, typer.Option(help="To be compiled.")] = 10_000,
    vocabularies: Annotated[int, typer.Option(help="For each of them.")] = 3,
    latency: Annotated[float, typer.Option(help="Milliseconds of the store.")] = 20.0,
    requests: Annotated[int, typer.Option(help="For a definition; 22 on six workers without base rows.")] = 2,
    rate: Annotated[float, typer.Option(help="Requests a second; one partition of S3 takes 3,500 writes.")] = 3500.0,
    seed: Annotated[int, typer.Option(help="Draws the definitions.")] = 0,
) -> None:
    """Simulate, and show what binds."""
    console = run.console()
    measured = read(calibration)
    tasks = draw(measured, definitions, vocabularies, seed)
    costs = Costs(latency=latency / 1e3, requests=requests, rate=rate)
    one = simulate(tasks, 1, costs)
    title = f"{definitions:,} definitions for {vocabularies} vocabularies, drawn from {len(measured):,}"
    table = Table(title=f"{title}; the longest takes {max(task.seconds for task in tasks):.1f} s; {costs}")
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
