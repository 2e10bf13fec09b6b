"""Each kernel, the Python function that it was compiled from, and a plain oracle: the same answers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from random import Random
from typing import Any

import numpy as np
import pytest
from judges.kernel_oracles import ORACLES

from structgen import kernels
from structgen.kernels.signatures import read
from structgen.kernels.sources import FOLDER, kernel_files

numba = pytest.importorskip("numba", reason="the sources of kernels need Numba")

#: The modules of the sources.
_MODULES = [
    import_module("structgen.kernels." + ".".join(file.relative_to(FOLDER).with_suffix("").parts))
    for file in kernel_files()
]

#: Every function of the package that is compiled, also those that only kernels call, with where it stands.
_COMPILED = [
    (module, name, value) for module in _MODULES for name, value in vars(module).items() if hasattr(value, "py_func")
]

SIGNATURES = {each.name: each for each in read()}

#: The Python function of each kernel.
_PLAIN = {name: value.py_func for _, name, value in _COMPILED if name in SIGNATURES}

#: Calls of a kernel that are followed in Python, too.
_MOST = 40

#: Modules of kernels that are given addresses: what these lead to has no copy.
_BY_ADDRESS = ("store.", "columns", "pushdown.arena_columns")


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
    """A kernel, whose first calls are made of its Python function as well: both return and write the same.

    What the kernel is not said to write to stays as it was.
    """

    def __init__(self, name: str) -> None:
        self._kernel, self._plain, self._signature = getattr(kernels, name), _PLAIN[name], SIGNATURES[name]
        self.calls = 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls > _MOST or self._signature.module.startswith(_BY_ADDRESS):
            return self._kernel(*arguments)
        copies, before = [_copied(each) for each in arguments], [_copied(each) for each in arguments]
        found = self._kernel(*arguments)
        with plain(), np.errstate(over="ignore"):  # hashes wrap on purpose; only Python says so
            expected = self._plain(*copies)
        for one, other in zip((found, *arguments), (expected, *copies), strict=True):
            np.testing.assert_equal(one, other)
        for parameter, one, other in zip(self._signature.parameters, arguments, before, strict=True):
            if not parameter.is_written:
                np.testing.assert_equal(one, other, parameter.name)
        return found


def _copied(argument: Any) -> Any:
    return argument.copy() if isinstance(argument, np.ndarray) else argument


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_kernel_its_python_and_its_oracle(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in ORACLES, "a new kernel needs an oracle"
    twin = Twin(name)
    monkeypatch.setattr(kernels, name, twin)
    ORACLES[name](Random(name))
    assert twin.calls, "the oracle does not come to the kernel"


def test_every_oracle_has_its_kernel() -> None:
    assert ORACLES.keys() == SIGNATURES.keys()


def test_kernels_have_no_name_in_common() -> None:
    """`structgen.kernels` has the names of all its modules: one that two define would hide the other."""
    found: dict[str, list[str]] = {}
    for module in _MODULES:
        name, source = module.__name__, inspect.getsource(module)
        for target in re.findall(r"^(?:def )?([A-Za-z][\w, ]*)(?: = |\()", source, re.MULTILINE):
            for each in target.split(", "):
                found.setdefault(each, []).append(name)
    assert not {each: names for each, names in found.items() if len(names) > 1}


def test_without_the_gil_kernels_of_stores_run_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share tables and scratch, which the GIL guards elsewhere."""
    held: list[str] = []

    class Noted:
        def __enter__(self) -> None:
            held.append("taken")

        def __exit__(self, *_: object) -> None:
            held.append("let go")

    def made_up(number: int) -> int:
        return number + 1

    made_up.__doc__ = "A kernel of structgen.kernels.store.steps."
    monkeypatch.setattr(kernels, "TABLES", Noted())
    plain = {name: getattr(kernels, name) for name in SIGNATURES}
    guarded = kernels.one_at_a_time(plain | {"made_up": made_up})
    changed = {name for name in plain if guarded[name] is not plain[name]}
    assert changed == {name for name, each in SIGNATURES.items() if each.module.startswith("store.")}
    assert guarded["made_up"](2) == 3
    assert held == ["taken", "let go"]
