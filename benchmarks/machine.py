"""On what, and with what, a benchmark ran."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("structgen", "numpy", "numba", "outlines-core", "llguidance", "xgrammar", "torch")


def describe() -> dict[str, str | int | float]:
    """Processor, memory, system and Python."""
    facts: dict[str, str | int | float] = {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "usable cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()).strip(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        facts["memory"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return facts


def load() -> float:
    """Processes that want a core, the mean of the last minute; -1 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0


def versions() -> dict[str, str]:
    """Versions of the packages that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
