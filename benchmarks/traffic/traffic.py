"""Mixed traffic in one process: definitions opened and compiled, requests in flight over threads, batches, forks."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import structgen as sg

from .. import vocabularies
from .recorder import Lane, Recorder, resident

#: Rows of the batch that one thread serves.
_ROWS = 16

#: The share of requests for a definition that nobody asked for yet, as long as there is one; of steps that are the
#: last, for whoever asked has gone; and of those behind which the guide goes two ways.
_NEW, _CANCELLED, _FORKED = 0.25, 0.003, 0.003


@dataclass(frozen=True)
class Setup:
    """What is served.

    Parameters
    ----------
    vocabulary:
        The file that `vocabularies.load` wrote.
    cases:
        The name of each definition, its schema, and texts for it as token ids.
    cache:
        A folder that has some of them.
    threads, in_flight:
        Threads, and the guides that all of them move together.
    pause:
        Seconds that the model takes for a token, in which a thread sleeps.
    slow:
        Milliseconds of a moment that is recorded by itself.
    seed:
        Draws everything.
    """

    vocabulary: Path
    cases: Sequence[tuple[str, Any, Sequence[Sequence[int]]]]
    cache: Path
    threads: int
    in_flight: int
    pause: float
    slow: float
    seed: int


@dataclass
class _Request:
    name: str
    index: sg.Index
    guide: sg.Guide
    tokens: Sequence[int]
    at: int = 0

    def step(self, mask: NDArray[np.int32]) -> bool:
        """Write the mask, and append the next token; returns whether it was taken."""
        self.guide.fill_bitmask(mask)
        return self.guide.advance(self.tokens[self.at])


class Traffic:
    """A server, in a process of its own."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._vocabulary = vocabularies.read(setup.vocabulary)
        self._cache = sg.Cache(setup.cache)
        self._open: dict[int, sg.Index] = {}
        self._refused: set[int] = set()
        chance = random.Random(setup.seed)
        self._waiting = chance.sample(range(len(setup.cases)), len(setup.cases))
        self._lock = threading.Lock()

    def fill(self, cases: Sequence[int]) -> int:
        """Compile definitions into the cache, as was done before the server began; returns how many that were."""
        done = 0
        for number in cases:
            try:
                sg.compile(self._definition(number), self._vocabulary, cache=self._cache)
                done += 1
            except sg.Error:
                continue
        return done

    def serve(self, seconds: float) -> dict[str, Any]:
        """Serve requests for so long, and tell every kind of moment, the slow ones by name, and the memory."""
        setup = self._setup
        sg.Guide(sg.compile(sg.Regex("a"), self._vocabulary, eager=False)).bitmask()  # makes the trie
        before = resident()
        with Recorder(setup.slow, lambda: len(self._open)) as recorder:
            ends = time.monotonic() + seconds
            work: list[Callable[[Lane, random.Random, float], None]] = [self._guides] * max(setup.threads - 1, 1)
            threads = [
                threading.Thread(target=lambda each, n: each(recorder.lane(), random.Random(n), ends), args=(each, n))
                for n, each in enumerate([*work, self._batch], setup.seed)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        served = {"before": before, "after": resident(), "open": len(self._open), "refused": len(self._refused)}
        return recorder.result() | served

    def _definition(self, number: int) -> sg.JsonSchema:
        return sg.JsonSchema(self._setup.cases[number][1])

    # -- requests --------------------------------------------------------------------------------------

    def _chosen(self, chance: random.Random) -> int:
        """The number of a definition: a new one, or one that is open, the first ones more often."""
        with self._lock:
            if self._waiting and (not self._open or chance.random() < _NEW):
                return self._waiting.pop()
            numbers = list(self._open)
        return numbers[int(len(numbers) * chance.random() ** 2)]

    def _index(self, lane: Lane, number: int) -> sg.Index | None:
        """The index of a definition, opened or compiled lazily; None where it is refused."""
        index = self._open.get(number)
        if index is None and number not in self._refused:
            try:
                index = lane.time("open", self._setup.cases[number][0], 0, partial(self._compiled, number))
                self._open[number] = index
            except sg.Error:
                self._refused.add(number)
        return index

    def _compiled(self, number: int) -> sg.Index:
        return sg.compile(self._definition(number), self._vocabulary, eager=False, cache=self._cache)

    def _request(self, lane: Lane, chance: random.Random) -> _Request | None:
        number = self._chosen(chance)
        index = self._index(lane, number)
        name, _, texts = self._setup.cases[number]
        return None if index is None else _Request(name, index, sg.Guide(index), chance.choice(texts))

    def _guides(self, lane: Lane, chance: random.Random, ends: float) -> None:
        """Requests in flight, a step of each between two passes of the model."""
        setup = self._setup
        mask = np.zeros(self._vocabulary.words, np.int32)
        most = max(setup.in_flight // max(setup.threads - 1, 1), 1)
        flying: list[_Request] = []
        while time.monotonic() < ends:
            if len(flying) < most and (new := self._request(lane, chance)):
                flying.append(new)
            for each in flying[:]:
                going = lane.time("step", each.name, each.at, partial(each.step, mask), each.index)
                each.at += 1
                if not going or each.at == len(each.tokens) or chance.random() < _CANCELLED:
                    flying.remove(each)
                elif chance.random() < _FORKED:
                    fork = lane.time("fork", each.name, each.at, each.guide.fork)
                    flying.append(_Request(each.name, each.index, fork, each.tokens, each.at))
            time.sleep(setup.pause)

    def _batch(self, lane: Lane, chance: random.Random, ends: float) -> None:
        """A batch whose rows come and go."""
        batch = sg.GuideBatch(self._vocabulary, max_rollback=8)
        rows: list[_Request] = []
        masks = np.zeros((0, self._vocabulary.words), np.int32)
        while time.monotonic() < ends:
            if len(rows) < _ROWS and (new := self._request(lane, chance)):
                lane.time("batch, add", new.name, 0, partial(batch.add, new.index))
                rows.append(new)
            if len(masks) != len(rows):
                masks = np.zeros((len(rows), self._vocabulary.words), np.int32)
            if rows:
                tokens = [row.tokens[row.at] for row in rows]
                taken = lane.time("batch, step", f"{len(rows)} rows", 0, partial(_step, batch, tokens, masks))
                for row in rows:
                    row.at += 1
                gone = [
                    number
                    for number, row in enumerate(rows)
                    if not taken[number] or row.at == len(row.tokens) or chance.random() < _CANCELLED
                ]
                batch.remove(gone)
                rows = [row for number, row in enumerate(rows) if number not in gone]
            time.sleep(self._setup.pause)


def _step(batch: sg.GuideBatch, tokens: Sequence[int], masks: NDArray[np.int32]) -> list[bool]:
    """Write all masks, and append a token to each row; returns which were taken."""
    batch.fill_bitmask(masks)
    taken: list[bool] = batch.advance(tokens).tolist()
    return taken
