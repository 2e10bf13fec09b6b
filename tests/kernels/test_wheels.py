"""Wheels of `make wheels` that run here, each in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from judges.server_life import masks
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from structgen.kernels.aot.build import Platform

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"


def wheel() -> Path:
    """The one for this platform; skips the test where there is none."""
    found = [each for each in sorted(DIST.glob("*.whl")) if parse_wheel_filename(each.name)[3] & {*sys_tags()}]
    if not found:
        pytest.skip("there is no wheel for this platform in dist/: make wheels")
    return found[-1]


@pytest.fixture(scope="module")
def of_numba(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The masks that Numba fills, here, or on the machine that wrote ``STRUCTGEN_MASKS``."""
    if file := os.environ.get("STRUCTGEN_MASKS"):
        return json.loads(Path(file).read_text("utf-8"))
    pytest.importorskip("numba", reason="the sources of kernels need Numba")
    return masks(tmp_path_factory.mktemp("numba") / "cache", numba=True)


def test_every_wheel_has_one_module_of_its_platform() -> None:
    wheel()
    for each in DIST.glob("*.whl"):
        modules = [name for name in zipfile.ZipFile(each).namelist() if name.startswith("structgen/_kernels")]
        assert modules == ["structgen/_kernels.pyd" if "win" in each.name else "structgen/_kernels.abi3.so"]


@pytest.mark.parametrize(
    ("here", "libc", "version", "tag"),
    [
        ("linux-x86_64", "gnu", None, "manylinux_2_17_x86_64"),
        ("linux-aarch64", "gnu", None, "manylinux_2_17_aarch64"),
        ("linux-x86_64", "musl", None, None),
        ("linux-riscv64", "gnu", None, None),
        ("macosx-11.0-arm64", None, None, "macosx_11_0_arm64"),
        ("macosx-10.13-x86_64", None, None, None),
        ("win-amd64", None, None, "win_amd64"),
        ("win-arm64", None, None, None),
        ("linux-x86_64", "gnu", (3, 13), None),
        ("linux-x86_64", "gnu", (3, 14), "manylinux_2_17_x86_64"),
    ],
)
def test_what_can_be_compiled_where(
    here: str, libc: str | None, version: tuple[int, int] | None, tag: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba has no wheel for musl, macOS on Intel, other processors, or 3.13 without the GIL (``version``)."""
    variables = {"HOST_GNU_TYPE": libc, "Py_GIL_DISABLED": bool(version), "EXT_SUFFIX": ".cpython-314t.so"}
    monkeypatch.setattr("sysconfig.get_platform", lambda: here)
    monkeypatch.setattr("sysconfig.get_config_var", variables.get)
    monkeypatch.setattr("sys.version_info", version or sys.version_info)
    monkeypatch.delenv("STRUCTGEN_PLATFORM", raising=False)
    found = Platform.wanted()
    assert (found and found.tag) == tag
    assert found is None or found.is_stable != bool(version)


def install(environment: Path, *arguments: str | Path) -> Path:
    """Make an environment that has what pip is asked for, and nothing else; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    options = ["--quiet", "--disable-pip-version-check"]
    without = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}  # where structgen may be
    command = [python, "-m", "pip", "install", *options, *arguments]
    done = subprocess.run(command, env=without, capture_output=True, text=True)
    if "--no-index" not in arguments and "No matching distribution" in done.stderr:
        pytest.skip(f"packages can't be installed: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    return python


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["by the network", "without a network", "from the sources"])
def test_a_servers_life_in_an_empty_environment(how: str, of_numba: object, tmp_path: Path) -> None:
    """With nothing but what the wheel asks for, it fills the masks that Numba fills, and takes little room."""
    file, options = wheel(), []
    if how == "without a network":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(tmp_path / "all"), str(file)]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("the packages that the wheel asks for can't be downloaded")
        options = ["--no-index", "--find-links", str(tmp_path / "all")]
    elif how == "from the sources":
        if Platform.wanted() is None:
            pytest.skip("the sources of kernels need Numba")
        (file,) = DIST.glob("*.tar.gz")
    python = install(tmp_path / "venv", *options, file)
    assert masks(tmp_path / "cache", python) == of_numba
    installed = [each for each in (tmp_path / "venv").rglob("*") if not each.is_symlink()]
    packages = {each.name for each in installed if each.parent.name == "site-packages"}
    assert "structgen" in packages
    assert not {"numba", "llvmlite", "torch"} & packages
    assert sum(each.stat().st_size for each in installed) < 140e6


_WITHOUT_KERNELS = """
import logging, sys
sys.modules["numba"] = None
import structgen as sg
try:
    sg.compile(sg.Regex("a+"), sg.Vocabulary.from_bytes([b"a", None], eos_ids=[1]))
except sg.errors.InstallationError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_where_nothing_can_compile_kernels(tmp_path: Path) -> None:
    """The sources can be installed; what lacks is said when kernels are needed."""
    for each in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / each, tmp_path)
    ignored = shutil.ignore_patterns("__pycache__", "_kernels*")
    shutil.copytree(ROOT / "structgen", tmp_path / "structgen", ignore=ignored)
    pytest.importorskip("setuptools", "77")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir"]
    command += ["made", "."]
    subprocess.run(command, cwd=tmp_path, check=True, env=os.environ | {"_PYTHON_HOST_PLATFORM": "linux-riscv64"})
    (file,) = (tmp_path / "made").glob("*.whl")
    assert file.name.endswith("-py3-none-any.whl")
    zipfile.ZipFile(file).extractall(tmp_path / "installed")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "installed"), "STRUCTGEN_CACHE_DIR": str(tmp_path)}
    begin = [sys.executable, "-c", _WITHOUT_KERNELS]
    done = subprocess.run(begin, env=environment, cwd=tmp_path / "made", capture_output=True, text=True)
    assert "built where Numba has no wheel" in done.stdout, done.stderr
    assert "structgen[jit]" in done.stdout
