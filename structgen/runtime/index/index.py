"""`Index`: a definition compiled for one vocabulary."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, UnsupportedError, VocabularyMismatchError
from ...storage import columns
from ...storage.columns import Field
from ...storage.container import Buffer, pack, unpack
from ...system.arguments import check_type
from ...system.memo import Memo, memo
from ...system.properties import cached_property
from ...system.sizes import held_bytes
from ...system.types import Foreign, JsonMap, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..core.machine import CompiledMachine, Config, Distances, Match, Reader

if TYPE_CHECKING:
    from ..graphs.graph import Graph


@lru_cache(1 << 4)
def reader_of(kind: str) -> Reader | None:
    """What reads the sections of a kind of index, None for no known kind. The engine is imported when one is read."""
    if kind in ("regex", "fsm"):
        from ..automaton.machine import AutomatonMachine

        return AutomatonMachine.from_sections
    if kind in ("json_schema", "structural_tag"):
        from ..pushdown.distinct import from_sections

        return from_sections
    if kind == "gbnf":
        from ..pushdown.machine import PushdownMachine

        return PushdownMachine.from_sections
    if kind == "grammar":
        from ..grammar.machine import GrammarMachine

        return GrammarMachine.from_sections
    return None


#: The fields of every index's meta section.
FIELDS = (
    Field("kind", str),
    Field("definition", str),
    Field("vocabulary", str),
    Field("compile_seconds", float),
    Field("relaxations", list, of=str),
)

#: What an index remembers: prefixes, with their rows; rows near the end of a number of tokens; forced tokens; parts
#: of the definition that explain.
_MOST_PREFIXES, _MOST_ROWS, _MOST_FORCED, _MOST_EXPLAINED = 1 << 8, 1 << 10, 1 << 12, 1 << 4

#: Vocabularies of the same tokens that an index is remembered over; see `Index.over`.
_MOST_VOCABULARIES = 4

#: Characters of a definition in the title of its graph.
_TITLE = 100


class Index:
    """A definition compiled for one vocabulary, shared by any number of guides and threads.

    `structgen.compile` and `Index.load` make indexes. An index that was not compiled eagerly computes each missing
    mask on first use and keeps it.

    An index can be pickled, together with its vocabulary; indexes and guides of one pickle share both. Cached
    results and the cache are not pickled. A copy is the index itself.

    Parameters
    ----------
    kind:
        The definition's kind, such as ``"regex"``.
    definition:
        The definition's canonical text.
    machine:
        The compiled tables.
    origin:
        ``"compiled"``, ``"cache"`` or ``"file"``.
    compile_seconds:
        Wall-clock seconds that compiling took, if it was compiled now.
    relaxations:
        Approximations of a lenient compile, one line each. Empty for a regex.
    """

    #: The same index behind prefixes, from a configuration on; see `structgen.runtime.index.healing`.
    healed: Memo[tuple[bytes, Config | None], Index] = memo(_MOST_PREFIXES)
    #: Rows near the end of a number of tokens, as far as they are known; see `structgen.runtime.index.token_budget`.
    limited_rows: Memo[tuple[Config, int], NDArray[np.int32]] = memo(_MOST_ROWS)
    #: Tokens that must follow; see `structgen.runtime.guide.forced_tokens`.
    forced: Memo[object, tuple[int, ...]] = memo(_MOST_FORCED)
    #: What refusals are explained with; see `structgen.explanations.schemas.findings`.
    explanations: Memo[str, Foreign] = memo(_MOST_EXPLAINED)
    #: Literals that may follow, and ranges of other bytes; see `structgen.correction.candidates`.
    continuations: Memo[Config, tuple[tuple[str, ...], tuple[tuple[int, int], ...]]] = memo(_MOST_FORCED)
    _over: Memo[str, Index] = memo(_MOST_VOCABULARIES)

    def __init__(
        self,
        kind: str,
        definition: str,
        machine: CompiledMachine,
        *,
        origin: str = "compiled",
        compile_seconds: float = 0.0,
        relaxations: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.definition = definition
        #: What texts begin with, and the index of what follows; see `structgen.runtime.index.healing`.
        self.prefix: bytes = b""
        self.inner: Index | None = None
        self.machine = machine
        self.origin = origin
        self.compile_seconds = compile_seconds
        self.relaxations = relaxations
        self.vocabulary = machine.vocabulary

    # -- questions -------------------------------------------------------------------------------------

    @property
    def eos_row(self) -> NDArray[np.int32]:
        """The bitmask row of a finished text: the EOS ids alone; read-only ``int32[words]``."""
        return self.vocabulary.eos_row

    @property
    def vocabulary_fingerprint(self) -> str:
        """The fingerprint of the vocabulary that the index belongs to."""
        return self.vocabulary.fingerprint

    @property
    def states(self) -> int:
        """Number of automaton states."""
        return self.machine.states

    @property
    def row_count(self) -> int:
        """Number of distinct masks computed so far."""
        return len(self.machine.pool)

    @property
    def nbytes(self) -> int:
        """Bytes in memory now, with all cached results, without the vocabulary.

        Counting takes a millisecond or two, and seconds for a large grammar.
        """
        return held_bytes(self, shared=self.vocabulary, without=self.vocabulary.encode)

    @property
    def complete(self) -> bool:
        """Whether every mask is computed, so that no step will ever walk the vocabulary."""
        return self.machine.is_complete()

    @property
    def slow_steps(self) -> int:
        """Number of times that computing a mask took so long that other waiting threads were let through
        meanwhile.
        """
        return self.machine.slow_steps

    def match(self, data: bytes) -> Match:
        """How far a text, as UTF-8 bytes, goes along with the definition, and what could follow."""
        return self.machine.match(data)

    def graph(self, *, limit: int = 60) -> Graph:
        """Return the automaton as a picture, which notebooks and terminals can draw.

        Consecutive moves that spell one text are joined. The states nearest to the start are shown. For a grammar,
        the picture shows the parser.

        Parameters
        ----------
        limit:
            Number of states to show, from 1 to 2,000.

        Raises
        ------
        ArgumentError
            For a limit out of range.
        UnsupportedError
            For an index behind a prefix.
        """
        from ...definitions.canonical import as_written
        from ..graphs.drawing import graph_of

        title = re.sub(r"\s*\n\s*", " ", as_written(self.kind, self.definition).strip())
        title = title if len(title) <= _TITLE else f"{title[:_TITLE]}…"
        return graph_of(self.kind, self.machine.tables, self.vocabulary, title, limit=limit)

    def over(self, vocabulary: Vocabulary) -> Index:
        """Return this index for the same tokens with other EOS ids, special tokens or width.

        The result is the index itself where the masks are equal. Otherwise it has masks of its own, so it is better
        to load an index over the vocabulary that is served. The last few results are remembered.

        Parameters
        ----------
        vocabulary:
            A vocabulary with the same tokens.

        Raises
        ------
        VocabularyMismatchError
            For other tokens.
        """
        if vocabulary.masks_alike(self.vocabulary):
            return self
        found = self._over.get(vocabulary.identity)
        if found is None:
            found = self._over[vocabulary.identity] = self._again(vocabulary)
        return found

    def _again(self, vocabulary: Vocabulary) -> Index:
        return Index.from_buffer(self._packed(self_contained=True), vocabulary, origin=self.origin)

    # -- distances to the end ----------------------------------------------------------------------------

    @property
    def distances(self) -> Distances:
        """How far configurations are from a complete text, in tokens; worked out on first use.

        Raises `UnsupportedError` where no bound is known.
        """
        found = self._distances
        if isinstance(found, UnsupportedError):
            raise found.with_traceback(None)
        return found

    @cached_property
    def _distances(self) -> Distances | UnsupportedError:
        try:
            return self.machine.distances()
        except UnsupportedError as error:
            return error

    def shortest(self) -> int:
        """Return the number of tokens of the shortest text, EOS token included: the smallest ``max_tokens`` of a
        guide.

        It is exact for regexes and automata. For definitions with a stack (JSON Schemas, grammars) it is an upper
        bound.
        """
        return self.distances.distance(self.machine.start)

    def __repr__(self) -> str:
        shown = self.definition if len(self.definition) <= 60 else self.definition[:57] + "..."
        return f"<Index {shown} {self.states:,} states, {self.row_count:,} rows>"

    # -- keeping ---------------------------------------------------------------------------------------

    def to_bytes(self, *, with_vocabulary: bool = True) -> bytes:
        """Serialise the index in the format of docs/internals/format.md.

        Parameters
        ----------
        with_vocabulary:
            Whether to include the vocabulary. Without it, a reader must have it already.
        """
        return self._packed(with_vocabulary=with_vocabulary, self_contained=with_vocabulary)

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[Foreign, ...]]:
        # With all rows, so that whoever reads it walks no more than this process would.
        return _unpickled, (self._packed(self_contained=True), self.vocabulary, self.origin)

    def __copy__(self) -> Index:
        return self  # to its users it never changes

    def __deepcopy__(self, _: object) -> Index:
        return self

    def _packed(self, *, with_vocabulary: bool = False, self_contained: bool) -> bytes:
        meta = {
            "kind": self.kind,
            "definition": self.definition,
            "vocabulary": self.vocabulary.fingerprint,
            "compile_seconds": round(self.compile_seconds, 6),
            "relaxations": list(self.relaxations),
            **self.machine.to_meta(),
        }
        sections = dict(self.machine.to_sections(self_contained=self_contained))
        if with_vocabulary:
            meta["eos_ids"] = list(self.vocabulary.eos_ids)
            meta["special_tokens"] = self.vocabulary.special_tokens
            sections |= {"token_offsets": self.vocabulary.offsets, "token_bytes": self.vocabulary.blob}
        return pack(meta, sections)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index and its vocabulary into one file, replacing ``path`` atomically."""
        import tempfile  # which takes longer than all that a cached index needs of the standard library

        folder, name = os.path.split(os.path.abspath(path))
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.to_bytes())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str], vocabulary: Vocabulary | None = None) -> Index:
        """Map a saved index into memory.

        Parameters
        ----------
        path:
            The file that `save` wrote.
        vocabulary:
            The vocabulary to use it with: the same tokens, with any EOS ids and width. None: the one in the file.

        Raises
        ------
        FormatError
            For a file that is not a valid index of this format version. Nothing in the file is used unchecked.
        VocabularyMismatchError
            For an index that was compiled for other tokens.
        """
        try:
            with open(os.fspath(path), "rb") as file:  # no number, which would be an open file of somebody else's
                size = os.fstat(file.fileno()).st_size
                buffer: Buffer = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else b""
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", error)
            raise FormatError(f"the index cannot be read: {reason}", where=str(path)) from error
        return cls.from_buffer(buffer, vocabulary, origin="file", where=str(path))

    @classmethod
    def from_buffer(
        cls, buffer: Buffer, vocabulary: Vocabulary | None = None, *, origin: str = "file", where: str = "index"
    ) -> Index:
        """Read the output of `to_bytes` in place, without a copy. See `load`.

        Parameters
        ----------
        buffer:
            The bytes. They must not change while the index is in use.
        vocabulary:
            As in `load`.
        origin:
            The value of `Index.origin`.
        where:
            A name of the source, for errors.

        Raises
        ------
        FormatError
            For a buffer that is not a valid index.
        VocabularyMismatchError
            For an index that was compiled for other tokens.
        """
        meta, sections = unpack(buffer, where)
        found = columns.read_meta(meta, FIELDS, {}, where)
        reader = reader_of(found["kind"])
        if reader is None:
            raise FormatError(f"not an index that this structgen knows: kind {found['kind']!r}", where=where)
        vocabulary = _vocabulary_for(found["vocabulary"], vocabulary, meta, sections, where)
        machine = reader(meta, sections, vocabulary, where)
        seconds, relaxations = float(found["compile_seconds"]), tuple(found["relaxations"])
        return cls(
            found["kind"], found["definition"], machine, origin=origin, compile_seconds=seconds, relaxations=relaxations
        )


