"""Tables of the benchmark of regexes, and what its figures come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ..report import Figure, columns
from .trial import Result

#: One vocabulary's results: by regex, then by engine.
Results = dict[str, dict[str, Result]]

#: Engines that are structgen itself under other options; they are shown, not compared.
VARIANTS = ("structgen, 1 thread", "structgen, lazy")


# -- ratios --------------------------------------------------------------------------------------------


def compile_ratios(results: Results, peer: str, own: str = "structgen") -> dict[str, float]:
    """By regex: the peer's median compile over structgen's. Without regexes that one of them doesn't finish."""
    return _ratios(results, peer, own, lambda result: float(np.median(result.compile)))


def size_ratios(results: Results, peer: str) -> dict[str, float]:
    """By regex: the peer's resident bytes over structgen's."""
    return _ratios(results, peer, "structgen", lambda result: result.size)


def _ratios(results: Results, peer: str, own: str, value: Callable[[Result], float]) -> dict[str, float]:
    ratios = {}
    for name, by_engine in results.items():
        ours, theirs = by_engine.get(own), by_engine.get(peer)
        if ours and theirs and not ours.error and not theirs.error and value(ours) > 0 and value(theirs) > 0:
            ratios[name] = value(theirs) / value(ours)
    return ratios


def common_steps(by_engine: dict[str, Result], peer: str, which: str) -> tuple[list[int], list[int]]:
    """Nanoseconds of the same steps in structgen and in a peer: those of walks that the peer finishes.

    ``which`` is ``"first"`` or ``"warm"``.
    """
    ours, theirs = by_engine.get("structgen"), by_engine.get(peer)
    if ours is None or theirs is None or not getattr(ours, which) or not getattr(theirs, which):
        return [], []
    pairs = [
        (a, b)
        for a, b in zip(getattr(ours, which), getattr(theirs, which), strict=True)
        if a is not None and b is not None
    ]
    return [t for a, _ in pairs for t in a], [t for _, b in pairs for t in b]


def step_ratios(results: Results, peer: str, which: str, overhead: float) -> dict[str, float]:
    """The ratios of the mean and the 99th percentile over all steps of all regexes, clock overhead taken off."""
    ours: list[int] = []
    theirs: list[int] = []
    for by_engine in results.values():
        a, b = common_steps(by_engine, peer, which)
        ours += a
        theirs += b
    if not ours:
        return {}
    return {
        "mean": float((np.mean(theirs) - overhead) / (np.mean(ours) - overhead)),
        "p99": float((np.percentile(theirs, 99) - overhead) / (np.percentile(ours, 99) - overhead)),
        "steps": len(ours),
    }


# -- figures and their targets -------------------------------------------------------------------------


def trial_figures(vocabulary: str, results: Results, measures: Iterable[str], overhead: float) -> list[Figure]:
    """The figures of one vocabulary's trials."""
    figures: list[Figure] = []
    if "compile" in measures:
        for own in ("structgen", "structgen, 1 thread"):
            ratios = list(compile_ratios(results, "outlines-core", own).values())
            if ratios:
                label = f"{vocabulary}: {own}: cold compile, outlines-core over structgen"
                figures += [
                    Figure(f"{label}, median", float(np.median(ratios)), 20, True, "x", len(ratios)),
                    Figure(f"{label}, worst case", min(ratios), 1, True, "x", len(ratios)),
                ]
    if "size" in measures:
        figures += _size_figures(vocabulary, results)
    if "step" in measures:
        for peer, target in (("llguidance", 20), ("outlines-core", 5)):
            for which in ("warm", "first"):
                ratio = step_ratios(results, peer, which, overhead)
                for statistic in ("mean", "p99"):
                    if ratio:
                        name = f"{vocabulary}: mask + advance, {which} replay, {statistic}, {peer} over structgen"
                        headline = target if which == "warm" else None
                        figures.append(Figure(name, ratio[statistic], headline, True, "x", int(ratio["steps"])))
    return figures


def _size_figures(vocabulary: str, results: Results) -> list[Figure]:
    ratios = size_ratios(results, "outlines-core")
    if not ratios:
        return []
    ours, theirs = (sum(results[name][engine].size for name in ratios) for engine in ("structgen", "outlines-core"))
    label = f"{vocabulary}: index in memory, outlines-core over structgen"
    reported = [results[name]["outlines-core"].size / (results[name]["structgen"].nbytes or 1) for name in ratios]
    return [
        Figure(f"{label}, median", float(np.median(list(ratios.values()))), 10, True, "x", len(ratios)),
        Figure(f"{label}, all together", theirs / ours, 10, True, "x", len(ratios)),
        Figure(f"{label}'s nbytes, median", float(np.median(reported)), 10, True, "x", len(ratios)),
    ]


# -- tables --------------------------------------------------------------------------------------------


