"""One engine with one grammar in a process of its own, which replays the texts that it is told to.

`Worker` is the parent's side. The parent lets the engines take turns text by text, so that all see the same load on
the machine.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import structgen as sg

from . import grammar_engines, peers, vocabularies, worker


@dataclass(frozen=True, kw_only=True)
class Setup(worker.Setup):
    """What a process needs to know; ``engine`` is a key of `grammar_engines.ENGINES`.

    Parameters
    ----------
    tokenizer_json:
        The tokenizer's own file, or None.
    grammar:
        What to compile.
    texts:
        The texts, in token ids.
    """

    tokenizer_json: Path | None
    grammar: sg.Grammar
    texts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Replay:
    """How an engine read a text.

    Parameters
    ----------
    trouble:
        Why it did not come to the end: which token, and what the engine says; or an empty string.
    times:
        Nanoseconds of each step (mask and advance together). What reading the clock costs is taken off.
    """

    trouble: str
    times: worker.Nanoseconds


class Worker:
    """The process of one engine, seen from outside; a context manager. Raises `peers.RefusedError` on entering."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def __enter__(self) -> Worker:
        context = multiprocessing.get_context("spawn")
        os.environ.update(RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._setup), daemon=True)
        self._process.start()
        theirs.close()
        self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def prepare(self, how: str, warm: Sequence[int] = ()) -> None:
        """Have a compiled grammar (`grammar_engines.EAGER` or ``LAZY``) that has read nothing but some texts."""
        self._call("prepare", how, warm)

    def replay(self, number: int) -> Replay:
        """Read a text."""
        replay: Replay = self._call("replay", number)
        return replay

    def _call(self, name: str, *arguments: Any) -> Any:
        self._connection.send((name, arguments))
        return self._answer()

    def _answer(self) -> Any:
        try:
            answer = self._connection.recv()
        except EOFError:
            self._process.join()
            answer = RuntimeError(f"{self._setup.engine} ended: exit status {self._process.exitcode}")
        if isinstance(answer, Exception):
            raise answer
        return answer


# -- in the process of its own -------------------------------------------------------------------------


def serve(connection: Connection, setup: Setup) -> None:
    """Answer every call with what the method returns or raises."""
    try:
        bench = _bench(setup)
        connection.send(None)
    except Exception as error:
        connection.send(error)
        return
    gc.disable()  # a collection in the middle of a step would be charged to whoever is measured
    gc.freeze()
    while True:
        try:
            name, arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send(getattr(bench, name)(*arguments))
        except Exception as error:
            connection.send(error)
        gc.collect()


def _bench(setup: Setup) -> Bench:
    vocabulary = vocabularies.read(setup.vocabulary)
    engine = grammar_engines.ENGINES[setup.engine][1](vocabulary, setup.tokenizer_json, setup.grammar)
    stopwatch = worker.Stopwatch(vocabulary.eos_ids, cpu_time=setup.cpu_time)
    return Bench(engine, np.zeros(vocabulary.words, np.int32), setup.texts, stopwatch)


class Bench:
    """An engine, the buffer that its masks go to, the texts, and the clock for its steps."""

    def __init__(
        self,
        engine: grammar_engines.GrammarEngine,
        bitmask: peers.Bitmask,
        texts: Sequence[Sequence[int]],
        stopwatch: worker.Stopwatch,
    ) -> None:
        self._engine, self._bitmask, self._texts, self._stopwatch = engine, bitmask, texts, stopwatch
        self._compiled: Any = None

    def prepare(self, how: str, warm: Sequence[int]) -> None:
        """See `Worker.prepare`."""
        self._compiled = None
        self._compiled = self._engine.ready(how)
        for number in warm:
            self.replay(number)

    def replay(self, number: int) -> Replay:
        """Mask and advance for each token, until one is not in the mask or not taken."""
        stepper = self._engine.stepper(self._compiled, self._bitmask)
        taken, ends, times = self._stopwatch.replay(stepper, self._bitmask, self._texts[number])
        if not taken:
            return Replay(f"token {len(times) - 1}: {self._engine.trouble(stepper)}", times)
        return Replay("" if ends else "may not end here", times)
