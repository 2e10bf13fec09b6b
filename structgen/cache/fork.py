"""Nothing of SQLite crosses a fork.

SQLite forbids it: a child that inherits a connection, even one it never touches, believes that its process
holds the locks behind it, and they belong to the parent. So the connections of one process are used under two
locks, writers keep none open, and before a fork those of the readers are closed; both sides open new ones
when needed.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

#: Held while a reader's connection is in use; microseconds.
READING = threading.RLock()

#: Held while a value is written; may wait for other processes.
WRITING = threading.RLock()


class Closable(Protocol):
    """Something that may hold a connection open."""

    def close(self) -> None:
        """Close it; it is opened again when needed."""


_open: WeakSet[Closable] = WeakSet()


def watch(reader: Closable) -> None:
    """Have ``reader`` closed before every fork."""
    _open.add(reader)


def _before() -> None:
    WRITING.acquire()
    READING.acquire()
    for reader in list(_open):
        reader.close()


def _after() -> None:
    READING.release()
    WRITING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
