"""Percentiles far out, the worst moments by name, and ratios to a peer with what they are to reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from ..report import Figure, show_rows
from .worker import CACHED, COMPLETE, LAZY, Case, Moments, Reading

CLOCKS = ("wall", "thread")
STATISTICS = ("mean", "p50", "p95", "p99", "p99.9", "p99.99", "max")

#: What an engine did with every case that it read: by engine, then by the number of the case.
Readings = dict[str, dict[int, Reading]]


@dataclass(frozen=True)
class Worst:
    """A moment by name; ``text`` is None for a compile with its first mask."""

    case: int
    text: int | None
    position: int
    wall: int
    thread: int
    collections: Sequence[tuple[int, int]]


# -- statistics ----------------------------------------------------------------------------------------


def steps(readings: Iterable[Reading], clock: str) -> NDArray[np.int64]:
    """Nanoseconds of all steps."""
    return np.concatenate([np.zeros(0, np.int64), *(getattr(m, clock) for r in readings for m in r.steps)])


def first(readings: Iterable[Reading], clock: str, moment: int) -> NDArray[np.float64]:
    """Nanoseconds of compiles (0) or of compiles with first masks (1); a timeout is infinite, an error left out."""
    return np.array([
        math.inf if reading.first is None else getattr(reading.first, clock)[moment]
        for reading in readings if reading.first is not None or reading.failure == "timeout"
    ], np.float64)  # fmt: skip


def statistics(times: NDArray[Any]) -> dict[str, Any]:
    """Count, mean and percentiles as measured, none between two; None stands for infinity."""
    if not len(times):
        return {"count": 0}
    found = {"mean": float(times.mean())}
    for name in STATISTICS[1:]:
        q = 100.0 if name == "max" else float(name[1:])
        found[name] = float(np.percentile(times, q, method="nearest"))
    return {"count": len(times)} | {name: value if math.isfinite(value) else None for name, value in found.items()}


def common_steps(ours: dict[int, Reading], theirs: dict[int, Reading], clock: str) -> list[NDArray[np.int64]]:
    """Nanoseconds of the same steps in two engines: each text as far as both of them got."""
    pairs = [
        (getattr(a, clock)[: len(b.wall)], getattr(b, clock)[: len(a.wall)])
        for number in sorted(ours.keys() & theirs.keys())
        for a, b in zip(ours[number].steps, theirs[number].steps, strict=False)  # what failed has none
    ]
    empty = np.zeros(0, np.int64)
    return [np.concatenate([empty, *(pair[side] for pair in pairs)]) for side in (0, 1)]


# -- the worst -----------------------------------------------------------------------------------------


def worst_steps(readings: dict[int, Reading], clock: str, count: int) -> list[Worst]:
    """The slowest steps, the slowest first."""
    found = [
        worst
        for case, reading in readings.items()
        for text, moments in enumerate(reading.steps)
        for worst in _slowest(moments, clock, count, case, text)
    ]
    return sorted(found, key=lambda worst: -int(getattr(worst, clock)))[:count]


def worst_first(readings: dict[int, Reading], clock: str, count: int) -> list[Worst]:
    """The slowest compiles with first masks, the slowest first."""
    found = [_worst(reading.first, case, None, 1) for case, reading in readings.items() if reading.first is not None]
    return sorted(found, key=lambda worst: -int(getattr(worst, clock)))[:count]


def _slowest(moments: Moments, clock: str, count: int, case: int, text: int) -> Iterator[Worst]:
    for position in np.argsort(getattr(moments, clock))[-count:].tolist():
        yield _worst(moments, case, text, position)


def _worst(moments: Moments, case: int, text: int | None, position: int) -> Worst:
    wall, thread = int(moments.wall[position]), int(moments.thread[position])
    return Worst(case, text, position, wall, thread, moments.collections.get(position, []))


def named(worst: Worst, cases: Sequence[Case], token_bytes: Sequence[bytes | None]) -> dict[str, Any]:
    """A moment in words, without what it did."""
    case = cases[worst.case]
    found: dict[str, Any] = {"case": case.id}
    if worst.text is not None:
        name, tokens = case.texts[worst.text]
        data = token_bytes[tokens[worst.position]]
        shown = data.decode("latin-1") if data is not None else f"<{tokens[worst.position]}>"
        found |= {"text": name, "position": worst.position, "token": shown}
    found |= {"wall, ms": worst.wall / 1e6, "thread, ms": worst.thread / 1e6}
    if worst.collections:
        found["collections"] = [
            {"generation": generation, "ms": taken / 1e6} for generation, taken in worst.collections
        ]
    return found


def cause(found: dict[str, Any], clock: str) -> str:
    """In one line: a collection, another program, or the function that takes most of the same step run again."""
    collected = sum(each["ms"] for each in found.get("collections", ()))
    text: str = found.get("cause", "")
    if collected >= 0.5 * found["wall, ms"]:
        text = f"garbage collection, {collected:,.1f} ms"
    elif clock == "wall" and found["thread, ms"] < 0.5 * found["wall, ms"]:
        text = f"waited for others ({text})"
    elif "again, ms" in found and found["again, ms"] < 0.3 * found["thread, ms"]:
        text = f"what later ones share ({text})"
    counts = ", ".join(f"{name} {count:+,}" for name, count in found.get("counts", {}).items())
    return f"{text}; {counts}" if counts else text


# -- tables --------------------------------------------------------------------------------------------


def show(console: Console, workload: str, found: dict[str, Any], clock: str) -> None:
    """Statistics, and the worst moments, of a workload."""
    for part, unit, divisor in (("steps", "µs", 1e3), ("first mask", "ms", 1e6), ("compile", "ms", 1e6)):
        rows = [
            [engine, f"{times['count']:,}", *(_shown(times[name], divisor) for name in STATISTICS)]
            for engine, parts in found["engines"].items()
            if part in parts and (times := parts[part][clock])["count"]
        ]
        if rows:
            show_rows(console, f"{workload}: {part}, {unit}, {clock} clock", ["engine", "count", *STATISTICS], rows)
    for engine, parts in found["engines"].items():
        for part in ("worst steps", "worst first masks"):
            rows = [_row(worst, clock) for worst in parts.get(part, ())]
            header = ["case", "where", "token", "wall, ms", "thread, ms", "again, ms", "what it did"]
            if rows:
                show_rows(console, f"{workload}, {engine}: {part}", header, rows)


def _shown(value: float | None, divisor: float) -> str:
    return "-" if value is None else f"{value / divisor:,.1f}"


def _row(worst: dict[str, Any], clock: str) -> list[str]:
    where = f"{worst['text']}, {worst['position']}" if "text" in worst else ""
    again = f"{worst['again, ms']:,.2f}" if "again, ms" in worst else ""
    token = repr(worst["token"].encode("latin-1"))[1:] if "token" in worst else ""
    times = f"{worst['wall, ms']:,.2f}", f"{worst['thread, ms']:,.2f}", again
    return [worst["case"], where, token, *times, cause(worst, clock)]


# -- figures -------------------------------------------------------------------------------------------

#: A peer's time over ours for the same steps, at least: by workload and engine.
_RATIOS: dict[tuple[str, str], dict[str, float]] = {
    ("json", LAZY): {"mean": 4, "p99": 5, "p99.9": 5, "max": 1},
    ("regex", COMPLETE): {"mean": 15},
}

#: Microseconds of a step, at most.
_STEPS: dict[tuple[str, str], dict[str, float]] = {
    ("json", LAZY): {"max": 20_000},
    ("c", COMPLETE): {"mean": 10, "p99.9": 100, "max": 1_000},
    ("sql", COMPLETE): {"mean": 15, "p99.9": 200, "max": 1_000},
    ("python", COMPLETE): {"mean": 30, "p99.9": 500, "max": 5_000},
    ("c", LAZY): {"mean": 40, "max": 5_000},
    ("sql", LAZY): {"mean": 80, "max": 10_000},
    ("python", LAZY): {"mean": 150, "max": 20_000},
}

#: First masks, at most, in times of the peer's cold one; and in milliseconds.
_FIRST_RATIOS: dict[tuple[str, str], dict[str, float]] = {
    ("json", LAZY): {"p50": 1, "p99": 2},
    ("json", CACHED): {"p50": 0.3, "p99": 1},
}
_FIRST: dict[tuple[str, str], dict[str, float]] = {
    ("c", LAZY): {"max": 300},
    ("sql", LAZY): {"max": 400},
    ("python", LAZY): {"max": 1_000},
}

#: Complete compiles, at most, in milliseconds.
_COMPILES: dict[str, dict[str, float]] = {
    "json": {"p50": 10, "p95": 120, "max": 5_000},
    "c": {"max": 2_000},
    "sql": {"max": 2_000},
    "python": {"max": 15_000},
}

PEER = "llguidance"


def figures(workload: str, readings: Readings, engines: dict[str, Any], clock: str) -> list[Figure]:
    """What a workload comes to, against the targets."""
    found: list[Figure] = []
    for engine, parts in engines.items():
        if not engine.startswith("structgen"):
            continue
        label, key = f"{workload}, {engine}", (workload, engine)
        if PEER in readings:
            title = f"{label}: step, {PEER} over structgen"
            found += _step_ratios(title, readings, engine, clock, _RATIOS.get(key, {}))
        found += _bounds(f"{label}: step", parts["steps"][clock], _STEPS.get(key, {}), 1e3, "µs")
        if PEER in engines and engine != COMPLETE and parts["first mask"][clock]["count"]:
            found += _first_ratios(label, parts, engines[PEER], clock, _FIRST_RATIOS.get(key, {}))
        found += _bounds(f"{label}: first mask", parts["first mask"][clock], _FIRST.get(key, {}), 1e6, "ms")
        if engine == COMPLETE:
            found += _bounds(f"{label}: compile", parts["compile"][clock], _COMPILES.get(workload, {}), 1e6, "ms")
    return found


def _step_ratios(
    label: str, readings: Readings, engine: str, clock: str, targets: dict[str, float]
) -> Iterator[Figure]:
    ours, theirs = common_steps(readings[engine], readings[PEER], clock)
    if len(ours):
        own, peer = statistics(ours), statistics(theirs)
        for name in STATISTICS:
            yield Figure(f"{label}, {name}", peer[name] / own[name], targets.get(name), True, "x", len(ours))


def _first_ratios(
    label: str, parts: dict[str, Any], peer: dict[str, Any], clock: str, targets: dict[str, float]
) -> Iterator[Figure]:
    ours, theirs = parts["first mask"][clock], peer["first mask"][clock]
    for name in ("p50", "p99", "max"):
        ratio = math.inf if ours[name] is None else ours[name] / theirs[name] if theirs.get(name) else math.nan
        yield Figure(
            f"{label}: first mask over {PEER}'s cold one, {name}", ratio, targets.get(name), False, "x", ours["count"]
        )


def _bounds(
    label: str, times: dict[str, Any], targets: dict[str, float], divisor: float, unit: str
) -> Iterator[Figure]:
    for name, target in targets.items() if times["count"] else ():
        value = math.inf if times[name] is None else times[name] / divisor
        yield Figure(f"{label}, {name}", value, target, False, unit, times["count"])
