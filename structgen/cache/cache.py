"""`Cache`: compiled indexes and vocabularies, kept on disk for every process of this user.

The cache is there to save time, so it never costs a result: a folder that is missing, read-only, full, busy
or damaged, or that other users can write, means one `CacheWarning` and working without it. What lies near is a
`Front` (`structgen.cache.front`): a folder's, or a bundle's; behind it there may be an object store
(`structgen.cache.remote`), whose values are kept in the folder by a thread, so that nobody waits for that.

docs/guide/cache.md tells the rest, docs/guide/fleet.md of stores and bundles.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..errors import CacheError, FormatError
from ..system.arguments import check_type
from ..system.background import WorkQueue
from . import folder
from .entry import Entry, Tag, check_key, check_keys
from .front import FAILURES, FolderFront, Front
from .metrics import Counters

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from .audit import Problem
    from .metrics import Metrics
    from .remote.remote import Remote
    from .remote.values import ObjectStore

T = TypeVar("T")

#: Requests for objects on their way together.
_PREFETCHED_AT_ONCE = 8

#: Bytes of values from the store that wait to be kept in the folder.
_KEPT_BEHIND = 64 << 20

#: Seconds before they are: the first mask of what they are comes first.
_DELAY = 0.05

PathLike = str | os.PathLike[str]


class _Fetched(NamedTuple):
    """A value of the store that the folder does not have yet."""

    key: str
    value: bytes
    tag: Tag


class Cache:
    """A folder of indexes by key, safe for threads, forks and many processes at once.

    Making a `Cache` opens nothing and cannot fail, except for a bundle. The folder is made on the first `put`, with
    mode 0700.

    Parameters
    ----------
    directory:
        The folder. None: ``$STRUCTGEN_CACHE_DIR``, or the platform's folder for user caches. Or a *bundle*, a file
        that `export` wrote: it is mapped at once and is read-only.
    size_limit:
        Bytes of values to keep. A `put` that exceeds it evicts the least recently used entries until nine tenths of
        the limit are left. Default: 4 GiB.
    timeout:
        Seconds that a write waits for writes of other processes.
    store:
        An object store behind the folder, a URL or an `ObjectStore`. It is asked for entries that the folder lacks,
        and receives new ones. None: no store. See docs/guide/fleet.md.

    Raises
    ------
    ArgumentError
        For a malformed URL of a store.
    StoreError
        For a store whose packages are not installed.
    FormatError
        For a bundle that is not valid.
    CacheError
        For a bundle that other users can write.
    OSError
        For a bundle that cannot be read.
    """

    def __init__(
        self,
        directory: PathLike | None = None,
        *,
        size_limit: int = 4 << 30,
        timeout: float = 10.0,
        store: str | ObjectStore | None = None,
    ) -> None:
        self.directory: Path = folder.locate(directory)
        self.size_limit = size_limit
        self.timeout = timeout
        self._front = self._front_of(self.directory, is_named=directory is not None)
        self.counters = Counters()
        self.remote = None if store is None else self._remote_of(store)  # the object store
        self._behind: WorkQueue[str, _Fetched] = WorkQueue(
            "structgen-cache-writer", self._keep_fetched, lambda each: len(each.value),
            most=_KEPT_BEHIND, patience=timeout, delay=_DELAY,
        )  # fmt: skip
        self._failed: Exception | None = None  # to be said in a caller's thread

    # -- values ----------------------------------------------------------------------------------------

    def get(self, key: str) -> memoryview | None:
        """Return the value of a key as a read-only buffer, or None on a miss.

        Large values are mapped, not read. The buffer stays valid when the entry is replaced or evicted. Its content
        is not verified.

        Parameters
        ----------
        key:
            The key, such as `cache_key` returns.

        Raises
        ------
        CacheError
            For a malformed key, and for nothing else.
        """
        buffer = self._look_up(key)
        if buffer is None:
            return self._fetch(key, lambda value: value)
        self.counters.add("hits_folder")
        return buffer

    def _look_up(self, key: str, *, names_itself: bool = False) -> memoryview | None:
        """The value of a key in the folder, or on its way there."""
        found = self._behind.get(key)
        if found is None:
            return self._front.look_up(key, names_itself=names_itself)
        return memoryview(found.value)

    def read(
        self, key: str, parse: Callable[[memoryview], T], *, in_folder: bool = False, names_itself: bool = False
    ) -> T | None:
        """Return ``parse`` of the value of a key, or None on a miss.

        A value on which ``parse`` fails counts as a miss and is discarded.

        Parameters
        ----------
        key:
            The key.
        parse:
            Called with the value's buffer.
        in_folder:
            Do not ask the object store, for callers that cannot wait.
        names_itself:
            ``parse`` fails on a value that is damaged or belongs to another key.

        Raises
        ------
        CacheError
            For a malformed key.
        """
        buffer = self._look_up(key, names_itself=names_itself)
        if buffer is not None:
            try:
                found = parse(buffer)
            except Exception:
                self.discard(key)
            else:
                self.counters.add("hits_folder")
                return found
        return self._fetch(key, parse, asks=not in_folder)

    def put(self, key: str, value: bytes, *, label: str = "", kind: str = "", rank: int = 0) -> bool:
        """Store a value, replacing an earlier one. Return whether the key now has this value or a better one.

        Readers see the earlier value or this one, never a part. With a store that is written ``"now"``, the value
        is in the store as well, or the result is False. ``label``, ``kind`` and ``rank`` are returned by `entries`.

        Parameters
        ----------
        key:
            The key.
        value:
            The bytes.
        label:
            A description for people.
        kind:
            The kind of the definition.
        rank:
            For values that get better: a value with a rank other than 0 does not replace one of the same or a
            higher rank.

        Raises
        ------
        CacheError
            For a malformed key and for values that are not bytes, and for nothing else.
        """
        check_key(key)
        if not isinstance(value, bytes):
            raise CacheError(f"a value of type {type(value).__name__}, the cache keeps bytes only")
        tag = Tag(label, kind, rank)
        if self._behind.get(key) is not None:
            self._settle()  # what came from the store is the older one
        is_kept = self._keep(key, value, tag)
        return (self.remote is None or self.remote.put(key, value, tag)) and is_kept

    def prefetch(self, keys: Iterable[str], *, patient: bool = True) -> list[str]:
        """Fetch entries that the folder lacks from the object store, several at a time.

        Parameters
        ----------
        keys:
            The keys wanted.
        patient:
            Wait for each as long as the store's ``timeout``, and ask again for keys that were recently missing.
            False: ask as a look-up does.

        Returns
        -------
        list[str]
            The keys that the folder still lacks. A server is ready when it is empty.

        Raises
        ------
        CacheError
            For a malformed key.
        """
        from concurrent.futures import ThreadPoolExecutor

        from .audit import check_value

        def bring(key: str) -> None:
            self._fetch(key, partial(check_value, where=key), is_patient=patient)

        missing = [key for key in check_keys(keys) if key not in self]
        if self.remote is not None and missing:
            # Where there are no more threads they stay missing: each is asked for when it is needed.
            with suppress(RuntimeError), ThreadPoolExecutor(_PREFETCHED_AT_ONCE) as pool:
                list(pool.map(bring, missing))
        return [key for key in missing if key not in self]

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be stored: a bundle without a writable store."""
        return self._front.is_read_only and (self.remote is None or self.remote.settings.writes == "never")

    def metrics(self) -> Metrics:
        """Return counters of hits, misses and errors so far. `Metrics.openmetrics` formats them as text."""
        return self.counters.snapshot()

    def instrument(self, meter: Meter | None = None, *, attributes: Mapping[str, str] | None = None) -> None:
        """Export the counters of `metrics` through OpenTelemetry, as ``structgen.cache.hits_folder`` and so on.

        Parameters
        ----------
        meter:
            An OpenTelemetry ``Meter``. None: the global provider's.
        attributes:
            Attributes of each observation, to tell several caches of one process apart.

        Raises
        ------
        ArgumentError
            Where ``opentelemetry-api`` is not installed.
        """
        self.counters.instrument(meter, attributes or {})

    def ready(self, keys: Iterable[str]) -> bool:
        """Return whether all ``keys`` are in the folder, for a server's readiness probe. No store is asked, no value
        is read.
        """
        return all(key in self for key in check_keys(keys))

    def discard(self, key: str) -> None:
        """Remove the entry of ``key`` from the folder, if it is there.

        Raises
        ------
        CacheError
            For a malformed key, and for nothing else.
        """
        self._settle()
        self._front.discard(key)

    def size_of(self, key: object) -> int | None:
        """Return the bytes of the value of ``key`` in the folder, or None on a miss. This does not count as a use."""
        found = self._behind.get(key) if isinstance(key, str) else None
        return self._front.size_of(key) if found is None else len(found.value)

    def __contains__(self, key: object) -> bool:
        return self.size_of(key) is not None

    def __len__(self) -> int:
        return len(self.entries())

    def __bool__(self) -> bool:
        """Always true: an empty cache is still a cache."""
        return True

    # -- upkeep ----------------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Return all entries, the least recently used first. Entries that cannot be used are left out."""
        self._settle()
        return self._front.entries()

    def latest(self, most: int) -> list[tuple[str, Tag]]:
        """Return keys and tags of the ``most`` entries that were stored last, the newest first."""
        return self._front.latest(most)

    def verify(self, *, repair: bool = False) -> list[Problem]:
        """Check every row, file and checksum of the folder, and return the problems found.

        Files without a row are left alone for an hour, because a writer may be at work on them.

        Parameters
        ----------
        repair:
            Remove all that is wrong. If the database itself is damaged, everything is removed.

        Raises
        ------
        CacheError
            If the repair fails.
        """
        self._settle()
        return self._front.verify(repair=repair)

    def prune(self, max_bytes: int) -> list[Entry]:
        """Evict the least recently used entries until at most ``max_bytes`` are left, and return the evicted ones.

        Rows without a file are removed at once, files without a row when they are older than an hour. It works on a
        full disk.

        Raises
        ------
        CacheError
            If it fails.
        """
        self._settle()
        return self._front.prune(max_bytes)

    def clear(self) -> int:
        """Remove everything and return the number of entries. A damaged database is made anew.

        Raises
        ------
        CacheError
            If it fails.
        """
        self._settle()
        return self._front.clear()

    def load(self, key: str) -> memoryview | None:
        """Return the buffer of the value of ``key`` in the folder, without counting as a use.

        Raises
        ------
        CacheError
            For a malformed key.
        OSError
            For a file that cannot be read.
        sqlite3.Error
            For a database that cannot be read.
        """
        return self._front.load(key)

    def export(self, path: PathLike, keys: Iterable[str] | None = None) -> int:
        """Write entries into one tar file, a bundle, and return their number.

        Parameters
        ----------
        path:
            The file. It is replaced in one step when the new one is complete.
        keys:
            The entries to write. None: all, except damaged ones.

        Raises
        ------
        CacheError
            For an entry of ``keys`` that is missing or damaged, or one that changes meanwhile.
        OSError
            For a file that cannot be written.
        """
        from . import archive
        from .audit import check_value

        by_key = {entry.key: entry for entry in self.entries()}
        chosen = []
        for key in sorted(by_key if keys is None else set(keys)):
            try:
                if key not in by_key:
                    raise CacheError("there is no such entry")
                check_value(self.load(key), key)
            except (FormatError, *FAILURES) as error:
                if keys is not None:
                    raise CacheError(f"{key!r} cannot be exported: {error}", where=str(self.directory)) from error
                continue
            chosen.append(by_key[key])
        archive.write(Path(path), chosen, self.load)
        return len(chosen)

    def import_(self, path: PathLike) -> int:
        """Store the entries of a bundle in this cache, and return their number.

        The file may come from anywhere: nothing in it names a path, sizes are bounded, and each value is stored
        only after its checksum and layout were verified.

        Parameters
        ----------
        path:
            The file that `export` wrote.

        Raises
        ------
        FormatError
            For content that `export` does not write. The message has the number of entries stored before.
        CacheError
            For a bundle larger than ``size_limit``, of which nothing is stored; for a folder that cannot be
            written.
        OSError
            For a file that cannot be read.
        """
        from . import archive
        from .audit import check_value

        stored: set[str] = set()
        try:
            for item, value in archive.read(Path(path), self.size_limit):
                check_value(memoryview(value), f"{item.key} in {os.fspath(path)}")
                evicted = self._front.put(item.key, value, item.tag, self.size_limit)
                stored.add(item.key)
                stored.difference_update(entry.key for entry in evicted)
        except (FormatError, CacheError) as error:
            what = f"{error.what}; {len(stored)} of the archive's entries were stored before"
            raise type(error)(what, where=error.where or os.fspath(path), remedy=error.remedy) from error
        return len(stored)

    def close(self) -> None:
        """Write pending values to the object store, and close the database. The next use opens it again.

        Buffers from `get` stay valid.
        """
        self._settle()
        if self.remote is not None:
            self.remote.close()
        self._front.close()

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        store = None if self.remote is None else self.remote.settings
        return _reopened, (type(self), str(self.directory), self.size_limit, self.timeout, store)

    def __repr__(self) -> str:
        return f"Cache({str(self.directory)!r})"

    def _front_of(self, directory: Path, *, is_named: bool) -> Front:
        if is_named and os.path.isfile(directory):  # False, unlike `Path.is_file`, where one may not look
            from .bundle import BundleFront

            return BundleFront(directory)
        return FolderFront(directory, self.timeout)

    # -- the object store ------------------------------------------------------------------------------

    def _remote_of(self, store: str | ObjectStore) -> Remote:
        from .remote.remote import Remote
        from .remote.values import ObjectStore

        made = ObjectStore(store) if isinstance(store, str) else store
        check_type(made, ObjectStore, "Pass sg.ObjectStore(url), or its URL.")
        return Remote(made, self.counters)

    def _fetch(
        self, key: str, parse: Callable[[memoryview], T], *, asks: bool = True, is_patient: bool = False
    ) -> T | None:
        """What ``parse`` makes of the value of a key in the object store, which the folder has from then on."""
        self._say()
        remote = self.remote if asks else None
        found = None if remote is None else remote.fetch(key, self.size_limit, anew=is_patient)
        if remote is None or found is None:
            self.counters.add("misses")
            return None
        header, value = found
        try:
            parsed = parse(memoryview(value))
        except Exception as error:
            self.counters.add("misses")
            remote.reject(key, error)
            return None
        self.counters.add("hits_store")
        if is_patient or self._front.is_read_only or not self._behind.add(key, _Fetched(key, value, header.tag)):
            self._keep(key, value, header.tag)
        return parsed

    def _keep(self, key: str, value: bytes, tag: Tag) -> bool:
        """Put a value into the folder; False, and a warning, where it can't be."""
        if self._front.is_read_only:
            return False  # as it is meant to be
        try:
            self._front.put(key, value, tag, self.size_limit)
        except CacheError as error:
            self._front.warn(error, 4)
            return False
        return True

    def _keep_fetched(self, fetched: _Fetched) -> bool:
        """The same, in a thread of the cache's own."""
        try:
            self._front.put(*fetched, self.size_limit)
        except CacheError as error:
            self._failed = error
        return True

    def _settle(self) -> None:
        """Have everything in the folder that came from the store."""
        self._behind.close()
        self._say()

    def _say(self) -> None:
        """Warn of what went wrong in the thread."""
        failed, self._failed = self._failed, None
        if failed is not None:
            self._front.warn(failed, 5)


def _reopened(kind: type[Cache], directory: str, size_limit: int, timeout: float, store: ObjectStore | None) -> Cache:
    """The same folder, in a copy or another process: with counters, connections and threads of its own."""
    return kind(directory, size_limit=size_limit, timeout=timeout, store=store)
