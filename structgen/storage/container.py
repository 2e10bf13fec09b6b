"""The file format: named, aligned, little-endian arrays behind a checked header.

::

    offset  size  field
         0     8  magic       89 53 47 58 0D 0A 1A 0A   ("\\x89SGX\\r\\n\\x1a\\n", as PNG does it)
         8     4  version     uint32, FORMAT_VERSION
        12     4  byte order  uint32, 0x01020304 in the file's order
        16     8  length      uint64, bytes of the whole file
        24     4  sections    uint32
        28     4  checksum    uint32, CRC-32 of every byte after this header
        32  32*n  table       name[16] (ASCII, NUL padded), dtype[4], columns uint32, offset u32, length u32
                              (offset in units of 16 bytes, length in bytes)
       ...        the sections, each aligned to 16 bytes

The inspiration is the serialised DFAs of Rust's regex-automata: a label, an endianness word, a version, then
tables that are used where they lie. `unpack` is linear in the file's size, trusts nothing, and either returns
views into the buffer or raises `FormatError`. What the sections may hold is up to `structgen.storage.columns`, which
copies those that something is indexed with. docs/internals/format.md describes them all.
"""

from __future__ import annotations

import json
import struct
import zlib
from functools import lru_cache

import numpy as np

from ..errors import FormatError
from ..system.digest import blake2b
from ..system.types import Array, DType, JsonMap, JsonValue, Sections

MAGIC = b"\x89SGX\r\n\x1a\n"
FORMAT_VERSION = 4
BYTE_ORDER = 0x01020304
ALIGNMENT = 16

_HEADER = struct.Struct("<8sIIQII")
_ENTRY = struct.Struct("<16s4sIII")
_PLACED = struct.Struct("<24sII")  # the same: what a section is, and where
_DTYPES: dict[bytes, DType] = {
    b"u1": np.dtype("<u1"),
    b"u2": np.dtype("<u2"),
    b"u4": np.dtype("<u4"),
    b"i4": np.dtype("<i4"),
}
_STORED = {code.ljust(4, b"\0"): dtype for code, dtype in _DTYPES.items()}
_META = "meta"
_JSON = json.JSONDecoder()
_REBUILD = "Delete the file and compile it again."

#: Files of at most so many bytes are copied as a whole, others section by section where they are read.
_MOST_COPIED = 1 << 18

Buffer = bytes | bytearray | memoryview


def key_of(person: str, *parts: str | bytes) -> str:
    """The key of an entry in the cache: a hash of what its bytes depend on."""
    whole = [part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part for part in parts]
    return blake2b(b"\0".join([*whole, b""]), digest_size=20, person=person.encode()).hexdigest()


