"""Residual lists: the places in the vocabulary's trie at which a token is left to the state below.

See `structgen.runtime.pushdown.partial_masks` for what they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...storage import columns
from ...storage.columns import Column, Sizes
from ...storage.container import smallest
from ...system.types import Array, Sections
from ...vocabulary.vocabulary import Vocabulary
from .row_pool import decode_gaps, encode_gaps

#: Lists that are always there: the whole trie, and nothing.
ROOT, NOTHING = 0, 1

#: How many there are of a file's, with these.
COUNT = ("stored lists", 2)

#: The sections of the file format (see docs/internals/format.md).
SECTIONS = (
    Column("resume_start", rows=("stored lists", 1), starts="residual gaps"),
    Column("resume_gaps", "u2", rows="residual gaps"),
)


class Residuals:
    """Interned residual lists: ascending trie nodes, ``int32[*]``."""

    def __init__(self) -> None:
        self._lists: list[NDArray[np.int32] | None] = [np.zeros(1, np.int32), np.zeros(0, np.int32)]
        # How to get a list that is not there yet: a shared one by its number there, any other by that in a file.
        self._shared: dict[int, int] = {}
        self._source: Callable[[int], NDArray[np.int32]] | None = None
        self._stored: Callable[[int], NDArray[np.int32]] | None = None
        # By what a file holds of them: those in it, read when a list is added for the first time.
        self._in_file: Callable[[], dict[bytes, int]] = dict
        self._by_gaps: dict[bytes, int] = {}
        self._numbers: dict[bytes, int] | None = None  # by content, once something is added
        #: Bytes of what was added, about, since it was last cut.
        self.grown = 0

    def __len__(self) -> int:
        return len(self._lists)

    def __getitem__(self, number: int) -> NDArray[np.int32]:
        nodes = self._lists[number]
        if nodes is None:
            nodes = self._lists[number] = self._fetch(number)
        return nodes

    def _fetch(self, number: int) -> NDArray[np.int32]:
        shared = self._shared.get(number)
        source = self._stored if shared is None else self._source
        assert source is not None
        return source(number if shared is None else shared)

    def add(self, nodes: NDArray[np.int32]) -> int:
        """The number of this list; the array may be reused by the caller."""
        if not len(nodes):
            return NOTHING
        if self._numbers is None:
            own = [(i, each) for i, each in enumerate(self._lists) if i not in self._shared]
            self._numbers = {each.tobytes(): i for i, each in own if each is not None}
            self._by_gaps = {gaps: i for gaps, i in self._in_file().items() if i not in self._shared}
        key = nodes.tobytes()
        number = self._numbers.get(key)
        if number is None and self._by_gaps:
            number = self._by_gaps.get(encode_gaps(nodes).tobytes())
        if number is None:
            number = self._numbers[key] = len(self._lists)
            self._lists.append(nodes.copy())
            self.grown += 300 + 2 * nodes.nbytes  # which the key holds as well
        return number

    def cut(self, count: int) -> None:
        """Keep the first lists only."""
        del self._lists[count:]
        self._numbers = None
        self._shared = {number: shared for number, shared in self._shared.items() if number < count}
        self.grown = 0

    def add_shared(self, shared: int, source: Callable[[int], NDArray[np.int32]]) -> int:
        """The number of a list that is kept elsewhere.

        ``source``, the same for all of them, is asked for it when it is first needed, by its number ``shared`` there.
        """
        number = len(self._lists)
        self.share([number], [shared], source)
        self._lists.append(None)
        return number

    def share(self, numbers: Iterable[int], shared: Iterable[int], source: Callable[[int], NDArray[np.int32]]) -> None:
        """Say which lists, whose places in the numbering are known, are kept elsewhere; see `add_shared`."""
        self._shared.update(zip(numbers, shared, strict=True))
        self._source = source

    @property
    def nbytes(self) -> int:
        """Bytes of the lists that belong to the index, where they were decoded."""
        return sum(2 * len(x) for i, x in enumerate(self._lists) if x is not None and i not in self._shared)

    def to_sections(self) -> dict[str, Array]:
        """``resume_start`` and ``resume_gaps``; shared lists are empty there."""
        nothing = self[NOTHING]
        return lists_to_sections([nothing if i in self._shared else self[i] for i in range(2, len(self._lists))])

    @classmethod
    def from_sections(cls, sections: Sections, sizes: Sizes, vocabulary: Vocabulary, where: str) -> Residuals:
        """Read `to_sections`. Raises `FormatError`."""
        return cls.from_columns(columns.read(sections, SECTIONS, sizes, where), vocabulary, where)

    @classmethod
    def from_columns(cls, found: Sections, vocabulary: Vocabulary, where: str) -> Residuals:
        """Of what `SECTIONS` declare, among others. The quantity `COUNT` says how many there are.

        A list is checked against the trie when it is first needed: only walks need it, and they need the trie.
        """
        start, gaps = found["resume_start"], found["resume_gaps"]
        lists, stored = cls(), stored_lists(start, gaps, vocabulary, where)
        lists._stored = lambda number: stored(number - 2)
        lists._in_file = lambda: {
            gaps[i:j].tobytes(): number for number, (i, j) in enumerate(pairwise(start.tolist()), 2)
        }
        lists._lists += [None] * (len(start) - 1)
        return lists


def lists_to_sections(lists: Iterable[NDArray[np.int32]]) -> dict[str, Array]:
    """``resume_start`` and ``resume_gaps``: all the lists, one behind the other."""
    gaps = [encode_gaps(nodes) for nodes in lists]
    return {
        "resume_start": smallest(np.cumsum([0, *map(len, gaps)])),
        "resume_gaps": np.concatenate([np.zeros(0, np.uint16), *gaps]),
    }


def stored_lists(
    start: Array, gaps: NDArray[np.uint16], vocabulary: Vocabulary, where: str
) -> Callable[[int], NDArray[np.int32]]:
    """Decode one of `lists_to_sections`: ascending nodes of the trie, none twice. Raises `FormatError`.

    So a walk that enters at each of them comes to no node twice, and finds no more tokens than there are.
    """

    def stored(number: int) -> NDArray[np.int32]:
        nodes = decode_gaps(gaps[start[number] : start[number + 1]])
        known = len(vocabulary.trie.byte)
        if len(nodes) and (top := int(nodes.max())) >= known:
            raise FormatError(f"a residual list has the node {top}, must be below {known}", where=where)
        if (nodes[1:] <= nodes[:-1]).any():
            raise FormatError("a residual list has a node twice", where=where)
        return nodes.astype(np.int32)

    return stored
