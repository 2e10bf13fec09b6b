"""The continuation that is nearest to what was written: error-tolerant recognition.

Of all texts of a definition that one is taken which the fewest edits make of what was written: a byte replaced, put
in or left out (Aho and Peterson 1972, "A minimum distance error-correcting parser"; Oflazer 1996, "Error-tolerant
finite-state recognition"). The pairs of a place in what was written and a byte state are gone through by ascending
cost, as in Dijkstra's algorithm, up to a few edits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from ..runtime.core.machine import ByteState, Config, Machine
from .candidates import CONTINUATION

#: What an edit costs, and one that takes a letter for the same in the other case, or a quote for another; and all of
#: them together at most: two edits.
_EDIT, _LIKE, _MOST_COST = 2, 1, 4

_ALIKE = {b"'": b'"`', b'"': b"'`", b"`": b"'\""}

#: Pairs that are looked at.
_MOST_PAIRS = 1 << 10


class Nearest(NamedTuple):
    """A continuation, and how many bytes of what was written it stands for."""

    data: bytes
    used: int


#: The last two words of a text, with what stands behind each.
_WORDS = re.compile(rb"(?:[\w\x80-\xff]{1,64}[^\w\x80-\xff]{0,8}){1,2}\Z|[^\w\x80-\xff]{1,8}\Z")


def last_words(text: bytes) -> int:
    """Where the last two words of a text begin, from which on it may be repaired."""
    found = _WORDS.search(text[-150:])
    return len(text) - (len(found[0].lstrip(CONTINUATION)) if found else 0)


def nearest(machine: Machine, config: Config, written: bytes, valid: int, least: int) -> Nearest | None:
    """A continuation that few edits make of at least the first ``least`` bytes of what was written there.

    Edits of its first ``valid`` bytes, which could stand there, cost twice as much. None where more than two edits
    are needed, or one for less than two bytes.
    """
    bound = min(_MOST_COST, _EDIT * least // 2)
    heap = [(0, 0, 0, b"", machine.byte_state(config))]
    seen: set[tuple[int, ByteState]] = set()
    pushed = 0
    while heap and len(seen) < _MOST_PAIRS:
        cost, place, _, data, state = heappop(heap)
        place = -place
        if place >= least and data:
            return Nearest(data, place)
        if (place, state) in seen:
            continue
        seen.add((place, state))
        weight = 2 if place < valid else 1
        for more, step, byte, after in _edits(machine, state, written[place : place + 1], (bound - cost) // weight):
            pushed += 1
            heappush(heap, (cost + weight * more, -place - step, pushed, data + byte, after))
    return None


def _edits(
    machine: Machine, state: ByteState, written: bytes, most: int
) -> Iterator[tuple[int, int, bytes, ByteState]]:
    """What can be done at a place for at most so much: cost, bytes read, byte written, the byte state after it."""
    after = machine.after(state, written[0]) if written else None
    if after is not None:
        yield 0, 1, written, after
    if written and most >= _EDIT:
        yield _EDIT, 1, b"", state
    for other in _ALIKE.get(written, written.swapcase()) if most >= _LIKE else b"":
        after = machine.after(state, other) if other != written[0] else None
        if after is not None:
            yield _LIKE, 1, bytes([other]), after
    if most >= _EDIT:
        for byte, after in _distinct(machine, state):
            yield _EDIT, 0, byte, after
            if written:
                yield _EDIT, 1, byte, after


def _distinct(machine: Machine, state: ByteState) -> Iterator[tuple[bytes, ByteState]]:
    """Bytes that lead each to a byte state of its own, of ASCII where there are any."""
    found: dict[ByteState, int] = {}
    for byte, after in machine.following(state):
        if byte < 0x80 and byte >= found.get(after, 0):
            found[after] = byte
    return ((bytes([byte]), after) for after, byte in found.items())
