"""Threads for work that nobody waits for, and queues of it.

Such a thread is told to stop at the end of the interpreter, and waited for. A child of a fork does not have those of
its parent. What goes wrong in one is nobody's concern: whatever it would have done is done when it is needed.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Generic, TypeVar

from .locks import Lock, Rank, at_fork

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

#: Seconds for which the interpreter's end waits for a thread.
PATIENCE = 2.0

#: Seconds between two looks at what a thread that is waited for has done.
_LOOK = 0.05


class Background(threading.Thread, ABC):
    """A thread whose `work` nobody waits for.

    Parameters
    ----------
    name:
        For whoever looks at the threads of the process.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._is_to_stop = threading.Event()

    @abstractmethod
    def work(self) -> None:
        """What it does; it looks at ``_is_to_stop`` now and then."""

    def begin(self) -> bool:
        """Start it. False where there are no more threads, or the interpreter is at its end."""
        try:
            self.start()
        except RuntimeError:
            return False
        return True

    def run(self) -> None:
        """Do the work, whatever comes of it."""
        atexit.register(self.stop)
        with contextlib.suppress(Exception):
            self.work()
        atexit.unregister(self.stop)

    def stop(self) -> None:
        """Have it end when it looks next, and wait for that."""
        if self.is_alive():  # not that of the parent of a fork
            self._is_to_stop.set()
            self.join(PATIENCE)


class WorkQueue(Generic[K, T]):
    """Items by key that a thread works at, in the order in which they came; it ends when nothing waits.

    After a fork the child's queue is empty: the parent does what was in it.

    Parameters
    ----------
    name:
        Of the thread.
    work:
        What is done with an item, with no lock held. Returns whether it succeeded.
    size:
        Bytes of an item.
    most:
        Bytes of items that may wait. One alone may have more.
    patience:
        Seconds without a success after which whoever waits for items gives them up.
    dropped:
        Called with the number of those.
    delay:
        Seconds before the thread begins with what comes first, unless somebody waits.
    """

    _ending: ClassVar[float | None] = None  # since when, by the monotonic clock

    def __init__(
        self,
        name: str,
        work: Callable[[T], bool],
        size: Callable[[T], int],
        *,
        most: int,
        patience: float,
        dropped: Callable[[int], object] | None = None,
        delay: float = 0.0,
    ) -> None:
        self.most = most
        self._name, self._work, self._size = name, work, size
        self._patience, self._dropped, self._delay = patience, dropped, delay
        self._lock = Lock(Rank.LEAF)
        self._forget_all()
        _queues.add(self)

    def _forget_all(self) -> None:
        """Begin with nothing, as in a child of a fork."""
        self._items: dict[K, T] = {}  # that wait, in their order
        self._current: tuple[K, T] | None = None  # what is worked at, unless it was given up
        self._bytes = 0  # of those that wait
        self._added = self._handled = 0  # items so far
        self._succeeded = float("-inf")  # when one last was, by the monotonic clock
        self._worker: _Worker | None = None
        self._is_waited_for = threading.Event()

    def get(self, key: K) -> T | None:
        """The item of a key that waits, or is worked at."""
        found, current = self._items.get(key), self._current  # in that order it is in one of them
        return current[1] if found is None and current is not None and current[0] == key else found

    def add(self, key: K, item: T) -> bool:
        """Have an item worked at, in place of one of its key that waits. False where no room is, or no thread."""
        size = self._size(item)
        with self._lock:
            if self._items and self._bytes + size > self.most:
                return False
            self._drop(key)
            self._items[key] = item
            self._bytes += size
            self._added += 1
            if self._worker is None or not self._worker.is_alive():
                self._worker = _Worker(self._name, self)
                if not self._worker.begin():
                    self._worker = None
                    self._drop(key)
                    return False
        return True

    def rest(self) -> None:
        """Let whoever came first go on meanwhile."""
        if self._delay:
            self._is_waited_for.wait(self._delay)

    def work_next(self) -> bool:
        """Work at what came first. False, and the thread's end, where nothing waits."""
        with self._lock:
            self._current = None
            if not self._items:
                self._worker = None
                return False
            key = next(iter(self._items))
            current = self._current = key, self._items[key]
            self._bytes -= self._size(self._items.pop(key))
        is_done = False
        with contextlib.suppress(Exception):
            is_done = self._work(current[1])
        with self._lock:
            if is_done:
                self._succeeded = time.monotonic()
            if self._current is current:
                self._handled += 1
        return True

    def close(self) -> None:
        """Wait until all that was added before is done, or nothing succeeds any more: then it is dropped."""
        self._wait(time.monotonic())

    def close_for_good(self) -> None:
        """The same at the end of the interpreter: all queues are waited for together."""
        WorkQueue._ending = WorkQueue._ending or time.monotonic()
        self._wait(WorkQueue._ending)

    def _wait(self, since: float) -> None:
        wanted = self._added
        self._is_waited_for.set()
        try:
            while self._handled < wanted:
                worker, left = self._worker, max(since, self._succeeded) + self._patience - time.monotonic()
                if worker is None or not worker.is_alive() or left <= 0:
                    self._give_up(wanted)
                    return
                worker.join(min(left, _LOOK))
        finally:
            self._is_waited_for.clear()

    def _give_up(self, wanted: int) -> None:
        """Drop what waits, and wait no more for what is worked at, unless all of it was done in between."""
        with self._lock:
            if self._handled >= wanted:
                return
            left = len(self._items)
            self._items.clear()
            self._current = None
            self._bytes, self._handled = 0, self._added
        if self._dropped is not None:
            self._dropped(left)

    def _drop(self, key: K) -> None:
        """Forget an item that waits, if it does. Under the lock."""
        if key in self._items:
            self._bytes -= self._size(self._items.pop(key))
            self._handled += 1


class _Worker(Background):
    """Works at what waits, until nothing does."""

    def __init__(self, name: str, queue: WorkQueue[Any, Any]) -> None:
        super().__init__(name)
        self._queue = queue

    def work(self) -> None:
        """Work at it."""
        self._queue.rest()
        while self._queue.work_next():
            pass

    def stop(self) -> None:
        """At the end of the interpreter: what waits is done first."""
        self._queue.close_for_good()


_queues: weakref.WeakSet[WorkQueue[Any, Any]] = weakref.WeakSet()


def _start_anew() -> None:
    for queue in list(_queues):
        queue._forget_all()


at_fork(in_child=_start_anew)
