"""The bytes of an object, and its name in the store.

::

    offset  size  field
         0     8  magic       89 53 47 4F 0D 0A 1A 0A   ("\\x89SGO\\r\\n\\x1a\\n")
         8     4  header      uint32, bytes of the header, little-endian as all
        12     4  signature   uint32, bytes of the signature: 0, or 72
        16     h  header      a `Header` as JSON: the key, what the value is, its size, its BLAKE2b-256
      16+h     s  signature   8 bytes that name the key, 64 of Ed25519 over the header's bytes
    16+h+s        value       as it lies in the cache's folder

The same value has the same bytes, whoever writes it and whenever: two builders cannot disagree. The name holds the
two versions on which the bytes depend, and the key, which is a digest of definition, vocabulary and structgen's
version.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Annotated

from ...errors import CacheError, FormatError
from ...storage.container import FORMAT_VERSION
from ...storage.records import read_text, written
from ...system.digest import blake2b
from ..entry import Tag, check_key, clean
from .signatures import SIGNATURE_BYTES, Keys

MAGIC = b"\x89SGO\r\n\x1a\n"
OBJECT_VERSION = 1

#: What all names in a store begin with.
FOLDER = f"structgen-{OBJECT_VERSION}.{FORMAT_VERSION}"

#: Bytes that hold every head: the prelude, the header and the signature.
LARGEST_HEAD = 8 << 10

_SUFFIX = ".sgo"
_PRELUDE = struct.Struct("<8sII")
_DIGEST_BYTES = 32
_Size = Annotated[int, (0, (1 << 62) - 1)]


@dataclass(frozen=True)
class Header:
    """What an object says of its value; see `structgen.cache.entry.Entry`."""

    key: str
    label: str
    kind: str
    rank: _Size
    nbytes: _Size
    digest: bytes

    @property
    def tag(self) -> Tag:
        """What the cache's folder keeps of it."""
        return Tag(self.label, self.kind, self.rank)


def name_of(key: str) -> str:
    """The name of a key's object, below the store's prefix."""
    return f"{FOLDER}/{blake2b(key.encode(), digest_size=1).hexdigest()}/{key}{_SUFFIX}"


def key_of_name(name: str) -> str | None:
    """The key whose object has a name; None for a name that is none of ours."""
    key = name.rpartition("/")[2].removesuffix(_SUFFIX)
    try:
        return key if name_of(check_key(key)) == name else None
    except CacheError:
        return None


def pack(key: str, value: bytes, tag: Tag, keys: Keys) -> bytes:
    """An object, signed where there is a key that signs."""
    digest = blake2b(value, digest_size=_DIGEST_BYTES).digest()
    header = Header(key, clean(tag.label), clean(tag.kind), tag.rank, len(value), digest)
    head = json.dumps(written(header), sort_keys=True).encode()
    signature = keys.sign(head)
    return b"".join([_PRELUDE.pack(MAGIC, len(head), len(signature)), head, signature, value])


def read_head(data: memoryview, key: str, keys: Keys) -> tuple[Header, int]:
    """What an object says of its value, and where that begins. ``data`` may end behind the head.

    Raises `FormatError` for anything that `pack` did not write for this key, and where ``keys`` does not take it.
    """
    where = f"object of {key}"
    if len(data) < _PRELUDE.size or bytes(data[:8]) != MAGIC:
        raise FormatError("not an object of structgen's: the magic number is missing", where=where)
    _, header_bytes, signature_bytes = _PRELUDE.unpack_from(data)
    start = _PRELUDE.size + header_bytes
    end = start + signature_bytes
    if signature_bytes not in (0, SIGNATURE_BYTES) or end > min(len(data), LARGEST_HEAD):
        raise FormatError("the object's head is cut off, or too large", where=where)
    head = bytes(data[_PRELUDE.size : start])
    keys.check(head, bytes(data[start:end]), where)
    header = read_text(Header, head, where)
    if header.key != key:
        raise FormatError("the object is that of another key", where=where)
    if header.tag != Tag(clean(header.label), clean(header.kind), header.rank):
        raise FormatError("the object's label is not as it was written", where=where)
    return header, end


def unpack(data: memoryview, key: str, keys: Keys) -> tuple[Header, bytes]:
    """The header and the value of an object, whose digest is right. Raises as `read_head`."""
    header, start = read_head(data, key, keys)
    where = f"object of {key}"
    if len(data) - start != header.nbytes:
        raise FormatError(f"the value has {len(data) - start} bytes, the header says {header.nbytes}", where=where)
    if blake2b(data[start:], digest_size=_DIGEST_BYTES).digest() != header.digest:
        raise FormatError("the value's digest is not the header's", where=where)
    return header, bytes(data[start:])
