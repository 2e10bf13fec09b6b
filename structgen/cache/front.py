"""What a cache looks into before it asks anybody else: a `Front`; here the one of a folder.

Everything in the folder is taken for hostile; the database is used only as `structgen.cache.database` allows, what a
row says is believed only after `structgen.cache.entry` and `structgen.cache.folder` checked it, and a value's content
is for the caller to check (`structgen.storage.container.unpack`), who discards what is damaged.

diskcache does the writing, with a disk of our own; look-ups have a shorter way (`structgen.cache.reader`).
"""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..errors import CacheError, CacheWarning
from . import database, folder, fork
from .entry import Entry, Tag, check_key, check_place, check_row, evictable
from .reader import Reader

if TYPE_CHECKING:
    from .audit import Problem, Repair
    from .store import Store

#: What a folder and its database can do to us.
FAILURES = (CacheError, OSError, sqlite3.Error)


class Front(ABC):
    """Values by key, near at hand. What is not said to raise anything raises nothing but `CacheError` for bad keys.

    Parameters
    ----------
    where:
        For messages: a folder, or a file.
    """

    #: Whether nothing can be put.
    is_read_only: ClassVar[bool] = False

    def __init__(self, where: Path) -> None:
        self.where = where
        self._warned = False

    @abstractmethod
    def look_up(self, key: str, *, names_itself: bool = False) -> memoryview | None:
        """The value of a key, which was not checked, or None.

        ``names_itself``: the caller finds out whether it is whole and the one of this key.
        """

    @abstractmethod
    def put(self, key: str, value: bytes, tag: Tag, size_limit: int) -> list[Entry]:
        """Store a value, and return what was evicted for it. Raises `CacheError`."""

    @abstractmethod
    def discard(self, key: str) -> None:
        """Remove an entry, if it is there."""

    @abstractmethod
    def size_of(self, key: object) -> int | None:
        """Bytes of a value, None where it is not there whole."""

    def load(self, key: str) -> memoryview | None:
        """A value's buffer, without counting as a use. Raises `FAILURES`."""
        return self.look_up(key)

    def entries(self) -> list[Entry]:
        """All entries, the least recently used first."""
        return []

    def latest(self, most: int) -> list[tuple[str, Tag]]:
        """Keys and tags of the entries that were stored last, that one first. No file is looked at."""
        entries = sorted(self.entries(), key=lambda entry: entry.stored, reverse=True)
        return [(entry.key, Tag(entry.label, entry.kind, entry.rank)) for entry in entries[:most]]

    def verify(self, *, repair: bool = False) -> list[Problem]:
        """What is wrong; see `Cache.verify`."""
        return []

    def prune(self, max_bytes: int) -> list[Entry]:
        """Evict; see `Cache.prune`."""
        return []

    def clear(self) -> int:
        """Remove everything; see `Cache.clear`."""
        return 0

    def close(self) -> None:  # noqa: B027
        """Give back what is held open."""

    def warn(self, reason: Exception, level: int = 3) -> None:
        """Say once why it does not work, in the caller's line, so many calls up."""
        if not self._warned:
            self._warned = True
            what = reason.what if isinstance(reason, CacheError) else f"{type(reason).__name__}: {reason}"
            remedy = self.remedy(reason)
            text = f"the cache {self.where} is not used: {what}. Work goes on without it. {remedy}"
            warnings.warn(CacheWarning(text), stacklevel=level)

    def remedy(self, reason: Exception) -> str:
        """What to do where it does not work."""
        return folder.remedy(self.where, reason)


