"""What `make release` refuses, and that the files which name a version agree at any time."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from house.release import ROOT, disagreements, problems_of_dist, problems_of_tree, version_of

FILES = {
    "pyproject.toml": '[project]\nversion = "1.2.0"\n',
    "structgen/__init__.py": '__version__ = "1.2.0"\n',
    "CHANGELOG.md": "# Changelog\n\n## [1.2.0] - 2030-01-31\n\n## [1.1.0] - 2029-12-01\n",
    "CITATION.cff": "version: 1.2.0\ndate-released: 2030-01-31\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository from which a release can be made."""
    (tmp_path / "structgen").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    commit(tmp_path)
    return tmp_path


def commit(tree: Path) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, "commit", "-qam", "all"], cwd=tree, check=True)


def test_this_tree_agrees_with_itself() -> None:
    assert disagreements(ROOT) == []


def test_a_tree_that_is_clean_dated_and_of_one_version(tree: Path) -> None:
    assert problems_of_tree(tree) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("structgen/__init__.py", "1.2.0", "1.1.0", "structgen/__init__.py has 1.1.0, pyproject.toml 1.2.0"),
        ("CITATION.cff", "version: 1.2.0", "version: 1.1.0", "CITATION.cff has 1.1.0, pyproject.toml 1.2.0"),
        ("CHANGELOG.md", "[1.2.0]", "[1.1.9]", "the newest entry of CHANGELOG.md has 1.1.9, pyproject.toml 1.2.0"),
        ("CHANGELOG.md", "## [", "", "the newest entry of CHANGELOG.md has nothing, pyproject.toml 1.2.0"),
        ("CHANGELOG.md", "2030-01-31", "Unreleased", "the newest entry of CHANGELOG.md has no date: write "),
        ("CITATION.cff", "2030-01-31", "2030-01-30", "CITATION.cff has 2030-01-30 as date-released"),
        ("CITATION.cff", "date-released", "date", "CITATION.cff has nothing as date-released"),
    ],
)
def test_files_that_disagree(tree: Path, name: str, old: str, new: str, problem: str) -> None:
    (tree / name).write_text(FILES[name].replace(old, new))
    commit(tree)
    assert any(each.startswith(problem) for each in problems_of_tree(tree))


def test_changes_that_are_not_committed(tree: Path) -> None:
    (tree / "pyproject.toml").write_text(FILES["pyproject.toml"] + "# edited\n")
    (tree / "new.py").touch()
    assert problems_of_tree(tree) == ["not committed:  M pyproject.toml", "not committed: ?? new.py"]


def test_files_of_dist(tmp_path: Path) -> None:
    dist, rebuilt = tmp_path / "dist", tmp_path / "rebuilt"
    for folder in (dist, rebuilt):
        folder.mkdir()
    (dist / "structgen-1.2.0.tar.gz").touch()
    for path in (rebuilt / "any.whl", dist / "structgen-1.2.0-cp310-abi3-here.whl"):
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("structgen/api.py", "")
            wheel.writestr("structgen/_kernels.abi3.so", "")
    assert problems_of_dist(dist, rebuilt, "1.2.0", ["here"]) == []
    with zipfile.ZipFile(dist / "structgen-1.2.0-cp310-abi3-here.whl", "a") as wheel:
        wheel.writestr("structgen/stale.py", "")
    (dist / "structgen-1.1.0.tar.gz").touch()
    assert problems_of_dist(dist, rebuilt, "1.2.0", ["here", "there"]) == [
        "missing in dist/: structgen-1.2.0-cp310-abi3-there.whl",
        "unexpected in dist/: structgen-1.1.0.tar.gz",
        "structgen-1.2.0-cp310-abi3-here.whl: structgen/stale.py is not in each wheel",
    ]


def test_the_citation_says_what_the_project_says() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors", "version", "license", "type"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'name = "{citation["title"]}"' in project
    assert f'license = "{citation["license"]}"' in project
    assert f'description = "{citation["abstract"]}"' in project
    assert f'authors = [{{ name = "{citation["authors"][0]["name"]}" }}]' in project
    assert citation["version"] == version_of(ROOT)
