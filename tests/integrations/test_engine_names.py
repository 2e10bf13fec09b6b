"""Names of engines that structgen relies on: each adapter's are there, or the engine's version is refused."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

import structgen
from structgen.errors import UnsupportedError
from structgen.integrations import engine_names

pytest.importorskip("transformers")


PACKAGE = Path(structgen.__file__).parent


@pytest.mark.parametrize("adapter", ["transformers.generate", "transformers.batching", "transformers.processor"])
def test_names_of_what_is_installed(adapter: str) -> None:
    engine_names.check_engine(adapter)


@pytest.mark.parametrize("name", ["structgen.nowhere:x", "structgen.errors:Error.nothing", "structgen.errors:Other"])
def test_a_name_that_is_not_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engine_names.NAMES, name, (name,))
    with pytest.raises(UnsupportedError, match="the installed version of structgen has no"):
        engine_names.check_engine(name)


def test_an_attribute_that_is_not_there() -> None:
    config = SimpleNamespace(_pad_token_tensor=None)
    engine_names.check_attributes("transformers.generate", config)
    with pytest.raises(UnsupportedError, match=r"no SimpleNamespace\._sampler, which structgen relies on"):
        engine_names.check_attributes("llama_cpp", config)


def private_names(tree: ast.AST) -> set[str]:
    """Names with one underscore that are asked of something else than ``self``, also by ``getattr``."""
    found = set()
    for node in ast.walk(tree):
        name: object = None
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            name = node.attr
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
        if isinstance(name, str) and name.startswith("_") and not name.startswith("__"):
            found.add(name)
    return found


@cache
def own_names() -> set[str]:
    """What structgen's own classes and modules have of such names."""
    found = {"_getframe"}  # Python's
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                found.add(node.attr)
    return found


@pytest.mark.parametrize("path", sorted((PACKAGE / "integrations").rglob("*.py")), ids=lambda path: path.stem)
def test_private_names_stand_in_one_file(path: Path) -> None:
    paths = [each.partition(":")[2] for names in engine_names.NAMES.values() for each in names]
    listed = {part for each in paths for part in each.split(".")}
    for table in (engine_names.ATTRIBUTES, engine_names.OPTIONAL):
        listed.update(*table.values())
    assert private_names(ast.parse(path.read_text())) - own_names() <= listed


def test_each_adapter_is_checked() -> None:
    source = "".join(path.read_text() for path in (PACKAGE / "integrations").rglob("*.py"))
    assert all(f'check_engine("{adapter}")' in source for adapter in engine_names.NAMES)
    assert all(f'check_attributes("{adapter}", ' in source for adapter in engine_names.ATTRIBUTES)
