"""Resume lists: the places in the vocabulary's trie at which a token is left to the state below.

See `structgen.runtime.stack_rows` for what they are for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..vocabulary.vocabulary import Vocabulary
from .container import smallest
from .pushdown_tables import partitions
from .rows import decode_gaps, encode_gaps

#: Lists that are always there: the whole trie, and nothing.
ROOT, NOTHING = 0, 1


class ResumeLists:
    """Interned resume lists: ascending trie nodes, ``int32[*]``."""

    def __init__(self) -> None:
        self._lists: list[NDArray[np.int32] | None] = [np.zeros(1, np.int32), np.zeros(0, np.int32)]
        # How to get a list that is not there yet: one that was stored, or a shared one.
        self._sources: dict[int, Callable[[], NDArray[np.int32]]] = {}
        self._stored: Callable[[int], NDArray[np.int32]] | None = None  # any other, by number
        self._shared: set[int] = set()
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
        source = self._sources.get(number)
        if source is not None or self._stored is None:
            return self._sources[number]()
        return self._stored(number)

    def add(self, nodes: NDArray[np.int32]) -> int:
        """The number of this list; the array may be reused by the caller."""
        if not len(nodes):
            return NOTHING
        if self._numbers is None:
            own = [i for i in range(len(self._lists)) if i not in self._shared]
            self._numbers = {self[i].tobytes(): i for i in own}
        key = nodes.tobytes()
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._lists)
            self._lists.append(nodes.copy())
            self.grown += 300 + 2 * nodes.nbytes  # which the key holds as well
        return number

    def cut(self, count: int) -> None:
        """Keep the first lists only."""
        del self._lists[count:]
        self._numbers = None
        self._sources = {number: source for number, source in self._sources.items() if number < count}
        self._shared = {number for number in self._shared if number < count}
        self.grown = 0

    def add_shared(self, source: Callable[[], NDArray[np.int32]]) -> int:
        """The number of a list that is kept elsewhere; ``source`` is asked for it when it is first needed."""
        number = len(self._lists)
        self.share(number, source)
        self._lists.append(None)
        return number

    def share(self, number: int, source: Callable[[], NDArray[np.int32]]) -> None:
        """Say where a list is kept whose place in the numbering is known."""
        self._sources[number] = source
        self._shared.add(number)

    @property
    def nbytes(self) -> int:
        """Bytes of the lists that belong to the index, where they were decoded."""
        return sum(2 * len(x) for i, x in enumerate(self._lists) if x is not None and i not in self._shared)

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """``resume_start`` and ``resume_gaps``; shared lists are empty there."""
        none = np.zeros(0, np.int32)
        gaps = [encode_gaps(none if i in self._shared else self[i]) for i in range(2, len(self._lists))]
        return {
            "resume_start": smallest(np.cumsum([0] + [len(g) for g in gaps])),
            "resume_gaps": np.concatenate([np.zeros(0, np.uint16), *gaps]),
        }

    @classmethod
    def from_sections(cls, sections: dict[str, NDArray[Any]], vocabulary: Vocabulary, where: str) -> ResumeLists:
        """Read `to_sections`. Raises `FormatError`.

        A list is checked against the trie when it is first needed: only walks need it, and they need the trie.
        """
        start, gaps = sections.get("resume_start"), sections.get("resume_gaps")
        if (
            start is None or gaps is None or start.ndim != 1 or gaps.ndim != 1 or start.dtype.kind != "u"
            or gaps.dtype != np.uint16 or not partitions(start, len(gaps))
        ):  # fmt: skip
            raise FormatError("the resume lists are damaged", where=where)
        lists = cls()

        def stored(number: int) -> NDArray[np.int32]:
            return decoded(gaps[int(start[number - 2]) : int(start[number - 1])], vocabulary, where)

        lists._stored = stored
        lists._lists += [None] * (len(start) - 1)
        return lists


def decoded(gaps: NDArray[np.uint16], vocabulary: Vocabulary, where: str) -> NDArray[np.int32]:
    """A stored resume list, every node of it in the trie."""
    nodes = decode_gaps(gaps)
    if len(nodes) and int(nodes[-1]) >= len(vocabulary.trie.byte):
        raise FormatError("a resume list points outside the vocabulary's trie", where=where)
    return nodes.astype(np.int32)
