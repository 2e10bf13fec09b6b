"""Free text of so many characters or tokens at most, as the automaton of a rule.

There are two copies of the automaton of Aho and Corasick (`structgen.compiler.gbnf.free_text`): in one the text goes
on, and is counted; in the other one, to which the last character or token leads, it is *exhausted*: only exits may
follow, those that have begun in it and those that begin at its end. What has begun as an exit and turns out to be
text was counted as such.

A count of characters goes up with the first byte of each. The first two are spelled out: no count begins with the
first byte of a rule. A token counts if the text goes on where it ends. Where it ends within a character, the rest of
that character may follow, whatever the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...runtime.automaton.tables import INC, SET
from ..automata.charset import Ranges
from ..automata.edge_lists import EdgeLists
from ..automata.utf8 import utf8_edges
from .free_text import AhoCorasick, Goal
from .syntax import Exit, FreeText

_DOING = "building free text with a bound"

#: The copies: nothing read yet; one character read; counted; exhausted; leaving by one exit.
_BEGIN, _ONE, _FREE, _EXHAUSTED, _LEAVING = range(5)


class BoundedExit(NamedTuple):
    """What free text comes to: as in `Exit`, but that what follows is an external, or -1 for nothing."""

    text: str
    token: int
    behind: int


def bounded_text(
    exits: Sequence[BoundedExit],
    excludes: tuple[str, ...],
    *,
    may_end: bool,
    characters: int | None,
    tokens: int | None,
    meter: Meter,
) -> EdgeLists:
    """The automaton of a rule: free text of so many ``characters``, or of so many ``tokens``.

    Raises the errors of `AhoCorasick.of`.
    """
    text = FreeText(tuple(Exit(exit_.text, -1, exit_.token, is_end=True) for exit_ in exits), excludes, may_end)
    automaton = AhoCorasick.of(text, meter, _DOING)
    return _Construction(automaton, exits, may_end, characters, tokens, meter).run()


class _Construction:
    """The states made so far: by copy and state of the automaton, each with its edges once its turn has come."""

    def __init__(
        self,
        automaton: AhoCorasick,
        exits: Sequence[BoundedExit],
        may_end: bool,
        characters: int | None,
        tokens: int | None,
        meter: Meter,
    ) -> None:
        self._automaton = automaton
        self._exits = exits
        self._may_end = may_end
        self._characters = characters
        self._tokens = tokens
        self._meter = meter
        self._edges: list[list[tuple[int, int, int]]] = []
        self._calls: list[list[tuple[int, int]]] = []
        self._accepting: list[bool] = []
        self._live: list[int] = []
        self._records: list[tuple[int, int, int, int, int]] = []
        self._bounds: dict[int, tuple[int, int]] = {}
        self._known: dict[tuple[int, ...], int] = {}
        self._todo: list[tuple[int, tuple[int, ...]]] = []
        self._end = self._state(accepting=True)
        self._done = [self._behind(exit_) for exit_ in exits]

    def run(self) -> EdgeLists:
        """The whole."""
        most = self._tokens if self._characters is None else self._characters
        start = self._at(_EXHAUSTED if most == 0 else _BEGIN, 0)
        while self._todo:
            self._meter.check_states(len(self._edges), _DOING)
            state, (copy, *here) = self._todo.pop()
            if copy == _EXHAUSTED:
                self._leave(state, list(self._automaton.begun(here[0])))
            elif copy == _LEAVING:
                self._leave(state, here)
            else:
                self._go_on(state, copy, here[0])
        loops = [(0, self._characters - 1)] if self._characters is not None and self._characters > 1 else []
        edges, calls = [tuple(sorted(each)) for each in self._edges], [*map(tuple, self._calls)]
        return EdgeLists(edges, calls, self._accepting, self._live, self._records, loops, start, self._bounds)

    def _state(self, *, accepting: bool = False, live: bool = False) -> int:
        self._edges.append([])
        self._calls.append([])
        self._accepting.append(accepting)
        self._live.append(0 if live else -1)
        return len(self._edges) - 1

    def _behind(self, exit_: BoundedExit) -> int:
        """The state behind an exit."""
        if exit_.behind < 0:
            return self._end
        state = self._state()
        self._calls[state].append((-1 - exit_.behind, self._end))
        return state

    def _at(self, copy: int, *here: int) -> int:
        """The state of a copy: of a state of the automaton, or of the exits that have begun so."""
        key = (copy, *here)
        state = self._known.get(key)
        if state is None:
            counts = copy == _FREE and self._characters is not None
            state = self._state(accepting=self._may_end and copy != _LEAVING, live=counts)
            self._known[key] = state
            self._todo.append((state, key))
            if copy == _FREE and self._tokens is not None:
                self._bounds[state] = self._tokens, self._at(_EXHAUSTED, *here)
        return state

    def _leave(self, state: int, begun: list[int]) -> None:
        """The edges of a state in which only exits that have begun may go on."""
        for each in begun:
            self._token_exits(state, each)
            for ranges, goal in self._automaton.leaving_moves(each):
                self._exit(state, ranges, goal)

    def _token_exits(self, state: int, begun: int) -> None:
        for number in self._automaton.tokens(begun):
            self._calls[state].append((-1 - self._exits[number].token, self._done[number]))

    def _exit(self, state: int, ranges: Ranges, goal: Goal) -> None:
        """A character with which the text is over."""
        if goal.exit >= 0:
            self._move(state, utf8_edges(ranges), self._done[goal.exit])
        if goal.leaving:
            self._move(state, utf8_edges(ranges), self._at(_LEAVING, *goal.leaving))

    def _go_on(self, state: int, copy: int, here: int) -> None:
        """The edges of a state in which the text goes on."""
        for begun in self._automaton.begun(here):
            self._token_exits(state, begun)
        for ranges, goal in self._automaton.free_moves(here):
            if not ranges:
                continue
            if goal.free < 0:
                self._exit(state, ranges, goal)
            else:
                self._count(state, copy, ranges, goal.free)

    def _move(self, source: int, template: NDArray[np.int32], target: int) -> None:
        """A character, by a copy of its automaton."""
        inside = [source, target]
        for tail, low, high, head in template.tolist():
            while len(inside) <= max(tail, head):
                inside.append(self._state())
            self._edges[inside[tail]].append((low, high, inside[head]))

    def _count(self, source: int, copy: int, ranges: Ranges, free: int) -> None:
        """A character with which the text goes on."""
        template = utf8_edges(ranges)
        if self._characters is None:
            self._pair(source, template, free, None)
        elif self._characters == copy + 1:
            self._move(source, template, self._at(_EXHAUSTED, free))
        elif copy == _BEGIN:
            self._move(source, template, self._at(_ONE, free))
        else:
            self._pair(source, template, free, SET if copy == _ONE else INC)

    def _pair(self, source: int, template: NDArray[np.int32], free: int, operation: int | None) -> None:
        """A character that is counted, and beside it the same for a text that is exhausted by it."""
        inside, exhausted = [source, self._at(_FREE, free)], [-1, self._at(_EXHAUSTED, free)]
        for tail, low, high, head in template.tolist():
            while len(inside) <= max(tail, head):
                inside.append(self._state(live=self._characters is not None))
                exhausted.append(self._state())
                if self._tokens is not None:
                    self._bounds[inside[-1]] = self._tokens, exhausted[-1]
            if tail:
                self._edges[exhausted[tail]].append((low, high, exhausted[head]))
            if tail or operation is None:
                self._edges[inside[tail]].append((low, high, inside[head]))
            else:
                high_zone = inside[head] if operation == SET else exhausted[head]
                self._records.append((operation, 0, inside[head], inside[head], high_zone))
                self._edges[source].append((low, high, -1 - len(self._records)))
