"""The ``structgen`` command: one module for each subcommand, put together in `app`."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; the console entry point. Leaves through `SystemExit`."""
    status: list[object] = []
    atexit.register(_end, status)  # first, so that it is done last
    try:
        from .app import app

        app()
    except KeyboardInterrupt:  # while modules are still being imported; `app` sees to the rest
        status.append(_INTERRUPTED)
        sys.exit(_INTERRUPTED)
    except SystemExit as leaving:
        status.append(leaving.code)
        raise


def _end(status: list[object]) -> None:
    """Threads are done and all is written: what is left, taking the interpreter down, took 0.2 s, its garbage 1 s."""
    gc.freeze()
    if status == [_INTERRUPTED]:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(_INTERRUPTED)
