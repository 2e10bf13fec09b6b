"""One engine in a process of its own, which takes schema after schema.

A process for each engine, so that a crash, a schema that takes for ever or one that needs all memory ends that
process, is counted, and nothing else. `Worker` is the parent's side and starts a new process where one was lost.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from . import instances, peers, schema_engines, vocabularies, worker

#: Seconds until a process has its engine ready; the first on a machine compiles structgen's kernels.
_START = 600.0

#: How much longer replaying the instances of a schema may take than compiling it.
_REPLAY = 10


@dataclass(frozen=True, kw_only=True)
class Setup(worker.Setup):
    """What a process needs to know; ``engine`` is a key of `schema_engines.ENGINES`.

    Parameters
    ----------
    setting:
        What else the engine is made of.
    memory:
        Bytes of address space.
    """

    setting: schema_engines.Setting
    memory: int


@dataclass(frozen=True)
class Outcome:
    """What one engine did with one schema.

    Parameters
    ----------
    failure:
        ``"compile error"``, ``"timeout"``, ``"crash"``, ``"out of memory"``, or an empty string.
    reason:
        The message, where there is a failure.
    compile, ready:
        Nanoseconds of compiling, and until the first mask; -1 where it did not come to that.
    nbytes:
        Bytes that the index takes in the cache, for structgen; -1 for others.
    accepted:
        For every instance: whether each of its tokens was in the mask and taken, and the end was in the last mask.
    first, again:
        For every instance: nanoseconds of each step (mask and advance together), up to the one that was refused,
        in the first and in a second replay with the same compiled object. What reading the clock costs is taken off.
    """

    failure: str = ""
    reason: str = ""
    compile: int = -1
    ready: int = -1
    nbytes: int = -1
    accepted: list[bool] = field(default_factory=list)
    first: list[worker.Nanoseconds] = field(default_factory=list)
    again: list[worker.Nanoseconds] = field(default_factory=list)


class Worker:
    """The process of one engine, seen from outside; a context manager."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._context = multiprocessing.get_context("spawn")
        self._log = tempfile.NamedTemporaryFile(prefix="structgen-bench-", suffix=".log")  # noqa: SIM115
        self._process: Any = None
        self._connection: Any = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._log.close()

    def run(self, case: instances.Case, timeout: float) -> Outcome:
        """Compile a schema and replay its instances; ``timeout`` seconds for the compile and the first mask."""
        if self._process is None:
            self._start()
        try:
            self._connection.send(case)
            compiled = self._answer(timeout)
            if compiled is None:
                self._stop()
                return Outcome("timeout", f"no first mask in {timeout:g} s")
            finished = compiled if compiled.failure else self._answer(_REPLAY * timeout)
            if finished is None:
                self._stop()
                return replace(compiled, failure="timeout", reason=f"a replay longer than {_REPLAY * timeout:g} s")
            return finished
        except (EOFError, ConnectionError):
            self._process.join()
            failure, reason = self._cause_of_death()
            self._stop()
            return Outcome(failure, reason)

    def _start(self) -> None:
        os.environ.update(RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1")
        self._log.truncate(0)
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=serve, args=(theirs, self._setup, self._log.name), daemon=True)
        self._process.start()
        theirs.close()
        try:
            ready = self._answer(_START)
        except EOFError:
            ready = None
        if ready is None:
            log = Path(self._log.name).read_text(errors="replace").strip()
            self._stop()
            raise RuntimeError(f"{self._setup.engine} does not start: {log[-2000:]}")

    def _answer(self, seconds: float) -> Outcome | None:
        answer: Outcome | None = self._connection.recv() if self._connection.poll(seconds) else None
        return answer

    def _cause_of_death(self) -> tuple[str, str]:
        lines = Path(self._log.name).read_text(errors="replace").strip().splitlines()
        status = f"exit status {self._process.exitcode}"
        reason = f"{status}: {lines[-1][:200]}" if lines else status
        return ("out of memory" if "alloc" in reason or "MemoryError" in reason else "crash"), reason

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None


# -- in the process of its own -------------------------------------------------------------------------


def serve(connection: Connection, setup: Setup, log: str) -> None:
    """Answer every case with an `Outcome` after the first mask and a whole one at the end (one only if it fails)."""
    _send_output_to(log)
    _limit_memory(setup.memory)
    vocabulary = vocabularies.read(setup.vocabulary)
    engine = schema_engines.ENGINES[setup.engine][1](vocabulary, setup.setting)
    stopwatch = worker.Stopwatch(vocabulary.eos_ids, cpu_time=setup.cpu_time)
    bench = _Bench(engine, np.zeros(vocabulary.words, np.int32), stopwatch)
    gc.disable()  # a collection in the middle of a step would be charged to whoever is measured
    gc.freeze()
    connection.send(Outcome())
    while True:
        case = connection.recv()
        try:
            for outcome in bench.measure(case):
                connection.send(outcome)
        except peers.RefusedError as error:
            connection.send(Outcome("compile error", _one_line(str(error))))
        except MemoryError as error:
            connection.send(Outcome("out of memory", _one_line(repr(error))))
        except Exception as error:
            connection.send(Outcome("crash", _one_line(repr(error))))
        gc.collect()


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


def _send_output_to(log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(file, stream)


def _limit_memory(nbytes: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (nbytes, resource.RLIM_INFINITY))


@dataclass(frozen=True)
class _Bench:
    """An engine, the buffer that its masks go to, and the clock for its steps."""

    engine: schema_engines.SchemaEngine
    bitmask: peers.Bitmask
    stopwatch: worker.Stopwatch

    def measure(self, case: instances.Case) -> Iterator[Outcome]:
        """What is known at the first mask, then all. Raises `peers.RefusedError` and whatever the engine raises."""
        begin = time.perf_counter_ns()
        compiled = self.engine.compile(case.schema)
        done = time.perf_counter_ns()
        stepper = self.engine.stepper(compiled, self.bitmask)
        stepper.fill(*stepper.fill_arguments)
        outcome = Outcome(compile=done - begin, ready=time.perf_counter_ns() - begin)
        yield outcome
        first = [self._replay(compiled, instance.tokens) for instance in case.instances]
        again = [self._replay(compiled, instance.tokens) for instance in case.instances]
        yield replace(
            outcome, nbytes=self._kept(case.schema, compiled), accepted=[accepted for accepted, _ in first],
            first=[steps for _, steps in first], again=[steps for _, steps in again],
        )  # fmt: skip

    def _replay(self, compiled: Any, tokens: list[int]) -> tuple[bool, worker.Nanoseconds]:
        """Whether the engine lets a text through to its end, and the time of each step until it doesn't."""
        _, ends, times = self.stopwatch.replay(self.engine.stepper(compiled, self.bitmask), self.bitmask, tokens)
        return ends, times

    def _kept(self, schema: Any, compiled: Any) -> int:
        """The size of an eagerly compiled structgen index, which goes to the cache as well; -1 for anything else."""
        if not isinstance(self.engine, schema_engines.Structgen) or compiled.origin == "cache":
            return -1
        return self.engine.keep(schema, compiled) if compiled.machine.is_filled() else -1
