"""Batches, forced tokens and masks on a device: structgen and its peers, in one run. See benchmarks/README.md.

Run ``python -m benchmarks.batch``; ``--help`` tells the options.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import structgen as sg

from .. import run, vocabularies
from ..json_schema import instances
from ..json_schema.order import ordered
from . import engines as batch_engines
from . import masks, trial

WORKLOADS = ("batch", "moves", "sampling", "forced", "generate", "masks")

#: Seconds that an engine may take to say which texts it takes, and for its steps.
_PATIENCE = 900.0


def main(
    workloads: Annotated[str, typer.Option(help=f"Some of {','.join(WORKLOADS)}.")] = ",".join(WORKLOADS),
    vocab: Annotated[str, typer.Option(help="The name of a tokenizer folder.")] = "llama3",
    batch: Annotated[int, typer.Option(help="Sequences.")] = 256,
    steps: Annotated[int, typer.Option(help="Tokens of each sequence.")] = 300,
    threads: Annotated[int, typer.Option(help="Threads of the engines.")] = os.cpu_count() or 1,
    limit: Annotated[int, typer.Option(help="How many schemas, drawn at random.")] = 100,
    largest: Annotated[int, typer.Option(help="Characters of the largest schema.")] = 3000,
    seed: Annotated[int, typer.Option(help="For drawing schemas and texts.")] = 0,
    engines: Annotated[str, typer.Option(help="By default all that are installed.")] = "",
    output: Annotated[Path | None, typer.Option(help="Folder for the JSON (results/local).")] = None,
) -> None:
    """Measure what was asked for, show it, and keep it."""
    console = run.console()
    tokenizer = vocabularies.TOKENIZERS / vocab
    # XGrammar takes minutes, and much memory, for some large ones.
    lines = [line for line in instances.read(run.MASKBENCH) if len(json.dumps(line["schema"])) <= largest]
    lines = instances.sample(lines, limit, seed)
    names = [name.strip() for name in engines.split(",")] if engines else batch_engines.available()
    kept = run.begin(console, {
        "vocabulary": vocab, "batch": batch, "steps": steps, "threads": threads, "schemas": len(lines),
        "largest schema": largest, "seed": seed,
    })  # fmt: skip
    try:
        wanted = run.names(workloads, WORKLOADS)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if "batch" in wanted:
        cases = [
            (case.schema, [i.tokens for i in case.instances if i.valid and i.tokens])
            for case in map(instances.Encoder(tokenizer / "tokenizer.json").case, lines)
        ]
        task = trial.Task("", tokenizer, cases, batch, steps, threads, seed)
        kept["batch"] = _batch(console, task, names)
    if "moves" in wanted:
        kept["moves"] = _moves(console, tokenizer, batch)
    if "sampling" in wanted:
        kept["sampling"] = _sampling(console, tokenizer)
    if "forced" in wanted:
        kept["forced"] = _forced(console, tokenizer, lines)
    if "generate" in wanted:
        kept["generate"] = _generate(console, tokenizer, seed)
    if "masks" in wanted:
        found = masks.measure(*masks.usual())
        masks.show(console, found)
        kept["masks"] = vars(found)
    run.end(console, kept, run.results(kept, "engines", output, complete=False))


# -- batches -------------------------------------------------------------------------------------------


def _batch(console: Console, task: trial.Task, names: list[str]) -> dict[str, Any]:
    """Steps of a batch over texts that every engine takes."""
    ours = [name for name in names if name.startswith("structgen")]
    judges = [*ours[:1], *(name for name in names if name not in ours)]
    taken = []
    for name in judges:
        with console.status(f"which texts {name} takes"):
            taken.append(trial.in_process(replace(task, engine=name), "texts_taken", _PATIENCE))
    cases = []
    for number, (schema, texts) in enumerate(task.cases):
        common = [text for i, text in enumerate(texts) if all(each[number][i] for each in taken)]
        if common:
            cases.append((schema, common))
    console.print(f"{len(cases)} schemas, {sum(len(texts) for _, texts in cases)} texts that all engines take")
    found: dict[str, Any] = {"schemas": len(cases), "engines": {}}
    for name in names:
        with console.status(f"steps of {name}"):
            rounds = trial.in_process(replace(task, engine=name, cases=cases), "step_times", _PATIENCE)
        found["engines"][name] = [
            {clock: trial.summary(times[clock]) for clock in ("wall", "processor")} for times in rounds
        ]
    table = Table(title=f"A step of {task.batch} sequences, microseconds, {task.threads} threads")
    for column in ("engine", "texts", "wall: mean", "p50", "p99", "processor: mean", "of it a sequence"):
        table.add_column(column, justify="left" if column in ("engine", "texts") else "right")
    for name, rounds in found["engines"].items():
        for turn, clocks in zip(("new", "read before"), rounds, strict=True):
            wall, processor = clocks["wall"], clocks["processor"]
            table.add_row(
                name, turn, f"{wall['mean']:,.0f}", f"{wall['p50']:,.0f}", f"{wall['p99']:,.0f}",
                f"{processor['mean']:,.0f}", f"{processor['mean'] / task.batch:,.2f}",
            )  # fmt: skip
    console.print(table)
    for peer in judges[1:]:
        theirs = found["engines"][peer]
        for name in ours:
            ratios = [
                theirs[i][clock]["mean"] / found["engines"][name][i][clock]["mean"]
                for i in (0, 1)
                for clock in ("wall", "processor")
            ]
            console.print(
                f"{name} against {peer}: new texts {ratios[0]:.1f} times faster (processor {ratios[1]:.1f}), "
                f"read before {ratios[2]:.1f} ({ratios[3]:.1f})"
            )
    return found


# -- other moves ---------------------------------------------------------------------------------------

_RECORD = {
    "type": "object", "additionalProperties": False, "required": ["name", "age", "tags"],
    "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}  # fmt: skip


def _median(function: Callable[[], object], repeats: int = 50) -> float:
    """Microseconds."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2] * 1e6


