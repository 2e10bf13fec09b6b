"""Threads for work that nobody waits for.

Such a thread is told to stop at the end of the interpreter, and waited for. A child of a fork does not have those of
its parent. What goes wrong in one is nobody's concern: whatever it would have done is done when it is needed.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from abc import ABC, abstractmethod

#: Seconds for which the interpreter's end waits for a thread.
PATIENCE = 2.0


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
