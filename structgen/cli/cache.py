"""``structgen cache``: look at the cache, check it, make it smaller, carry it elsewhere."""

from __future__ import annotations

import dataclasses
import warnings
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CacheWarning
from . import options
from .console import format_bytes, print_table

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback()
def cache() -> None:
    """Look after the cache of compiled indexes: list, check, shrink, carry elsewhere.

    \b
    [bold]Examples[/]
      structgen cache ls
      structgen cache prune 500MB
      structgen cache export masks.tar --cache ./built
      structgen cache import masks.tar
    """
    # A server goes on without a cache that fails it; here the cache is what was asked about.
    warnings.simplefilter("error", CacheWarning)


@app.command("ls")
def list_entries(cache: options.CacheFolder = None, as_json: options.AsJson = False) -> None:
    """List the entries, the least recently used first."""
    store = options.open_cache(cache)
    entries = store.entries()
    if as_json:
        listed = [dataclasses.asdict(entry) for entry in entries]
        options.print_json({"directory": str(store.directory), "entries": listed})
        return
    rows = [
        (entry.key[:16], entry.kind, _cut(entry.label), format_bytes(entry.nbytes), _when(entry.used))
        for entry in entries
    ]
    if rows:
        print_table(("key", "kind", "label", "bytes", "last used"), rows)
    size = format_bytes(sum(entry.nbytes for entry in entries))
    typer.echo(f"{_count(len(entries))}, {size}, in {store.directory}")


@app.command()
def verify(
    cache: options.CacheFolder = None,
    repair: Annotated[bool, typer.Option("--repair", help="Remove what is damaged or foreign.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check the database, every file and every checksum. Exit code 1: something is wrong and stays so."""
    store = options.open_cache(cache)
    problems = store.verify(repair=repair)
    remaining = store.verify() if problems and repair else problems
    if as_json:
        options.print_json(
            {
                "directory": str(store.directory),
                "problems": [dataclasses.asdict(problem) for problem in problems],
                "repaired": len(problems) - len(remaining),
            }
        )
    else:
        for problem in problems:
            typer.echo(f"{problem.kind}: {problem.where}: {problem.what}")
        verdict = f"{len(problems)} found, {len(problems) - len(remaining)} removed" if problems else "sound"
        typer.echo(f"{store.directory}: {verdict}")
    if remaining:
        raise typer.Exit(1)


@app.command()
def prune(
    size: Annotated[
        int,
        typer.Argument(
            parser=options.parse_size, metavar="SIZE", show_default=False, help="What may stay: 500MB, 2GiB."
        ),
    ],
    cache: options.CacheFolder = None,
) -> None:
    """Remove the least recently used entries until the rest is at most SIZE."""
    evicted = options.open_cache(cache).prune(size)
    freed = format_bytes(sum(entry.nbytes for entry in evicted))
    typer.echo(f"removed {_count(len(evicted))}, {freed}")


@app.command()
def clear(
    cache: options.CacheFolder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Remove every entry."""
    store = options.open_cache(cache)
    if not yes:
        typer.confirm(f"Remove every entry of {store.directory}?", abort=True)
    typer.echo(f"removed {_count(store.clear())}")


@app.command("export")
def export_entries(
    file: Annotated[Path, typer.Argument(show_default=False, help="The tar file to write.")],
    cache: options.CacheFolder = None,
) -> None:
    """Write all entries into one file, to be imported on another machine."""
    typer.echo(f"exported {_count(options.open_cache(cache).export(file))} to {file}")


@app.command("import")
def import_entries(
    file: Annotated[Path, typer.Argument(show_default=False, help="A file that cache export wrote.")],
    cache: options.CacheFolder = None,
) -> None:
    """Add the entries of an exported file; each is checked first."""
    store = options.open_cache(cache)
    typer.echo(f"imported {_count(store.import_(file))} into {store.directory}")


def _count(entries: int) -> str:
    return f"{entries} entry" if entries == 1 else f"{entries} entries"


def _cut(label: str, width: int = 60) -> str:
    return label if len(label) <= width else f"{label[: width - 1]}…"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
