"""Every lock of the process: the order in which they are taken, what a fork does to them, and giving way.

*Order.* A thread that holds a lock takes only locks of a higher `Rank`, or the same one again. So no two threads
wait for each other.

*Fork.* Only the thread that forks lives on in the child; a lock that another one held would stay held for ever, over
state that is half changed. So all locks are taken before a fork, in their order, and let go on both sides after it:
whatever they guard is whole in the child.

*Giving way.* Work that takes longer than `SLICE` under a lock calls `Lock.give_way` where the state behind the lock is
whole; threads that wait get their turn there.
"""

from __future__ import annotations

import os
import threading
import time
from enum import IntEnum
from itertools import count
from weakref import WeakSet

#: Seconds after which long work under a lock lets others have it.
SLICE = 0.005


class Rank(IntEnum):
    """The order of locks: what is held comes before what is taken."""

    REQUESTS = 0  # indexes that are being compiled for an engine
    KERNELS = 10  # samples that compile the kernels
    TABLES = 20  # tables of grammars by content
    MACHINE = 30  # one index's rows and configurations
    DEFINITION = 40  # a machine inside a grammar's
    DISTANCES = 50
    VOCABULARY = 60  # rows that indexes share
    COVER = 70  # comparing stacks of a parser
    CACHE_WRITING = 80
    CACHE_READING = 90
    LEAF = 100  # nothing is taken under it


class Lock:
    """A re-entrant lock, safe under ``fork``, that long work can pass on.

    Parameters
    ----------
    rank:
        Its place in the order.
    """

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        #: How often long work passed the lock on: a watchdog's counter.
        self.passed_on = 0
        self._lock = threading.RLock()
        self._depth = 0  # how often the owner holds it
        self._since = 0.0  # when the owner got it, monotonic seconds
        with _registry:
            self._serial = next(_serials)
            _locks.add(self)

    def acquire(self) -> None:
        """Wait for the lock."""
        self._lock.acquire()
        if self._depth == 0:
            self._since = time.monotonic()
        self._depth += 1

    def release(self) -> None:
        """Let go of it, as often as it was acquired."""
        self._depth -= 1
        self._lock.release()

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def give_way(self) -> None:
        """Let threads that wait have their turn, once the owner has had it for `SLICE` seconds.

        The owner calls this where all that the lock guards is whole and no lock of a higher rank is held, and reads
        it anew afterwards: others may have changed it.
        """
        if time.monotonic() - self._since < SLICE:
            return
        self.passed_on += 1
        depth, self._depth = self._depth, 0
        for _ in range(depth):
            self._lock.release()
        time.sleep(1e-6)  # a thread that waits is woken here; without it the owner would be first again
        for _ in range(depth):
            self._lock.acquire()
        self._depth, self._since = depth, time.monotonic()


_locks: WeakSet[Lock] = WeakSet()
_serials = count()
_registry = threading.RLock()  # guards `_locks`
_held: list[Lock] = []  # from before a fork to after it


def _before_fork() -> None:
    while True:
        with _registry:
            found = sorted(_locks, key=lambda lock: (lock.rank, lock._serial))
        for lock in found:
            lock.acquire()
        _registry.acquire()
        if set(_locks) <= set(found):
            _held[:] = found
            return
        _registry.release()  # somebody made a lock meanwhile, which may come before others in the order
        for lock in reversed(found):
            lock.release()


def _after_fork() -> None:
    found, _held[:] = list(_held), []
    _registry.release()
    for lock in reversed(found):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
