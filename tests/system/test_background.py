"""Queues of work that nobody waits for: order, room, and how long somebody does wait at the end."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from structgen.system import background
from structgen.system.background import WorkQueue


class Work:
    """What a queue does: notes it, when it may."""

    def __init__(self, **options: Any) -> None:
        self.done: list[str] = []
        self.dropped: list[int] = []
        self.begun, self.may = threading.Event(), threading.Event()
        self.may.set()
        options = {"most": 100, "patience": 600.0, "dropped": self.dropped.append, **options}
        self.queue: WorkQueue[str, str] = WorkQueue("test", self.work, len, **options)

    def work(self, item: str) -> bool:
        self.begun.set()
        self.may.wait()
        if item == "raise":
            raise ValueError(item)
        self.done.append(item)
        return True


def test_items_are_done_in_their_order() -> None:
    work = Work()
    expected = [f"item {number}" for number in range(50)]
    for number, item in enumerate(expected):
        while not work.queue.add(str(number), item):
            work.queue.close()
    work.queue.close()
    assert work.done == expected
    assert work.dropped == []


def test_one_of_a_key_that_waits_is_replaced() -> None:
    work = Work()
    work.may.clear()
    for item in ("first", "second", "third"):
        assert work.queue.add("key", item)
    assert work.queue.add("other", "raise")
    assert work.queue.get("key") == "third"
    assert work.queue.get("none") is None
    work.may.set()
    work.queue.close()
    assert work.done in (["first", "third"], ["second", "third"], ["third"])
    assert work.queue.get("key") is None
    assert work.queue.add("key", "raised before")
    work.queue.close()
    assert work.done[-1] == "raised before"


def test_there_is_so_much_room_and_one_may_have_more() -> None:
    work = Work()
    work.may.clear()
    assert work.queue.add("first", "x" * 1000)
    work.begun.wait()
    assert work.queue.add("second", "x" * 1000)
    assert not work.queue.add("third", "x")
    work.begun.clear()
    work.may.set()
    work.queue.close()
    work.may.clear()
    taken = [key for key in map(str, range(200)) if work.queue.add(key, "y" * 10)]
    assert len(taken) in (10, 11)  # one may be at work
    assert not work.queue.add("more", "z" * 10)
    work.may.set()
    work.queue.close()
    assert len(work.done) == 2 + len(taken)


def test_whoever_waits_begins_what_was_to_wait() -> None:
    work = Work(delay=1e6)
    assert work.queue.add("key", "item")
    work.queue.close()
    assert work.done == ["item"]


@pytest.mark.parametrize("at_the_end", [False, True])
def test_what_hangs_is_waited_for_once(at_the_end: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many items wait, and however often somebody waits: one patience in all, after the last success."""
    now = [1000.0]

    def join(worker: threading.Thread, timeout: float) -> None:
        assert worker.is_alive()
        now[0] += timeout

    work = Work(patience=10.0)
    work.may.clear()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(background._Worker, "join", join)
    monkeypatch.setattr(WorkQueue, "_ending", None)
    try:
        for number in range(5):
            assert work.queue.add(str(number), "item")
        close = work.queue.close_for_good if at_the_end else work.queue.close
        close()
        assert now[0] == pytest.approx(1010.0, abs=background._LOOK)
        assert work.dropped in ([4], [5])  # one may be at work
        close()
        assert now[0] == pytest.approx(1010.0, abs=background._LOOK)
        assert work.dropped in ([4], [5])
        assert work.done == []
        other = Work(patience=10.0)
        other.may.clear()
        assert other.queue.add("key", "item")
        (other.queue.close_for_good if at_the_end else other.queue.close)()
        assert now[0] == pytest.approx(1010.0 if at_the_end else 1020.0, abs=2 * background._LOOK)
    finally:
        work.may.set()
        other.may.set()
