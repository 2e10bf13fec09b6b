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
tables that are used where they lie. `unpack` is linear in the file's size, trusts nothing, and either says where
sections are in the buffer or raises `FormatError`. What they may hold is up to `structgen.storage.columns`, which
copies those that something is indexed with. docs/internals/format.md describes them all.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..errors import FormatError
from ..kernels import plans
from ..system.digest import blake2b
from ..system.types import Array, DType, JsonMap, JsonValue, Sections

MAGIC = b"\x89SGX\r\n\x1a\n"
FORMAT_VERSION = 4
BYTE_ORDER = 0x01020304
ALIGNMENT = 16

_HEADER = struct.Struct("<8sIIQII")
_ENTRY = struct.Struct("<16s4sIII")
_KIND = struct.Struct("<16s4sI")  # the beginning of an entry, and the whole as NumPy has it
_PLACED = np.dtype([("kind", f"V{_KIND.size}"), ("offset", "<u4"), ("size", "<u4")])
_DTYPES: dict[bytes, DType] = {
    b"u1": np.dtype("<u1"),
    b"u2": np.dtype("<u2"),
    b"u4": np.dtype("<u4"),
    b"i4": np.dtype("<i4"),
}

#: The dtypes of sections by the numbers that kernels have for them.
DTYPE_OF: dict[int, DType] = dict(zip((plans.U1, plans.U2, plans.U4, plans.I4), _DTYPES.values(), strict=True))
_CODE_OF = {dtype: code for code, dtype in DTYPE_OF.items()}
_STORED = {name.ljust(4, b"\0"): _CODE_OF[dtype] for name, dtype in _DTYPES.items()}
_META = "meta"

#: Columns of where a section is; and what sections lie in that have arrays already.
_PLACE, _NOTHING = plans.F_TARGET, np.zeros(0, np.uint8)

#: Files of more sections than this are not among those whose kinds of sections are remembered.
_MANY = 1 << 7

_JSON = json.JSONDecoder()
_REBUILD = "Delete the file and compile it again."

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


class SectionTable(Mapping[str, Array]):
    """The sections of a file by name, each made an array once somebody asks for it.

    Parameters
    ----------
    names:
        Their numbers by name.
    places:
        ``int64[sections, 4]`` or more columns: where they are, as `structgen.kernels.columns` has it.
    data:
        What they lie in, ``uint8[*]``, if that is one array.
    arrays:
        The arrays, or those of them that there are already.
    """

    def __init__(
        self,
        names: Mapping[str, int],
        places: NDArray[np.int64],
        data: NDArray[np.uint8],
        arrays: dict[str, Array] | None = None,
    ) -> None:
        self._names = names
        self._places = np.zeros((len(places) + 1, plans.SECTION_FOUND), np.int64)
        self._places[:-1, : places.shape[1]] = places  # behind them is one that is missing
        self._data = data
        self._arrays = {} if arrays is None else arrays

    @classmethod
    def of(cls, sections: Sections) -> SectionTable:
        """The same of arrays that lie anywhere."""
        if isinstance(sections, cls):
            return sections
        arrays = {name: np.ascontiguousarray(array) for name, array in sections.items()}
        places = [
            (kernels.address(each), each.nbytes, _CODE_OF.get(each.dtype, 0), each.shape[1] if each.ndim > 1 else 0)
            for each in arrays.values()
        ]
        numbers = {name: number for number, name in enumerate(arrays)}
        return cls(numbers, np.array(places, np.int64).reshape(-1, _PLACE), _NOTHING, arrays)

    def places(self, names: Iterable[str]) -> NDArray[np.int64]:
        """Where some of them are, ``int64[names, SECTION_FOUND]``: zeros for one that is missing."""
        numbers = self._names
        found: NDArray[np.int64] = self._places[[numbers.get(name, -1) for name in names]]
        return found

    def within(self, prefix: str) -> SectionTable:
        """Those whose names begin with a prefix, by the rest of the name."""
        names = {name.removeprefix(prefix): at for name, at in self._names.items() if name.startswith(prefix)}
        arrays = {name.removeprefix(prefix): each for name, each in self._arrays.items() if name.startswith(prefix)}
        return SectionTable(names, self._places[:-1], self._data, arrays)

    def __getitem__(self, name: str) -> Array:
        found = self._arrays.get(name)
        if found is None:
            address, nbytes, code, width = self._places[self._names[name], :_PLACE].tolist()
            dtype, begin = DTYPE_OF[code], address - kernels.address(self._data)
            rows = nbytes // (dtype.itemsize * max(1, width))
            found = self._arrays[name] = np.ndarray((rows, width) if width else rows, dtype, self._data, begin)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def unpack(buffer: Buffer, where: str = "index") -> tuple[dict[str, JsonValue], SectionTable]:
    """Check a packed file and return its meta mapping and its sections, where they lie.

    Raises `FormatError` naming ``where`` for anything that `pack` of this format version did not write.
    """
    view = memoryview(buffer).cast("B").toreadonly()
    magic, version, order, length, count, checksum = (
        _HEADER.unpack_from(view) if len(view) >= _HEADER.size else (b"", 0, 0, 0, 0, 0)
    )
    if magic != MAGIC:
        raise FormatError("not a structgen file: the magic number is missing", where=where)
    if order != BYTE_ORDER:
        wrong = f"byte order word is {order:#010x}, expected {BYTE_ORDER:#010x}"
    elif version != FORMAT_VERSION:
        wrong = f"format version is {version}, this structgen reads {FORMAT_VERSION}"
    elif length != len(view):
        wrong = f"the file has {len(view)} bytes, its header says {length}"
    elif (found := zlib.crc32(view[_HEADER.size :])) != checksum:
        wrong = f"checksum is {found:08x}, the header says {checksum:08x}"
    elif _HEADER.size + _ENTRY.size * count > len(view):
        wrong = f"{count} sections do not fit into {len(view)} bytes"
    else:
        return _unpacked(view, count, where)
    raise FormatError(wrong, where=where, remedy=_REBUILD)


