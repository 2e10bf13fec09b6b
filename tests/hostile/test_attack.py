"""A small part of ``make attack``, and that it finds what does not hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from judges.guides import EACH_BYTE

if not hasattr(os, "fork"):
    pytest.skip("processes are forked", allow_module_level=True)

from attack import areas, definitions
from attack.outcome import Outcome

import structgen as sg
from hostile import hostile_definitions, mixed_definitions, scaled_definitions
from structgen.budget import Budget

pytestmark = pytest.mark.nightly

VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, b"ab", b'{"', b'":', None], eos_ids=[259])

#: A few of each kind, quick ones.
FEW = (
    "regex, mixed: stars of stars", "regex, mixed: twelve look-aheads that count", "schema, mixed: escaped names",
    "regex, mixed: a count that is no count", "schema, mixed: 20 different ones of 20",
    "schema, mixed: 62 in any order", "schema, mixed: arrays by length, recursive", "gbnf, mixed: doubling",
    "gbnf, mixed: lists of lists", "lark, mixed: pairs", "lark, mixed: a template that grows",
    "lark, mixed: counts of counts",
)  # fmt: skip


def test_a_few_definitions_hold() -> None:
    outcome = definitions.attack([(name, mixed_definitions.DEFINITIONS[name]) for name in FEW], VOCABULARY)
    assert outcome.violations == []
    assert outcome.cases == len(FEW)
    assert 0 < outcome.refused < len(FEW)
    assert outcome.nbytes > 0


def crash() -> Any:
    os.abort()


def loop() -> Any:
    while True:
        pass


def wrong() -> Any:
    raise KeyError("no typed error")


def test_what_does_not_hold_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "KILLED", 1)
    cases = [("crash", crash), ("loop", loop), ("wrong", wrong), ("fine", lambda: sg.Regex("a"))]
    outcome = definitions.attack(cases, VOCABULARY)
    assert [violation.partition(":")[0] for violation in outcome.violations] == ["crash", "loop", "wrong"]
    assert "SIGABRT" in outcome.violations[0]
    assert "SIGXCPU" in outcome.violations[1]
    assert "KeyError" in outcome.violations[2]
    late = definitions.attack(cases, VOCABULARY, until=time.monotonic() - 1)
    assert (late.cases, late.left) == (0, len(cases))


def test_measurements_are_held_against_the_budget() -> None:
    seconds, nbytes = 2 * Budget.request.seconds, 2 * Budget.request.memory
    assert definitions.violations({"seconds": 0.1, "nbytes": 1 << 20, "step": 0.001, "at": ""}) == []
    for found in ({"seconds": seconds}, {"nbytes": nbytes}, {"step": 60.0, "at": "text"}, {"wrong": ["mask"]}):
        assert len(definitions.violations(found)) == 1


def test_memory_is_measured() -> None:
    def work() -> dict[str, Any]:
        before = definitions.reset_peak()
        bytearray(100 << 20)
        return {"nbytes": definitions.peak() - before}

    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("no peak of a part of a process's time")
    assert 90 << 20 < definitions.in_a_process(work)["nbytes"] < 130 << 20


def test_tests_are_an_area(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_two.py").write_text("def test_a(): pass\ndef test_b(): assert 1 == 2\n")
    monkeypatch.setattr(areas, "TESTS", tmp_path)
    outcome = areas.tests("test_two.py")(10)
    assert outcome.cases == 2
    assert [violation.partition(":")[0] for violation in outcome.violations] == ["test_b"]
    assert areas.tests("test_three.py")(10).absent


def test_the_program_ends_with_what_it_found(tmp_path: Path) -> None:
    program = [sys.executable, str(areas.TESTS / "attack")]
    done = subprocess.run([*program, "nothing"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert "threads, forks" in done.stderr
    report = tmp_path / "report.json"
    command = [*program, "--minutes", "0", "--json", str(report), "GBNF"]
    modules = (hostile_definitions, mixed_definitions, scaled_definitions)
    left = sum(name.startswith("gbnf") for module in modules for name in module.DEFINITIONS)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert Outcome(**json.loads(report.read_text())["GBNF"]) == Outcome(left=left)
