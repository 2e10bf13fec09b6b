"""Looking things up, without diskcache: one read-only SQLite connection.

Opening a `diskcache.Cache` writes its settings into the database, about fifty statements, before anything is
read. A server that starts wants one row. So reading has a connection of its own, which cannot write, waits
for no writer (the journal is a write-ahead log), takes a folder that is read-only, and understands only the
rows that `structgen.cache.entry` accepts.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import folder, fork
from .entry import COLUMNS, Row

#: Seconds to wait for the rare locks that stop readers of a write-ahead log (recovery after a crash).
_PATIENCE = 1.0

_Identity = tuple[int, int, int]
_NO_FILE: _Identity = (0, 0, 0)


class Reader:
    """Reads the database of one folder, from any thread. Methods raise `sqlite3.Error` and `OSError`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / folder.DATABASE
        self._connection: sqlite3.Connection | None = None
        self._immutable = False
        self._identity = _NO_FILE
        fork.watch(self)

    def find(self, key: str) -> tuple[Any, ...] | None:
        """Key, mode, file name and size of a key's row; None where there is none."""
        rows = self._select("SELECT key, mode, filename, size FROM Cache WHERE key = ? AND raw = 1", (key,))
        return rows[0] if rows else None

    def rows(self) -> list[Row]:
        """All rows, as they stand there."""
        return [Row(*row) for row in self._select(f"SELECT {COLUMNS} FROM Cache ORDER BY rowid")]

    def holds(self, row: Row) -> bool:
        """Whether a row still is as it was."""
        return self._select(f"SELECT {COLUMNS} FROM Cache WHERE rowid = ?", (row.rowid,)) == [row]

    def settings(self) -> list[Any]:
        """The names in diskcache's table of settings."""
        return [name for (name,) in self._select("SELECT key FROM Settings")]

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file; empty if nothing."""
        return [text for (text,) in self._select("PRAGMA integrity_check") if text != "ok"]

    def close(self) -> None:
        """Give the connection back; the next look-up opens another."""
        with fork.READING:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def __del__(self) -> None:
        # A cache need not be closed, and Python 3.13 warns of connections that were not.
        if self._connection is not None:
            self._connection.close()

    def _select(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with fork.READING:
            if self._connection is not None and self._identity != self._identify():
                self.close()
            if self._connection is None:
                self._open()
            if self._connection is None:
                return []
            return self._connection.execute(query, values).fetchall()

    def _identify(self) -> _Identity:
        """Which file the path leads to: it may be deleted and made anew while a connection is open."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return _NO_FILE
        return (found.st_dev, found.st_ino, found.st_mtime_ns if self._immutable else 0)

    def _open(self) -> None:
        """Open the database, unless there is none, or none with tables yet."""
        self._immutable = False
        if self._identify() == _NO_FILE:
            return
        address = f"{self._path.as_uri()}?mode=ro"
        try:
            self._connection = _connect(address)
        except sqlite3.OperationalError as error:
            # A log that was folded into the database has to be made anew even to read, which a folder that
            # cannot be written does not allow. Nobody there writes either, so go without a log.
            if "no such table" in str(error):
                return
            if os.access(self._directory, os.W_OK):
                raise
            self._immutable = True
            self._connection = _connect(f"{address}&immutable=1")
        self._identity = self._identify()


def _connect(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    connection.text_factory = _decode
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT key FROM Cache LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _decode(text: bytes) -> str:
    """Text that is not UTF-8 makes its row a foreign one, and is no reason to fail here."""
    return text.decode(errors="replace")