def show_compile(console: Console, vocabulary: str, results: Results, engines: list[str]) -> None:
    """Milliseconds of each compile."""
    table = Table(title=f"Cold compile, {vocabulary}: ms, median (first in the process)")
    columns(table, [*engines, "outlines-core / structgen"])
    ratios = compile_ratios(results, "outlines-core")
    for name, by_engine in results.items():
        cells = [_cell(by_engine.get(engine), _compile_cell) for engine in engines]
        table.add_row(name, *cells, _times(ratios.get(name)))
    console.print(table)


def show_ready(console: Console, vocabulary: str, results: Results, engines: list[str]) -> None:
    """Milliseconds from the pattern to the first mask."""
    table = Table(title=f"Compile and first mask, {vocabulary}: ms, median")
    columns(table, engines)
    for name, by_engine in results.items():
        table.add_row(name, *(_cell(by_engine.get(e), lambda r: _ms(np.median(r.ready))) for e in engines))
    console.print(table)


def show_size(console: Console, vocabulary: str, results: Results, engines: list[str]) -> None:
    """Kilobytes of each compiled object."""
    table = Table(title=f"Compiled object in memory, {vocabulary}: KB, growth of the process (after use)")
    columns(table, [*engines, "structgen nbytes", "outlines-core / structgen"])
    ratios = size_ratios(results, "outlines-core")
    for name, by_engine in results.items():
        cells = [_cell(by_engine.get(engine), _size_cell) for engine in engines]
        own = by_engine.get("structgen")
        nbytes = _kb(own.nbytes) if own and own.nbytes is not None else ""
        table.add_row(name, *cells, nbytes, _times(ratios.get(name)))
    console.print(table)


def show_steps(
    console: Console, vocabulary: str, results: Results, engines: list[str], which: str, overhead: float
) -> None:
    """Microseconds of a step."""
    title = f"Mask + advance, {vocabulary}, {which} replay: µs, mean / p99, {overhead:.0f} ns for the clock taken off"
    table = Table(title=title)
    columns(table, [f"{engine}" for engine in engines])
    for name, by_engine in results.items():
        cells = [_cell(by_engine.get(engine), lambda r: _step_cell(r, which, overhead)) for engine in engines]
        table.add_row(name, *cells)
    console.print(table)


def show_agreement(console: Console, vocabulary: str, results: Results, engines: list[str]) -> None:
    """How many states' masks differ from structgen's, and whom `re` finds wrong."""
    table = Table(title=f"Masks against structgen's, {vocabulary}: states that differ / compared, judged by re")
    columns(table, engines)
    for name, by_engine in results.items():
        table.add_row(name, *(_cell(by_engine.get(engine), _agreement_cell) for engine in engines))
    console.print(table)


def as_json(results: Results) -> dict[str, Any]:
    """The results as plain values; walks and single steps are left out, their statistics are in."""
    return {name: {engine: _plain(r) for engine, r in by.items()} for name, by in results.items()}


def _plain(result: Result) -> dict[str, Any]:
    plain = asdict(result)
    del plain["walks"]
    for which in ("first", "warm"):
        steps = [t for walk in plain[which] if walk for t in walk]
        plain[which] = {
            "walks": len(plain[which]),
            "refused": sum(walk is None for walk in plain[which]),
            "steps": len(steps),
            "mean": float(np.mean(steps)) if steps else None,
            "percentiles": {str(q): float(np.percentile(steps, q)) for q in (50, 90, 99, 100)} if steps else {},
        }
    return plain


def _cell(result: Result | None, show: Callable[[Result], str]) -> str:
    if result is None:
        return ""
    text = show(result) if not result.error else ""
    return text or f"[dim]{(result.error or result.stopped or '-').split(':')[0][:24]}[/]"


def _compile_cell(result: Result) -> str:
    return f"{_ms(np.median(result.compile))} ({_ms(result.compile[0])})"


def _size_cell(result: Result) -> str:
    return "" if result.size < 0 else f"{_kb(result.size)} ({_kb(result.used_size)})"


def _step_cell(result: Result, which: str, overhead: float) -> str:
    walks: list[list[int] | None] = getattr(result, which)
    steps = [t - overhead for walk in walks if walk for t in walk]
    refused = sum(walk is None for walk in walks)
    mark = f" [dim]({refused} refused)[/]" if refused else ""
    return f"{np.mean(steps) / 1e3:,.2f} / {np.percentile(steps, 99) / 1e3:,.2f}{mark}" if steps else mark


def _agreement_cell(result: Result) -> str:
    agreement = result.agreement
    if agreement is None:
        return ""
    wrong = ", ".join(
        f"{count} undecided" if name == "undecided" else f"{name} wrong {count}"
        for name, count in agreement["wrong"].items()
        if count
    )
    return f"{agreement['differing']} / {agreement['states']}{': ' + wrong if wrong else ''}"


def _ms(nanoseconds: Any) -> str:
    return f"{float(nanoseconds) / 1e6:,.2f}"


def _kb(count: float) -> str:
    return f"{count / 1e3:,.1f}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:,.1f}x"
