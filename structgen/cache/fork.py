"""Nothing of SQLite crosses a fork.

SQLite forbids it: a child that inherits a connection, even one it never touches, believes that its process
holds the locks behind it, and they belong to the parent. So the connections of one process are used under two
locks, writers keep none open, and before a fork those of the readers are closed; both sides open new ones
when needed.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet

from ..system.locks import Lock, Rank, at_fork

#: Held while a reader's connection is in use; microseconds.
READING = Lock(Rank.CACHE_READING)

#: Held while a value is written; may wait for other processes.
WRITING = Lock(Rank.CACHE_WRITING)


class Closable(Protocol):
    """Something that may hold a connection open."""

    def close(self) -> None:
        """Close it; it is opened again when needed."""


_open: WeakSet[Closable] = WeakSet()


def watch(reader: Closable) -> None:
    """Have ``reader`` closed before every fork."""
    _open.add(reader)


def _close_readers() -> None:
    for reader in list(_open):
        reader.close()


at_fork(before=_close_readers)
