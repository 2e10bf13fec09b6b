"""Strings of up to so many characters with a closing tag behind them, as one deterministic automaton that counts.

Whether the beginning of the tag is the tag's or the string's is known at its end. Until then its characters are
counted as the string's; at the bound they can only be the tag's, and an automaton that does not count goes on with
the places in the tag where the text may stand. Of whitespace around the string as much as possible is not the
string's: before it none is counted, behind it none is needed before the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ....kernels.values import INC, SET
from ...automata.edge_lists import EdgeLists

#: A state: what it is, a state of the text's automaton or places in the tag, and a state of the gap's, or -1.
_Key: TypeAlias = "tuple[str, int | frozenset[int], int]"

_LEADING, _FIRST, _INSIDE, _BEHIND = "leading whitespace", "first character", "inside", "behind"
_END: _Key = ("end", -1, -1)


def closed_string(text: EdgeLists, closing: bytes, gap: EdgeLists | None, most: int) -> EdgeLists | None:
    """The automaton of up to ``most`` characters, at least two, with whitespace around them and a tag behind.

    Parameters
    ----------
    text:
        The minimal automaton of the texts of any length with the tag behind them.
    closing:
        The tag, of which no end is a beginning.
    gap:
        The deterministic automaton of the whitespace; None for none.

    Returns None for a gap that may not end everywhere, or that is not told from the text by single bytes.
    """
    building = _Building(text, closing, gap, most)
    return building.run() if building.is_possible() else None


class _Building:
    """The states made so far."""

    def __init__(self, text: EdgeLists, closing: bytes, gap: EdgeLists | None, most: int) -> None:
        self._text, self._closing, self._gap = text, closing, gap
        self._loops = [(1, most)]
        self._numbers: dict[_Key, int] = {}
        self._keys: list[_Key] = []
        self._records: dict[tuple[int, int, int, int, int], int] = {}
        self._tag_ends = next(state for state, accepting in enumerate(text.accepting) if accepting)

    def is_possible(self) -> bool:
        """Whether whitespace is told apart, and may end everywhere."""
        gap, start = self._gap, self._text.start
        if len(self._closing) < 2 or sum(self._text.accepting) != 1 or self._text.edges[self._tag_ends]:
            return False
        if gap is None:
            return True
        blanks = {byte for edges in gap.edges for low, high, _ in edges for byte in range(low, high + 1)}
        return not gap.records and all(gap.accepting) and all(self._after(start, bytes([b])) == start for b in blanks)

    def run(self) -> EdgeLists:
        """The whole automaton."""
        start = self._number((_LEADING, self._text.start, -1 if self._gap is None else self._gap.start))
        edges: list[tuple[tuple[int, int, int], ...]] = []
        while len(edges) < len(self._keys):
            edges.append(tuple(sorted(self._edges(*self._keys[len(edges)]))))
        live = [0 if kind == _INSIDE else -1 for kind, _, _ in self._keys]
        accepting = [key == _END for key in self._keys]
        return EdgeLists(edges, [()] * len(edges), accepting, live, [*self._records], self._loops, start)

    def _number(self, key: _Key) -> int:
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    def _edges(self, kind: str, at: int | frozenset[int], gap: int) -> Iterator[tuple[int, int, int]]:
        blanks = self._blanks(gap)
        if isinstance(at, frozenset):
            for byte in {*blanks, *(self._closing[place] for place in at)}:
                yield byte, byte, self._behind(at, byte, blanks.get(byte, -1))
        elif kind == _LEADING:
            yield from ((byte, byte, self._number((_LEADING, at, there))) for byte, there in blanks.items())
            for low, high, target in self._text.edges[at]:
                if blanks.keys().isdisjoint(range(low, high + 1)):
                    yield low, high, self._target(_FIRST, target)
                    continue
                there = self._target(_FIRST, target)
                yield from ((byte, byte, there) for byte in range(low, high + 1) if byte not in blanks)
        elif kind != _END[0]:
            for low, high, target in self._text.edges[at]:
                yield low, high, self._target(kind, target)

    def _target(self, kind: str, target: int) -> int:
        """Where a byte of the text leads: a character that it completes is counted."""
        if target == self._tag_ends:
            return self._number(_END)
        if not self._is_between(target):
            return self._number((kind, target, -1))
        inside = self._number((_INSIDE, target, -1))
        if kind == _FIRST:
            return self._record((SET, 0, inside, inside, inside))
        tag = self._closing
        places = frozenset(p for p in range(len(tag)) if self._after(target, tag[p:]) == self._tag_ends)
        behind = self._number((_BEHIND, places, -1 if self._gap is None else self._gap.start))
        return self._record((INC, 0, -1, inside, behind))

    def _record(self, record: tuple[int, int, int, int, int]) -> int:
        return -2 - self._records.setdefault(record, len(self._records))

    def _behind(self, places: frozenset[int], byte: int, gap: int) -> int:
        """Where a byte leads behind the last character of the string."""
        after = {place + 1 for place in places if self._closing[place] == byte} | ({0} if gap >= 0 else set())
        return self._number(_END if len(self._closing) in after else (_BEHIND, frozenset(after), gap))

    def _blanks(self, gap: int) -> dict[int, int]:
        """The bytes of whitespace that may come next, and where each leads."""
        if gap < 0 or self._gap is None:
            return {}
        return {byte: there for low, high, there in self._gap.edges[gap] for byte in range(low, high + 1)}

    def _after(self, state: int, data: bytes) -> int:
        """Where bytes lead in the text's automaton, -1 where they are no text."""
        for byte in data:
            found = (there for low, high, there in self._text.edges[state] if low <= byte <= high)
            state = next(found, -1)
            if state < 0:
                return -1
        return state

    def _is_between(self, state: int) -> bool:
        """Whether a state lies between two characters (UTF-8)."""
        return not any(low <= 0xBF and high >= 0x80 for low, high, _ in self._text.edges[state])
