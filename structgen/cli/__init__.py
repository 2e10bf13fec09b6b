"""The ``structgen`` command: one module for each subcommand, put together in `app`."""

from __future__ import annotations

import atexit
import gc
import sys


def main() -> None:
    """Run the command line; the console entry point. Leaves through `SystemExit`."""
    atexit.register(gc.freeze)  # the end of the process looks for no garbage, which took a second
    try:
        from .app import app

        app()
    except KeyboardInterrupt:  # while modules are still being imported; `app` sees to the rest
        sys.exit(130)
