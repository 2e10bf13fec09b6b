"""The tables of grammars, kept by content: they depend on the grammar alone, and Lark's loader takes its time.

So the same grammar for another vocabulary, or one whose index was evicted, is not loaded again: its tables are in a
small memory of the process, and in the `Cache`, in the file format of `structgen.storage.container`. Only what was
compiled is kept; what is refused is looked at anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from . import __version__
from .errors import FormatError
from .runtime.grammar.tables import GrammarTables
from .storage.container import FORMAT_VERSION, key_of, pack, unpack
from .system.locks import Lock, Rank

if TYPE_CHECKING:
    from .cache.cache import Cache

#: What entries of the cache are of.
KIND = "tables"

#: Grammars whose tables a process remembers; those of a programming language are some hundred KB.
_MOST_REMEMBERED = 16

_remembered: dict[str, GrammarTables] = {}  # the one used last comes last
_lock = Lock(Rank.TABLES)


def tables_of(canonical: str, cache: Cache | None, build: Callable[[], GrammarTables]) -> GrammarTables:
    """The tables of a grammar, by its canonical definition; ``build`` makes them where they are not kept."""
    key = key_of("structgen-tables", canonical, str(FORMAT_VERSION), __version__)
    with _lock:
        tables = _remembered.pop(key, None)
    if tables is None and cache is not None:
        tables = _fetch(cache, key, canonical)
    if tables is None:
        tables = build()
    if cache is not None and key not in cache:
        cache.put(key, _pack(tables, canonical), label=canonical[:200], kind=KIND)
    with _lock:
        _remembered[key] = tables
        while len(_remembered) > _MOST_REMEMBERED:
            del _remembered[next(iter(_remembered))]
    return tables


def forget() -> None:
    """Forget what the process remembers; what is in caches stays there."""
    with _lock:
        _remembered.clear()


def _pack(tables: GrammarTables, canonical: str) -> bytes:
    meta = {"kind": KIND, "definition": canonical, "notes": list(tables.notes)}
    return pack(meta, tables.to_sections())


def _fetch(cache: Cache, key: str, canonical: str) -> GrammarTables | None:
    """The tables in the cache, None where there are none."""
    where = f"cache entry {key}"

    def read(buffer: memoryview) -> GrammarTables:
        meta, sections = unpack(buffer, where)
        notes = meta.get("notes")
        if meta.get("kind") != KIND or meta.get("definition") != canonical:
            raise FormatError("not the tables of this grammar", where=where)
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            raise FormatError("the notes on the grammar are damaged", where=where)
        return replace(GrammarTables.from_sections(sections, where), notes=tuple(notes))

    return cache.read(key, read)
