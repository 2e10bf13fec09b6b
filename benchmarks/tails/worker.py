"""One engine in a process of its own that is watched: every step by two clocks, and every garbage collection.

What a slow step did is found afterwards: the text is read again by a new compiled object up to that step, which then
runs under `cProfile`. So nothing is counted while steps are timed.
"""

from __future__ import annotations

import cProfile
import gc
import pstats
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np

import structgen as sg

from .. import engines as peers
from .. import vocabularies, worker
from ..grammar import engines as grammar_engines
from ..json_schema import engines as schema_engines
from ..tags import engines as tag_engines

COMPLETE, LAZY, CACHED = "structgen", "structgen, lazy", "structgen, cached"

#: Generation and nanoseconds of a garbage collection.
Collection = tuple[int, int]

#: A function is named as the cause of a step where it takes so much of it, callees included.
_SHARE = 0.5

#: Garbage collections that took fewer nanoseconds explain nothing.
_COLLECTION = 100_000

#: How many functions are kept of a profile, by their own time.
_FUNCTIONS = 6


@dataclass(frozen=True)
class Case:
    """A definition and texts for it.

    Parameters
    ----------
    id:
        What it is called in lists.
    definition:
        As the engine's front end takes it: a schema, a pattern; None for the grammar of the whole workload.
    texts:
        Name and token ids of each.
    """

    id: str
    definition: Any
    texts: Sequence[tuple[str, Sequence[int]]]


