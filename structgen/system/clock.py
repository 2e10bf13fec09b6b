"""The clock of budgets: seconds, but for those that belong to no definition."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from .locks import Lock, Rank

_stopped = 0.0
_lock = Lock(Rank.LEAF)


def seconds() -> float:
    """Seconds since some moment, while the clock was not stopped."""
    return time.monotonic() - _stopped


@contextmanager
def stopped() -> Iterator[None]:
    """The clock stands still meanwhile: what is done is nobody's definition's fault, such as compiling a kernel."""
    global _stopped
    began = time.monotonic()
    try:
        yield
    finally:
        with _lock:
            _stopped += time.monotonic() - began
