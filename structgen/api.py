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
    r"""Compile a definition for a vocabulary, or load the index from the cache.

    Parameters
    ----------
    definition:
        A definition such as ``Regex(r"\d+")``. A dict, a type or a function stands for the `JsonSchema` of it.
    vocabulary:
        The tokens of the model that will generate.
    cache:
        Where to look first and where to keep the result. None: compile anew, keep nothing.
    eager:
        True computes all masks now, up to a bound for the largest automata. False returns after building the
        automaton; each mask is computed when a guide first needs it, is remembered, and is written back to the
        cache.
    budget:
        Bounds on states, memory and time. None: the defaults of `Budget`. For definitions from strangers use
        ``Budget.request``.
    progress:
        Called as ``progress(stage, done, total)`` during long work.
    threads:
        Number of threads that walk the vocabulary. None: by the amount of work.
    compile_missing:
        False raises `MissingIndexError` for a definition that is not in the cache, for a service that must not
        compile.
    base_rows:
        Whether to use the masks that all JSON Schemas of the vocabulary share. Without ``cache`` they are looked
        for in the default folder; missing ones are made in the background. See docs/guide/cache.md.
    cancel:
        A `threading.Event`, or another object with ``is_set()``. Set it from another thread to end the compile
        within some hundredths of a second.

    Returns
    -------
    Index
        The compiled definition, to be shared by all guides.

    Raises
    ------
    ArgumentError
        For a wrong type of vocabulary, cache, budget or event.
    CancelledError
        When ``cancel`` was set.
    DefinitionError
        For a malformed definition.
    UnsupportedError
        For a construct that cannot be honoured exactly.
    EmptyLanguageError
        For a definition that no text satisfies.
    BudgetExceededError
        For a definition that needs more than ``budget``.
    MissingIndexError
        With ``compile_missing=False``, for a definition that is not in the cache for this vocabulary and these
        options.
    VocabularyError
        For a vocabulary that cannot spell the definition: some text could be begun but not finished.

    Warns
    -----
    GrammarWarning
        For conflicts resolved by shifting, and for matches that are not the longest. Not raised when the index or
        the grammar's tables come from the cache.
    SchemaWarning
        For keywords and formats that check nothing and may be misspelt. Not raised when the index comes from the
        cache.
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


def compile_base_rows(vocabulary: Vocabulary, *, cache: Cache | None = None, progress: Progress | None = None) -> float:
    """Compute the masks that all JSON Schemas of one vocabulary share. It takes two or three seconds.

    They are the masks inside strings: of any string, of a string with a format, of a string with bounded length.
    They are kept with the vocabulary and in the cache. Without this call, the first compile of a JSON Schema makes
    missing ones in the background. See docs/guide/cache.md.

    Parameters
    ----------
    vocabulary:
        The tokens.
    cache:
        Where to keep them. None: the default folder.
    progress:
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    float
        Wall-clock seconds.
    """
    from .base_rows import make_now

    check_vocabulary(vocabulary)
    if cache is not None:
        check_cache(cache)
    began = time.perf_counter()
    make_now(vocabulary, cache, progress or silent)
    return time.perf_counter() - began
