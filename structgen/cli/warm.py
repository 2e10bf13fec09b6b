"""``structgen warm``: compile many definitions into the cache.

The jobs are threads, not processes: the time goes into kernels that release the GIL, and threads share one
vocabulary, its trie and the compiled kernels, which each process would have to load again.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from ..definitions.loading import SUFFIXES, LoadedDefinitions, NamedDefinition, read_definitions
from ..errors import DefinitionError, StructgenError
from ..progress import Progress
from . import options
from .console import Display, core_count, format_bytes, print_table

if TYPE_CHECKING:
    from ..budget import Budget
    from ..cache.cache import Cache
    from ..vocabulary.vocabulary import Vocabulary

_COLUMNS = ("name", "states", "rows", "bytes", "seconds", "source")


@dataclass(frozen=True)
class Warmed:
    """One definition that the cache now holds.

    ``bytes`` is the size of the index, ``seconds`` the wall-clock time of compiling or of opening it, and
    ``source`` says which of the two it was: ``"compiled"`` or ``"cached"``.
    """

    name: str
    path: str
    line: int
    kind: str
    states: int
    rows: int
    bytes: int
    seconds: float
    source: str


@dataclass(frozen=True)
class Failed:
    """One file or definition that could not be warmed, in the words of its `StructgenError`."""

    name: str
    what: str
    where: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.name}: {StructgenError(self.what, where=self.where, remedy=self.remedy)}"


def warm(
    paths: Annotated[
        list[Path],
        typer.Argument(
            show_default=False,
            help="Files (.regex, .words, .json, .tag.json, .lark, .gbnf, .ebnf), manifests (.toml), folders of them, "
            "or MODULE:NAME.",
        ),
    ],
    tokenizer: options.Tokenizer,
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
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Definitions compiled at once.", show_default="one a core"),
    ] = None,
    lazy: Annotated[
        bool,
        typer.Option("--lazy", help="Store the automata only; each mask is worked out when first needed."),
    ] = False,
    base: Annotated[
        bool,
        typer.Option("--base", help="First the rows that JSON Schemas of this vocabulary share: strings, formats."),
    ] = False,
    max_states: options.MaxStates = None,
    max_memory: options.MaxMemory = None,
    max_seconds: options.MaxSeconds = None,
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
      structgen warm definitions.toml -t ./llama-3 --json > warmed.json
    """
    reading = _read(paths, dialect)
    store = options.open_cache(cache) if store_url is None else options.open_store(cache, store_url, sign_key)
    vocabulary = options.load_vocabulary(tokenizer)
    jobs = jobs or core_count()
    budget = options.make_budget(max_states, max_memory, max_seconds)
    results: list[Warmed | Failed] = [_unreadable(error) for error in reading.failures]
    if reading.definitions:
        with Display() as display:
            display.compile_kernels()
            if base:
                display.compile_base_rows(vocabulary, store)
            warm_one = partial(
                _warm_one, vocabulary=vocabulary, cache=store, budget=budget, eager=not lazy, jobs=jobs
            )
            results += _warm_all(reading.definitions, warm_one, jobs, display)
    warmed = [result for result in results if isinstance(result, Warmed)]
    failed = [result for result in results if isinstance(result, Failed)]
    if as_json:
        options.print_json(
            {
                "cache": str(store.directory),
                "vocabulary": vocabulary.fingerprint,
                "warmed": [dataclasses.asdict(result) for result in warmed],
                "failed": [dataclasses.asdict(result) for result in failed],
            }
        )
    elif warmed:
        print_table(_COLUMNS, [_cells(result) for result in warmed])
    for failure in failed:
        typer.echo(f"failed: {failure}", err=True)
    unsent = _push(store)
    if unsent:
        typer.echo(f"failed: {unsent} entries are not in {store_url}; structgen cache push tries again", err=True)
    if failed or unsent:
        raise typer.Exit(1)


def _push(store: Cache) -> int:
    """Write to the object store, if there is one, what it lacks. Returns how many entries it did not take."""
    if store.remote is None:
        return 0
    from ..cache.remote.upkeep import push

    return len(push(store).failed)


def _read(paths: Sequence[Path], dialect: str) -> LoadedDefinitions:
    reading = read_definitions(paths, dialect)
    for path in reading.ignored:
        typer.echo(f"note: {path} is not a definition, skipped", err=True)
    if not reading.definitions and not reading.failures:
        raise DefinitionError(
            "no definitions found",
            where=", ".join(map(str, paths)),
            remedy=f"Add a file that ends in one of {', '.join(SUFFIXES)}.",
        )
    return reading


def _unreadable(error: StructgenError) -> Failed:
    return Failed(Path(error.where.split(", ")[0]).stem, error.what, error.where, error.remedy)


class _Cancelled(Exception):
    """Raised inside a job after an interrupt, at its next sign of progress."""


def _warm_all(
    definitions: Sequence[NamedDefinition],
    warm_one: Callable[[NamedDefinition, Progress], Warmed | Failed],
    jobs: int,
    display: Display,
) -> list[Warmed | Failed]:
    """The results, in the order of the definitions."""
    cancelled = Event()

    def job(named: NamedDefinition) -> Warmed | Failed:
        with display.track(named.name) as show:

            def progress(stage: str, done: int, total: int) -> None:
                if cancelled.is_set():
                    raise _Cancelled
                show(stage, done, total)

            return warm_one(named, progress)

    with ThreadPoolExecutor(jobs) as pool, display.track("all definitions") as overall:
        futures = [pool.submit(job, named) for named in definitions]
        try:
            for done, _ in enumerate(as_completed(futures), 1):
                overall("done", done, len(futures))
            return [future.result() for future in futures]
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _warm_one(
    named: NamedDefinition,
    progress: Progress,
    *,
    vocabulary: Vocabulary,
    cache: Cache,
    budget: Budget,
    eager: bool,
    jobs: int,
) -> Warmed | Failed:
    from ..api import compile
    from ..index_store import cache_key

    start = time.perf_counter()
    try:
        index = compile(
            named.definition,
            vocabulary,
            cache=cache,
            eager=eager,
            budget=budget,
            progress=progress,
            threads=max(1, core_count() // jobs),
        )
    except StructgenError as error:
        where = f"{named.where}, {error.where}" if error.where else named.where
        return Failed(named.name, error.what, where, error.remedy)
    seconds = time.perf_counter() - start
    if cache_key(named.definition, vocabulary) not in cache:
        # A server gets by without a cache; here, keeping the index was the point.
        return Failed(named.name, "compiled, but the cache did not keep it", named.where, "See `cache verify`.")
    source = "cached" if index.origin == "cache" else "compiled"
    return Warmed(
        named.name,
        str(named.path),
        named.line,
        index.kind,
        index.states,
        index.row_count,
        index.nbytes,
        seconds,
        source,
    )


def _cells(result: Warmed) -> tuple[str, ...]:
    return (
        result.name,
        f"{result.states:,}",
        f"{result.rows:,}",
        format_bytes(result.bytes),
        f"{result.seconds:.4f}",
        result.source,
    )
