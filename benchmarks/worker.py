"""Processes in which engines are measured, one each, and the clock for their steps.

A crash, a definition that takes for ever or one that needs all memory ends that process, is told, and nothing else.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import engines

Nanoseconds = NDArray[np.int64]

#: Seconds until a process has its object; the first on a machine compiles structgen's kernels.
_START = 600.0

_ONE_THREAD = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class DiedError(Exception):
    """A process ended by itself; the last line of what it wrote, or its exit status."""


class Process:
    """An object in a process of its own, whose methods are called from here; a context manager.

    Parameters
    ----------
    make, arguments:
        What makes the object there, and of what.
    memory:
        Bytes of address space that it may have; 0 for all.
    one_thread:
        Whether libraries keep to one.
    collector:
        Whether garbage is collected when Python thinks fit, as in any program; otherwise between calls only.

    A process that was lost, or that took too long, is made anew for the next call.
    """

    def __init__(
        self,
        make: Callable[..., object],
        *arguments: object,
        memory: int = 0,
        one_thread: bool = True,
        collector: bool = True,
    ) -> None:
        self._made = make, arguments, memory, collector
        self._one_thread = one_thread
        self._process: Any = None

    def __enter__(self) -> Process:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def call(self, method: str, *arguments: object, seconds: float | None = None) -> Any:
        """What a method returns, or raises. Raises `TimeoutError` and `DiedError`, too."""
        if self._process is None:
            self._start()
        self._connection.send((method, arguments))
        return self._answer(seconds)

    def _start(self) -> None:
        if self._one_thread:
            os.environ.update(_ONE_THREAD)
        context = multiprocessing.get_context("spawn")
        self._log = tempfile.NamedTemporaryFile(prefix="structgen-bench-", suffix=".log")  # noqa: SIM115
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._log.name, *self._made), daemon=True)
        self._process.start()
        theirs.close()
        self._answer(_START)

    def _answer(self, seconds: float | None) -> Any:
        try:
            if not self._connection.poll(seconds):
                self._stop()
                raise TimeoutError(f"over {seconds:g} s")
            answer = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            lines = Path(self._log.name).read_text(errors="replace").strip().splitlines()
            error = DiedError((lines or [f"exit status {self._process.exitcode}"])[-1][:300])
            self._stop()
            raise error from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._log.close()
            self._process = None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether that is why a call of a process failed."""
    return isinstance(error, MemoryError) or any(word in str(error) for word in ("alloc", "MemoryError"))


def _serve(
    connection: Connection,
    log: str,
    make: Callable[..., object],
    arguments: Sequence[object],
    memory: int,
    collector: bool,
) -> None:
    """Answer every call with what the method returns or raises."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(file, stream)
    if memory:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, resource.RLIM_INFINITY))
    try:
        made = make(*arguments)
        connection.send(None)
    except Exception as error:
        connection.send(error)
        return
    if not collector:
        gc.disable()
        gc.freeze()
    while True:
        try:
            method, given = connection.recv()
        except EOFError:
            return
        try:
            connection.send(getattr(made, method)(*given))
        except Exception as error:
            connection.send(error)
        if not collector:
            gc.collect()


# -- the clock -------------------------------------------------------------------------------------------


def clock_overhead(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """Nanoseconds that a step's two clock readings take by themselves, the median of many."""
    return float(np.median([-clock() + clock() for _ in range(100_001)]))


class Stopwatch:
    """Replays texts and measures each step, with what reading the clock costs taken off.

    ``cpu_time`` takes what the thread spent on a processor, instead of what passed.
    """

    def __init__(self, eos_ids: Sequence[int], *, cpu_time: bool) -> None:
        self._eos_ids = eos_ids
        self._clock: Callable[[], int] = time.thread_time_ns if cpu_time else time.perf_counter_ns
        self._overhead = round(clock_overhead(self._clock))

    def replay(
        self, stepper: engines.Stepper, bitmask: engines.Bitmask, tokens: Sequence[int]
    ) -> tuple[bool, bool, Nanoseconds]:
        """Mask and advance for each token, until one is not in the mask or not taken.

        Returns whether all were taken, whether the text may end then, and the nanoseconds of each step, the last one
        included.
        """
        bits, clock, overhead = bitmask.view(np.uint8), self._clock, self._overhead
        fill, fill_arguments = stepper.fill, stepper.fill_arguments
        advance, advance_arguments = stepper.advance, stepper.advance_arguments
        times = np.zeros(len(tokens), np.int64)
        for position, token in enumerate(tokens):
            begin = clock()
            fill(*fill_arguments)
            try:
                taken = advance(token, *advance_arguments)
            except ValueError:  # outlines-core raises where others return False
                taken = False
            times[position] = clock() - begin - overhead
            if taken is False or not bits[token >> 3] >> (token & 7) & 1:
                return False, False, times[: position + 1]
        fill(*fill_arguments)
        return True, any(bits[token >> 3] >> (token & 7) & 1 for token in self._eos_ids), times
