"""Masks on a device: structgen's kernels beside XGrammar's, llguidance's and a copy of the logits.

    python -m benchmarks.batch.masks                    # make bench-gpu

Each way of masking is checked first: logits as `apply_bitmask` on the CPU has them, bit by bit. Without a CUDA device
the same suite runs on the CPU in small sizes, structgen's kernel also in Triton's interpreter; then the times mean
nothing.

A mask must write what is forbidden and read a bit a token: these bytes, over the time and what a large copy moves in
a second, are its share of the memory bandwidth. What is called *captured* is a replay of a CUDA graph, without the
host.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import structgen as sg

from .. import report, run

DTYPES = ("float32", "float16", "bfloat16")

#: Shares of the tokens that a mask allows.
SHARES = {"few": 0.001, "half": 0.5, "most": 0.99}

#: Bytes of the copy that the bandwidth is measured by: on a GPU, and in memory.
_LARGE = {"cuda": 1 << 30, "cpu": 1 << 26}

#: Calls in a measurement, after some that do not count.
_CALLS = {"cuda": 200, "cpu": 5}
_FIRST = 3

#: A regex whose states are followed on the device.
_PATTERN = r"[a-z]{3,40}( [a-z]+)*\."


@dataclass(frozen=True)
class Size:
    """Rows of logits, and tokens of each."""

    batch: int
    width: int


@dataclass
class Found:
    """What was measured: microseconds of each way by size, dtype and share; and what did not run, and why."""

    device: str
    gigabytes_a_second: float
    rows: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


#: A way to mask logits, in place.
Way = Callable[[Any], object]


class Bench:
    """A device, and the clock for it."""

    def __init__(self, device: str) -> None:
        import torch

        if device == "cpu":
            os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel is made
        self._torch: Any = torch
        self._device = device
        self._is_cuda = device.startswith("cuda")
        kind = "cuda" if self._is_cuda else "cpu"
        self._calls, large = _CALLS[kind], _LARGE[kind]
        one = torch.empty(large, dtype=torch.uint8, device=device)
        other = torch.empty_like(one)
        seconds = self.microseconds(lambda: other.copy_(one)) / 1e6
        name = torch.cuda.get_device_name() if self._is_cuda else "cpu"
        self.found = Found(name, 2 * large / seconds / 1e9)

    def microseconds(self, function: Callable[[], object]) -> float:
        """Of a call, the mean of many in a row that nobody waits for; on the CPU the median."""
        torch = self._torch
        for _ in range(_FIRST):
            function()
        if not self._is_cuda:
            times = []
            for _ in range(self._calls):
                begun = time.perf_counter()
                function()
                times.append(time.perf_counter() - begun)
            return float(np.median(times)) * 1e6
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(self._calls):
            function()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / self._calls * 1e3

    def captured(self, function: Callable[[], object]) -> Callable[[], object]:
        """The replay of a CUDA graph of a call."""
        torch = self._torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_FIRST):
                function()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function()
        replay: Callable[[], object] = graph.replay
        return replay

    # -- masks -----------------------------------------------------------------------------------------

    def masks(self, size: Size, dtypes: Sequence[str] = DTYPES, peers: bool = True) -> None:
        """Every way, dtype and share of allowed tokens."""
        torch = self._torch
        rng = np.random.default_rng(0)
        for share_name, share in SHARES.items():
            allowed = rng.random((size.batch, size.width)) < share
            words = np.packbits(allowed, axis=1, bitorder="little").view("<i4").astype(np.int32)
            moved = size.batch * size.width / 8
            for dtype in dtypes:
                before = torch.randn((size.batch, size.width)).to(getattr(torch, dtype))
                wanted = before.clone()
                sg.apply_bitmask(wanted, words)
                least = moved + before.element_size() * int((~allowed).sum())
                for name, way in self._ways(size, words, peers):
                    took = self._checked(f"{name}, {dtype}", way, before, wanted)
                    for kind, microseconds in took.items():
                        self.found.rows.append({
                            "way": name + kind, "batch": size.batch, "width": size.width, "dtype": dtype,
                            "allowed": share_name, "microseconds": microseconds,
                            "share of bandwidth": least / microseconds / 1e3 / self.found.gigabytes_a_second,
                        })  # fmt: skip
                other, logits = before.to(self._device), before.to(self._device)
                self.found.rows.append({
                    "way": "a copy of the logits", "batch": size.batch, "width": size.width, "dtype": dtype,
                    "allowed": share_name, "microseconds": self.microseconds(partial(other.copy_, logits)),
                })  # fmt: skip

    def _checked(self, name: str, way: Way, before: Any, wanted: Any) -> dict[str, float]:
        """Microseconds, by whether the call is captured; nothing for a way that fails or masks in another way."""
        torch = self._torch
        logits = before.to(self._device)
        try:
            way(logits)
        except Exception as error:  # a peer may lack a kernel for this device or dtype
            self.found.left_out[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            return {}
        if not torch.equal(logits.cpu(), wanted):
            self.found.left_out[name] = "masks otherwise"
            return {}
        took = {"": self.microseconds(lambda: way(logits))}
        if self._is_cuda and "sent" not in name:
            try:
                took[", captured"] = self.microseconds(self.captured(lambda: way(logits)))
            except Exception as error:
                self.found.left_out[f"{name}, captured"] = f"{type(error).__name__}: {str(error)[:200]}"
        return took

    def _ways(self, size: Size, words: Any, peers: bool) -> Iterator[tuple[str, Way]]:
        from structgen.runtime.logits.devices import DeviceRows
        from structgen.runtime.logits.masks import has_triton, mask_rows
        from structgen.runtime.rows.row_store import RowStore

        torch = self._torch
        store = RowStore(_vocabulary(size.width))
        numbers = store.add(words)
        rows = DeviceRows(store, self._device)
        slots = rows.slots(numbers)
        yield "structgen", lambda logits: mask_rows(logits, rows.pool, slots)
        yield "structgen, row ids sent", lambda logits: rows.mask(logits, numbers)
        if not self._is_cuda and has_triton():
            from structgen.runtime.logits.triton_masks import launch_mask

            yield "structgen, interpreted", lambda logits: launch_mask(logits, rows.pool, slots)
        if not peers:
            return
        on_host = torch.from_numpy(words)
        host = on_host.pin_memory() if self._is_cuda else on_host
        there = host.to(self._device)
        try:
            import xgrammar

            yield "xgrammar", lambda logits: xgrammar.apply_token_bitmask_inplace(logits, there)
            yield (
                "xgrammar, masks sent",
                lambda logits: xgrammar.apply_token_bitmask_inplace(logits, host.to(self._device, non_blocking=True)),
            )
        except ImportError:
            self.found.left_out["xgrammar"] = "not installed"
        try:
            from llguidance.torch import apply_token_bitmask_inplace

            yield "llguidance", lambda logits: apply_token_bitmask_inplace(logits, there)
            yield (
                "llguidance, masks sent",
                lambda logits: apply_token_bitmask_inplace(logits, host.to(self._device, non_blocking=True)),
            )
        except ImportError:
            self.found.left_out["llguidance"] = "not installed"

    # -- uploads and states ----------------------------------------------------------------------------

    def uploads(self, size: Size) -> None:
        """Rows that the device does not have yet, as many as sequences, each time others."""
        from structgen.runtime.logits.devices import DeviceRows
        from structgen.runtime.rows.row_store import RowStore

        vocabulary = _vocabulary(size.width)
        store, rng = RowStore(vocabulary), np.random.default_rng(0)
        turns = 4
        words = rng.integers(-(2**31), 2**31, (turns * size.batch, vocabulary.words)).astype(np.int32)
        numbers = store.add(words).reshape(turns, size.batch)
        rows = DeviceRows(store, self._device, slots=size.batch)  # so that each turn replaces the one before
        turn = iter(range(10**9))
        took = self.microseconds(lambda: rows.slots(numbers[next(turn) % turns]))
        gigabytes = 4 * vocabulary.words * size.batch / took / 1e3
        self.found.rows.append({
            "way": "structgen, new rows sent", "batch": size.batch, "width": size.width, "dtype": "-", "allowed": "-",
            "microseconds": took, "gigabytes a second": gigabytes,
        })  # fmt: skip

    def states(self, size: Size) -> None:
        """Mask, choose and advance with the states of a regex on the device; there captured, too."""
        from structgen.runtime.logits.device_automata import DeviceAutomata

        torch = self._torch
        index = sg.compile(sg.Regex(_PATTERN), _letters(size.width))
        automata = DeviceAutomata([index], self._device)
        states, counts = automata.start([0] * size.batch)
        logits = torch.randn((size.batch, size.width)).to(self._device)

        def step() -> None:
            scores = logits.clone()
            automata.mask(scores, states, counts)
            automata.advance(states, counts, scores.argmax(-1))

        ways: dict[str, Callable[[], object]] = {"structgen, states on the device": step}
        if self._is_cuda:
            ways["structgen, states on the device, captured"] = self.captured(step)
        for name, way in ways.items():
            self.found.rows.append({
                "way": name, "batch": size.batch, "width": size.width, "dtype": "float32", "allowed": "-",
                "microseconds": self.microseconds(way),
            })  # fmt: skip


def _vocabulary(width: int) -> sg.Vocabulary:
    return sg.Vocabulary.from_bytes([b"a"] * (width - 1) + [None], eos_ids=[width - 1])


def _letters(width: int) -> sg.Vocabulary:
    """A vocabulary of words of small letters, a space or a dot among them."""
    rng = np.random.default_rng(0)
    tokens = [bytes(rng.choice(list(b"abcdefghijklmnopqrstuvwxyz ."), rng.integers(1, 8))) for _ in range(width - 29)]
    singles = [bytes([byte]) for byte in b"abcdefghijklmnopqrstuvwxyz ."]
    return sg.Vocabulary.from_bytes([*singles, *tokens, None], eos_ids=[width - 1])


def measure(device: str, sizes: Sequence[Size], *, dtypes: Sequence[str] = DTYPES, peers: bool = True) -> Found:
    """The whole suite."""
    bench = Bench(device)
    for size in sizes:
        bench.masks(size, dtypes, peers)
        bench.uploads(size)
        bench.states(size)
    return bench.found


def usual() -> tuple[str, list[Size]]:
    """The device that there is, and sizes for it."""
    import torch

    if torch.cuda.is_available():
        return "cuda", [Size(batch, 128 * 1024) for batch in (1, 32, 256)]
    return "cpu", [Size(4, 2048)]


def show(console: Console, found: Found) -> None:
    """A row for each way."""
    console.print(f"{found.device}: a large copy moves {found.gigabytes_a_second:,.0f} GB a second")
    rows = [
        [
            row["way"], str(row["batch"]), row["dtype"], row["allowed"], f"{row['microseconds']:,.1f}",
            f"{row['share of bandwidth']:.0%}" if "share of bandwidth" in row else "",
        ]
        for row in found.rows
    ]  # fmt: skip
    report.show_rows(console, "Masks", ["way", "batch", "dtype", "allowed", "µs", "of the bandwidth"], rows)
    for name, reason in found.left_out.items():
        console.print(f"left out: {name}: {reason}", markup=False, highlight=False)


def main() -> None:
    """Measure, show, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, help="a JSON file for the results; results/local by default")
    options = parser.parse_args()
    console = run.console()
    kept = run.begin(console, vars(options))
    found = measure(*usual())
    show(console, found)
    kept["masks"] = vars(found)
    run.end(console, kept, options.save or run.results(kept, "masks", None, complete=False))


if __name__ == "__main__":
    main()
