"""The test files of a change: ``python tests/house/affected.py BASE`` prints them, a line each (``make affected``).

They are the tests in the folders of the rooms that the change touches and of those that may import these; tests that
import a touched module, by way of judges and fakes too; tests whose source names a file that was touched; and the
rules of the house. The rest of the suite is for ``make test``.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from house.import_graph import MODULES, ROOMS, room

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"

#: What holds for every change.
ALWAYS = {TESTS / "house/test_imports.py", TESTS / "house/test_sizes.py"}


def imported(path: Path) -> set[Path]:
    """Files of the package and of the tests that a test file, or one of its helpers, imports by name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            found.add(MODULES.get(name.removeprefix("structgen.")))
            found.add(TESTS.joinpath(*name.split(".")).with_suffix(".py"))
    return {each for each in found if each is not None and each.is_file()}


def affected(changed: Iterable[Path]) -> set[Path]:
    """The test files that a change of these files may concern."""
    touched = {path for path in changed if path.name != "__init__.py" or path.parent != ROOT / "structgen"}
    modules = {path: name for name, path in MODULES.items()}
    rooms = {room(modules[path]) for path in touched & modules.keys()}
    rooms |= {above for above, below in ROOMS.items() if rooms & set(below.split())}
    uses = {path: imported(path) for path in TESTS.rglob("*.py")}
    data = {path.name for path in touched if path.suffix != ".py"}
    touched |= {path for path in uses if any(name in path.read_text(encoding="utf-8") for name in data)}
    while more := {path for path, others in uses.items() if others & touched} - touched:
        touched |= more
    folders = {TESTS.joinpath(*each.split(".")) for each in rooms}
    concerned = {path for path in uses if path in touched or path.parent in folders}
    return ALWAYS | {path for path in concerned if path.match("test_*.py") and TESTS / "engines" not in path.parents}


def changes(base: str) -> set[Path]:
    """Files that differ from where this branch left the base, committed or not."""

    def lines(*command: str) -> list[str]:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    (since,) = lines("merge-base", base, "HEAD")
    names = lines("diff", "--name-only", since) + lines("ls-files", "--others", "--exclude-standard")
    return {ROOT / name for name in names}


if __name__ == "__main__":
    print(*sorted(str(path.relative_to(ROOT)) for path in affected(changes(sys.argv[1]))), sep="\n")
