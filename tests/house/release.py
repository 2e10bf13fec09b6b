"""The checks of ``make release``: ``release.py tree`` before it, ``release.py dist PLATFORM...`` at its end.

Both print problems, a line each, and end with status 1 if there are any.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def field(root: Path, name: str, pattern: str) -> str:
    """The group of a pattern's first match in a file, or ``"nothing"``."""
    found = re.search(pattern, (root / name).read_text("utf-8"), re.M)
    return found[1] if found else "nothing"


def version_of(root: Path) -> str:
    """The version in pyproject.toml."""
    return field(root, "pyproject.toml", r'^version = "(.+)"$')


def date_of(root: Path) -> str:
    """The date of the changelog's newest entry, or ``"Unreleased"``."""
    return field(root, "CHANGELOG.md", r"^## \[.+\] - (.+)$")


def disagreements(root: Path) -> list[str]:
    """Files that declare another version than pyproject.toml, or another date than the changelog."""
    version, day = version_of(root), date_of(root)
    declared = {
        "structgen/__init__.py": field(root, "structgen/__init__.py", r'^__version__ = "(.+)"$'),
        "CITATION.cff": field(root, "CITATION.cff", r"^version: (.+)$"),
        "the newest entry of CHANGELOG.md": field(root, "CHANGELOG.md", r"^## \[(.+?)\]"),
    }
    found = [f"{name} has {each}, pyproject.toml {version}" for name, each in declared.items() if each != version]
    cited = field(root, "CITATION.cff", r"^date-released: (.+)$")
    if cited != (day if day != "Unreleased" else "nothing"):
        found.append(f"CITATION.cff has {cited} as date-released, CHANGELOG.md {day}")
    return found


def problems_of_tree(root: Path) -> list[str]:
    """Changes that are not committed, files that disagree, a changelog without a date."""
    changes = subprocess.check_output(["git", "status", "--porcelain"], cwd=root, text=True)
    found = [f"not committed: {line}" for line in changes.splitlines()] + disagreements(root)
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date_of(root)):
        found.append(f"the newest entry of CHANGELOG.md has no date: write {date.today()}, in CITATION.cff too")
    return found


def problems_of_dist(folder: Path, rebuilt: Path, version: str, tags: list[str]) -> list[str]:
    """Files that are missing or unexpected, and wheels with other files than the one rebuilt from the sdist."""
    names = {path.name for path in folder.iterdir()}
    wanted = {f"structgen-{version}.tar.gz", *(f"structgen-{version}-cp310-abi3-{tag}.whl" for tag in tags)}
    found = [f"missing in dist/: {name}" for name in sorted(wanted - names)]
    found += [f"unexpected in dist/: {name}" for name in sorted(names - wanted)]
    wheels = [*rebuilt.glob("*.whl"), *(folder / name for name in sorted(names & wanted) if name.endswith(".whl"))]
    files = [{name for name in zipfile.ZipFile(wheel).namelist() if "/_kernels." not in name} for wheel in wheels]
    for wheel, each in zip(wheels, files, strict=True):
        found += [f"{wheel.name}: {name} is not in each wheel" for name in sorted(each ^ files[0])]
    return found


if __name__ == "__main__":
    if sys.argv[1] == "tree":
        problems = problems_of_tree(ROOT)
    else:
        sys.path.insert(0, str(ROOT))
        from structgen.kernels.aot.build import PLATFORMS

        tags = [PLATFORMS[name].tag for name in sys.argv[2:]]
        problems = problems_of_dist(ROOT / "dist", ROOT / "build/rebuilt", version_of(ROOT), tags)
    sys.exit("\n".join(problems) or None)
