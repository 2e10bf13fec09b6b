"""Indexes in the cache: their keys, what lazy ones learn, and the rows that those of one vocabulary share."""

from __future__ import annotations

import atexit
import contextlib
import json
import weakref
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, TypeVar

from . import __version__
from .definitions import Definition, Gbnf, Grammar, JsonSchema, StructuralTag
from .definitions.canonical import definition_of
from .errors import FormatError, StructgenError
from .runtime.index.index import Index
from .storage.container import FORMAT_VERSION, key_of, unpack
from .system.background import Background, WorkQueue
from .system.types import Foreign
from .vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from .cache.cache import Cache
    from .runtime.pushdown.base_rows import BaseRows
    from .runtime.pushdown.shared_masks import SharedMasks

T = TypeVar("T")

#: Whatever is read by another version is not looked for.
_VERSIONS = str(FORMAT_VERSION), __version__

#: Definitions that may name special tokens. (A union is made anew at each call.)
_NAMING = JsonSchema, StructuralTag, Gbnf

#: Where a definition is not in the cache: entries whose labels are looked at, those of them that are read, and their
#: bytes at most.
_MOST_LOOKED_AT, _MOST_READ, _LARGEST_READ = 4096, 8, 16 << 20

#: Which element of a canonical definition is its source, the last one unless the kind is said.
_SOURCES = {"regex": 1, "grammar": 2, "gbnf": 2}

_DECODER = json.JSONDecoder()

#: Indexes that wait to be written: each holds a machine.
MOST_WAITING = 16


def cache_key(definition: Definition, vocabulary: Vocabulary) -> str:
    """Return the key of an index: a hash of the definition, the vocabulary, the format version and structgen's
    version.

    Parameters
    ----------
    definition:
        The definition, not compiled.
    vocabulary:
        The vocabulary that it is compiled for.
    """
    named: Sequence[tuple[str, int | None]] = []
    if isinstance(definition, _NAMING):
        named = definition.special_names(vocabulary)
    elif isinstance(definition, Grammar):
        from .definitions.token_sets import special_names

        named = special_names(definition.marked.tokens.values(), vocabulary)
    parts = definition.canonical(), vocabulary.fingerprint, *_VERSIONS, str(named)
    return key_of("structgen-index", *parts)


def vocabulary_key(identity: str) -> str:
    """The key of a vocabulary, which a cache has for those who compile for it elsewhere."""
    return key_of("structgen-vocab", identity, *_VERSIONS)


def near_misses(cache: Cache, definition: Definition, vocabulary: Vocabulary) -> tuple[str, ...]:
    """What is kept of the same source for another vocabulary or with other options, three at most, in words.

    Such as ``"kept with whitespace='single'"``. The labels of the entries that were stored last are compared, and the
    values of a few of them read.
    """
    import sqlite3

    canonical = definition.canonical()
    own, found = _elements(canonical), dict[str, None]()
    source = _SOURCES.get(definition.kind, -1)
    alike = (
        key
        for key, tag in cache.latest(_MOST_LOOKED_AT)
        if tag.kind == definition.kind and _is_of_source(_elements(tag.label), source, own[source])
    )
    for key in islice(alike, _MOST_READ):
        with contextlib.suppress(StructgenError, OSError, sqlite3.Error, LookupError):
            value = cache.load(key)
            if value is None or len(value) > _LARGEST_READ:
                continue
            meta, _ = unpack(value)
            text, fingerprint = str(meta.get("definition")), str(meta.get("vocabulary"))
            if _elements(text)[source] == own[source]:
                differs = [_vocabulary_words(cache, fingerprint, vocabulary), _option_words(definition, text)]
                found[f"kept {' '.join(filter(None, differs)) or 'by another version of structgen'}"] = None
    return tuple(found)[:3]