def _moves(console: Console, tokenizer: Path, batch: int) -> dict[str, float]:
    """What reordering, rolling back, and drafts cost, for a batch inside strings and numbers; microseconds a call."""
    vocabulary = sg.Vocabulary.from_pretrained(tokenizer)
    encode = vocabulary.encode
    assert encode is not None
    index = sg.compile(sg.JsonSchema(_RECORD), vocabulary)
    guides = sg.GuideBatch(vocabulary, [index] * batch)
    text = list(encode('{"name": "Ada Lovelace", "age": 36, "tags": ["first", "programmer"]}'))
    for row in range(batch):
        for token in text[: row % (len(text) - 5)]:
            guides.advance([token], [row])
    ahead = np.array([text[row % (len(text) - 5) :][:4] for row in range(batch)], np.int64)
    tokens = ahead.reshape(-1)
    above = np.where(np.arange(len(tokens)) % 4, np.arange(len(tokens)) - 1, -1)
    rows = np.repeat(np.arange(batch), 4)
    drafted, masks = (sg.allocate_bitmask(n, vocabulary.size) for n in (len(tokens), batch))
    order = [*range(1, batch), 0]
    wide = [row for row in range(batch) if row % (len(text) - 5) > 1]

    def there_and_back() -> None:
        guides.advance(ahead[wide, 0], wide)
        guides.rollback(1, wide)

    def drafts() -> None:
        guides.draft(tokens, above, rows).fill_bitmask(drafted)

    found = {
        "row ids": _median(guides.row_ids),
        "fill_bitmask": _median(lambda: guides.fill_bitmask(masks)),
        "advance and rollback": _median(there_and_back),
        "reorder": _median(lambda: guides.reorder(order)),
        "draft of 4 tokens a row, followed": _median(lambda: guides.draft(tokens, above, rows)),
        "draft of 4 tokens a row, with masks": _median(drafts),
        "a guide's fork": _median(sg.Guide(index).fork),
    }
    console.print(f"moves of {batch} sequences, microseconds:", found)
    return found


# -- sampling ------------------------------------------------------------------------------------------


def _sampling(console: Console, tokenizer: Path) -> dict[str, float]:
    """Sampling at places that nobody worked out, by candidates and by the whole mask; microseconds a token."""
    import torch

    from structgen.runtime.logits.sampling import Sampler

    torch.set_num_threads(1)
    vocabulary = sg.Vocabulary.from_pretrained(tokenizer)
    encode = vocabulary.encode
    assert encode is not None
    sg.compile_base_rows(vocabulary)  # as a server that has started has them
    text = list(encode('{"name": "Ada Lovelace", "age": 36, "tags": ["first", "programmer"]}'))
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn((len(text), vocabulary.size), generator=generator)
    logits[range(len(text)), text] += 20  # a model that knows what it wants

    def masked(row: torch.Tensor, guide: sg.Guide) -> object:
        scores = row.clone()
        sg.apply_bitmask(scores, guide.bitmask())
        return torch.softmax(scores, 0).argmax()

    ways: dict[str, Callable[[Any, sg.Guide], object]] = {
        "whole mask": masked,
        "greedy, by candidates": Sampler(0.0).sample,
        "top-k 40, by candidates": Sampler(top_k=40).sample,
        "top-p 0.9, by candidates": Sampler(top_p=0.9).sample,
    }
    found = {}
    for name, way in ways.items():
        times = []
        for turn in range(5):
            # Another schema each time, so that no place of it is known.
            schema = json.loads(json.dumps(_RECORD))
            schema["properties"][f"x{turn}{len(name)}"] = {"type": "null"}
            guide = sg.Guide(sg.compile(sg.JsonSchema(schema), vocabulary, eager=False))
            for row, token in zip(logits, text, strict=True):
                begun = time.perf_counter()
                way(row, guide)
                times.append(time.perf_counter() - begun)
                guide.advance(token)
        found[name] = float(np.mean(times)) * 1e6
    console.print("sampling at unknown places, microseconds a token:", found)
    return found


