"""`SuccessorDistances`: how far from the end each token leads, from one configuration of an automaton with a
stack."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..automaton.distances import NEVER
from ..core.interned_machine import Configuration
from ..core.machine import CompiledMachine
from ..rows.bitmask import ids_of
from ..rows.row_pool import RowPool
from .partial_masks import StateMasks
from .stacks import Fork, Frame, Stack, Stacks, Thread
from .tables import PushdownTables

#: Configurations for which this is remembered, a megabyte each at most with Llama-3's vocabulary.
_MOST_CONFIGS = 16

#: Threads that tokens may lead to: to begin with, and at most.
_FEW, _MANY = 1 << 12, 1 << 16

#: Stacks of a configuration that are walked one by one.
_MOST_STACKS = 64

#: Threads that a slice of a walk follows: a millisecond or two, about.
_THREADS = 1 << 15


class StackAutomaton(CompiledMachine, Protocol):
    """What distances need of a `structgen.runtime.pushdown.machine.PushdownMachine`."""

    tables: PushdownTables
    rows: StateMasks
    stacks: Stacks
    pool: RowPool

    def _move(self, state: int, byte: int) -> Any: ...

    def _make(
        self, record: tuple[int, ...] | None, sequence: tuple[int, ...], count: int, frame: Stack,
        found: dict[Thread, None],
    ) -> None: ...  # fmt: skip


class Measure(Protocol):
    """What tells the distance of threads."""

    def of_threads(self, threads: tuple[Thread, ...]) -> int:
        """The tokens that complete the text of some threads, the EOS token included."""

    def give_way(self) -> None:
        """Let others have their turn."""


class SuccessorDistances:
    """Walks the vocabulary's trie on real stacks, under the lock of the machine's rows, which is passed on.

    Parameters
    ----------
    machine, arena:
        The automaton, also in the form for kernels.
    """

    def __init__(self, machine: StackAutomaton, arena: NDArray[np.int32]) -> None:
        from ... import kernels

        self._kernels = kernels
        self._machine = machine
        self._arena = arena
        trie = machine.vocabulary.trie
        self._trie = (trie.byte, trie.depth, trie.skip, trie.first_token, trie.max_depth)
        self._tokens = trie.token_ids
        self._node_of = np.repeat(np.arange(len(trie.byte)), np.diff(trie.first_token))
        self._remembered: dict[Configuration[Thread], tuple[NDArray[np.int32], NDArray[np.int32]]] = {}

    def find(self, config: Configuration[Thread], distances: Measure) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The tokens that are allowed, without EOS ids, and the distance behind each: ``int32[allowed]``."""
        found = self._remembered.get(config)
        if found is None:
            by_node = np.full(len(self._trie[0]), NEVER, np.int32)
            stacks = [found for thread in config.threads for found in stacks_of(thread, _MOST_STACKS)]
            if len(stacks) <= _MOST_STACKS and all(self._walk(*each, distances, by_node) for each in stacks):
                of_tokens = by_node[self._node_of]
                there = of_tokens < NEVER
                found = self._tokens[there], of_tokens[there]
            else:
                found = self._one_by_one(config, distances)
            while len(self._remembered) >= _MOST_CONFIGS:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[config] = found
        return found

    def _walk(
        self, state: int, count: int, frames: list[Frame], distances: Measure, by_node: NDArray[np.int32]
    ) -> bool:
        """Note the distance behind each node where tokens end, if it is less than what is there.

        ``frames`` are the whole stack, topmost first. False where there is too much for the kernel.
        """
        if state < 0:
            return True
        config = np.array([state, count, *(x for f in frames for x in (f.state, f.count))], np.int64)
        belows: list[Stack] = [None]
        for frame in reversed(frames):
            belows.append(self._machine.stacks.push(frame.state, frame.count, belows[-1]))
        size, pairs = _FEW, -1
        while pairs < 0:
            if size > _MANY:
                return False
            keys, starts = np.full(4 * size, -1, np.int32), np.zeros(size + 2, np.int64)
            found = np.empty(16 * size, np.int64)
            nodes, numbers = np.empty((2, 8 * size + 2 * len(by_node)), np.int32)
            pairs = n = node = 0
            while pairs >= 0 and node < len(by_node):
                pairs, n, node = self._kernels.walk_reached(
                    *self._trie, self._arena, config, size, node, _THREADS, pairs, n, keys, starts, found, nodes,
                    numbers,
                )  # fmt: skip
                distances.give_way()
            size *= 16
        far = np.empty(n, np.int32)
        for k in range(n):
            distances.give_way()
            top, number, left, *above = found[starts[k] : starts[k + 1]].tolist()
            here = belows[left + 1]
            for j in range(len(above) - 2, -1, -2):
                here = self._machine.stacks.push(above[j], above[j + 1], here)
            far[k] = distances.of_threads(((top, number, here),))
        np.minimum.at(by_node, nodes[:pairs], far[numbers[:pairs]])
        return True

    def _one_by_one(
        self, config: Configuration[Thread], distances: Measure
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The same by following each token."""
        vocabulary = self._machine.vocabulary
        tokens = np.setdiff1d(ids_of(self._machine.row(config)), np.array(vocabulary.eos_ids, np.int64))
        far = []
        for token in tokens.tolist():
            target = self._machine.advance(config, token)
            if target is not None:
                far.append(distances.of_threads(target.threads))
            distances.give_way()
        return tokens.astype(np.int32), np.array(far, np.int32)


def stacks_of(thread: Thread, most: int) -> list[tuple[int, int, list[Frame]]]:
    """A thread's stacks, each as state, count and frames, topmost first; at least ``most + 1`` if there are more."""
    found: list[tuple[int, int, list[Frame]]] = []
    state, count, stack = thread
    todo: list[tuple[Stack, list[Frame]]] = [(stack, [])]
    while todo and len(found) <= most:
        here, frames = todo.pop()
        while here is not None and not isinstance(here, Fork):
            frames.append(here)
            here = here.below
        if here is None:
            found.append((state, count, frames))
        else:
            todo += ((member, frames[:]) for member in here.members)
    return found


def row_of(tokens: NDArray[np.int32], words: int) -> NDArray[np.int32]:
    """Tokens as a row: read-only ``int32[words]``."""
    from ... import kernels

    row = np.zeros(words, np.uint32)
    kernels.flip_ids(row, tokens)
    found = row.view(np.int32)
    found.flags.writeable = False
    return found
