"""What the model of a fleet is told: `Costs`, each of them measured on this machine."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import structgen as sg
from structgen.warming import lanes, plan, warm
from structgen.warming.options import WarmOptions
from structgen.warming.values import Outcome
from structgen.warming.worker import Done, Reply, Request

from .. import vocabularies

#: Definitions by which what takes little is measured.
_SAMPLE = 512

#: What a worker does before anything else, in a process without this benchmark; it tells the seconds of that.
_BEGIN = """
import time
import structgen.warming.worker
from structgen.definitions import JsonSchema
print(time.process_time())
"""

_kept: Any = None  # the cluster that a process has


@dataclass(frozen=True)
class Costs:
    """Seconds of a processor that does nothing else, but for requests, latency and rate."""

    plan: float
    """The caller's for each definition: reading it, its weight, the order."""
    key: float
    """The caller's for each task: its key, and whether the folder has it."""
    settle: float
    """The caller's for each task: its bytes there and back, and what became of it."""
    hand_out: float
    """The same for each batch, whatever is in it."""
    schedule: float
    """Dask's scheduler's for each batch."""
    publish: float
    """The caller's for each vocabulary: writing it into the folder."""
    begin: float
    """A worker's, once: the interpreter, structgen and its kernels."""
    unpack: float
    """A worker's for each vocabulary: reading it, its trie, and what else the first index needs."""
    requests: float
    """Of a worker to the store for each task, where base rows are in it: half of them look, half write."""
    latency: float = 0.02
    """Of the store for one request: what the aim is said for."""
    rate: float = 3500.0
    """Writes that the store takes in a second, beside as many reads: S3's documented rate for one prefix."""
    base_rows: float = 0.0
    """The caller's for each vocabulary, in pieces; 0 where the cache has its base rows."""


def measure(schemas: Sequence[object], paths: Sequence[Path], folder: Path) -> Costs:
    """All of them, for some schemas and for vocabularies in structgen's format; caches are made in a folder."""
    many = [vocabularies.read(path) for path in paths]
    definitions = [sg.JsonSchema(schema) for schema in schemas[:_SAMPLE]]
    publish = _publishing(many[0], sg.Cache(folder / "published"))
    begin, unpack = _beginning(paths, folder / "begun")
    return Costs(
        *_planning(definitions, many[0], sg.Cache(folder / "planned")),
        *_handing_out(definitions, many[0], sg.Cache(folder / "handed")),
        publish, begin, unpack, _requests(definitions[:64], many[0], folder),
        base_rows=_making_base_rows(paths, folder / "base rows"),
    )  # fmt: skip


def _planning(definitions: Sequence[object], vocabulary: sg.Vocabulary, cache: sg.Cache) -> tuple[float, float]:
    cache.put("something", b"")  # so that there is a database to be asked
    began = time.process_time()
    planned = plan.plan(definitions, [vocabulary], (1, 1))
    made = time.process_time()
    missing = list(warm._missing(planned, cache, True, _nothing_told(len(planned))))
    ended = time.process_time()
    assert len(missing) == len(planned)
    return (made - began) / len(definitions), (ended - made) / len(missing)


def _publishing(vocabulary: sg.Vocabulary, cache: sg.Cache) -> float:
    began = time.process_time()
    lanes.Lane(None, cache, WarmOptions())._publish(vocabulary)
    return time.process_time() - began


def _making_base_rows(paths: Sequence[Path], folder: Path) -> float:
    """In the mean of vocabularies, in a process that has none of them, nor rows."""
    with _process() as process:
        return process.submit(_make_base_rows, [*paths], folder).result()


def _make_base_rows(paths: Sequence[Path], folder: Path) -> float:
    cache = sg.Cache(folder)
    many = [vocabularies.read(path) for path in paths]
    began = time.process_time()
    for vocabulary in many:
        sg.compile_base_rows(vocabulary, cache=cache)
    return (time.process_time() - began) / len(paths)


