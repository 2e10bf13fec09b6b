"""What is worked out of arrays one entry at a time, when it is first asked for, and then is as fast as a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class OnDemand(dict[int, T]):
    """Entries by number. Threads may make the same one twice; it is equal, and either will do."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[int], T]) -> None:
        self._make = make

    def __missing__(self, number: int) -> T:
        found = self[number] = self._make(number)
        return found
