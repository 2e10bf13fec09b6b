"""`descent`: some bytes that complete a text, where nothing says how far its end is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from ...system.visible import legibility

T = TypeVar("T", bound=Hashable)

#: States that are looked at.
_MOST = 1 << 14

#: Bytes that come before others, since they close something in JSON; and behind them, as white space closes nothing.
_CLOSING = {byte: at for at, byte in enumerate(b'"}]')} | dict.fromkeys(b" \t\n\r", 4)


def descent(begin: T, following: Callable[[T], Iterable[tuple[int, T]]], is_end: Callable[[T], bool]) -> bytes | None:
    """Bytes that lead to an end, found depth first; None where none is found among some 16,000 states.

    Texts that can get stuck nowhere need no second try at most places, so it is found quickly, and may be long.
    """

    def ordered(state: T) -> Iterator[tuple[int, T]]:
        return iter(sorted(following(state), key=_preference))

    if is_end(begin):
        return b""
    seen, text, todo = {begin}, bytearray(), [ordered(begin)]
    while todo and len(seen) < _MOST:
        byte, after = next(todo[-1], (-1, begin))
        if byte < 0:
            todo.pop()
            del text[-1:]
        elif after not in seen:
            seen.add(after)
            text.append(byte)
            if is_end(after):
                return bytes(text)
            todo.append(ordered(after))
    return None


def _preference(move: tuple[int, object]) -> tuple[int, tuple[int, int]]:
    return _CLOSING.get(move[0], 3), legibility(move[0])
