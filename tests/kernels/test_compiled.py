"""The compiled module: what it refuses, what it needs, and a server's life with neither Numba nor LLVM."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from judges.kernel_oracles import ORACLES
from judges.server_life import masks

from structgen import kernels
from structgen.kernels.signatures import Parameter, Signature, read
from structgen.kernels.sources import digest

PACKAGE = Path(kernels.__file__).parents[1]
SIGNATURES = {each.name: each for each in read()}

_NOT_BUILT = "the kernels were not built: make kernels"
compiled = pytest.mark.skipif(kernels.PROCESSOR == "jit", reason=_NOT_BUILT)


@pytest.fixture(scope="module")
def module() -> Any:
    """`structgen._kernels`, of these sources."""
    found = pytest.importorskip("structgen._kernels", reason=_NOT_BUILT)
    if digest() != found.DIGEST:
        pytest.skip("the kernels have changed since they were built: make kernels")
    return found


def _wrong(parameter: Parameter, given: Any) -> list[Any]:
    """What may not stand in the place of an argument."""
    if not parameter.dimensions:
        return ["1", None, np.zeros(2), *([] if parameter.scalar == "float64" else [1 << 70])]
    other = np.int32 if given.dtype == np.int64 else np.int64
    apart = np.zeros((*(3,) * (given.ndim - 1), 8), given.dtype)[..., ::2]
    found = [None, given.tolist(), given.astype(other), given[None], apart]
    if given.itemsize > 1:
        found.append(given.astype(given.dtype.newbyteorder()))
    if parameter.is_written:
        found.append(given.copy())
        found[-1].flags.writeable = False
    return found


@compiled
@pytest.mark.parametrize("name", SIGNATURES)
def test_a_wrong_argument_is_a_type_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every argument of every kernel: another type, shape or layout, and what may not be written to."""
    kernel: Any = getattr(kernels, name)
    calls: list[list[Any]] = []

    def note(*arguments: Any) -> Any:
        if not calls:
            calls.append([each.copy() if isinstance(each, np.ndarray) else each for each in arguments])
        return kernel(*arguments)

    monkeypatch.setattr(kernels, name, note)
    ORACLES[name](Random(name))
    (arguments,) = calls
    with pytest.raises(TypeError, match=f"{name} takes {len(arguments)} arguments"):
        kernel(*arguments[:-1])
    for i, parameter in enumerate(SIGNATURES[name].parameters):
        for wrong in _wrong(parameter, arguments[i]):
            with pytest.raises((TypeError, OverflowError)) as caught:
                kernel(*arguments[:i], wrong, *arguments[i + 1 :])
            assert caught.type is OverflowError or f"{name}: {parameter.name} " in str(caught.value)


def test_the_module_says_what_its_sources_say(module: Any) -> None:
    functions = {name for name, each in vars(module).items() if callable(each)}
    assert functions == {*SIGNATURES, "address"}
    for name, signature in SIGNATURES.items():
        assert _stated(signature) == vars(module)[name].__doc__.split("\n\n", 1)[1]


def _stated(signature: Signature) -> str:
    return "\n".join(f"{each.name}: {each}" for each in signature.parameters)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_addresses_of_arrays(module: Any, dtype: Any) -> None:
    """They are NumPy's; what does not lie in C order has none, and what is no array."""
    fallback = pytest.importorskip("structgen.kernels.fallback", reason="it needs Numba")
    for shape in (0, 5, (3, 2), (0, 4)):
        array = np.zeros(shape, dtype)
        assert module.address(array) == fallback.NAMESPACE["address"](array) == array.__array_interface__["data"][0]
    for wrong in (np.zeros((4, 4), dtype)[:, 1:], np.zeros((3, 2), dtype).T):
        for address in (module.address, fallback.NAMESPACE["address"]):
            with pytest.raises(TypeError, match="not"):
                address(wrong)
    with pytest.raises(TypeError, match="not"):
        module.address([1, 2])


def test_the_module_needs_nothing_but_python(module: Any) -> None:
    """No memory of its own, no exceptions, no run time of Numba's: a few functions of C besides Python's."""
    if shutil.which("nm") is None:
        pytest.skip("needs nm, of GNU's binutils")
    listed = subprocess.check_output(["nm", "-D", "--undefined-only", module.__file__], text=True)
    names = {re.sub("@.*", "", line.split()[-1]) for line in listed.splitlines()}
    others = {name for name in names if not name.startswith(("Py", "_Py"))}
    assert others <= {"getenv", "strcmp", "memcpy", "memset", "memmove", "__cxa_finalize", "__gmon_start__"}


def test_a_servers_life_without_numba(module: Any, tmp_path: Path) -> None:
    """Every variant that runs here fills the same masks."""
    found = masks(tmp_path / "best")
    if module.PROCESSOR == "x86_64_v3":
        assert masks(tmp_path / "v2", STRUCTGEN_PROCESSOR="x86_64_v2") == found


@pytest.mark.nightly
def test_numba_fills_the_same_masks(module: Any, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    assert masks(tmp_path / "jit", numba=True) == masks(tmp_path / "compiled")


_BROKEN = """
import sys
sys.modules["numba"] = None
import structgen as sg
vocabulary = sg.Vocabulary.from_bytes([b"a", None], eos_ids=[1])
try:
    sg.compile(sg.Regex("a+"), vocabulary)
except sg.errors.InstallationError as error:
    print(error)
"""


@pytest.mark.parametrize("damage", ["missing", "short", "of other sources", "of other processors"])
def test_a_module_that_can_not_be_used_and_no_numba(module: Any, tmp_path: Path, damage: str) -> None:
    """An error that says what is wrong, and what to do; with Numba, a line in the log."""
    shutil.copytree(PACKAGE, tmp_path / "structgen", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE.parent / "pyproject.toml", tmp_path)
    (file,) = (tmp_path / "structgen").glob("_kernels*")
    if damage == "missing":
        file.unlink()
    elif damage == "short":
        file.write_bytes(file.read_bytes()[:5000])
    elif damage == "of other sources":
        with (tmp_path / "structgen/kernels/rows.py").open("a") as source:
            source.write("\n# changed\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "STRUCTGEN_CACHE_DIR": str(tmp_path)}
    if damage == "of other processors":
        environment["STRUCTGEN_PROCESSOR"] = "x86_64_v1"
    begin = [sys.executable, "-c", _BROKEN]
    done = subprocess.run(begin, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "the compiled kernels can't be loaded" in done.stdout, done.stderr
    assert "make kernels" in done.stdout
