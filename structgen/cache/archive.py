"""A cache in one file, to carry from a build machine to a server.

An uncompressed tar file of ``manifest.json`` and then, in the manifest's order, ``values/000000.sgx`` and so
on. Any tar program can list and unpack it. Reading takes exactly what `write` writes: each header is parsed
on its own, the next member must be the one that the manifest announces, and nothing is ever unpacked to a
path. So there are no links, sparse files, extended headers or compressed data to be careful with.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..errors import CacheError, FormatError
from . import folder
from .entry import Entry, check_key, clean

_FORMAT = "structgen cache"
_VERSION = 1
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 64 << 20
_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True)
class Item:
    """One line of the manifest: as in `Entry`."""

    key: str
    label: str
    kind: str
    nbytes: int


def write(path: Path, entries: Sequence[Entry], load: Callable[[str], memoryview | None]) -> None:
    """Write an archive beside ``path``, then move it there. The same entries give the same bytes.

    Raises
    ------
    CacheError
        If an entry changed meanwhile, or there are too many of them.
    OSError
    """
    fields = [{"key": e.key, "kind": e.kind, "label": e.label, "nbytes": e.nbytes} for e in entries]
    manifest = json.dumps({"entries": fields, "format": _FORMAT, "version": _VERSION}).encode()
    if len(manifest) > _LARGEST_MANIFEST:
        raise CacheError(f"{len(entries)} entries are too many for one archive", remedy="Export them in parts.")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with tarfile.open(part, "x", format=tarfile.USTAR_FORMAT) as archive:
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
    """The entries of an archive, in its order; no value larger than ``limit`` bytes.

    Raises
    ------
    FormatError
        At the first byte that `write` would not have written. What was yielded before is as the archive says.
    OSError
    """
    with open(path, "rb") as file:
        manifest = _take(file, _MANIFEST, min(limit, _LARGEST_MANIFEST), str(path))
        for number, item in enumerate(_items(manifest, str(path))):
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
    try:
        fields = json.loads(manifest)
        if fields["format"] != _FORMAT or fields["version"] != _VERSION:
            raise _foreign(f"format {fields['format']!r}, version {fields['version']!r}", where)
        return [_item(entry) for entry in fields["entries"]]
    except (ValueError, TypeError, LookupError, RecursionError, CacheError) as error:
        raise _foreign(f"the manifest is not one of an export: {error}", where) from error


def _item(fields: dict[str, Any]) -> Item:
    return Item(check_key(fields["key"]), clean(fields["label"]), clean(fields["kind"]), int(fields["nbytes"]))


def _foreign(what: str, where: str) -> FormatError:
    return FormatError(f"not an archive of a structgen cache: {what}", where=where, remedy="Export it again.")
