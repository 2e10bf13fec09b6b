"""Looking things up, without diskcache: one read-only SQLite connection.

Opening a `diskcache.Cache` writes its settings into the database, about fifty statements, before anything is
read. A server that starts wants one row. So reading has a connection of its own, which cannot write, waits
for no writer (the journal is a write-ahead log), takes a folder that is read-only, and understands only the
rows that `structgen.cache.entry` accepts.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ..system import private_folder
from . import database, folder, fork
from .entry import Row, bounded

#: Seconds to wait for the rare locks that stop readers of a write-ahead log (recovery after a crash).
_PATIENCE = 1.0

#: Seconds to look up one row.
_LOOK_UP_SECONDS = 1.0

#: Seconds to read a whole database through.
_INTEGRITY_SECONDS = 60.0

_FIND = f"SELECT key, {bounded('mode')}, {bounded('filename')}, {bounded('size')} FROM Cache WHERE key = ? AND raw = 1"

T = TypeVar("T")

_Identity = tuple[int, int, int]
_NO_FILE: _Identity = (0, 0, 0)


class _Orphans:
    """Connections of readers that are gone. They go in the middle of anything, so the next reader closes them."""

    def __init__(self) -> None:
        self._connections: deque[sqlite3.Connection] = deque()
        fork.watch(self)

    def add(self, connection: sqlite3.Connection) -> None:
        self._connections.append(connection)

    def close(self) -> None:
        with fork.READING:
            while self._connections:
                self._connections.popleft().close()

    def close_last(self) -> None:
        """At exit, unless some thread's look-up hangs: it holds the lock."""
        if self._connections and fork.READING.acquire(timeout=_LOOK_UP_SECONDS + _PATIENCE):
            fork.READING.release()
            self.close()


_orphans = _Orphans()
atexit.register(_orphans.close_last)


class Reader:
    """Reads the database of one folder, from any thread.

    Methods raise `sqlite3.Error`, `OSError`, and `CacheError` for what belongs to others.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / folder.DATABASE
        self._connection: sqlite3.Connection | None = None
        self._deadline = database.Deadline()
        self._immutable = False
        self._identity = _NO_FILE
        fork.watch(self)

    @property
    def is_open(self) -> bool:
        """Whether it has a connection: the folder was checked then."""
        return self._connection is not None

    def find(self, key: str, *, anew: bool = False) -> tuple[object, ...] | None:
        """Key, mode, file name and size of a key's row; None where there is none.

        A row is taken from the connection that is open, though the database may have been deleted since: then its
        file is gone, too, and the caller asks ``anew``.
        """

        def look(connection: sqlite3.Connection) -> tuple[object, ...] | None:
            row: tuple[object, ...] | None = connection.execute(_FIND, (key,)).fetchone()
            return row

        if not anew and not self._immutable:
            with fork.READING, suppress(sqlite3.Error):
                self._deadline.restart(_LOOK_UP_SECONDS)
                if self._connection is not None and (found := look(self._connection)) is not None:
                    return found
        return self._with(look, None, _LOOK_UP_SECONDS)

    def rows(self) -> list[Row]:
        """All rows, as they stand there."""
        return self._with(lambda connection: database.rows(connection.execute), [])

    def latest(self, most: int) -> list[Row]:
        """Key and tag of the rows that were stored last."""
        return self._with(lambda connection: database.latest(connection.execute, most), [])

    def holds(self, row: Row) -> bool:
        """Whether a row still is as it was."""
        return self._with(lambda connection: database.row(connection.execute, row.rowid) == row, False)

    def settings(self) -> list[object]:
        """The names in diskcache's table of settings."""

        def names(connection: sqlite3.Connection) -> list[object]:
            database.check_settings(connection)
            return [name for (name,) in connection.execute(f"SELECT {bounded('key')} FROM Settings")]

        return self._with(names, [])

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file; empty if nothing."""

        def damage(connection: sqlite3.Connection) -> list[str]:
            return [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]

        return self._with(damage, [], _INTEGRITY_SECONDS)

    def close(self) -> None:
        """Give the connection back; the next look-up opens another."""
        with fork.READING:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def __del__(self, orphans: _Orphans = _orphans) -> None:
        # The collector comes in the middle of anything, a fork or SQLite's own work: closing is for later.
        if self._connection is not None:
            orphans.add(self._connection)  # at the end of the interpreter globals are gone

    def _with(
        self, work: Callable[[sqlite3.Connection], T], nothing: T, seconds: float = database.STATEMENT_SECONDS
    ) -> T:
        """What statements of so many seconds find, or ``nothing`` where there is no database, or no table, yet."""
        with fork.READING:
            if self._connection is not None and self._identity != self._identify():
                self.close()
            if self._connection is None:
                _orphans.close()
                self._open()
            self._deadline.restart(seconds)
            return nothing if self._connection is None else work(self._connection)

    def _identify(self) -> _Identity:
        """Which file the path leads to: it may be deleted and made anew while a connection is open."""
        try:
            found = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return _NO_FILE
        except NotADirectoryError:
            private_folder.check_home(self._directory)
            raise
        return (found.st_dev, found.st_ino, found.st_mtime_ns if self._immutable else 0)

    def _open(self) -> None:
        """Open the database, unless there is none, or none with tables yet."""
        self._immutable = False
        if self._identify() == _NO_FILE:
            return
        database.check_files(self._directory)
        address = database.address(self._path, "ro")
        try:
            self._connection = self._connect(address)
        except sqlite3.OperationalError as error:
            # A log that was folded into the database has to be made anew even to read, which a folder that
            # cannot be written does not allow, nor a full disk. Nobody there writes either, so go without a log.
            if folder.may(self._directory, os.W_OK) and not folder.is_full(error):
                raise
            self._immutable = True
            self._connection = self._connect(f"{address}&immutable=1")
        self._identity = self._identify()

    def _connect(self, address: str) -> sqlite3.Connection | None:
        """A connection to a database with tables; None where it has none yet."""
        connection = database.connect(address, self._deadline, patience=_PATIENCE)
        try:
            if "Cache" in database.tables(connection):
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None
