"""MaskBench's table, the figures against their targets, and what goes into the JSON file."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ..report import Figure
from .instances import Case
from .worker import Outcome

#: What every engine did with every case: by engine, in the order of the cases.
Outcomes = dict[str, list[Outcome]]

PERCENTILES = (25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
REPLAYS = ("first", "again")
_NAMES = {"first": "first replay", "again": "second replay"}

_PEERS = ("llguidance", "xgrammar", "outlines-core")


# -- counting ------------------------------------------------------------------------------------------


def verdict(case: Case, outcome: Outcome) -> str:
    """``"right"``, a failure, ``"invalid accepted"`` or ``"valid refused"`` (the worse of the two, if both)."""
    if outcome.failure:
        return outcome.failure
    wrong = {i.valid for i, accepted in zip(case.instances, outcome.accepted, strict=True) if accepted != i.valid}
    if not wrong:
        return "right"
    return "invalid accepted" if False in wrong else "valid refused"


def verdicts(cases: list[Case], outcomes: list[Outcome]) -> Counter[str]:
    """How many schemas there are of each verdict."""
    return Counter(map(verdict, cases, outcomes))


def steps(outcomes: list[Outcome], replay: str) -> NDArray[np.int64]:
    """Nanoseconds of all steps of an engine."""
    return np.concatenate([np.zeros(0, np.int64), *(times for o in outcomes for times in getattr(o, replay))])


def common_steps(
    ours: list[Outcome], theirs: list[Outcome], replay: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nanoseconds of the same steps in two engines: each instance as far as both of them got."""
    pairs = [
        (a[: len(b)], b[: len(a)])
        for o, t in zip(ours, theirs, strict=True)
        for a, b in zip(getattr(o, replay), getattr(t, replay), strict=False)  # a schema that failed has no steps
    ]
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *(a for a, _ in pairs)]), np.concatenate([empty, *(b for _, b in pairs)])


def first_masks(outcomes: list[Outcome]) -> NDArray[np.float64]:
    """Nanoseconds until the first mask; infinite where the time was up before, left out where there was an error."""
    times = [o.ready if o.ready >= 0 else math.inf for o in outcomes if o.ready >= 0 or o.failure == "timeout"]
    return np.array(times, np.float64)


# -- figures -------------------------------------------------------------------------------------------

#: What structgen's steps are to reach: a peer's time over ours, for the mean and for the tails.
_WARM_TARGETS = {"llguidance": (30, 100), "xgrammar": (15, 25)}
_LAZY_TARGETS = {"llguidance": (2, 2)}


def figures(cases: list[Case], outcomes: Outcomes) -> list[Figure]:
    """What the run comes to, against the targets."""
    found: list[Figure] = []
    if "structgen" in outcomes:
        found += _verdict_figures(cases, outcomes["structgen"])
        for replay in REPLAYS:
            label = f"complete index, {_NAMES[replay]}"
            found += _step_figures(outcomes, "structgen", replay, label, _WARM_TARGETS)
        found += _compile_figures(outcomes["structgen"])
    if "structgen, lazy" in outcomes:
        found += _step_figures(outcomes, "structgen, lazy", "first", "lazy index, first touch", _LAZY_TARGETS)
    if "llguidance" in outcomes:
        for own, label, percentiles, target in (
            ("structgen, lazy", "first mask, cold (lazy)", (50, 99), 3),
            ("structgen, cached", "first mask from the cache", (50,), 1 / 3),
        ):
            ours, theirs = first_masks(outcomes.get(own, [])), first_masks(outcomes["llguidance"])
            for q in percentiles if len(ours) and len(theirs) else ():
                ratio, name = _percentile(ours, q) / _percentile(theirs, q), f"{label}, over llguidance's cold, p{q}"
                found.append(Figure(name, ratio, target, False, "x", len(ours)))
    return found


def _verdict_figures(cases: list[Case], outcomes: list[Outcome]) -> list[Figure]:
    counts, total = verdicts(cases, outcomes), len(cases)
    lost = counts["timeout"] + counts["crash"] + counts["out of memory"]
    return [
        Figure("schemas with every test right", 100 * counts["right"] / total, 98, True, "%", total),
        Figure("schemas with an invalid instance accepted", counts["invalid accepted"], 0, False, "", total),
        Figure("schemas with a valid instance refused", counts["valid refused"], 0, False, "", total),
        Figure("timeouts, crashes, out of memory", lost, 0, False, "", total),
    ]


def _step_figures(
    outcomes: Outcomes, own: str, replay: str, label: str, targets: dict[str, tuple[int, int]]
) -> list[Figure]:
    """A peer's time over ours for the same steps: the mean, and the tails."""
    found = []
    for peer in (p for p in _PEERS if p in outcomes):
        ours, theirs = common_steps(outcomes[own], outcomes[peer], replay)
        if not len(ours):
            continue
        name, (mean, tail) = f"mask + accept, {label}: {peer} over structgen", targets.get(peer, (None, None))
        found.append(Figure(f"{name}, mean", float(theirs.mean() / ours.mean()), mean, True, "x", len(ours)))
        for q in (50, 99, 99.9):
            ratio = float(np.percentile(theirs, q) / np.percentile(ours, q))
            found.append(Figure(f"{name}, p{q:g}", ratio, tail if q > 50 else None, True, "x", len(ours)))
    return found