def _elements(text: str) -> list[str]:
    """The texts of the elements of a canonical definition, which is a JSON list; the last one may be cut off."""
    found, at = list[str](), 1
    while at < len(text):
        try:
            _, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [*found, text[at:]]
        found.append(text[at:end])
        if text[end : end + 1] == "]":
            break
        at = end + 2 if text[end : end + 2] == ", " else end + 1
    return found


def _is_of_source(elements: Sequence[str], place: int, source: str) -> bool:
    """Whether a label, which may be cut off, has a source at a place."""
    found = elements[place] if len(elements) > place else ""
    return found == source or (found == elements[-1] and source.startswith(found))


def _option_words(definition: Definition, canonical: str) -> str:
    """``"with whitespace='single'"``: the options that another definition has; empty where they are the same."""
    from dataclasses import fields, is_dataclass

    if definition.canonical() == canonical:
        return ""
    other = definition_of(definition.kind, canonical)
    names: list[str] = []
    if is_dataclass(other) and type(other) is type(definition):
        names = [each.name for each in fields(other) if each.init]
    differ = [name for name in names if getattr(other, name) != getattr(definition, name)]
    return f"with {', '.join(f'{name}={getattr(other, name)!r}' for name in differ) or 'other options'}"


def _vocabulary_words(cache: Cache, fingerprint: str, vocabulary: Vocabulary) -> str:
    """``"for vocabulary ba60… (which differs in …)"``; empty where it is the same."""
    if fingerprint == vocabulary.fingerprint:
        return ""
    words, other = f"for vocabulary {fingerprint[:8]}", Vocabulary.alive_with(fingerprint)
    if other is None:
        kept = (key for key, tag in cache.latest(_MOST_LOOKED_AT) if tag.kind == "vocabulary")
        values = (cache.load(key) for key in islice(kept, 2))
        read = (Vocabulary.from_buffer(value, "a vocabulary in the cache") for value in values if value is not None)
        other = next((each for each in read if each.fingerprint == fingerprint), None)
    return words if other is None else f"{words} (which differs in {other.first_difference(vocabulary)})"


def read(cache: Cache, key: str, definition: Definition, vocabulary: Vocabulary) -> Index | None:
    """As `fetch`; the rows that the index shares with others are not looked for."""
    where = f"cache entry {key}"

    def opened(buffer: memoryview) -> Index:
        index = Index.from_buffer(buffer, vocabulary, origin="cache", where=where)
        if index.definition != definition.canonical():
            raise FormatError("the index is that of another definition", where=where)
        return index

    return cache.read(key, opened, names_itself=True)  # by its checksum, its definition and its vocabulary


def fetch(cache: Cache, key: str, definition: Definition, vocabulary: Vocabulary) -> Index | None:
    """The index in the cache, None where there is none, or that of another definition under its key."""
    index = read(cache, key, definition, vocabulary)
    if index is not None:
        share_rows(cache, index)
    return index


def keep(cache: Cache, key: str, index: Index) -> None:
    """Put an index into the cache, unless what has its key knows as many rows. The vocabulary is not part of it.

    The rows that it shares with others of its vocabulary are, under names of their own.
    """
    if cache.is_read_only:
        return
    index.machine.keep_shared_rows()
    rank = 1 + index.machine.known_rows
    value = index.to_bytes(with_vocabulary=False)
    cache.put(key, value, label=index.definition[:200], kind=index.kind, rank=rank)


def keys_of(cache: Cache, definition: Definition, vocabulary: Vocabulary) -> set[str]:
    """The keys of an index in the cache, and of the rows in it that it shares; empty where it is not there."""
    key = cache_key(definition, vocabulary)
    index = fetch(cache, key, definition, vocabulary)
    if index is None:
        return set()
    named = _NamedRows(cache, vocabulary)
    index.machine.share_rows(named)
    keys = {key, _base_key(vocabulary), *map(named._key, named.names)}
    return {each for each in keys if each in cache}


def share_rows(cache: Cache | None, index: Index) -> None:
    """Let an index keep the rows that belong to its vocabulary in the cache, and find them there."""
    if cache is None:
        return
    index.machine.share_rows(_SharedRows(cache, index.vocabulary))


