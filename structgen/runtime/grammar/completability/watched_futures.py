"""What lexemes can become under obligations, as long as none is violated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....system.locks import Lock, Rank
from ....system.memo import Memo
from ....system.properties import cached_property
from ...core.bitsets import sets_of, words_of
from ...core.digraph import solve
from .obligations import Watched

if TYPE_CHECKING:
    from ..tables import GrammarTables

#: Answers that are remembered, where several states are watched.
_MOST_ANSWERS = 1 << 16

#: Lexer states whose live classes are remembered, some kilobyte each.
_MOST_STATES = 1 << 12

#: Lexer states with a watched one each that are followed at once, some ten milliseconds, and that are remembered.
_MOST_PAIRS, _MOST_KNOWN = 1 << 14, 1 << 19

#: Lexer states with obligations; for each the numbers of others that a byte leads to; and lexer states that one leads
#: to without obligations.
_Positions: TypeAlias = tuple[list[tuple[int, Watched]], list[list[int]], list[list[int]]]


class WatchedFutures:
    """What lexemes can become under obligations. Safe to use from several threads.

    Parameters
    ----------
    tables:
        The lexer.
    future:
        By lexer state: what a lexeme can become there without obligations, as a set.
    own:
        What ends right in a state, under obligations.
    check:
        Called with the number of states that are looked at together; may raise.
    """

    def __init__(
        self,
        tables: GrammarTables,
        future: Callable[[int], int],
        own: Callable[[int, Watched], int],
        check: Callable[[int], object] | None = None,
    ) -> None:
        self._future = future
        self._own = own
        self._check = check
        self._tables = tables
        self._rows = tables.rows
        self._obligations = tables.obligations
        self._known: Memo[tuple[int, Watched], int] = Memo(_MOST_ANSWERS)
        #: By lexer state: the items of a row at the classes of bytes that lexemes go on with.
        self._at_live: Memo[int, Callable[[list[int]], tuple[int, ...]]] = Memo(_MOST_STATES)
        self._pairs = _KnownPairs(1 << 10)
        self._lock = Lock(Rank.LEAF)

    def __call__(self, state: int, watched: Watched) -> int:
        """What a lexeme can become without violating obligations."""
        if not watched:
            return self._future(state)
        found = self._known.get((state, watched))
        if found is None and len(watched) == 1:
            found = self._known_pair(state, watched[0])
            if found is None:
                found = self._follow_pairs(state, watched[0])
            if found is not None:
                self._known[state, watched] = found
        return self._follow((state, watched)) if found is None else found

    def _known_pair(self, state: int, watch: int) -> int | None:
        with self._lock:
            return self._pairs.find(state, watch)

    def _follow_pairs(self, state: int, watch: int) -> int | None:
        """Work it out for all pairs that a lexeme and what is watched come to; None where these are too many."""
        tables, states = self._tables, len(self._tables.table)
        pairs, begins = np.empty((_MOST_PAIRS, 2), np.int32), np.empty(_MOST_PAIRS + 1, np.int32)
        moves, slots = np.empty(8 * _MOST_PAIRS, np.int32), np.zeros(2 * _MOST_PAIRS, np.int32)
        with self._lock:
            known, sets = self._pairs, len(self._pairs.sets)
            seen = np.zeros(states + sets + _MOST_PAIRS, np.int32)
            n = kernels.follow_watched(
                tables.table, tables.beats, state, watch, known.keys, known.numbers, pairs, slots, seen, begins, moves
            )
        if n < 0:
            return None
        if self._check is not None:
            self._check(n)
        interned: dict[int, int] = {}
        own, ends = np.full(n, -1, np.int32), np.flatnonzero(self._has_ends[pairs[:n, 0]])
        for number, (at, watching) in zip(ends.tolist(), pairs[ends].tolist(), strict=True):
            own[number] = interned.setdefault(self._own(at, (watching,)), len(interned))
        moves, set_of = moves[: begins[n]], np.zeros(states + sets, np.int32)
        for code in np.unique(moves[moves < 0]).tolist():
            each = known.sets[-1 - code - states] if -1 - code >= states else self._future(-1 - code)
            set_of[-1 - code] = interned.setdefault(each, len(interned))
        words = words_of([*interned, 0], max(1, *(each.bit_length() for each in interned), 1))
        values, found = np.empty((n, words.shape[1]), np.uint32), np.empty((2, n), np.int32)
        slots[:] = 0
        different = kernels.solve_watched(
            begins, moves, own, set_of, words, np.zeros((4, n), np.int32), slots, values, found[0], found[1]
        )
        results: list[int] = sets_of(values[found[1, :different]])
        with self._lock:
            if self._pairs.count + n > _MOST_KNOWN:
                self._pairs = _KnownPairs(1 << 10)
            self._pairs = self._pairs.with_room(n)
            self._pairs.keep(pairs, n, results, found[0])
        return results[int(found[0, 0])]

    @cached_property
    def _has_ends(self) -> NDArray[np.bool_]:
        """By lexer state, whether a lexeme can be complete there."""
        found = np.zeros(len(self._tables.table), np.bool_)
        found[self._tables.ends[:, 0]] = True
        return found

    def _follow(self, start: tuple[int, Watched]) -> int:
        """Work it out for all that a lexeme and its obligations come to together."""
        todo, related, free = self._positions(start)
        values: list[int] = []
        for number, position in enumerate(todo):
            value = self._known.get(position)
            if value is None:
                value = self._own(*position)
                for state in free[number]:
                    value |= self._future(state)
            else:
                related[number] = []
            values.append(value)
        solve(values, related, self._check and partial(self._check, len(todo)))
        for position, value in zip(todo, values, strict=True):
            self._known[position] = value
        return values[0]

    def _positions(self, start: tuple[int, Watched]) -> _Positions:
        """All that a lexeme and its obligations come to together; what is known goes no further."""
        obligations = self._obligations
        number, todo = {start: 0}, [start]
        related: list[list[int]] = []
        free: list[list[int]] = []
        for state, watched in todo:  # grows as it goes
            if self._check is not None:
                self._check(len(todo))
            after: dict[tuple[int, Watched], None] = {}
            is_known = (state, watched) in self._known
            moves = () if is_known else self._moves(state, watched)
            free.append([])
            for target, *others in moves:
                left = obligations.left(others)
                if left:
                    after[target, left] = None
                elif left is not None:
                    free[-1].append(target)
            for position in after:
                if position not in number:
                    number[position] = len(todo)
                    todo.append(position)
            related.append([number[position] for position in after])
        return todo, related, free

    def _moves(self, state: int, watched: Watched) -> Iterable[tuple[int, ...]]:
        """Where bytes that lexemes go on with lead to: the next states of these, and of what is watched."""
        table, at_live = self._rows, self._at_live.get(state)
        if at_live is None:
            live = np.flatnonzero(self._tables.table[state] >= 0).tolist()
            if not live:
                return ()
            # The last one twice: an item alone would be no tuple.
            at_live = self._at_live[state] = itemgetter(*live, live[-1])
        return {*zip(at_live(table[state]), *(at_live(table[each]) for each in watched), strict=True)}


class _KnownPairs:
    """What lexemes can become in lexer states with a watched one each, for `structgen.kernels.follow_watched`.

    A table is replaced by a larger one, so that what was read of it before stays right.

    Parameters
    ----------
    size:
        Slots, a power of 2.
    sets, number_of:
        The different sets, and the number of each.
    """

    def __init__(self, size: int, sets: list[int] | None = None, number_of: dict[int, int] | None = None) -> None:
        self.keys, self.numbers = np.zeros(size, np.int64), np.zeros(size, np.int32)
        self.sets: list[int] = [] if sets is None else sets
        self._number_of: dict[int, int] = {} if number_of is None else number_of
        self.count = 0

    def with_room(self, more: int) -> _KnownPairs:
        """These, with room for more pairs."""
        size = len(self.keys)
        while size < 2 * (self.count + more):
            size *= 2
        if size == len(self.keys):
            return self
        wider = _KnownPairs(size, self.sets, self._number_of)
        used = np.flatnonzero(self.keys)
        keys = self.keys[used] - 1
        pairs = np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1).astype(np.int32)
        kernels.keep_watched(wider.keys, wider.numbers, pairs, len(used), self.numbers[used])
        wider.count = self.count
        return wider

    def keep(self, pairs: NDArray[np.int32], count: int, sets: list[int], which: NDArray[np.int32]) -> None:
        """Enter pairs, with which of some sets each has."""
        numbers = []
        for each in sets:
            numbers.append(self._number_of.setdefault(each, len(self.sets)))
            if numbers[-1] == len(self.sets):
                self.sets.append(each)
        kernels.keep_watched(self.keys, self.numbers, pairs, count, np.array(numbers, np.int32)[which])
        self.count += count

    def find(self, state: int, watch: int) -> int | None:
        """What is known of a pair."""
        number = int(kernels.find_watched(self.keys, self.numbers, state, watch))
        return None if number < 0 else self.sets[number]