def pack(meta: JsonMap, sections: Sections) -> bytes:
    """Serialise a JSON-able mapping and 1-D or 2-D arrays of u1, u2, u4 or i4."""
    payloads = [(_META, np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8))]
    payloads += [(name, np.ascontiguousarray(array)) for name, array in sections.items()]
    offset = _align(_HEADER.size + _ENTRY.size * len(payloads))
    table, chunks = bytearray(), bytearray()
    for name, array in payloads:
        code = array.dtype.str[1:].encode()
        if code not in _DTYPES or array.ndim not in (1, 2) or len(name) > 16:
            raise ValueError(f"section {name!r} cannot be stored: dtype {array.dtype}, {array.ndim} dimensions")
        columns = array.shape[1] if array.ndim == 2 else 0
        table += _ENTRY.pack(name.encode("ascii"), code, columns, (offset + len(chunks)) // ALIGNMENT, array.nbytes)
        chunks += array.astype(_DTYPES[code], copy=False).tobytes()
        chunks += bytes(-len(chunks) % ALIGNMENT)
    body = bytes(table) + bytes(offset - _HEADER.size - len(table)) + bytes(chunks)
    header = _HEADER.pack(MAGIC, FORMAT_VERSION, BYTE_ORDER, _HEADER.size + len(body), len(payloads), zlib.crc32(body))
    return header + body


def unpack(buffer: Buffer, where: str = "index") -> tuple[dict[str, JsonValue], dict[str, Array]]:
    """Check a packed file and return its meta mapping and its arrays.

    They are views of a copy of the reader's own, or read-only ones of the buffer, where that is large.

    Raises `FormatError` naming ``where`` for anything that `pack` of this format version did not write.
    """
    view = memoryview(buffer).cast("B").toreadonly()
    if len(view) <= _MOST_COPIED:
        view = memoryview(bytearray(view))
    magic, version, order, length, count, checksum = (
        _HEADER.unpack_from(view) if len(view) >= _HEADER.size else (b"", 0, 0, 0, 0, 0)
    )
    if magic != MAGIC:
        raise FormatError("not a structgen file: the magic number is missing", where=where)
    if order != BYTE_ORDER:
        raise FormatError(
            f"byte order word is {order:#010x}, expected {BYTE_ORDER:#010x}", where=where, remedy=_REBUILD
        )
    if version != FORMAT_VERSION:
        raise FormatError(
            f"format version is {version}, this structgen reads {FORMAT_VERSION}", where=where, remedy=_REBUILD
        )
    if length != len(view):
        raise FormatError(f"the file has {len(view)} bytes, its header says {length}", where=where, remedy=_REBUILD)
    found = zlib.crc32(view[_HEADER.size :])
    if found != checksum:
        raise FormatError(f"checksum is {found:08x}, the header says {checksum:08x}", where=where, remedy=_REBUILD)
    end_of_table = _HEADER.size + _ENTRY.size * count
    if end_of_table > len(view):
        raise FormatError(f"{count} sections do not fit into {len(view)} bytes", where=where, remedy=_REBUILD)
    sections = _sections(view, end_of_table, where)
    try:
        text = str(sections.pop(_META).data, "utf-8")
        meta, end = _JSON.raw_decode(text)
        if end != len(text):
            raise ValueError(text[end:])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FormatError("the meta section is not JSON", where=where, remedy=_REBUILD) from error
    if not isinstance(meta, dict):
        raise FormatError("the meta section is not a JSON object", where=where, remedy=_REBUILD)
    return meta, sections


def _sections(view: memoryview, end_of_table: int, where: str) -> dict[str, Array]:
    sections: dict[str, Array] = {}
    end, ndarray = len(view), np.ndarray
    for kind, offset, nbytes in _PLACED.iter_unpack(view[_HEADER.size : end_of_table]):
        name, dtype, columns, row = _kind(kind)
        start = offset * ALIGNMENT
        if dtype is None or start < end_of_table or start + nbytes > end:
            raise FormatError(
                f"section {name!r} lies outside the file or has no known dtype", where=where, remedy=_REBUILD
            )
        if nbytes % row:
            raise FormatError(
                f"section {name!r} has {nbytes} bytes, not a multiple of {row}", where=where, remedy=_REBUILD
            )
        if name in sections:
            raise FormatError(f"section {name!r} appears twice", where=where, remedy=_REBUILD)
        sections[name] = ndarray((nbytes // row, columns) if columns else nbytes // row, dtype, view, start)
    return sections


@lru_cache(1 << 10)
def _kind(entry: bytes) -> tuple[str, DType | None, int, int]:
    """A section's name, dtype, columns and bytes of a row, of the first 24 bytes of its entry."""
    columns = int.from_bytes(entry[20:], "little")
    dtype = _STORED.get(entry[16:20])
    name = entry[:16].rstrip(b"\0").decode("ascii", "replace")
    return name, dtype, columns, 0 if dtype is None else dtype.itemsize * (columns or 1)


def _align(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def smallest(array: Array) -> Array:
    """The same non-negative integers in the narrowest of u1, u2, u4."""
    top = int(array.max()) if array.size else 0
    if top < 1 << 8:
        return array.astype(np.uint8)
    return array.astype(np.uint16 if top < 1 << 16 else np.uint32)
