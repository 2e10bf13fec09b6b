"""Insides of quoted texts, of lines and the like: once in a program, wherever they are written.

Walking a vocabulary's tokens from a state that takes nearly every byte is what masks cost most. In
``"\"" [^"]* "\"" ":"`` there is such a state, and another one in every rule like it; they differ only in what comes
behind the quote. So where a wide state's bytes either lead back to it, by whatever way, or on to one other state,
those that lead back are a small automaton of their own, which ends with a pop:

    q == the sequence (after, interior)

Equal interiors are one state. As they call nothing, their rows are shared by all definitions of a vocabulary.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..pushdown import Program, State
from .lists import Lists

#: A state that takes so many bytes is worth sharing.
_WIDE = 64

#: States on the ways back to it.
_MOST_STATES = 100


class Interiors:
    """The interiors of a program, each there once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[Hashable, State] = {}

    def find(self, rule: Lists, q: int) -> tuple[State, int] | None:
        """If ``q`` is like that: the program's state for its interior, and the rule's state behind it."""
        if rule.accepting[q] or rule.calls[q] or rule.live[q] >= 0:
            return None
        if sum(high - low + 1 for low, high, _ in rule.edges[q]) < _WIDE:
            return None
        ways = {target: _way_back(rule, q, target) for _, _, target in rule.edges[q]}
        behind = [target for target, way in ways.items() if way is None]
        if len(behind) != 1 or behind[0] < 0 or not any(ways.values()):
            return None
        return self._state(rule, q, behind[0]), behind[0]

    def _state(self, rule: Lists, q: int, behind: int) -> State:
        """The state of an interior, by its states in the order in which they are met."""
        number = {q: 0}
        queue = [q]
        moves: list[tuple[tuple[int, int, int], ...]] = []
        for here in queue:
            found = []
            for low, high, target in rule.edges[here]:
                if here == q and target == behind:
                    found.append((low, high, -1))
                    continue
                if target not in number:
                    number[target] = len(number)
                    queue.append(target)
                found.append((low, high, number[target]))
            moves.append(tuple(found))
        key = tuple(moves)
        if key not in self._known:
            states = [self._program.state("inside") for _ in moves]
            for state, edges in zip(states, moves, strict=True):
                for low, high, target in edges:
                    self._program.edge(state, low, high, *(() if target < 0 else (states[target],)))
            self._known[key] = states[0]
        return self._known[key]


def _way_back(rule: Lists, q: int, first: int) -> set[int] | None:
    """The states between ``first`` and ``q``, if all ways from there lead to ``q``; ``{q}`` for ``q`` itself."""
    way = {q, first}
    queue = [first] if first != q else []
    for here in queue:
        if here < 0 or rule.accepting[here] or rule.calls[here] or rule.live[here] >= 0 or len(way) > _MOST_STATES:
            return None
        for _, _, target in rule.edges[here]:
            if target not in way:
                way.add(target)
                queue.append(target)
    return way
