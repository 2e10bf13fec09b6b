"""The ``structgen`` command: one module for each subcommand, put together in `app`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import socket
import sys
import threading
from contextlib import suppress

_INTERRUPTED = 130

#: Seconds after which an interrupt that has ended nothing is sent again.
_PATIENCE = 0.5


def main() -> None:
    """Run the command line; the console entry point. Leaves through `SystemExit`."""
    status: list[object] = []
    atexit.register(_end, status)  # first, so that it is done last
    ended = threading.Event()
    try:
        _insist(ended)
        from .app import app

        app()
    except KeyboardInterrupt:  # while modules are still being imported; `app` sees to the rest
        status.append(_INTERRUPTED)
        sys.exit(_INTERRUPTED)
    except SystemExit as leaving:
        status.append(leaving.code)
        raise
    finally:
        ended.set()


def _insist(ended: threading.Event) -> None:
    """Have an interrupt come again until the command has ended: Python forgets one that a ``__del__`` raises."""
    if not hasattr(signal, "pthread_kill") or threading.current_thread() is not threading.main_thread():
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)

    def watch(main: int) -> None:
        with heard, told:
            while not ended.is_set():
                if heard.recv(1)[0] == signal.SIGINT and not ended.wait(_PATIENCE):
                    signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=watch, args=(threading.get_ident(),), name="structgen-interrupts", daemon=True).start()


def _end(status: list[object]) -> None:
    """Threads are done and all is written: what is left, taking the interpreter down, took 0.2 s, its garbage 1 s."""
    gc.freeze()
    if status == [_INTERRUPTED]:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(_INTERRUPTED)
