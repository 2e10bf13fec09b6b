"""Reads the vocabulary in the metadata of a GGUF file, llama.cpp's format for models.

The keys are those of the GGUF specification (``docs/gguf.md`` in ggml, versions 2 and 3): ``tokenizer.ggml.model``
names the kind, ``.tokens`` holds each id's piece, ``.token_type`` says whether it is text, a byte, or has no text.
Two kinds are exact token by token, and only they are accepted:

- ``llama``, SentencePiece: ``▁`` is a space, pieces of type *byte* are spelled ``<0x0A>``;
- ``gpt2``, byte-level BPE: each character of a piece is a byte (`byte_level`).

llama.cpp ends a text at more ids than the metadata names: at tokens of certain names as well
(``llama_vocab::impl::load`` in its ``llama-vocab.cpp``). So they end a text here, and have no bytes.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path

from ..errors import VocabularyError
from ..system.types import Foreign, JsonMap
from . import byte_level
from .token_table import END_NAMES, MAX_SIZE, SPECIAL_ANYWAY, TokenTable

#: ``llama_token_type`` in llama.h.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

_BYTE_PIECE = re.compile("<0x([0-9A-Fa-f]{2})>")

#: The fixed-size value types of GGUF, by number.
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9

_PREFIX = "tokenizer.ggml."


def read_gguf(
    path: str | os.PathLike[str], *, eos_ids: Iterable[int] | None = None, size: int | None = None
) -> TokenTable:
    """Read a GGUF file, of a split model the first one; its tensors are not touched.

    Parameters
    ----------
    path:
        The file.
    eos_ids:
        The ids that end a text; by default those at which llama.cpp ends one: the ``eos``, ``eot`` and ``eom``
        ids of the metadata, and tokens of the names in `END_NAMES`.
    size:
        Number of ids, see `Vocabulary.from_bytes`.

    Raises
    ------
    VocabularyError
        For a file that is no GGUF or is cut short, for another kind of tokenizer, for pieces that their kind
        cannot spell, and where there is no EOS id.
    """
    where = str(path)
    try:
        metadata = _Reader(Path(path)).metadata()
    except OSError as error:
        raise VocabularyError(f"the file cannot be read: {error}", where=where) from error
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise VocabularyError(
            f"the GGUF metadata is damaged: {error}", where=where, remedy="Fetch or convert the model again."
        ) from error
    return assemble(metadata, eos_ids, size, where)


def assemble(metadata: JsonMap, eos_ids: Iterable[int] | None, size: int | None, where: str) -> TokenTable:
    """The tokens of parsed metadata, whose keys go without ``tokenizer.ggml.``."""
    kind, pieces, types = (metadata.get(key) for key in ("model", "tokens", "token_type"))
    if kind not in ("llama", "gpt2"):
        raise VocabularyError(
            f"the token bytes of a GGUF tokenizer of the kind {kind!r} are not known",
            where=where,
            remedy="Known are 'llama' and 'gpt2'. If you know the bytes of its tokens, use Vocabulary.from_bytes.",
        )
    if (
        not isinstance(pieces, list) or not isinstance(types, list) or len(pieces) != len(types)
        or not all(isinstance(piece, str) for piece in pieces) or not all(type(type_) is int for type_ in types)
    ):  # fmt: skip
        raise VocabularyError("the GGUF metadata lack tokens, or the type of each token", where=where)
    ends = {i for i, piece in enumerate(pieces) if piece in END_NAMES}
    ends |= {i for key in ("eos", "eot", "eom") if type(i := metadata.get(f"{key}_token_id")) is int}
    named = {pieces[i] for i in ends if 0 <= i < len(pieces)}
    if not named.isdisjoint(("<|call|>", "<|calls|>")) and not named.isdisjoint(("<|return|>", "<|flush|>")):
        ends = {i for i in ends if not 0 <= i < len(pieces) or pieces[i] != "<|end|>"}  # there it only ends a part
    eos = set(ends if eos_ids is None else eos_ids)
    if not eos:
        raise VocabularyError(
            "the GGUF metadata name no EOS token", where=where, remedy="Pass the ids that end a text as eos_ids=."
        )
    tokens: dict[int, bytes] = {}
    specials: dict[str, int] = {}
    for i, (piece, type_) in enumerate(zip(pieces, types, strict=True)):
        if type_ not in (NORMAL, USER_DEFINED, BYTE) or i in ends or piece in SPECIAL_ANYWAY:
            specials.setdefault(_encoded(piece).decode("utf-8", "replace"), i)
        else:
            tokens[i] = _bytes_of(kind, piece, type_, f"{where}, token {i}")
    return TokenTable(tokens, specials, eos, len(pieces) if size is None else size)


def _bytes_of(kind: str, piece: str, type_: int, where: str) -> bytes:
    if type_ == USER_DEFINED:
        return _encoded(piece)
    if type_ == BYTE:
        if match := _BYTE_PIECE.fullmatch(piece):
            return bytes([int(match[1], 16)])
        raise VocabularyError(f"{piece!r} is typed as a byte, and does not name one", where=where)
    if kind == "llama":
        return _encoded(piece.replace("▁", " "))
    spelled = byte_level.piece_bytes(piece)
    if spelled is None:
        raise VocabularyError(f"{piece!r} is not spelled in the byte-level alphabet", where=where)
    return spelled


def _encoded(piece: str) -> bytes:
    """The bytes of a piece as they stood in the file, UTF-8 or not."""
    return piece.encode("utf-8", "surrogateescape")


class _Reader:
    """The key-value pairs at the beginning of a GGUF file, read one after another."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._left = path.stat().st_size

    def metadata(self) -> dict[str, Foreign]:
        """The pairs whose keys begin with ``tokenizer.ggml.``, without that."""
        with self._file:
            if self._take(4) != b"GGUF":
                raise ValueError("the file does not begin with GGUF")
            version = self._number("I")
            if version not in (2, 3):
                raise ValueError(f"version {version} of the format, known are 2 and 3 (little-endian)")
            self._number("Q")  # tensors
            found: dict[str, Foreign] = {}
            for _ in range(self._count(12)):
                key, type_ = self._string().decode(), self._number("I")
                value = self._value(type_, keep=key.startswith(_PREFIX))
                if key.startswith(_PREFIX):
                    found[key.removeprefix(_PREFIX)] = value
            return found

    def _take(self, count: int, *, keep: bool = True) -> bytes:
        # Checked before anything is allocated: a damaged length may be any 64 bits.
        if count > self._left:
            raise ValueError(f"{count:,} bytes are announced, {self._left:,} are left")
        self._left -= count
        if keep:
            return self._file.read(count)
        self._file.seek(count, os.SEEK_CUR)
        return b""

    def _number(self, form: str) -> Foreign:
        return struct.unpack(f"<{form}", self._take(struct.calcsize(f"<{form}")))[0]

    def _count(self, each: int) -> int:
        """A number of things that follow, of so many bytes each at least."""
        count: int = self._number("Q")
        if count * each > self._left:
            raise ValueError(f"{count:,} entries are announced, {self._left:,} bytes are left")
        return count

    def _string(self, *, keep: bool = True) -> bytes:
        return self._take(self._number("Q"), keep=keep)

    def _value(self, type_: int, *, keep: bool) -> Foreign:
        """A value; or go past it, which may be an array of gigabytes."""
        if type_ == _STRING:
            return self._string(keep=keep).decode("utf-8", "surrogateescape")
        if type_ == _ARRAY:
            return self._array(self._number("I"), keep=keep)
        if type_ not in _FORMATS:
            raise ValueError(f"there is no value type {type_}")
        return self._number(_FORMATS[type_])

    def _array(self, type_: int, *, keep: bool) -> list[Foreign]:
        if type_ == _STRING:
            count = self._count(8)
            if keep and count > MAX_SIZE:
                raise ValueError(f"an array of {count:,} strings")
            strings = (self._string(keep=keep) for _ in range(count))
            return [string.decode("utf-8", "surrogateescape") for string in strings if keep]
        if type_ not in _FORMATS:
            raise ValueError(f"there is no array of value type {type_}")
        form = _FORMATS[type_]
        size = struct.calcsize(f"<{form}")
        data = self._take(self._count(size) * size, keep=keep)
        return list(struct.unpack(f"<{len(data) // size}{form}", data))
