"""One engine with one grammar in a process of its own, which replays the texts that it is told to.

The parent lets the engines take turns text by text, so that all see the same load on the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import structgen as sg

from .. import vocabularies, worker
from . import engines


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a process needs to know.

    Parameters
    ----------
    engine:
        A key of `engines.ENGINES`.
    vocabulary:
        The file that `vocabularies.load` wrote.
    tokenizer_json:
        The tokenizer's own file, or None.
    grammar:
        What to compile.
    texts:
        The texts, in token ids.
    cpu_time:
        See `worker.Stopwatch`.
    """

    engine: str
    vocabulary: Path
    tokenizer_json: Path | None
    grammar: sg.Grammar
    texts: Sequence[Sequence[int]]
    cpu_time: bool = False


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


class Bench:
    """An engine, the buffer that its masks go to, the texts, and the clock for its steps.

    Raises `benchmarks.engines.RefusedError`.
    """

    def __init__(self, setup: Setup) -> None:
        vocabulary = vocabularies.read(setup.vocabulary)
        self._engine = engines.ENGINES[setup.engine][1](vocabulary, setup.tokenizer_json, setup.grammar)
        self._stopwatch = worker.Stopwatch(vocabulary.eos_ids, cpu_time=setup.cpu_time)
        self._bitmask, self._texts = np.zeros(vocabulary.words, np.int32), setup.texts
        self._compiled: Any = None

    def prepare(self, how: str, warm: Sequence[int] = ()) -> None:
        """Have a compiled grammar (`engines.EAGER` or ``LAZY``) that has read nothing but some texts."""
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