class FolderFront(Front):
    """A folder of values, for threads, forks and many processes at once.

    Parameters
    ----------
    directory, timeout:
        As `structgen.cache.cache.Cache` takes them.
    """

    def __init__(self, directory: Path, timeout: float) -> None:
        super().__init__(directory)
        self.timeout = timeout
        self.reader = Reader(directory)
        self._below = f"{directory}{os.sep}"
        self._store: Store | None = None

    def look_up(self, key: str, *, names_itself: bool = False) -> memoryview | None:
        """The value of a key in the folder."""
        check_key(key)
        # By its name, in a folder that was checked; by its row; and by that again, if the entry was replaced, or the
        # database, before its file was read.
        for look in (self._named, self._stored, self._stored_anew):
            try:
                return look(key)
            except FileNotFoundError:
                continue
            except FAILURES as error:
                self.warn(error, 5)
                break
        return None

    def put(self, key: str, value: bytes, tag: Tag, size_limit: int) -> list[Entry]:
        """Store a value, and return what was evicted for it. Raises `CacheError`."""
        if len(value) > size_limit:
            raise CacheError(f"a value of {len(value)} bytes exceeds the limit of {size_limit}")
        with self._writing() as store:
            store.put(key, value, tag)
            if store.total() <= size_limit:
                return []
            evicted = store.evict(size_limit * 9 // 10, keep=key)
            store.sweep()
        return evicted

    def discard(self, key: str) -> None:
        """Remove an entry from the folder, if it is there."""
        check_key(key)
        try:
            if self._has_database():
                with self._writing() as store:
                    store.remove(key)
        except FAILURES as error:
            self.warn(error, 4)

    def size_of(self, key: object) -> int | None:
        """Bytes of a key's value in the folder, None where it is not there whole. No use of it is counted."""
        try:
            place = self._find(check_key(key), anew=True)
            return place[1] if place is not None and folder.status(place[0]).st_size == place[1] else None
        except FAILURES:
            return None

    def load(self, key: str) -> memoryview | None:
        """A value's buffer from the folder, without counting as a use. Raises `FAILURES`."""
        place = self._find(key, anew=True)
        return None if place is None else folder.read(*place, mark=False)

    def entries(self) -> list[Entry]:
        """All entries, the least recently used first. Rows that cannot be used are left out."""
        found = []
        try:
            rows = self.reader.rows()
        except FAILURES as error:
            self.warn(error, 4)
            return []
        for row in rows:
            try:
                found.append(check_row(self.where, row)[0])
            except (CacheError, OSError):
                continue
        return sorted(found, key=lambda entry: (entry.used, entry.stored))

    def latest(self, most: int) -> list[tuple[str, Tag]]:
        """Keys and tags of the entries that were stored last; none where the folder can't be read."""
        try:
            rows = self.reader.latest(most)
        except FAILURES:
            return []
        return [(row.key, Tag.decode(row.tag)) for row in rows if isinstance(row.key, str) and row.raw == 1]

    def verify(self, *, repair: bool = False) -> list[Problem]:
        """What is wrong with rows, files and values; see `Cache.verify`."""
        from .audit import Problem, findings

        try:
            damage = "; ".join(self.reader.integrity())
            found = [] if damage else list(findings(self.where, self.reader))
        except FAILURES as error:
            damage, found = str(error), []
            if not _is_damaged(error):
                return [Problem("database", str(self.where), damage)]
        if damage:
            if repair:
                self._wipe()
            return [Problem("database", str(self.where), damage)]
        if found and repair:
            self._mend([mend for _, mend in found])
        return [problem for problem, _ in found]

    def prune(self, max_bytes: int) -> list[Entry]:
        """Evict, on a full disk, too; see `Cache.prune`."""
        if not self._has_database():
            return []
        try:
            return self._evict(max_bytes)
        except CacheError as error:
            if not folder.is_full(error.__cause__):
                raise
            try:
                rows = self.reader.rows()
            except FAILURES:
                raise error from error.__cause__
        # SQLite has no room to write down what it deletes. So the files go first, which makes room and their rows
        # misses; then the rows, now or when somebody evicts next.
        _, victims = evictable(self.where, rows, max_bytes)
        for row, _ in victims:
            folder.remove(folder.value_path(self.where, row.filename))
        with suppress(CacheError):
            self._evict(max_bytes)
        return [entry for _, entry in victims]

    def clear(self) -> int:
        """Remove everything; a damaged database is made anew."""
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

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        self.reader.close()
        if self._store is not None and self._has_database():
            # The last writer to close folds SQLite's log into the database: one file to ship.
            with suppress(CacheError), self._writing() as store:
                store.total()
        self._store = None

    def _find(self, key: str, *, anew: bool) -> tuple[str, int] | None:
        """Path and size of a key's value file. Raises `FAILURES`; `CacheError` for a foreign row."""
        row = self.reader.find(key, anew=anew)
        if row is None:
            return None
        found, mode, name, size = row
        # A read-only folder may change under an SQLite that was told it cannot: the row of another key.
        return check_place(self.where, mode, name, size) if found == key else None

    def _named(self, key: str) -> memoryview | None:
        """A value's buffer by the name of its file. Raises as `_find`, and where the folder was not checked yet."""
        if not self.reader.is_open:
            raise FileNotFoundError
        return folder.read(self._below + folder.name_of(key), None, mark=True)

    def _stored(self, key: str, anew: bool = False) -> memoryview | None:
        """A value's buffer by its row. Raises as `_find`."""
        place = self._find(key, anew=anew)
        return None if place is None else folder.read(*place, mark=True)

    def _stored_anew(self, key: str) -> memoryview | None:
        return self._stored(key, anew=True)

    def _has_database(self) -> bool:
        return os.path.lexists(self.where / folder.DATABASE)

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

            with failures(self.where):
                anew = self._store is None or not self._has_database()
                database.create(self.where)
                if self._store is None or anew:
                    self._store = Store(self.where, until)
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
            count = folder.wipe(self.where)
        if self._has_database():
            raise CacheError("the damaged database cannot be removed", where=str(self.where),
                             remedy=folder.remedy(self.where, OSError()))  # fmt: skip
        return count


def _is_damaged(error: BaseException | None) -> bool:
    """Whether SQLite says that the file is not a database, rather than locked, full or out of reach."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
