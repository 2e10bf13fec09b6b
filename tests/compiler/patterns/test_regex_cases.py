"""The suite of cases in ``cases/regexes.toml``, along every path that an index can take."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judges.naive import small_vocabulary

import structgen as sg

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CASES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parents[2] / "cases" / "regexes.toml").read_text("utf-8"))[
    "case"
]
VOCABULARY = small_vocabulary()


def eager(pattern: str, folder: Path) -> sg.Index:
    return sg.compile(sg.Regex(pattern), VOCABULARY)


def lazy(pattern: str, folder: Path) -> sg.Index:
    return sg.compile(sg.Regex(pattern), VOCABULARY, eager=False)


def saved(pattern: str, folder: Path) -> sg.Index:
    eager(pattern, folder).save(folder / "index.sgx")
    return sg.Index.load(folder / "index.sgx", VOCABULARY)


def saved_lazy(pattern: str, folder: Path) -> sg.Index:
    index = lazy(pattern, folder)
    sg.Guide(index).bitmask()
    index.save(folder / "index.sgx")
    return sg.Index.load(folder / "index.sgx", VOCABULARY)


def cached(pattern: str, folder: Path) -> sg.Index:
    cache = sg.Cache(folder)
    sg.compile(sg.Regex(pattern), VOCABULARY, cache=cache)
    index = sg.compile(sg.Regex(pattern), VOCABULARY, cache=cache)
    assert index.origin == "cache"
    return index


PATHS = [eager, lazy, saved, saved_lazy, cached]


def spell(index: sg.Index, text: str) -> tuple[bool, bool]:
    """Whether a guide takes the text byte by byte, and by greedy long tokens; and each time may end."""
    results = []
    for longest in (1, 8):
        guide = sg.Guide(index)
        data, at = text.encode(), 0
        while at < len(data):
            piece = next(
                t for n in range(longest, 0, -1) for t in TOKENS.get(data[at : at + n], []) if at + n <= len(data)
            )
            assert guide.allows(piece) == guide.fork().advance(piece)
            if not guide.advance(piece):
                results.append(False)
                break
            at += len(VOCABULARY.token(piece) or b"")
        else:
            assert guide.is_accepting() == guide.allows(VOCABULARY.eos_ids[0])
            results.append(guide.is_accepting())
    return results[0], results[1]


TOKENS: dict[bytes, list[int]] = {}
for _id in range(VOCABULARY.size):
    TOKENS.setdefault(VOCABULARY.token(_id) or b"", []).append(_id)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any], path: Callable[[str, Path], sg.Index], tmp_path: Path) -> None:
    index = path(case["regex"], tmp_path)
    for texts, expected in ((case["accept"], True), (case["reject"], False)):
        for text in texts:
            if case.get("judge") != "none":
                assert (re.fullmatch(case["regex"], text) is not None) == expected, "the case itself is wrong"
            assert index.match(text.encode()).accepted == expected, text
            assert spell(index, text) == (expected, expected), text


def test_cases_without_jit() -> None:
    """The kernels as plain Python give the same answers (a few of the cheaper cases: it is slow)."""
    names = ["date, ASCII", "e-mail", "password rules by look-ahead", "an exact large count", "anchors in the middle"]
    program = """
import json, sys
import structgen as sg
from judges.naive import small_vocabulary
vocabulary = small_vocabulary()
for case in json.load(sys.stdin):
    index = sg.compile(sg.Regex(case["regex"]), vocabulary, eager=False, budget=sg.Budget(seconds=3600))
    for text in case["accept"] + case["reject"]:
        assert index.match(text.encode()).accepted == (text in case["accept"]), (case["name"], text)
    row = sg.Guide(index).bitmask()
    print(row.tobytes().hex())
"""
    cases = [case for case in CASES if case["name"] in names]
    assert len(cases) == len(names)
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(cases), capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    for case, line in zip(cases, run.stdout.split(), strict=True):
        assert line == sg.Guide(eager(case["regex"], Path())).bitmask().tobytes().hex()
