"""The picture of a `PushdownMachine`'s tables: states, bytes, calls, pops, counts and sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...system.visible import visible
from ...vocabulary.vocabulary import Vocabulary
from ..automaton.tables import MARK
from ..core.machine import ranges_of
from ..pushdown.tables import Moves, PushdownTables
from .automaton import counted_moves
from .graph import Graph
from .labels import Ranges
from .moves import POP, DrawnMove, DrawnState, draw

#: Names of tokens on an edge.
_FEW_TOKENS = 3


def graph_of(tables: PushdownTables, vocabulary: Vocabulary, title: str, limit: int) -> Graph:
    """The graph of an automaton with a stack."""
    reader = _Reader(tables, vocabulary)
    return draw(title, tables.start, reader.moves, reader.shown, limit)


class _Reader:
    def __init__(self, tables: PushdownTables, vocabulary: Vocabulary) -> None:
        self._tables = tables
        self._names = {number: visible(name) for name, number in vocabulary.special_tokens.items()}
        self._loops = tables.loops.tolist()

    def shown(self, state: int) -> DrawnState:
        notes = []
        if state in self._tables.open:
            notes.append("not lowered yet")
        if self._tables.returns[state]:
            notes.append("or back")
        return DrawnState(f"{state}" + "".join(f", {note}" for note in notes), is_fixed=bool(notes))

    def moves(self, state: int) -> Iterator[DrawnMove]:
        for data, target in self._tables.grouped(state):
            yield from self._replaced(target, ranges_of(sorted(data)), "")
        if self._tables.tokens is not None:
            yield from self._token_moves(state)

    def _replaced(self, target: int, ranges: Ranges, token: str) -> Iterator[DrawnMove]:
        """The moves of a target: to a state, or those of a group."""
        reads = (ranges,) if ranges else ()
        if target < self._tables.states:
            yield DrawnMove(target, reads, token)
            return
        moves: Moves = self._tables.moves[target - self._tables.states]
        for record, sequence in moves:
            for note, states in self._counted(record, sequence):
                yield from _called(reads, ", ".join(filter(None, (token, note))), states)

    def _counted(self, record: tuple[int, ...] | None, sequence: tuple[int, ...]) -> Iterator[tuple[str, list[int]]]:
        """What is put in a state's place, with what is counted: for each range of counts."""
        if record is None:
            yield "", list(sequence)
        elif record[0] == MARK:
            _, test, first, member, _ = record
            note = f"member {member} is new" if member >= 0 else f"test {test}"
            yield note, [first, *sequence]
        else:
            for note, first in counted_moves(list(record), self._loops):
                yield note, [first, *sequence]

    def _token_moves(self, state: int) -> Iterator[DrawnMove]:
        tokens = self._tables.tokens
        assert tokens is not None
        begin, end = np.searchsorted(tokens.states, [state, state + 1]).tolist()
        for edge in range(begin, end):
            ids, is_complement = tokens.members(int(tokens.sets[edge]))
            names = [self._names.get(i, f"token {i}") for i in ids[:_FEW_TOKENS].tolist()]
            text = " or ".join([*names, *([f"{len(ids) - _FEW_TOKENS:,} more"] if len(ids) > _FEW_TOKENS else [])])
            note = f"any token but {text}" if is_complement else text
            yield from self._replaced(int(tokens.targets[edge]) - 1, (), note)
        if state in tokens.bounds:
            most, exhausted = tokens.bounds[state]
            yield DrawnMove(exhausted, (), f"after {most:,} tokens")


def _called(reads: tuple[Ranges, ...], note: str, states: list[int]) -> Iterator[DrawnMove]:
    """A state's place is taken by others, the last of which is entered."""
    if not states:
        yield DrawnMove(POP, reads, note)
        return
    *below, entered = states
    if below:
        note = ", ".join(filter(None, (note, f"call, back to {', '.join(map(str, reversed(below)))}")))
    yield DrawnMove(entered, reads, note)
    for state in dict.fromkeys(below):
        yield DrawnMove(state, (), "back", is_return=True)
