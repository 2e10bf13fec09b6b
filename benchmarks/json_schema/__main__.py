"""MaskBench: structgen and its peers on real JSON Schemas, in one run. See benchmarks/README.md.

Run ``python -m benchmarks.json_schema``; ``--help`` tells the options.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from pathlib import Path

from rich.console import Console

import structgen as sg

from .. import report, run, vocabularies, worker
from . import engines, instances, tables
from .worker import Bench, outcome

COMPILED, LAZY, CACHED = "structgen", "structgen, lazy", "structgen, cached"

#: structgen's ways, by the name of the engine that measures each.
MODES = {
    "warm": COMPILED, "lazy": LAZY, "cached": CACHED,
    "uncollected": "structgen, lazy, collector off", "base": "structgen, lazy, base rows first",
}  # fmt: skip


def main() -> None:
    """Measure, show, and keep the result where asked to."""
    options = _options()
    console = run.console()
    kept = run.begin(console, vars(options))
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        cases, outcomes = _measure(console, options, Path(folder))
    tables.show(console, cases, outcomes, options.timeout)
    for engine in options.wrong:
        console.rule(engine)
        tables.show_wrong(console, cases, outcomes[engine])
    figures = tables.figures(cases, outcomes)
    if figures:
        report.show_figures(console, figures)
    kept |= {"schemas": len(cases), "engines": tables.as_json(cases, outcomes)}
    kept["figures"] = [figure.as_json() for figure in figures]
    run.end(console, kept, options.save)


def _measure(
    console: Console, options: argparse.Namespace, folder: Path
) -> tuple[list[instances.Case], tables.Outcomes]:
    """Every engine on every schema, one after the other, so that all of them see the same load on the machine."""
    vocabulary, tokenizer = folder / "vocabulary", options.tokenizer / "tokenizer.json"
    vocabulary.write_bytes(sg.Vocabulary.from_pretrained(options.tokenizer).to_bytes())
    encoder = instances.Encoder(tokenizer, canonical=options.order == "canonical")
    cases = [encoder.case(line) for line in instances.read(options.data, limit=options.limit, seed=options.sample)]
    outcomes: tables.Outcomes = {engine: [] for engine in options.engines}
    setting = engines.Setting(tokenizer, folder / "cache", options.options)
    with contextlib.ExitStack() as stack, console.status("") as status:
        processes = {
            engine: stack.enter_context(
                worker.Process(
                    Bench,
                    engine,
                    vocabulary,
                    setting,
                    options.cpu_time,
                    memory=options.memory << 30,
                    collector=engine not in engines.UNCOLLECTED,
                )
            )
            for engine in options.engines
        }
        for number, case in enumerate(cases):
            for engine, process in processes.items():
                status.update(f"{number} of {len(cases)}: {case.id}: {engine}")
                if engine == CACHED and outcomes[COMPILED][-1].failure:
                    outcomes[engine].append(outcomes[COMPILED][-1])  # nothing went to the cache
                else:
                    outcomes[engine].append(outcome(process, case, options.timeout))
    return cases, outcomes


def _options() -> argparse.Namespace:
    installed = engines.available()
    peers = [engine for engine in installed if engine not in MODES.values()]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=run.MASKBENCH, help="the .jsonl.gz file with schemas and tests")
    parser.add_argument("--limit", type=int, help="how many schemas; all by default")
    parser.add_argument("--sample", type=int, help="with --limit: the seed of a random sample, not the first ones")
    parser.add_argument("--engines", help=f"some of structgen,{','.join(peers)}; all by default")
    parser.add_argument("--modes", help=f"structgen's: some of {','.join(MODES)}; all by default")
    parser.add_argument("--tokenizer", type=Path, default=vocabularies.TOKENIZERS / "llama3", help="its folder")
    parser.add_argument("--order", choices=("as-is", "canonical"), default="as-is", help="of the instances' members")
    parser.add_argument("--options", type=json.loads, default={}, help="of structgen's JsonSchema, as a JSON object")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for a compile and the first mask (10)")
    parser.add_argument("--memory", type=int, default=12, help="GB of address space for each engine (12)")
    parser.add_argument("--cpu-time", action="store_true", help="time steps by the processor's clock: see README.md")
    parser.add_argument("--wrong", help=f"of which to list what is not right: some of {','.join([*MODES, *peers])}")
    parser.add_argument("--save", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    chosen = _some(parser, options.engines, ["structgen", *peers])
    modes = [MODES[mode] for mode in _some(parser, options.modes, list(MODES))] if "structgen" in chosen else []
    if CACHED in modes and COMPILED not in modes:
        parser.error("the mode cached reads what the mode warm wrote: choose both")
    options.engines = modes + [engine for engine in chosen if engine != "structgen"]
    wrong = _some(parser, options.wrong or "", [*MODES, *peers])
    options.wrong = [engine for engine in (MODES.get(name, name) for name in wrong) if engine in options.engines]
    return options


def _some(parser: argparse.ArgumentParser, text: str | None, known: list[str]) -> list[str]:
    """The names in a list with commas; all that are known for None."""
    try:
        return known if text is None else run.names(text, known)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
