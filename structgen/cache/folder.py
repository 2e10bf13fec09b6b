"""The cache's folder: where it is, and its value files.

::

    cache.db, cache.db-wal, cache.db-shm     SQLite, with the tables of diskcache
    0123456789abcdef0123456789abcdef.val     one file for each value, all in the one folder

A value's file is called after its key, so that a reader finds it without a look into the database, and its successor
by 128 random bits, so that the one has never the other's bytes; the next one after the key again.

The folder is used only if nobody else can change what its path means or what is in it
(`structgen.system.private_folder`). What is in it may come from somewhere else all the same, and a row of the
database names a value file. So a name is believed only if it has the shape that `new_name` gives, which cannot leave
the folder, and a file is read only if it is a regular file of the size that its row says: no symbolic links, no
pipes.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import reprlib
import sqlite3
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import CacheError
from ..system import private_folder
from ..system.digest import blake2b
from ..system.folders import ENVIRONMENT_VARIABLE, cache_root

DATABASE = "cache.db"

#: What SQLite adds to the name of a database: nothing, and for its log, the log's index and a journal.
DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")

#: Seconds for which a file without a row may be the work of a writer that has not come to its row yet.
STRAY_AGE = 3600.0

#: Seconds by which the time of last use may lag behind: one inode update in a while, not one for each hit.
USED_RESOLUTION = 60.0

#: Bytes from which a value is mapped. Below, copying is cheaper, and a mapping before Python 3.13 costs a
#: file descriptor for as long as it lives.
MAPPED_FROM = 1 << 18

_FULL = {getattr(errno, name) for name in ("ENOSPC", "EFBIG", "EDQUOT") if hasattr(errno, name)}
_NAME = re.compile(r"[0-9a-f]{32}\.val")
_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # so that a planted pipe cannot keep us waiting
)


def locate(directory: str | os.PathLike[str] | None) -> Path:
    """The absolute path of the folder that was asked for, or of the user's own."""
    chosen = cache_root() if directory is None else directory
    return Path(os.path.abspath(os.path.expanduser(chosen)))


def new_name() -> str:
    """A file name that nobody has used: 128 random bits."""
    return f"{os.urandom(16).hex()}.val"


def name_of(key: str) -> str:
    """The file name that a value of a key has where no earlier one had it."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() + ".val"


def settle(directory: Path, name: str, key: str, earlier: object) -> str:
    """Give a new value's file the name of its key where no file has that. Returns its name.

    ``earlier`` is that of the value that it replaces, whose file goes after the row. Under the lock of writers any
    other one of the key's name is one that a writer left behind, or is about to delete, which would be the new one.
    """
    own = name_of(key)
    if earlier == own:
        return name
    path = value_path(directory, own)
    if os.path.lexists(path):
        remove(path)
        return name
    os.rename(value_path(directory, name), path)
    return own


def value_path(directory: Path, name: object) -> str:
    """Where a value file lies. Raises `CacheError` for a name that `new_name` cannot have given."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise CacheError(f"{reprlib.repr(name)} is not the name of a value file", where=str(directory))
    return f"{directory}{os.sep}{name}"


def write(path: str, value: bytes) -> None:
    """Write and close a new file, or leave none behind. Raises `OSError`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(value)
    except BaseException:
        remove(path)
        raise


def remove(path: str | Path) -> None:
    """Delete a file that may be gone already, or that Windows keeps while somebody has it mapped."""
    with suppress(OSError):
        os.unlink(path)


def read(path: str, nbytes: int | None, *, mark: bool) -> memoryview | None:
    """The file's bytes, mapped or copied, read-only; None if it does not have ``nbytes`` of them. None: all it has.

    The buffer keeps the mapping alive, also when the file is deleted. With ``mark``, the file counts as used
    now: its time of modification is its time of last use, for its bytes never change and this needs no
    transaction. Raises `OSError`.
    """
    descriptor, status = open_value(path)
    try:
        if nbytes is None:
            nbytes = status.st_size
        elif status.st_size != nbytes:
            return None
        if mark and time.time() - status.st_mtime > USED_RESOLUTION:
            with suppress(OSError):  # root's file, or a read-only one
                os.utime(descriptor if os.utime in os.supports_fd else path)
        if nbytes >= MAPPED_FROM:
            return memoryview(map_file(descriptor, nbytes))
        value = os.read(descriptor, nbytes)
        return memoryview(value) if len(value) == nbytes else None
    finally:
        os.close(descriptor)


def open_value(path: str) -> tuple[int, os.stat_result]:
    """A descriptor of a regular file, opened for reading, and its status.

    Raises `OSError`, also for anything else, and `CacheError` for a file of another user, who may cut it short while
    it is mapped.
    """
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        status = os.fstat(descriptor)
        private_folder.check_file(status, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def map_file(descriptor: int, nbytes: int) -> mmap.mmap:
    """A file of so many bytes, read-only; it stays mapped when the descriptor is closed."""
    if sys.version_info >= (3, 13):
        return mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_READ, trackfd=False)
    return mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_READ)


def status(path: str) -> os.stat_result:
    """Size and times of a value file. Raises `OSError`, also for anything that is not a regular file."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"not a regular file: {path}")
    return found


