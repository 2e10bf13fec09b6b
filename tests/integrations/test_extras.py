"""The versions that the package asks for: extras, the table of SECURITY.md, classifiers, and workflows."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from structgen.integrations.settings import ENGINE_NAMES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: needs for name, needs in PROJECT["optional-dependencies"].items() if name != "test"}


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_has_an_upper_bound(extra: str) -> None:
    for requirement in EXTRAS[extra]:
        bound = re.search(r"<([0-9.]+)", requirement)
        assert bound is not None, requirement
        try:
            installed = version(re.split(r"[\[>]", requirement)[0])
        except PackageNotFoundError:
            continue
        numbers = [int(part) for part in re.findall(r"\d+", installed)]
        assert numbers < [int(part) for part in bound[1].split(".")], requirement


def rows() -> dict[str, tuple[str, str, str]]:
    """The table of SECURITY.md: by name the extra, the first version and the last."""
    section = (ROOT / "SECURITY.md").read_text("utf-8").partition("## Versions")[2].partition("## ")[0]
    cells = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"]
    return {name: (extra, first, last) for name, extra, first, last, _ in cells[2:]}


def bounds(extra: str, package: str) -> tuple[str, str]:
    """The lower and the upper bound of a package in an extra, or among the dependencies; ``""`` for none."""
    needs = EXTRAS[extra] if extra else PROJECT["dependencies"]
    [requirement] = [each for each in needs if re.split(r"[\[>]", each)[0] == package]
    upper = re.search(r"<([0-9.]+)", requirement)
    return re.findall(r">=([0-9.]+)", requirement)[0], upper[1] if upper else ""


@pytest.mark.parametrize("name", [name for name in rows() if name != "Python"])
def test_the_table_has_the_bounds(name: str) -> None:
    extra, first, last = rows()[name]
    *most, least = last.split(".") if last else [""]
    after = ".".join([*most, str(int(least) + 1)]) if last else ""
    assert bounds(extra, name.lower().split()[0]) == (first, after)


def test_the_table_has_every_engine() -> None:
    assert {*ENGINE_NAMES} <= {extra for extra, _, _ in rows().values()}


def test_workflows_and_classifiers_have_the_pythons_of_the_table() -> None:
    yaml = pytest.importorskip("yaml")
    _, first, last = rows()["Python"]
    prefix = "Programming Language :: Python :: 3."
    minors = [int(each.removeprefix(prefix)) for each in PROJECT["classifiers"] if each.startswith(prefix)]
    assert [f"3.{minors[0]}", f"3.{minors[-1]}"] == [first, last]
    assert minors == [*range(minors[0], minors[-1] + 1)]
    assert PROJECT["requires-python"] == f">={first}"
    for name, expected in (("tests", [f"3.{each}" for each in minors]), ("wheels", [first, last])):
        workflow = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text("utf-8"))
        assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == expected
