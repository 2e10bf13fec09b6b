"""The benchmark of mixed traffic serves requests, and names what is slow."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest
from judges.guides import EACH_BYTE, with_end
from rich.console import Console

from benchmarks.run import written
from benchmarks.traffic.__main__ import show
from benchmarks.traffic.recorder import Slow, Times
from benchmarks.traffic.traffic import Setup, Traffic


def test_a_second_of_traffic(tmp_path: Path) -> None:
    vocabulary = tmp_path / "vocabulary"
    vocabulary.write_bytes(with_end(EACH_BYTE).to_bytes())
    schemas = [{"type": "array", "maxItems": n, "items": {"type": "integer"}} for n in range(1, 6)]
    cases = [(f"at most {n}", schema, [list(b"[7]"), list(b"[]")]) for n, schema in enumerate(schemas, 1)]
    cases.append(("nothing", {"type": "nonsense"}, [[0]]))
    setup = Setup(vocabulary, cases, tmp_path / "cache", 3, 4, 0.001, 0.0, 0)
    assert Traffic(setup).fill(range(0, 6, 2)) == 3
    callbacks = list(gc.callbacks)
    found = Traffic(setup).serve(1.0)
    assert gc.callbacks == callbacks
    assert (found["open"], found["refused"]) == (5, 1)
    assert {"open", "step", "batch, add", "batch, step"} <= found["times"].keys()
    assert len(found["slow"]) == sum(times["wall"]["count"] for times in found["times"].values())
    assert [indexes for _, indexes, _ in found["memory"]][-1] == 5
    assert len(show(Console(quiet=True), found | {"slow": found["slow"][:20]})) == 3


def test_what_is_kept_is_json_in_short_lines() -> None:
    kept = {"a b": ["x  [1]", None, True], "numbers": [*range(200)], "rows": [[1.5, "[ {\n"] * 20], "none": [[], {}]}
    assert json.loads(written(kept)) == kept
    assert max(map(len, written(kept["numbers"]).splitlines())) <= 118
    assert written(Path("a")) == '"a"'


def test_causes() -> None:
    def slow(wall: float, thread: float, collected: float, gave_way: int, *seen: str) -> str:
        return Slow("step", "x", 0, 1.0, wall, thread, collected, gave_way, seen).cause()

    assert slow(40, 39, 30, 0, "walk: f") == "collection, 30.0 ms"
    assert slow(40, 3, 0, 0, "lock: f", "lock: f", "walk: g") == "waited: lock: f"
    assert slow(40, 39, 0, 2, "walk: f") == "slices, 2 (walk: f)"
    assert slow(40, 39, 0, 0) == "not seen"


def test_percentiles_are_right_to_a_twentieth() -> None:
    times = Times()
    for nanoseconds in range(1, 100_001):
        times.add(nanoseconds)
    both = times.merged(times).summary()
    assert (both["count"], both["max"]) == (200_000, 100.0)
    for name in ("p50", "p99", "p99.9"):
        assert both[name] == pytest.approx(float(name[1:]), rel=0.05)
