"""`Store`: diskcache, hardened, for everything that writes.

diskcache believes its table of settings: a name found there becomes an attribute of the cache or the disk, or
a PRAGMA. Here the settings are the constants below and those in the database are not looked at.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import diskcache
from diskcache.core import ENOVAL, METADATA

from ..errors import CacheError
from . import database, folder
from .database import Execute
from .disk import BytesDisk
from .entry import Entry, Row, Tag, check_stored, evictable

#: diskcache's settings. Eviction is ours (`Store.evict`): diskcache's own would write on every look-up, or
#: evict what was stored first. No memory map of the database: a file cut short under it would end the
#: process.
SETTINGS: dict[str, int | str] = {
    "statistics": 0,
    "tag_index": 0,
    "eviction_policy": "none",
    "size_limit": 0,
    "cull_limit": 0,
    "sqlite_auto_vacuum": 0,
    "sqlite_cache_size": 1024,
    "sqlite_journal_mode": "wal",
    "sqlite_mmap_size": 0,
    "sqlite_synchronous": 1,
    "disk_min_file_size": 0,
    "disk_pickle_protocol": 0,
}

#: Every name that diskcache itself puts into its table of settings.
KNOWN_SETTINGS = frozenset(SETTINGS) | frozenset(METADATA)

#: What `failures` turns into `CacheError`; `TypeError` and its like come from rows that no cache wrote.
_FAILURES = (OSError, sqlite3.Error, diskcache.Timeout, TypeError, ValueError, AttributeError, AssertionError)

_PRAGMAS = {name.removeprefix("sqlite_"): value for name, value in SETTINGS.items() if name.startswith("sqlite_")}

#: Seconds between tries where another process has the database locked.
_PAUSE = 0.002

T = TypeVar("T")


@contextmanager
def failures(directory: Path) -> Iterator[None]:
    """Everything that a folder or its database can do to us, as one `CacheError`."""
    try:
        yield
    except _FAILURES as error:
        locked = isinstance(error, diskcache.Timeout)  # which has no text
        reason = "other processes kept it locked" if locked else f"{type(error).__name__}: {error}"
        raise CacheError(f"the cache folder cannot be written: {reason}", where=str(directory)) from error


class Store(diskcache.Cache):  # type: ignore[misc]
    """The writing half of a cache folder. Methods raise `CacheError` inside `failures`."""

    def __init__(self, directory: Path, until: float) -> None:
        path = os.fspath(directory)
        if os.path.expandvars(path) != path:
            raise CacheError("diskcache would expand the variable in this folder's name", where=path)
        #: When to give up waiting for other processes, in seconds of the monotonic clock.
        self.until = until
        self._statement = database.Deadline()
        try:
            super().__init__(path, disk=BytesDisk, **SETTINGS)
        except BaseException:
            self.close()
            raise

    def reset(self, key: str, value: object = ENOVAL, update: bool = True) -> int | str:
        """A setting of ours, whatever the database says; of diskcache's counters none is believed."""
        ours = SETTINGS.get(key, 0)
        if key in KNOWN_SETTINGS:
            setattr(self, key, ours)
        return ours

    @property
    def _con(self) -> sqlite3.Connection:
        """This thread's connection, to a database that was checked and holds what diskcache makes or nothing yet."""
        connection: sqlite3.Connection | None = getattr(self._local, "con", None)
        if connection is None:
            path = Path(self._directory, folder.DATABASE)
            connection = self._local.con = database.connect(database.address(path, "rw"), self._statement)
            if "Settings" in self._retried(database.tables, connection):
                self._retried(database.check_settings, connection)
            for name, value in _PRAGMAS.items():
                if self._execute(f"PRAGMA {name}").fetchone() != (value,):
                    self._execute(f"PRAGMA {name} = {value}").fetchall()
        return connection

    @property
    def _sql(self) -> Execute:
        return self._execute

    _sql_retry = _sql

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        """Execute a statement as soon as other processes let us, within our timeout and not diskcache's minute."""
        return self._retried(self._con.execute, statement, *values)

    def _retried(self, call: Callable[..., T], *values: object) -> T:
        while True:
            self._statement.restart()
            try:
                return call(*values)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > self.until:
                    raise
                time.sleep(_PAUSE)

    @contextmanager
    def _transact(self) -> Iterator[tuple[Execute, Callable[[object], None]]]:
        """As diskcache's, but one that fails says why."""
        try:
            with super()._transact() as handles:
                yield handles
        except BaseException as error:
            cause = error.__context__
            if isinstance(error, diskcache.Timeout) and cause is not None and "locked" not in str(cause):
                raise cause from None  # diskcache takes whatever prevents a transaction for a lock
            raise

    def put(self, key: str, value: bytes, tag: Tag) -> None:
        """Store a value, unless the one that is there has a rank of at least this one's, which is not 0."""
        size, mode, name, _ = self._disk.store(value, False)
        try:
            with self._transact() as (_, cleanup):
                found = self._row_of(key)
                if found is not None and 0 < tag.rank <= self._rank(found):
                    cleanup(name)
                    return
                name = folder.settle(Path(self._directory), name, key, None if found is None else found.filename)
                columns = (None, tag.encode(), size, mode, name, None)
                if found is None:
                    self._row_insert(key, True, time.time(), columns)
                else:
                    cleanup(found.filename)
                    self._row_update(found.rowid, time.time(), columns)
        except BaseException:  # at COMMIT, too
            self._disk.remove(name)
            raise

    def _row_of(self, key: str) -> Row | None:
        number = self._execute("SELECT rowid FROM Cache WHERE key = ? AND raw = 1", (key,)).fetchone()
        return None if number is None else database.row(self._execute, *number)

    def _rank(self, row: Row) -> int:
        """The rank of an entry that can be used; 0 of one that can't."""
        try:
            return check_stored(Path(self.directory), row).rank
        except (CacheError, OSError):
            return 0

    def remove(self, key: str) -> None:
        """Delete an entry and its file, if it is there."""
        with self._transact() as (sql, cleanup):
            self._remove(self._row_of(key) or Row(None, key), sql, cleanup)

    def total(self) -> float:
        """Bytes of all values, by their rows."""
        sizes = "CASE WHEN typeof(size) = 'integer' AND size > 0 THEN size END"
        return float(self._execute(f"SELECT TOTAL({sizes}) FROM Cache").fetchone()[0])

    def evict(self, max_bytes: int, keep: str = "") -> list[Entry]:
        """Remove the least recently used entries, never ``keep``, until at most ``max_bytes`` are left.

        Rows that serve nobody go first. They would count in `total` for ever.
        """
        with self._transact() as (sql, cleanup):
            useless, victims = evictable(Path(self.directory), database.rows(sql), max_bytes, keep)
            for row in (*useless, *(row for row, _ in victims)):
                self._remove(row, sql, cleanup)
        return [entry for _, entry in victims]

    def sweep(self) -> None:
        """Delete the value files that no row names and no writer can still be at work on."""
        with self._transact() as (sql, cleanup):
            for path in folder.strays(Path(self.directory), {row.filename for row in database.rows(sql)}):
                cleanup(path.name)

    def remove_row(self, row: Row) -> None:
        """Delete a row and its file, unless it was replaced since it was read: `put` changes the time."""
        with self._transact() as (sql, cleanup):
            if database.row(sql, row.rowid) == row:
                self._remove(row, sql, cleanup)

    def remove_settings(self) -> None:
        """Delete the settings that diskcache does not know."""
        marks = ",".join("?" * len(KNOWN_SETTINGS))
        with self._transact() as (sql, _):
            sql(f"DELETE FROM Settings WHERE key NOT IN ({marks})", tuple(KNOWN_SETTINGS))

    def remove_all(self) -> int:
        """Delete every row, foreign ones too, and their files. Returns how many."""
        with self._transact() as (sql, cleanup):
            rows = database.rows(sql)
            for row in rows:
                self._remove(row, sql, cleanup)
            sql("DELETE FROM Cache")  # what could not be read, too
        return len(rows)

    def _remove(self, row: Row, sql: Execute, cleanup: Callable[[object], None]) -> None:
        """Delete a row, its file, and one that a writer left behind where readers of the key look first."""
        sql("DELETE FROM Cache WHERE rowid = ?", (row.rowid,))
        cleanup(row.filename)
        if isinstance(row.key, str) and row.filename != (name := folder.name_of(row.key)):
            self._disk.remove(name)
