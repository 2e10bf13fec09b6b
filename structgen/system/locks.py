"""Every lock of the process: the order in which they are taken, what a fork does to them, and giving way.

*Order.* A thread that holds a lock takes only locks of a higher `Rank`, or the same one again. So no two threads
wait for each other.

*Fork.* Only the thread that forks lives on in the child; a lock that another one held would stay held for ever, over
state that is half changed. So all locks are taken before a fork, in their order, and let go on both sides after it:
whatever they guard is whole in the child. A thread that forks holds none of them, so nothing that a caller passed in
(a `structgen.progress.Progress`, say) is called under a lock.

*Giving way.* Work that takes longer than `SLICE` under a lock calls `Lock.give_way` where the state behind the lock
is whole; threads that wait get their turn there. A kernel that may take longer is cut into slices: it is told how
much to do, counts that, and returns where it came to; its caller gives way and calls it again from there. What it
writes belongs to the walk, not to what the lock guards.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from itertools import count
from weakref import ref

#: Seconds after which long work under a lock lets others have it.
SLICE = 0.005


class Rank(IntEnum):
    """The order of locks: what is held comes before what is taken."""

    REQUESTS = 0  # indexes that are being compiled for an engine
    BASE_ROWS = 15  # which vocabularies have theirs
    TABLES = 20  # tables of grammars by content
    DISTANCES = 30  # of one index's configurations
    MACHINE = 40  # one index's rows, and those of the definitions in it
    PARSER = 50  # what a parser with conflicts, or with endings, remembers
    CACHE_WRITING = 80
    CACHE_READING = 90
    LEAF = 100  # nothing is taken under it but the next
    KERNELS = 110  # tables that kernels share


# Python's own lock with a rank: taking it runs no Python, so that what a signal handler raises finds it either taken
# by a `with` or not taken.
class Lock(type(threading.RLock())):  # type: ignore[misc]
    """A re-entrant lock, safe under ``fork``, that long work can pass on.

    Parameters
    ----------
    rank:
        Its place in the order.
    """

    __slots__ = ("_since", "passed_on", "rank", "serial")

    def __new__(cls, rank: Rank) -> Lock:
        """Without arguments for the base, which takes none."""
        made: Lock = super().__new__(cls)
        return made

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        #: How often long work passed the lock on: a watchdog's counter.
        self.passed_on = 0
        self._since = time.monotonic()  # when work began, or it was passed on last, seconds
        with _registry:
            self.serial = next(_serials)
            _locks.add(ref(self, _discard))

    def begin(self) -> None:
        """Count the next slice from now on: the owner has just taken the lock."""
        self._since = time.monotonic()

    def give_way(self) -> None:
        """Let threads that wait have their turn, once in `SLICE` seconds.

        The owner calls this where all that the lock guards is whole and no lock of a higher rank is held, and reads
        it anew afterwards: others may have changed it. A thread that does not hold the lock keeps nobody waiting.
        """
        if time.monotonic() - self._since < SLICE or not self._is_owned():
            return
        self.passed_on += 1
        held = self._release_save()
        try:
            time.sleep(1e-6)  # a thread that waits is woken here; without it the owner would be first again
        finally:
            self._acquire_restore(held)
            self._since = time.monotonic()


_locks: set[ref[Lock]] = set()  # `WeakSet.add` is Python, and each machine has a lock
_discard = _locks.discard  # the same object for all
_serials = count()
_registry = threading.RLock()  # guards `_locks`
_held: list[Lock] = []  # from before a fork to after it


#: What else is done around a fork: before it, after it, and after it in the child alone.
_hooks: tuple[list[Callable[[], object]], ...] = ([], [], [])


def at_fork(
    *,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
    in_child: Callable[[], object] | None = None,
) -> None:
    """Have something done before each fork and after it, on both sides or in the child alone, with all locks held."""
    for hooks, hook in zip(_hooks, (before, after, in_child), strict=True):
        if hook is not None:
            hooks.append(hook)


def _alive() -> list[Lock]:
    return [lock for each in _locks.copy() if (lock := each()) is not None]


def _before_fork() -> None:
    while True:
        with _registry:
            found = sorted(_alive(), key=lambda lock: (lock.rank, lock.serial))
        for lock in found:
            lock.acquire()
        _registry.acquire()
        if set(_alive()) <= set(found):
            break
        _registry.release()  # somebody made a lock meanwhile, which may come before others in the order
        for lock in reversed(found):
            lock.release()
    _held[:] = found
    for hook in _hooks[0]:
        hook()


def _after_fork(*more: Callable[[], object]) -> None:
    for hook in (*more, *_hooks[1]):
        hook()
    found, _held[:] = list(_held), []
    _registry.release()
    for lock in reversed(found):
        lock.release()


def _in_child() -> None:
    _after_fork(*_hooks[2])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


#: Held by kernels that share tables, and where a table is replaced: without the GIL, which sees to that elsewhere.
has_gil: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
TABLES: AbstractContextManager[object] = nullcontext() if has_gil else Lock(Rank.KERNELS)
