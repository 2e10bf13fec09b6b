"""Tables of the benchmark of grammars, and what goes into its JSON file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from ..report import Figure, show_rows
from .worker import Replay

#: One mode's replays: by engine, then by the number of the text.
Replays = Mapping[str, Mapping[int, Replay]]

PERCENTILES = (50.0, 99.0, 99.9, 100.0)
_HEADER = ("texts", "steps", "mean", "p50", "p99", "p99.9", "max")


def steps(replays: Mapping[int, Replay], only: Iterable[int] | None = None) -> NDArray[np.int64]:
    """Nanoseconds of all steps of the texts that came to their end, or of some of these."""
    chosen = finished(replays) if only is None else set(only)
    return np.concatenate([np.zeros(0, np.int64), *(replays[number].times for number in sorted(chosen))])


def finished(replays: Mapping[int, Replay]) -> set[int]:
    """The texts that came to their end."""
    return {number for number, replay in replays.items() if not replay.trouble}


def show_steps(console: Console, title: str, modes: Mapping[str, Replays]) -> None:
    """Microseconds of a step, by mode and engine."""
    rows = [
        [f"{mode}, {engine}", str(len(finished(replays))), *_shown(steps(replays))]
        for mode, by_engine in modes.items()
        for engine, replays in by_engine.items()
    ]
    show_rows(console, title, ["mode, engine", *_HEADER], rows)


def in_words(replays: Replays) -> str:
    """Steps and their means, for those who wait."""
    means = ((engine, steps(found)) for engine, found in replays.items())
    return ", ".join(f"{engine} {times.mean() / 1e3:,.2f} µs ({len(times):,})" for engine, times in means if len(times))


def show_ratios(console: Console, title: str, modes: Mapping[str, Replays]) -> None:
    """A peer's time over structgen's for the same steps, by mode."""
    rows = [
        [f"{mode}, {peer}", f"{len(common)}", f"{len(ours):,}", *(f"{theirs / own:,.1f}" for own, theirs in pairs)]
        for mode, peer, common, ours, pairs in _compared(modes)
    ]
    header = ["mode, peer", "texts", "steps", "mean", "p50", "p99", "p99.9", "max"]
    show_rows(console, title, header, rows)


def _compared(
    modes: Mapping[str, Replays],
) -> Iterator[tuple[str, str, set[int], NDArray[np.int64], list[tuple[float, float]]]]:
    """Mode, peer, the texts that both read, structgen's steps, and mean and percentiles of both."""
    for mode, by_engine in modes.items():
        for peer in (engine for engine in by_engine if engine != "structgen" and "structgen" in by_engine):
            common = finished(by_engine["structgen"]) & finished(by_engine[peer])
            ours, theirs = steps(by_engine["structgen"], common), steps(by_engine[peer], common)
            if len(ours):
                yield mode, peer, common, ours, list(zip(_values(ours), _values(theirs), strict=True))


def _values(times: NDArray[np.int64]) -> list[float]:
    return [float(times.mean()), *np.percentile(times, PERCENTILES).tolist()]


def _shown(times: NDArray[np.int64]) -> list[str]:
    if not len(times):
        return ["0", "", "", "", "", ""]
    return [f"{len(times):,}", *(f"{value / 1e3:,.2f}" for value in _values(times))]


def figures(label: str, modes: Mapping[str, Replays]) -> list[Figure]:
    """The same ratios one by one."""
    return [
        Figure(f"{label}, {mode}: {peer} over structgen, {statistic}", theirs / own, None, True, "x", len(ours))
        for mode, peer, _, ours, pairs in _compared(modes)
        for statistic, (own, theirs) in zip(("mean", "p50", "p99", "p99.9", "max"), pairs, strict=True)
    ]


def show_left(console: Console, title: str, left: Mapping[str, str]) -> None:
    """What was not read, and why."""
    if left:
        console.print(f"[bold]{title}[/]: {len(left)}")
    for name, reason in left.items():
        console.print(f"  {name}: {reason}", markup=False, highlight=False)


def show_costs(console: Console, label: str, costs: Mapping[str, Any]) -> None:
    """Compiling, opening and first masks."""
    rows = [
        ["eager compile, s", *_medians(costs["eager"], 1e9)],
        ["from the cache to the first mask, ms", *_medians(costs["open"], 1e6)],
        ["the same, the very first one in a process, ms", *_medians([costs["very first open"]], 1e6)],
        ["never seen before, to the first mask, ms", *_medians(costs["new"], 1e6)],
    ]
    if "new, llguidance" in costs:
        rows.append(["the same in llguidance, ms", *_medians(costs["new, llguidance"], 1e6)])
    rows.append(["bytes of the index", f"{costs['bytes']:,}", ""])
    show_rows(console, f"Costs, {label}", ["", "median", "worst"], rows)
    if not costs["filled"]:
        console.print("The eager compile did not decide every place: the rest is decided on first touch.")


def _medians(times: Sequence[int], unit: float) -> list[str]:
    return [f"{np.median(times) / unit:,.2f}", f"{max(times) / unit:,.2f}"]


def show_memory(console: Console, label: str, memory: Mapping[str, Any]) -> None:
    """What a guide takes as it reads."""
    rows = [
        [shape, f"{at['tokens']:,}", *(f"{value / 1024:,.1f}" for value in _parts(at))]
        for shape, found in memory.items()
        for at in found
    ]
    header = ["text", "tokens", "guide", "of it to roll back", "the rest", "kept by the index"]
    show_rows(console, f"A guide in memory, {label}: KB of Python's objects", header, rows)


def _parts(at: Mapping[str, int]) -> tuple[int, int, int, int]:
    return at["own"], at["rollback"], at["own"] - at["rollback"], at["kept"]


def as_json(modes: Mapping[str, Replays]) -> dict[str, Any]:
    """Statistics by mode and engine; single steps are left out."""
    return {
        mode: {
            engine: {"texts": len(finished(replays)), "not finished": len(replays) - len(finished(replays))}
            | _statistics(steps(replays))
            for engine, replays in by_engine.items()
        }
        for mode, by_engine in modes.items()
    }


def _statistics(times: NDArray[np.int64]) -> dict[str, Any]:
    if not len(times):
        return {"steps": 0}
    named = {f"p{q:g}": float(np.percentile(times, q)) for q in PERCENTILES}
    return {"steps": len(times), "mean": float(times.mean())} | named
