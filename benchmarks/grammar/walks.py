"""Any grammars: what compiling takes, the first mask, and the slowest steps along random walks, by name.

    python -m benchmarks.grammar.walks ~/src/syncode/grammars/*.lark
    python -m benchmarks.grammar.walks python2.lark:file_input --complete

A path may name the rule that a text is, else it is ``start``. Seconds are the processor's. A walk says which bytes
came before a slow step.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.table import Table

import structgen as sg
from structgen.runtime import ids_of
from structgen.system.visible import visible

from .. import run, vocabularies
from ..regex.walks import NO_BYTE, draw, first_bytes

#: Read before anything is timed, so that kernels are there.
_OTHER = 'start: ("a" | "b")* NAME\nNAME: /[a-z]+/\n%ignore " "\n'

#: Bytes of a text that are shown before a slow step.
_SHOWN = 24


class Step(NamedTuple):
    """A step that took ``seconds``, behind a text."""

    seconds: float
    text: bytes


def main(
    paths: Annotated[list[str], typer.Argument(help="PATH or PATH:RULE")],
    vocab: Annotated[str, typer.Option(help="a tokenizer")] = "llama3",
    lexers: Annotated[str, typer.Option(help="lexers, with commas")] = "contextual,basic",
    complete: Annotated[bool, typer.Option("-c", "--complete", help="compile all ahead of time")] = False,
    walks: Annotated[int, typer.Option(help="walks through each")] = 4,
    tokens: Annotated[int, typer.Option(help="tokens of a walk at most")] = 150,
    seconds: Annotated[float, typer.Option(help="what a compile may take")] = 60.0,
) -> None:
    """Time the compile, the first mask and the slowest steps of grammars."""
    warnings.simplefilter("ignore", sg.errors.GrammarWarning)
    console = run.console()
    run.begin(console, {})
    with tempfile.TemporaryDirectory() as folder:
        (named, *_), notes = vocabularies.load([vocab], Path(folder))
        vocabulary = vocabularies.read(named.path)
    for note in notes:
        console.print(f"note: {note}")
    _timed(sg.Grammar(_OTHER), vocabulary, sg.Budget(), complete, 1, 20)
    table = Table("grammar", "lexer", "compile, s", "first mask, s", "slowest step, ms", "behind", title=named.name)
    for path in paths:
        for lexer in lexers.split(","):
            name, _, rule = path.partition(":")
            try:
                definition = _grammar(Path(name), rule or "start", lexer)
                compiled, first, worst = _timed(
                    definition, vocabulary, sg.Budget(seconds=seconds), complete, walks, tokens
                )
            except sg.Error as error:
                table.add_row(Path(name).name, lexer, "", "", "", f"{type(error).__name__}: {error}"[:100])
                continue
            behind = visible(worst.text[-_SHOWN:]).replace("\n", "")
            table.add_row(
                Path(name).name, lexer, f"{compiled:.2f}", f"{first:.3f}", f"{1000 * worst.seconds:.1f}", behind
            )
    console.print(table)


def _grammar(path: Path, rule: str, lexer: str) -> sg.Grammar:
    text = path.read_text()
    if "%declare _INDENT" not in text:
        return sg.Grammar(path, start=rule, lexer=lexer)
    layout = sg.Indentation() if "_NEWLINE" in text else sg.Indentation(newline="_NL")
    return sg.Grammar(path, start=rule, lexer=lexer, postlex=layout)


def _timed(
    definition: sg.Grammar, vocabulary: sg.Vocabulary, budget: sg.Budget, complete: bool, walks: int, tokens: int
) -> tuple[float, float, Step]:
    begun = time.process_time()
    index = sg.compile(definition, vocabulary, eager=complete, base_rows=False, budget=budget)
    compiled = time.process_time()
    sg.Guide(index).bitmask()
    asked = time.process_time()
    rng, first, worst = np.random.default_rng(0), first_bytes(vocabulary), Step(0.0, b"")
    for _ in range(walks):
        guide, text = sg.Guide(index), b""
        for _ in range(tokens):
            before = time.process_time()
            mask = guide.bitmask()
            worst = max(worst, Step(time.process_time() - before, text))
            token = draw(ids_of(mask), first, rng)
            if first[token] == NO_BYTE:
                break
            before = time.process_time()
            guide.advance(token)
            worst = max(worst, Step(time.process_time() - before, text))
            text += vocabulary.token(token) or b""
    return compiled - begun, asked - compiled, worst


if __name__ == "__main__":
    typer.run(main)
