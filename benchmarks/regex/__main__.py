"""Regexes: structgen and its peers in one run, as tables and as JSON. See benchmarks/README.md.

Run ``python -m benchmarks.regex``; ``--help`` tells the options.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from .. import engines, report, run, vocabularies, worker
from . import opening, startup, tables, trial
from .regexes import REGEXES

TRIALS = ("compile", "size", "step")
MEASURES = (*TRIALS, "open", "import")

#: Runs of a few regexes that compile quickly in every engine, for `--quick`.
QUICK = ("email", "date", "ip", "uuid", "choice_500")


def main() -> None:
    """Measure what was asked for, show it, and keep it."""
    options = _options()
    console = run.console()
    patterns = {name: REGEXES[name] for name in options.regex}
    figures: list[report.Figure] = []
    kept = run.begin(console, vars(options))
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        loaded, notes = vocabularies.load(options.vocab, Path(folder))
        for note in notes:
            console.print(f"note: {note}")
        kept |= {"notes": notes, "clock overhead, ns": worker.clock_overhead(), "vocabularies": {}}
        for vocabulary in loaded:
            found: dict[str, Any] = {"size": vocabulary.size}
            kept["vocabularies"][vocabulary.name] = found
            if set(TRIALS) & set(options.only):
                found |= _trials(console, options, vocabulary, patterns, kept["clock overhead, ns"], figures)
            if "open" in options.only:
                found["open"] = _opening(console, options, vocabulary, patterns, figures)
    if "import" in options.only:
        kept["import"] = _imports(console, options, figures)
    report.show_figures(console, figures)
    kept["figures"] = [figure.as_json() for figure in figures]
    run.end(console, kept, run.results(kept, "regex", options.output, complete=options.complete))


def _parts(text: str) -> list[str]:
    return text.split(",")


def _options() -> argparse.Namespace:
    def some(known: Any) -> Any:
        def parse(text: str) -> list[str]:
            try:
                return run.names(text, known)
            except ValueError as error:
                raise argparse.ArgumentTypeError(str(error)) from error

        return parse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=some(MEASURES), default=list(MEASURES), help=f"some of {','.join(MEASURES)}")
    parser.add_argument("--vocab", type=_parts, default=["llama3", "gemma"], help="names of tokenizer folders")
    parser.add_argument("--regex", type=some(tuple(REGEXES)), help="names of regexes; all by default")
    parser.add_argument("--quick", action="store_true", help="few regexes, few repeats: to see that it works")
    parser.add_argument("--timeout", type=float, help="seconds for one engine on one regex (900, quick 120)")
    parser.add_argument("--output", type=Path, help="folder for the JSON file (results, or results/local in part)")
    options = parser.parse_args()
    options.complete = not (options.quick or options.regex or set(options.only) != set(MEASURES))
    options.regex = options.regex or list(QUICK if options.quick else REGEXES)
    options.timeout = options.timeout or (120 if options.quick else 900)
    return options


# -- one engine on one regex ---------------------------------------------------------------------------


def _trials(
    console: Console,
    options: argparse.Namespace,
    vocabulary: vocabularies.NamedVocabulary,
    patterns: dict[str, str],
    overhead: float,
    figures: list[report.Figure],
) -> dict[str, Any]:
    """Run every engine on every regex, and show what was asked for."""
    stepping = "step" in options.only
    chosen = [e for e in engines.available() if "compile" in options.only or e not in tables.VARIANTS]
    results: tables.Results = {name: {} for name in patterns}
    with console.status("") as status:
        for name, by_engine in results.items():
            for engine in chosen:
                status.update(f"{vocabulary.name}: {name}: {engine}")
                walks = by_engine["structgen"].walks if "structgen" in by_engine else None if stepping else []
                task = _task(options, engine, patterns[name], vocabulary, walks)
                by_engine[engine] = trial.run(task, options.timeout)
    measured = [e for e in chosen if e not in tables.VARIANTS]
    if "compile" in options.only:
        tables.show_compile(console, vocabulary.name, results, [e for e in chosen if e != "structgen, lazy"])
        tables.show_ready(console, vocabulary.name, results, chosen)
    if "size" in options.only:
        tables.show_size(console, vocabulary.name, results, [e for e in measured if e != "llguidance"])
    if stepping:
        for which in ("warm", "first"):
            tables.show_steps(console, vocabulary.name, results, measured, which, overhead)
        tables.show_agreement(console, vocabulary.name, results, [e for e in measured if e != "structgen"])
    figures += tables.trial_figures(vocabulary.name, results, options.only, overhead)
    return {"trials": tables.as_json(results)}


def _task(
    options: argparse.Namespace,
    engine: str,
    pattern: str,
    vocabulary: vocabularies.NamedVocabulary,
    walks: list[list[int]] | None,
) -> trial.Task:
    variant, quick = engine in tables.VARIANTS, options.quick
    count = 5 if quick else 20
    return trial.Task(
        engine, pattern, str(vocabulary.path), str(vocabulary.tokenizer_json) if vocabulary.tokenizer_json else None,
        repeats=3 if quick else 5,
        copies=0 if variant or "size" not in options.only else 20 if quick else 100,
        seconds=1.0 if quick else 5.0,
        walks=[] if variant else walks,
        walk_count=count,
        compared_walks=0 if engine == "structgen" or variant else count,
    )  # fmt: skip


# -- the rest ------------------------------------------------------------------------------------------


def _opening(
    console: Console,
    options: argparse.Namespace,
    vocabulary: vocabularies.NamedVocabulary,
    patterns: dict[str, str],
    figures: list[report.Figure],
) -> dict[str, Any]:
    """From the cache to the first mask."""
    times, very_first = opening.measure(list(patterns.values()), vocabulary.path, 5 if options.quick else 20)
    medians = [float(np.median(found)) / 1e6 for found in times]
    rows = [
        [name, f"{median:.2f}", f"{found[0] / 1e6:.2f}", f"{max(found) / 1e6:.2f}"]
        for name, median, found in zip(patterns, medians, times, strict=True)
    ]
    title = f"From the cache to the first mask, {vocabulary.name}: ms"
    report.show_rows(console, title, ["regex", "median", "first", "worst"], rows)
    console.print(f"The very first hit in a process, modules and database included: {very_first / 1e6:.1f} ms")
    name = f"{vocabulary.name}: cached index to the first mask, median over regexes"
    figures.append(report.Figure(name, float(np.median(medians)), 1, False, "ms", len(medians)))
    return {"nanoseconds": dict(zip(patterns, times, strict=True)), "very first": very_first}


def _imports(console: Console, options: argparse.Namespace, figures: list[report.Figure]) -> dict[str, list[float]]:
    """Imports on top of NumPy."""
    names = [name for name in startup.IMPORTS if name in engines.available() or name.startswith("structgen")]
    times = startup.import_seconds(names, 3 if options.quick else 20)
    rows = [[name, f"{1e3 * np.median(found):.1f}", f"{1e3 * max(found):.1f}"] for name, found in times.items()]
    report.show_rows(console, "Import on top of NumPy: ms", ["module", "median", "worst"], rows)
    median = 1e3 * float(np.median(times["structgen"]))
    figures.append(report.Figure("import structgen", median, 30, False, "ms", len(times["structgen"])))
    return times


if __name__ == "__main__":
    main()
