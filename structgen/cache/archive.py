"""A cache in one file, to carry from a build machine to a server: to import there, or to map as it is (a bundle).

An uncompressed tar file of ``manifest.jsonl`` and then, in the manifest's order, ``values/000000.sgx`` and so
on. A tar program can list and unpack it. Each line of the manifest is a JSON object: the first says what the file
is, every other one is an `Item`. Reading takes exactly what `write` writes: each line and each header is parsed on
its own, the next member must be the one that the manifest announces, and nothing is ever unpacked to a path. So
there are no links, sparse files, extended headers or compressed data to be careful with, and what is refused is
refused at the first line that is not as it should be. Sizes tell where each member lies, so that one is found without
reading those before it; a digest in its line, over the line's other fields and the value, that it is the right one.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, NamedTuple

from ..errors import CacheError, FormatError
from ..system.digest import blake2b
from ..system.types import JsonMap
from . import folder
from .entry import Entry, Tag, check_key, clean, is_size

_HEADER = {"format": "structgen cache", "version": 3}
_MANIFEST = "manifest.jsonl"
_LARGEST_MANIFEST = 16 << 20
_LONGEST_LINE = 8 << 10
_BLOCK = tarfile.BLOCKSIZE
_TAR = tarfile.USTAR_FORMAT


@dataclass(frozen=True)
class Item:
    """One line of the manifest: as in `Entry`, and a BLAKE2b-256 in hexadecimal; see `_digest`."""

    key: str
    label: str
    kind: str
    nbytes: int
    rank: int
    digest: str

    @property
    def tag(self) -> Tag:
        """What a cache keeps beside the value."""
        return Tag(self.label, self.kind, self.rank)

    def check(self, value: bytes | memoryview, where: str) -> None:
        """Raise `FormatError` unless this is the value that the line is of."""
        if len(value) != self.nbytes:
            raise _foreign(f"{self.key} has {len(value)} bytes, the manifest says {self.nbytes}", where)
        if _digest(self, value) != self.digest:
            raise _foreign(f"{self.key} does not have the manifest's digest", where)


class Member(NamedTuple):
    """A line of the manifest, and where its member begins."""

    item: Item
    offset: int


_FIELDS = [field.name for field in fields(Item) if field.name != "digest"]


def _digest(described: Item | Entry, value: bytes | memoryview) -> str:
    """The digest of an entry's fields, a line each, and of its value behind them."""
    # Neither a key nor a text that was cleaned has a line break.
    fields = described.key, clean(described.label), clean(described.kind), str(described.nbytes), str(described.rank)
    digest = blake2b("\n".join([*fields, ""]).encode("utf-8", "surrogatepass"), digest_size=32)
    digest.update(value)
    return digest.hexdigest()


def write(path: Path, entries: Sequence[Entry], load: Callable[[str], memoryview | None]) -> None:
    """Write an archive beside ``path``, for this user only, then move it there.

    The same entries give the same bytes.

    Raises
    ------
    CacheError
        If an entry changed meanwhile, or there are too many of them.
    OSError
    """
    digests = [_digest(entry, _whole(entry, load)) for entry in entries]
    described = ({name: getattr(entry, name) for name in _FIELDS} for entry in entries)
    lines = [_HEADER, *({**each, "digest": digest} for each, digest in zip(described, digests, strict=True))]
    manifest = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines).encode()
    if len(manifest) > _LARGEST_MANIFEST:
        raise CacheError(f"{len(entries)} entries are too many for one archive", remedy="Export them in parts.")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w", format=_TAR) as archive:
            _add(archive, _MANIFEST, manifest)
            for number, entry in enumerate(entries):
                value = _whole(entry, load)
                if _digest(entry, value) != digests[number]:
                    raise _changed(entry)
                _add(archive, _name(number), value)
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
            value = _take(file, _name(number), limit, str(path))
            item.check(value, str(path))
            yield item, value


def members(data: mmap.mmap, where: str) -> dict[str, Member]:
    """Where the values of an archive lie, by key. Raises `FormatError` where the file cannot have them there."""
    items = _items(_take(data, _MANIFEST, _LARGEST_MANIFEST, where), where)
    found: dict[str, Member] = {}
    offset = data.tell()
    for item in items:
        if item.key in found:
            raise _foreign(f"{item.key} is there twice", where)
        found[item.key] = Member(item, offset)
        offset += _BLOCK + item.nbytes + -item.nbytes % _BLOCK
    if offset > len(data):
        raise _foreign(f"its values end at {offset}, the file at {len(data)}", where)
    return found


def value_of(data: memoryview, member: Member, where: str) -> memoryview:
    """The value of a member, if its digest is right, whatever its header says. Raises `FormatError`."""
    value = place_of(data, member)
    member.item.check(value, where)
    return value


def place_of(data: memoryview, member: Member) -> memoryview:
    """The bytes where the value of a member should be."""
    begin = member.offset + _BLOCK
    return data[begin : begin + member.item.nbytes]


def _whole(entry: Entry, load: Callable[[str], memoryview | None]) -> memoryview:
    value = load(entry.key)
    if value is None or len(value) != entry.nbytes:
        raise _changed(entry)
    return value


def _changed(entry: Entry) -> CacheError:
    return CacheError(f"{entry.key} changed while it was exported", remedy="Export again.")


def _name(number: int) -> str:
    return f"values/{number:06d}.sgx"


def _add(archive: tarfile.TarFile, name: str, data: bytes | memoryview) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def _take(file: IO[bytes] | mmap.mmap, name: str, limit: int, where: str) -> bytes:
    """The bytes of the next member, which must have this name and be a plain file."""
    size = _size(file.read(_BLOCK), name, where)
    begin = file.tell()
    # Ask for no more than is there: a header of 512 bytes may announce terabytes.
    file.seek(0, os.SEEK_END)
    end = file.tell()
    if not 0 <= size <= min(limit, end - begin):
        raise _foreign(f"{name} cannot have {size} bytes", where)
    file.seek(begin)
    data = file.read(size)
    file.seek(min(end, begin + size + -size % _BLOCK))
    return data


def _size(header: bytes, name: str, where: str) -> int:
    """Bytes of the member that a header announces: a plain file of this name."""
    try:
        info = tarfile.TarInfo.frombuf(header, "ascii", "strict")
    except (tarfile.HeaderError, ValueError) as error:
        raise _foreign(f"no header for {name}", where) from error
    if info.type != tarfile.REGTYPE or info.name != name:
        raise _foreign(f"found {info.name!r} of type {info.type!r} instead of the file {name}", where)
    return info.size


def _items(manifest: bytes, where: str) -> list[Item]:
    lines = io.BytesIO(manifest)
    if _parse(lines, where) != _HEADER:
        raise _foreign("the manifest begins otherwise", where)
    items: list[Item] = []
    while lines.tell() < len(manifest):
        found = _parse(lines, where)
        try:
            item = Item(**found)
            if not isinstance(item.digest, str):
                raise ValueError("the digest is no text")
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
