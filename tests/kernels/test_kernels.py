"""Each kernel, the Python function that it was compiled from, and a plain oracle: the same answers."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import pytest
from judges.kernel_oracles import ORACLES

from structgen import kernels

#: What is compiled from Python functions and can be called from Python, by name: every kernel of the package.
KERNELS = {
    name: value
    for name, value in vars(kernels).items()
    if hasattr(value, "py_func") and not value.targetoptions.get("no_cpython_wrapper")
}

#: Every function of the package that is compiled, also those that only kernels call, with where it stands.
_COMPILED = [
    (module, name, value)
    for module in [module for name, module in sys.modules.items() if name.startswith("structgen.kernels.")]
    for name, value in vars(module).items()
    if hasattr(value, "py_func")
]

#: Calls of a kernel that are followed in Python, too.
_MOST = 40


@contextmanager
def plain() -> Iterator[None]:
    """Kernels call Python functions meanwhile."""
    for module, name, value in _COMPILED:
        setattr(module, name, value.py_func)
    try:
        yield
    finally:
        for module, name, value in _COMPILED:
            setattr(module, name, value)


class Twin:
    """A kernel, whose first calls are made of its Python function as well: both return and write the same."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.calls = 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls > _MOST:
            return self._kernel(*arguments)
        copies = [_copied(each) for each in arguments]
        found = self._kernel(*arguments)
        with plain(), np.errstate(over="ignore"):  # hashes wrap on purpose; only Python says so
            expected = self._kernel.py_func(*copies)
        for one, other in zip((found, *arguments), (expected, *copies), strict=True):
            np.testing.assert_equal(one, other)
        return found


def _copied(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return tuple(map(_copied, argument))
    return argument.copy() if isinstance(argument, np.ndarray) else argument


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_its_python_and_its_oracle(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in ORACLES, "a new kernel needs an oracle"
    twin = Twin(KERNELS[name])
    monkeypatch.setattr(kernels, name, twin)
    ORACLES[name](Random(name))
    assert twin.calls, "the oracle does not come to the kernel"


def test_every_oracle_has_its_kernel() -> None:
    assert ORACLES.keys() == KERNELS.keys()


def test_kernels_have_no_name_in_common() -> None:
    """`structgen.kernels` has the names of all its modules: one that two define would hide the other."""
    found: dict[str, list[str]] = {}
    for name, module in sys.modules.items():
        source = inspect.getsource(module) if name.startswith("structgen.kernels.") else ""
        for target in re.findall(r"^(?:def )?([A-Za-z][\w, ]*)(?: = |\()", source, re.MULTILINE):
            for each in target.split(", "):
                found.setdefault(each, []).append(name)
    assert not {each: names for each, names in found.items() if len(names) > 1}
