"""What a process pays before it does anything: imports."""

from __future__ import annotations

import subprocess
import sys

from ..run import ROOT

#: What is timed, by name: each in a new process, where NumPy is already imported.
IMPORTS = {
    "structgen": "import structgen",
    "structgen, every public name": "import structgen\nfor name in structgen.__all__: getattr(structgen, name)",
    "outlines-core": "import outlines_core",
    "llguidance": "import llguidance",
    "xgrammar": "import xgrammar",
}


def import_seconds(names: list[str], repeats: int) -> dict[str, list[float]]:
    """Seconds to import on top of NumPy, for each name of `IMPORTS`.

    One after the other in turn, so that whatever else the machine does hits all of them. An unrecorded first round
    brings the files into memory.
    """
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repeats + 1):
        for name in names:
            seconds = _seconds(IMPORTS[name])
            if turn:
                times[name].append(seconds)
    return times


def _seconds(code: str) -> float:
    """Seconds that some code takes in a new process that has NumPy."""
    script = f"import time, numpy\nbegan = time.perf_counter()\n{code}\nprint(time.perf_counter() - began)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.split()[-1])
