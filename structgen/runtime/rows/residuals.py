"""Residual lists: the places in the vocabulary's trie at which a token is left to the state below.

See `structgen.runtime.pushdown.partial_masks` for what they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import FormatError
from ...storage import columns
from ...storage.columns import Column, Columns, Sizes
from ...storage.container import smallest
from ...system.types import Array, Sections
from ...vocabulary.vocabulary import Vocabulary
from .head import FirstTables, Head
from .row_pool import decode_gaps, decode_lists, encode_gaps

#: Lists that are always there: the whole trie, and nothing.
ROOT, NOTHING = 0, 1

#: How many there are of a file's, with these.
COUNT = ("stored lists", 2)

#: The sections of the file format (see docs/internals/format.md).
SECTIONS = Columns(
    Column("resume_start", rows=("stored lists", 1), starts="residual gaps"),
    Column("resume_gaps", "u2", rows="residual gaps"),
)

#: Lists one behind the other: where each begins, and the last ends, ``int64[lists + 1]``, and ``int32[*]``.
Lists: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int32]]"


#: Lists, and nodes of lists, that there is room for to begin with; and nodes that get room at once at most.
_FEW, _FEW_NODES, _MOST_NODES = 1 << 5, 1 << 8, 1 << 16

#: Bytes of a list beside its nodes, about.
_BYTES_OF_LIST = 40


#: The tables to begin with.
_FIRST = FirstTables(kernels.LISTS_HEAD, {
    kernels.L_LISTS: np.zeros((_FEW, 3), np.int64), kernels.L_NODES: np.zeros(_FEW_NODES, np.int32),
    kernels.L_SLOTS: np.full(2 * _FEW, -1, np.int32),
})  # fmt: skip


class ListSource(Protocol):
    """Lists that are kept elsewhere."""

    def residual_of(self, number: int) -> NDArray[np.int32]:
        """The list of a number."""


class Residuals:
    """Interned residual lists: ascending trie nodes, ``int32[*]``, in arrays that kernels read and add to."""

    def __init__(self) -> None:
        #: Where kernels find the lists; see `structgen.kernels.store.layout`.
        self.head = Head(_FIRST)
        # How to get a list that is not there yet: a shared one by its number there, all others from a file.
        self._shared: dict[int, int] = {}
        self._source: ListSource | None = None
        self._stored: Callable[[], Lists] | None = None
        self._lent: dict[int, NDArray[np.int32]] = {}  # shared ones that were fetched
        # The nodes of all others; the last has room.
        self._chunks: tuple[NDArray[np.int32], ...] = (self.head[kernels.L_NODES],)
        self._full = 0  # nodes in all chunks but the last
        self._in_file: NDArray[np.int32] | None = None  # the nodes of those of a file
        self.add(np.zeros(1, np.int32))
        self._table[NOTHING, 0] = kernels.address(self._chunks[0])
        self.head.words[kernels.L_COUNT] = NOTHING + 1
        self._before = self._size()  # when lists were last taken away

    def __len__(self) -> int:
        return int(self.head.words[kernels.L_COUNT])

    def __getitem__(self, number: int) -> NDArray[np.int32]:
        """A list, as an array of the caller's own."""
        address, count, _ = self._table[number].tolist()
        if not address:
            self.fetch(number)
            count = int(self._table[number, 1])
        nodes = np.empty(count, np.int32)
        kernels.read_list(self.head.words, number, nodes)
        return nodes

    @property
    def _table(self) -> NDArray[np.int64]:
        return self.head[kernels.L_LISTS]

    # -- room ------------------------------------------------------------------------------------------

    def _append(self, count: int) -> None:
        """Have room for more lists."""
        before, used = self._table, len(self)
        if used + count > len(before):
            wider = np.zeros((max(2 * len(before), used + count), 3), np.int64)
            wider[:used] = before[:used]
            self.head.put(kernels.L_LISTS, wider)

    def _begin_chunk(self, size: int) -> None:
        self._full += int(self.head.words[kernels.L_USED])
        self._chunks += (np.empty(size, np.int32),)
        self._use_chunk(0)

    def _use_chunk(self, used: int) -> None:
        self.head.put(kernels.L_NODES, self._chunks[-1])
        self.head.words[kernels.L_USED] = used

    def _forget_slots(self) -> None:
        self.head.put(kernels.L_SLOTS, np.zeros(0, np.int32))

    def make_room(self) -> None:
        """Have room for one list more, of as many nodes as a kernel asked for."""
        words = self.head.words
        if self._stored is not None:
            self._read_stored()
        self._append(1)
        wanted, last = int(words[kernels.L_WANTED]), self._chunks[-1]
        if words[kernels.L_USED] + wanted > len(last):
            self._begin_chunk(max(wanted, min(2 * len(last), _MOST_NODES)))
        if 2 * len(self) + 2 > len(self.head[kernels.L_SLOTS]):
            self.head.put(kernels.L_SLOTS, np.full(4 << len(self).bit_length(), -1, np.int32))
            kernels.number_lists(words)

    # -- lists -----------------------------------------------------------------------------------------

    def add(self, nodes: NDArray[np.int32]) -> int:
        """The number of this list; the array may be reused by the caller."""
        while (number := kernels.put_list(self.head.words, nodes)) < 0:
            self.make_room()
        return int(number)

    def fetch(self, number: int) -> None:
        """Have kernels find a list that is not there yet."""
        shared = self._shared.get(number)
        if shared is None:
            self._read_stored()
            return
        assert self._source is not None
        nodes = np.ascontiguousarray(self._source.residual_of(shared), np.int32)
        self._table[number, :2] = kernels.address(nodes), len(nodes)
        self._lent[number] = nodes

    def _read_stored(self) -> None:
        """Decode the lists of a file."""
        assert self._stored is not None
        start, nodes = self._stored()
        self._stored, self._in_file = None, nodes
        own = np.ones(len(start) - 1, np.bool_)
        own[[number - 2 for number in self._shared if number < len(start) + 1]] = False
        found = np.stack(
            [kernels.address(nodes) + 4 * start[:-1], np.diff(start), np.zeros(len(own), np.int64)], axis=1
        )
        self._table[2 : len(own) + 2][own] = found[own]
        self._forget_slots()

    def mark(self) -> tuple[int, int, int, int]:
        """How much there is now, for `cut`."""
        return len(self), len(self._chunks), self._full, int(self.head.words[kernels.L_USED])

    def cut(self, mark: tuple[int, int, int, int]) -> None:
        """Take away all lists that came since a mark."""
        count, chunks, self._full, used = mark
        self.head.words[kernels.L_COUNT] = count
        self._chunks = self._chunks[:chunks]
        self._use_chunk(used)
        self._forget_slots()
        self._shared = {number: shared for number, shared in self._shared.items() if number < count}
        self._lent = {number: nodes for number, nodes in self._lent.items() if number < count}
        self._before = self._size()

    def _size(self) -> int:
        return _BYTES_OF_LIST * len(self) + 4 * (self._full + int(self.head.words[kernels.L_USED]))

    @property
    def grown(self) -> int:
        """Bytes of what was added, about, since it was last cut."""
        return self._size() - self._before

    def add_shared(self, shared: int, source: ListSource) -> int:
        """The number of a list that is kept elsewhere.

        ``source``, the same for all of them, is asked for it when it is first needed, by its number ``shared`` there.
        """
        number = len(self)
        self._append(1)
        self._table[number] = 0
        self.head.words[kernels.L_COUNT] = number + 1
        self.share([number], [shared], source)
        return number

    def share(self, numbers: Sequence[int], shared: Iterable[int], source: ListSource) -> None:
        """Say which lists, whose places in the numbering are known, are kept elsewhere; see `add_shared`."""
        self._shared.update(zip(numbers, shared, strict=True))
        self._source = source
        self._table[numbers] = 0, 0, kernels.ELSEWHERE

    @property
    def nbytes(self) -> int:
        """Bytes of the lists that belong to the index, as stored, where they were decoded."""
        in_file = 0 if self._in_file is None else len(self._in_file)
        return 2 * (in_file + self._full + int(self.head.words[kernels.L_USED]))

    def to_sections(self) -> dict[str, Array]:
        """``resume_start`` and ``resume_gaps``; shared lists are empty there."""
        nothing = self[NOTHING]
        return lists_to_sections([nothing if i in self._shared else self[i] for i in range(2, len(self))])

    @classmethod
    def from_sections(cls, sections: Sections, sizes: Sizes, vocabulary: Vocabulary, where: str) -> Residuals:
        """Read `to_sections`. Raises `FormatError`."""
        return cls.from_columns(columns.read(sections, SECTIONS, sizes, where), vocabulary, where)

    @classmethod
    def from_columns(cls, found: Sections, vocabulary: Vocabulary, where: str) -> Residuals:
        """Of what `SECTIONS` declare, among others. The quantity `COUNT` says how many there are.

        Lists are checked against the trie when one of them is first needed: only walks need them, and the trie.
        """
        start, gaps = found["resume_start"], found["resume_gaps"]
        lists = cls()
        lists._append(len(start) - 1)
        lists.head.words[kernels.L_COUNT] += len(start) - 1
        lists._forget_slots()
        lists._before = lists._size()
        lists._stored = lambda: _checked(*decode_lists(start, gaps), vocabulary, where)
        return lists


