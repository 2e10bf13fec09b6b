"""`Watch`: a process that ends itself when what it does takes too long, whatever holds it up.

The clock is `faulthandler`'s, a thread in C that needs no lock of the interpreter: it goes on where a call of another
library never returns. There is one clock in a process; of several threads that work, the one that began first has it.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from ..system.locks import Lock, Rank


class Watch:
    """Ends this process when work is not done in time."""

    def __init__(self) -> None:
        self._lock = Lock(Rank.LEAF)  # guards the deadlines, and the clock is set under it
        self._deadlines: dict[int, float] = {}
        self._numbers = count()

    @contextmanager
    def limit(self, seconds: float | None) -> Iterator[None]:
        """End the process if the block takes longer than so many seconds of wall-clock time; None: never."""
        if seconds is None:
            yield
            return
        number = next(self._numbers)
        self._change(number, time.monotonic() + seconds)
        try:
            yield
        finally:
            self._change(number, None)

    def _change(self, number: int, deadline: float | None) -> None:
        with self._lock:
            if deadline is None:
                del self._deadlines[number]
            else:
                self._deadlines[number] = deadline
            self._set_clock()

    def _set_clock(self) -> None:
        if not self._deadlines:
            faulthandler.cancel_dump_traceback_later()
            return
        left = max(1e-3, min(self._deadlines.values()) - time.monotonic())
        faulthandler.dump_traceback_later(left, exit=True, file=_errors())


@functools.cache
def _errors() -> int:
    """The descriptor of standard error, or of nothing where there is none."""
    try:
        return sys.__stderr__.fileno()  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):
        return os.open(os.devnull, os.O_WRONLY)
