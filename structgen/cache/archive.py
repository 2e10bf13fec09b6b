"""A cache in one file, to carry from a build machine to a server.

An uncompressed tar file of ``manifest.jsonl`` and then, in the manifest's order, ``values/000000.sgx`` and so
on. A tar program can list and unpack it. Each line of the manifest is a JSON object: the first says what the file
is, every other one is an `Item`. Reading takes exactly what `write` writes: each line and each header is parsed on
its own, the next member must be the one that the manifest announces, and nothing is ever unpacked to a path. So
there are no links, sparse files, extended headers or compressed data to be careful with, and what is refused is
refused at the first line that is not as it should be.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

from ..errors import CacheError, FormatError
from ..system.types import JsonMap
from . import folder
from .entry import Entry, check_key, clean, is_size

_HEADER = {"format": "structgen cache", "version": 2}
_MANIFEST = "manifest.jsonl"
_LARGEST_MANIFEST = 16 << 20
_LONGEST_LINE = 8 << 10
_BLOCK = tarfile.BLOCKSIZE
_TAR = tarfile.USTAR_FORMAT


@dataclass(frozen=True)
class Item:
    """One line of the manifest: as in `Entry`."""

    key: str
    label: str
    kind: str
    nbytes: int
    rank: int


_FIELDS = [field.name for field in fields(Item)]


def write(path: Path, entries: Sequence[Entry], load: Callable[[str], memoryview | None]) -> None:
    """Write an archive beside ``path``, for this user only, then move it there.

    The same entries give the same bytes.

    Raises
    ------
    CacheError
        If an entry changed meanwhile, or there are too many of them.
    OSError
    """
    lines = [_HEADER, *({name: getattr(entry, name) for name in _FIELDS} for entry in entries)]
    manifest = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines).encode()
    if len(manifest) > _LARGEST_MANIFEST:
        raise CacheError(f"{len(entries)} entries are too many for one archive", remedy="Export them in parts.")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w", format=_TAR) as archive:
            _add(archive, _MANIFEST, manifest)
            for number, entry in enumerate(entries):
                value = load(entry.key)
                if value is None or len(value) != entry.nbytes:
                    raise CacheError(f"{entry.key} changed while it was exported", remedy="Export again.")
                _add(archive, _member(number), value)
        os.replace(part, path)
    except BaseException:
        folder.remove(part)
        raise


def read(path: Path, limit: int) -> Iterator[tuple[Item, bytes]]:
    """The entries of an archive, in its order.

    Raises
    ------
    CacheError
        Before anything is yielded, if the values have more than ``limit`` bytes.
    FormatError
        At the first byte that `write` would not have written. What was yielded before is as the archive says.
    OSError
    """
    with open(path, "rb") as file:
        items = _items(_take(file, _MANIFEST, _LARGEST_MANIFEST, str(path)), str(path))
        total = sum(item.nbytes for item in items)
        if total > limit:
            raise CacheError(
                f"the archive holds {total} bytes, the cache at most {limit}",
                where=str(path),
                remedy="Export fewer entries, or give the cache a larger size_limit.",
            )
        for number, item in enumerate(items):
            value = _take(file, _member(number), limit, str(path))
            if len(value) != item.nbytes:
                raise _foreign(f"{item.key} has {len(value)} bytes, the manifest says {item.nbytes}", str(path))
            yield item, value


def _member(number: int) -> str:
    return f"values/{number:06d}.sgx"


def _add(archive: tarfile.TarFile, name: str, data: bytes | memoryview) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def _take(file: IO[bytes], name: str, limit: int, where: str) -> bytes:
    """The bytes of the next member, which must have this name and be a plain file."""
    try:
        info = tarfile.TarInfo.frombuf(file.read(_BLOCK), "ascii", "strict")
    except (tarfile.HeaderError, ValueError) as error:
        raise _foreign(f"no header for {name}", where) from error
    if info.type != tarfile.REGTYPE or info.name != name:
        raise _foreign(f"found {info.name!r} of type {info.type!r} instead of the file {name}", where)
    # Ask for no more than is there: a header of 512 bytes may announce terabytes.
    if not 0 <= info.size <= min(limit, os.fstat(file.fileno()).st_size - file.tell()):
        raise _foreign(f"{name} cannot have {info.size} bytes", where)
    data = file.read(info.size)
    file.seek(-info.size % _BLOCK, os.SEEK_CUR)
    return data


def _items(manifest: bytes, where: str) -> list[Item]:
    lines = io.BytesIO(manifest)
    if _parse(lines, where) != _HEADER:
        raise _foreign("the manifest begins otherwise", where)
    items: list[Item] = []
    while lines.tell() < len(manifest):
        found = _parse(lines, where)
        try:
            item = Item(**found)
            texts = item.label, item.kind
            numbers = item.nbytes, item.rank
            if texts != tuple(map(clean, texts)) or not all(map(is_size, numbers)):
                raise ValueError("a field is not as it was exported")
            check_key(item.key)
        except (TypeError, ValueError, CacheError) as error:
            raise _foreign(f"line {len(items) + 2} of the manifest: {error}", where) from error
        items.append(item)
    return items


def _parse(lines: IO[bytes], where: str) -> JsonMap:
    """The object on the next line."""
    line = lines.readline(_LONGEST_LINE)
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _foreign("a line of the manifest is no object", where)
    return found


def _foreign(what: str, where: str) -> FormatError:
    return FormatError(f"not an archive of a structgen cache: {what}", where=where, remedy="Export it again.")
