"""One engine in a process of its own, which takes schema after schema."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import engines as peers
from .. import vocabularies, worker
from . import engines, instances

#: How much longer replaying the instances of a schema may take than compiling it.
_REPLAY = 10


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


def outcome(process: worker.Process, case: instances.Case, timeout: float) -> Outcome:
    """What a process of a `Bench` does with a case; ``timeout`` seconds for the compile and the first mask."""
    found = Outcome()
    try:
        found = process.call("compile", case.schema, seconds=timeout)
        return process.call("replay", case, seconds=_REPLAY * timeout)  # type: ignore[no-any-return]
    except TimeoutError:
        late = f"no first mask in {timeout:g} s" if found.ready < 0 else f"a replay over {_REPLAY * timeout:g} s"
        return replace(found, failure="timeout", reason=late)
    except peers.RefusedError as error:
        return Outcome("compile error", _one_line(str(error)))
    except Exception as error:
        failure = "out of memory" if worker.is_out_of_memory(error) else "crash"
        return Outcome(failure, _one_line(str(error) if isinstance(error, worker.DiedError) else repr(error)))


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


# -- in the process of its own -------------------------------------------------------------------------


class Bench:
    """An engine, a key of `engines.ENGINES`, the buffer that its masks go to, and the clock for its steps."""

    def __init__(self, engine: str, vocabulary: Path, setting: engines.Setting, cpu_time: bool) -> None:
        known = vocabularies.read(vocabulary)
        self._engine = engines.ENGINES[engine][1](known, setting)
        self._stopwatch = worker.Stopwatch(known.eos_ids, cpu_time=cpu_time)
        self._bitmask = np.zeros(known.words, np.int32)
        self._compiled: Any = None
        self._outcome = Outcome()

    def compile(self, schema: Any) -> Outcome:
        """What is known at the first mask. Raises `peers.RefusedError` and whatever the engine raises."""
        self._compiled = None
        begin = time.perf_counter_ns()
        self._compiled = self._engine.compile(schema)
        done = time.perf_counter_ns()
        stepper = self._engine.stepper(self._compiled, self._bitmask)
        stepper.fill(*stepper.fill_arguments)
        self._outcome = Outcome(compile=done - begin, ready=time.perf_counter_ns() - begin)
        return self._outcome

    def replay(self, case: instances.Case) -> Outcome:
        """All."""
        first, again = ([self._replay(instance.tokens) for instance in case.instances] for _ in range(2))
        return replace(
            self._outcome, nbytes=self._kept(case.schema), accepted=[accepted for accepted, _ in first],
            first=[steps for _, steps in first], again=[steps for _, steps in again],
        )  # fmt: skip

    def _replay(self, tokens: list[int]) -> tuple[bool, worker.Nanoseconds]:
        """Whether the engine lets a text through to its end, and the time of each step until it doesn't."""
        stepper = self._engine.stepper(self._compiled, self._bitmask)
        _, ends, times = self._stopwatch.replay(stepper, self._bitmask, tokens)
        return ends, times

    def _kept(self, schema: Any) -> int:
        """The size of an eagerly compiled structgen index, which goes to the cache as well; -1 for anything else."""
        engine, compiled = self._engine, self._compiled
        if not isinstance(engine, engines.Structgen) or compiled.origin == "cache":
            return -1
        return engine.keep(schema, compiled) if compiled.machine.is_filled() else -1