def lists_to_sections(lists: Iterable[NDArray[np.int32]]) -> dict[str, Array]:
    """``resume_start`` and ``resume_gaps``: all the lists, one behind the other."""
    gaps = [encode_gaps(nodes) for nodes in lists]
    return {
        "resume_start": smallest(np.cumsum([0, *map(len, gaps)])),
        "resume_gaps": np.concatenate([np.zeros(0, np.uint16), *gaps]),
    }


def _checked(start: NDArray[np.int64], nodes: NDArray[np.int32], vocabulary: Vocabulary, where: str) -> Lists:
    """Lists of a file: ascending nodes of the trie, none twice. Raises `FormatError`.

    So a walk that enters at each of them comes to no node twice, and finds no more tokens than there are.
    """
    known = len(vocabulary.trie.byte)
    if len(nodes) and (top := int(nodes.max())) >= known:
        raise FormatError(f"a residual list has the node {top}, must be below {known}", where=where)
    ascends = np.ones(len(nodes) + 1, np.bool_)
    ascends[1:-1] = nodes[1:] > nodes[:-1]
    ascends[start] = True  # (np.setdiff1d imports a module when it is first called: 7 ms of somebody's step)
    if not ascends.all():
        raise FormatError("a residual list has a node twice", where=where)
    return start, nodes


def stored_lists(
    start: Array, gaps: NDArray[np.uint16], vocabulary: Vocabulary, where: str
) -> Callable[[int], NDArray[np.int32]]:
    """Decode one of `lists_to_sections`. Raises `FormatError`."""

    def stored(number: int) -> NDArray[np.int32]:
        nodes = decode_gaps(gaps[start[number] : start[number + 1]]).astype(np.int32)
        return _checked(np.zeros(1, np.int64), nodes, vocabulary, where)[1]

    return stored
