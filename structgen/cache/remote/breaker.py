"""`Breaker`: a store that fails is left alone for a while (the circuit breaker of Nygard, Release It!, 2007)."""

from __future__ import annotations

import random
import time

from ...system.locks import Lock, Rank

#: Failures in a row that open it.
_FAILURES = 3

#: Seconds that it stays open: at first, and at most.
_FIRST, _LONGEST = 1.0, 300.0


class Breaker:
    """Closed: all requests are let through. Open: none, but one after a while, whose outcome decides.

    Each trial that fails doubles the pause, of which a random half is taken off, so that servers that failed together
    do not come back together. Times are of the monotonic clock: nobody's calendar counts.
    """

    def __init__(self) -> None:
        self._lock = Lock(Rank.LEAF)
        self._failures = 0
        self._pause = _FIRST
        self._until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the store failed the last few times."""
        return self._failures >= _FAILURES

    def admits(self) -> bool:
        """Whether to make a request now; its outcome is to be told."""
        with self._lock:
            if not self.is_open:
                return True
            now = time.monotonic()
            if now < self._until:
                return False
            self._until = now + self._pause  # for all others; this is the trial
            return True

    def succeeded(self) -> None:
        """A request was answered, whatever the answer was."""
        with self._lock:
            self._failures, self._pause = 0, _FIRST

    def failed(self) -> None:
        """A request was not answered, or refused."""
        with self._lock:
            was_open = self.is_open
            self._failures += 1
            if self.is_open:
                self._pause = min(_LONGEST, self._pause * 2) if was_open else _FIRST
                self._until = time.monotonic() + self._pause * random.uniform(0.5, 1.0)
