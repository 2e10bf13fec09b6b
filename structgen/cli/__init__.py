"""The ``structgen`` command: one module for each subcommand, put together in `app`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the console entry point. Leaves through `SystemExit`."""
    try:
        from .app import app

        app()
    except KeyboardInterrupt:  # while modules are still being imported; `app` sees to the rest
        sys.exit(130)
