"""``structgen inspect``: what an index file holds. ``structgen doctor``: what this machine has."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..certificates.values import printable
from ..definitions.loading import read_definitions
from ..errors import MissingIndexError, StructgenError
from . import options
from .console import format_bytes

if TYPE_CHECKING:
    from ..cache.cache import Cache
    from ..doctor import Diagnosis
    from ..integrations.engines import Wanted

#: Characters of a definition that a terminal gets to see; ``--json`` has all.
_SHOWN = 300


def inspect(
    index_file: Annotated[Path, typer.Argument(metavar="INDEX", show_default=False, help="An index file.")],
    as_json: options.AsJson = False,
) -> None:
    """Say what an index file was compiled from, for which vocabulary, and how large it is.

    The file is validated first, checksum and tables, as it is before any use.

    \b
    [bold]Examples[/]
      structgen inspect date.sgx
      structgen inspect date.sgx --json | jq .states
    """
    from ..runtime.index.index import Index

    index = Index.load(index_file)
    vocabulary = index.vocabulary
    facts = {
        "kind": index.kind,
        "definition": index.definition,
        "relaxations": list(index.relaxations),
        "states": index.states,
        "rows": index.row_count,
        "complete": index.complete,
        "bytes": index.nbytes,
        "file_bytes": index_file.stat().st_size,
        "compile_seconds": index.compile_seconds,
        "vocabulary_size": vocabulary.size,
        "eos_ids": list(vocabulary.eos_ids),
        "vocabulary_fingerprint": index.vocabulary_fingerprint,
    }
    if as_json:
        options.print_json(facts)
        return
    missing = "" if index.complete else ", the others are worked out when needed"
    definition = index.definition
    lines = {
        "kind": index.kind,
        "definition": definition if len(definition) <= _SHOWN else f"{definition[:_SHOWN]}…",
        "states": f"{index.states:,}",
        "rows": f"{index.row_count:,}{missing}",
        "size": f"{format_bytes(index.nbytes)} in memory, {format_bytes(index_file.stat().st_size)} on disk",
        "compiled in": f"{index.compile_seconds:.3f} s",
        "vocabulary": f"{vocabulary.size:,} ids, EOS {list(vocabulary.eos_ids)}",
        "fingerprint": index.vocabulary_fingerprint,
    }
    for name, value in [*lines.items(), *(("relaxed", each) for each in index.relaxations)]:
        typer.echo(f"{name:<12} {value}")


# -- this machine ------------------------------------------------------------------------------------------

_COLORS = {"fine": "green", "slow": "yellow", "refused": "red", "absent": "bright_black"}


def doctor(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DEFS", show_default=False, help="Definitions to look for in the cache, as for [bold]warm[/]."
        ),
    ] = None,
    engines: options.Engines = None,
    settings: options.SettingsFile = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", metavar="DIR", help="The cache's folder, or a bundle.", show_default="the user's"),
    ] = None,
    store_url: Annotated[
        str | None, typer.Option("--store", metavar="URL", help="An object store: its speed, rights and clock.")
    ] = None,
    tokenizer: Annotated[
        list[str] | None, typer.Option("--tokenizer", "-t", metavar="T", help="As for [bold]warm[/]; or several.")
    ] = None,
    dialect: options.Dialect = "",
    as_json: options.AsJson = False,
) -> None:
    """Say what would be slow or refused on this machine.

    Exit code 0: nothing is refused; 1: something is. Packages that are not installed,
    and rights that a server does not need, are no fault. With definitions: whether
    the cache has each, as the engine asks for it; 1 where it lacks one.

    \b
    [bold]Examples[/]
      structgen doctor
      structgen doctor -t ./llama-3 --cache masks.sgb
      structgen doctor --for vllm -t ./llama-3 --cache masks.sgb schemas/
      structgen doctor --store s3://bucket/masks --json
    """
    if paths and not tokenizer:
        raise typer.BadParameter("Definitions are looked for with a --tokenizer.")
    if paths:
        reading = read_definitions(paths, dialect)
        folder = options.cache_of(engines or (), reading.definitions, cache, settings)
        asked = options.wanted_by(engines or (), reading.definitions, settings, tokenizer or ())
        wanted = [*reading.failures, *asked]
        found = list(_lookups(wanted, options.open_cache(folder, store_url), tokenizer or ()))
    else:
        found = list(_diagnoses(cache, store_url, tokenizer or ()))
    if as_json:
        options.print_json([dataclasses.asdict(each) for each in found])
    else:
        for each in found:
            state = typer.style(f"{each.state:<8}", fg=_COLORS[each.state])
            typer.echo(f"{state} {printable(each.subject)}: {printable(each.says)}")
            if each.remedy and each.state != "fine":
                typer.echo(f"{'':<8} {printable(each.remedy)}")
    if any(each.state == "refused" for each in found):
        raise typer.Exit(1)


def _diagnoses(cache: Path | None, store_url: str | None, tokenizers: Sequence[str]) -> Iterator[Diagnosis]:
    from ..doctor import Diagnosis, examine, platform

    yield platform()
    opened = None
    try:
        opened = options.open_cache(cache, store_url)
    except (StructgenError, OSError) as error:
        yield Diagnosis("cache", "refused", *_parts(error))
    yield from examine(opened)
    for name in tokenizers:
        began = time.perf_counter()
        try:
            vocabulary = options.load_vocabulary(name)
        except (StructgenError, OSError, ImportError) as error:
            yield Diagnosis(f"tokenizer {name}", "refused", *_parts(error))
        else:
            says = f"{vocabulary.size:,} ids, read in {time.perf_counter() - began:.1f} s"
            yield Diagnosis(f"tokenizer {name}", "fine", says)


def _lookups(wanted: Sequence[Wanted | StructgenError], cache: Cache, tokenizers: Sequence[str]) -> Iterator[Diagnosis]:
    """Whether the cache has definitions, as engines ask for them, for each tokenizer."""
    from ..api import compile
    from ..doctor import Diagnosis

    for error in wanted:
        if isinstance(error, StructgenError):
            yield Diagnosis(error.where, "refused", error.what, error.remedy)
    for name in tokenizers:
        vocabulary = options.load_vocabulary(name)
        for each in wanted:
            if isinstance(each, StructgenError):
                continue
            asked = f", asked for by {' and '.join(each.doors)}" if each.doors else ""
            subject = f"{each.definition.name}{asked}, for {name}"
            try:
                index = compile(each.definition.definition, vocabulary, cache=cache, compile_missing=False)
            except MissingIndexError as error:
                whose = f" --for {each.engine}" if each.engine else ""
                again = f"structgen warm {each.definition.path}{whose} -t {name}"
                what = f"Run {again} with this cache and these settings."
                yield Diagnosis(subject, "refused", f"miss: {error.what}", what)
            except StructgenError as error:
                yield Diagnosis(subject, "refused", error.what, error.remedy)
            else:
                yield Diagnosis(subject, "fine", f"hit: {index.row_count:,} rows")


def _parts(error: Exception) -> tuple[str, str]:
    """What is wrong, and what can be done."""
    return (error.what, error.remedy) if isinstance(error, StructgenError) else (str(error), "")