class _SharedRows:
    """The rows of a vocabulary in a cache, by name."""

    def __init__(self, cache: Cache, vocabulary: Vocabulary) -> None:
        self.cache = cache
        self.vocabulary = vocabulary

    def fetch(self, name: bytes, read: Callable[[memoryview], T]) -> T | None:
        # In the middle of a step nobody waits for a network.
        base: Foreign = self.vocabulary.base_rows or fetch_base_rows(self.cache, self.vocabulary, in_folder=True)
        found: T | None = base.get(name) if base else None
        if found is not None:
            return found
        return self.cache.read(self._key(name), read, in_folder=True)

    def expect(self, names: Collection[bytes]) -> None:
        if not names or self.cache.remote is None:
            return
        if self.vocabulary.base_rows is None:
            fetch_base_rows(self.cache, self.vocabulary)
        base: BaseRows | None = self.vocabulary.base_rows
        at_hand = self.vocabulary.shared_rows
        missing = (name for name in names if name not in at_hand and not (base and name in base))
        self.cache.prefetch(map(self._key, missing), patient=False)

    def missing(self, names: Collection[bytes]) -> set[bytes]:
        base: BaseRows | None = self.vocabulary.base_rows if names else None
        if base is not None and self._has_base(base):
            names = [name for name in names if name not in base]
        return {name for name in names if self._key(name) not in self.cache}

    def are_brought_along(self) -> bool:
        # A store takes so many requests a second. Without base rows, each file would have those as well, eight times
        # of what it has itself.
        base: BaseRows | None = self.vocabulary.base_rows
        is_far = self.cache.remote is not None and self.cache.remote.settings.writes != "never"
        return is_far and base is not None and base.is_complete and self._has_base(base)

    def _has_base(self, base: BaseRows) -> bool:
        return base.where == _base_place(self.cache) and _base_key(self.vocabulary) in self.cache

    def keep(self, name: bytes, value: bytes) -> None:
        self.cache.put(self._key(name), value, label="rows inside a string", kind="shared")

    def _key(self, name: bytes) -> str:
        return key_of("structgen-shared", self.vocabulary.fingerprint, name, *_VERSIONS)


class _NamedRows(_SharedRows):
    """The same; what is expected is only remembered."""

    def __init__(self, cache: Cache, vocabulary: Vocabulary) -> None:
        super().__init__(cache, vocabulary)
        self.names: set[bytes] = set()

    def expect(self, names: Collection[bytes]) -> None:
        self.names.update(names)


def _base_key(vocabulary: Vocabulary) -> str:
    return key_of("structgen-base", vocabulary.fingerprint, *_VERSIONS)


def _base_place(cache: Cache | None) -> str:
    return "base rows" if cache is None else f"base rows in {cache.directory}"


def fetch_base_rows(cache: Cache, vocabulary: Vocabulary, *, in_folder: bool = False) -> BaseRows | None:
    """The base rows that a cache has, which the vocabulary has from then on, unless it has more of them."""
    from .runtime.pushdown.base_rows import BaseRows

    read = partial(BaseRows, vocabulary=vocabulary, where=_base_place(cache))
    found = cache.read(_base_key(vocabulary), read, in_folder=in_folder)
    if found is not None and (vocabulary.base_rows is None or len(vocabulary.base_rows) < len(found)):
        vocabulary.base_rows = found
    return found


def keep_base_rows(
    cache: Cache | None, vocabulary: Vocabulary, masks: dict[bytes, SharedMasks], samples: int, is_complete: bool
) -> None:
    """Make shared masks base rows of a vocabulary, beside those it has, and keep all of them in a cache."""
    from .runtime.pushdown.base_rows import BaseRows, to_bytes

    before: BaseRows | None = vocabulary.base_rows
    packed = to_bytes((before.all_masks() if before else {}) | masks, samples, is_complete, vocabulary.spelled)
    vocabulary.base_rows = BaseRows(packed, vocabulary, _base_place(cache))
    for name in masks:
        vocabulary.shared_rows.pop(name, None)
    if cache is not None:
        cache.put(_base_key(vocabulary), packed, label="base rows", kind="shared", rank=1 + samples)


