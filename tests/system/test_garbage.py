"""Who collects garbage after a pause."""

from __future__ import annotations

import gc

import pytest

from structgen.system.garbage import paused


def full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


@pytest.mark.parametrize(
    ("settles", "objects", "others", "collected"),
    [
        (True, 20_000, 100_000, 1),
        (True, 100, 100, 0),
        (False, 20_000, 100_000, 0),
        (True, 20_000, 1_000_000, 0),  # Python would not collect soon, either
    ],
)
def test_work_that_leaves_many_objects_collects_at_its_end(
    settles: bool, objects: int, others: int, collected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "get_objects", lambda generation: [None] * others)
    gc.collect()
    before = full_collections()
    with paused(settles=settles):
        kept: list[list[int]] = [[] for _ in range(objects)]
        assert not gc.isenabled()
    assert full_collections() - before == collected
    assert gc.isenabled()
    assert len(kept) == objects


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        before = full_collections()
        with paused(settles=True):
            kept: list[list[int]] = [[] for _ in range(20_000)]
        assert not gc.isenabled()
        assert full_collections() == before
        assert len(kept) == 20_000
    finally:
        gc.enable()
