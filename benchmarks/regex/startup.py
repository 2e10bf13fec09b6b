"""What a process pays before it does anything: imports, and the first compile of the kernels on a machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from ..run import ROOT

#: What is timed, by name: each in a new process, where NumPy is already imported.
IMPORTS = {
    "structgen": "import structgen",
    "structgen, every public name": "import structgen\nfor name in structgen.__all__: getattr(structgen, name)",
    "outlines-core": "import outlines_core",
    "llguidance": "import llguidance",
    "xgrammar": "import xgrammar",
}

_KERNELS = "from structgen.api import compile_kernels\ncompile_kernels()"


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


def kernel_seconds(repeats: int) -> tuple[list[float], list[float]]:
    """Seconds to have the kernels ready: with an empty folder for compiled code, then with that folder filled.

    Both include importing Numba and what else `compile_kernels` needs.
    """
    first, again = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
            first.append(_seconds(_KERNELS, STRUCTGEN_CACHE_DIR=folder))
            again += [_seconds(_KERNELS, STRUCTGEN_CACHE_DIR=folder) for _ in range(3)]
    return first, again


def _seconds(code: str, **environment: str) -> float:
    """Seconds that some code takes in a new process that has NumPy."""
    script = f"import time, numpy\nbegan = time.perf_counter()\n{code}\nprint(time.perf_counter() - began)"
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, cwd=ROOT,
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout.split()[-1])
