"""Pausing the cyclic garbage collector while a compile allocates.

A compile makes a great many small objects that all live until it is done. Python's collector looks through every
object of the process again and again meanwhile, in vain: half of the time for a large schema in a process that holds
much else.

A long compile may leave so much that a full collection is due, which the first steps would have to wait for. It is
then made at the end of the compile, where nobody expects an answer within microseconds.
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

#: Objects made since the last collection, after which a full one may be about to be due. Python makes one past a
#: quarter of those that are there; some of that may have been made before.
_MANY, _SHARE = 10_000, 8


@contextmanager
def paused(*, settles: bool = False) -> Iterator[None]:
    """No automatic collection inside; nested and concurrent uses count, and a collector that is off stays off.

    Work that ``settles`` ends with a full collection where it has left many objects, unless it was cut short.
    """
    global _was_enabled
    with _lock:
        if not PAUSES:
            _was_enabled = gc.isenabled()
            gc.disable()
        PAUSES[get_ident()] += 1
    try:
        yield
    except BaseException:
        settles = False
        raise
    finally:
        with _lock:
            PAUSES[get_ident()] -= 1
            left, _, _ = gc.get_count()
            _go_on()
        if settles and left >= _MANY and gc.isenabled() and _SHARE * left >= len(gc.get_objects(generation=2)):
            gc.collect()


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
