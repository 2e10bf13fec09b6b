"""Pausing the cyclic garbage collector while a compile allocates.

A compile makes a great many small objects that all live until it is done. Python's collector looks through every
object of the process again and again meanwhile, in vain: half of the time for a large schema in a process that holds
much else.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from .locks import Lock, Rank, at_fork

_lock = Lock(Rank.LEAF)

#: How often each thread that has the collector paused did so; for others to read.
PAUSES: Counter[int] = Counter()
_was_enabled = False


@contextmanager
def paused() -> Iterator[None]:
    """No automatic collection inside; nested and concurrent uses count, and a collector that is off stays off."""
    global _was_enabled
    with _lock:
        if not PAUSES:
            _was_enabled = gc.isenabled()
            gc.disable()
        PAUSES[get_ident()] += 1
    try:
        yield
    finally:
        with _lock:
            PAUSES[get_ident()] -= 1
            _go_on()


def _go_on() -> None:
    """Collect again, where no thread of this process has it paused any more."""
    for thread in [thread for thread, count in PAUSES.items() if not count]:
        del PAUSES[thread]
    if not PAUSES and _was_enabled:
        gc.enable()


def _in_child() -> None:
    """Of the threads that paused it, only the one that forked is there."""
    for thread in PAUSES:
        PAUSES[thread] *= thread == get_ident()
    if PAUSES:
        _go_on()


at_fork(in_child=_in_child)