def _beginning(paths: Sequence[Path], folder: Path) -> tuple[float, float]:
    """Of a process for itself, and for a vocabulary; modules are kept compiled, as where structgen is installed."""
    kept = {"PYTHONPYCACHEPREFIX": str(folder / "modules"), "PYTHONDONTWRITEBYTECODE": ""}
    for _ in range(2):  # the second time modules and kernels are there, as for all but a machine's first worker
        begun = [sys.executable, "-c", _BEGIN]
        with mock.patch.dict(os.environ, kept):
            begin = float(subprocess.run(begun, check=True, capture_output=True, text=True).stdout)
        with mock.patch.dict(os.environ, kept), _process() as process:
            unpack = process.submit(_unpack, [*paths], folder / "cache").result()
    return begin, unpack


def _unpack(paths: Sequence[Path], folder: Path) -> float:
    """How much longer the first index of a vocabulary takes than the second, in the mean of vocabularies."""
    took = 0.0
    for number, path in enumerate(paths):
        cache = sg.Cache(folder / str(number))
        times = [time.process_time()]
        vocabulary = vocabularies.read(path)
        for name in ("a", "b"):
            schema = {"type": "object", "properties": {name: {"type": ["integer", "boolean"]}}}
            sg.compile(sg.JsonSchema(schema), vocabulary, cache=cache, threads=1, base_rows=False)
            times.append(time.process_time())
        took += times[1] - times[0] - (times[2] - times[1])
    return took / len(paths)


def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def instant(request: Request) -> Reply:
    """The answer of a worker that takes no time."""
    made = Outcome(0, "", request.fingerprint, "compiled", kind="pushdown", states=100, rows=100, nbytes=1 << 15)
    return Reply([Done(made, []) for _ in request.items], "a process")


def _cluster() -> str:
    """A cluster in this process, which ends with it: the address of its scheduler."""
    import distributed

    global _kept
    _kept = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)  # type: ignore[no-untyped-call]
    return str(_kept.scheduler_address)


def _close() -> None:
    _kept.close()


def _handing_out(
    definitions: Sequence[object], vocabulary: sg.Vocabulary, cache: sg.Cache
) -> tuple[float, float, float]:
    """`Costs.settle`, ``hand_out`` and ``schedule``: of many batches of one and of few large ones."""
    import distributed

    options, callers, schedulers = WarmOptions(in_flight=8), [], []
    with _process() as process:
        client: Any = distributed.Client(process.submit(_cluster).result())  # type: ignore[no-untyped-call]
        for most in (1, plan._MOST, 1):  # the first time for what is loaded only once
            planned = plan.plan(definitions, [vocabulary], (1, 1))
            tasks = list(warm._missing(planned, cache, True, _nothing_told(len(planned))))
            lane = lanes.Lane(client.get_executor(), cache, options)
            whole = warm._Run(lane, planned, [], cache, _nothing_told(len(planned)), options)
            whole._planned = (tasks[begin : begin + most] for begin in range(0, len(tasks), most))
            before = time.process_time(), client.run_on_scheduler(time.process_time)
            with mock.patch.object(lanes, "answer", instant):
                whole.work()
            callers.append(time.process_time() - before[0])
            schedulers.append(client.run_on_scheduler(time.process_time) - before[1])
        client.close()
        process.submit(_close).result()
    fewer = -(-len(tasks) // plan._MOST)
    hand_out = (callers[2] - callers[1]) / (len(tasks) - fewer)
    settle = max(0.0, callers[1] - fewer * hand_out) / len(tasks)
    return settle, hand_out, schedulers[2] / len(tasks)


def _requests(definitions: Sequence[object], vocabulary: sg.Vocabulary, folder: Path) -> float:
    store = sg.ObjectStore((folder / "bucket").as_uri(), write="now", wait=60.0)
    with sg.Cache(folder / "base", store=store) as cache:
        sg.compile_base_rows(vocabulary, cache=cache)
        before = cache.metrics().store_requests
        # The caller's look beforehand is not a worker's.
        with mock.patch.object(warm, "_LOOKED_AT", 1):
            report = sg.warm(definitions, vocabulary, cache, options=WarmOptions(threads=1))
        return (cache.metrics().store_requests - before - 1) / len(report)


def _nothing_told(total: int) -> warm._Ledger:
    return warm._Ledger([], total, lambda *_: None)
