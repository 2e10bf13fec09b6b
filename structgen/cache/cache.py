"""`Cache`: compiled indexes and vocabularies, kept on disk for every process of this user.

The cache is there to save time, so it never costs a result: a folder that is missing, read-only, full, busy
or damaged, or that other users can write, means one `CacheWarning` and working without it. Everything in the
folder is taken for hostile; the database is used only as `structgen.cache.database` allows, what a row says is
believed only after `structgen.cache.entry` and `structgen.cache.folder` checked it, and a value's content is for
the caller to check (`structgen.storage.container.unpack`), who discards what is damaged.

diskcache does the writing, with a disk of our own; look-ups have a shorter way (`structgen.cache.reader`).
docs/guide/cache.md tells the rest.
"""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..errors import CacheError, CacheWarning, FormatError
from . import database, folder, fork
from .entry import Entry, Tag, check_key, check_place, check_row, evictable
from .metrics import Counters
from .reader import Reader

if TYPE_CHECKING:
    from .audit import Problem, Repair
    from .metrics import Metrics
    from .remote.remote import Remote
    from .remote.values import ObjectStore
    from .store import Store

T = TypeVar("T")

#: Requests for objects on their way together.
_PREFETCHED_AT_ONCE = 8

PathLike = str | os.PathLike[str]

_FAILURES = (CacheError, OSError, sqlite3.Error)
_START_OVER = "Delete the folder, or name another one with STRUCTGEN_CACHE_DIR."


