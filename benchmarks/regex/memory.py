"""How much memory objects take: growth of the process's own resident memory, on Linux with glibc."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

_STATUS = Path("/proc/self/status")


def is_measurable() -> bool:
    """Whether this system tells a process's anonymous resident memory."""
    return _STATUS.is_file() and "RssAnon" in _STATUS.read_text()


def resident() -> int:
    """Bytes of anonymous memory that are resident, after giving back to the system what is free."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def limit_to_available(share: float = 0.7) -> None:
    """Let this process have at most a share of the memory that is free now, so that others keep running."""
    import resource

    if not Path("/proc/meminfo").is_file():
        return
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = int(lines["MemAvailable"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (int(share * available), resource.RLIM_INFINITY))
