"""Insides of quoted texts, of lines and the like: once in a program, wherever they are written.

Walking a vocabulary's tokens from a state that takes nearly every byte is what masks cost most. In
``"\\"" [^"]* "\\"" ":"`` there is such a state, and another one in every rule like it; they differ only in what comes
behind the quote. So where all ways from a wide state go round and at last lead to one other state, what lies between
is a small automaton of its own, which ends with a pop:

    q == the sequence (after, interior)

Equal interiors are one state. As they call nothing, their rows are shared by all definitions of a vocabulary; those
with a count, too, for all bounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TypeAlias

from ..automata.edge_lists import EdgeLists
from ..programs.program import CountedEdge, Edge, Program, State, edge_of

#: A state that takes more bytes is worth sharing: more than end a character.
_WIDE = 64

#: States of the largest interior, and states behind it that are tried.
_MOST_STATES, _MOST_TRIES = 100, 30

#: Edges that are looked at, in all, before no more interiors are looked for.
_MOST_WORK = 2_000_000

#: The bytes, the targets (none is the end), and how it counts: an operation and a loop.
_Move: TypeAlias = tuple[int, int, tuple[int, ...], tuple[int, int] | None]


class Interiors:
    """The interiors of a program, each there once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[Hashable, State] = {}
        self._work = 0

    def continued(self) -> Interiors:
        """The same, in a program to go on with."""
        found = Interiors(self.program.continued())
        found._known, found._work = self._known.copy(), self._work
        return found

    def find(self, rule: EdgeLists, q: int, *, ending: bool = False) -> tuple[State, int] | None:
        """If ``q`` is like that: the program's state for its interior, and the rule's state behind it.

        States where the rule may end are among those if they are ``ending`` it at the bottom of the stack. Where
        nothing counts, most bytes stay in ``q``.
        """
        if (rule.accepting[q] and not ending) or rule.calls[q] or rule.live[q] >= 0:
            return None
        if rule.bounds or self._work > _MOST_WORK:
            return None
        if sum(high - low + 1 for low, high, _ in rule.edges[q]) <= _WIDE:
            return None
        if not rule.records and sum(high - low + 1 for low, high, target in rule.edges[q] if target == q) <= _WIDE:
            return None
        tried = {q}
        queue = [q]
        for here in queue:
            for _, _, target in rule.edges[here]:
                for behind in set(rule.targets(target)) - tried:
                    tried.add(behind)
                    queue.append(behind)
                    if target >= 0 and rule.live[behind] < 0 and (inside := self._between(rule, q, behind, ending)):
                        return self._state(rule, inside, behind), behind
                    if len(tried) > _MOST_TRIES:
                        return None
        return None

    def _between(self, rule: EdgeLists, q: int, behind: int, ending: bool) -> list[int] | None:
        """The states on the ways from ``q`` to ``behind``, if there are no others and some go round."""
        queue = [q]
        inside = {q}
        circles = False
        for here in queue:
            if (rule.accepting[here] and not ending) or rule.calls[here] or len(queue) > _MOST_STATES:
                return None
            self._work += len(rule.edges[here])
            for _, _, target in rule.edges[here]:
                if target == behind:
                    continue
                targets = rule.targets(target)
                if behind in targets:
                    return None
                circles = circles or target == q or any(rule.live[state] >= 0 for state in targets)
                new = [state for state in targets if state not in inside]
                inside.update(new)
                queue += new
        return queue if circles and (not ending or _all_reach(rule, queue, behind)) else None

    def _state(self, rule: EdgeLists, inside: list[int], behind: int) -> State:
        """The state of an interior; equal ones have equal edges, in the order in which their states are met."""
        number = {q: i for i, q in enumerate(inside)} | {-1: -1}
        counted = {rule.records[-2 - target][1] for q in inside for _, _, target in rule.edges[q] if target < 0}
        loops = sorted(counted | {rule.live[q] for q in inside} - {-1})
        moves = tuple(tuple(_moves(rule, q, number, loops, behind)) for q in inside)
        live = tuple(loops.index(rule.live[q]) if rule.live[q] >= 0 else -1 for q in inside)
        key = (moves, live, tuple(rule.loops[loop] for loop in loops))
        if key not in self._known:
            self._known[key] = self._embed(moves, live, key[2])
        return self._known[key]

    def _embed(
        self, moves: tuple[tuple[_Move, ...], ...], live: tuple[int, ...], bounds: tuple[tuple[int, int], ...]
    ) -> State:
        """Put an interior into the program; returns its first state."""
        program = self.program
        loops = [program.loop(*each) for each in bounds] + [-1]
        states = [program.state("inside", live=loops[loop]) for loop in live] + [-1]
        for state, edges in zip(states, moves, strict=False):
            own: list[Edge] = []
            for low, high, targets, how in edges:
                there = tuple(states[target] for target in targets)
                counted = CountedEdge(how[0], loops[how[1]], *there) if how else None
                own.append(edge_of(low, high, program.target(() if how else there, counted)))
            program.edges[state] = own
        return states[0]


def _all_reach(rule: EdgeLists, inside: list[int], behind: int) -> bool:
    """Whether some way leads from each state inside to the one behind."""
    into: dict[int, list[int]] = {q: [] for q in (*inside, behind)}
    for q in inside:
        for _, _, target in rule.edges[q]:
            for there in rule.targets(target):
                into[there].append(q)
    reached = {behind}
    for there in (queue := [behind]):
        new = set(into[there]) - reached
        reached |= new
        queue += new
    return reached.issuperset(inside)


def _moves(rule: EdgeLists, q: int, number: dict[int, int], loops: list[int], behind: int) -> Iterator[_Move]:
    """A state's edges, with its interior's own numbers for states and loops."""
    for low, high, target in rule.edges[q]:
        if target >= 0:
            yield low, high, () if target == behind else (number[target],), None
            continue
        operation, loop, *zones = rule.records[-2 - target]
        yield low, high, tuple(number[zone] for zone in zones), (operation, loops.index(loop))
