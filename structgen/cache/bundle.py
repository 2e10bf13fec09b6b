"""`BundleFront`: an archive that is mapped where it lies, by any number of processes, and never written.

A container image carries it. What lies in it is found by the manifest, which is read once. The digest of a key and
its value is checked when that is looked up, unless whoever asks checks as much: an index has a checksum, and says
which definition and vocabulary it is of. Its content is checked by whoever asked, as that of any value.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from ..errors import CacheError, FormatError
from . import archive, folder
from .audit import Problem, check_value
from .entry import Entry, Tag, check_key
from .front import Front


class BundleFront(Front):
    """The values of one archive.

    Parameters
    ----------
    path:
        The file, or a link to it.

    Raises
    ------
    FormatError
        For a file that is no archive, or is cut off.
    CacheError
        For one that other users can write: who cuts it short while it is mapped ends the process.
    OSError
        If it cannot be read.
    """

    is_read_only: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        descriptor, status = folder.open_value(os.path.realpath(path))
        try:
            if not status.st_size:
                raise FormatError("the bundle is empty", where=str(path), remedy="Write it again.")
            mapped = folder.map_file(descriptor, status.st_size)
        finally:
            os.close(descriptor)
        self._modified = max(0.0, status.st_mtime)
        self._members = archive.members(mapped, str(path))
        self._data = memoryview(mapped)

    def look_up(self, key: str, *, names_itself: bool = False) -> memoryview | None:
        """A value, with its digest checked; None, and a warning, for one that is damaged."""
        member = self._members.get(key) if names_itself else None
        if member is not None:  # hashing takes longer than all else that is done here
            return archive.place_of(self._data, member)
        return self._checked(key)

    def _checked(self, key: str) -> memoryview | None:
        try:
            return self.load(key)
        except FormatError as error:
            self.warn(error, 6)
            return None

    def remedy(self, reason: Exception) -> str:
        """What to do where it does not work."""
        return "Write the bundle again."

    def load(self, key: str) -> memoryview | None:
        """The same. Raises `FormatError`."""
        member = self._members.get(check_key(key))
        return None if member is None else archive.value_of(self._data, member, str(self.where))

    def put(self, key: str, value: bytes, tag: Tag, size_limit: int) -> list[Entry]:
        """Refuse it: raises `CacheError`."""
        raise _read_only(self.where)

    def discard(self, key: str) -> None:
        """Leave it: what cannot be used is there for nobody else either. Where it is damaged, that is said."""
        self._checked(key)

    def size_of(self, key: object) -> int | None:
        """Bytes of a value, as the manifest has them."""
        member = self._members.get(check_key(key))
        return None if member is None else member.item.nbytes

    def entries(self) -> list[Entry]:
        """All entries, stored and used when the file was written."""
        when = self._modified
        return [
            Entry(item.key, item.label, item.kind, item.nbytes, when, when, item.rank)
            for item, *_ in self._members.values()
        ]

    def verify(self, *, repair: bool = False) -> list[Problem]:
        """Every value that is damaged. Raises `CacheError` where that is to be repaired."""
        found = []
        for key in self._members:
            try:
                check_value(self.load(key), key)
            except FormatError as error:
                found.append(Problem("damaged", key, error.what))
        if found and repair:
            raise _read_only(self.where)
        return found

    def prune(self, max_bytes: int) -> list[Entry]:
        """Refuse it: raises `CacheError`."""
        raise _read_only(self.where)

    def clear(self) -> int:
        """Refuse it: raises `CacheError`."""
        raise _read_only(self.where)

    def __len__(self) -> int:
        return len(self._members)


def _read_only(path: Path) -> CacheError:
    return CacheError("a bundle is never changed", where=str(path), remedy="Write another one, or use a folder.")
