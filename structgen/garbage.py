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
_pauses: Counter[int] = Counter()  # by thread
_was_enabled = False


@contextmanager
def paused() -> Iterator[None]:
    """No automatic collection inside; nested and concurrent uses count, and a collector that is off stays off."""
    global _was_enabled
    with _lock:
        if not _pauses:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses[get_ident()] += 1
    try:
        yield
    finally:
        with _lock:
            _pauses[get_ident()] -= 1
            _go_on()


def _go_on() -> None:
    """Collect again, where no thread of this process has it paused any more."""
    for thread in [thread for thread, count in _pauses.items() if not count]:
        del _pauses[thread]
    if not _pauses and _was_enabled:
        gc.enable()


def _in_child() -> None:
    """Of the threads that paused it, only the one that forked is there."""
    for thread in _pauses:
        _pauses[thread] *= thread == get_ident()
    if _pauses:
        _go_on()


at_fork(in_child=_in_child)
