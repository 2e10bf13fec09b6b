"""`Reached`: how far from the end each token leads, from one configuration of an automaton with a stack."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .automaton_distances import NEVER

if TYPE_CHECKING:
    from .pushdown import Frame, PushdownMachine, Thread
    from .stack_distances import StackDistances

#: Configurations for which this is remembered, half a megabyte each with Llama-3's vocabulary.
_MOST_CONFIGS = 16


class Reached:
    """Walks the vocabulary's trie on real stacks.

    Parameters
    ----------
    machine, arena:
        The automaton, also in the form for kernels.
    """

    def __init__(self, machine: PushdownMachine, arena: NDArray[np.int32]) -> None:
        from .. import kernels

        self._kernels = kernels
        self._machine = machine
        self._arena = arena
        trie = machine.vocabulary.trie
        self._trie = (trie.byte, trie.depth, trie.skip, trie.first_token, trie.max_depth)
        self._tokens = trie.token_ids
        self._node_of = np.repeat(np.arange(len(trie.byte)), np.diff(trie.first_token))
        self._remembered: dict[Any, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}
        self._lock = threading.Lock()

    def find(self, config: Any, distances: StackDistances) -> NDArray[np.int32]:
        """The distances that the allowed tokens lead to, ``int32[allowed]``; in the order of `tokens`."""
        return self._find(config, distances)[1]

    def row(self, config: Any, distances: StackDistances, most: int) -> NDArray[np.int32]:
        """The tokens that lead to a distance of at most ``most``; read-only ``int32[words]``."""
        tokens, far = self._find(config, distances)
        row = np.zeros(self._machine.vocabulary.words, np.uint32)
        self._kernels.flip_ids(row, tokens[far <= most])
        found = row.view(np.int32)
        found.flags.writeable = False
        return found

    def _find(self, config: Any, distances: StackDistances) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The allowed tokens, and the distance behind each."""
        found = self._remembered.get(config)
        if found is None:
            with self._lock:
                by_node = np.full(len(self._trie[0]), NEVER, np.int32)
                for thread in config.threads:
                    self._walk(thread, distances, by_node)
                of_tokens = by_node[self._node_of]
                there = of_tokens < NEVER
                found = self._tokens[there], of_tokens[there]
                while len(self._remembered) >= _MOST_CONFIGS:
                    del self._remembered[next(iter(self._remembered))]
                self._remembered[config] = found
        return found

    def _walk(self, thread: Thread, distances: StackDistances, by_node: NDArray[np.int32]) -> None:
        """Note the distance behind each node where tokens end, if it is less than what is there."""
        state, count, frame = thread
        if state < 0:
            return
        frames: list[Frame] = []
        while frame is not None:
            frames.append(frame)
            frame = frame.below
        config = np.array([state, count, *(x for f in frames for x in (f.state, f.count))], np.int64)
        frames.reverse()
        size = 1 << 12
        while True:
            slots, starts = np.full(4 * size, -1, np.int32), np.zeros(size + 2, np.int64)
            found = np.empty(16 * size, np.int64)
            nodes, numbers = np.empty((2, 8 * size + 2 * len(by_node)), np.int32)
            pairs, n = self._kernels.walk_reached(
                *self._trie, self._arena, config, slots, starts, found, nodes, numbers
            )
            if pairs >= 0:
                break
            if size >= 1 << 20:
                raise AssertionError
            size *= 16
        far = np.empty(n, np.int32)
        for k in range(n):
            top, number, left, *above = found[starts[k] : starts[k + 1]].tolist()
            here = frames[left] if left >= 0 else None
            for j in range(len(above) - 2, -1, -2):
                here = self._machine._push(above[j], above[j + 1], here)
            far[k] = distances.of_threads(((top, number, here),))
        np.minimum.at(by_node, nodes[:pairs], far[numbers[:pairs]])
