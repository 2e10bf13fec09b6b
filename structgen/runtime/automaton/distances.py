"""Distances of byte automata to the end of a text, in tokens of a vocabulary: exact, counts included.

A walk of the vocabulary's trie from a state finds its *outcomes*: the states that tokens lead to, each once, and what
becomes of the count there. How a count matters depends on the bounds, so an outcome holds for an interval of counts,
and one walk does for all counts of a state. A breadth-first search then runs backwards from the complete texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import BudgetExceededError
from ...system.memo import Memo
from ...vocabulary.vocabulary import Vocabulary
from ..rows.bitmask import widened
from .tables import Tables

#: What is remembered by configuration, or by configuration and token.
MEMO_ENTRIES = 1 << 16

#: The distance of what no tokens complete.
NEVER = 1 << 30

#: Pairs of a state and a count that distances are kept for, four bytes each; and seconds for the walks.
_MOST_OFFSETS, _SECONDS = 1 << 25, 60.0


class AutomatonDistances:
    """Distances of one automaton; all of them are found at once.

    Parameters
    ----------
    tables, vocabulary:
        The automaton and the vocabulary.
    look_at:
        Called between walks with the bytes that were found; may raise.

    Raises
    ------
    BudgetExceededError
        Where there are too many counts, or the walks take longer than a minute.
    """

    def __init__(
        self, tables: Tables, vocabulary: Vocabulary, look_at: Callable[[int], object] = lambda _: None
    ) -> None:
        trie = vocabulary.trie
        self._words, self._row_words = vocabulary.words, vocabulary.row_words
        self._n = tables.states
        classes = tables.classes()
        table = tables.dense(classes)
        self._trie = trie
        # Copies: a kernel is compiled again for arrays that cannot be written, as those of files are.
        self._automaton = (
            table.reshape(-1), classes, table.shape[1],
            np.array(tables.records), np.array(tables.loops), np.array(tables.live),
        )  # fmt: skip
        counts = np.append(tables.loops[:, 1], 0)[tables.live].astype(np.int64) + 1
        self._offsets = np.concatenate([[0], np.cumsum(counts)])
        if self._offsets[-1] > _MOST_OFFSETS:
            raise BudgetExceededError(
                f"max_tokens needs {self._offsets[-1]:,} distances, one a count, {_MOST_OFFSETS:,} are possible",
                remedy="Use smaller bounds in counted repeats.",
            )
        self._outcomes, self._begins = self._find_outcomes(counts, look_at)
        self._distances = self._search(tables.accepting, counts, int(bool(vocabulary.eos_ids)))
        self._start_of = self._offsets.tolist()
        self._farthest: Memo[int, int] = Memo(MEMO_ENTRIES)
        #: The largest distance of all that tokens lead to.
        self._most = self._largest()

    def _find_outcomes(
        self, counts: NDArray[np.int64], look_at: Callable[[int], object]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The outcomes of all states, ``int64[*, 4]``, and where those of each begin."""
        trie, found, held = self._trie, [], 0
        deadline = time.monotonic() + _SECONDS
        size = 1 << 10
        for state, most in enumerate((counts - 1).tolist()):
            if time.monotonic() > deadline:
                raise BudgetExceededError(
                    f"the distances that max_tokens needs take longer than {_SECONDS:g} seconds",
                    remedy="Simplify the definition, or leave max_tokens out.",
                )
            while True:
                outcomes, slots = np.empty((size, 4), np.int64), np.full(4 * size, -1, np.int32)
                n = kernels.walk_outcomes(
                    trie.byte, trie.depth, trie.skip, trie.first_token, *self._automaton, state, 0, most,
                    np.empty(trie.max_depth + 2, np.int64), np.empty((4 * size, 4), np.int64), slots, outcomes,
                )  # fmt: skip
                if n >= 0:
                    break
                size *= 4
            found.append(outcomes[:n].copy())
            held += found[-1].nbytes
            look_at(2 * held)
        lengths = [len(each) for each in found]
        return np.concatenate(found), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def _search(self, accepting: NDArray[np.uint8], counts: NDArray[np.int64], end: int) -> NDArray[np.int32]:
        distances = np.full(int(self._offsets[-1]), -1, np.int32)
        of = np.repeat(np.arange(self._n, dtype=np.int32), counts)
        done = np.flatnonzero(accepting[of])
        distances[done] = end
        states, queued = np.empty(len(of), np.int32), np.empty(len(of), np.int32)
        states[: len(done)], queued[: len(done)] = of[done], done - self._offsets[of[done]]
        sources = np.repeat(np.arange(self._n, dtype=np.int32), np.diff(self._begins))
        order = np.argsort(self._outcomes[:, 0], kind="stable")
        begins = np.searchsorted(self._outcomes[order, 0], np.arange(self._n + 1)).astype(np.int64)
        kernels.count_back(
            begins, sources[order], self._outcomes[order], self._offsets, self._automaton[-1], distances, states,
            queued, len(done),
        )  # fmt: skip
        return distances

    def _largest(self) -> int:
        """Of all outcomes. (What has no distance is never come to: vocabularies that get stuck are refused.)"""
        highest = np.maximum.reduceat(self._distances, self._offsets[:-1])
        return int(highest[self._outcomes[:, 0]].max(initial=0))

    def distance(self, config: int) -> int:
        """How many tokens complete a text, the EOS token included."""
        count, state = divmod(config, self._n)
        begin, end = self._start_of[state], self._start_of[state + 1]
        found = int(self._distances[min(begin + count, end - 1)])
        return found if found >= 0 else NEVER

    def farthest(self, config: int) -> int:
        """The largest distance that a single token leads to; 0 where there is none."""
        found = self._farthest.get(config)
        if found is None:
            count, state = divmod(config, self._n)
            count = min(count, self._start_of[state + 1] - self._start_of[state] - 1)
            found = 0
            for target, low, high, add in self._outcomes[self._begins[state] : self._begins[state + 1]].tolist():
                if low <= count <= high:
                    new = add - kernels.FIXED if add >= kernels.FIXED else count + add
                    new = new if self._automaton[-1][target] >= 0 else 0
                    found = max(found, self.distance(target + self._n * new))
            self._farthest[config] = found
        return found

    def near(self, config: int, left: int) -> int:
        """A number of tokens left above which every token leaves enough of them to complete the text."""
        return self._most

    def row(self, config: int, most: int) -> NDArray[np.int32]:
        """The tokens that lead to a distance of at most ``most``, without EOS ids; read-only ``int32[words]``."""
        count, state = divmod(config, self._n)
        row, trie = np.zeros(self._row_words + 1, np.uint32), self._trie  # the last word takes the spare bit
        kernels.walk_within(
            trie.byte, trie.depth, trie.skip, trie.token, trie.twins, *self._automaton, state, count, self._offsets,
            self._distances, most, *np.empty((2, trie.max_depth + 1), np.int64), row,
        )  # fmt: skip
        found = widened(row[:-1].view(np.int32), self._words)
        found.flags.writeable = False
        return found
