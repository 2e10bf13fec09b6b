"""The extras of the package: each requirement has an upper bound, which what is installed here keeps to."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
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