def is_full(error: BaseException | None) -> bool:
    """Whether a file could not grow: the disk, a quota or a limit on sizes. SQLite does not always tell which."""
    if isinstance(error, sqlite3.OperationalError):
        return "full" in str(error) or "disk I/O error" in str(error)
    return isinstance(error, OSError) and error.errno in _FULL


def remedy(directory: Path, error: BaseException) -> str:
    """What to do about an error, by what hinders this user at a cache's folder.

    ``error`` is what came of a folder or its database: `CacheError` with or without a cause, `OSError`,
    `sqlite3.Error`.
    """
    cause = error.__cause__ or error if isinstance(error, CacheError) else error
    another = f"name another folder with {ENVIRONMENT_VARIABLE}"
    if isinstance(error, CacheError) and error.remedy:
        return error.remedy
    if isinstance(cause, CacheError) and cause.remedy:
        return cause.remedy
    if is_full(cause):
        return f"Make room on its disk (structgen cache prune; df {directory}), or {another}."
    if isinstance(cause, OSError) and cause.errno == errno.EROFS:
        return f"The file system is read-only: {another}, or mount it writable."
    if isinstance(cause, NotADirectoryError | FileExistsError):
        return f"A file is in its place or above it: {another}."
    barred = _barred(directory)
    if barred is not None and barred.is_read:
        opens = f"chmod -R a+rX {directory}"
        if barred.path in directory.parents:
            opens = f"chmod a+x {barred.path} and {opens}"
        return f"Only {barred.owner} can read {barred.path}: as {barred.owner}, run {opens}; or {another}."
    if barred is not None:
        kept = "What is in it is still read; to keep more" if directory.exists() else "To keep anything"
        return f"{barred.path} is {barred.owner}'s to write. {kept}, {another}."
    if isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
        return f"Run structgen cache verify --repair, delete the folder, or {another}."
    return f"{another[0].upper()}{another[1:]}."


class _Barred(NamedTuple):
    """A path that this user may not read or, on the way to making what is missing, not write; and whose it is."""

    path: Path
    owner: str
    is_read: bool


def _barred(directory: Path) -> _Barred | None:
    """The first path from the root to a cache's folder, or in it, that bars this user."""
    folders = [*reversed(directory.parents), directory]
    for path in folders:
        if not path.exists():
            return None if may(path.parent, os.W_OK) else _Barred(path.parent, _owner(path.parent), False)
        if not may(path, os.X_OK):
            return _Barred(path, _owner(path), True)
    files = [path for end in DATABASE_SUFFIXES if (path := directory / (DATABASE + end)).exists()]
    for mode in (os.R_OK, os.W_OK):
        for path in (directory, *files):
            if not may(path, mode):
                return _Barred(path, _owner(path), mode == os.R_OK)
    return None


def may(path: Path, mode: int) -> bool:
    """Whether this user has a right, by the ids that files are opened with."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _owner(path: Path) -> str:
    """The name of a path's owner, or its number."""
    number = path.stat().st_uid
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return f"user {number}"


def strays(directory: Path, known: set[object]) -> list[Path]:
    """Value files without a row, old enough that no writer can still be at work on them."""
    limit = time.time() - STRAY_AGE
    found = []
    with suppress(FileNotFoundError), os.scandir(directory) as items:
        for item in items:
            if item.name in known or not _NAME.fullmatch(item.name):
                continue
            with suppress(FileNotFoundError):
                if item.stat(follow_symlinks=False).st_mtime < limit:
                    found.append(directory / item.name)
    return sorted(found)


def wipe(directory: Path) -> int:
    """Delete the database and all value files, whoever uses them. Returns how many values there were."""
    values = [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    for path in [*values, *(directory / (DATABASE + suffix) for suffix in DATABASE_SUFFIXES)]:
        remove(path)
    return len(values)
