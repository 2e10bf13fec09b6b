"""``structgen warm``: compile many definitions into the cache; `structgen.warming` does the work.

The jobs are threads unless processes are asked for: threads share one vocabulary, its trie and the compiled kernels,
which each process has to load again, and most time of large definitions goes into kernels that release the GIL.
"""

from __future__ import annotations

import os
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..definitions.loading import SUFFIXES, LoadedDefinitions, read_definitions
from ..errors import ArgumentError, DefinitionError, StructgenError
from . import options
from .console import Display, core_count, format_bytes, print_table, show_warning

if TYPE_CHECKING:
    import distributed

    from ..cache.cache import Cache
    from ..warming.values import Outcome, Report

_COLUMNS = ("name", "states", "rows", "bytes", "seconds", "source")

#: What the columns call the two ways in which a cache comes to have something.
_SOURCES = {"present": "cached", "compiled": "compiled"}


@dataclass(frozen=True)
class Workers:
    """What definitions are compiled in: ``threads``, ``processes``, or a cluster of Dask at an address."""

    kind: str
    address: str = ""

    @classmethod
    def parse(cls, text: str) -> Workers:
        """Of ``threads``, ``processes``, ``dask=ADDRESS``. Raises `typer.BadParameter` for anything else."""
        kind, equals, address = text.partition("=")
        if (kind == "dask" and address) or (kind in ("threads", "processes") and not equals):
            return cls(kind, address)
        raise typer.BadParameter(f"{text!r} is no executor. Write threads, processes or dask=tcp://HOST:PORT.")

    @property
    def is_here(self) -> bool:
        """Whether they are on this machine, with this folder."""
        return self.kind != "dask"

    @contextmanager
    def open(self, jobs: int) -> Iterator[tuple[Executor | Callable[[], Executor], int]]:
        """An executor, or what makes one, of so many workers where they are made here; and how many there are."""
        if self.kind == "threads":
            yield partial(ThreadPoolExecutor, jobs), jobs
        elif self.kind == "processes":
            from multiprocessing import get_context  # spawned, for threads and Numba's kernels do not survive a fork

            spawned = get_context("spawn")
            yield partial(ProcessPoolExecutor, jobs, mp_context=spawned, initializer=_leave_quietly), jobs
        else:
            with _cluster(self.address) as client:
                if not (many := sum(client.nthreads().values())):
                    typer.echo(f"note: {self.address} has no workers yet, this waits for some", err=True)
                yield client.get_executor(), many


def _cluster(address: str) -> distributed.Client:
    try:
        import distributed
    except ImportError:
        raise ArgumentError("Dask is not installed", remedy="pip install 'structgen[dask]'") from None
    try:
        return distributed.Client(address, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"there is no scheduler of Dask: {error}", where=address, remedy="Write dask=tcp://HOST:PORT."
        ) from error


