"""Mixed traffic for minutes in one process: no step that surprises, no memory that grows. See benchmarks/README.md.

Run ``python -m benchmarks.traffic``; ``--help`` tells the options.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .. import report, run, vocabularies, worker
from ..json_schema import instances
from .traffic import Setup, Traffic

#: Seconds for filling the cache.
_FILL = 1800.0

#: Milliseconds of a step and bytes beyond the vocabulary, at most.
_STEP, _MEMORY = 20.0, 300e6


def main(
    minutes: Annotated[float, typer.Option(help="Of traffic.")] = 10.0,
    schemas: Annotated[int, typer.Option(help="Definitions, drawn at random; the cache has half of them.")] = 1000,
    threads: Annotated[int, typer.Option(help="One of them serves a batch.")] = 8,
    in_flight: Annotated[int, typer.Option(help="Guides that the other threads move.")] = 32,
    pause: Annotated[float, typer.Option(help="Milliseconds that the model takes for a token.")] = 5.0,
    slow: Annotated[float, typer.Option(help="Milliseconds from which on a moment is told by itself.")] = _STEP,
    vocab: Annotated[str, typer.Option(help="The name of a tokenizer folder.")] = "llama3",
    data: Annotated[Path, typer.Option(help="The .jsonl.gz file with schemas and tests.")] = run.MASKBENCH,
    seed: Annotated[int, typer.Option(help="Draws everything.")] = 0,
    save: Annotated[Path | None, typer.Option(help="A JSON file for the result.")] = None,
) -> None:
    """Measure, show, and keep the result where asked to."""
    console = run.console()
    kept = run.begin(console, {"minutes": minutes, "schemas": schemas, "threads": threads, "in flight": in_flight,
                               "pause": pause, "vocabulary": vocab, "seed": seed})  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        (vocabulary, *_), notes = vocabularies.load([vocab], Path(folder))
        for note in notes:
            console.print(f"note: {note}")
        if vocabulary.tokenizer_json is None:
            raise typer.BadParameter("instances are encoded by a tokenizer's own file")
        encoder = instances.Encoder(vocabulary.tokenizer_json)
        cases = [
            (case.id, case.schema, texts)
            for case in map(encoder.case, instances.read(data, limit=schemas, seed=seed))
            if (texts := [each.tokens for each in case.instances if each.valid and each.tokens])
        ]
        setup = Setup(vocabulary.path, cases, Path(folder) / "cache", threads, in_flight, pause / 1e3, slow, seed)
        with console.status("filling the cache"), worker.Process(Traffic, setup) as process:
            cached = process.call("fill", range(0, len(cases), 2), seconds=_FILL)
        with console.status("traffic"), worker.Process(Traffic, setup, one_thread=False) as process:
            found = process.call("serve", 60 * minutes, seconds=60 * minutes + _FILL)
    figures = show(console, found)
    run.end(console, kept | found | {"cached": cached, "figures": [each.as_json() for each in figures]}, save)


def show(console: Console, found: dict[str, Any]) -> list[report.Figure]:
    """Tables of moments, of the slow ones and of the memory; and the figures against their targets."""
    names = ("mean", "p50", "p99", "p99.9", "p99.99", "max")
    for clock in ("wall", "thread"):
        rows = [
            [kind, f"{times[clock]['count']:,}", *(f"{times[clock][name]:,.1f}" for name in names)]
            for kind, times in found["times"].items()
        ]
        report.show_rows(console, f"moments, µs, {clock} clock", ["kind", "count", *names], rows)
    header = ["name", "kind", "where", "at, s", "wall, ms", "thread, ms", "what it did"]
    slow = [
        [each["name"], each["kind"], f"{each['position']}", f"{each['at']:.0f}", f"{each['wall']:.1f}",
         f"{each['thread']:.1f}", each["cause"]]
        for each in found["slow"]
    ]  # fmt: skip
    report.show_rows(console, "slow moments", header, slow)
    memory = found["memory"]
    rows = [
        [f"{seconds:.0f}", f"{indexes:,}", f"{(held - found['before']) / 1e6:,.0f}"]
        for seconds, indexes, held in memory[:: max(len(memory) // 12, 1)]
    ]
    report.show_rows(console, "memory beyond the vocabulary", ["seconds", "indexes", "MB"], rows)
    steps = [each for each in found["slow"] if each["kind"] in ("step", "batch, step", "fork")]
    count = sum(found["times"][kind]["wall"]["count"] for kind in ("step", "batch, step") if kind in found["times"])
    figures = [
        report.Figure("slowest step by the wall clock", max((each["wall"] for each in steps), default=0.0), _STEP,
                      False, "ms", count),
        report.Figure("slowest step by its thread's clock", max((each["thread"] for each in steps), default=0.0),
                      _STEP, False, "ms", count),
        report.Figure("memory beyond the vocabulary", (found["after"] - found["before"]) / 1e6, _MEMORY / 1e6, False,
                      "MB", found["open"]),
    ]  # fmt: skip
    report.show_figures(console, figures)
    return figures


if __name__ == "__main__":
    typer.run(main)