class WriteBack:
    """Keeps what a lazy index learns: written when it has doubled, and at the end of the index or the process.

    No step writes, and no end of an index, which comes when the collector finds it, in the middle of anything: of a
    write to this cache, say, or of a fork. What there is to write goes on a queue. Where an index has learned enough
    a thread empties it (`structgen.system.background`); so does the next `compile`, and the end of the process. The
    queue is short; what falls off it is worked out again, or written at the end of its index.

    Two processes that learn different rows don't share them: what knows more rows stays in the cache, and never gives
    way to what knows fewer.
    """

    _alive: ClassVar[weakref.WeakSet[WriteBack]] = weakref.WeakSet()
    _waiting: ClassVar[deque[WriteBack]] = deque(maxlen=MOST_WAITING)
    _writer: ClassVar[_Writer | None] = None

    def __init__(self, cache: Cache, key: str, index: Index) -> None:
        self._cache, self._key = cache, key
        # The same in all that is written. It must not be the index itself, which would never come to its end.
        self._index = Index(
            index.kind, index.definition, index.machine,
            compile_seconds=index.compile_seconds, relaxations=index.relaxations,
        )  # fmt: skip
        self._written = index.machine.known_rows
        self._learned = 0  # rows that were worked out since
        self._alive.add(self)
        weakref.finalize(index, self._end).atexit = False

    def __call__(self) -> None:
        """Count a row that was worked out. No lock is held."""
        self._learned += 1
        if self._learned <= self._written and not self._index.complete:
            return
        if self not in self._waiting:
            self._waiting.append(self)
        if self._writer is None or not self._writer.is_alive():  # nor is that of a parent
            WriteBack._writer = _Writer("structgen-write-back")
            WriteBack._writer.begin()

    def flush(self) -> None:
        """Write what was not written yet."""
        if self._learned:
            self._written, self._learned = self._written + self._learned, 0
            keep(self._cache, self._key, self._index)

    def _end(self) -> None:
        if self._learned:
            self._waiting.append(self)

    @classmethod
    def flush_waiting(cls) -> None:
        """Write what waits, or have it written. No lock is held. What fails is lost, and nobody's concern."""
        while cls._waiting and cls.flush_one():
            pass
        if cls._writer is not None and cls._writer.is_alive():
            cls._writer.join()

    @classmethod
    def flush_one(cls) -> bool:
        """Write the first of what waits; False where nothing does."""
        try:
            first = cls._waiting.popleft()
        except IndexError:
            return False
        with contextlib.suppress(Exception):
            first.flush()
        return True

    @classmethod
    def flush_all(cls) -> None:
        """At exit, while everything still works.

        In a thread, which is waited for while it gets on within the caches' time-out: a folder on a network may hang.
        Where no thread can be begun any more (as in Python 3.12), in this one.
        """
        left = [each for each in cls._alive if each._learned]
        queue: WorkQueue[int, WriteBack] = WorkQueue(
            "structgen-last-write-back", cls._flush_last, lambda _: 0,
            most=1, patience=max((each._cache.timeout for each in left), default=0.0),
        )  # fmt: skip
        for number, each in enumerate(left):
            if not queue.add(number, each):
                with contextlib.suppress(Exception):
                    each.flush()
        queue.close_for_good()

    def _flush_last(self) -> bool:
        self.flush()
        return True


class _Writer(Background):
    """Writes what waits, until nothing does."""

    def work(self) -> None:
        """Write it."""
        while not self._is_to_stop.is_set() and WriteBack.flush_one():
            pass


atexit.register(WriteBack.flush_all)