def _leave_quietly() -> None:
    """In a worker: an interrupt of the terminal ends it without a word; a warning is one line."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # what it is at is in no cache yet
    warnings.showwarning = show_warning  # type: ignore[assignment]


def parse_shard(text: str) -> tuple[int, int]:
    """A part of the work: ``3/16``. Raises `typer.BadParameter` for anything else."""
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise typer.BadParameter(f"{text!r} is not a part. Write 1/4 for the first of four, 4/4 for the last.")
    return int(found[1]), int(found[2])


def warm(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATHS", show_default=False, help=f"{options.DEFINITION_FILES}, or MODULE:NAME."),
    ],
    tokenizer: options.Tokenizers,
    engines: options.Engines = None,
    settings: options.SettingsFile = None,
    cache: options.CacheFolder = None,
    store_url: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="URL", help="An object store that gets what the folder has, and is asked first."
        ),
    ] = None,
    sign_key: options.SignKey = None,
    dialect: options.Dialect = "",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Definitions compiled at once.", show_default="one a core")
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What they are compiled in: threads, processes, or dask=ADDRESS, a cluster of Dask."
        ),
    ] = "threads",
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="The K-th of N parts of the work, for N machines.")
    ] = None,
    lazy: Annotated[
        bool, typer.Option("--lazy", help="Store the automata only; each mask is worked out when first needed.")
    ] = False,
    base: Annotated[
        bool,
        typer.Option("--base", help="First the rows that JSON Schemas of this vocabulary share: strings, formats."),
    ] = False,
    max_states: options.MaxStates = None,
    max_memory: options.MaxMemory = None,
    max_seconds: options.MaxSeconds = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report in JUnit's XML, which CI systems show.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compile definitions into the cache, so that a server only opens them.

    What is there already is not compiled again. A definition that fails is
    listed at the end, with exit code 1; the others are warmed all the same.

    \b
    [bold]Examples[/]
      structgen warm schemas/ --tokenizer ./llama-3
      structgen warm date.regex person.json -t tekken --cache /srv/structgen
      structgen warm app.models:Person app.tools:search -t ./llama-3
      structgen warm schemas/ --for vllm -t ./llama-3
      structgen warm definitions.toml -t ./llama-3 --json > warmed.json
      structgen warm schemas/ -t ./llama-3 -t tekken --executor processes --shard 3/16 --junit warm.xml
    """
    from ..warming import warm as warming
    from ..warming.options import WarmOptions
    from ..warming.values import Report

    workers = Workers.parse(executor)
    part = (1, 1) if shard is None else parse_shard(shard)
    reading = read_all(paths, dialect, engines or (), settings, tokenizer)
    folder = options.cache_of(engines or (), reading.definitions, cache, settings)
    store = options.open_cache(folder, store_url, sign_key)
    vocabularies = [options.load_vocabulary(each) for each in tokenizer]
    jobs = jobs or core_count()
    report = Report((), 0.0)
    if reading.definitions:
        with Display() as display:
            for vocabulary in vocabularies if base else ():
                display.compile_base_rows(vocabulary, store)
            with workers.open(jobs) as (made, many), display.count("all definitions") as progress:
                terms = WarmOptions(
                    eager=not lazy,
                    budget=options.make_budget(max_states, max_memory, max_seconds),
                    threads=max(1, core_count() // jobs) if workers.is_here else 1,
                    shard=part,
                    in_flight=2 * max(many, jobs),
                    # Other machines have folders of their own.
                    hand_back=not workers.is_here and store_url is None,
                )
                try:
                    report = warming.warm(
                        reading.definitions, vocabularies, store, executor=made, progress=progress, options=terms
                    )
                except KeyboardInterrupt:
                    typer.echo("interrupted: what is done is kept, and the same command does the rest", err=True)
                    raise
    report = Report((*map(_unreadable, reading.failures), *report.outcomes), report.seconds)
    if junit is not None:
        junit.write_text(report.to_junit(), encoding="utf-8")
    if as_json:
        fingerprints = [vocabulary.fingerprint for vocabulary in vocabularies]
        one = {"vocabulary": fingerprints[0]} if len(fingerprints) == 1 else {}
        head = {"cache": str(store.directory), **one, "vocabularies": fingerprints}
        options.print_json({**head, **_json_of(report, reading)})
    elif report.kept:
        print_table(_COLUMNS, [_cells(each) for each in report.kept])
    for failure in report.failed:
        typer.echo(f"failed: {failure}", err=True)
    unsent = _push(store)
    if unsent:
        what = "1 entry is" if unsent == 1 else f"{unsent} entries are"
        typer.echo(f"failed: {what} not in {store_url}; structgen cache push tries again", err=True)
    if report.failed or unsent:
        raise typer.Exit(1)


def bundle(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The file to write.")],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATHS", show_default="all that is in the cache", help="Definitions, as [bold]warm[/] takes them."
        ),
    ] = None,
    tokenizer: Annotated[
        list[str] | None, typer.Option("--tokenizer", "-t", metavar="T", help="As for [bold]warm[/]; or several.")
    ] = None,
    cache: options.CacheFolder = None,
    store_url: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="An object store that is asked for what the folder lacks."),
    ] = None,
    verify_key: options.VerifyKeys = None,
    dialect: options.Dialect = "",
    engines: options.Engines = None,
    settings: options.SettingsFile = None,
) -> None:
    """Write indexes into one file, which servers map: structgen.Cache(FILE), or --cache FILE.

    What is not in the cache is compiled first. Where a definition fails nothing is
    written, with exit code 1. The same entries give the same bytes.

    \b
    [bold]Examples[/]
      structgen bundle masks.sgb schemas/ -t ./llama-3
      structgen bundle masks.sgb schemas/ -t ./llama-3 -t tekken --store s3://bucket/masks
      structgen bundle masks.sgb --cache ./built
    """
    if bool(paths) != bool(tokenizer):
        raise typer.BadParameter("Definitions and --tokenizer go together.")
    opened = options.open_cache(cache, store_url, verify=verify_key or ())
    reading = read_all(paths, dialect, engines or (), settings, tokenizer or ()) if paths else None
    keys = _bundled(opened, reading, tokenizer or []) if reading else None
    count = opened.export(file, keys)
    typer.echo(f"wrote {count} entries, {format_bytes(file.stat().st_size)}, to {file}")


