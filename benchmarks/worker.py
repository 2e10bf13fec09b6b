"""What the processes have in common in which engines are measured (`grammar_worker`, `maskbench_worker`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from . import peers, trial

Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a process needs to know.

    Parameters
    ----------
    engine:
        The key of an engine.
    vocabulary:
        The file that `vocabularies.load` wrote.
    cpu_time:
        Whether a step's time is what its thread spent on a processor, instead of what passed.
    """

    engine: str
    vocabulary: Path
    cpu_time: bool = False


class Stopwatch:
    """Replays texts and measures each step, with what reading the clock costs taken off."""

    def __init__(self, eos_ids: Sequence[int], *, cpu_time: bool) -> None:
        self._eos_ids = eos_ids
        self._clock: Callable[[], int] = time.thread_time_ns if cpu_time else time.perf_counter_ns
        self._overhead = round(trial.clock_overhead(self._clock))

    def replay(
        self, stepper: peers.Stepper, bitmask: peers.Bitmask, tokens: Sequence[int]
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
