"""Replies with tool calls: structgen, XGrammar and llguidance on the same requests, case by case in turns.

Run ``python -m benchmarks.tags``; ``--help`` tells the options, benchmarks/README.md the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from .. import report, run, vocabularies, worker
from ..tails import __main__ as tails
from ..tails import tables as tails_tables
from ..tails.worker import COMPLETE, LAZY, Bench, Case, Setup, read
from . import engines, requests, tables
from .tables import PEERS, Section

#: Tools and parameters of the requests that are read, entered, and get a tool more.
_TOOLS, _PARAMETERS = 64, 8

#: Tools that are added, one at a time.
_MORE = 5

#: Words of the free text, which is read twice.
_WORDS = 300

#: Replies to each request that is read.
_REPLIES = 12


def main() -> None:
    """Measure, show, and keep the result where asked to."""
    options = _options()
    console = run.console()
    kept = run.begin(console, vars(options)) | {"vocabularies": {}}
    figures: list[report.Figure] = []
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        named, notes = vocabularies.load(options.vocab, Path(folder))
        for note in notes:
            console.print(f"note: {note}")
        for vocabulary in named:
            kept["vocabularies"][vocabulary.name], found = measure(console, vocabulary, options, Path(folder))
            figures += found
    report.show_figures(console, figures)
    kept["figures"] = [figure.as_json() for figure in figures]
    run.end(console, kept, options.save)


def measure(
    console: Console, vocabulary: vocabularies.NamedVocabulary, options: argparse.Namespace, folder: Path
) -> tuple[dict[str, Any], list[report.Figure]]:
    """Every engine on every case, in turns; then what the worst moments of structgen did."""
    sections = {name: Section(cases) for name, cases in _cases(vocabulary, options)}
    kept: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        processes = {
            engine: stack.enter_context(
                worker.Process(
                    Bench,
                    Setup(
                        "tags", engine, vocabulary.path, vocabulary.tokenizer_json, folder / "cache", None, options.hold
                    ),
                    memory=options.memory << 30,
                )
            )
            for engine in options.engines
        }
        for name, section in sections.items():
            for engine, process in processes.items():
                section.readings[engine] = {}
                if name == "first masks":  # what is done once in a process is not what is looked for
                    read(process, requests.Request("llama", "simple", 1, 2, "warm").case(), options.timeout)
            for number, case in enumerate(section.cases):
                for engine, process in processes.items():
                    if _takes_part(name, engine, case, options):
                        section.readings[engine][number] = read(process, case, options.timeout)
                        if engine == COMPLETE and not section.readings[engine][number].failure:
                            section.sizes[number] = process.call("file_size")
        for name, section in sections.items():
            found = {engine: tails.statistics(readings) for engine, readings in section.readings.items() if readings}
            for engine in found.keys() & {LAZY, COMPLETE} if options.explain else ():
                found[engine] |= tails.worst(
                    vocabulary, section.cases, section.readings[engine], options, processes[engine], engine
                )
            tails_tables.show(console, f"{vocabulary.name}, {name}", {"engines": found}, options.clock)
            kept[name] = {"engines": found, "files": section.sizes}
    tables.show_grid(console, vocabulary.name, sections["first masks"], options.clock)
    kept["grid"] = tables.grid(sections["first masks"], options.clock)
    return kept, list(tables.figures(vocabulary.name, sections, options.clock))


def _takes_part(section: str, engine: str, case: Case, options: argparse.Namespace) -> bool:
    """Complete compiles are measured where replies are read; XGrammar takes seconds for the largest requests."""
    if engine == COMPLETE:
        return section == "replies"
    tools, parameters = tables.size_of(case.id)
    return engine != "xgrammar" or tools * parameters <= options.peer_parameters


def _cases(
    vocabulary: vocabularies.NamedVocabulary, options: argparse.Namespace
) -> Iterator[tuple[str, Sequence[Case]]]:
    if vocabulary.tokenizer_json is None:
        raise ValueError("replies are encoded by a tokenizer's own file")
    encode = requests.encoder(vocabulary.tokenizer_json)
    both = [(style, kind) for style in options.styles for kind in requests.KINDS]
    yield (
        "first masks",
        [
            requests.Request(style, kind, tools, parameters, f"{style[0]}{kind[0]}{tools}x{parameters}r{repeat}").case()
            for repeat in range(options.repeats)
            for style, kind in both
            for tools in options.tools
            for parameters in options.parameters
        ],
    )
    large = [_large(style, kind, "e") for style, kind in both]
    yield (
        "entering a tool",
        [request.case([(name, encode(text)) for name, text in request.entries()]) for request in large],
    )
    yield (
        "one tool more",
        [
            _large(style, kind, "m", more).case()
            for style, kind in both
            for more in ["", *(f"more{number}" for number in range(_MORE))]
        ],
    )
    texts = [(name, encode(requests.prose(_WORDS))) for name in ("new", "read before")]
    yield ("free text", [_large(style, kind, "f").case(texts) for style, kind in both])
    yield (
        "replies",
        [
            request.case([(name, encode(text)) for name, text in request.calls(_REPLIES, options.sample)])
            for style, kind in both
            for request in [_large(style, kind, "p")]
        ],
    )


def _large(style: str, kind: str, name: str, more: str = "") -> requests.Request:
    return requests.Request(style, kind, _TOOLS, _PARAMETERS, f"{name}{style[0]}{kind[0]}", more)


def _options() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(each) for each in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", default=",".join(PEERS), help=f"besides structgen: some of {','.join(PEERS)}")
    parser.add_argument("--vocab", default="llama3,gemma", help="names of tokenizer folders (llama3,gemma)")
    parser.add_argument("--styles", default=",".join(requests.STYLES), help="some of these, the default")
    parser.add_argument("--tools", type=numbers, default=[1, 4, 16, 64, 128], help="the default: 1,4,16,64,128")
    parser.add_argument("--parameters", type=numbers, default=[2, 8, 32], help="of each tool; the default: 2,8,32")
    parser.add_argument("--repeats", type=int, default=3, help="of the grid, with other names each time (3)")
    parser.add_argument("--sample", type=int, default=0, help="the seed for drawing replies")
    parser.add_argument("--peer-parameters", type=int, default=1024, help="in all, what XGrammar compiles (1024)")
    parser.add_argument("--hold", type=int, default=80, help="compiled objects that stay alive (80)")
    parser.add_argument("--worst", type=int, default=20, help="how many are named (20)")
    parser.add_argument("--explain", type=float, default=20.0, help="seconds for finding out what they did (20)")
    parser.add_argument("--clock", choices=tails_tables.CLOCKS, default="thread", help="the default: thread")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for a compile and the first mask (60)")
    parser.add_argument("--memory", type=int, default=12, help="GB of address space for each engine (12)")
    parser.add_argument("--save", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    try:
        options.styles = run.names(options.styles, requests.STYLES)
        peers = run.names(options.engines, PEERS)
    except ValueError as error:
        parser.error(str(error))
    options.vocab = options.vocab.split(",")
    options.engines = [LAZY, COMPLETE, *(peer for peer in peers if peer in engines.available())]
    return options


if __name__ == "__main__":
    main()
