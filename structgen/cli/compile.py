"""``structgen compile``: one definition into one index file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..definitions import Definition, Regex
from ..definitions.loading import load_definitions
from ..errors import DefinitionError
from . import options
from .console import Display, core_count, format_bytes


def compile(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The index file to write.")],
    tokenizer: options.Tokenizer,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", show_default=False, help="A file that holds one definition, or MODULE:NAME."),
    ] = None,
    regex: Annotated[str | None, typer.Option(metavar="PATTERN", help="A pattern, instead of FILE.")] = None,
    lazy: Annotated[
        bool, typer.Option("--lazy", help="Store the automaton and the masks found so far, not all masks.")
    ] = False,
    dialect: options.Dialect = "",
    max_states: options.MaxStates = None,
    max_memory: options.MaxMemory = None,
    max_seconds: options.MaxSeconds = None,
    as_json: options.AsJson = False,
) -> None:
    """Compile one definition into an index file, to be shipped with a model or checked by hand.

    \b
    [bold]Examples[/]
      structgen compile date.regex -o date.sgx -t ./llama-3
      structgen compile person.json -o person.sgx -t ./llama-3
      structgen compile app.models:Person -o person.sgx -t ./llama-3
      structgen compile --regex '[0-9]{4}-[0-9]{2}' -o month.sgx -t tekken
    """
    from ..api import compile as compile_definition

    definition = _read(file, regex, dialect)
    vocabulary = options.load_vocabulary(tokenizer)
    with Display() as display, display.track(output.name) as progress:
        index = compile_definition(
            definition,
            vocabulary,
            eager=not lazy,
            budget=options.make_budget(max_states, max_memory, max_seconds),
            progress=progress,
            threads=core_count(),
        )
    index.save(output)
    for relaxed in index.relaxations:
        typer.echo(f"relaxed: {relaxed}", err=True)
    if as_json:
        options.print_json(
            {
                "path": str(output),
                "states": index.states,
                "rows": index.row_count,
                "bytes": index.nbytes,
                "seconds": index.compile_seconds,
                "relaxations": list(index.relaxations),
            }
        )
    else:
        typer.echo(
            f"{output}: {index.states:,} states, {index.row_count:,} rows, {format_bytes(index.nbytes)}, "
            f"compiled in {index.compile_seconds:.3f} s"
        )


def _read(file: Path | None, regex: str | None, dialect: str) -> Definition:
    if (file is None) == (regex is None):
        raise typer.BadParameter("Pass either FILE or --regex PATTERN.")
    if regex is not None:
        return Regex(regex, dialect=dialect or "re")
    assert file is not None
    definitions = load_definitions([file], dialect)
    if len(definitions) != 1:
        raise DefinitionError(
            f"expected one definition, found {len(definitions)}",
            where=str(file),
            remedy="Compile them together with structgen warm, or give it a file of its own.",
        )
    return definitions[0].definition
