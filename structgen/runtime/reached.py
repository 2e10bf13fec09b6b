"""`Reached`: how far from the end each token leads, from one configuration of an automaton with a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .automaton_distances import NEVER
from .bitmask import ids_of

if TYPE_CHECKING:
    from .pushdown import Frame, PushdownMachine, Thread
    from .stack_distances import StackDistances

#: Configurations for which this is remembered, a megabyte each at most with Llama-3's vocabulary.
_MOST_CONFIGS = 16

#: Threads that tokens may lead to: to begin with, and at most.
_FEW, _MANY = 1 << 12, 1 << 16


class Reached:
    """Walks the vocabulary's trie on real stacks. Not for several threads of the process at once.

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

    def find(self, config: Any, distances: StackDistances) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The tokens that are allowed, without EOS ids, and the distance behind each: ``int32[allowed]``."""
        found = self._remembered.get(config)
        if found is None:
            by_node = np.full(len(self._trie[0]), NEVER, np.int32)
            if all(self._walk(thread, distances, by_node) for thread in config.threads):
                of_tokens = by_node[self._node_of]
                there = of_tokens < NEVER
                found = self._tokens[there], of_tokens[there]
            else:
                found = self._one_by_one(config, distances)
            while len(self._remembered) >= _MOST_CONFIGS:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[config] = found
        return found

    def _walk(self, thread: Thread, distances: StackDistances, by_node: NDArray[np.int32]) -> bool:
        """Note the distance behind each node where tokens end, if it is less than what is there.

        False where there is too much for the kernel.
        """
        state, count, frame = thread
        if state < 0:
            return True
        frames: list[Frame] = []
        while frame is not None:
            frames.append(frame)
            frame = frame.below
        config = np.array([state, count, *(x for f in frames for x in (f.state, f.count))], np.int64)
        frames.reverse()
        size, pairs = _FEW, -1
        while pairs < 0:
            if size > _MANY:
                return False
            slots, starts = np.full(4 * size, -1, np.int32), np.zeros(size + 2, np.int64)
            found = np.empty(16 * size, np.int64)
            nodes, numbers = np.empty((2, 8 * size + 2 * len(by_node)), np.int32)
            pairs, n = self._kernels.walk_reached(
                *self._trie, self._arena, config, slots, starts, found, nodes, numbers
            )
            size *= 16
        far = np.empty(n, np.int32)
        for k in range(n):
            top, number, left, *above = found[starts[k] : starts[k + 1]].tolist()
            here = frames[left] if left >= 0 else None
            for j in range(len(above) - 2, -1, -2):
                here = self._machine._push(above[j], above[j + 1], here)
            far[k] = distances.of_threads(((top, number, here),))
        np.minimum.at(by_node, nodes[:pairs], far[numbers[:pairs]])
        return True

    def _one_by_one(self, config: Any, distances: StackDistances) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The same by following each token."""
        vocabulary = self._machine.vocabulary
        tokens = np.setdiff1d(ids_of(self._machine.row(config)), np.array(vocabulary.eos_ids, np.int64))
        targets = (self._machine.advance(config, token) for token in tokens.tolist())
        far = [distances.of_threads(target.threads) for target in targets if target is not None]
        return tokens.astype(np.int32), np.array(far, np.int32)


def row_of(tokens: NDArray[np.int32], words: int) -> NDArray[np.int32]:
    """Tokens as a row: read-only ``int32[words]``."""
    from .. import kernels

    row = np.zeros(words, np.uint32)
    kernels.flip_ids(row, tokens)
    found = row.view(np.int32)
    found.flags.writeable = False
    return found
