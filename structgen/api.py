"""`compile`: from a definition and a vocabulary to an `Index`, through the cache."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from . import index_store
from .budget import Budget, Cancel, Meter
from .definitions import as_definition
from .definitions.values import has_strings
from .errors import ArgumentError, MissingIndexError
from .progress import Progress, silent
from .runtime.index.index import Index
from .system.arguments import check_type
from .system.garbage import paused
from .vocabulary.vocabulary import Vocabulary, check_vocabulary

if TYPE_CHECKING:
    from .cache.cache import Cache


def compile(
    definition: object,
    vocabulary: Vocabulary,
    *,
    cache: Cache | None = None,
    eager: bool = True,
    budget: Budget | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
    compile_missing: bool = True,
    base_rows: bool = True,
    cancel: Cancel | None = None,
) -> Index:
    """Compile a definition for a vocabulary, or fetch it from the cache.

    Parameters
    ----------
    definition:
        Such as ``Regex(r"\\d+")``. A dict, a type or a function stands for ``JsonSchema`` of it.
    vocabulary:
        The tokens of the model that will generate.
    cache:
        Where to look first and to keep the result; None compiles afresh.
    eager:
        True works out every row now (of the largest automata, what some 30,000 places of them or 512 long
        walks take). False returns after building the automaton; a row is worked out when a guide first touches it,
        kept, and written back to the cache.
    budget:
        Bounds on states, memory and time; None means the defaults of `Budget`.
    progress:
        Called as ``progress(stage, done, total)`` while long work goes on.
    threads:
        How many threads walk the vocabulary; None decides by the amount of work.
    compile_missing:
        What to do about a definition that is not in the cache. False: raise `MissingIndexError`, for a service that
        serves what was compiled ahead of time and nothing else.
    base_rows:
        Whether the rows that all JSON Schemas of the vocabulary share are looked for in the default folder, where
        there is no ``cache``, and are made in the background where they are missing; see docs/guide/cache.md.
    cancel:
        A `threading.Event`, or another object with ``is_set()``: set it from another thread when nobody waits for the
        index any more, and the compile ends within some hundredths of a second.

    Raises
    ------
    ArgumentError
        Something else in the place of a vocabulary, a cache, a budget or an event.
    CancelledError
        A compile whose event was set.
    DefinitionError, UnsupportedError, EmptyLanguageError
        A definition that is malformed, can't be honoured exactly, or matches nothing.
    BudgetExceededError
        A definition that needs more than ``budget``.
    MissingIndexError
        With ``compile_missing=False``, a definition that is not in the cache, for this vocabulary and these options.
    VocabularyError
        A vocabulary that could get stuck: some text that it can begin, it cannot finish.

    Warns
    -----
    GrammarWarning
        Of conflicts that were shifted and of matches that are not the longest; not where the index, or the tables of
        the grammar, come from the cache.
    SchemaWarning
        Of keywords and formats that check nothing and are likely misspelt; not where the index comes from the cache.
    """
    definition = as_definition(definition)
    check_vocabulary(vocabulary)
    if cache is not None:
        check_cache(cache)
    check_type(budget := budget or Budget(), Budget, "Pass sg.Budget(...).")
    if cancel is not None and not callable(getattr(cancel, "is_set", None)):
        raise ArgumentError(f"an event was expected, got {type(cancel).__name__}", remedy="Pass threading.Event().")
    report = progress or silent
    index_store.WriteBack.flush_waiting()
    key = index_store.cache_key(definition, vocabulary) if cache is not None else ""
    index = index_store.fetch(cache, key, definition, vocabulary) if cache is not None else None
    if index is None and not compile_missing:
        near = "" if cache is None else "; ".join(index_store.near_misses(cache, definition, vocabulary))
        lacking = f"the definition is not in the cache{near and f', where it is {near}'}"
        raise MissingIndexError(
            "there is no cache to take indexes from" if cache is None else lacking,
            where=definition.canonical(),
            remedy="Compile it for this vocabulary, with the same options, or pass compile_missing=True.",
        )
    if index is None or (compile_missing and eager and not index.machine.is_filled()):
        from .building import build

        if has_strings(definition):
            from .base_rows import provide

            provide(vocabulary, cache, base_rows)
        meter = Meter(budget, cancel=cancel)
        meter.check_time("beginning")
        began = time.perf_counter()
        with paused(settles=True):
            if index is None:
                report("automaton", 0, 1)
                on_demand = not eager and cache is None  # what is kept is all of it
                machine, relaxations = build(definition, vocabulary, meter, cache, on_demand=on_demand)
                index = Index(definition.kind, definition.canonical(), machine, relaxations=relaxations)
                index_store.share_rows(cache, index)
                report("automaton", 1, 1)
            if eager:
                index.machine.fill(threads=threads, meter=meter, progress=report)
        meter.complete()
        index.origin = "compiled"
        seconds = time.perf_counter() - began
        index.compile_seconds += seconds
        if cache is not None:
            cache.counters.add("compiles")
            cache.counters.add("compile_seconds", seconds)
            index_store.keep(cache, key, index)
    if cache is not None and not index.complete and not cache.is_read_only:
        index.machine.tell(index_store.WriteBack(cache, key, index))
    return index


def check_cache(cache: object) -> None:
    """Raise `ArgumentError` for a folder, or anything else, in the place of a cache.

    By what it has: `Cache` itself takes time to import.
    """
    if not hasattr(cache, "counters"):
        raise ArgumentError(f"a Cache was expected, got {type(cache).__name__}", remedy="Pass sg.Cache(folder).")


def compile_base_rows(
    vocabulary: Vocabulary, *, cache: Cache | None = None, progress: Progress | None = None
) -> float:
    """Work out now the rows that JSON Schemas of one vocabulary have in common. Returns the seconds: two or three.

    They are those inside a string: of any string, of one with a format, of one whose length is bounded. They are kept
    with the vocabulary, and in the ``cache`` (None: in the default folder). Without this call the first compile of a
    JSON Schema has them made in the background, where they are not in the cache yet; see docs/guide/cache.md.
    """
    from .base_rows import make_now

    check_vocabulary(vocabulary)
    if cache is not None:
        check_cache(cache)
    began = time.perf_counter()
    make_now(vocabulary, cache, progress or silent)
    return time.perf_counter() - began
