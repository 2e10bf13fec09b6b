"""One trial: one engine on one regex and one vocabulary, in a process of its own.

A process of its own makes sizes mean something, starts every engine as cold as the next, and survives an engine
that runs out of memory or time. `run` starts one; ``python -m benchmarks.trial`` is what it starts, which compiles,
measures sizes and replays the walks, in this order and on the same compiled objects.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import structgen as sg

from . import agreement, memory, peers, vocabularies, walks

ROOT = Path(__file__).resolve().parents[1]

#: Bytes of a compiled object of which no second one is made.
_LARGE = 512 << 20


@dataclass(frozen=True)
class Task:
    """What to measure.

    Parameters
    ----------
    engine:
        A key of `peers.ENGINES`.
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
    """Run a trial in a new process. One that dies or takes too long still has what it wrote until then."""
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        answer = Path(folder, "result.json")
        command = [sys.executable, "-m", __name__, str(answer)]
        reason = ""
        try:
            done = subprocess.run(
                command, input=json.dumps(asdict(task)), text=True, timeout=timeout, cwd=ROOT,
                capture_output=True, check=False,
            )  # fmt: skip
            if done.returncode:
                reason = _cause_of_death(done)
        except subprocess.TimeoutExpired:
            reason = f"over {timeout:.0f} s"
        if not answer.is_file():
            return Result(error=reason)
        return replace(Result(**json.loads(answer.read_text())), stopped=reason)


def _cause_of_death(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    if any("alloc" in line or "MemoryError" in line for line in lines):
        return "out of memory"
    return lines[-1][:200]


def main(answer: str) -> None:
    """Read a task from standard input and write its result to a file."""
    memory.limit_to_available()
    task = Task(**json.load(sys.stdin))
    try:
        for result in measure(task):
            _write(Path(answer), result)
    except peers.RefusedError as error:
        _write(Path(answer), Result(error=f"refused: {str(error)[:300]}"))


def _write(path: Path, result: Result) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(result)))
    draft.replace(path)  # whoever ends this process meanwhile finds the earlier one


# -- in the process of its own -------------------------------------------------------------------------


def measure(task: Task) -> Iterator[Result]:
    """Do what the task says: a result with the times of compiling, then a whole one.

    Raises `peers.RefusedError`.
    """
    vocabulary = vocabularies.read(Path(task.vocabulary))
    engine = peers.make(task.engine, vocabulary, Path(task.tokenizer_json) if task.tokenizer_json else None)
    bitmask = np.zeros(vocabulary.words, np.int32)
    gc.disable()  # a collection in the middle of a step would be charged to whoever is measured
    with_size = task.copies > 0 and engine.precomputes and memory.is_measurable()
    before = memory.resident() if with_size else 0
    times, ready, compiled = _compile(task, engine, bitmask)
    partial = Result(compile=times, ready=ready, nbytes=engine.nbytes(compiled))
    yield partial
    size, others = _size(task, engine, compiled, before) if with_size else (-1.0, [])
    sequences = _draw(task, engine) if task.walks is None else task.walks
    first = replay(engine, compiled, bitmask, sequences)
    warm = replay(engine, compiled, bitmask, sequences)
    used_size = size + _growth_in_use(task, engine, others, bitmask, sequences) if with_size else -1.0
    compared = sequences[: task.compared_walks]
    yield replace(
        partial, size=size, used_size=used_size, copies=len(others), walks=sequences, first=first, warm=warm,
        agreement=_compare(task, engine, compiled, vocabulary, compared) if compared else None,
    )  # fmt: skip


def _compile(task: Task, engine: peers.Engine, bitmask: peers.Bitmask) -> tuple[list[int], list[int], Any]:
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


def _size(task: Task, engine: peers.Engine, compiled: Any, before: int) -> tuple[float, list[Any]]:
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
    task: Task, engine: peers.Engine, fresh: list[Any], bitmask: peers.Bitmask, sequences: list[walks.Walk]
) -> float:
    """Resident bytes by which a compiled object grows when the walks are replayed with it."""
    before, begin, used = memory.resident(), time.perf_counter(), 0
    for compiled in fresh:
        if time.perf_counter() - begin > task.seconds:
            break
        replay(engine, compiled, bitmask, sequences)
        used += 1
    return (memory.resident() - before) / used if used else 0.0


def _draw(task: Task, engine: peers.Engine) -> list[walks.Walk]:
    """Walks over an index of their own, so that the one to be measured is still cold."""
    return walks.random_walks(engine.compile(task.pattern), task.walk_count, task.walk_length, task.seed)


def replay(
    engine: peers.Engine, compiled: Any, bitmask: peers.Bitmask, sequences: list[walks.Walk]
) -> list[list[int] | None]:
    """Nanoseconds of every step of every walk, None for a walk that the engine refuses."""
    return [_replay_one(engine.stepper(compiled, bitmask), sequence) for sequence in sequences]


def _replay_one(stepper: peers.Stepper, sequence: walks.Walk) -> list[int] | None:
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
    task: Task, engine: peers.Engine, compiled: Any, vocabulary: sg.Vocabulary, sequences: list[walks.Walk]
) -> dict[str, Any]:
    structgen = peers.Structgen(vocabulary)
    ours = agreement.Party("structgen", structgen, structgen.compile(task.pattern))
    theirs = agreement.Party(task.engine, engine, compiled)
    return asdict(agreement.compare(task.pattern, ours, theirs, vocabulary, sequences))


def clock_overhead(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """Nanoseconds that a step's two clock readings take by themselves, the median of many."""
    return float(np.median([-clock() + clock() for _ in range(100_001)]))


if __name__ == "__main__":
    main(sys.argv[1])