def _unpacked(view: memoryview, count: int, where: str) -> tuple[dict[str, JsonValue], SectionTable]:
    """The meta mapping and the sections of a file that has so many."""
    table = np.frombuffer(view, _PLACED, count, _HEADER.size)
    kinds = table["kind"].tobytes()
    names, at_meta, dtypes, row_sizes = _kinds(kinds) if count <= _MANY else _kinds.__wrapped__(kinds)
    data, places = np.frombuffer(view, np.uint8), np.empty((count, _PLACE), np.int64)
    places[:, 0], places[:, 1], places[:, 2:] = table["offset"], table["size"], dtypes
    places[:, 0] *= ALIGNMENT
    begins, sizes = places[:, 0], places[:, 1]
    outside = (begins < _HEADER.size + _ENTRY.size * count) | (begins + sizes > len(view)) | (row_sizes == 0)
    uneven = sizes % np.maximum(row_sizes, 1) != 0
    if outside.any() or uneven.any():
        name = next((name for name, at in names.items() if outside[at] or uneven[at]), _META)
        wrong = f"section {name!r} lies outside the file, has no known dtype, or ends within a row"
        raise FormatError(wrong, where=where, remedy=_REBUILD)
    if len(names) < count - (at_meta is not None):
        raise FormatError("a section appears twice", where=where, remedy=_REBUILD)
    if at_meta is None:
        raise FormatError("the meta section is missing", where=where, remedy=_REBUILD)
    try:
        begin, size = places[at_meta, :2].tolist()
        text = str(view[begin : begin + size], "utf-8")
        meta, end = _JSON.raw_decode(text)
        if end != len(text):
            raise ValueError(text[end:])
    except (ValueError, RecursionError) as error:
        raise FormatError("the meta section is not JSON", where=where, remedy=_REBUILD) from error
    if not isinstance(meta, dict):
        raise FormatError("the meta section is not a JSON object", where=where, remedy=_REBUILD)
    places[:, 0] += kernels.address(data)
    return meta, SectionTable(names, places, data)


@lru_cache(1 << 8)
def _kinds(kinds: bytes) -> tuple[dict[str, int], int | None, NDArray[np.int64], NDArray[np.int64]]:
    """Sections of the beginnings of entries: numbers by name, that of `_META`, dtypes and columns, bytes of a row.

    Bytes of a row are 0 where the dtype is not known.
    """
    names: dict[str, int] = {}
    dtypes, row_sizes = [], []
    for number, (name, dtype, columns) in enumerate(_KIND.iter_unpack(kinds)):
        names[name.rstrip(b"\0").decode("ascii", "replace")] = number
        code = _STORED.get(dtype, 0)
        dtypes.append((code, columns))
        row_sizes.append(DTYPE_OF[code].itemsize * (columns or 1) if code else 0)
    return names, names.pop(_META, None), np.array(dtypes, np.int64).reshape(-1, 2), np.array(row_sizes, np.int64)


def _align(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def smallest(array: Array) -> Array:
    """The same non-negative integers in the narrowest of u1, u2, u4."""
    top = int(array.max()) if array.size else 0
    if top < 1 << 8:
        return array.astype(np.uint8)
    return array.astype(np.uint16 if top < 1 << 16 else np.uint32)