def check_index(value: object) -> None:
    """Raise `ArgumentError` for a definition, or anything else, in the place of an index."""
    check_type(value, Index, "Compile one: sg.compile(definition, vocabulary).")


def _unpickled(data: bytes, vocabulary: Vocabulary, origin: str) -> Index:
    return Index.from_buffer(data, vocabulary, origin=origin, where="a pickled index")


def _vocabulary_for(
    fingerprint: str, given: Vocabulary | None, meta: JsonMap, sections: Sections, where: str
) -> Vocabulary:
    """The caller's vocabulary, one that this process already holds, or the file's own."""
    if given is not None and given.fingerprint != fingerprint:
        raise VocabularyMismatchError(
            f"the index was compiled for vocabulary {fingerprint[:8]}, not {given.fingerprint[:8]}",
            where=where,
            remedy="Load it with the tokenizer it was compiled for, or compile it again.",
        )
    if given is not None:
        return given
    if "token_bytes" not in sections:
        raise VocabularyMismatchError(
            f"the index needs vocabulary {fingerprint[:8]}, which the file does not hold",
            where=where,
            remedy="Pass vocabulary=, or use a file written by Index.save.",
        )
    vocabulary = Vocabulary.from_sections(meta, sections, where)
    if vocabulary.fingerprint != fingerprint:
        raise FormatError("the stored vocabulary is not the one the index was compiled for", where=where)
    return Vocabulary.alive(vocabulary.identity) or vocabulary
