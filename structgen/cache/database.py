"""The database file, before and while SQLite works on it.

SQLite does whatever a database says: a view in place of a table never ends, a trigger writes for ever, a value takes
as much memory as it announces. So a database is used only if it is a regular file of this user or root, and holds
exactly what diskcache makes, text by text; and every connection has a bound on the size of a value and a deadline for
each statement.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from ..system import private_folder
from . import folder
from .entry import COLUMNS, Row, bounded

#: Seconds for one statement; the largest table that is read as a whole takes one.
STATEMENT_SECONDS = 10.0

#: Bytes of a value, and of a row. Ours have a few KiB: a key, a label, a file's name.
_LONGEST_VALUE = 1 << 16

#: Bytes of the database: some million entries.
_LARGEST_FILE = 1 << 30

#: From so many rows on a table of settings is none of diskcache's, which has sixteen.
_MOST_SETTINGS = 100

#: Instructions of SQLite's machine between looks at the clock; well below a millisecond.
_STRIDE = 10_000


def _trigger(name: str, event: str, change: str) -> tuple[str, str, str, str]:
    begin = f"CREATE TRIGGER {name} AFTER {event} ON Cache FOR EACH ROW BEGIN"
    return "trigger", name, "Cache", f"{begin} UPDATE Settings SET value = {change}; END"


#: Type, name, table and text of everything that diskcache 5.6 makes.
SCHEMA: frozenset[tuple[str, str, str, str | None]] = frozenset(
    {
        ("table", "Settings", "Settings", "CREATE TABLE Settings ( key TEXT NOT NULL UNIQUE, value)"),
        ("index", "sqlite_autoindex_Settings_1", "Settings", None),
        (
            "table",
            "Cache",
            "Cache",
            "CREATE TABLE Cache ( rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, store_time REAL,"
            " expire_time REAL, access_time REAL, access_count INTEGER DEFAULT 0, tag BLOB, size INTEGER DEFAULT 0,"
            " mode INTEGER DEFAULT 0, filename TEXT, value BLOB)",
        ),
        ("index", "Cache_key_raw", "Cache", "CREATE UNIQUE INDEX Cache_key_raw ON Cache(key, raw)"),
        ("index", "Cache_expire_time", "Cache", "CREATE INDEX Cache_expire_time ON Cache (expire_time)"),
        _trigger("Settings_count_insert", "INSERT", 'value + 1 WHERE key = "count"'),
        _trigger("Settings_count_delete", "DELETE", 'value - 1 WHERE key = "count"'),
        _trigger("Settings_size_insert", "INSERT", 'value + NEW.size WHERE key = "size"'),
        _trigger("Settings_size_update", "UPDATE", 'value + NEW.size - OLD.size WHERE key = "size"'),
        _trigger("Settings_size_delete", "DELETE", 'value - OLD.size WHERE key = "size"'),
    }
)

#: The same as SQLite stores it.
_SCHEMA = frozenset(tuple(text and text.encode() for text in row) for row in SCHEMA)

Execute = Callable[..., sqlite3.Cursor]


class Deadline:
    """When the statement of a connection has to be done."""

    def __init__(self) -> None:
        self._end = float("inf")

    def restart(self, seconds: float = STATEMENT_SECONDS) -> None:
        """A statement begins; SQLite interrupts it after so many seconds."""
        self._end = time.monotonic() + seconds

    def passed(self) -> bool:
        """Whether it is over."""
        return time.monotonic() > self._end


def check_files(directory: Path) -> None:
    """See that the folder is private and that the database and its log, where they exist, are this user's or root's.

    Raises `CacheError` for what others have, `OSError` for what is no regular file.
    """
    private_folder.check(directory)
    database = os.path.join(directory, folder.DATABASE)
    for suffix in folder.DATABASE_SUFFIXES:
        try:
            status = os.lstat(database + suffix)
        except FileNotFoundError:
            continue
        private_folder.check_file(status, database + suffix)
        if not suffix and status.st_size > _LARGEST_FILE:
            raise OSError(f"{database} has {status.st_size} bytes, more than a cache needs")


def create(directory: Path) -> None:
    """Make the folder and an empty database, for this user only, where they are missing. Raises as `check_files`."""
    private_folder.make(directory)
    with suppress(FileExistsError):  # O_EXCL follows no link either
        os.close(os.open(directory / folder.DATABASE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    check_files(directory)


def address(path: Path, mode: str) -> str:
    """A file by the name that SQLite takes; from Python 3.14 on, `Path.as_uri` loads an HTTP client first."""
    name = quote(os.fsencode(path.as_posix()), safe="/:")
    return f"file://{'' if name.startswith('/') else '/'}{name}?mode={mode}"


def connect(address: str, deadline: Deadline, *, patience: float = 0.0) -> sqlite3.Connection:
    """A connection whose statements end by the deadline. The database's files were checked.

    Parameters
    ----------
    address:
        A URI.
    patience:
        Seconds that SQLite itself waits for locks.
    """
    connection = sqlite3.connect(address, timeout=patience, isolation_level=None, check_same_thread=False, uri=True)
    connection.set_progress_handler(deadline.passed, _STRIDE)
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    deadline.restart()
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def tables(connection: sqlite3.Connection) -> set[str]:
    """The names of what a database holds: all or, while another process makes it, a part of `SCHEMA`.

    Raises `sqlite3.DatabaseError` for a database that holds anything else: it is not one of a cache.
    """
    connection.text_factory = bytes  # no call for each text
    found = set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?", (len(SCHEMA) + 1,)))
    connection.text_factory = _decode
    for kind, name, *_ in found - _SCHEMA:
        shown = " ".join(_decode(text) if isinstance(text, bytes) else str(text) for text in (kind, name))
        raise sqlite3.DatabaseError(f"the {shown[:50]!r} in the database is none of diskcache's")
    return {name.decode() for _, name, _, _ in found}


def check_settings(connection: sqlite3.Connection) -> None:
    """See that there are not many settings: diskcache goes through all of them. Raises `sqlite3.DatabaseError`."""
    if len(connection.execute("SELECT 1 FROM Settings LIMIT ?", (_MOST_SETTINGS,)).fetchall()) == _MOST_SETTINGS:
        raise sqlite3.DatabaseError("the database has more settings than diskcache")


def rows(execute: Execute) -> list[Row]:
    """All rows of the table of entries."""
    try:
        return [Row(*row) for row in execute(f"SELECT {COLUMNS} FROM Cache NOT INDEXED ORDER BY rowid").fetchall()]
    except sqlite3.DataError:  # somewhere there is a text that is too long to be loaded
        numbers = execute("SELECT rowid FROM Cache NOT INDEXED ORDER BY rowid").fetchall()
        return [found for (number,) in numbers if (found := row(execute, number)) is not None]


def latest(execute: Execute, most: int) -> list[Row]:
    """Key and tag of the rows that were stored last; none where one of them is too long to be loaded."""
    columns = f"rowid, {bounded('key')}, raw, NULL, {bounded('tag')}"
    with suppress(sqlite3.DataError):
        found = execute(f"SELECT {columns} FROM Cache NOT INDEXED ORDER BY rowid DESC LIMIT ?", (most,))
        return [Row(*row) for row in found.fetchall()]
    return []


def row(execute: Execute, number: object) -> Row | None:
    """The row of a number, None where there is none. One that is too long to be loaded has nothing but its number."""
    try:
        found = execute(f"SELECT {COLUMNS} FROM Cache WHERE rowid = ?", (number,)).fetchone()
    except sqlite3.DataError:
        return Row(number)
    return None if found is None else Row(*found)


def _decode(text: bytes) -> str:
    """Text that is not UTF-8 makes its row a foreign one, and is no reason to fail here."""
    return text.decode(errors="replace")
