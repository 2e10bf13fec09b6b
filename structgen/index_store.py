"""Indexes in the cache: their keys, what lazy ones learn, and the rows that those of one vocabulary share."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import weakref
from typing import TYPE_CHECKING, ClassVar

from . import __version__
from .definitions import Definition, Grammar
from .errors import FormatError, VocabularyMismatchError
from .grammar_marks import special_names
from .runtime.container import FORMAT_VERSION
from .runtime.index import Index
from .runtime.pushdown import PushdownMachine
from .runtime.shared import Shared
from .vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from .cache.cache import Cache


def cache_key(definition: Definition, vocabulary: Vocabulary) -> str:
    """The key of an index: a hash of definition, vocabulary, format version and structgen's version."""
    digest = hashlib.blake2b(digest_size=20, person=b"structgen-index")
    named = special_names(definition.text, vocabulary) if isinstance(definition, Grammar) else []
    for part in (definition.canonical(), vocabulary.fingerprint, str(FORMAT_VERSION), __version__, str(named)):
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()


def fetch(cache: Cache, key: str, vocabulary: Vocabulary) -> Index | None:
    """The index in the cache, None where there is none; a damaged entry is a miss, and goes."""
    buffer = cache.get(key)
    if buffer is None:
        return None
    try:
        index = Index.from_buffer(buffer, vocabulary, origin="cache", where=f"cache entry {key}")
        share_rows(cache, index)
        return index
    except (FormatError, VocabularyMismatchError):
        cache.discard(key)
        return None


def keep(cache: Cache, key: str, index: Index) -> None:
    """Put an index into the cache, in place of what had its key. The vocabulary is not part of it."""
    cache.put(key, index.to_bytes(with_vocabulary=False), label=index.definition[:200], kind=index.kind)


def share_rows(cache: Cache | None, index: Index) -> None:
    """Let an index keep the rows that belong to its vocabulary in the cache, and find them there."""
    machine = index.machine
    if cache is None or not isinstance(machine, PushdownMachine):
        return
    fingerprint = machine.vocabulary.fingerprint

    def fetch_row(name: bytes) -> Shared | None:
        buffer = cache.get(_shared_key(fingerprint, name))
        return None if buffer is None else Shared.from_buffer(buffer, machine.vocabulary, "a shared row in the cache")

    def keep_row(name: bytes, place: Shared) -> None:
        cache.put(_shared_key(fingerprint, name), place.to_bytes(), label="rows inside a string", kind="shared")

    machine.rows.shared.fetch, machine.rows.shared.keep = fetch_row, keep_row


def _shared_key(fingerprint: str, name: bytes) -> str:
    digest = hashlib.blake2b(digest_size=20, person=b"structgen-shared")
    for part in (fingerprint.encode(), name, str(FORMAT_VERSION).encode(), __version__.encode()):
        digest.update(part + b"\0")
    return digest.hexdigest()


class WriteBack:
    """Keeps what a lazy index learns: written when it has doubled, and at the end of the index or the process."""

    _alive: ClassVar[weakref.WeakSet[WriteBack]] = weakref.WeakSet()

    def __init__(self, cache: Cache, key: str, index: Index) -> None:
        self._cache, self._key, self._index = cache, key, index
        self._written = index.machine.known_rows
        self._learned = 0  # rows that were worked out since
        self._alive.add(self)

    def __call__(self) -> None:
        """Count a row that was worked out."""
        self._learned += 1
        if self._learned > self._written or self._index.complete:
            self.flush()

    def flush(self) -> None:
        """Write what was not written yet."""
        if self._learned:
            self._written, self._learned = self._written + self._learned, 0
            keep(self._cache, self._key, self._index)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the very end of a process modules may be gone
            self.flush()

    @classmethod
    def flush_all(cls) -> None:
        """At exit, while everything still works."""
        for each in list(cls._alive):
            each.flush()


atexit.register(WriteBack.flush_all)
