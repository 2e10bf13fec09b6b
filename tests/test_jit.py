"""Where compiled kernels are kept: a private folder that survives whatever happens to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
from structgen import kernels
row, base = np.array([5], np.uint32), np.array([1], np.uint32)
assert kernels.set_bits(row, base, 1).tolist() == [2]
stats = kernels.set_bits.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""


def run(folder: Path, **environment: str) -> tuple[int, int, Path]:
    """Use one small kernel in a new process: cache hits, cache misses, the folder."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"STRUCTGEN_CACHE_DIR": str(folder)} | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    hits, misses, path = done.stdout.split(maxsplit=2)
    return int(hits), int(misses), Path(path.strip())


def test_the_second_process_loads_what_the_first_compiled(tmp_path: Path) -> None:
    hits, misses, path = run(tmp_path)
    assert (hits, misses) == (0, 1)
    assert path.is_relative_to(tmp_path / "kernels")
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0
    assert run(tmp_path)[:2] == (1, 0)


def test_damaged_files_mean_compiling_again(tmp_path: Path) -> None:
    path = run(tmp_path)[2]
    for file in path.iterdir():
        file.write_bytes(file.read_bytes()[:20])
    assert run(tmp_path)[1] == 1


def test_an_unusable_folder_means_another_one(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file where the folder should be")
    _, misses, path = run(tmp_path, TMPDIR=str(tmp_path))
    assert misses == 1
    assert path.is_dir()


@pytest.mark.skipif(os.name != "posix", reason="other users' folders are a matter of POSIX permissions")
def test_a_folder_that_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    path = run(tmp_path)[2]
    path.chmod(0o777)
    assert run(tmp_path, TMPDIR=str(tmp_path))[2] != path


def test_two_processes_compile_at_once(tmp_path: Path) -> None:
    environment = os.environ | {"STRUCTGEN_CACHE_DIR": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.DEVNULL) for _ in "ab"
    ]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert run(tmp_path)[:2] == (1, 0)
