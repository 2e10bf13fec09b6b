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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CacheError
from . import folder

#: diskcache's number for "the value is the bytes of a file". (Not imported: readers do without diskcache.)
MODE_BINARY = 2

_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}")
_LONGEST_LABEL = 200
_LONGEST_TAG = 4096

#: A time in the year 5138, which every calendar can show.
_LATEST = 1e11


class Row(NamedTuple):
    """A row of the table ``Cache`` as it stands there: diskcache's columns, of any type."""

    rowid: Any
    key: Any
    raw: Any
    store_time: Any
    tag: Any
    size: Any
    mode: Any
    filename: Any


#: The columns of a `Row`, for a SELECT.
COLUMNS = ", ".join(Row._fields)


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
    """

    key: str
    label: str
    kind: str
    nbytes: int
    stored: float
    used: float


def check_key(key: object) -> str:
    """The key, if it is 1 to 200 of ``A-Z a-z 0-9 . _ -``. Raises `CacheError`."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise CacheError(
            f"{reprlib.repr(key)} is not a cache key",
            remedy="A key is 1 to 200 of the characters A-Z a-z 0-9 . _ -",
        )
    return key


def encode_tag(label: str, kind: str) -> str:
    """Label and kind as the JSON that goes into diskcache's tag column."""
    return json.dumps({"kind": clean(kind), "label": clean(label)})


def decode_tag(tag: object) -> tuple[str, str]:
    """Label and kind of a tag; empty where it is not one that `encode_tag` wrote."""
    if not isinstance(tag, str) or len(tag) > _LONGEST_TAG:
        return "", ""
    try:
        fields = json.loads(tag)
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(fields, dict):
        return "", ""
    return clean(fields.get("label")), clean(fields.get("kind"))


def clean(text: object) -> str:
    """At most 200 characters of a text, unprintable ones replaced; empty for what is not a text."""
    if not isinstance(text, str):
        return ""
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:_LONGEST_LABEL])


def check_place(directory: Path, mode: object, name: object, size: object) -> tuple[Path, int]:
    """Path and size in bytes of the value file that a row names. Raises `CacheError` for a foreign row."""
    if mode != MODE_BINARY:
        raise CacheError(f"a row has mode {reprlib.repr(mode)}, structgen stores mode 2 only", where=str(directory))
    if not isinstance(size, int) or size < 0:
        raise CacheError(f"a row has size {reprlib.repr(size)}", where=str(directory))
    return folder.value_path(directory, name), size


def check_row(directory: Path, row: Row) -> tuple[Entry, Path]:
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
    label, kind = decode_tag(row.tag)
    # Image builds set files back to 1970; storing counts as a use. And nothing is used in the future.
    used = max(stored, min(folder.status(path).st_mtime, time.time()))
    return Entry(key, label, kind, nbytes, stored, used), path
