"""The benchmark of tails names the slowest moments, and finds what they did."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from judges.guides import EACH_BYTE, with_end

from benchmarks.tails import tables
from benchmarks.tails.worker import COMPLETE, LAZY, Bench, Case, Clock, Moments, Reading, Setup


@pytest.fixture(autouse=True)
def _callbacks() -> Iterator[None]:
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before


def _moments(*times: int) -> Moments:
    return Moments(np.array(times, np.int64), np.array(times, np.int64) // 2)


def _bench(folder: Path, workload: str, engine: str) -> Bench:
    vocabulary = folder / "vocabulary"
    vocabulary.write_bytes(with_end(EACH_BYTE).to_bytes())
    return Bench(Setup(workload, engine, vocabulary, folder / "tokenizer.json", folder / "cache", None, hold=2))


def test_collections_belong_to_the_moment_that_they_fall_into() -> None:
    clock = Clock()
    clock._collected("start", {})
    began = clock._began
    clock._collections.append((began, (2, 500_000)))
    found = clock.moments([(0, began - 20, began - 10, 5), (0, began - 5, began + 600_000, 300_000)])
    assert found.collections == {1: [(2, 500_000)]}
    assert found.wall[1] == 600_005 - clock._wall_cost


def test_steps_are_compared_as_far_as_both_came() -> None:
    ours = {0: Reading("", _moments(1, 2), [_moments(1, 2, 3), _moments(4)]), 1: Reading("refused: no")}
    theirs = {0: Reading("", _moments(1, 2), [_moments(10, 20), _moments(40, 50)])}
    assert [times.tolist() for times in tables.common_steps(ours, theirs, "wall")] == [[1, 2, 4], [10, 20, 40]]


def test_the_worst_come_by_name() -> None:
    readings = {
        3: Reading("", _moments(5, 90), [_moments(1, 70), _moments(80)]),
        4: Reading("", _moments(5, 95), [_moments(75)]),
    }
    worst = tables.worst_steps(readings, "wall", 2)
    assert [(each.case, each.text, each.position, each.wall) for each in worst] == [(3, 1, 0, 80), (4, 0, 0, 75)]
    assert [each.case for each in tables.worst_first(readings, "wall", 2)] == [4, 3]
    cases = [*[Case("", None, [])] * 3, Case("x", None, [("a", [0]), ("b", [1])])]
    named = tables.named(worst[0], cases, [b"c", b"\xff"])
    assert (named["case"], named["text"], named["position"], named["token"]) == ("x", "b", 0, "\xff")


def test_timeouts_count_as_infinite() -> None:
    readings = [Reading("timeout"), Reading("refused: no"), Reading("", _moments(1, 2))]
    found = tables.statistics(tables.first(readings, "wall", 1))
    assert (found["count"], found["p50"], found["max"]) == (2, 2.0, None)


def test_what_a_step_did_is_found(tmp_path: Path) -> None:
    bench = _bench(tmp_path, "json", LAZY)
    case = Case("pair", {"type": "array", "maxItems": 2}, [("short", list(b"[1]")), ("long", list(b'[1, "a", 2]'))])
    first = bench.first_mask(case)
    assert 0 < first.wall[0] <= first.wall[1]
    assert [len(text.wall) for text in bench.replay(case)] == [3, 8]  # the comma after two items is refused
    found = bench.explain(case, 1, 4)
    assert found["counts"]["partial masks"] >= 1
    assert found["functions"]
    assert "benchmarks" not in found["cause"]
    assert bench.explain(case, None, 0)["counts"]["states"] >= 1


def test_a_complete_index_goes_to_the_cache(tmp_path: Path) -> None:
    case = Case("null", {"type": "null"}, [("", list(b"null"))])
    _bench(tmp_path, "json", COMPLETE).first_mask(case)
    cached = _bench(tmp_path, "json", "structgen, cached")
    cached.first_mask(case)
    assert len(cached.replay(case)[0].wall) == 4
