"""Pausing the cyclic garbage collector while a compile allocates.

A compile makes a great many small objects that all live until it is done. Python's collector looks through every
object of the process again and again meanwhile, in vain: half of the time for a large schema in a process that holds
much else.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_pauses = 0
_was_enabled = False


@contextmanager
def paused() -> Iterator[None]:
    """No automatic collection inside; nested and concurrent uses count, and a collector that is off stays off."""
    global _pauses, _was_enabled
    with _lock:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()
