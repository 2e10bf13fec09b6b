"""Every moment of every thread by two clocks, and what the slow ones did.

Moments are counted in buckets, four to a doubling and more, so that minutes of traffic take no memory of their own. A
thread beside them looks at those that have taken long and notes where they are; collections tell of themselves.
"""

from __future__ import annotations

import gc
import linecache
import math
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import structgen as sg

#: Buckets to a doubling of nanoseconds.
_FINE = 16

#: Seconds between two looks at what the threads do; and at the memory.
_LOOK, _WEIGH = 0.004, 1.0

#: Garbage collections that are remembered.
_COLLECTIONS = 256

#: What a function that takes long does, by the folder that it is in; the first that fits.
_ROOMS = {
    "structgen/compiler": "lowering", "structgen/building": "lowering", "structgen/kernels": "walk",
    "structgen/cache": "cache", "structgen/storage": "cache", "structgen/index_store": "cache",
    "structgen/runtime": "rows and steps",
}  # fmt: skip

T = TypeVar("T")


class Times:
    """How many moments took how long, each to a twentieth."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._total = 0
        self.count = 0
        self.longest = 0

    def add(self, nanoseconds: int) -> None:
        """One more."""
        self._counts[int(math.log2(max(nanoseconds, 1)) * _FINE)] += 1
        self._total += nanoseconds
        self.count += 1
        self.longest = max(self.longest, nanoseconds)

    def merged(self, other: Times) -> Times:
        """Those of both."""
        found = Times()
        found._counts = self._counts + other._counts
        found._total, found.count = self._total + other._total, self.count + other.count
        found.longest = max(self.longest, other.longest)
        return found

    def summary(self) -> dict[str, float]:
        """Count, and microseconds: the mean, percentiles and the maximum."""
        found = {"count": self.count, "mean": self._total / max(self.count, 1) / 1e3, "max": self.longest / 1e3}
        for share in (0.5, 0.99, 0.999, 0.9999):
            left = share * self.count
            for bucket in sorted(self._counts):
                left -= self._counts[bucket]
                if left <= 0:
                    found[f"p{100 * share:g}"] = 2 ** ((bucket + 0.5) / _FINE) / 1e3
                    break
        return found


@dataclass(frozen=True)
class Slow:
    """A moment that took long, milliseconds."""

    kind: str
    name: str
    position: int
    at: float
    wall: float
    thread: float
    collected: float
    gave_way: int
    seen: tuple[str, ...]

    def cause(self) -> str:
        """In a few words: a collection, a lock, others, slices of a walk, or what the innermost function does."""
        seen = Counter(self.seen).most_common(1)
        where = seen[0][0] if seen else "not seen"
        if self.collected >= 0.5 * self.wall:
            return f"collection, {self.collected:.1f} ms"
        if self.thread < 0.5 * self.wall:
            return f"waited: {where}"
        return f"slices, {self.gave_way} ({where})" if self.gave_way else where


@dataclass
class Lane:
    """What one thread does."""

    recorder: Recorder
    ident: int = field(default_factory=threading.get_ident)
    since: int = 0  # when the moment began, 0 between moments
    seen: list[str] = field(default_factory=list)
    times: dict[str, tuple[Times, Times]] = field(default_factory=dict)
    slow: list[Slow] = field(default_factory=list)

    def time(self, kind: str, name: str, position: int, work: Callable[[], T], index: sg.Index | None = None) -> T:
        """Do something with an index, and record how long it took."""
        before = index.slow_steps if index else 0
        self.seen = []
        thread, self.since = time.thread_time_ns(), time.perf_counter_ns()
        try:
            return work()
        finally:
            began, wall, thread = self.since, time.perf_counter_ns() - self.since, time.thread_time_ns() - thread
            self.since = 0
            if kind not in self.times:
                self.times[kind] = Times(), Times()
            self.times[kind][0].add(wall)
            self.times[kind][1].add(thread)
            if wall >= self.recorder.slow_from:
                self.slow.append(self.recorder.slow(
                    kind, name, position, began, wall, thread, (index.slow_steps if index else 0) - before,
                    tuple(self.seen),
                ))  # fmt: skip


class Recorder:
    """All lanes, what they do when they are slow, the collections, and the memory; a context manager.

    Parameters
    ----------
    slow:
        Milliseconds from which on a moment is recorded by itself.
    opened:
        How many indexes are open, for the record of memory.
    """

    def __init__(self, slow: float, opened: Callable[[], int]) -> None:
        self.slow_from = int(slow * 1e6)
        self._opened = opened
        self._lanes: list[Lane] = []
        self._collections: deque[tuple[int, int]] = deque(maxlen=_COLLECTIONS)
        self._collecting = 0
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        #: Seconds, indexes that were open, and bytes of the process, once a second.
        self.memory: list[tuple[float, int, int]] = []

    def __enter__(self) -> Recorder:
        self._began = time.perf_counter_ns()
        gc.callbacks.append(self._collected)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()
        gc.callbacks.remove(self._collected)
        self._weigh()

    def lane(self) -> Lane:
        """That of the calling thread."""
        self._lanes.append(Lane(self))
        return self._lanes[-1]

    def slow(self, kind: str, name: str, position: int, began: int, wall: int, thread: int, gave_way: int,
             seen: tuple[str, ...]) -> Slow:  # fmt: skip
        """A moment by name, with the collections that fell into it, whichever thread they ran in."""
        collected = sum(max(0, min(end, began + wall) - max(start, began)) for start, end in tuple(self._collections))
        at = (began - self._began) / 1e9
        return Slow(kind, name, position, at, wall / 1e6, thread / 1e6, collected / 1e6, gave_way, seen)

    def result(self) -> dict[str, Any]:
        """Statistics by kind and clock, slow moments, the slowest first, and the memory."""
        kinds = sorted({kind for lane in self._lanes for kind in lane.times})
        found: dict[str, Any] = {"times": {}, "memory": self.memory}
        for kind in kinds:
            pairs = [lane.times[kind] for lane in self._lanes if kind in lane.times]
            wall, thread = pairs[0]
            for one, other in pairs[1:]:
                wall, thread = wall.merged(one), thread.merged(other)
            found["times"][kind] = {"wall": wall.summary(), "thread": thread.summary()}
        slow = sorted((each for lane in self._lanes for each in lane.slow), key=lambda each: -each.wall)
        found["slow"] = [vars(each) | {"cause": each.cause(), "seen": len(each.seen)} for each in slow]
        return found

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.perf_counter_ns()
        else:
            self._collections.append((self._collecting, time.perf_counter_ns()))

    def _watch(self) -> None:
        weighed = 0.0
        while not self._done.wait(_LOOK):
            now = time.perf_counter_ns()
            late = [lane for lane in self._lanes if lane.since and now - lane.since > self.slow_from // 4]
            if late:
                gc.disable()  # before Python 3.12, a collection in the next line can wait for itself (CPython 106883)
                frames = sys._current_frames()
                gc.enable()
                for lane in late:
                    if lane.ident in frames:
                        lane.seen.append(_where(frames[lane.ident]))
            if now / 1e9 - weighed >= _WEIGH:
                weighed = now / 1e9
                self._weigh()

    def _weigh(self) -> None:
        seconds = (time.perf_counter_ns() - self._began) / 1e9
        self.memory.append((seconds, self._opened(), resident()))


def resident() -> int:
    """Bytes of the process that are in memory; 0 where the system does not tell."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * 4096 if pages.is_file() else 0


def _where(frame: FrameType | None) -> str:
    """What the innermost function of structgen does, and its name, such as ``lock: structgen/…/machine.py:9 row``."""
    while frame is not None and "/structgen/" not in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None:
        return "outside structgen"
    path = "structgen/" + frame.f_code.co_filename.rpartition("/structgen/")[2]
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    room = next((what for folder, what in _ROOMS.items() if path.startswith(folder)), "elsewhere")
    if line.startswith("with ") and "lock" in line:
        room = "lock"
    return f"{room}: {path}:{frame.f_lineno} {frame.f_code.co_name}"
