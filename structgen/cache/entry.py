"""One row of the database, believed only after it was checked.

A row is usable if diskcache's columns say: a text key (``raw`` is 1), a value in binary mode in a file of its
own, its size. Everything else, first of all mode 4 (a pickle), was not written by structgen and is refused
unread.
"""

from __future__ import annotations

import json
import re
import reprlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeGuard

from ..errors import CacheError
from . import folder

#: diskcache's number for "the value is the bytes of a file". (Not imported: readers do without diskcache.)
MODE_BINARY = 2

_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}")
_LONGEST_LABEL = 200
_LONGEST_TAG = 4096

#: The kinds of entries that belong to many indexes.
SHARED_KINDS = ("shared", "tables")

#: A time in the year 5138, which every calendar can show.
_LATEST = 1e11


class Row(NamedTuple):
    """A row of the table ``Cache`` as it stands there: diskcache's columns, of any type."""

    rowid: object
    key: object = None
    raw: object = None
    store_time: object = None
    tag: object = None
    size: object = None
    mode: object = None
    filename: object = None


def bounded(column: str) -> str:
    """A column, for a SELECT. A blob, which may be of any size and is none of ours, reads as NULL, unloaded."""
    return f"CASE typeof({column}) WHEN 'blob' THEN NULL ELSE {column} END"


#: The columns of a `Row`, for a SELECT.
COLUMNS = ", ".join(map(bounded, Row._fields))


@dataclass(frozen=True)
class Entry:
    """What the cache knows about one value.

    Parameters
    ----------
    key:
        The name it is stored under.
    label:
        Words for people, at most 200 printable characters; empty where none were given.
    kind:
        What the value is, such as ``"index"`` or ``"vocabulary"``; empty where it was not given.
    nbytes:
        Size of the value in bytes.
    stored:
        When it was put, in seconds since 1970.
    used:
        When it was last put or got, in seconds since 1970, at most a minute behind.
    rank:
        As it was put; 0 where it was not given.
    """

    key: str
    label: str
    kind: str
    nbytes: int
    stored: float
    used: float
    rank: int = 0


def check_key(key: object) -> str:
    """The key, if it is 1 to 200 of ``A-Z a-z 0-9 . _ -``. Raises `CacheError`."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise CacheError(
            f"{reprlib.repr(key)} is not a cache key", remedy="A key is 1 to 200 of the characters A-Z a-z 0-9 . _ -"
        )
    return key


def check_keys(keys: Iterable[str]) -> list[str]:
    """Keys, each once, in order. Raises `CacheError` for a malformed one, and for one in the place of several."""
    if isinstance(keys, str):  # whose letters are keys, too
        raise CacheError(f"keys are several, got {reprlib.repr(keys)}", remedy="Pass a list.")
    return [check_key(key) for key in dict.fromkeys(keys)]


class Tag(NamedTuple):
    """What diskcache's tag column holds, as JSON; see `Entry`."""

    label: str = ""
    kind: str = ""
    rank: int = 0

    def encode(self) -> str:
        """The JSON, with texts as `clean` leaves them."""
        return json.dumps({"kind": clean(self.kind), "label": clean(self.label), "rank": self.rank})

    @classmethod
    def decode(cls, tag: object) -> Tag:
        """The fields of a column; empty where it is not one that `encode` wrote."""
        if not isinstance(tag, str) or len(tag) > _LONGEST_TAG:
            return cls()
        try:
            fields = json.loads(tag)
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(fields, dict):
            return cls()
        rank = fields.get("rank")
        return cls(clean(fields.get("label")), clean(fields.get("kind")), rank if is_size(rank) else 0)


def is_size(value: object) -> TypeGuard[int]:
    """Whether this is a number of bytes, or of anything else that fits in 62 bits."""
    return type(value) is int and 0 <= value < 1 << 62


def clean(text: object) -> str:
    """At most 200 characters of a text, unprintable ones replaced; empty for what is not a text."""
    if not isinstance(text, str):
        return ""
    shown = text[:_LONGEST_LABEL]
    return shown if shown.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in shown)


def check_place(directory: Path, mode: object, name: object, size: object) -> tuple[str, int]:
    """Path and size in bytes of the value file that a row names. Raises `CacheError` for a foreign row."""
    if mode != MODE_BINARY:
        raise CacheError(f"a row has mode {reprlib.repr(mode)}, structgen stores mode 2 only", where=str(directory))
    if not is_size(size):
        raise CacheError(f"a row has size {reprlib.repr(size)}", where=str(directory))
    return folder.value_path(directory, name), size


def check_row(directory: Path, row: Row) -> tuple[Entry, str]:
    """The entry of a row, and its file.

    Raises
    ------
    CacheError
        If structgen cannot have written the row.
    OSError
        If its file is missing, or is no regular file.
    """
    key, stored = check_key(row.key), row.store_time
    if row.raw != 1 or not isinstance(stored, float) or not 0 <= stored <= _LATEST:
        raise CacheError(f"the row of {key!r} is not one of structgen's", where=str(directory))
    path, nbytes = check_place(directory, row.mode, row.filename, row.size)
    label, kind, rank = Tag.decode(row.tag)
    # Image builds set files back to 1970; storing counts as a use. And nothing is used in the future.
    used = max(stored, min(folder.status(path).st_mtime, time.time()))
    return Entry(key, label, kind, nbytes, stored, used, rank), path


def check_stored(directory: Path, row: Row) -> Entry:
    """The entry of a row whose file has the size that the row says. Raises as `check_row`."""
    entry, path = check_row(directory, row)
    if folder.status(path).st_size != entry.nbytes:
        raise CacheError(f"the file of {entry.key!r} does not have {entry.nbytes} bytes", where=str(directory))
    return entry


def evictable(
    directory: Path, rows: Sequence[Row], max_bytes: int, keep: str = ""
) -> tuple[list[Row], list[tuple[Row, Entry]]]:
    """What goes so that the entries that stay, ``keep`` among them, have at most ``max_bytes``.

    Rows that serve nobody: without a file of the size that they say, or not structgen's. And the rows of the entries
    used longest ago, that one first, with the entries.
    """
    useless, usable = [], []
    for row in rows:
        try:
            usable.append((row, check_stored(directory, row)))
        except (CacheError, OSError):
            useless.append(row)
    left = sum(entry.nbytes for _, entry in usable)
    victims = []
    for row, entry in sorted(usable, key=lambda item: (item[1].used, item[1].stored)):
        if left <= max_bytes:
            break
        if entry.key != keep:
            victims.append((row, entry))
            left -= entry.nbytes
    return useless, victims
