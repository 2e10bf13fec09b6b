"""The names of objects, to be put into tries: each insertion makes another trie, and shares what has not changed.

A schema's object has a key state for each place among its members, and from one place to the next a single name
changes. So the tries of all places together take little more than the text of the names.
"""

from __future__ import annotations

import json
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ...automata.edge_lists import EdgeLists, of_dfa
from ..strings.strings import StringSet

#: A trie: the number of the insertion that makes it.
Trie: TypeAlias = int

#: The trie without names.
NONE: Trie = -1

#: What the end of a name says that must not come.
FORBIDDEN = -2

#: What `structgen.kernels.build_key_states` takes for a node; and so many come between two looks at the meter.
BYTES_OF_NODE, _UNSEEN = 200, 1 << 12

_DOING = "lowering property names"

#: The edges of no automata, where those of each state begin, and which states accept.
_NO_AUTOMATA = np.zeros((3, 0), np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint8)

#: The escapes with which nearly every character has one spelling.
ONE_WAY = ("minimal", "ascii")


class Tries:
    """Insertions into tries. Kept as numbers: `structgen.kernels.build_key_states` makes all tries at once."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.size = 0  #: nodes that all tries have together, about
        self._enough = _UNSEEN  # the size for the next look at the meter
        self._insertions: dict[tuple[Trie, bytes | EdgeLists, int], Trie] = {}
        self._rows: list[int] = []
        self._places: dict[bytes | EdgeLists, tuple[int, int, int]] = {}
        self._texts = bytearray()
        # Automata one below the other, each with a state more, where its edges end.
        self._edges: list[NDArray[np.int32]] = []
        self._begins: list[NDArray[np.int64]] = []
        self._n_edges = 0
        self._accepts: list[bool] = []

    def insert(self, trie: Trie, spelling: bytes | EdgeLists, end: int) -> Trie:
        """The trie with a name added, or with a new ``end`` for it."""
        key = trie, spelling, end
        known = self._insertions.get(key)
        if known is None:
            known = self._insertions[key] = len(self._insertions)
            begin, stop, size = self._places.get(spelling) or self._place(spelling)
            self._rows += trie, begin, stop, end
            self.size += size
            if self.size > self._enough:
                self._meter.check_states(max(self.size // 4, known), _DOING)
                self._meter.check_memory(BYTES_OF_NODE * self.size, _DOING)
                self._enough = self.size + _UNSEEN
        return known

    def _place(self, spelling: bytes | EdgeLists) -> tuple[int, int, int]:
        """Where a text begins and ends; or -1, and the first state of an automaton; and how many nodes each takes."""
        if isinstance(spelling, bytes):
            begin, size = len(self._texts), len(spelling)
            self._texts += spelling
            place = begin, begin + size, 1 + size
        else:
            first = len(self._accepts)
            place = -1, first + spelling.start, spelling.states
            self._begins.append(spelling.begins + self._n_edges)
            self._n_edges += spelling.columns.shape[1]
            self._edges.append(spelling.columns[1:] + np.array([[0], [0], [first]], np.int32))
            self._accepts += *spelling.accepting, False
        self._places[spelling] = place
        return place

    def columns(self) -> tuple[NDArray[np.uint8] | NDArray[np.int32], ...]:
        """All insertions, as `structgen.kernels.build_key_states` takes them."""
        automata: tuple[NDArray[np.uint8] | NDArray[np.int32], ...] = _NO_AUTOMATA
        if self._accepts:
            edges = np.ascontiguousarray(np.concatenate(self._edges, axis=1))
            begins = np.concatenate(self._begins).astype(np.int32)
            automata = edges, begins, np.array(self._accepts, np.uint8)
        return np.frombuffer(self._texts, np.uint8), np.array(self._rows, np.int32).reshape(-1, 4), *automata


def spelling(name: str, escapes: str, meter: Meter) -> bytes | EdgeLists | None:
    """How a name may be written between its quotes: the one way, or an automaton; None if there is no way."""
    if escapes in ONE_WAY:
        if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
            return name.encode()
        text = json.dumps(name, ensure_ascii=escapes == "ascii")[1:-1]
        if "\\u" not in text.replace("\\\\", ""):  # hex digits can be of either case
            try:
                return text.encode()
            except UnicodeEncodeError:
                return None
    spellings = of_dfa(StringSet.literal([name]).body(escapes, meter), meter)
    return spellings if spellings.edges else None
