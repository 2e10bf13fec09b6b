"""docs/reference/environment.md: its tables have the environment variables that structgen/ reads, and no others.

Variables of tests, benchmarks and other packages are not in the tables.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from structgen.integrations.settings import ENGINE_NAMES, variable_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "structgen"
PAGE = ROOT / "docs/reference/environment.md"

#: The expression by which `structgen.integrations.settings` names the variable of an engine.
OF_ENGINES = ("integrations/settings.py", "variable")


def is_environment(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def asked_for(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions that name variables, each way that a program can read one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and is_environment(node.value):
            yield node.slice
        elif isinstance(node, ast.Compare) and any(map(is_environment, node.comparators)):
            yield node.left
        elif isinstance(node, ast.Call):
            function, arguments = node.func, node.args
            if isinstance(function, ast.Name) and function.id == "map":
                function, *arguments = arguments
            if isinstance(function, ast.Attribute) and (
                function.attr == "getenv" or (is_environment(function.value) and function.attr != "copy")
            ):
                yield arguments[0]


def constants(tree: ast.Module) -> dict[str, object]:
    """The module's literals by name."""
    found: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def read_by_python() -> set[str]:
    names: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for expression in asked_for(tree):
            if (path.relative_to(PACKAGE).as_posix(), ast.unparse(expression)) == OF_ENGINES:
                names |= set(map(variable_of, ENGINE_NAMES))
                continue
            if isinstance(expression, ast.Name):
                value = constants(tree).get(expression.id)
            else:
                value = ast.literal_eval(expression)
            assert isinstance(value, str | tuple), f"{path}: {ast.unparse(expression)} is no constant of the module"
            names |= {value} if isinstance(value, str) else set(value)
    return names


def read_by_c() -> set[str]:
    files = [path for path in PACKAGE.rglob("*") if path.suffix in (".h", ".c")]
    return {name for path in files for name in re.findall(r'getenv\("(\w+)"\)', path.read_text(encoding="utf-8"))}


def rows() -> list[list[str]]:
    lines = re.findall(r"^\| (`.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [line.split(" | ") for line in lines]


def test_the_page_has_what_the_code_reads() -> None:
    listed = [name for cells in rows() for name in re.findall(r"`(\w+)`", cells[0])]
    assert sorted(listed) == sorted(read_by_python() | read_by_c())


def test_each_has_a_default_a_meaning_and_a_reader() -> None:
    assert all(len(cells) == 4 and all(cells) for cells in rows())


def test_names_in_the_package_are_names_of_the_page() -> None:
    """Also in messages and docstrings, where a name may outlive its variable."""
    said = {
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"\bSTRUCTGEN_[A-Z_]*[A-Z]", path.read_text(encoding="utf-8"))
    }
    assert said <= read_by_python() | read_by_c()


def test_a_variable_that_is_read_in_any_way_is_found() -> None:
    source = """
os.environ.get("A"); os.environ["B"]; os.getenv("C"); map(os.environ.get, ("D", "E")); "F" in os.environ
os.environ.copy(); os.environ | {"G": "1"}
"""
    found = [ast.literal_eval(expression) for expression in asked_for(ast.parse(source))]
    assert sorted(map(str, found)) == ["('D', 'E')", "A", "B", "C", "F"]
