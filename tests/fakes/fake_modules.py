"""Modules in place of an engine that is not installed, so that what is written against it can be loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any


@contextmanager
def fake_modules(modules: dict[str, dict[str, Any]], *users: str) -> Iterator[None]:
    """Modules of a package that is not installed, for as long as the modules that use it are loaded."""
    root = next(iter(modules))
    if find_spec(root) is not None:
        yield
        return
    made: dict[str, ModuleType] = {}
    for name, content in modules.items():
        made[name] = module = ModuleType(name)
        module.__path__ = []  # a package, whatever it is
        vars(module).update(content)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, module)
    sys.modules.update(made)
    try:
        yield
    finally:
        for name in (*made, *users):
            sys.modules.pop(name, None)
            parent, _, last = name.rpartition(".")  # which has it still, and `from parent import last` looks there
            vars(sys.modules.get(parent, made[root])).pop(last, None)
