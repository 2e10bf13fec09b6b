"""One trial: one engine on one regex and one vocabulary, in a process of its own.

A process of its own makes sizes mean something, starts every engine as cold as the next, and survives an engine
that runs out of memory or time. `run` starts one, which compiles, measures sizes and replays the walks, in this
order and on the same compiled objects.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import structgen as sg

from .. import engines, vocabularies, worker
from . import agreement, memory, walks

#: Bytes of a compiled object of which no second one is made.
_LARGE = 512 << 20


@dataclass(frozen=True)
class Task:
    """What to measure.

    Parameters
    ----------
    engine:
        A key of `engines.ENGINES`.
    pattern:
        The regex.
    vocabulary:
        The file that `vocabularies.load` wrote.
    tokenizer_json:
        The tokenizer's own file, or None.
    repeats:
        How often to compile, while ``seconds`` last.
    copies:
        How many further compiled objects to keep at once for their size, while ``seconds`` last; 0 for no size.
    seconds:
        Time for repeats, and again for copies. One of each is made in any case.
    walks:
        Token sequences to replay; None draws them (structgen only); an empty list replays nothing.
    walk_count, walk_length, seed:
        What to draw.
    compared_walks:
        Along how many of the walks to compare masks with structgen's.
    """

    engine: str
    pattern: str
    vocabulary: str
    tokenizer_json: str | None = None
    repeats: int = 5
    copies: int = 0
    seconds: float = 3.0
    walks: list[walks.Walk] | None = field(default_factory=list)
    walk_count: int = 0
    walk_length: int = 64
    seed: int = 0
    compared_walks: int = 0


@dataclass(frozen=True)
class Result:
    """What came out. Times are in nanoseconds.

    Parameters
    ----------
    error:
        Why there is nothing else, or an empty string.
    stopped:
        Why there is nothing but times of compiling, or an empty string.
    compile:
        Each compile, the first one first.
    ready:
        Each compile together with the first mask.
    size:
        Resident bytes of one compiled object, the mean over ``copies`` further ones; -1 where not measured.
    used_size:
        The same after its guides replayed the walks once.
    copies:
        How many there were; 0 where one was too large to make another.
    nbytes:
        What the library says, or None.
    walks:
        The token sequences.
    first, warm:
        The steps of each walk (mask and advance together) in the first and in the second replay with the same
        compiled object; None for a walk with a token that the engine refused.
    agreement:
        The fields of `agreement.Agreement`, or None.
    """

    error: str = ""
    stopped: str = ""
    compile: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    size: float = -1
    used_size: float = -1
    copies: int = 0
    nbytes: int | None = None
    walks: list[walks.Walk] = field(default_factory=list)
    first: list[list[int] | None] = field(default_factory=list)
    warm: list[list[int] | None] = field(default_factory=list)
    agreement: dict[str, Any] | None = None


def run(task: Task, timeout: float) -> Result:
    """Run a trial in a new process. One that dies or takes too long still has what it came to until then."""
    begin, result = time.monotonic(), Result()
    try:
        with worker.Process(Trial, task, one_thread=False) as process:
            for part in ("compile", "measure"):
                result = process.call(part, seconds=max(0.0, timeout - (time.monotonic() - begin)))
    except engines.RefusedError as error:
        return Result(error=f"refused: {str(error)[:300]}")
    except (TimeoutError, worker.DiedError, MemoryError) as error:
        reason = f"over {timeout:.0f} s" if isinstance(error, TimeoutError) else str(error)[:200]
        reason = "out of memory" if worker.is_out_of_memory(error) else reason
        return replace(result, stopped=reason) if result.compile else Result(error=reason)
    return result


# -- in the process of its own -------------------------------------------------------------------------


class Trial:
    """An engine with its tokenizer built, and what it compiled."""

    def __init__(self, task: Task) -> None:
        memory.limit_to_available()
        self._task, self._vocabulary = task, vocabularies.read(Path(task.vocabulary))
        tokenizer = Path(task.tokenizer_json) if task.tokenizer_json else None
        self._engine = engines.make(task.engine, self._vocabulary, tokenizer)
        self._bitmask = np.zeros(self._vocabulary.words, np.int32)

    def compile(self) -> Result:
        """The times of compiling."""
        task, engine = self._task, self._engine
        self._with_size = task.copies > 0 and engine.precomputes and memory.is_measurable()
        self._before = memory.resident() if self._with_size else 0
        times, ready, self._compiled = _compile(task, engine, self._bitmask)
        self._partial = Result(compile=times, ready=ready, nbytes=engine.nbytes(self._compiled))
        return self._partial

    def measure(self) -> Result:
        """The rest."""
        task, engine, bitmask, compiled = self._task, self._engine, self._bitmask, self._compiled
        size, others = _size(task, engine, compiled, self._before) if self._with_size else (-1.0, [])
        sequences = _draw(task, engine) if task.walks is None else task.walks
        first = replay(engine, compiled, bitmask, sequences)
        warm = replay(engine, compiled, bitmask, sequences)
        used_size = size + _growth_in_use(task, engine, others, bitmask, sequences) if self._with_size else -1.0
        compared = sequences[: task.compared_walks]
        return replace(
            self._partial, size=size, used_size=used_size, copies=len(others), walks=sequences, first=first,
            warm=warm,
            agreement=_compare(task, engine, compiled, self._vocabulary, compared) if compared else None,
        )  # fmt: skip


def _compile(task: Task, engine: engines.Engine, bitmask: engines.Bitmask) -> tuple[list[int], list[int], Any]:
    """Compile and fill a first mask, again and again; the last compiled object is returned."""
    times: list[int] = []
    ready: list[int] = []
    compiled = None
    while len(times) < task.repeats and (not times or sum(ready) < task.seconds * 1e9):
        compiled = None
        begin = time.perf_counter_ns()
        compiled = engine.compile(task.pattern)
        times.append(time.perf_counter_ns() - begin)
        stepper = engine.stepper(compiled, bitmask)
        stepper.fill(*stepper.fill_arguments)
        ready.append(time.perf_counter_ns() - begin)
    return times, ready, compiled


def _size(task: Task, engine: engines.Engine, compiled: Any, before: int) -> tuple[float, list[Any]]:
    """Resident bytes of a compiled object, the mean over further ones, and these.

    One so large that the process visibly grew since ``before`` is measured by that growth alone.
    """
    grown = memory.resident() - before
    if grown > _LARGE:
        return float(grown), []
    before, begin = memory.resident(), time.perf_counter()
    kept = [engine.another(task.pattern, compiled)]
    while len(kept) < task.copies and time.perf_counter() - begin < task.seconds:
        kept.append(engine.another(task.pattern, compiled))
    return (memory.resident() - before) / len(kept), kept


def _growth_in_use(
    task: Task, engine: engines.Engine, fresh: list[Any], bitmask: engines.Bitmask, sequences: list[walks.Walk]
) -> float:
    """Resident bytes by which a compiled object grows when the walks are replayed with it."""
    before, begin, used = memory.resident(), time.perf_counter(), 0
    for compiled in fresh:
        if time.perf_counter() - begin > task.seconds:
            break
        replay(engine, compiled, bitmask, sequences)
        used += 1
    return (memory.resident() - before) / used if used else 0.0


def _draw(task: Task, engine: engines.Engine) -> list[walks.Walk]:
    """Walks over an index of their own, so that the one to be measured is still cold."""
    return walks.random_walks(engine.compile(task.pattern), task.walk_count, task.walk_length, task.seed)


def replay(
    engine: engines.Engine, compiled: Any, bitmask: engines.Bitmask, sequences: list[walks.Walk]
) -> list[list[int] | None]:
    """Nanoseconds of every step of every walk, None for a walk that the engine refuses."""
    return [_replay_one(engine.stepper(compiled, bitmask), sequence) for sequence in sequences]


def _replay_one(stepper: engines.Stepper, sequence: walks.Walk) -> list[int] | None:
    clock, times = time.perf_counter_ns, []
    fill, fill_arguments = stepper.fill, stepper.fill_arguments
    advance, advance_arguments = stepper.advance, stepper.advance_arguments
    try:
        for token in sequence:
            begin = clock()
            fill(*fill_arguments)
            accepted = advance(token, *advance_arguments)
            end = clock()
            if accepted is False:
                return None
            times.append(end - begin)
    except ValueError:
        return None
    return times


def _compare(
    task: Task, engine: engines.Engine, compiled: Any, vocabulary: sg.Vocabulary, sequences: list[walks.Walk]
) -> dict[str, Any]:
    structgen = engines.Structgen(vocabulary)
    ours = agreement.Party("structgen", structgen, structgen.compile(task.pattern))
    theirs = agreement.Party(task.engine, engine, compiled)
    return asdict(agreement.compare(task.pattern, ours, theirs, vocabulary, sequences))
