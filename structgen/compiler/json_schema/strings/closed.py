"""Strings of so many characters with a closing tag behind them, as one deterministic automaton that counts.

Whether the beginning of the tag is the tag's or the string's is known at its end. Until then its characters are
counted as the string's; at the bound they can only be the tag's, and an automaton that does not count goes on with
the places in the tag where the text may stand. Of whitespace around the string as much as possible is not the
string's: before it none is counted, behind it none is needed before the bound. For the fewest characters it is the
other way round: the text's automaton knows whether there are so many, all whitespace included. The first ones that
are counted are spelled out, so many that the count does not tell that any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ....kernels.values import INC, SET
from ...automata.edge_lists import EdgeLists, in_columns

#: A state: what it is, a state of the text's automaton or places in the tag, and a state of the gap's, or how many
#: characters are spelled out so far, or -1.
_Key: TypeAlias = "tuple[str, int | frozenset[int], int]"

_LEADING, _FIRST, _INSIDE, _BEHIND = "leading whitespace", "first characters", "inside", "behind"
_END: _Key = ("end", -1, -1)


def closed_string(
    free: EdgeLists, text: EdgeLists, closing: bytes, gap: EdgeLists | None, least: int, most: int
) -> EdgeLists | None:
    """The automaton of ``least`` to ``most`` characters, at least two, with whitespace around them and a tag behind.

    Parameters
    ----------
    free, text:
        The minimal automata of the texts of any length, and of ``least`` characters at least, with the tag behind.
    closing:
        The tag, of which no end is a beginning.
    gap:
        The deterministic automaton of the whitespace; None for none.

    Returns None for a gap that may not end everywhere, or that is not told from the text by single bytes.
    """
    building = _Building(text, closing, gap, max(1, least), most)
    return building.run() if most > max(1, least) and building.is_possible(free) else None


class _Building:
    """The states made so far."""

    def __init__(self, text: EdgeLists, closing: bytes, gap: EdgeLists | None, spelled: int, most: int) -> None:
        self._text, self._closing, self._gap, self._spelled = text, closing, gap, spelled
        self._loops = [(1, most - spelled + 1)]
        self._numbers: dict[_Key, int] = {}
        self._keys: list[_Key] = []
        self._records: dict[tuple[int, int, int, int, int], int] = {}
        self._tag_ends = next(state for state, accepting in enumerate(text.accepting) if accepting)

    def is_possible(self, free: EdgeLists) -> bool:
        """Whether whitespace is told apart, and may end everywhere."""
        gap, start = self._gap, free.start
        if len(self._closing) < 2 or sum(self._text.accepting) != 1 or self._text.edges[self._tag_ends]:
            return False
        if gap is None:
            return True
        blanks = {byte for edges in gap.edges for low, high, _ in edges for byte in range(low, high + 1)}
        told = all(_after(free, start, bytes([blank])) == start for blank in blanks)
        return told and not gap.records and all(gap.accepting)

    def run(self) -> EdgeLists:
        """The whole automaton."""
        start = self._number((_LEADING, self._text.start, -1 if self._gap is None else self._gap.start))
        edges: list[tuple[tuple[int, int, int], ...]] = []
        while len(edges) < len(self._keys):
            edges.append(tuple(sorted(self._edges(*self._keys[len(edges)]))))
        live = [0 if kind == _INSIDE else -1 for kind, _, _ in self._keys]
        accepting = [key == _END for key in self._keys]
        return EdgeLists(in_columns(edges), [()] * len(edges), accepting, live, [*self._records], self._loops, start)

    def _number(self, key: _Key) -> int:
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    def _edges(self, kind: str, at: int | frozenset[int], gap: int) -> Iterator[tuple[int, int, int]]:
        blanks = self._blanks(gap) if kind in (_LEADING, _BEHIND) else {}
        if isinstance(at, frozenset):
            for byte in {*blanks, *(self._closing[place] for place in at)}:
                yield byte, byte, self._behind(at, byte, blanks.get(byte, -1))
        elif kind == _LEADING:
            for byte, there in blanks.items():
                yield byte, byte, self._number((_LEADING, _after(self._text, at, bytes([byte])), there))
            for low, high, target in self._text.edges[at]:
                there = self._target(_FIRST, target, 0)
                if blanks.keys().isdisjoint(range(low, high + 1)):
                    yield low, high, there
                    continue
                yield from ((byte, byte, there) for byte in range(low, high + 1) if byte not in blanks)
        elif kind != _END[0]:
            for low, high, target in self._text.edges[at]:
                yield low, high, self._target(kind, target, gap)

    def _target(self, kind: str, target: int, done: int) -> int:
        """Where a byte of the text leads: a character that it completes is counted, or one more that is spelled."""
        if target == self._tag_ends:
            return self._number(_END)
        if not self._is_between(target):
            return self._number((kind, target, done))
        if kind == _FIRST and done + 1 < self._spelled:
            return self._number((_FIRST, target, done + 1))
        inside = self._number((_INSIDE, target, -1))
        if kind == _FIRST:
            return self._record((SET, 0, inside, inside, inside))
        tag = self._closing
        places = frozenset(p for p in range(len(tag)) if _after(self._text, target, tag[p:]) == self._tag_ends)
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

    def _is_between(self, state: int) -> bool:
        """Whether a state lies between two characters (UTF-8)."""
        return not any(low <= 0xBF and high >= 0x80 for low, high, _ in self._text.edges[state])


def _after(text: EdgeLists, state: int, data: bytes) -> int:
    """Where bytes lead in an automaton, -1 where they are no text."""
    for byte in data:
        state = next((there for low, high, there in text.edges[state] if low <= byte <= high), -1)
        if state < 0:
            return -1
    return state
