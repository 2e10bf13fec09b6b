"""To stop code that knows of no meter: Lark, which takes a tenth of a second and more to read a large grammar."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ....budget import Meter
from ....errors import CancelledError
from ....system.locks import Lock, Rank

#: Seconds between two looks at the event, and until Python is asked again: it forgets what a ``__del__`` meets.
_PAUSE, _AGAIN = 0.01, 0.25


class _Stopped(BaseException):
    """Nothing that Lark catches."""


@contextmanager
def stoppable(meter: Meter, doing: str) -> Iterator[None]:
    """Have a compile that is cancelled meanwhile end, with the meter's error; ``doing`` names the phase for it.

    Another thread looks at the event, and has Python raise an exception in this one, between two instructions of
    Python. One that was asked for arrives here at the latest: CPython has no way to take one back that leaves nothing
    behind. (After a null exception its breaker stays on, which slows all of Python, and hangs traced calls up to
    3.11.) Where nothing cancels the compile there is no such thread.
    """
    if not meter.is_cancellable:
        yield
        return
    compiling, ended, lock, asked = threading.get_ident(), threading.Event(), Lock(Rank.LEAF), False

    def watch() -> None:
        nonlocal asked
        pause = _PAUSE
        while not ended.wait(pause):
            if meter.is_cancelled():
                with lock:
                    if not ended.is_set():
                        asked, pause = True, _AGAIN
                        _raise_in(compiling)

    threading.Thread(target=watch, daemon=True).start()
    try:
        try:
            yield
        finally:
            with lock:
                ended.set()
            if asked:
                _raise_in(compiling)
                while True:  # until it arrives
                    pass
    except _Stopped:
        with lock:
            ended.set()
        raise CancelledError("the compile was cancelled", where=doing) from None


def _raise_in(thread: int) -> None:
    """Have Python raise the exception in a thread, once, in place of one that it has not raised there yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Stopped))
