"""`BytesDisk`: diskcache's seam for serialisation, for bytes and nothing else.

diskcache's own `Disk` unpickles the values, and the keys, that the database calls pickles (CVE-2025-69872),
and opens and deletes whatever path a row names. Here a key is a short ASCII text, a value is the bytes of a
file, and a file's name is random and stays in the folder. Anything else in a row is a `CacheError`; nothing
is interpreted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

import diskcache

from ..errors import CacheError
from . import folder
from .entry import MODE_BINARY, check_key, check_place


class BytesDisk(diskcache.Disk):  # type: ignore[misc]
    """Text keys and bytes values, each value in a file of its own.

    Every way in and out of `diskcache.Disk` is replaced, and so are its settings: they come from the
    database.
    """

    # Positional only: a planted setting named "disk_directory" arrives as a keyword of that name.
    def __init__(self, directory: str, /, **_settings: object) -> None:
        super().__init__(directory, min_file_size=0)
        self._folder = Path(directory)

    def put(self, key: object) -> tuple[str, bool]:
        """Columns ``key`` and ``raw`` of a key. Raises `CacheError`."""
        return check_key(key), True

    def get(self, key: object, raw: object) -> str:
        """The key of a row's columns. Raises `CacheError`."""
        if raw != 1:
            raise CacheError("a row's key is a pickle", where=str(self._folder))
        return check_key(key)

    def store(self, value: object, read: bool, key: object = diskcache.UNKNOWN) -> tuple[int, int, str, None]:
        """Write a value's file and close it; the row comes after.

        Returns the columns size, mode, filename and value. Raises `CacheError` for anything but bytes, and
        `OSError`; then no file is left.
        """
        if read or not isinstance(value, bytes):
            raise CacheError(f"a value of type {type(value).__name__}, the cache keeps bytes only")
        name, path = self.filename()
        folder.write(path, value)
        return len(value), MODE_BINARY, name, None

    def fetch(self, mode: object, filename: object, value: object, read: bool) -> bytes | IO[bytes]:
        """A row's value, or with ``read`` its file, opened. Raises `CacheError` and `OSError`."""
        path, _ = check_place(self._folder, mode, filename, 0)
        file = open(folder.open_value(path)[0], "rb")  # noqa: SIM115
        if read:
            return file
        with file:
            return file.read()

    def filename(self, key: object = diskcache.UNKNOWN, value: object = diskcache.UNKNOWN) -> tuple[str, str]:
        """A new file's name and path."""
        name = folder.new_name()
        return name, os.fspath(self._folder / name)

    def remove(self, file_path: object) -> None:
        """Delete a value's file; leave alone what does not have the name of one."""
        try:
            path = folder.value_path(self._folder, file_path)
        except CacheError:
            return
        folder.remove(path)
