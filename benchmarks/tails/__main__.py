"""The worst moments: steps and first masks of structgen and llguidance, with the cause of the slowest.

Run ``python -m benchmarks.tails``; ``--help`` tells the options, benchmarks/README.md the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from .. import report, run, vocabularies, worker
from ..json_schema import engines as schema_engines
from . import tables, workloads
from .worker import CACHED, COMPLETE, LAZY, Bench, Case, Setup, read

#: Seconds for an engine's complete compile of a grammar.
_COMPILE = 600.0


def main() -> None:
    """Measure, show, and keep the result where asked to."""
    options = _options()
    console = run.console()
    kept = run.begin(console, vars(options)) | {"workloads": {}}
    figures: list[report.Figure] = []
    for name in options.workloads:
        with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
            (vocabulary, *_), notes = vocabularies.load([options.vocab or workloads.WORKLOADS[name]], Path(folder))
            for note in notes:
                console.print(f"note: {note}")
            choice = workloads.Choice(options.data, options.limit, options.sample, options.peer_tokens)
            workload = workloads.load(name, vocabulary, choice, options.engines)
            found, own = measure(console, workload, options, Path(folder))
        kept["workloads"][name] = found
        figures += own
        tables.show(console, name, found, options.clock)
    report.show_figures(console, figures)
    kept["figures"] = [figure.as_json() for figure in figures]
    run.end(console, kept, options.save)


def measure(
    console: Console, workload: workloads.Workload, options: argparse.Namespace, folder: Path
) -> tuple[dict[str, Any], list[report.Figure]]:
    """Every engine on every case, in turns; then what the worst moments of structgen did."""
    readings: tables.Readings = {engine: {} for engine in workload.engines}
    compiles: dict[str, Any] = {}
    with contextlib.ExitStack() as stack, console.status("") as status:
        processes = {
            engine: stack.enter_context(worker.Process(
                Bench,
                Setup(
                    workload.name, engine, workload.vocabulary.path, workload.vocabulary.tokenizer_json,
                    folder / "cache", workload.grammar, options.hold,
                ),
                memory=options.memory << 30, collector=engine not in schema_engines.UNCOLLECTED,
            ))
            for engine in workload.engines
        }  # fmt: skip
        if workload.grammar is not None and COMPLETE in processes:
            status.update(f"{workload.name}: {COMPLETE} compiles")
            moments = processes[COMPLETE].call("prepare", seconds=_COMPILE)
            compiles[COMPLETE] = {clock: tables.statistics(getattr(moments, clock)) for clock in tables.CLOCKS}
        for number, case in enumerate(workload.cases):
            for engine, process in processes.items():
                if engine.startswith("structgen") or number in workload.peers_read:
                    status.update(f"{workload.name}: {number} of {len(workload.cases)}: {case.id}: {engine}")
                    readings[engine][number] = read(process, case, options.timeout)
        found = {
            engine: statistics(readings[engine]) | ({"compile": compiles[engine]} if engine in compiles else {})
            for engine in workload.engines
        }
        for engine, process in processes.items():
            found[engine] |= worst(workload.vocabulary, workload.cases, readings[engine], options, process, engine)
    figures = tables.figures(workload.name, readings, found, options.clock)
    kept = {"vocabulary": workload.vocabulary.name, "cases": len(workload.cases), "engines": found}
    return kept, figures


def statistics(readings: dict[int, Any]) -> dict[str, Any]:
    """What an engine's readings come to."""
    found = list(readings.values())
    return {
        "steps": {clock: tables.statistics(tables.steps(found, clock)) for clock in tables.CLOCKS},
        "first mask": {clock: tables.statistics(tables.first(found, clock, 1)) for clock in tables.CLOCKS},
        "compile": {clock: tables.statistics(tables.first(found, clock, 0)) for clock in tables.CLOCKS},
        "failures": {number: reading.failure for number, reading in readings.items() if reading.failure},
    }


def worst(
    vocabulary: vocabularies.NamedVocabulary,
    cases: Sequence[Case],
    readings: dict[int, Any],
    options: argparse.Namespace,
    process: worker.Process,
    engine: str,
) -> dict[str, Any]:
    """The worst moments by name; structgen's with what they did, the slowest first, as far as there is time."""
    known = vocabularies.read(vocabulary.path)
    spelled = [known.token(token) for token in range(known.size)]
    found: dict[str, Any] = {}
    until = time.monotonic() + options.explain
    for part, slowest in (
        ("worst steps", tables.worst_steps(readings, options.clock, options.worst)),
        ("worst first masks", tables.worst_first(readings, options.clock, options.worst)),
    ):
        found[part] = []
        for each in slowest:
            moment = tables.named(each, cases, spelled)
            if engine.startswith("structgen") and time.monotonic() < until:
                with contextlib.suppress(Exception):  # a cause that cannot be found is no reason to lose the rest
                    moment |= process.call(
                        "explain", cases[each.case], each.text, each.position, seconds=10 * options.timeout
                    )
            found[part].append(moment)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", default=",".join(workloads.WORKLOADS), help="some of these, the default")
    parser.add_argument("--engines", default="structgen,llguidance", help="the default: structgen,llguidance")
    parser.add_argument(
        "--modes", default="lazy,complete,cached", help=f"structgen's: some of {','.join(workloads.MODES)}"
    )
    parser.add_argument("--vocab", help="the name of a tokenizer folder; one for each workload by default")
    parser.add_argument("--data", type=Path, default=run.MASKBENCH, help="the .jsonl.gz file with schemas and tests")
    parser.add_argument("--limit", type=int, help="how many schemas, regexes and texts, drawn at random")
    parser.add_argument("--sample", type=int, default=0, help="the seed for drawing them")
    parser.add_argument("--hold", type=int, default=80, help="compiled objects that stay alive (80)")
    parser.add_argument("--worst", type=int, default=20, help="how many are named (20)")
    parser.add_argument("--explain", type=float, default=60.0, help="seconds for finding out what they did (60)")
    parser.add_argument("--clock", choices=tables.CLOCKS, default="wall", help="by which the worst are chosen")
    parser.add_argument("--peer-tokens", type=int, default=10_000, help="what peers read of a grammar's texts")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for a compile and the first mask (10)")
    parser.add_argument("--memory", type=int, default=12, help="GB of address space for each engine (12)")
    parser.add_argument("--save", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    try:
        options.workloads = run.names(options.workloads, list(workloads.WORKLOADS))
        modes = run.names(options.modes, list(workloads.MODES))
        chosen = run.names(options.engines, ["structgen", tables.PEER])
    except ValueError as error:
        parser.error(str(error))
    if "cached" in modes and "complete" not in modes:
        parser.error("the mode cached reads what the mode complete wrote: choose both")
    own = [engine for name, engine in workloads.MODES.items() if name in modes]
    order = {COMPLETE: 0, CACHED: 1, LAZY: 2}
    own.sort(key=lambda engine: order.get(engine, 3))
    there = [engine for engine in chosen if engine != "structgen" and engine in schema_engines.available()]
    options.engines = (own if "structgen" in chosen else []) + there
    return options


if __name__ == "__main__":
    main()
