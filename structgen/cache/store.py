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
from typing import Any

import diskcache
from diskcache.core import ENOVAL, METADATA

from ..errors import CacheError
from . import folder
from .disk import BytesDisk
from .entry import COLUMNS, Entry, Row, check_row

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

Execute = Callable[..., sqlite3.Cursor]


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

    def __init__(self, directory: Path, timeout: float) -> None:
        path = os.fspath(directory)
        if os.path.expandvars(path) != path:
            raise CacheError("diskcache would expand the variable in this folder's name", where=path)
        self._deadline = timeout
        try:
            super().__init__(path, timeout=timeout, disk=BytesDisk, **SETTINGS)
        except BaseException:
            self.close()
            raise

    def reset(self, key: str, value: Any = ENOVAL, update: bool = True) -> Any:
        """A setting of ours, whatever the database says, or one of diskcache's counters."""
        if key in SETTINGS:
            return super().reset(key, SETTINGS[key], update=False)
        return super().reset(key) if key in METADATA else None

    @property
    def _sql_retry(self) -> Execute:
        """As diskcache's, for statements outside transactions, but within our timeout and not a minute."""
        execute = self._sql

        def retry(statement: str, *values: Any) -> sqlite3.Cursor:
            end = time.monotonic() + self._deadline
            while True:
                try:
                    return execute(statement, *values)  # type: ignore[no-any-return]
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > end:
                        raise
                    time.sleep(0.001)

        return retry

    @contextmanager
    def _transact(self, retry: bool = False, filename: str | None = None) -> Iterator[tuple[Execute, Any]]:
        """As diskcache's, but the file of one that fails anywhere, COMMIT included, does not stay."""
        try:
            with super()._transact(retry, filename) as handles:
                yield handles
        except BaseException:
            if filename is not None:
                self._disk.remove(filename)
            raise

    def total(self) -> float:
        """Bytes of all values, by their rows."""
        return float(self._sql("SELECT TOTAL(size) FROM Cache").fetchone()[0])

    def evict(self, max_bytes: int, keep: str = "") -> list[Entry]:
        """Remove the least recently used entries, never ``keep``, until at most ``max_bytes`` are left."""
        evicted = []
        directory = Path(self.directory)
        with self._transact() as (sql, cleanup):
            usable = []
            for row in sql(f"SELECT {COLUMNS} FROM Cache").fetchall():
                try:
                    usable.append(check_row(directory, Row(*row)))
                except (CacheError, OSError):
                    continue  # `Cache.verify` speaks of these
            left = sum(found.nbytes for found, _ in usable)
            for found, path in sorted(usable, key=lambda item: (item[0].used, item[0].stored)):
                if left <= max_bytes:
                    break
                if found.key != keep:
                    sql("DELETE FROM Cache WHERE key = ? AND raw = 1", (found.key,))
                    cleanup(path.name)
                    evicted.append(found)
                    left -= found.nbytes
        return evicted

    def sweep(self) -> None:
        """Delete the value files that no row names and no writer can still be at work on."""
        with self._transact() as (sql, cleanup):
            known = {name for (name,) in sql("SELECT filename FROM Cache")}
            for path in folder.strays(Path(self.directory), known):
                cleanup(path.name)

    def remove_row(self, row: Row) -> None:
        """Delete a row and its file, unless it was replaced since it was read: `set` changes the time."""
        where = "rowid = ? AND store_time IS ?"
        with self._transact() as (sql, cleanup):
            if sql(f"DELETE FROM Cache WHERE {where}", (row.rowid, row.store_time)).rowcount:
                cleanup(row.filename)

    def remove_settings(self) -> None:
        """Delete the settings that diskcache does not know."""
        marks = ",".join("?" * len(KNOWN_SETTINGS))
        with self._transact() as (sql, _):
            sql(f"DELETE FROM Settings WHERE key NOT IN ({marks})", tuple(KNOWN_SETTINGS))

    def remove_all(self) -> int:
        """Delete every row, foreign ones too, and their files. Returns how many."""
        with self._transact() as (sql, cleanup):
            names = sql("SELECT filename FROM Cache").fetchall()
            sql("DELETE FROM Cache")
            for (name,) in names:
                cleanup(name)
        return len(names)
