"""Servers of tiny models, each a process of its own, on a port that was free."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

#: Seconds until a server listens, on a machine that is slow and does much else.
_PATIENCE = 600


@contextmanager
def serving(command: Sequence[str], log: Path) -> Iterator[str]:
    """The address of a server, once it listens; it is killed in the end, with what it has started.

    Parameters
    ----------
    command:
        Has uvicorn listen on port 0 of 127.0.0.1, so that the system chooses the port.
    log:
        A file for what it prints.
    """
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield _address(process, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"running on (http://127\.0\.0\.1:[1-9]\d*)", log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"the server ended, or never listened: {log.read_text(errors='replace')[-2000:]}")
