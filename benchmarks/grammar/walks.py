"""Any grammars: what compiling takes, the first mask, and the slowest steps along random walks, by name.

    python -m benchmarks.grammar.walks ~/src/syncode/grammars ~/src/llama.cpp/grammars/*.gbnf
    python -m benchmarks.grammar.walks python2.lark:file_input --complete

A path is a file in Lark's notation, in GBNF or in EBNF, or a folder, which stands for all that it holds of these,
however deep. It may name the rule that a text is, else it is ``start``, or ``root`` in GBNF and EBNF. A file in
Lark's notation whose first comment says ``lexer="basic"``, ``ambiguity="all"`` or ``start="..."`` is read so,
whatever else is asked for. Seconds are the processor's. A walk says which bytes came before a slow step, and how many
steps were slow.

Python's garbage collector rests within walks: a full collection takes 0.1 s once the kernels are loaded, and falls on
whichever step is the next, of any grammar. Servers freeze what they loaded (docs/guide/memory.md).
"""

from __future__ import annotations

import gc
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.table import Table

import structgen as sg
from structgen.runtime import ids_of
from structgen.system import garbage
from structgen.system.visible import visible

from .. import run, vocabularies
from ..regex.walks import NO_BYTE, draw, first_bytes

#: Seconds from which a step is slow.
_SLOW = 0.02

#: Read before anything is timed, so that kernels are there.
_OTHER = 'start: ("a" | "b")* NAME\nNAME: /[a-z]+/\n%ignore " "\n'

#: Bytes of a text that are shown before a slow step.
_SHOWN = 24


class Step(NamedTuple):
    """A step that took ``seconds``, behind a text."""

    seconds: float
    text: bytes


def main(
    paths: Annotated[list[str], typer.Argument(help="PATH, PATH:RULE, or a folder")],
    vocab: Annotated[str, typer.Option(help="a tokenizer")] = "llama3",
    lexers: Annotated[str, typer.Option(help="lexers of Lark's grammars, with commas")] = "contextual,basic",
    dialect: Annotated[str, typer.Option(help="of EBNF")] = "transformers-cfg",
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
    columns = "grammar", "lexer", "compile, s", "first mask, s", "slowest step, ms", "slow", "behind"
    table = Table(*columns, title=named.name)
    for path, rule in _files(paths):
        said = _said(path)
        for lexer in [said["lexer"]] if "lexer" in said else lexers.split(",") if path.suffix == ".lark" else [""]:
            try:
                definition = _definition(path, rule or said.get("start", ""), lexer, dialect, said.get("ambiguity"))
                compiled, first, slow, worst = _timed(
                    definition, vocabulary, sg.Budget(seconds=seconds), complete, walks, tokens
                )
            except sg.Error as error:
                table.add_row(path.name, lexer, "", "", "", "", f"{type(error).__name__}: {error}"[:100])
                continue
            behind = visible(worst.text[-_SHOWN:]).replace("\n", "")
            table.add_row(
                path.name, lexer, f"{compiled:.2f}", f"{first:.3f}", f"{1000 * worst.seconds:.1f}", str(slow), behind
            )
    console.print(table)


def _files(paths: list[str]) -> Iterator[tuple[Path, str]]:
    """Files and the rule that a text of each is, empty for the usual one."""
    for path in paths:
        name, _, rule = path.partition(":")
        here = Path(name)
        if here.is_dir():
            found = sorted(each for suffix in ("lark", "gbnf", "ebnf") for each in here.rglob(f"*.{suffix}"))
        else:
            found = [here]
        yield from ((each, rule) for each in found)


def _said(path: Path) -> dict[str, str]:
    """The options that a grammar of Lark's says it is read with, in the comment at its beginning."""
    begin = re.match(r"(\s*//.*\n)*", path.read_text() if path.suffix == ".lark" else "")
    return dict(re.findall(r'\b(lexer|ambiguity|start)="(\w+)"', begin[0])) if begin else {}


def _definition(
    path: Path, rule: str, lexer: str, dialect: str = "transformers-cfg", ambiguity: str | None = None
) -> sg.Definition:
    if path.suffix == ".gbnf":
        return sg.Gbnf(path, start=rule or "root")
    if path.suffix == ".ebnf":
        return sg.Ebnf(path, start=rule or "root", dialect=dialect)
    text, start = path.read_text(), rule or "start"
    if "%declare _INDENT" not in text:
        return sg.Grammar(path, start=start, lexer=lexer, ambiguity=ambiguity or "resolve")
    layout = sg.Indentation() if "_NEWLINE" in text else sg.Indentation(newline="_NL")
    return sg.Grammar(path, start=start, lexer=lexer, postlex=layout)


def _timed(
    definition: sg.Definition, vocabulary: sg.Vocabulary, budget: sg.Budget, complete: bool, walks: int, tokens: int
) -> tuple[float, float, int, Step]:
    """Seconds of the compile and of the first mask, how many steps were slow, and the slowest one."""
    begun = time.process_time()
    index = sg.compile(definition, vocabulary, eager=complete, base_rows=False, budget=budget)
    compiled = time.process_time()
    sg.Guide(index).bitmask()
    asked = time.process_time()
    rng, steps = np.random.default_rng(0), [Step(0.0, b"")]
    for _ in range(walks):
        gc.collect()
        with garbage.paused():
            steps += _walk(sg.Guide(index), tokens, rng)
    return compiled - begun, asked - compiled, sum(step.seconds > _SLOW for step in steps), max(steps)


def _walk(guide: sg.Guide, tokens: int, rng: np.random.Generator) -> Iterator[Step]:
    """The steps of a walk over random tokens: masks and moves."""
    vocabulary, text = guide.index.vocabulary, b""
    first = first_bytes(vocabulary)
    for _ in range(tokens):
        before = time.process_time()
        mask = guide.bitmask()
        yield Step(time.process_time() - before, text)
        token = draw(ids_of(mask), first, rng)
        if first[token] == NO_BYTE:
            break
        before = time.process_time()
        guide.advance(token)
        yield Step(time.process_time() - before, text)
        text += vocabulary.token(token) or b""


if __name__ == "__main__":
    typer.run(main)
