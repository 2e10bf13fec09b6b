"""`Calls`: requests that are waited for only so long, whatever they wait for themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from ...errors import StoreError
from ...system.background import PATIENCE, Background

T = TypeVar("T")

#: Requests on their way at once. Those that nobody waits for any more count, until their own time-outs end them.
_MOST = 16


class _Call(Background, Generic[T]):
    _ending: ClassVar[float | None] = None  # since when, by the monotonic clock

    def __init__(self, call: Callable[[], T], slots: threading.Semaphore) -> None:
        super().__init__("structgen-store")
        self._call, self._slots = call, slots
        self.done = threading.Event()
        self.outcome: list[T] = []
        self.error: BaseException | None = None

    def work(self) -> None:
        try:
            self.outcome.append(self._call())
        except BaseException as error:  # a panic in Rust is no `Exception`
            self.error = error
        finally:
            self._slots.release()
            self.done.set()

    def stop(self) -> None:
        """At the end of the interpreter: wait for all that are on their way together, not for one after the other."""
        _Call._ending = _Call._ending or time.monotonic()
        self.join(max(0.0, _Call._ending + PATIENCE - time.monotonic()))


class Calls:
    """Makes requests, each in a thread of its own, for any number of callers."""

    def __init__(self) -> None:
        self._slots = threading.Semaphore(_MOST)

    def within(self, seconds: float, call: Callable[[], T]) -> T:
        """What a call returns. Raises `StoreError` where that takes longer, and whatever the call raises."""
        deadline = time.monotonic() + seconds
        slots = self._slots
        late = StoreError(f"there was no answer within {seconds:g} s")
        if not slots.acquire(timeout=seconds):
            raise late
        made = _Call(call, slots)
        if not made.begin():
            slots.release()
            raise StoreError("no thread can be started")
        if not made.done.wait(max(0.0, deadline - time.monotonic())):
            raise late
        if made.error is not None:
            raise made.error
        return made.outcome[0]

    def start_anew(self) -> None:
        """In a child of a fork, which has none of the threads."""
        self._slots = threading.Semaphore(_MOST)
