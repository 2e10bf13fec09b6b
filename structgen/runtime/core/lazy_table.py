"""What is worked out of arrays one entry at a time, when it is first asked for, and then is as fast as a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...system.memo import Memo

T = TypeVar("T")

#: Entries that are kept.
MOST_ENTRIES = 1 << 17


class LazyTable(Memo[int, T]):
    """Entries by number. Threads may make the same one twice; it is equal, and either will do."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[int], T]) -> None:
        super().__init__(MOST_ENTRIES)
        self._make = make

    def __missing__(self, number: int) -> T:
        found = self[number] = self._make(number)
        return found
