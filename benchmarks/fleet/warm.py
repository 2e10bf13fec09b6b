"""`structgen.warm` beside a loop around `structgen.compile`, on one worker and on several. See benchmarks/README.md.

Run ``python -m benchmarks.fleet.warm``; ``--help`` tells the options. Each way has a process of its own and an empty
folder. Processor time counts all processes that took part: what can be compared on a machine that does much else.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import structgen as sg
from structgen.warming.plan import weight

from .. import run, vocabularies
from ..json_schema import instances
from .costs import measure as measure_costs


@dataclass(frozen=True)
class Setup:
    """What every way gets: schemas, vocabularies in structgen's format, and a folder for all caches."""

    schemas: list[object]
    vocabularies: list[Path]
    folder: Path


@dataclass
class Measured:
    """What a way took: seconds, and for each definition and vocabulary what became of it.

    ``begin_seconds`` are those until the first definition: loading the vocabularies, and where all is there already
    what opens an index, too.
    """

    way: str
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    begin_seconds: float = 0.0
    kept: int = 0
    failed: int = 0
    refused: list[int] = field(default_factory=list)  # numbers of schemas, which are compiled anew each time
    requests: int = 0
    bytes_kept: int = 0
    compiled: list[tuple[float, float]] = field(default_factory=list)  # by which they are ordered, and seconds


def _cpu_seconds() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def _loop(setup: Setup, cache: sg.Cache, into: Measured, many: Sequence[sg.Vocabulary]) -> None:
    """What one would write without `structgen.warm`."""
    for vocabulary in many:
        for schema in setup.schemas:
            with suppress(sg.Error):
                sg.compile(sg.JsonSchema(schema), vocabulary, cache=cache, threads=1)
                into.kept += 1
    into.failed = len(many) * len(setup.schemas) - into.kept


def _warm(setup: Setup, cache: sg.Cache, into: Measured, many: Sequence[sg.Vocabulary], *, workers: int = 0) -> None:
    spawned = multiprocessing.get_context("spawn")
    executor = partial(ProcessPoolExecutor, workers, mp_context=spawned) if workers else None
    options = sg.WarmOptions(threads=1, in_flight=4 * max(1, workers))
    definitions = [sg.JsonSchema(schema) for schema in setup.schemas]
    report = sg.warm(definitions, many, cache, executor=executor, options=options)
    into.kept, into.failed = len(report.kept), len(report.failed)
    into.compiled = [(weight(definitions[each.position]), each.seconds) for each in report if each.status == "compiled"]
    into.bytes_kept = sum(each.nbytes for each in report)
    into.refused = sorted({each.position for each in report.failed})
    into.requests = cache.metrics().store_requests


def measure(way: str, work: Callable[..., None], setup: Setup, folder: str, store: bool) -> Measured:
    """One way, in this process."""
    into, began = Measured(way), time.perf_counter()
    before = _cpu_seconds()
    many = [vocabularies.read(path) for path in setup.vocabularies]
    url = (setup.folder / "store").as_uri() if store else None
    with sg.Cache(setup.folder / folder, store=url and sg.ObjectStore(url, write="now", wait=60.0)) as cache:
        if way.startswith("again"):  # loads what opens an index
            work(replace(setup, schemas=setup.schemas[:1]), cache, into, many)
        into.begin_seconds = time.perf_counter() - began
        work(setup, cache, into, many)
    into.wall_seconds, into.cpu_seconds = time.perf_counter() - began, _cpu_seconds() - before
    return into


def ways(workers: int) -> dict[str, tuple[Callable[..., None], str, bool]]:
    """By name: what is done, in which folder, and whether there is a store behind it."""
    return {
        "sg.compile in a loop": (_loop, "loop", False),
        "sg.warm, in its thread": (_warm, "here", False),
        "sg.warm, 1 process": (partial(_warm, workers=1), "one", False),
        f"sg.warm, {workers} processes": (partial(_warm, workers=workers), "several", False),
        "again, all in the folder": (partial(_warm, workers=workers), "several", False),
        "in its thread, with a store": (_warm, "builder", True),
        "again, all in the store": (partial(_warm, workers=workers), "server", True),
    }


def main(
    schemas: Annotated[int, typer.Option(help="MaskBench's, drawn at random.")] = 1000,
    vocab: Annotated[str, typer.Option(help="Names of tokenizer folders, with commas.")] = "llama3,qwen2_5",
    workers: Annotated[int, typer.Option(help="Processes of the parallel way.")] = 2,
    only: Annotated[str, typer.Option(help="Numbers of the ways, from 0, with commas.")] = "0,1,2,3,4,5,6",
    data: Annotated[Path, typer.Option(help="The .jsonl.gz file with schemas.")] = run.MASKBENCH,
    seed: Annotated[int, typer.Option(help="Draws the schemas.")] = 0,
    save: Annotated[Path | None, typer.Option(help="A JSON file for the result.")] = None,
) -> None:
    """Measure, show, and keep the result where asked to."""
    console = run.console()
    kept = run.begin(console, {"schemas": schemas, "vocabularies": vocab, "workers": workers, "seed": seed})
    chosen = list(ways(workers).items())
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as name:
        folder = Path(name)
        loaded, notes = vocabularies.load(vocab.split(","), folder)
        for note in notes:
            console.print(f"note: {note}")
        lines = instances.read(data, limit=schemas, seed=seed)
        setup = Setup([line["schema"] for line in lines], [each.path for each in loaded], folder)
        found: list[Measured] = []
        for number in map(int, only.split(",")):
            way, (work, cache, store) = chosen[number]
            if way.startswith("again"):
                refused = {each for before in found for each in before.refused}
                able = [line["schema"] for n, line in enumerate(lines) if n not in refused]
                setup = replace(setup, schemas=able)
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
                found.append(process.submit(measure, way, work, setup, cache, store).result())
            show_one(console, found[-1])
        show(console, found, len(lines) * len(loaded))
        costs = {} if save is None else {"costs": asdict(measure_costs(setup.schemas, setup.vocabularies, folder))}
    run.end(console, kept | {"ways": [asdict(each) for each in found]} | costs, save)


def show_one(console: Console, each: Measured) -> None:
    """A line as soon as a way is done."""
    console.print(f"{each.way}: {each.wall_seconds:.1f} s, processor {each.cpu_seconds:.1f} s, {each.kept} kept")


def show(console: Console, found: Sequence[Measured], many: int) -> None:
    """A table: ratios are to the first way."""
    table = Table(title=f"{many:,} definitions and vocabularies")
    columns = ("way", "wall s", "ratio", "CPU s", "ratio", "until begun s", "ms each", "kept", "failed", "requests")
    for name in columns:
        table.add_column(name, justify="left" if name == "way" else "right")
    first = found[0]
    for each in found:
        table.add_row(
            each.way, f"{each.wall_seconds:.1f}", f"{first.wall_seconds / each.wall_seconds:.2f} x",
            f"{each.cpu_seconds:.1f}", f"{each.cpu_seconds / first.cpu_seconds:.3f}", f"{each.begin_seconds:.1f}",
            f"{1e3 * (each.wall_seconds - each.begin_seconds) / (each.kept + each.failed):.2f}", f"{each.kept:,}",
            f"{each.failed:,}",
            f"{each.requests:,}",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
