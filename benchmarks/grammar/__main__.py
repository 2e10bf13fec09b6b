"""Context-free grammars: structgen and llguidance on the same files, in one run. See benchmarks/README.md.

Run ``python -m benchmarks.grammar``; ``--help`` tells the options.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import structgen as sg

from .. import engines as peers
from .. import report, run, vocabularies, worker
from . import corpora, costs, tables
from .engines import EAGER, LAZY, available
from .worker import Bench, Replay, Setup

OURS, PEER, LIMITED = "structgen", "llguidance", "llguidance, its limits"


@dataclass(frozen=True)
class Mode:
    """How an engine is prepared before a text is read and timed.

    Parameters
    ----------
    how:
        `engines.EAGER` or ``LAZY``.
    seen:
        What was read before: ``"all"``, ``"others"`` (texts of other projects), ``"earlier"`` ones, ``"nothing"``.
    name:
        In the tables.
    """

    how: str
    seen: str
    name: str


MODES = {
    "row": Mode(LAZY, "earlier", "lazy, one text after the other"),
    "warmed": Mode(EAGER, "all", "warmed: every text was read before"),
    "unseen": Mode(EAGER, "others", "unseen: other projects were read"),
    "strict": Mode(EAGER, "nothing", "unseen: nothing was read"),
    "lazy": Mode(LAZY, "nothing", "lazy: nothing was read"),
}
COSTS = ("compile", "memory")


@dataclass(frozen=True)
class Options:
    """What was asked for; see `main`."""

    modes: Sequence[str]
    sources: corpora.Sources
    engines: Sequence[str]
    peer_tokens: int
    cpu_time: bool
    repeats: int


@dataclass(frozen=True)
class Corpus:
    """A workload ready to be replayed: its grammar, and its texts with their tokens."""

    name: str
    grammar: sg.Grammar
    texts: Sequence[corpora.Text]
    tokens: Sequence[Sequence[int]]
    vocabulary: vocabularies.NamedVocabulary
    left: Mapping[str, str]

    @property
    def label(self) -> str:
        """For titles."""
        return f"{self.name}, {self.vocabulary.name}"


def main(
    workload: Annotated[str, typer.Option(help="Some of c,sql,python,json; by default all that are there.")] = "",
    vocab: Annotated[str, typer.Option(help="Names of tokenizer folders; by default one for each workload.")] = "",
    modes: Annotated[str, typer.Option(help=f"Some of {','.join([*MODES, *COSTS])}.")] = ",".join([*MODES, *COSTS]),
    files: Annotated[list[Path] | None, typer.Option(help="A folder with texts; may be given again.")] = None,
    limit: Annotated[int | None, typer.Option(help="How many texts of each workload, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="For drawing texts.")] = 0,
    comments: Annotated[bool, typer.Option(help="Leave comments in C files: they are many, and easy.")] = False,
    engines: Annotated[str, typer.Option(help="structgen, and peers where they are installed.")] = f"{OURS},{PEER}",
    peer_tokens: Annotated[int, typer.Option(help="How many tokens a peer reads in each mode.")] = 10_000,
    repeats: Annotated[int, typer.Option(help="How often to open, and to compile something new.")] = 5,
    cpu_time: Annotated[bool, typer.Option(help="Time steps by the processor's clock: see README.md.")] = False,
    output: Annotated[Path | None, typer.Option(help="Folder of the JSON file (results, or results/local).")] = None,
) -> None:
    """Measure what was asked for, show it, and keep it."""
    there = corpora.available()
    workloads = _some("workload", workload, tuple(corpora.WORKLOADS)) if workload else there
    options = Options(
        _some("modes", modes, (*MODES, *COSTS)),
        corpora.Sources(tuple(files or ()), limit, seed, comments),
        [e for e in _some("engines", engines, (OURS, PEER)) if e in available()],
        peer_tokens,
        cpu_time,
        repeats,
    )
    console = run.console()
    kept = run.begin(console, {
        "modes": options.modes, "limit": limit, "seed": seed, "comments": comments, "peer tokens": peer_tokens,
        "cpu time": cpu_time,
    })  # fmt: skip
    kept["workloads"] = {}
    figures: list[report.Figure] = []
    for name in workloads:
        if name not in there:
            console.print(f"note: structgen has no grammar for {name} yet")
            continue
        with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
            names = vocab.split(",") if vocab else [corpora.WORKLOADS[name].vocabulary]
            loaded, notes = vocabularies.load(names, Path(folder))
            for note in notes:
                console.print(f"note: {note}")
            for vocabulary in loaded:
                found = _measure(console, options, name, vocabulary, figures)
                kept["workloads"].setdefault(name, {})[vocabulary.name] = found
    kept["figures"] = [figure.as_json() for figure in figures]
    complete = not (files or limit) and list(workloads) == there and len(options.modes) == len(MODES) + len(COSTS)
    run.end(console, kept, run.results(kept, "grammars", output, complete=complete))


def _some(option: str, text: str, known: Sequence[str]) -> list[str]:
    """The names in a list with commas, in the order known."""
    try:
        return run.names(text, known)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from error


# -- one workload with one vocabulary ------------------------------------------------------------------


def _measure(
    console: Console,
    options: Options,
    name: str,
    vocabulary: vocabularies.NamedVocabulary,
    figures: list[report.Figure],
) -> dict[str, Any]:
    corpus = read_corpus(options.sources, name, vocabulary)
    total = sum(map(len, corpus.tokens))
    console.print(f"{corpus.label}: {len(corpus.texts)} texts, {total:,} tokens")
    tables.show_left(console, "left out", corpus.left)
    found: dict[str, Any] = {"texts": len(corpus.texts), "tokens": total, "left out": dict(corpus.left)}
    steps = [mode for mode in options.modes if mode in MODES]
    if steps and corpus.texts:
        found |= _replay(console, options, corpus, steps, figures)
    task = _task(options, corpus)
    if "compile" in options.modes:
        found["costs"] = costs.measure(task)
        tables.show_costs(console, corpus.label, found["costs"])
    if "memory" in options.modes:
        found["memory"] = costs.run("memory", task)
        tables.show_memory(console, corpus.label, found["memory"])
    return found


def read_corpus(sources: corpora.Sources, name: str, vocabulary: vocabularies.NamedVocabulary) -> Corpus:
    """Texts and their tokens, without those that structgen refuses or the tokenizer does not give back."""
    workload = corpora.WORKLOADS[name]
    texts, left = workload.texts(sources)
    grammar = workload.definition(texts)
    texts = _readable(texts, grammar, left)
    known = vocabularies.read(vocabulary.path)
    encode = _encoder(vocabulary, known)
    kept, tokens = [], []
    for text in texts:
        ids = encode(text.text)
        if b"".join(known.token(token) or b"" for token in ids) == text.text.encode():
            kept.append(text)
            tokens.append(ids)
        else:
            left[text.name] = "the tokenizer changes it"
    return Corpus(name, grammar, kept, tokens, vocabulary, left)


def _readable(texts: Sequence[corpora.Text], grammar: sg.Grammar, left: dict[str, str]) -> list[corpora.Text]:
    """The texts that structgen reads, byte by byte; of the others it is noted where they stop."""
    alphabet = sg.Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    index = sg.compile(grammar, alphabet, eager=False, budget=sg.Budget(seconds=600))
    kept = []
    for text in texts:
        data = text.text.encode()
        found = index.match(data)
        if found.accepted:
            kept.append(text)
        else:
            around = data[max(0, found.consumed - 30) : found.consumed + 20].decode(errors="replace")
            left[text.name] = f"not in the grammar at byte {found.consumed:,}: {around!r}"
    return kept


def _encoder(vocabulary: vocabularies.NamedVocabulary, known: sg.Vocabulary) -> Any:
    """From a text to token ids: by the tokenizer itself where there is one."""
    if vocabulary.tokenizer_json is None:
        greedy = peers.TokenBytes(known)
        return lambda text: greedy(text.encode())
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(vocabulary.tokenizer_json))
    tokenizer.encode_special_tokens = True
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def _task(options: Options, corpus: Corpus) -> costs.Task:
    workload, vocabulary = corpora.WORKLOADS[corpus.name], corpus.vocabulary
    encode = _encoder(vocabulary, vocabularies.read(vocabulary.path))
    return costs.Task(
        corpus.name, corpus.grammar.text, str(vocabulary.path),
        str(vocabulary.tokenizer_json) if vocabulary.tokenizer_json else None, options.repeats,
        {name: (encode(head), encode(repeated)) for name, (head, repeated) in workload.shapes.items()},
    )  # fmt: skip


def _replay(
    console: Console, options: Options, corpus: Corpus, modes: Sequence[str], figures: list[report.Figure]
) -> dict[str, Any]:
    """Check what every engine reads, then replay that in every mode."""
    setup = Setup(
        engine=OURS,
        vocabulary=corpus.vocabulary.path,
        tokenizer_json=corpus.vocabulary.tokenizer_json,
        grammar=corpus.grammar,
        texts=corpus.tokens,
        cpu_time=options.cpu_time,
    )
    everything = list(range(len(corpus.texts)))
    sampled = sample(corpus, options.peer_tokens, options.sources.seed)
    chosen = {engine: everything if engine == OURS else sampled for engine in options.engines}
    replays: dict[str, dict[str, dict[int, Replay]]] = {}
    refused: dict[str, dict[str, str]] = {}
    with contextlib.ExitStack() as stack, console.status("") as status:
        workers = {}
        for engine in options.engines:
            status.update(f"{corpus.label}: {engine} starts")
            try:
                workers[engine] = stack.enter_context(worker.Process(Bench, replace(setup, engine=engine)))
            except peers.RefusedError as error:
                refused[engine] = {"the grammar": str(error)}
        for mode in dict.fromkeys(["row", *modes]):
            replays[mode] = _one_mode(status, corpus, MODES[mode], workers, chosen)
            console.print(f"{mode}: {tables.in_words(replays[mode])}")
            for engine, found in replays[mode].items():
                trouble = {n: replay.trouble for n, replay in found.items() if replay.trouble}
                if mode == "row":
                    refused[engine] = {corpus.texts[n].name: reason for n, reason in trouble.items()}
                    chosen[engine] = [n for n in chosen[engine] if n not in trouble]
        if PEER in workers:
            status.update(f"{corpus.label}: {LIMITED}")
            refused[LIMITED] = _limited(setup, corpus, sampled)
    for engine, found_trouble in refused.items():
        tables.show_left(console, f"{corpus.label}: not read by {engine}", found_trouble)
    named = {MODES[mode].name: replays[mode] for mode in modes}
    title = f"Mask + advance, {corpus.label}: µs"
    tables.show_steps(console, title, named)
    tables.show_ratios(console, f"The peer's time over structgen's, {corpus.label}: the same steps", named)
    figures += tables.figures(corpus.label, named)
    return {"not read": refused, "peer reads": len(sampled), "steps": tables.as_json(named)}


def sample(corpus: Corpus, peer_tokens: int, seed: int) -> list[int]:
    """Texts at random, until they are as long as a peer is to read."""
    order = list(range(len(corpus.texts)))
    random.Random(seed).shuffle(order)
    chosen: list[int] = []
    length = 0
    for number in order:
        if chosen and length + len(corpus.tokens[number]) > peer_tokens:
            continue
        chosen.append(number)
        length += len(corpus.tokens[number])
    return sorted(chosen)


def _one_mode(
    status: Any, corpus: Corpus, mode: Mode, workers: Mapping[str, worker.Process], chosen: Mapping[str, Sequence[int]]
) -> dict[str, dict[int, Replay]]:
    """Text by text, engine by engine."""
    found: dict[str, dict[int, Replay]] = {engine: {} for engine in workers}
    for engine, process in workers.items():
        if mode.seen in ("all", "earlier") or (mode.seen == "others" and engine != OURS):
            status.update(f"{corpus.label}: {mode.name}: {engine} is prepared")
            process.call("prepare", mode.how, () if mode.seen == "earlier" else chosen[engine])
    for number, text in enumerate(corpus.texts):
        for engine, process in workers.items():
            if number not in chosen[engine]:
                continue
            status.update(f"{corpus.label}: {mode.name}: {number + 1} of {len(corpus.texts)}: {text.name}: {engine}")
            if mode.seen == "nothing":
                process.call("prepare", mode.how)
            elif mode.seen == "others" and engine == OURS:
                others = [n for n in chosen[engine] if corpus.texts[n].project != text.project]
                process.call("prepare", mode.how, others)
            found[engine][number] = process.call("replay", number)
    return found


def _limited(setup: Setup, corpus: Corpus, numbers: Sequence[int]) -> dict[str, str]:
    """On which texts the peer gives up by the limits that it has when nobody raises them."""
    with worker.Process(Bench, replace(setup, engine=LIMITED)) as process:
        process.call("prepare", LAZY)
        troubles = {corpus.texts[number].name: process.call("replay", number).trouble for number in numbers}
    return {name: trouble for name, trouble in troubles.items() if trouble}


app = typer.Typer(add_completion=False)
app.command()(main)

if __name__ == "__main__":
    app()
