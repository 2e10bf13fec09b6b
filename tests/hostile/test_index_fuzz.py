"""Damaged index files are refused, work, or raise an error of structgen's: with Numba's bounds checks on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from hostile.index_fuzzer import CHECKED, DEFINITIONS, KINDS, WAYS, boundary, damaged, write_originals
from structgen.storage.columns import Column

#: Files: in every run of the tests, or as many as the environment says (``make fuzz``).
COUNT = int(os.environ.get("STRUCTGEN_FUZZ", 2000))

#: Seconds after which a run has hung.
HUNG = 600 + COUNT


@pytest.mark.nightly
def test_damaged_files_of_every_kind(tmp_path: Path) -> None:
    """In a process of its own, with its own kernels, which are kept beside those without checks."""
    environment = {
        **os.environ,
        **CHECKED,
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parents[2]), str(Path(__file__).parents[1])]),
    }
    write_originals(tmp_path)
    seed = os.environ.get("STRUCTGEN_FUZZ_SEED", "0")  # any text, such as a date
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "hostile.index_fuzzer", str(COUNT), seed, str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=HUNG,
    )  # fmt: skip
    left = [path.name for path in tmp_path.glob("*.sgx")]
    assert done.returncode == 0, f"{left}, kind, seed and number, ended the process:\n{done.stderr[-4000:]}"
    by_definition, by_damage, by_way = json.loads(done.stdout.splitlines()[-1]).values()
    assert set(by_definition) == set(DEFINITIONS)
    assert set(by_damage) > set(KINDS)
    for outcomes in (by_definition, by_damage, by_way):
        assert sum(sum(each.values()) for each in outcomes.values()) == COUNT
        for name, each in outcomes.items():
            print(f"{name:>14}: {each['used']:6} used, {each['refused']:6} refused")
            assert each["refused"] >= COUNT // 2000, (name, each)
    assert set(by_way) == set(WAYS)
    for name, each in (by_definition | by_way).items():
        assert each["used"] >= COUNT // 2000, (name, each)


def test_the_fuzzer_reaches_every_bound() -> None:
    """It puts numbers on both sides of what is declared, wherever they may stand."""
    column, sizes = Column("numbers", "i4", fields=((-1, "states"), (3, ("states", 5)))), {"states": 40}
    random = Random(0)
    for which, edges in enumerate(((-2, -1, 39, 40, 41), (2, 3, 44, 45, 46))):
        found = {boundary(column, sizes, which, np.dtype("i4"), random) for _ in range(2000)}
        assert found.issuperset(edges)
    section = np.arange(12, dtype=np.int32).reshape(6, 2)
    changed = [damaged(section, column, sizes, random.choice(KINDS), random) for _ in range(500)]
    assert {each.shape for each in changed} > {(6, 2), (5, 2), (8, 2)}
    assert {each.dtype.str[1:] for each in changed} == {"u1", "u2", "u4", "i4"}
    assert len(KINDS) > 15
