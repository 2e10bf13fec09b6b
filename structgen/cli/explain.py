"""``structgen explain``: why an index refuses a text, or a token behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from . import options


def explain(
    index_file: Annotated[Path, typer.Argument(metavar="INDEX", show_default=False, help="An index file.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help="The text, or - for standard input.")],
    token: Annotated[
        int | None, typer.Option(metavar="ID", help="Ask about this token behind the text, in place of the text.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Explain why an index refuses a text: where it breaks, what forbids it, and what could come instead.

    Keywords of schemas are named by their JSON pointers, patterns and grammars by
    columns and lines. Exit code 0: accepted; 1: not.

    \b
    [bold]Examples[/]
      structgen explain person.sgx '{"name": 3}'
      structgen explain person.sgx '{"name": ' --token 18
      printf %s "$ANSWER" | structgen explain date.sgx - --json
    """
    from ..explanations.explain import explain as explained
    from ..runtime.index.index import Index

    index = Index.load(index_file)
    # Arguments that are not UTF-8 arrive as lone surrogates; this gives their bytes back.
    data = sys.stdin.buffer.read() if text == "-" else text.encode("utf-8", "surrogateescape")
    found = (
        explained(index, data, completion=True)
        if token is None
        else explained(index, token, before=data, completion=True)
    )
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        print_rich(found)
    if not found.accepted:
        raise typer.Exit(1)


def print_rich(found: object) -> None:
    """Print what knows how to be shown by Rich; a pipe gets no colours, and lines of any length."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(found)
