"""The areas, in one table: each is a function from the time that there is to an `Outcome`."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

from hostile.index_fuzzer import CHECKED, write_originals

import structgen as sg

from .definitions import attack, vocabulary
from .outcome import Outcome

TESTS = Path(__file__).resolve().parents[1]

#: From seconds to what came of them.
Area: TypeAlias = Callable[[float], Outcome]

#: Collections of definitions of all kinds, by name.
_OF_ALL_KINDS = ("hostile.mixed_definitions", "hostile.scaled_definitions")

#: Mutated files a second, with Numba's checks of bounds, and at most.
_FILES_A_SECOND, _MOST_FILES = 20, 20_000


def definitions(prefix: str) -> Area:
    """The definitions of a kind, as the collections name them."""

    def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
        for module in ("hostile.hostile_definitions", "hostile.hostile_tags", *_OF_ALL_KINDS):
            found: dict[str, Callable[[], Any]] = importlib.import_module(module).DEFINITIONS
            yield from ((name, make) for name, make in found.items() if name.startswith(prefix))

    return lambda seconds: attack(cases(), vocabulary(), time.monotonic() + seconds)


def grammars(seconds: float) -> Outcome:
    """Grammars in Lark's syntax."""
    made: dict[str, Callable[[], Any]] = {
        name: make
        for module in _OF_ALL_KINDS
        for name, make in importlib.import_module(module).DEFINITIONS.items()
        if name.startswith("lark")
    }
    for name, make in importlib.import_module("hostile.hostile_grammars").CASES.items():
        made[f"lark: {name}"] = partial(_grammar, make)
    return attack(made.items(), vocabulary(), time.monotonic() + seconds)


def _grammar(make: Callable[[], Any]) -> sg.Grammar:
    case = make()
    return sg.Grammar(case.text, **case.options)


def files(seconds: float) -> Outcome:
    """Mutated index files, whose checksums are right, with every index of a kernel checked."""
    count = int(min(_MOST_FILES, max(50, seconds * _FILES_A_SECOND)))
    with tempfile.TemporaryDirectory() as folder:
        write_originals(Path(folder))
        command = [sys.executable, "-m", "hostile.index_fuzzer", str(count), str(time.time_ns()), folder]
        done = run(command, CHECKED, 20 * seconds + 600)
        left = sorted(path.name for path in Path(folder).glob("*.sgx"))
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            return Outcome(count, violations=[f"{', '.join(left) or 'the fuzzer'}: {' '.join(said)}"])
    kinds: list[dict[str, int]] = list(json.loads(done.stdout.splitlines()[-1])["definitions"].values())
    return Outcome(sum(sum(kind.values()) for kind in kinds), sum(kind["refused"] for kind in kinds))


def tests(*names: str) -> Area:
    """Files of the test suite."""

    def area(seconds: float) -> Outcome:
        paths = [TESTS / name for name in names]
        missing = [path.name for path in paths if not path.exists()]
        if missing:
            return Outcome(absent=f"{', '.join(missing)} is not there")
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
            done = run([*command, *map(str, paths)], {}, 20 * seconds + 600)
            if not report.exists():
                return Outcome(violations=[f"the tests could not be run: {done.stdout[-300:]}"])
            return of_report(ElementTree.parse(report))

    return area


def of_report(report: ElementTree.ElementTree[Any]) -> Outcome:
    """What a run of pytest came to."""
    outcome = Outcome()
    for case in report.iter("testcase"):
        skipped = case.find("skipped") is not None
        outcome.cases += not skipped
        for failed in (*case.findall("failure"), *case.findall("error")):
            outcome.violations.append(f"{case.get('name')}: {(failed.get('message') or '').splitlines()[0][:200]}")
    return outcome


def run(command: list[str], environment: dict[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """A program of the checkout, run to its end."""
    path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    try:
        return subprocess.run(
            command, cwd=TESTS.parent, env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True,
            text=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"it ran for more than {seconds:.0f} s")


_CACHES = (
    "cache/test_privileges.py",
    "cache/test_cache.py",
    "cache/test_cache_hostile.py",
    "cache/test_cache_processes.py",
    "cache/test_write_back.py",
)

#: By name: what is run, and its share of the time.
AREAS: dict[str, tuple[Area, int]] = {
    "regexes": (definitions("regex"), 3),
    "JSON Schemas": (definitions("schema"), 6),
    "GBNF": (definitions("gbnf"), 2),
    "structural tags": (definitions("tag"), 3),
    "Lark": (grammars, 6),
    "files": (files, 4),
    "files, by hand": (tests("hostile/test_hostile_files.py", "vocabulary/test_hostile_tokenizers.py"), 1),
    "caches, other users": (tests(*_CACHES), 2),
    "threads, forks": (tests("hostile/test_concurrency.py"), 2),
    "arguments": (tests("runtime/core/test_arguments.py", "runtime/core/test_tensor_arguments.py"), 1),
}
