"""Any run of the units of a long text: what an automaton would read that is too large to be spelled out.

Where a quotation is: the suffixes that begin with what was read, which are an interval of their order, and how many
bytes that was. A byte takes two binary searches. It may end where some of these suffixes has a unit that ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....budget import Meter, StepMeter
from ....errors import VocabularyError
from ....progress import Progress, silent
from ....storage import columns
from ....storage.columns import Column, Columns, Field
from ....system.locks import Lock
from ....system.types import Array, JsonMap, Sections
from ....vocabulary.vocabulary import Vocabulary
from ...rows.residuals import ROOT, Residuals
from ...rows.row_pool import MOST_GROWN, RowPool
from .suffixes import Suffixes

if TYPE_CHECKING:
    from ...pushdown.stacks import Thread

#: The field of the meta section.
_LENGTH = Field("substring_bytes", int, least=1)

#: The sections of the file format (see docs/internals/format.md).
_SECTIONS = Columns(
    Column("text", "u1", rows="bytes"),
    Column("suffixes", "u4", rows="units", below="bytes"),
    Column("unit_ends", "u1", flags=("bytes", 1)),
)

#: Bytes of what is remembered of a place, besides its rows.
_BYTES_OF_PLACE = 1000


class QuotationMasks:
    """What tokens do from each place in a text, as far as it was asked for."""

    def __init__(self, suffixes: Suffixes, vocabulary: Vocabulary) -> None:
        self._suffixes = suffixes
        self._vocabulary = vocabulary
        self.pool = RowPool(vocabulary.spelled)
        self.residuals = Residuals()
        self._decided: dict[tuple[int, int, int], tuple[set[int], set[int]]] = {}
        self.mark()

    def __len__(self) -> int:
        return len(self._decided)

    def mark(self) -> None:
        """Keep all that is known now, whatever `forget` forgets later."""
        self._kept = self.pool.mark(), self.residuals.mark(), self._decided.copy()

    def is_full(self) -> bool:
        """Whether it is time to `forget`."""
        places = len(self._decided) - len(self._kept[2])
        return self.pool.grown + self.residuals.grown + _BYTES_OF_PLACE * places > MOST_GROWN

    def forget(self) -> None:
        """Forget what came since the last mark: other rows and residual lists will have those numbers."""
        rows, residuals, decided = self._kept
        self.pool.cut(rows)
        self.residuals.cut(residuals)
        self._decided = decided.copy()

    def decide(self, residual: int, low: int, packed: int) -> tuple[set[int], set[int]]:
        """The row of what goes on from a residual list, and the one that is left to what follows the text."""
        key = residual, low, packed
        found = self._decided.get(key)
        if found is None:
            found = self._decided[key] = self._walk(self.residuals[residual], low, packed)
        return found

    def _walk(self, nodes: NDArray[np.int32], low: int, packed: int) -> tuple[set[int], set[int]]:
        trie, (high, length) = self._vocabulary.trie, _unpacked(packed)
        tokens = np.zeros(32 * self.pool.words, np.uint8)
        below = np.zeros(len(trie.byte), np.uint8)
        path = np.empty((2, trie.max_depth + 2), np.int64)
        kernels.walk_text(
            trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids, nodes, *self._suffixes, low, high,
            length, path, tokens, below,
        )  # fmt: skip
        if length and kernels.may_end(*self._suffixes[1:], low, high, length):
            below[nodes] = 1
        left = self.residuals.add(np.flatnonzero(below).astype(np.int32))
        row = {self.pool.add_ids(np.flatnonzero(tokens))} if tokens.any() else set()
        return row, {left} if below.any() else set()


class SubstringMachine:
    """Any run of the units of a text, but none of no units: an `InnerMachine`.

    Parameters
    ----------
    suffixes:
        What begins in the text, which is not empty.
    vocabulary:
        The tokens. What it begins it has to be able to finish, byte by byte.

    Raises `VocabularyError` where no token is just a byte of the text.
    """

    max_tokens: int | None = None

    def __init__(self, suffixes: Suffixes, vocabulary: Vocabulary) -> None:
        missing = np.setdiff1d(np.unique(suffixes.text), np.flatnonzero(vocabulary.single_bytes))
        if len(missing):
            raise VocabularyError(
                "the vocabulary cannot complete every text of this grammar",
                where=f"a substring; no token is just the byte 0x{missing[0]:02x}",
                remedy="Use a grammar that the vocabulary can spell, or a vocabulary with all single bytes.",
            )
        self._suffixes = suffixes
        # A thread: the first suffix, and behind the last one and how many bytes were read, as one number.
        self.start_threads: tuple[Thread, ...] = ((0, _packed(len(suffixes.order), 0), None),)
        self.rows = QuotationMasks(suffixes, vocabulary)
        self.pool = self.rows.pool

    @property
    def known_rows(self) -> int:
        """How many partial masks there are so far."""
        return len(self.rows)

    def belong_to(self, lock: Lock, steps: StepMeter) -> None:
        """Be part of another machine, whose lock is held wherever this one's would be: it has none."""

    def step(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        """Where a byte leads; nothing where it leads nowhere."""
        ((low, packed, _),) = threads
        high, length = _unpacked(packed)
        text, order, _ = self._suffixes
        first, last = kernels.narrowed(text, order, low, high, length, byte)
        return ((first, _packed(last, length + 1), None),) if first < last else ()

    def after_token(self, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """Where a text is when a token ends within it: whatever was begun can be completed."""
        return threads

    def may_end(self, threads: tuple[Thread, ...]) -> bool:
        """Whether the text is complete."""
        ((low, packed, _),) = threads
        high, length = _unpacked(packed)
        return bool(length and kernels.may_end(*self._suffixes[1:], low, high, length))

    def candidates(self, threads: tuple[Thread, ...]) -> Iterator[int]:
        """The bytes that can follow."""
        return (byte for byte in range(256) if self.step(threads, byte))

    def decide(self, threads: tuple[Thread, ...], residual: int) -> tuple[set[int], set[int]]:
        """The rows of what goes on from a residual list, and the residual lists left to what follows the text."""
        ((low, packed, _),) = threads
        return self.rows.decide(residual, low, packed)

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Decide the mask of tokens that begin with the text, which takes longest."""
        if meter:
            meter.check_time("token maps")
        self.decide(self.start_threads, ROOT)
        self.rows.mark()

    def is_crowded(self) -> bool:
        """Whether much is remembered of texts: nothing is."""
        return False

    def forget(self) -> None:
        """Forget what is remembered of texts: nothing is."""

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        return {_LENGTH.name: len(self._suffixes.text)}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format: the text and the order, no masks."""
        text, order, is_end = self._suffixes
        ends = np.packbits(is_end, bitorder="little")
        return {"text": text, "suffixes": order.astype(np.uint32), "unit_ends": ends}

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> SubstringMachine:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        sizes = {"bytes": columns.read_meta(meta, (_LENGTH,), {}, where)[_LENGTH.name]}
        found = columns.read(sections, _SECTIONS, sizes, where)
        text, order, is_end = (np.array(found[each.name]) for each in _SECTIONS)
        return cls(Suffixes(text, order.astype(np.int32), is_end), vocabulary)

    @classmethod
    def is_meta(cls, meta: JsonMap) -> bool:
        """Whether a meta section is one of `to_meta`."""
        return _LENGTH.name in meta


def _packed(high: int, length: int) -> int:
    return high << 32 | length


def _unpacked(packed: int) -> tuple[int, int]:
    return packed >> 32, packed & 0xFFFFFFFF
