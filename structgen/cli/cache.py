"""``structgen cache``: look at the cache, check it, make it smaller, carry it elsewhere."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CacheWarning
from . import options
from .console import format_bytes, print_table
from .warm import read_all

if TYPE_CHECKING:
    from ..cache.cache import Cache
    from ..cache.entry import Entry
    from ..cache.remote.upkeep import Transfer
    from ..definitions.loading import LoadedDefinitions

StoreOrNone = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="An object store, in place of the folder.")
]

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
      structgen cache push --store s3://bucket/masks
    """
    # A server goes on without a cache that fails it; here the cache is what was asked about.
    warnings.simplefilter("error", CacheWarning)


@app.command("ls")
def list_entries(
    cache: options.CacheFolder = None, store_url: StoreOrNone = None, as_json: options.AsJson = False
) -> None:
    """List the entries, the least recently used first; or the objects of a store, the oldest first."""
    if store_url is not None:
        _list_objects(options.open_store(cache, store_url), store_url, as_json)
        return
    store = options.open_cache(cache)
    entries = store.entries()
    if as_json:
        listed = [dataclasses.asdict(entry) for entry in entries]
        options.print_json({"directory": str(store.directory), "entries": listed})
        return
    lines: dict[str, list[Entry]] = {}  # rows that indexes share are many, with few labels
    for entry in entries:
        lines.setdefault(entry.label if entry.kind == "shared" else entry.key, []).append(entry)
    rows = [
        (
            some[0].key[:16] if len(some) == 1 else _count(len(some)), some[0].kind, _cut(some[0].label),
            format_bytes(sum(entry.nbytes for entry in some)), _when(max(entry.used for entry in some)),
        )
        for some in lines.values()
    ]  # fmt: skip
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
    cache: options.CacheFolder = None, yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False
) -> None:
    """Remove every entry."""
    store = options.open_cache(cache)
    if not yes:
        typer.confirm(f"Remove every entry of {store.directory}?", abort=True)
    typer.echo(f"removed {_count(store.clear())}")


@app.command("export")
def export_entries(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The tar file to write.")],
    cache: options.CacheFolder = None,
) -> None:
    """Write all entries into one file, to be imported on another machine."""
    typer.echo(f"exported {_count(options.open_cache(cache).export(file))} to {file}")


@app.command("import")
def import_entries(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="A file that cache export wrote.")],
    cache: options.CacheFolder = None,
) -> None:
    """Add the entries of an exported file; each is checked first."""
    store = options.open_cache(cache)
    typer.echo(f"imported {_count(store.import_(file))} into {store.directory}")


@app.command()
def push(
    store: options.Store,
    cache: options.CacheFolder = None,
    sign_key: options.SignKey = None,
    verify_key: options.VerifyKeys = None,
) -> None:
    """Write to the store what the folder has and it lacks. Exit code 1: some is not there."""
    from ..cache.remote import upkeep

    _report({"pushed": upkeep.push(options.open_store(cache, store, sign_key, verify_key or ()))})


@app.command()
def pull(store: options.Store, cache: options.CacheFolder = None, verify_key: options.VerifyKeys = None) -> None:
    """Bring what the store has to the folder; each is checked first. Exit code 1: some was not brought."""
    from ..cache.remote import upkeep

    warnings.simplefilter("default", CacheWarning)  # one object that cannot be used stops nobody
    _report({"pulled": upkeep.pull(options.open_store(cache, store, verify=verify_key or ()))})


@app.command()
def sync(
    store: options.Store,
    cache: options.CacheFolder = None,
    sign_key: options.SignKey = None,
    verify_key: options.VerifyKeys = None,
) -> None:
    """Push, then pull."""
    from ..cache.remote import upkeep

    warnings.simplefilter("default", CacheWarning)
    opened = options.open_store(cache, store, sign_key, verify_key or ())
    _report({"pushed": upkeep.push(opened), "pulled": upkeep.pull(opened)})


@app.command("gc")
def collect(
    store: options.Store,
    manifest: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Definitions, as [bold]warm[/] takes them; or several. Indexes of others go. Needs --tokenizer.",
        ),
    ] = None,
    tokenizer: Annotated[
        list[str] | None, typer.Option("--tokenizer", "-t", metavar="T", help="Of the manifest's indexes; or several.")
    ] = None,
    engines: options.Engines = None,
    settings: options.SettingsFile = None,
    dialect: options.Dialect = "",
    older_than: Annotated[
        float | None, typer.Option(parser=options.parse_span, metavar="TIME", help="Only what is older goes: 12h, 30d.")
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(parser=options.parse_size, metavar="SIZE", help="The oldest goes until this much is left: 20GB."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go.")] = False,
) -> None:
    """Delete objects that are not needed. What is deleted is compiled again where somebody wants it.

    \b
    [bold]Examples[/]
      structgen cache gc --store s3://bucket/masks --older-than 90d
      structgen cache gc --store s3://bucket/masks --manifest definitions.toml -t ./llama-3 --older-than 1d
      structgen cache gc --store s3://bucket/masks --size 20GB --dry-run
    """
    from ..cache.remote import upkeep

    if manifest is None and older_than is None and size is None:
        raise typer.BadParameter("Say what goes: --manifest, --older-than or --size.")
    if bool(manifest) != bool(tokenizer):
        raise typer.BadParameter("--manifest and --tokenizer go together.")
    opened = options.open_store(None, store)
    objects = upkeep.listing(opened, by_store_clock=True)
    lost = None
    if manifest:
        reading = read_all(manifest, dialect, engines or (), settings, tokenizer or ())
        lost = upkeep.unreachable(opened, objects, _reachable(reading, tokenizer or ()))
    gone = upkeep.victims(objects, lost=lost, older=older_than, most=size)
    if not dry_run:
        upkeep.delete(opened, gone)
    freed = format_bytes(sum(each.nbytes for each in gone))
    typer.echo(f"{'would remove' if dry_run else 'removed'} {_count(len(gone))} of {len(objects)}, {freed}")


def _reachable(reading: LoadedDefinitions, tokenizers: Sequence[str]) -> set[str]:
    """The keys of the indexes of definitions. Raises the error of one that cannot be read."""
    from ..index_store import cache_key

    for error in reading.failures:
        raise error
    vocabularies = [options.load_vocabulary(each) for each in tokenizers]
    return {cache_key(each.definition, vocabulary) for each in reading.definitions for vocabulary in vocabularies}


def _list_objects(opened: Cache, url: str, as_json: bool) -> None:
    from ..cache.remote import upkeep

    objects = upkeep.listing(opened)
    if as_json:
        options.print_json({"store": url, "objects": [dataclasses.asdict(each) for each in objects]})
        return
    if objects:
        rows = [(each.key, format_bytes(each.nbytes), f"{each.age / 3600:,.1f}") for each in objects]
        print_table(("key", "bytes", "hours old"), rows)
    typer.echo(f"{_count(len(objects))}, {format_bytes(sum(each.nbytes for each in objects))}, in {url}")


def _report(transfers: dict[str, Transfer]) -> None:
    """What became of entries, and exit code 1 where one failed."""
    for verb, transfer in transfers.items():
        failed = f", {len(transfer.failed)} failed" if transfer.failed else ""
        typer.echo(f"{verb} {_count(len(transfer.moved))}, {len(transfer.present)} were there{failed}")
    if any(each.failed for each in transfers.values()):
        raise typer.Exit(1)


def _count(entries: int) -> str:
    return f"{entries} entry" if entries == 1 else f"{entries} entries"


def _cut(label: str, width: int = 60) -> str:
    return label if len(label) <= width else f"{label[: width - 1]}…"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
