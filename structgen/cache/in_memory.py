"""`InMemory`: a cache without a folder, whose values somebody else is to keep."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..errors import CacheError
from ..system.memo import Memo
from .cache import Cache
from .entry import Entry, Tag, check_key
from .front import Front

#: Bytes of values that it holds for the next look-up.
_MOST_BYTES = 256 << 20


class _Value(NamedTuple):
    value: bytes
    tag: Tag


class _MemoryFront(Front):
    """Values in a `Memo`, and those that nobody has taken yet."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull))
        self._values: Memo[str, _Value] = Memo(_MOST_BYTES, lambda each: len(each.value))
        self.new: dict[str, _Value] = {}

    def discard(self, key: str) -> None:
        """Forget a value."""
        self._values.pop(key, None)
        self.new.pop(key, None)

    def size_of(self, key: object) -> int | None:
        """Bytes of a value that is there."""
        found = self.look_up(check_key(key))
        return None if found is None else found.nbytes

    def look_up(self, key: str, *, names_itself: bool = False) -> memoryview | None:
        """A value that is there."""
        check_key(key)
        found = self._values.get(key) or self.new.get(key)
        return None if found is None else memoryview(found.value)

    def put(self, key: str, value: bytes, tag: Tag, size_limit: int) -> list[Entry]:
        """Take a value, unless there is one that is as good."""
        found = self._values.get(key)
        if found is None or not 0 < tag.rank <= found.tag.rank:
            self._values[key] = self.new[key] = _Value(value, tag)
        return []


class InMemory(Cache):
    """What is put is there for as long as there is room, and is handed over once by `take`. Nothing is on disk."""

    def __init__(self) -> None:
        super().__init__(os.devnull)
        self._front = self._memory = _MemoryFront()

    def __reduce__(self) -> tuple[object, ...]:
        raise CacheError("a cache in memory is not copied", remedy="Use structgen.Cache(folder).")

    def take(self) -> list[tuple[str, bytes, Tag]]:
        """What was put since this was called last."""
        new, self._memory.new = self._memory.new, {}
        return [(key, value, tag) for key, (value, tag) in new.items()]