@dataclass(frozen=True)
class Moments:
    """Moments one after the other: nanoseconds by both clocks, ``int64[n]``, and collections by a moment's number."""

    wall: worker.Nanoseconds
    thread: worker.Nanoseconds
    collections: dict[int, list[Collection]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What an engine did with a case.

    Parameters
    ----------
    failure:
        Why it did not come to the steps, or an empty string.
    first:
        Two moments: the compile, and the compile with the first mask; None where it failed.
    steps:
        Of each text: mask and advance for each token, up to the one that is refused. None where it failed.
    """

    failure: str = ""
    first: Moments | None = None
    steps: Sequence[Moments] = ()


@dataclass(frozen=True)
class Setup:
    """What a process needs to know.

    Parameters
    ----------
    workload:
        ``"json"``, ``"regex"``, ``"tags"``, or the name of a grammar's workload.
    engine:
        `COMPLETE`, `LAZY`, `CACHED` and its variants, or a peer's name.
    vocabulary, tokenizer_json, cache:
        The file that `vocabularies.load` wrote, the tokenizer's own file, and a folder for structgen's cache.
    grammar:
        That of the workload.
    hold:
        How many compiled objects stay alive, as in a server that serves many requests.
    """

    workload: str
    engine: str
    vocabulary: Path
    tokenizer_json: Path | None
    cache: Path
    grammar: sg.Grammar | None
    hold: int


def read(process: worker.Process, case: Case, timeout: float) -> Reading:
    """What a process of a `Bench` does with a case; ``timeout`` seconds for the compile and the first mask."""
    try:
        first = process.call("first_mask", case, seconds=timeout)
        return Reading("", first, process.call("replay", case, seconds=10 * timeout))
    except TimeoutError:
        return Reading("timeout")
    except peers.RefusedError as error:
        return Reading(f"refused: {' '.join(str(error).split())[:300]}")
    except Exception as error:
        return Reading(f"crash: {' '.join(str(error).split())[:300]}")


# -- in the process of its own -------------------------------------------------------------------------


class Clock:
    """Wall clock and the thread's own, with what reading them costs taken off, and garbage collections."""

    def __init__(self) -> None:
        self._collections: list[tuple[int, Collection]] = []  # when each began
        self._began = 0
        gc.callbacks.append(self._collected)
        costs = np.array([self._overhead() for _ in range(10_001)])
        self._wall_cost, self._thread_cost = np.median(costs, axis=0).astype(int).tolist()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter_ns()
        elif (taken := time.perf_counter_ns() - self._began) >= _COLLECTION:
            self._collections.append((self._began, (info["generation"], taken)))

    @staticmethod
    def _overhead() -> tuple[int, int]:
        thread, wall = time.thread_time_ns(), time.perf_counter_ns()
        return -wall + time.perf_counter_ns(), -thread + time.thread_time_ns()

    def moments(self, stamps: Sequence[tuple[int, int, int, int]]) -> Moments:
        """Of the stamps ``thread, wall`` at the beginning and ``wall, thread`` at the end of each moment."""
        thread, wall, after, spent = np.array(stamps, np.int64).reshape(-1, 4).T
        found: dict[int, list[Collection]] = {}
        for began, collection in self._collections:
            for number in np.flatnonzero((wall <= began) & (began < after)).tolist():
                found.setdefault(number, []).append(collection)
        self._collections.clear()
        return Moments(after - wall - self._wall_cost, spent - thread - self._thread_cost, found)


class Bench:
    """An engine, the buffer that its masks go to, and the clocks."""

    def __init__(self, setup: Setup) -> None:
        vocabulary = vocabularies.read(setup.vocabulary)
        self._bitmask = np.zeros(vocabulary.words, np.int32)
        self._compile, self._engine = _maker(setup, vocabulary)
        self._held: deque[Any] = deque(maxlen=setup.hold)
        self._keeps = setup.workload == "json" and setup.engine == COMPLETE
        self._clock = Clock()

    def prepare(self) -> Moments:
        """The first compile of a grammar that all cases share; the others open what it made, where it is complete."""
        begin = time.thread_time_ns(), time.perf_counter_ns()
        self._compile(None)
        return self._clock.moments([(*begin, time.perf_counter_ns(), time.thread_time_ns())])

    def first_mask(self, case: Case) -> Moments:
        """Compile, and write the first mask. Raises `peers.RefusedError` and whatever the engine raises."""
        thread, wall = time.thread_time_ns(), time.perf_counter_ns()
        compiled = self._compile(case.definition)
        done = time.perf_counter_ns(), time.thread_time_ns()
        stepper = self._engine.stepper(compiled, self._bitmask)
        stepper.fill(*stepper.fill_arguments)
        ready = time.perf_counter_ns(), time.thread_time_ns()
        self._held.append(compiled)
        if self._keeps:
            cast(schema_engines.Structgen, self._engine).keep(case.definition, compiled)
        return self._clock.moments([(thread, wall, *done), (thread, wall, *ready)])

    def replay(self, case: Case) -> list[Moments]:
        """Mask and advance for each token of each text, until one is not in the mask or not taken."""
        found = []
        for _, tokens in case.texts:
            stepper = self._engine.stepper(self._held[-1], self._bitmask)
            found.append(self._clock.moments(list(_steps(stepper, self._bitmask, tokens))))
        return found

    def file_size(self) -> int:
        """Bytes of the last index in a file, without its vocabulary."""
        return len(self._held[-1].to_bytes(with_vocabulary=False))

    def explain(self, case: Case, text: int | None, position: int) -> dict[str, Any]:
        """What a step does, or the compile and the first mask for no text: timed once more, and under a profile."""
        again = self._once_more(case, text, position, None)
        profile = cProfile.Profile(time.thread_time)
        before, after = self._once_more(case, text, position, profile)["counts"]
        counts = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
        return {"again, ms": again["ms"], "counts": counts} | _functions(profile)

    def _once_more(
        self, case: Case, text: int | None, position: int, profile: cProfile.Profile | None
    ) -> dict[str, Any]:
        """A new compiled object brought to the moment, and that moment, by the thread's clock."""
        compiled, stepper, token, before = None, None, 0, {}
        if text is not None:
            compiled = self._compile(case.definition)
            for _, tokens in case.texts[:text]:
                deque(_steps(self._engine.stepper(compiled, self._bitmask), self._bitmask, tokens), maxlen=0)
            stepper, (_, tokens) = self._engine.stepper(compiled, self._bitmask), case.texts[text]
            deque(_steps(stepper, self._bitmask, tokens[:position]), maxlen=0)
            token, before = tokens[position], _counts(compiled)
        began = time.thread_time_ns()
        with _profiled(profile):
            if stepper is None:
                compiled = self._compile(case.definition)
                stepper = self._engine.stepper(compiled, self._bitmask)
                stepper.fill(*stepper.fill_arguments)
            else:
                _step(stepper, token)
        return {"ms": (time.thread_time_ns() - began) / 1e6, "counts": (before, _counts(compiled))}


def _maker(setup: Setup, vocabulary: sg.Vocabulary) -> tuple[Callable[[Any], Any], Any]:
    """How an engine compiles a definition, and the engine. A comment makes a lazy grammar one that was never seen."""
    if setup.workload == "json":
        assert setup.tokenizer_json is not None
        setting = schema_engines.Setting(setup.tokenizer_json, setup.cache)
        schemas = schema_engines.ENGINES[setup.engine][1](vocabulary, setting)
        return schemas.compile, schemas
    if setup.workload == "tags":
        tags = tag_engines.ENGINES[setup.engine][1](vocabulary, setup.tokenizer_json)
        return tags.compile, tags
    if setup.workload == "regex":
        name = "structgen, 1 thread" if setup.engine == COMPLETE else setup.engine
        regexes = peers.make(name, vocabulary, setup.tokenizer_json)
        return regexes.compile, regexes
    grammar = setup.grammar
    assert grammar is not None
    grammars = grammar_engines.ENGINES[setup.engine.partition(",")[0]][1](vocabulary, setup.tokenizer_json, grammar)
    if setup.engine != LAZY:
        return lambda _: grammars.ready(grammar_engines.EAGER), grammars
    number = count()

    def never_seen(_: object) -> sg.Index:
        definition = replace(grammar, source=f"{grammar.text}\n// {next(number)}\n")
        return sg.compile(definition, vocabulary, eager=False, threads=1, budget=sg.Budget(seconds=600))

    return never_seen, grammars


def _steps(
    stepper: peers.Stepper, bitmask: peers.Bitmask, tokens: Sequence[int]
) -> Iterator[tuple[int, int, int, int]]:
    """The stamps of each step, up to the one that is refused."""
    bits = bitmask.view(np.uint8)
    for token in tokens:
        begin = time.thread_time_ns(), time.perf_counter_ns()
        taken = _step(stepper, token)
        yield *begin, time.perf_counter_ns(), time.thread_time_ns()
        if taken is False or not bits[token >> 3] >> (token & 7) & 1:
            return


def _step(stepper: peers.Stepper, token: int) -> object:
    stepper.fill(*stepper.fill_arguments)
    try:
        return stepper.advance(token, *stepper.advance_arguments)
    except ValueError:  # outlines-core raises where others return False
        return False


# -- causes --------------------------------------------------------------------------------------------


def _counts(compiled: Any) -> dict[str, int]:
    """What an index tells about its work so far."""
    if not isinstance(compiled, sg.Index):
        return {}
    return {
        "partial masks": compiled.machine.known_rows,
        "rows": compiled.row_count,
        "states": compiled.states,
        "gave way": compiled.slow_steps,
    }


@contextmanager
def _profiled(profile: cProfile.Profile | None) -> Iterator[None]:
    if profile is None:
        yield
        return
    profile.enable()
    try:
        yield
    finally:
        profile.disable()


def _functions(profile: cProfile.Profile) -> dict[str, Any]:
    """The innermost function that takes most of the time, and those that take most by themselves."""
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, Any]]
    stats = cast(Any, pstats.Stats(profile)).stats
    total = sum(own for _, _, own, _, _ in stats.values())
    named = {
        _function(*function): {"calls": calls, "own, ms": round(1e3 * own, 3), "share": round(whole / total, 3)}
        for function, (_, calls, own, whole, _) in stats.items()
        if total and function[0] != __file__ and "_lsprof" not in function[2]
    }
    heavy = [(found["share"], name) for name, found in named.items() if found["share"] >= _SHARE]
    by_own = sorted(named.items(), key=lambda item: -item[1]["own, ms"])[:_FUNCTIONS]
    name = min(heavy, default=(0.0, ""))[1]
    return {
        "cause": name and f"{name}, called {named[name]['calls']} times, {100 * named[name]['share']:.0f} %",
        "functions": dict(by_own),
    }


def _function(path: str, line: int, name: str) -> str:
    """Such as ``runtime/index/index.py:100 nbytes``."""
    if path == "~":
        return name
    parts = Path(path).parts
    inside = parts[-parts[::-1].index("structgen") :] if "structgen" in parts else parts[-2:]
    return f"{'/'.join(inside)}:{line} {name}"
