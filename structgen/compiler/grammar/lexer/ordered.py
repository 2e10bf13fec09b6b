"""What a regex matches at a place in a text, as Python's `re` has it: not all it could match, the match it prefers.

Lexers take the first match that backtracking finds. ``/\\*.*?\\*/`` ends at the first ``*/`` because it is lazy, and
``a|ab`` never takes the ``b``. So the automaton of a terminal keeps the threads of Thompson's simulation in order of
preference (Pike's, as in RE2 and Rust's regex-automata): when one of them has matched, those behind it are cut off,
since nothing they come to could be preferred; those ahead of it go on, and may yet replace the match by a longer one.
A state of the automaton is such a list. It *accepts* where the list ends in a match.

Look-behind is decided by automata that run along. A look-ahead becomes an obligation of the thread that made it, an
automaton over the bytes to come. A match that still owes something is none yet: it stays in the list, *pending*,
until what it owes is paid, which cuts off what is behind it, or cannot be paid any more. See
`structgen.compiler.grammar.lexer.leftmost_dfa` for what becomes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....budget import Meter
from ....system.types import Array
from ...automata.dfa import Dfa, minimize, runs_begin, trim
from .leftmost_dfa import LeftmostDfa, minimal
from .look_arounds import Owed
from .program import LexerProgram

#: What the meter is told, and steps of the kernel between two looks at it.
_DOING, _STEPS = "determinising a terminal", 1 << 20

#: Next states by byte, whether each accepts, and the states to begin in, -1 for none.
_Behinds: TypeAlias = tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]


def preferred(made: LexerProgram, meter: Meter) -> list[LeftmostDfa]:
    """The minimal automata of the matches that some regexes prefer. Raises `BudgetExceededError`."""
    found = _Determinizer(made, meter)
    return [found.automaton(regex) for regex in range(len(made.starts) - 1)]


class _Determinizer:
    """The subset construction over lists; see `structgen.kernels.grammar.ordered_subsets` for all arrays."""

    def __init__(self, made: LexerProgram, meter: Meter) -> None:
        self._made, self._meter = made, meter
        states = made.starts[-1]
        empty, edges = _by_source(made.empty, 3), _by_source(made.edges, 4)
        turns, turned = np.zeros(states, np.int32), np.full(states, -1, np.int32)
        turns[made.turns] = 1
        turned[[*made.turned]] = [*made.turned.values()]
        self._edge_first, self._low, self._high = _firsts(edges[0], states), edges[1], edges[2]
        self._program = _firsts(empty[0], states), *empty[1:], self._edge_first, *edges[1:], turns, turned
        number: dict[tuple[int, bool], int] = {}
        aheads: list[tuple[Dfa, bool]] = []
        ahead, place = [], []
        for first, last in pairwise(made.first_look):
            behind = 0
            for look, dfa in made.looks[first:last]:
                key = id(dfa), look.negate  # automata are kept, so that this is one of them
                if not look.behind and key not in number:
                    number[key] = len(aheads)
                    aheads.append((dfa, look.negate))
                ahead.append(-1 if look.behind else number[key])
                place.append(behind)
                behind += look.behind
        negate = np.array([look.negate for look, _ in made.looks], np.uint8)
        self._looks = np.array(ahead, np.int32), np.array(place, np.int32), negate
        self._owed = Owed(aheads)
        self._at = np.zeros(kernels.ORDERED_COUNTS, np.int64)
        self._table = np.empty(1 << 12, np.int32)
        self._items, self._first = np.empty(1 << 10, np.int32), np.zeros(129, np.int32)
        self._slots = np.full(256, -1, np.int32)
        self._end_first, self._watching = np.zeros(129, np.int32), np.empty(128, np.int32)
        self._flags = np.empty((128, 3), np.uint8)
        self._threads = [np.empty((size, width), np.int32) for size, width in ((64, 3), (64, 3), (256, 4), (256, 3))]
        self._row = np.empty(256, np.int32)
        self._marks = np.zeros(states, np.int64), np.empty(states, np.int32)

    def automaton(self, regex: int) -> LeftmostDfa:
        """The minimal automaton of one of the regexes."""
        first, last = self._made.first_look[regex : regex + 2]
        looks = self._made.looks[first:last]
        letters = self._letters(regex, [dfa for _, dfa in looks])
        behinds = _behinds([dfa for look, dfa in looks if look.behind])
        while len(self._row) < 4 * (1 + len(behinds[-1])):
            self._row = _doubled(self._row)
        self._at[: kernels.OWED - 1] = 0
        self._slots[:] = -1
        while True:
            owed = self._owed
            seeds, before, stack, seen = self._threads
            status = kernels.ordered_subsets(
                *self._program, *self._looks, owed.paid, owed.begun, owed.kept, *behinds, self._made.starts[regex],
                letters, _STEPS, self._at, self._table, self._items, self._first, self._slots, self._end_first,
                self._watching, self._flags, seeds, before, stack, self._row, seen, *self._marks,
            )  # fmt: skip
            self._meter.check_states(int(self._at[0]), _DOING)
            if status == kernels.OK:
                return self._minimal(letters)
            if status == kernels.ASKS:
                owed.ask(*self._at[kernels.OWED :].tolist())
            elif status == kernels.NO_ROOM:
                self._grow(len(letters))

    def _letters(self, regex: int, looks: list[Dfa]) -> NDArray[np.uint8]:
        """A byte of each class of bytes that a regex and its look-arounds do not tell apart."""
        begins = np.zeros(257, np.bool_)
        begins[0] = True
        first, last = self._edge_first[self._made.starts[regex : regex + 2]]
        begins[self._low[first:last]] = True
        begins[self._high[first:last] + 1] = True
        for dfa in looks:
            begins[:256] |= runs_begin(dfa.classes[:256])
        return np.flatnonzero(begins[:256]).astype(np.uint8)

    def _grow(self, classes: int) -> None:
        """Make twice as long what is full, or else what a single state takes."""
        states, items, ends, state = self._at[:4].tolist()
        held = sum(each.nbytes for each in (self._table, self._items, self._watching, self._row, *self._threads))
        self._meter.check_memory(2 * held + self._owed.nbytes + 40 * len(self._flags), _DOING)
        is_done = True
        if states + 2 > len(self._first) or state == len(self._flags):
            self._first, self._flags = _doubled(self._first), _doubled(self._flags)
            self._end_first = _doubled(self._end_first)
        elif (state + 1) * classes > len(self._table):
            self._table = _doubled(self._table)
        elif 2 * states + 2 > len(self._slots):
            self._slots = np.full(2 * len(self._slots), -1, np.int32)
            self._at[kernels.IS_NEW] = True
        else:
            is_done = False
        if 2 * items > len(self._items) or not is_done:
            self._items = _doubled(self._items)
        if 2 * ends > len(self._watching) or not is_done:
            self._watching = _doubled(self._watching)
        if not is_done:
            self._threads, self._row = [*map(_doubled, self._threads)], _doubled(self._row)

    def _minimal(self, letters: NDArray[np.uint8]) -> LeftmostDfa:
        states = int(self._at[0])
        table = self._table[: states * len(letters)].reshape(states, len(letters))
        begins = runs_begin(table)
        class_of = np.zeros(256, np.uint8)
        class_of[letters] = begins
        class_of = (np.cumsum(class_of) - 1).astype(np.uint8)
        table, flags = np.ascontiguousarray(table[:, begins]), self._flags[:states].astype(np.bool_)
        first = self._end_first[: states + 1]
        watching = self._watching[: first[-1]]
        counts = np.diff(first)
        is_plain = (counts < 2).all() and (watching == np.flatnonzero(counts)).all()
        if is_plain and (flags[:, 0] == (counts > 0)).all():
            none = np.zeros((0, 5), np.int32), np.zeros((0, 2), np.int64)
            plain = Dfa(table, class_of.astype(np.int32), (counts > 0).astype(np.uint8), *none, 0)
            return LeftmostDfa.of(minimize(trim(plain), self._meter))
        watches = watching.tolist()
        ends = [tuple(watches[begin:end]) for begin, end in pairwise(first.tolist())]
        return minimal(LeftmostDfa(class_of, table, ends, *flags.T), self._meter)


def _behinds(automata: list[Dfa]) -> _Behinds:
    tables, accepting, starts, states = [np.zeros((0, 256), np.int32)], [np.zeros(0, np.uint8)], [], 0
    for dfa in automata:
        table = dfa.table[:, dfa.classes[:256]]
        tables.append(np.where(table >= 0, table + np.int32(states), np.int32(-1)))
        accepting.append(dfa.accepting.astype(np.uint8))
        starts.append(states + dfa.start if dfa.states else -1)
        states += dfa.states
    return np.concatenate(tables), np.concatenate(accepting), np.array(starts, np.int32)


def _by_source(moves: Sequence[tuple[int, ...]], width: int) -> list[NDArray[np.int32]]:
    """Moves by column, those of a state in a row and in the order that they had."""
    array = np.array(moves, np.int32).reshape(-1, width)
    return [*np.ascontiguousarray(array[np.argsort(array[:, 0], kind="stable")].T)]


def _firsts(sources: NDArray[np.int32], states: int) -> NDArray[np.int32]:
    """By state: its first move; and how many there are."""
    return np.searchsorted(sources, np.arange(states + 1)).astype(np.int32)


def _doubled(array: Array) -> Array:
    return np.concatenate([array, np.empty_like(array)])
