"""To stop code that knows of no meter: Lark, which takes a tenth of a second and more to read a large grammar."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ....budget import Meter
from ....errors import CancelledError
from ....system.locks import Lock, Rank

#: Seconds between two looks at the event.
_PAUSE = 0.01


class _Stopped(BaseException):
    """Nothing that Lark catches."""


@contextmanager
def stoppable(meter: Meter, doing: str) -> Iterator[None]:
    """Have a compile that is cancelled meanwhile end, with the meter's error; ``doing`` names the phase for it.

    Another thread looks at the event, and has Python raise an exception in this one, between two instructions of
    Python. One that comes too late is caught here. Where nothing cancels the compile there is no such thread.
    """
    if not meter.is_cancellable:
        yield
        return
    watched, ended, lock = threading.get_ident(), threading.Event(), Lock(Rank.LEAF)

    def watch() -> None:
        while not ended.wait(_PAUSE):
            if meter.is_cancelled():
                with lock:
                    if not ended.is_set():
                        _raise(watched, _Stopped)

    threading.Thread(target=watch, daemon=True).start()
    try:
        try:
            yield
        finally:
            with lock:
                ended.set()
                _raise(watched, None)
    except _Stopped:
        ended.set()
        raise CancelledError("the compile was cancelled", where=doing) from None


def _raise(thread: int, exception: type[BaseException] | None) -> None:
    """Have Python raise an exception in a thread, or none of those that it has not raised there yet."""
    waiting = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), waiting)
