"""Obligations: what earlier lexemes forbid the bytes to come, as sets of watched lexer states.

A lexeme that was taken for complete is watched as long as it could turn out longer. Several can be at once, and texts
could pile them up: behind each of five letters the first match of ``/[a-z]{11}|[a-z]/`` is open. Most are beside the
point. A state *subsumes* another one if it is beaten, or lapses, wherever the other one is; that is inclusion of two
deterministic automata, a search through pairs of states. Only what nothing else subsumes stays in a set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....system.memo import Memo
from ....system.types import Array
from ...core.lazy_table import LazyTable

#: Lexer states of earlier lexemes that must not be completed any more, ascending; nearly always none.
Watched: TypeAlias = tuple[int, ...]

#: Pairs of states that are looked at for one question, past which neither is left out.
_MOST_PAIRS = 1 << 12

#: Answers that are remembered, and sets that have numbers; past that these are forgotten.
_MOST_KNOWN, _MOST_SETS = 1 << 15, 1 << 12

#: Bytes of what is known of lexer states under obligations; past that it is found anew.
_MOST_BYTES = 16 << 20

#: Stands for an answer that is not known yet.
_UNKNOWN: Watched = (-1,)

#: Sets that are followed ahead of a walk that comes to them: 0.1 ms each, where to come back for one takes 20 µs.
_AHEAD = 4


class Obligations:
    """Sets of watched states of one lexer, and how bytes change them. Safe to use from several threads.

    Parameters
    ----------
    rows:
        By state and class of bytes: the lexer's next state, -1 for none.
    beats, lapses:
        By state, other than 0: whether a longer lexeme is complete there; whether one is owed if the text ends there.
    table:
        ``int32[states, classes]``, the rows of all states, where ``beats`` and ``lapses`` are ``uint8``, too: for
        kernels. None where states are made as they are come to.
    """

    def __init__(
        self, rows: LazyTable[list[int]], beats: Array, lapses: Array, table: NDArray[np.int32] | None = None
    ) -> None:
        self._rows = rows
        self._arrays = None if table is None else (table, beats, lapses)
        self._beats: list[int] = beats.tolist()
        self._lapses: list[int] = lapses.tolist()
        self._subsumed: Memo[tuple[int, int], bool] = Memo(_MOST_KNOWN)
        self._simple: Memo[Watched, Watched] = Memo(_MOST_KNOWN)
        self._after: Memo[tuple[Watched, int], Watched | None] = Memo(_MOST_KNOWN)
        #: By state: the classes of bytes that do not discharge it, as a set.
        self._kept = LazyTable(self._find_kept)

    def with_state(self, state: int, watched: Watched) -> Watched:
        """Obligations with a watched state added, -1 for none."""
        return self.simplified((*watched, state) if state >= 0 else watched)

    def after(self, watched: Watched, c: int) -> Watched | None:
        """The obligations behind a byte of a class; None where it violates one, completing a longer lexeme."""
        if not watched:
            return watched
        key = watched, c
        found = self._after.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            found = self._after[key] = self.left([self._rows[w][c] for w in watched])
        return found

    def left(self, states: Iterable[int]) -> Watched | None:
        """The obligations that remain of these states, -1 for discharged ones; None if one of them is violated."""
        left = {state for state in states if state >= 0}
        return None if any(self._beats[state] for state in left) else self.simplified(tuple(left))

    def simplified(self, states: tuple[int, ...], look: Callable[[], object] = bool) -> Watched:
        """The fewest of these states that forbid as much; of two equivalent ones the lower.

        Each is compared with each: where there are many, ``look`` sees to the time in between.
        """
        if len(states) < 2:
            return states
        key = tuple(sorted({*states}))
        known = self._simple.get(key)
        if known is None:
            left = list(key)
            for state in reversed(key):
                look()
                if any(other != state and self._subsumes(other, state) for other in left):
                    left.remove(state)
            known = self._simple[key] = tuple(left)
        return known

    def lapses(self, watched: Watched) -> bool:
        """Whether the end of the text would violate an obligation."""
        return any(self._lapses[w] for w in watched)

    def _subsumes(self, a: int, b: int) -> bool:
        """Whether obligation ``a`` forbids all that ``b`` forbids; False where that takes too long to tell."""
        known = self._subsumed.get((a, b))
        if known is None:
            # Mostly the first byte tells already: one that discharges what forbids more, and not what forbids less.
            is_open = not self._kept[b] & ~self._kept[a]
            known = self._subsumed[a, b] = is_open and self._find(a, b)
        return known

    def _find_kept(self, state: int) -> int:
        if self._arrays is None:
            return int.from_bytes(bytes(map((-1).__lt__, self._rows[state])), "little")
        return int.from_bytes((self._arrays[0][state] >= 0).tobytes(), "little")

    def _find(self, a: int, b: int) -> bool:
        if self._arrays is None or not _MOST_PAIRS:
            return bool(self._search(a, b, _MOST_PAIRS))
        pairs, slots = np.empty((_MOST_PAIRS + 1, 2), np.int32), np.zeros(4 * _MOST_PAIRS, np.int32)
        return bool(kernels.is_subsumed(*self._arrays, a, b, pairs, slots))

    def _search(self, a: int, b: int, most: int) -> bool | None:
        """Whether ``a`` subsumes ``b``; None where there are more pairs to look at."""
        rows, beats, lapses = self._rows, self._beats, self._lapses
        seen: set[tuple[int, int]] = set()  # without the first, which a byte may lead back to
        for here, there in (todo := [(a, b)]):  # grows as it goes
            if lapses[there] and not lapses[here]:
                return False
            for pair in {*zip(rows[here], rows[there], strict=True)} - seen:
                first, second = pair
                if second < 0 or (first >= 0 and beats[first]) or first == second:
                    continue
                if first < 0 or beats[second]:
                    return False
                if len(seen) >= most:
                    return None
                seen.add(pair)
                todo.append(pair)
        return True


class WatchedSets:
    """What is watched, as `structgen.kernels.walk_lexer` follows it: tables that grow with walks.

    Parameters
    ----------
    obligations, rows:
        The lexer.
    futures:
        What a lexeme can become in a state under obligations, as a set.
    states, classes:
        Their numbers.

    Attributes
    ----------
    table:
        ``int32[sets, classes]``; the row of a set of several states, by its number less that of the lexer's states,
        once it was followed.
    row_of, lives:
        By number of what is watched, and by that row and the lexer's state: whether a lexeme can become anything,
        once that was asked.
    """

    def __init__(
        self,
        obligations: Obligations,
        rows: LazyTable[list[int]],
        futures: Callable[[int, Watched], int],
        states: int,
        classes: int,
    ) -> None:
        self._obligations = obligations
        self._rows = rows
        self._futures = futures
        self._states = states
        self._classes = classes
        self._sets: list[Watched] = []
        self._number: dict[Watched, int] = {}
        self.table = np.zeros((0, classes), np.int32)
        self.row_of, self.lives = np.full(states, -1, np.int32), np.zeros((0, states), np.uint8)
        self._used = 0  # rows

    def __len__(self) -> int:
        """How many numbers there are, those of single states with them."""
        return self._states + len(self._sets)

    def is_full(self) -> bool:
        """Whether there are so many sets that it is time to begin anew; what walks hold stays right."""
        return len(self._sets) > _MOST_SETS

    def ask(self, state: int, number: int) -> None:
        """Find out whether a lexeme can become anything in a state while something is watched."""
        is_live = self._futures(state, self.watched(number))  # others may ask meanwhile, and rows be forgotten
        if self.row_of[number] < 0:
            if self._used == len(self.lives):
                self._make_room()
            self.row_of[number] = self._used
            self._used += 1
        self.lives[self.row_of[number], state] = kernels.LIVE if is_live else kernels.STUCK

    def _make_room(self) -> None:
        """Room for more rows; all are forgotten when they take too much."""
        if self.lives.nbytes < _MOST_BYTES:
            more = np.zeros((max(4, len(self.lives)), self._states), np.uint8)
            self.lives = np.concatenate([self.lives, more])
        else:
            self.row_of[:], self.lives[:], self._used = -1, 0, 0

    def number(self, watched: Watched) -> int:
        """The number of obligations: -1 for none, the state's for one, a set's for several."""
        if len(watched) < 2:
            return watched[0] if watched else -1
        known = self._number.get(watched)
        if known is None:
            known = self._number[watched] = self._states + len(self._sets)
            self._sets.append(watched)
            if len(self._sets) > len(self.table):
                more = np.full((max(1, len(self.table)), self._classes), kernels.NOT_FOLLOWED, np.int32)
                self.table = np.concatenate([self.table, more])
                self.row_of = np.concatenate([self.row_of, np.full(len(more), -1, np.int32)])
        return known

    def watched(self, number: int) -> Watched:
        """Obligations, by number."""
        if number < self._states:
            return (number,) if number >= 0 else ()
        return self._sets[number - self._states]

    def follow(self, number: int) -> None:
        """Have the row of a set at hand, and of others that it leads to."""
        todo = [number - self._states]
        most, seen = 1 + _AHEAD, set(todo)
        for each in todo:  # grows as it goes
            behind = list(zip(*(self._rows[state] for state in self._sets[each]), strict=True))  # by class
            after: dict[tuple[int, ...], int] = {}
            for states in dict.fromkeys(behind):
                left = self._obligations.left(states)
                after[states] = kernels.BEATEN if left is None else self.number(left)
            self.table[each] = [after[states] for states in behind]
            more = {number - self._states for number in after.values() if number >= self._states} - seen
            seen |= more
            todo += sorted(more)[: max(0, most - len(todo))]
