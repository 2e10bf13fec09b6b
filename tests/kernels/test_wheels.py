"""Wheels of `make wheels` that run here, each in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from judges.server_life import LIFE

DIST = Path(__file__).resolve().parents[2] / "dist"


def wheel() -> Path:
    """The one for this platform; skips the test where there is none."""
    machine = sysconfig.get_platform().rpartition("-")[2]
    found = sorted(DIST.glob(f"structgen-*_{machine}.whl")) if sys.platform == "linux" else []
    if not found:
        pytest.skip("there is no wheel for this platform in dist/: make wheels")
    return found[-1]


def test_every_wheel_has_one_module_of_its_platform() -> None:
    wheel()
    for each in DIST.glob("*.whl"):
        modules = [name for name in zipfile.ZipFile(each).namelist() if name.startswith("structgen/_kernels")]
        assert modules == ["structgen/_kernels.pyd" if "win" in each.name else "structgen/_kernels.abi3.so"]


@pytest.mark.nightly
@pytest.mark.parametrize("network", [True, False], ids=["by the network", "without a network"])
def test_a_servers_life_in_an_empty_environment(network: bool, tmp_path: Path) -> None:
    """With nothing but what the wheel asks for, it fills the masks that this checkout fills."""
    file, python = wheel(), tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    options = []
    if not network:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(tmp_path / "all"), str(file)]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("the packages that the wheel asks for can't be downloaded")
        options = ["--no-index", "--find-links", str(tmp_path / "all")]
    install = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", *options, file], capture_output=True, text=True
    )
    if network and install.returncode:
        pytest.skip(f"packages can't be installed: {install.stderr[-200:]}")
    assert install.returncode == 0, install.stderr
    environment = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}

    def lived(interpreter: str | Path, folder: Path) -> object:
        done = subprocess.run(
            [interpreter, "-c", LIFE, folder], capture_output=True, text=True, cwd=tmp_path,
            env=environment | {"STRUCTGEN_CACHE_DIR": str(folder)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert lived(python, tmp_path / "theirs") == lived(sys.executable, tmp_path / "ours")
    packages = [each.name.lower() for each in (tmp_path / "venv").glob("lib/*/site-packages/*")]
    assert not {"numba", "llvmlite"} & {*packages}
