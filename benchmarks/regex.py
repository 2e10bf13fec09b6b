"""Regexes: structgen and its peers in one run, as tables and as JSON. See benchmarks/README.md.

Run ``python benchmarks/regex.py`` from anywhere; ``--help`` tells the options.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __package__ in (None, ""):
    # As a script, this folder is on the path, where `import regex` (tiktoken does) would find this very file.
    sys.path[0] = str(ROOT)

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402

from benchmarks import machine, opening, peers, report, startup, trial, vocabularies  # noqa: E402
from benchmarks.regexes import REGEXES  # noqa: E402

TRIALS = ("compile", "size", "step")
MEASURES = (*TRIALS, "open", "import", "kernels")

#: Runs of a few regexes that compile quickly in every engine, for `--quick`.
QUICK = ("email", "date", "ip", "uuid", "choice_500")


def main() -> None:
    """Measure what was asked for, show it, and keep it."""
    options = _options()
    console = Console() if sys.stdout.isatty() else Console(width=180)  # wide enough for every table
    patterns = {name: REGEXES[name] for name in options.regex}
    figures: list[report.Figure] = []
    kept: dict[str, Any] = {
        "began": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine.describe(), "versions": machine.versions(), "load at the beginning": machine.load(),
        "options": {key: str(value) for key, value in vars(options).items()},
    }  # fmt: skip
    console.print(kept["machine"], kept["versions"], f"load {kept['load at the beginning']:.1f}")
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        loaded, notes = vocabularies.load(options.vocab, Path(folder))
        for note in notes:
            console.print(f"note: {note}")
        kept |= {"notes": notes, "clock overhead, ns": trial.clock_overhead(), "vocabularies": {}}
        for vocabulary in loaded:
            found: dict[str, Any] = {"size": vocabulary.size}
            kept["vocabularies"][vocabulary.name] = found
            if set(TRIALS) & set(options.only):
                found |= _trials(console, options, vocabulary, patterns, kept["clock overhead, ns"], figures)
            if "open" in options.only:
                found["open"] = _opening(console, options, vocabulary, patterns, figures)
    if "import" in options.only:
        kept["import"] = _imports(console, options, figures)
    if "kernels" in options.only:
        kept["kernels"] = _kernels(console, options, figures)
    report.show_figures(console, figures)
    kept |= {"figures": [asdict(f) | {"met": f.met} for f in figures], "load at the end": machine.load()}
    console.print(f"written to {_write(options, kept)}")


def _options() -> argparse.Namespace:
    def names(allowed: tuple[str, ...] | None) -> Any:
        def parse(text: str) -> list[str]:
            chosen = [name for name in text.split(",") if name]
            unknown = [name for name in chosen if allowed is not None and name not in allowed]
            if unknown:
                known = ", ".join(allowed or ())
                raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {known}")
            return chosen

        return parse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=names(MEASURES), default=list(MEASURES), help=f"some of {','.join(MEASURES)}")
    parser.add_argument("--vocab", type=names(None), default=["llama3", "gemma"], help="names of tokenizer folders")
    parser.add_argument("--regex", type=names(tuple(REGEXES)), help="names of regexes; all by default")
    parser.add_argument("--quick", action="store_true", help="few regexes, few repeats: to see that it works")
    parser.add_argument("--timeout", type=float, help="seconds for one engine on one regex (900, quick 120)")
    parser.add_argument("--output", type=Path, help="folder for the JSON file (results, or results/local in part)")
    options = parser.parse_args()
    complete = not (options.quick or options.regex or set(options.only) != set(MEASURES))
    options.regex = options.regex or list(QUICK if options.quick else REGEXES)
    options.timeout = options.timeout or (120 if options.quick else 900)
    options.output = options.output or ROOT / "benchmarks" / "results" / ("." if complete else "local")
    return options


def _write(options: argparse.Namespace, kept: dict[str, Any]) -> Path:
    options.output.mkdir(parents=True, exist_ok=True)
    path: Path = options.output / f"{kept['began'][:10]}-regex.json"
    path.write_text(json.dumps(kept, indent=1) + "\n")
    return path.resolve()


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
    engines = [e for e in peers.available() if "compile" in options.only or e not in report.VARIANTS]
    results: report.Results = {name: {} for name in patterns}
    with console.status("") as status:
        for name, by_engine in results.items():
            for engine in engines:
                status.update(f"{vocabulary.name}: {name}: {engine}")
                walks = by_engine["structgen"].walks if "structgen" in by_engine else None if stepping else []
                task = _task(options, engine, patterns[name], vocabulary, walks)
                by_engine[engine] = trial.run(task, options.timeout)
    measured = [e for e in engines if e not in report.VARIANTS]
    if "compile" in options.only:
        report.show_compile(console, vocabulary.name, results, [e for e in engines if e != "structgen, lazy"])
        report.show_ready(console, vocabulary.name, results, engines)
    if "size" in options.only:
        report.show_size(console, vocabulary.name, results, [e for e in measured if e != "llguidance"])
    if stepping:
        for which in ("warm", "first"):
            report.show_steps(console, vocabulary.name, results, measured, which, overhead)
        report.show_agreement(console, vocabulary.name, results, [e for e in measured if e != "structgen"])
    figures += report.trial_figures(vocabulary.name, results, options.only, overhead)
    return {"trials": report.as_json(results)}


def _task(
    options: argparse.Namespace,
    engine: str,
    pattern: str,
    vocabulary: vocabularies.NamedVocabulary,
    walks: list[list[int]] | None,
) -> trial.Task:
    variant, quick = engine in report.VARIANTS, options.quick
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
    names = [name for name in startup.IMPORTS if name in peers.available() or name.startswith("structgen")]
    times = startup.import_seconds(names, 3 if options.quick else 20)
    rows = [[name, f"{1e3 * np.median(found):.1f}", f"{1e3 * max(found):.1f}"] for name, found in times.items()]
    report.show_rows(console, "Import on top of NumPy: ms", ["module", "median", "worst"], rows)
    median = 1e3 * float(np.median(times["structgen"]))
    figures.append(report.Figure("import structgen", median, 30, False, "ms", len(times["structgen"])))
    return times


def _kernels(console: Console, options: argparse.Namespace, figures: list[report.Figure]) -> dict[str, list[float]]:
    """The kernels' first compile on a machine, and loading them."""
    first, again = startup.kernel_seconds(1 if options.quick else 2)
    rows = [[name, f"{np.median(found):.2f}"] for name, found in (("compiled", first), ("loaded again", again))]
    report.show_rows(console, "Kernels ready, Numba's import included: s", ["", "median"], rows)
    figures.append(report.Figure("first compile of the kernels", float(np.median(first)), 20, False, "s", len(first)))
    return {"compiled": first, "loaded": again}


if __name__ == "__main__":
    main()