def _compile_figures(outcomes: list[Outcome]) -> list[Figure]:
    times = [o.compile / 1e6 for o in outcomes if o.compile >= 0]
    sizes = [o.nbytes / 1024 for o in outcomes if o.nbytes >= 0]
    found = []
    for name, unit, values, targets in (
        ("complete compile", "ms", times, {50: 20, 95: 300}),
        ("index on disk", "KB", sizes, {50: 32, 95: None}),
    ):
        for q, target in targets.items() if values else ():
            found.append(Figure(f"{name}, p{q}", float(np.percentile(values, q)), target, False, unit, len(values)))
    return found


# -- tables --------------------------------------------------------------------------------------------


def show(console: Console, cases: list[Case], outcomes: Outcomes, timeout: float) -> None:
    """MaskBench's table, a column for each engine."""
    table = Table(title=f"MaskBench: {len(cases)} schemas, {sum(len(c.instances) for c in cases)} instances")
    table.add_column("")
    for engine in outcomes:
        table.add_column(engine, justify="right")
    columns = [_column(cases, found, timeout) for found in outcomes.values()]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    console.print(table)


def _column(cases: list[Case], outcomes: list[Outcome], timeout: float) -> dict[str, str]:
    """One engine's cells, by the name of the row."""
    cells: dict[str, str] = {}
    for replay in REPLAYS:
        times = steps(outcomes, replay) / 1e3
        name = f"TBM, {_NAMES[replay]}: "
        cells[f"{name}mean, µs"] = f"{times.mean():,.1f}" if len(times) else "-"
        for q in (*PERCENTILES, 100.0):
            label = f"p{q:g}" if q < 100 else "max"
            cells[f"{name}{label}"] = f"{np.percentile(times, q):,.1f}" if len(times) else "-"
    for name, times in (("TTFM", first_masks(outcomes)), ("compile", _compiles(outcomes))):
        for q in (50.0, 95.0, 99.0):
            cells[f"{name} p{q:g}, ms"] = _milliseconds(times, q, timeout)
    sizes = [o.nbytes / 1024 for o in outcomes if o.nbytes >= 0]
    cells["KB on disk p50 / p95"] = " / ".join(f"{np.percentile(sizes, q):,.1f}" for q in (50, 95)) if sizes else "-"
    cells["tokens"] = f"{len(steps(outcomes, 'first')):,}"
    counts = verdicts(cases, outcomes)
    cells["schemas with every test right"] = f"{counts['right']} ({100 * counts['right'] / len(cases):.1f}%)"
    for name in ("compile error", "valid refused", "invalid accepted", "timeout", "crash", "out of memory"):
        cells[name] = str(counts[name])
    return cells


def show_wrong(console: Console, cases: list[Case], outcomes: list[Outcome]) -> None:
    """The schemas that an engine does not get right, and why."""
    for case, outcome in zip(cases, outcomes, strict=True):
        found = verdict(case, outcome)
        if found != "right":
            which = [n for n, i in enumerate(case.instances) if outcome.accepted and outcome.accepted[n] != i.valid]
            text = f"{case.id}: {found}: {outcome.reason or f'instances {which}'}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)


def as_json(cases: list[Case], outcomes: Outcomes) -> dict[str, Any]:
    """Statistics and verdicts of each engine; single steps are left out."""
    return {
        engine: {
            "verdicts": dict(verdicts(cases, found)),
            "not right": {
                case.id: [verdict(case, outcome), outcome.reason]
                for case, outcome in zip(cases, found, strict=True)
                if verdict(case, outcome) != "right"
            },
            **{f"{replay} replay, ns": _statistics(steps(found, replay)) for replay in REPLAYS},
            "first mask, ns": _statistics(first_masks(found)),
            "compile, ns": _statistics(_compiles(found)),
            "bytes on disk": _statistics(np.array([o.nbytes for o in found if o.nbytes >= 0])),
        }
        for engine, found in outcomes.items()
    }


def _statistics(values: NDArray[Any]) -> dict[str, Any]:
    """Count, mean and percentiles; None stands for infinity."""
    if not len(values):
        return {"count": 0}
    named = {"mean": values.mean()} | {f"p{q:g}": _percentile(values, q) for q in (*PERCENTILES, 100.0)}
    return {"count": len(values)} | {k: float(v) if math.isfinite(v) else None for k, v in named.items()}


def _compiles(outcomes: list[Outcome]) -> NDArray[np.float64]:
    times = [o.compile if o.compile >= 0 else math.inf for o in outcomes if o.compile >= 0 or o.failure == "timeout"]
    return np.array(times, np.float64)


def _percentile(values: NDArray[Any], q: float) -> float:
    """The nearest one that was measured: between a time and infinity there is nothing."""
    return float(np.percentile(values, q, method="nearest"))


def _milliseconds(values: NDArray[np.float64], q: float, timeout: float) -> str:
    if not len(values):
        return "-"
    found = _percentile(values, q)
    return f"{found / 1e6:,.2f}" if math.isfinite(found) else f"> {1e3 * timeout:,.0f}"