class Cache:
    """A folder of values by key, for threads, forks and many processes at once.

    Parameters
    ----------
    directory:
        The folder; made with mode 0700 on the first `put`. None means ``$STRUCTGEN_CACHE_DIR`` or the
        platform's folder for a user's caches. Nothing is opened before it is needed, so that making a `Cache`
        costs nothing and cannot fail.
    size_limit:
        Bytes of values to keep. A `put` that exceeds it evicts the least recently used entries until nine
        tenths of it are left.
    timeout:
        Seconds that a write waits for those of other processes.
    store:
        An object store behind the folder, a URL or an `ObjectStore` (docs/guide/fleet.md): asked for what the folder
        lacks, and given what is put. None: there is none. Raises `ArgumentError` and `StoreError` for one that cannot
        be named so, or whose packages are not installed; nothing is asked of it yet.
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
        self._reader = Reader(self.directory)
        self._store: Store | None = None
        self._warned = False
        self.counters = Counters()
        self.remote = None if store is None else self._remote_of(store)  # the object store

    # -- values ----------------------------------------------------------------------------------------

    def get(self, key: str) -> memoryview | None:
        """The value of a key as a read-only buffer of bytes, or None on a miss.

        Large values are mapped, not read; the buffer stays valid when the entry is replaced or evicted. Its
        content was not checked. Raises `CacheError` for a malformed key, and for nothing else.
        """
        buffer = self._look_up(key)
        if buffer is None:
            return self._fetch(key, lambda value: value)
        self.counters.add("hits_folder")
        return buffer

    def _look_up(self, key: str) -> memoryview | None:
        """The value of a key in the folder."""
        check_key(key)
        # By its name, in a folder that was checked; by its row; and by that again, if the entry was replaced, or the
        # database, before its file was read.
        for look in (self._named, self._stored, partial(self._stored, anew=True)):
            try:
                return look(key)
            except FileNotFoundError:
                continue
            except _FAILURES as error:
                self._warn(error, 4)
                break
        return None

    def read(self, key: str, parse: Callable[[memoryview], T], *, in_folder: bool = False) -> T | None:
        """What ``parse`` makes of the value of a key, or None on a miss.

        A value with which it fails, in whatever way, is a miss and is discarded: it saves nobody any time, and would
        be in the way for ever. ``in_folder``: the object store is not asked, for whoever cannot wait.
        """
        buffer = self._look_up(key)
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
        """Store a value, replacing the key's earlier one. Returns whether the key has this or a better value now.

        Readers see the earlier value or this one, never a part. An object store that is written ``"now"`` has it as
        well then, or this is False. ``label``, ``kind`` and ``rank`` come back in `entries`. Raises `CacheError` for
        a malformed key and for values other than bytes, and for nothing else.

        Parameters
        ----------
        rank:
            For values that get better: one of a rank other than 0 does not replace one of the same rank or a higher
            one, whichever process stored that.
        """
        check_key(key)
        if not isinstance(value, bytes):
            raise CacheError(f"a value of type {type(value).__name__}, the cache keeps bytes only")
        tag = Tag(label, kind, rank)
        is_kept = self._keep(key, value, tag)
        return (self.remote is None or self.remote.put(key, value, tag)) and is_kept

    def prefetch(self, keys: Iterable[str], *, patient: bool = True) -> list[str]:
        """Bring what the folder lacks from the object store, several at a time.

        Returns the keys that the folder lacks afterwards: a server is ready when there are none. Raises `CacheError`
        for a malformed key.

        Parameters
        ----------
        patient:
            Wait for each as long as the store's ``timeout``, and ask for what was not there a moment ago. False: as a
            look-up does.
        """
        from concurrent.futures import ThreadPoolExecutor

        from .audit import check_value

        def bring(key: str) -> None:
            self._fetch(key, partial(check_value, where=key), anew=patient)

        missing = [key for key in dict.fromkeys(keys) if check_key(key) not in self]
        if self.remote is not None and missing:
            with ThreadPoolExecutor(_PREFETCHED_AT_ONCE) as pool:
                list(pool.map(bring, missing))
        return [key for key in missing if key not in self]

    def metrics(self) -> Metrics:
        """What this cache did so far, as plain counters; `Metrics.openmetrics` makes a text of them."""
        return self.counters.snapshot()

    def discard(self, key: str) -> None:
        """Remove an entry from the folder, if it is there.

        Raises `CacheError` for a malformed key, and for nothing else.
        """
        check_key(key)
        try:
            if self._has_database():
                with self._writing() as store:
                    store.remove(key)
        except _FAILURES as error:
            self._warn(error)

    def size_of(self, key: object) -> int | None:
        """Bytes of a key's value in the folder, None where it is not there whole. No use of it is counted."""
        try:
            place = self._find(check_key(key), anew=True)
            return place[1] if place is not None and folder.status(place[0]).st_size == place[1] else None
        except _FAILURES:
            return None

    def __contains__(self, key: object) -> bool:
        return self.size_of(key) is not None

    def __len__(self) -> int:
        return len(self.entries())

    def __bool__(self) -> bool:
        """Always true: an empty cache is still a cache."""
        return True

    # -- upkeep ----------------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """All entries, the least recently used first. Rows that cannot be used are left out."""
        found = []
        try:
            rows = self._reader.rows()
        except _FAILURES as error:
            self._warn(error)
            return []
        for row in rows:
            try:
                found.append(check_row(self.directory, row)[0])
            except (CacheError, OSError):
                continue
        return sorted(found, key=lambda entry: (entry.used, entry.stored))

    def verify(self, *, repair: bool = False) -> list[Problem]:
        """Check every row, every file and every value's checksum, and return what is wrong.

        With ``repair`` all of it is removed; if the database itself is damaged, the whole content is. Files
        without a row are left alone for an hour, for a writer may be at work on them. Raises `CacheError` if
        the repair fails.
        """
        from .audit import Problem, findings

        try:
            damage = "; ".join(self._reader.integrity())
            found = [] if damage else list(findings(self.directory, self._reader))
        except _FAILURES as error:
            damage, found = str(error), []
            if not _is_damaged(error):
                return [Problem("database", str(self.directory), damage)]
        if damage:
            if repair:
                self._wipe()
            return [Problem("database", str(self.directory), damage)]
        if found and repair:
            self._mend([mend for _, mend in found])
        return [problem for problem, _ in found]

    def prune(self, max_bytes: int) -> list[Entry]:
        """Evict the least recently used entries until at most ``max_bytes`` are left, and return them.

        Also removes rows and files that serve nobody: rows without a file at once, files without a row when they are
        older than an hour. Works on a full disk, too. Raises `CacheError` if it fails.
        """
        if not self._has_database():
            return []
        try:
            return self._evict(max_bytes)
        except CacheError as error:
            if not folder.is_full(error.__cause__):
                raise
            try:
                rows = self._reader.rows()
            except _FAILURES:
                raise error from error.__cause__
        # SQLite has no room to write down what it deletes. So the files go first, which makes room and their rows
        # misses; then the rows, now or when somebody evicts next.
        _, victims = evictable(self.directory, rows, max_bytes)
        for row, _ in victims:
            folder.remove(folder.value_path(self.directory, row.filename))
        with suppress(CacheError):
            self._evict(max_bytes)
        return [entry for _, entry in victims]

    def clear(self) -> int:
        """Remove everything and return the number of entries; a damaged database is made anew.

        Raises `CacheError` if that fails.
        """
        if not self._has_database():
            return 0
        try:
            with self._writing() as store:
                count = store.remove_all()
                store.sweep()
                return count
        except CacheError as error:
            if not _is_damaged(error.__cause__) and not folder.is_full(error.__cause__):
                raise
            return self._wipe()

    def export(self, path: PathLike, keys: Iterable[str] | None = None) -> int:
        """Write entries into one tar file, and return how many.

        Parameters
        ----------
        path:
            The file; replaced in one step when the new one is complete.
        keys:
            Which entries; None for all, less any that are damaged.

        Raises
        ------
        CacheError
            If an entry of ``keys`` is missing or damaged, or an entry changes meanwhile.
        OSError
            If the file cannot be written.
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
            except (FormatError, *_FAILURES) as error:
                if keys is not None:
                    raise CacheError(f"{key!r} cannot be exported: {error}", where=str(self.directory)) from error
                continue
            chosen.append(by_key[key])
        archive.write(Path(path), chosen, self.load)
        return len(chosen)

    def import_(self, path: PathLike) -> int:
        """Put the entries of an `export` into this cache, and return how many.

        The archive may come from anywhere: nothing in it names a path, sizes are checked before they are
        believed, and each value is put only after its checksum and layout were checked.

        Raises
        ------
        FormatError
            If anything in it is not as `export` writes it. Says how many entries before that place were stored.
        CacheError
            If the archive holds more than ``size_limit``, and then nothing is stored; or if the folder cannot be
            written, with how many entries were stored by then.
        OSError
            If it cannot be read.
        """
        from . import archive
        from .audit import check_value

        stored: set[str] = set()
        try:
            for item, value in archive.read(Path(path), self.size_limit):
                check_value(memoryview(value), f"{item.key} in {os.fspath(path)}")
                evicted = self._put(item.key, value, Tag(item.label, item.kind, item.rank))
                stored.add(item.key)
                stored.difference_update(entry.key for entry in evicted)
        except (FormatError, CacheError) as error:
            what = f"{error.what}; {len(stored)} of the archive's entries were stored before"
            raise type(error)(what, where=error.where or os.fspath(path), remedy=error.remedy) from error
        return len(stored)

    def close(self) -> None:
        """Write what waits for the object store, and close the database; the next use opens it again.

        Buffers from `get` stay valid.
        """
        if self.remote is not None:
            self.remote.close()
        self._reader.close()
        if self._store is not None and self._has_database():
            # The last writer to close folds SQLite's log into the database: one file to ship.
            with suppress(CacheError), self._writing() as store:
                store.total()
        self._store = None

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Cache({str(self.directory)!r})"

    # -- the object store ------------------------------------------------------------------------------

    def _remote_of(self, store: str | ObjectStore) -> Remote:
        from .remote.remote import Remote
        from .remote.values import ObjectStore

        return Remote(ObjectStore(store) if isinstance(store, str) else store, self.counters)

    def _fetch(
        self, key: str, parse: Callable[[memoryview], T], *, asks: bool = True, anew: bool = False
    ) -> T | None:
        """What ``parse`` makes of the value of a key in the object store, which the folder has from then on."""
        remote = self.remote if asks else None
        found = None if remote is None else remote.fetch(key, self.size_limit, anew=anew)
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
        self._keep(key, value, header.tag)
        return parsed

    def _keep(self, key: str, value: bytes, tag: Tag) -> bool:
        """Put a value into the folder; False, and a warning, where it can't be."""
        try:
            self._put(key, value, tag)
        except CacheError as error:
            self._warn(error, 4)
            return False
        return True

    # -- ways in ---------------------------------------------------------------------------------------

    def _find(self, key: str, *, anew: bool) -> tuple[str, int] | None:
        """Path and size of a key's value file. Raises `_FAILURES`; `CacheError` for a foreign row."""
        row = self._reader.find(key, anew=anew)
        if row is None:
            return None
        found, mode, name, size = row
        # A read-only folder may change under an SQLite that was told it cannot: the row of another key.
        return check_place(self.directory, mode, name, size) if found == key else None

    def _named(self, key: str) -> memoryview | None:
        """A value's buffer by the name of its file. Raises as `_find`, and where the folder was not checked yet."""
        if not self._reader.is_open:
            raise FileNotFoundError
        return folder.read(folder.value_path(self.directory, folder.name_of(key)), None, mark=True)

    def _stored(self, key: str, anew: bool = False) -> memoryview | None:
        """A value's buffer by its row. Raises as `_find`."""
        place = self._find(key, anew=anew)
        return None if place is None else folder.read(*place, mark=True)

    def load(self, key: str) -> memoryview | None:
        """A value's buffer from the folder, without counting as a use.

        Raises `CacheError`, `OSError` and `sqlite3.Error`.
        """
        place = self._find(key, anew=True)
        return None if place is None else folder.read(*place, mark=False)

    def _has_database(self) -> bool:
        return os.path.lexists(self.directory / folder.DATABASE)

    def _put(self, key: str, value: bytes, tag: Tag) -> list[Entry]:
        """Store a value, and return what was evicted for it. Raises `CacheError`."""
        if len(value) > self.size_limit:
            raise CacheError(f"a value of {len(value)} bytes exceeds the limit of {self.size_limit}")
        with self._writing() as store:
            store.put(key, value, tag)
            if store.total() <= self.size_limit:
                return []
            evicted = store.evict(self.size_limit * 9 // 10, keep=key)
            store.sweep()
        return evicted

    def _evict(self, max_bytes: int) -> list[Entry]:
        with self._writing() as store:
            evicted = store.evict(max_bytes)
            store.sweep()
        return evicted

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        """diskcache on this folder, made if needed, its connection closed afterwards. Raises `CacheError`."""
        until = time.monotonic() + self.timeout
        with fork.WRITING:
            # Inside the lock: a child that is forked in the middle of an import waits for its end for ever.
            from .store import Store, failures

            with failures(self.directory):
                anew = self._store is None or not self._has_database()
                database.create(self.directory)
                if self._store is None or anew:
                    self._store = Store(self.directory, until)
                store = self._store
                store.until = until
                try:
                    yield store
                except BaseException:
                    self._store = None  # its tables may be gone: somebody deleted the folder
                    raise
                finally:
                    store.close()

    def _mend(self, repairs: Iterable[Repair]) -> None:
        """Remove what is wrong; everything, where SQLite can't even delete it."""
        try:
            with self._writing() as store:
                for mend in repairs:
                    mend(store)
        except CacheError as error:
            if not _is_damaged(error.__cause__):
                raise
            self._wipe()

    def _wipe(self) -> int:
        with fork.WRITING, fork.READING:
            self.close()
            self._store = None
            count = folder.wipe(self.directory)
        if self._has_database():
            raise CacheError("the damaged database cannot be removed", where=str(self.directory), remedy=_START_OVER)
        return count

    def _warn(self, reason: Exception, level: int = 3) -> None:
        """Say once for each `Cache` why it does not work, in the caller's line, so many calls up."""
        if not self._warned:
            self._warned = True
            what = reason.what if isinstance(reason, CacheError) else f"{type(reason).__name__}: {reason}"
            text = f"the cache {self.directory} is not used: {what}. Work goes on without it. {_START_OVER}"
            warnings.warn(CacheWarning(text), stacklevel=level)


def _is_damaged(error: BaseException | None) -> bool:
    """Whether SQLite says that the file is not a database, rather than locked, full or out of reach."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
