"""First masks over the grid, and what all comes to, with what it is to reach."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from ..report import Figure, show_rows
from ..tails.tables import Readings, common_steps, steps
from ..tails.tables import statistics as percentiles
from ..tails.worker import COMPLETE, LAZY, Case, Moments

PEERS = ("xgrammar", "llguidance")


@dataclass
class Section:
    """One kind of cases, what each engine did with them, and the bytes of complete indexes in files."""

    cases: Sequence[Case]
    readings: Readings = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)


def size_of(case: str) -> tuple[int, int]:
    """Tools and parameters of a request, by the name of its case."""
    tools, _, parameters = case.split(", ")[2].split(" ")[0].partition("x")
    return int(tools), int(parameters)


def medians(section: Section, engine: str, clock: str) -> dict[str, float]:
    """By case, the median over its repeats of compile and first mask, in milliseconds; inf after a timeout."""
    found: dict[str, list[float]] = {}
    for number, reading in section.readings.get(engine, {}).items():
        if reading.first is not None:
            found.setdefault(section.cases[number].id, []).append(getattr(reading.first, clock)[1] / 1e6)
        elif reading.failure == "timeout":
            found.setdefault(section.cases[number].id, []).append(math.inf)
    return {case: statistics.median(times) for case, times in found.items()}


def grid(section: Section, clock: str) -> dict[str, dict[str, float]]:
    """By engine, then by case: milliseconds to the first mask, the median over repeats."""
    return {engine: medians(section, engine, clock) for engine in section.readings}


def show_grid(console: Console, vocabulary: str, section: Section, clock: str) -> None:
    """First masks by style, kind, tools and parameters."""
    found = grid(section, clock)
    peers = [engine for engine in PEERS if found.get(engine)]
    rows = []
    for case, own in found[LAZY].items():
        row = [case, f"{own:,.2f}"]
        for peer in peers:
            theirs = found[peer].get(case)
            row += ["", ""] if theirs is None else [f"{theirs:,.1f}", f"{theirs / own:,.1f} x"]
        rows.append(row)
    header = ["request", LAZY, *(each for peer in peers for each in (peer, "over ours"))]
    show_rows(console, f"{vocabulary}: compile and first mask, ms, {clock} clock", header, rows)


# -- figures -------------------------------------------------------------------------------------------------


def figures(vocabulary: str, sections: dict[str, Section], clock: str) -> Iterator[Figure]:
    """All, against what they are to reach."""
    yield from _first_masks(f"{vocabulary}: first mask", sections["first masks"], clock)
    yield from _entries(f"{vocabulary}: worst step on entering a tool", sections["entering a tool"], clock)
    yield from _one_more(f"{vocabulary}: one tool more", sections["one tool more"], clock)
    yield from _free_text(f"{vocabulary}: step in free text", sections["free text"], clock)
    yield from _replies(f"{vocabulary}: replies", sections["replies"], clock)
    yield from _compiles(f"{vocabulary}: complete compile", sections["replies"], clock)


def _first_masks(label: str, section: Section, clock: str) -> Iterator[Figure]:
    found = grid(section, clock)
    own = found[LAZY]
    for peer in PEERS:
        ratios = {case: time / own[case] for case, time in found.get(peer, {}).items() if case in own}
        if not ratios:
            continue
        median, least = statistics.median(ratios.values()), min(ratios, key=lambda case: ratios[case])
        wanted = {"xgrammar": (20.0, 1.0), "llguidance": (None, 0.5)}[peer]
        yield Figure(f"{label}, {peer} over structgen, median", median, wanted[0], True, "x", len(ratios))
        yield Figure(f"{label}, {peer} over structgen, least: {least}", ratios[least], wanted[1], True, "x", 1)
    for kind in sorted({case.rsplit(", ", 1)[0] for case in own}):
        of = {size_of(case): time for case, time in own.items() if case.startswith(f"{kind}, ")}
        most = max(tools for tools, _ in of)
        ratios = {
            f"{parameters} parameters": of[most, parameters] / time
            for (tools, parameters), time in of.items()
            if tools == 1 < most
        }
        if ratios:
            name = max(ratios, key=lambda each: ratios[each])
            yield Figure(
                f"{label}, {kind}: {most} tools over one, most: {name}", ratios[name], 2.0, False, "x", len(ratios)
            )


def _worst(moments: Moments, clock: str, collected: bool) -> float:
    """Milliseconds of the slowest moment, with what the collector of garbage took in it or without."""
    times = getattr(moments, clock).astype(np.float64)
    for number, found in {} if collected else moments.collections.items():
        times[number] -= sum(taken for _, taken in found)
    return float(times.max()) / 1e6


def _entries(label: str, section: Section, clock: str) -> Iterator[Figure]:
    for engine, readings in section.readings.items():
        texts = [text for reading in readings.values() for text in reading.steps]
        if not texts:
            continue
        wanted = (5.0, 20.0) if engine == LAZY else (None, None)
        times = [_worst(text, clock, collected=True) for text in texts]
        yield Figure(f"{label}, {engine}, median", statistics.median(times), wanted[0], False, "ms", len(times))
        yield Figure(f"{label}, {engine}, worst", max(times), wanted[1], False, "ms", len(times))
        if engine == LAZY:
            without = max(_worst(text, clock, collected=False) for text in texts)
            yield Figure(f"{label}, {engine}, worst without collections", without, None, False, "ms", len(times))


def _one_more(label: str, section: Section, clock: str) -> Iterator[Figure]:
    for engine, readings in section.readings.items():
        of: dict[str, list[float]] = {}
        for number, reading in readings.items():
            kind, _, added = section.cases[number].id.rpartition(", ")
            if reading.first is not None and " + " in added:
                of.setdefault(kind, []).append(getattr(reading.first, clock)[1] / 1e6)
        for kind, times in of.items():
            wanted = 2.0 if engine == LAZY else None
            title = f"{label}, {engine}, {kind}"
            yield Figure(f"{title}, median", statistics.median(times), wanted, False, "ms", len(times))


def _free_text(label: str, section: Section, clock: str) -> Iterator[Figure]:
    for engine, readings in section.readings.items():
        for number, name in enumerate(("new", "read before")):
            times = _joined([getattr(reading.steps[number], clock) for reading in readings.values() if reading.steps])
            if len(times):
                wanted = 1.0 if engine == LAZY and number else None
                title = f"{label}, {engine}, {name}, p50"
                yield Figure(title, float(np.median(times)) / 1e3, wanted, False, "µs", len(times))


def _replies(label: str, section: Section, clock: str) -> Iterator[Figure]:
    for engine in (LAZY, COMPLETE):
        ours = section.readings.get(engine, {})
        found = percentiles(steps(ours.values(), clock))
        for name in ("mean", "p99") if found["count"] else ():
            yield Figure(f"{label}, {engine}, step, {name}", found[name] / 1e3, None, False, "µs", found["count"])
        for peer in PEERS:
            own, theirs = map(percentiles, common_steps(ours, section.readings.get(peer, {}), clock))
            if not own["count"]:
                continue
            for name, wanted in (("mean", 10.0), ("p99", 20.0)):
                target = wanted if peer == "xgrammar" else None
                title = f"{label}, {peer} over {engine}, step, {name}"
                yield Figure(title, theirs[name] / own[name], target, True, "x", own["count"])
    for engine, readings in section.readings.items():
        cut = sum(
            len(text.wall) < len(tokens)
            for number, reading in readings.items()
            for text, (_, tokens) in zip(reading.steps, section.cases[number].texts, strict=False)
        )
        yield Figure(f"{label} that {engine} does not take to the end", cut, 0.0, False, "replies", len(readings))


def _compiles(label: str, section: Section, clock: str) -> Iterator[Figure]:
    for number, reading in section.readings.get(COMPLETE, {}).items():
        if reading.first is not None:
            name, simple = section.cases[number].id, ", simple, " in section.cases[number].id
            seconds, kilobytes = getattr(reading.first, clock)[0] / 1e9, section.sizes[number] / 1024
            yield Figure(f"{label}, {name}", seconds, 0.5 if simple else None, False, "s", 1)
            yield Figure(f"{label}, {name}: file", kilobytes, 200.0 if simple else None, False, "KB", 1)


def _joined(times: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *times])
