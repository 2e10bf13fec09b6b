"""`LeftmostDfa`: the automaton of a terminal's matches, where a match may depend on what follows it.

A match that no look-ahead hangs on is one at once. With a trailing look-ahead, ``""(?!")``, it is one only if the
bytes to come keep to it, and as long as that is open, another match may yet turn out to be preferred. So a state
lists the matches that end in it, each with a state that *watches* it from then on: the same automaton, started with
that match marked. When the watching state *beats* the match, something preferred has matched, or its look-ahead has
failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ...automata.dfa import Dfa, coarsest_partition, reaching
from ...automata.words import nothing


@dataclass(frozen=True, eq=False)
class LeftmostDfa:
    """An automaton over bytes whose start is state 0; without states it matches nothing.

    Parameters
    ----------
    class_of:
        ``uint8[256]``: the class of each byte.
    table:
        ``int32[states, classes]``: the next state, -1 where nothing is left to match or to watch.
    ends:
        By state: the matches that end here, the preferred one first, each as the state that watches it from here on.
    beats:
        ``bool[states]``: a match is certain here, so that nothing less preferred counts; what is watched is no match.
    lapses:
        ``bool[states]``: if the text ended here, the match that is watched would be none.
    whole:
        ``bool[states]``: if the text ended here, all of it would be the match.
    variant:
        By state: the kind of the matches that end here, where a terminal has several; -1 for none. Empty where it has
        one.
    """

    class_of: NDArray[np.uint8]
    table: NDArray[np.int32]
    ends: list[tuple[int, ...]]
    beats: NDArray[np.bool_]
    lapses: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    variant: tuple[int, ...] = ()

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.ends)

    @classmethod
    def of(cls, dfa: Dfa) -> LeftmostDfa:
        """The matcher of an automaton without trailing look-ahead: where it accepts, there is a match."""
        order = np.arange(dfa.states)
        if dfa.states:
            order[[0, dfa.start]] = [dfa.start, 0]  # the start becomes state 0
        table = dfa.table[order]
        accepting = dfa.accepting[order].astype(np.bool_)
        return cls(
            dfa.classes[:256].astype(np.uint8),
            np.where(table >= 0, order[table], -1).astype(np.int32),
            [(s,) if accepts else () for s, accepts in enumerate(accepting.tolist())],
            accepting,
            np.zeros(dfa.states, np.bool_),
            accepting,
        )

    def next(self, state: int, byte: int) -> int:
        """The state after a byte."""
        return int(self.table[state, self.class_of[byte]])


def by_column(matcher: LeftmostDfa, tab: int, most: int, meter: Meter) -> LeftmostDfa:
    """The same, with matches told apart by the column that the line after their last line end has come to.

    The variant of a match is that column, a space for 1 and a tab for ``tab`` (`lark.indenter.Indenter`); ``most +
    1`` stands for all columns beyond ``most``, -1 for a match without a line end. Raises `BudgetExceededError`.
    """
    class_of = np.array(matcher.class_of, np.int64)
    for byte in b"\n \t":  # each a class of its own
        class_of[byte] = class_of.max() + 1
    first = {int(c): byte for byte, c in reversed(list(enumerate(class_of)))}
    order, widths = [first[c] for c in sorted(first)], {0x20: 1, 0x09: tab}
    number = {(0, -1): 0}
    todo = [(0, -1)]
    rows: list[list[int]] = []
    ends: list[tuple[int, ...]] = []

    matters = _ends_in_line(matcher)

    def intern(state: int, column: int) -> int:
        if state < 0:
            return -1
        column = column if matters[state] else -1
        if (state, column) not in number:
            number[state, column] = len(todo)
            todo.append((state, column))
        return number[state, column]

    for state, column in todo if matcher.states else ():  # grows as it goes
        if len(rows) % 64 == 0:
            meter.check_time("telling columns apart")
            meter.check_states(len(todo), "telling columns apart")
            meter.check_memory(len(todo) * (200 + 12 * len(first)), "telling columns apart")
        # What is watched is beaten or not; by what does not matter.
        ends.append(tuple(intern(watch, column if watch == state else -1) for watch in matcher.ends[state]))
        row = []
        for byte, target in zip(order, matcher.table[state, matcher.class_of[order]].tolist(), strict=True):
            wider = column + widths.get(byte, 0) if column >= 0 else -1
            row.append(intern(target, 0 if byte == 0x0A else min(wider, most + 1)))
        rows.append(row)
    names = {c: i for i, c in enumerate(sorted(first))}
    old = [state for state, _ in todo]
    return LeftmostDfa(
        np.array([names[int(c)] for c in class_of], np.uint8), np.array(rows, np.int32).reshape(-1, len(first)), ends,
        matcher.beats[old], matcher.lapses[old], matcher.whole[old], tuple(column for _, column in todo),
    )  # fmt: skip


def _ends_in_line(matcher: LeftmostDfa) -> list[bool]:
    """By state: whether a match may end before the next line end, so that the column matters."""
    others = [byte for byte in range(256) if byte != 0x0A]
    ends = np.array([bool(ends) for ends in matcher.ends], np.bool_)
    found: list[bool] = reaching(*edges_of(matcher.table[:, np.unique(matcher.class_of[others])]), ends).tolist()
    return found


#: Tails and heads of moves, ``int32`` each.
Edges: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32]]


def edges_of(table: NDArray[np.int32]) -> Edges:
    """The moves of a table that lead somewhere."""
    flat = np.flatnonzero(table >= 0)
    return (flat // max(1, table.shape[1])).astype(np.int32), table.reshape(-1)[flat].astype(np.int32)


def minimal(matcher: LeftmostDfa, meter: Meter) -> LeftmostDfa:
    """The same with equivalent states merged, and without those from which nothing can come.

    Raises `BudgetExceededError`.
    """
    ends = np.array([bool(ends) for ends in matcher.ends])
    useful = reaching(*edges_of(matcher.table), matcher.beats | matcher.lapses | ends)
    if not useful[0]:
        return LeftmostDfa.of(nothing())
    table = np.where(useful[matcher.table], matcher.table, -1)
    watching = targets(matcher.ends)
    counts = np.array([*map(len, matcher.ends)])
    flags = np.stack([matcher.beats, matcher.lapses, matcher.whole, useful, counts], axis=1)
    kinds = np.unique(flags, axis=0, return_inverse=True)[1].reshape(-1)
    first, name = quotient(coarsest_partition(np.column_stack([table, watching]), kinds, meter), useful)
    return LeftmostDfa(
        matcher.class_of, name[table[first]], [tuple(name[[*matcher.ends[state]]].tolist()) for state in first],
        matcher.beats[first], matcher.lapses[first], matcher.whole[first],
    )  # fmt: skip


def targets(of: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """A few states for each state, as a table; -1 behind the last."""
    found = np.full((len(of), max(map(len, of), default=0)), -1, np.int32)
    for row, there in zip(found, of, strict=True):
        row[: len(there)] = there
    return found


def quotient(block: NDArray[np.int32], used: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The first state of each block of those that are used, ascending; by state its number there, -1 for -1."""
    states = np.flatnonzero(used)
    first = states[np.sort(np.unique(block[states], return_index=True)[1])]
    number = np.full(len(block), -1, np.int32)
    number[block[first]] = np.arange(len(first))
    return first, np.append(number[block], np.int32(-1))
