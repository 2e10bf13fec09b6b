"""``structgen diff``: how the texts of two definitions differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..definitions.loading import load_definitions
from ..errors import DefinitionError
from . import options

if TYPE_CHECKING:
    from ..definitions import Definition
    from ..runtime.index.index import Index

_FILE = "A file that holds one definition, an index (.sgx), or MODULE:NAME."


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", show_default=False, help=_FILE)],
    second: Annotated[Path, typer.Argument(metavar="B", show_default=False, help=_FILE)],
    max_states: options.MaxStates = None,
    max_memory: options.MaxMemory = None,
    max_seconds: options.MaxSeconds = None,
    as_json: options.AsJson = False,
) -> None:
    """Say how two definitions differ, with a shortest text that only one of them accepts.

    Texts are compared byte by byte, whatever the vocabulary. Exit code 0: both accept the
    same texts; 1: they do not; 3: not decided within the budget, and no such text was found.

    \b
    [bold]Examples[/]
      structgen diff old/person.json person.json
      structgen diff date.regex app.models:Date --json
    """
    from ..certificates.difference import difference

    budget = options.make_budget(max_states, max_memory, max_seconds)
    found = difference(_read(first), _read(second), budget=budget)
    if as_json:
        options.print_json(found.to_json())
    else:
        typer.echo(found.__rich__().plain)
    if found.only_first is not None or found.only_second is not None:
        raise typer.Exit(1)
    if found.relation == "undecided":
        raise typer.Exit(3)


def _read(path: Path) -> Definition | Index:
    from ..runtime.index.index import Index

    if path.suffix == options.INDEX_SUFFIX:
        return Index.load(path)
    definitions = load_definitions([path])
    if len(definitions) != 1:
        what = f"expected one definition, found {len(definitions)}"
        raise DefinitionError(what, where=str(path), remedy="Give it a file of its own.")
    return definitions[0].definition
