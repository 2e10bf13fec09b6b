"""Names of tests depend on nothing that differs between two processes: pytest-xdist refuses to run them otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.nightly
def test_names_do_not_depend_on_the_order_of_sets() -> None:
    command = [sys.executable, "-m", "pytest", "-o", "addopts=--strict-markers", "--collect-only", "-q"]
    run = partial(subprocess.Popen, command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    running = [run(env={**os.environ, "PYTHONHASHSEED": seed}) for seed in ("1", "2", "3")]
    found = [[line for line in each.communicate()[0].splitlines() if "::" in line] for each in running]
    assert len(found[0]) > 10_000
    assert found[0] == found[1] == found[2]