# -- forced tokens -------------------------------------------------------------------------------------


def _forced(console: Console, tokenizer: Path, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """How many tokens of valid instances, compact and in the schema's order, need no model."""
    vocabulary = sg.Vocabulary.from_pretrained(tokenizer)
    encode = vocabulary.encode
    assert encode is not None
    total = forced = peers_forced = others = seconds = calls = 0.0
    peer = _Fast(tokenizer, vocabulary)
    for line in lines:
        try:
            definition = sg.JsonSchema(line["schema"], whitespace="compact")
            index = sg.compile(definition, vocabulary, eager=False)
        except sg.Error:
            continue
        matcher = peer.compile(line["schema"])
        for test in line["tests"]:
            if not test["valid"]:
                continue
            data = ordered(line["schema"], test["data"])
            tokens = list(encode(json.dumps(data, ensure_ascii=False, separators=(",", ":"))))
            guide = sg.Guide(index)
            written = here = 0
            while written < len(tokens):
                begun = time.perf_counter()
                run = [token for token in guide.forced_tokens() if token not in vocabulary.eos_ids]
                seconds += time.perf_counter() - begun
                calls += 1
                if run != tokens[written : written + len(run)]:
                    others += 1  # another split, or a text that the definition doesn't take
                    run = []
                here += len(run)
                run = run or [tokens[written]]
                if not all(map(guide.advance, run)):
                    break
                written += len(run)
            else:
                theirs = peer.forced(matcher, tokens)
                if theirs is not None:
                    total, forced, peers_forced = total + len(tokens), forced + here, peers_forced + theirs
    found = {
        "tokens": total, "forced": forced / total, "llguidance": peers_forced / total, "split otherwise": others,
        "microseconds a call": 1e6 * seconds / calls,
    }  # fmt: skip
    console.print("forced tokens:", found)
    return found


class _Fast:
    """llguidance's fast-forward tokens, with the same whitespace."""

    def __init__(self, tokenizer: Path, vocabulary: sg.Vocabulary) -> None:
        from llguidance import LLMatcher, LLTokenizer

        self._matcher = LLMatcher
        self._tokenizer = LLTokenizer(
            str(tokenizer / "tokenizer.json"), n_vocab=vocabulary.size, eos_token=list(vocabulary.eos_ids)
        )

    def compile(self, schema: Any) -> Any:
        """A matcher, or None."""
        options: Any = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        grammar = self._matcher.grammar_from_json_schema(schema, defaults=options)
        matcher = self._matcher(self._tokenizer, grammar, log_level=0)
        return None if matcher.is_error() else matcher

    def forced(self, matcher: Any, tokens: list[int]) -> int | None:
        """How many tokens of a text it forces; None where it doesn't take the text."""
        if matcher is None:
            return None
        matcher = matcher.deep_copy()
        written = found = 0
        while written < len(tokens):
            run = matcher.compute_ff_tokens()
            if run != tokens[written : written + len(run)]:
                run = []
            found += len(run)
            run = run or [tokens[written]]
            if not all(matcher.consume_token(token) for token in run):
                return None
            written += len(run)
        return found


# -- transformers ----------------------------------------------------------------------------------------


def _generate(console: Console, tokenizer: Path, seed: int) -> dict[str, float]:
    """Tokens per second of `generate()` free, masked, and with forced tokens; see `benchmarks.batch.generate`."""
    from . import generate

    vocabulary = sg.Vocabulary.from_pretrained(tokenizer)
    bench, order = generate.Bench(vocabulary, tokenizer / "tokenizer.json"), random.Random(seed)
    texts = generate.texts(vocabulary, run.MASKBENCH, 8, seed)
    with console.status("transformers"):
        found = generate.figures([bench.result(text, 5, order) for text in texts])
    console.print("generate():", found)
    return found


if __name__ == "__main__":
    typer.run(main)