def _bundled(opened: Cache, reading: LoadedDefinitions, tokenizers: Sequence[str]) -> set[str]:
    """The keys of what definitions need, which the cache has then. Exit code 1 where one fails."""
    from ..index_store import keys_of
    from ..warming import warm as warming
    from ..warming.options import WarmOptions

    vocabularies = [options.load_vocabulary(each) for each in tokenizers]
    failed: list[object] = [*map(_unreadable, reading.failures)]
    with (
        Display() as display,
        Workers("threads").open(core_count()) as (made, many),
        display.count("all definitions") as progress,
    ):
        report = warming.warm(
            reading.definitions, vocabularies, opened, executor=made, progress=progress,
            options=WarmOptions(threads=1, in_flight=2 * many),
        )  # fmt: skip
    failed += report.failed
    for failure in failed:
        typer.echo(f"failed: {failure}", err=True)
    if failed:
        raise typer.Exit(1)
    pairs = [(each.definition, vocabulary) for each in reading.definitions for vocabulary in vocabularies]
    return {key for definition, vocabulary in pairs for key in keys_of(opened, definition, vocabulary)}


def _push(store: Cache) -> int:
    """Write to the object store, if there is one, what it lacks. Returns how many entries it did not take."""
    if store.remote is None:
        return 0
    from ..cache.remote.upkeep import push

    return len(push(store).failed)


def read_all(
    paths: Sequence[Path], dialect: str, engines: Sequence[str] = (), settings: Path | None = None,
    tokenizers: Sequence[str] = (),
) -> LoadedDefinitions:  # fmt: skip
    """The definitions of paths, as engines ask for them; what is none is said.

    Raises `DefinitionError` where there is none at all, and for engines and settings that are not known.
    """
    reading = read_definitions(paths, dialect)
    for path in reading.ignored:
        typer.echo(f"note: {path} is not a definition, skipped", err=True)
    if not reading.definitions and not reading.failures:
        raise DefinitionError(
            "no definitions found",
            where=", ".join(map(str, paths)),
            remedy=f"Add a file that ends in one of {', '.join(SUFFIXES)}.",
        )
    found = options.wanted_by(engines, reading.definitions, settings, tokenizers)
    failures = [each for each in found if isinstance(each, StructgenError)]
    definitions = tuple(each.definition for each in found if not isinstance(each, StructgenError))
    return replace(reading, definitions=definitions, failures=(*reading.failures, *failures))


def _unreadable(error: StructgenError) -> Outcome:
    from ..warming.values import Outcome

    name = Path(error.where.split(", ")[0]).stem
    return Outcome(-1, name, "", "failed", what=error.what, where=error.where, remedy=error.remedy)


def _json_of(report: Report, reading: LoadedDefinitions) -> dict[str, object]:
    """What the cache has now, and what failed or was lost."""
    warmed = []
    for each in report.kept:
        named = reading.definitions[each.position]
        warmed.append(
            {
                "name": each.name, "path": str(named.path), "line": named.line, "vocabulary": each.vocabulary,
                "kind": each.kind, "states": each.states, "rows": each.rows, "bytes": each.nbytes,
                "seconds": each.seconds, "source": _SOURCES[each.status],
            }
        )  # fmt: skip
    fields = ("name", "vocabulary", "status", "what", "where", "remedy")
    failed = [{name: getattr(each, name) for name in fields} for each in report.failed]
    return {"warmed": warmed, "failed": failed, "seconds": report.seconds}


def _cells(outcome: Outcome) -> tuple[str, ...]:
    return (
        outcome.name,
        f"{outcome.states:,}",
        f"{outcome.rows:,}",
        format_bytes(outcome.nbytes),
        f"{outcome.seconds:.4f}",
        _SOURCES[outcome.status],
    )
