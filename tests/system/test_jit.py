"""Where compiled kernels are kept: a private folder that survives whatever happens to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

JIT = {"STRUCTGEN_KERNELS": "jit"}

PROGRAM = """
import numpy as np
from structgen import kernels
row, base, out = np.array([5], np.uint32), np.array([1], np.uint32), np.empty(1, np.uint32)
kernels.set_bits(row, base, out)
assert out.tolist() == [2]
stats = kernels.set_bits.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""


def run(folder: Path, **environment: str) -> tuple[int, int, Path]:
    """Use one small kernel in a new process: cache hits, cache misses, the folder or ``None``."""
    (found,) = run_together(1, folder, **environment)
    return found


def run_together(many: int, folder: Path, **environment: str) -> list[tuple[int, int, Path]]:
    """The same in several processes at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | JIT | {"STRUCTGEN_CACHE_DIR": str(folder)} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(many)
    ]
    found = []
    for process in processes:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        hits, misses, path = out.split(maxsplit=2)
        found.append((int(hits), int(misses), Path(path.strip())))
    return found


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder in which the kernel is kept, and where below it."""
    folder = tmp_path_factory.mktemp("compiled")
    hits, misses, path = run(folder)
    assert (hits, misses) == (0, 1)
    assert path.is_relative_to(folder / "kernels")
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0
    return folder, path.relative_to(folder)


@pytest.fixture
def kept(compiled: tuple[Path, Path], tmp_path: Path) -> Path:
    """Where the kernel is kept below a copy of that folder, ``tmp_path``."""
    shutil.copytree(compiled[0], tmp_path, dirs_exist_ok=True)
    return tmp_path / compiled[1]


def test_the_second_process_loads_what_the_first_compiled(kept: Path, tmp_path: Path) -> None:
    assert run(tmp_path) == (1, 0, kept)


def test_code_that_numba_does_not_keep(tmp_path: Path) -> None:
    """Without its optimiser the code refers to addresses of this process."""
    assert run(tmp_path, NUMBA_OPT="0")[:2] == (0, 1)
    assert run(tmp_path, NUMBA_OPT="0")[1] == 1


def test_damaged_files_mean_compiling_again(kept: Path, tmp_path: Path) -> None:
    for file in kept.iterdir():
        file.write_bytes(file.read_bytes()[:20])
    assert run(tmp_path)[1] == 1


def test_an_unusable_folder_means_compiling_for_this_process_alone(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file where the folder should be")
    assert run(tmp_path)[2] == Path("None")
    assert [path.name for path in tmp_path.iterdir()] == ["kernels"]


@pytest.mark.skipif(os.name != "posix", reason="other users' folders are a matter of POSIX permissions")
@pytest.mark.parametrize("above", [0, 1, 2], ids=["the folder", "the one above", "the one above that"])
def test_a_folder_that_others_can_write_is_not_trusted(kept: Path, tmp_path: Path, above: int) -> None:
    (kept, *kept.parents)[above].chmod(0o777)
    assert run(tmp_path)[2] == Path("None")


@pytest.mark.skipif(os.name != "posix", reason="other users' files are a matter of POSIX permissions")
def test_files_that_others_can_write_are_not_trusted(kept: Path, tmp_path: Path) -> None:
    for file in kept.iterdir():
        file.chmod(0o666)
    assert run(tmp_path)[:2] == (1, 0)  # nobody else comes to them
    kept.chmod(0o755)
    assert run(tmp_path)[2] == Path("None")


def test_a_relative_folder_stays_where_it_was(tmp_path: Path) -> None:
    program = f"import os; from structgen.kernels import write_gaps; os.chdir('/')\n{PROGRAM}"
    environment = os.environ | JIT | {"STRUCTGEN_CACHE_DIR": "folder", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.split()[2]).is_relative_to(tmp_path / "folder" / "kernels")
    assert run(tmp_path / "folder")[:2] == (1, 0)


def test_two_processes_compile_at_once(tmp_path: Path) -> None:
    environment = os.environ | JIT | {"STRUCTGEN_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.DEVNULL) for _ in "ab"]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert run(tmp_path)[:2] == (1, 0)
