"""`Vocabulary`: the bytes of every token id, which ids end a text, and how wide a model's logits are.

Indexes are compiled for the bytes alone. EOS ids, special tokens and the width of the logits are added when a mask is
written, so one index, under one cache key, serves every engine that has the tokenizer.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, VocabularyError
from ..storage import columns
from ..storage.columns import Column, Columns, Field, Sizes
from ..storage.container import Buffer, pack, unpack
from ..system.arguments import check_type, checked_token, integer
from ..system.digest import blake2b
from ..system.memo import Memo
from ..system.properties import cached_property
from ..system.sizes import held_bytes
from ..system.types import Foreign, JsonMap, Sections
from .token_table import MAX_SIZE, MAX_TOKEN_BYTES, TokenTable

if TYPE_CHECKING:
    from .trie import Trie

#: Bytes of rows that indexes of one vocabulary share.
_MOST_SHARED = 256 << 20
#: The sections and meta fields of the file format (see docs/internals/format.md).
SECTIONS = Columns(
    Column("token_offsets", "u4", rows=("size", 1), starts="bytes", widest=MAX_TOKEN_BYTES),
    Column("token_bytes", "u1", rows="bytes"),
)
FIELDS = (Field("eos_ids", list, of=int, below="size"), Field("special_tokens", dict, of=int, below="size"))

#: What to do about anything else in the place of a vocabulary.
_REMEDY = "Read one from the tokenizer: Vocabulary.from_transformers(tokenizer), .from_pretrained(name)."

#: By identity.
_alive: weakref.WeakValueDictionary[str, Vocabulary] = weakref.WeakValueDictionary()


class _Derived:
    """Tables derived from the bytes of tokens alone, shared by all vocabularies of one fingerprint."""

    __slots__ = ("__weakref__", "base_rows", "for_walks", "shared_rows", "trie")

    def __init__(self) -> None:
        self.trie: Trie | None = None
        self.for_walks: dict[str, Foreign] = {}
        self.shared_rows: Memo[bytes, Foreign] = Memo(_MOST_SHARED, _bytes_of)
        self.base_rows: Foreign = None


_derived: weakref.WeakValueDictionary[str, _Derived] = weakref.WeakValueDictionary()


class Vocabulary:
    """The token bytes of one tokenizer, with the ids that end a text.

    Make one with `from_pretrained`, `from_transformers`, `from_tekken`, `from_tiktoken`, `from_gguf` or
    `from_bytes`. It is immutable and can be shared by threads.

    Several ids may have the same bytes. Special tokens have no bytes, so no mask allows them, unless a definition
    names them. The exception is EOS ids: a mask allows them exactly where a text may end. An index belongs to all
    vocabularies with the same `fingerprint`. Neither EOS ids nor ids without bytes at the end (padded logits) are
    part of it: see `with_eos_ids` and `with_size`.

    A vocabulary can be pickled, without ``encode``. In a process that already holds it, unpickling returns the
    existing object.

    Parameters
    ----------
    offsets:
        ``uint32[size + 1]``. Token ``i`` is ``blob[offsets[i]:offsets[i + 1]]``; empty for a special token.
    blob:
        ``uint8[...]``: the bytes of all tokens, one after another.
    eos_ids:
        The ids that end a text, each ``0 <= id < size``. They must have no bytes of their own.
    special_tokens:
        Names of ids without bytes, such as ``{"<|eot_id|>": 128009}``. Not part of the fingerprint.
    encode:
        A function that splits a text into token ids, without special tokens around it. `Guide.forced_tokens` needs
        it.

    Raises
    ------
    VocabularyError
        For arrays or ids that do not fit together.
    """

    def __init__(
        self,
        offsets: NDArray[np.uint32],
        blob: NDArray[np.uint8],
        eos_ids: Iterable[int],
        special_tokens: Mapping[str, int] | None = None,
        encode: Callable[[str], Sequence[int]] | None = None,
    ) -> None:
        self.offsets = offsets
        self.blob = blob
        self.size = len(offsets) - 1
        self.eos_ids = tuple(sorted(_ids(eos_ids, "an EOS id")))
        self.special_tokens = _named(special_tokens)
        self.encode = encode
        self._check()
        self.bytes = blob.tobytes()
        self._derived = _derived.setdefault(self.fingerprint, _Derived())
        _alive.setdefault(self.identity, self)

    def _check(self) -> None:
        if not 0 < self.size <= MAX_SIZE:
            raise VocabularyError(f"a vocabulary has 1 to {MAX_SIZE:,} token ids, this one has {self.size:,}")
        lengths = np.diff(self.offsets.astype(np.int64))
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.blob) or np.any(lengths < 0):
            raise VocabularyError("the token offsets do not partition the token bytes")
        if np.any(lengths > MAX_TOKEN_BYTES):
            longest = int(lengths.argmax())
            raise VocabularyError(f"token {longest} has {lengths[longest]:,} bytes, the limit is {MAX_TOKEN_BYTES:,}")
        self._check_ids("EOS", self.eos_ids)
        self._check_ids("special token", self.special_tokens.values())
        if not len(self.blob):
            raise VocabularyError("no token has any bytes")

    def _check_ids(self, name: str, ids: Iterable[int]) -> None:
        for i in ids:
            if not 0 <= i < self.size:
                raise VocabularyError(f"{name} id {i} is outside 0..{self.size - 1}")
            if self.offsets[i] != self.offsets[i + 1]:
                raise VocabularyError(f"{name} id {i} has bytes of its own")

    # -- constructors ----------------------------------------------------------------------------------

    @classmethod
    def bytewise(cls) -> Vocabulary:
        """Return the vocabulary of single bytes: ids 0 to 255 are the bytes, 256 is the EOS id."""
        return cls.from_bytes([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])

    @classmethod
    def from_bytes(
        cls,
        tokens: Sequence[bytes | None] | Mapping[int, bytes | None],
        eos_ids: Iterable[int],
        *,
        special_tokens: Mapping[str, int] | None = None,
        size: int | None = None,
        encode: Callable[[str], Sequence[int]] | None = None,
    ) -> Vocabulary:
        """Build a vocabulary from the bytes of each id.

        Parameters
        ----------
        tokens:
            A sequence indexed by token id, or a mapping from id to bytes. ``None`` and ``b""`` mean no bytes.
        eos_ids:
            The ids that end a text. Bytes that ``tokens`` gives them are dropped.
        special_tokens:
            Names of ids without bytes. Bytes that ``tokens`` gives these ids are dropped.
        size:
            Number of ids, for instance the width of a model's padded logits. Default: the largest id plus one.
            Special tokens at or above ``size`` are left out, because the model cannot produce them.
        encode:
            A function that splits a text into token ids, without special tokens around it. It is not saved in
            files.

        Raises
        ------
        VocabularyError
            For ids that are not integers, negative or too large; for tokens that are not bytes; for an id at or
            above ``size`` that has bytes or ends a text.
        """
        pairs = tokens.items() if isinstance(tokens, Mapping) else enumerate(tokens)
        size = None if size is None else integer(size, "size", VocabularyError)
        by_id = {integer(i, "a token id", VocabularyError): token for i, token in pairs if token}
        eos = _ids(eos_ids, "an EOS id")
        specials = {name: i for name, i in _named(special_tokens).items() if size is None or i < size}
        for i in eos.union(specials.values()):
            by_id.pop(i, None)
        for i, token in by_id.items():
            if not isinstance(token, bytes):
                raise VocabularyError(f"token {i} is {type(token).__name__}, expected bytes or None")
        ids = eos.union(by_id, specials.values())
        if ids and (min(ids) < 0 or max(ids) >= MAX_SIZE):
            raise VocabularyError(f"token ids run from {min(ids)} to {max(ids)}, expected 0 to at most {MAX_SIZE - 1}")
        needed = max(ids, default=-1) + 1
        if size is None:
            size = needed if isinstance(tokens, Mapping) else max(needed, len(tokens))
        elif size < needed:
            raise VocabularyError(
                f"size={size} leaves out token id {needed - 1}, which has bytes or ends a text",
                remedy="Pass the width of the model's logits, or leave size= out.",
            )
        if size > MAX_SIZE:
            raise VocabularyError(f"a vocabulary has at most {MAX_SIZE:,} token ids, got size={size:,}")
        by_position = [by_id.get(i) or b"" for i in range(size)]
        offsets = np.zeros(size + 1, np.uint32)
        np.cumsum(np.fromiter(map(len, by_position), np.int64, size), out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(by_position), np.uint8), eos, specials, encode)

    @classmethod
    def from_table(cls, table: TokenTable) -> Vocabulary:
        """What a reader found. Raises `VocabularyError`."""
        return cls.from_bytes(
            table.tokens, table.eos_ids, special_tokens=table.special_tokens, size=table.size, encode=table.encode
        )

    @classmethod
    def from_transformers(
        cls, tokenizer: Foreign, *, eos_ids: Iterable[int] | None = None, size: int | None = None
    ) -> Vocabulary:
        """Read a transformers tokenizer, or a bare ``tokenizers.Tokenizer``.

        The result is checked on a few texts: its bytes must spell exactly what the tokenizer encodes.

        Parameters
        ----------
        tokenizer:
            A tokenizer of transformers (fast, slow with a SentencePiece model, or backed by mistral-common), or a
            ``tokenizers.Tokenizer``, which needs ``eos_ids``.
        eos_ids:
            The ids that end a text. Default: the tokenizer's EOS token and ``eos_token_id`` of the model's
            ``generation_config.json`` (without that file, of ``config.json``).
        size:
            Width of the model's logits. Default: ``vocab_size`` of ``config.json``, unless an id at or above it has
            bytes or ends a text.

        Raises
        ------
        VocabularyError
            For a tokenizer whose bytes cannot be known exactly, such as WordPiece, and where no EOS id is found.
        """
        from .huggingface import read_transformers

        return cls.from_table(read_transformers(tokenizer, eos_ids=eos_ids, size=size))

    @classmethod
    def from_pretrained(cls, name_or_path: str | os.PathLike[str], **kwargs: Foreign) -> Vocabulary:
        """Read a model's tokenizer from a folder, or from the model hub through transformers.

        A folder with a ``tokenizer.json`` or ``tekken.json`` is read without transformers, which is much faster.
        Code from the folder or the hub runs only with ``trust_remote_code=True``.

        Parameters
        ----------
        name_or_path:
            A folder, or a name on the model hub.
        kwargs:
            ``eos_ids`` and ``size``, as in `from_transformers`. Other options go to
            ``transformers.AutoTokenizer.from_pretrained``, such as ``revision``, ``token`` and
            ``local_files_only``.

        Raises
        ------
        ArgumentError
            For an unknown option.
        VocabularyError
            Where nothing can be loaded, for a tokenizer whose bytes cannot be known exactly, and where no EOS id is
            found.
        """
        from .huggingface import read_pretrained

        return cls.from_table(read_pretrained(name_or_path, **kwargs))

    @classmethod
    def from_tekken(cls, path: str | os.PathLike[str] | None = None) -> Vocabulary:
        """Read a ``tekken.json`` file of a Mistral model. The text ends at ``</s>``.

        Parameters
        ----------
        path:
            The file. None: the newest one that the installed mistral-common package ships.

        Raises
        ------
        VocabularyError
            For a missing file, or one that is not a tekken file.
        """
        from .tekken import read_tekken

        return cls.from_table(read_tekken(path))

    @classmethod
    def from_tiktoken(cls, encoding: Foreign, *, eos_ids: Iterable[int] | None = None) -> Vocabulary:
        """Read a tiktoken encoding.

        Parameters
        ----------
        encoding:
            A ``tiktoken.Encoding``, or the name of one such as ``"o200k_base"``, which tiktoken downloads once.
        eos_ids:
            The ids that end a text. Default: ``<|endoftext|>``. Chat models end a turn with other ids as well.

        Raises
        ------
        VocabularyError
            For an unknown name, and where no EOS id is given or found.
        """
        from .tiktoken import read_tiktoken

        return cls.from_table(read_tiktoken(encoding, eos_ids=eos_ids))

    @classmethod
    def from_gguf(
        cls, path: str | os.PathLike[str], *, eos_ids: Iterable[int] | None = None, size: int | None = None
    ) -> Vocabulary:
        """Read the tokenizer in a GGUF file's metadata. The tensors are not read.

        Parameters
        ----------
        path:
            The file; of a split model the first one.
        eos_ids:
            The ids that end a text. Default: those at which llama.cpp stops, which are the ``eos``, ``eot`` and
            ``eom`` ids of the metadata and tokens with well-known names.
        size:
            Number of ids, as in `from_bytes`.

        Raises
        ------
        VocabularyError
            For a file that is not GGUF or is cut short, for an unknown kind of tokenizer, and where no EOS id is
            found.
        """
        from .gguf import read_gguf

        return cls.from_table(read_gguf(path, eos_ids=eos_ids, size=size))

    # -- reading ---------------------------------------------------------------------------------------

    @property
    def words(self) -> int:
        """Number of int32 words in a bitmask of this vocabulary: ``ceil(size / 32)``."""
        return -(-self.size // 32)

    @cached_property
    def spelled(self) -> int:
        """One more than the last id that has bytes: ids from here on are in no row of an index."""
        return int(np.searchsorted(self.offsets, self.offsets[-1]))

    @property
    def row_words(self) -> int:
        """Number of int32 words in a row of an index: ``ceil(spelled / 32)``."""
        return -(-self.spelled // 32)

    @cached_property
    def known(self) -> int:
        """One more than the last id that has bytes or a name: those from here on pad the logits."""
        return 1 + max(self.spelled - 1, *self.special_tokens.values(), 0)

    @cached_property
    def least_words(self) -> int:
        """Number of int32 words of the narrowest bitmask that has a bit for each id that may be allowed."""
        return -(-max(self.known, *(i + 1 for i in self.eos_ids), 0) // 32)

    @property
    def nbytes(self) -> int:
        """Bytes in memory now: tokens, their prefix tree and the rows that indexes share. ``encode`` is not
        counted.
        """
        return held_bytes(self, without=self.encode)

    def __len__(self) -> int:
        return self.size

    def token(self, token_id: int) -> bytes | None:
        """Return the bytes of one id, or None for a special token.

        Parameters
        ----------
        token_id:
            ``0 <= token_id < size``.

        Raises
        ------
        TokenIdError
            For an id outside the vocabulary.
        """
        if type(token_id) is not int or not 0 <= token_id < self.size:
            token_id = checked_token(token_id, self.size)
        return self.bytes[self.offsets[token_id] : self.offsets[token_id + 1]] or None

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits: BLAKE2b of every token's bytes, up to the last id that has any."""
        digest = blake2b(digest_size=16, person=b"structgen-vocab")
        digest.update(np.ascontiguousarray(self.offsets[: self.spelled + 1], dtype="<u4").data)
        digest.update(self.bytes)
        return digest.hexdigest()

    @cached_property
    def identity(self) -> str:
        """32 hex digits: BLAKE2b of the fingerprint, the size, the EOS ids and the special tokens."""
        digest = blake2b(digest_size=16, person=b"structgen-vocab")
        digest.update(repr((self.fingerprint, self.size, self.eos_ids)).encode())
        digest.update(repr(sorted(self.special_tokens.items(), key=repr)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @cached_property
    def eos_row(self) -> NDArray[np.int32]:
        """The bitmask with the EOS ids alone: read-only ``int32[words]``."""
        row = np.zeros(self.words, np.uint32)
        for i in self.eos_ids:
            row[i >> 5] |= np.uint32(1 << (i & 31))
        row.flags.writeable = False
        return row.view(np.int32)

    @cached_property
    def single_bytes(self) -> NDArray[np.bool_]:
        """``bool[256]``: the bytes that are a token by themselves."""
        return np.array(self.byte_ids) >= 0

    @cached_property
    def byte_ids(self) -> list[int]:
        """For each byte the first id of the token that is that byte alone, -1 where there is none."""
        single = np.flatnonzero(np.diff(self.offsets.astype(np.int64)) == 1)[::-1]
        found = np.full(256, -1, np.int64)
        found[self.blob[self.offsets[single]]] = single
        ids: list[int] = found.tolist()
        return ids

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest token, the depth of the `trie`, which is not built for that."""
        return int(np.diff(self.offsets).max(initial=0))

    @cached_property
    def is_bytewise(self) -> bool:
        """Whether every byte of every token is a token by itself, as byte-level vocabularies have it."""
        return bool(self.single_bytes[self.blob].all())

    @property
    def trie(self) -> Trie:
        """The flattened prefix tree of all tokens, built on first use."""
        trie = self._derived.trie
        if trie is None:
            from .trie import Trie

            trie = self._derived.trie = Trie.build(self.offsets[: self.spelled + 1], self.blob)
        return trie

    @property
    def for_walks(self) -> dict[str, Foreign]:
        """What walks of the trie need beside it, by name."""
        return self._derived.for_walks

    @property
    def shared_rows(self) -> Memo[bytes, Foreign]:
        """Rows that depend on the tokens and a string's automaton alone; see
        `structgen.runtime.pushdown.partial_masks`."""
        return self._derived.shared_rows

    @property
    def base_rows(self) -> Foreign:
        """Those that nearly every schema needs, kept as they are stored; see `structgen.base_rows`."""
        return self._derived.base_rows

    @base_rows.setter
    def base_rows(self, rows: Foreign) -> None:
        self._derived.base_rows = rows

    def __repr__(self) -> str:
        return f"<Vocabulary {self.size:,} ids, EOS {list(self.eos_ids)}, {self.fingerprint[:8]}>"

    # -- the same tokens for another model ---------------------------------------------------------------

    def with_eos_ids(self, eos_ids: Iterable[int]) -> Vocabulary:
        """Return a vocabulary with the same tokens and other EOS ids. It shares its indexes with this one.

        Parameters
        ----------
        eos_ids:
            The ids that end a text.

        Raises
        ------
        VocabularyError
            For an id outside the vocabulary, or one that has bytes.
        """
        ends = tuple(sorted(_ids(eos_ids, "an EOS id")))
        if ends == self.eos_ids:
            return self
        found = Vocabulary.__new__(Vocabulary)
        own = "eos_row", "identity", "least_words"
        found.__dict__ = {name: each for name, each in self.__dict__.items() if name not in own}
        found.eos_ids = ends
        found._check_ids("EOS", ends)
        return _alive.setdefault(found.identity, found)

    def first_difference(self, other: Vocabulary) -> str:
        """The first token that differs, for people, or how many ids there are."""
        many = min(self.size, other.size)
        lengths = (np.diff(each.offsets[: many + 1].astype(np.int64)) for each in (self, other))
        first = int(np.append(np.flatnonzero(np.not_equal(*lengths)), many)[0])  # before it tokens lie alike
        end = int(other.offsets[first])
        bytes_apart = np.flatnonzero(self.blob[:end] != other.blob[:end])
        if len(bytes_apart):
            first = int(np.searchsorted(other.offsets, bytes_apart[0], "right")) - 1
        if first < many:
            return f"id {first}: {self.token(first)!r} there, {other.token(first)!r} here"
        return f"its {self.size:,} ids, here {other.size:,}"

    def masks_alike(self, other: Vocabulary) -> bool:
        """Whether indexes have the same masks over both: the same tokens, EOS ids and width."""
        own, theirs = ((each.fingerprint, each.size, each.eos_ids, each.known) for each in (self, other))
        return self is other or own == theirs

    def with_size(self, size: int) -> Vocabulary:
        """Return a vocabulary with the same tokens for logits of another width.

        It shares its indexes with this one, unless ids with bytes are left out. A model whose logits are narrower
        than its tokenizer cannot produce the ids at the end: those lose their bytes and their names.

        Parameters
        ----------
        size:
            The width of the logits, in ids.

        Raises
        ------
        VocabularyError
            For a size below 1, above the limit, or one that leaves no EOS id.
        """
        size = integer(size, "size", VocabularyError)
        if not 0 < size <= MAX_SIZE:
            raise VocabularyError(f"a vocabulary has 1 to {MAX_SIZE:,} token ids, got size={size:,}")
        offsets = self.offsets[: size + 1]
        offsets = np.append(offsets, np.full(size + 1 - len(offsets), offsets[-1], offsets.dtype))
        eos_ids = [i for i in self.eos_ids if i < size]
        if self.eos_ids and not eos_ids:
            raise VocabularyError(
                f"logits of width {size} have none of the EOS ids {list(self.eos_ids)}",
                remedy="Pass the ids at which this model ends a text as eos_ids=.",
            )
        named = {name: i for name, i in self.special_tokens.items() if i < size}
        return Vocabulary(offsets, self.blob[: offsets[-1]], eos_ids, named, self.encode)

    def without(self, ids: Iterable[int]) -> Vocabulary:
        """Return a vocabulary in which some ids have no bytes, so that no mask allows them. Its indexes are its own.

        Use it for ids that a model was never trained to write, such as ``<unused32>``.

        Parameters
        ----------
        ids:
            The ids to leave out.

        Raises
        ------
        VocabularyError
            For an id outside the vocabulary, and where no token with bytes is left.
        """
        lengths = np.diff(self.offsets.astype(np.int64))
        left_out = _ids(ids, "a token id")
        if left_out and not 0 <= min(left_out) <= max(left_out) < self.size:
            raise VocabularyError(f"token ids are 0 to {self.size - 1}, got {min(left_out)} to {max(left_out)}")
        keep = np.ones(self.size, np.bool_)
        keep[list(left_out)] = False
        blob = self.blob[np.repeat(keep, lengths)]
        offsets = np.append(0, np.cumsum(lengths * keep)).astype(np.uint32)
        named = {name: i for name, i in self.special_tokens.items() if i not in left_out}
        return Vocabulary(offsets, blob, set(self.eos_ids) - left_out, named, self.encode)

    # -- keeping ---------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self.identity, self.to_bytes())

    def __copy__(self) -> Vocabulary:
        return self  # it never changes

    def __deepcopy__(self, _: object) -> Vocabulary:
        return self

    def to_bytes(self) -> bytes:
        """Serialise the vocabulary in structgen's container format, without ``encode``."""
        meta = {"kind": "vocabulary", "eos_ids": list(self.eos_ids), "special_tokens": self.special_tokens}
        return pack(meta, {"token_offsets": self.offsets, "token_bytes": self.blob})

    @classmethod
    def from_buffer(cls, buffer: Buffer, where: str = "vocabulary") -> Vocabulary:
        """Read and validate the output of `to_bytes`.

        Parameters
        ----------
        buffer:
            The bytes, or any object with a buffer.
        where:
            A name of the source, for errors.

        Raises
        ------
        FormatError
            For a buffer that is not a valid vocabulary.
        """
        meta, sections = unpack(buffer, where)
        return cls.from_sections(meta, sections, where)

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, where: str) -> Vocabulary:
        """Read the sections ``token_offsets`` and ``token_bytes`` of an unpacked file, validated."""
        sizes: Sizes = {}
        offsets, blob = columns.read(sections, SECTIONS, sizes, where).values()
        eos, specials = columns.read_meta(meta, FIELDS, sizes, where).values()
        try:
            return cls(offsets, blob, eos, specials)
        except VocabularyError as error:
            raise FormatError(f"the stored vocabulary is not valid: {error}", where=where) from error

    @staticmethod
    def alive_with(fingerprint: str) -> Vocabulary | None:
        """A vocabulary with this fingerprint that this process already holds, if any."""
        return next((each for each in list(_alive.values()) if each.fingerprint == fingerprint), None)

    @staticmethod
    def alive(identity: str) -> Vocabulary | None:
        """The vocabulary with this identity that this process already holds, if any."""
        return _alive.get(identity)


def check_vocabulary(value: object) -> None:
    """Raise `ArgumentError` for a tokenizer, or anything else, in the place of a vocabulary."""
    check_type(value, Vocabulary, _REMEDY)


def _unpickled(identity: str, data: bytes) -> Vocabulary:
    return Vocabulary.alive(identity) or Vocabulary.from_buffer(data, "a pickled vocabulary")


def _bytes_of(shared: Foreign) -> int:
    """What a `structgen.runtime.pushdown.shared_masks.SharedMasks` takes, or that there is none."""
    return 100 if shared is None else int(shared.nbytes)


def _ids(ids: Iterable[int], name: str) -> set[int]:
    try:
        each = iter(ids)
    except TypeError:
        raise VocabularyError(f"{name} is one of several, got {type(ids).__name__}", remedy="Pass a list.") from None
    return {integer(i, name, VocabularyError) for i in each}


def _named(special_tokens: Mapping[str, int] | None) -> dict[str, int]:
    return {
        name: integer(i, "the id of a special token", VocabularyError) for name, i in (special_tokens or {}).items()
    }
