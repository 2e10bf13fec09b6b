"""Automata inside a pushdown program: the insides of strings, and numbers, each embedded once.

The state that matters most is the one inside a string that may be anything. Schemas are full of automata that
come to accept any continuation (``^x-`` is two letters and then that state), so states of other automata that
accept what unconstrained strings do *are* those states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ....budget import Budget, Meter
from ...automata.dfa import Dfa
from ...automata.edge_lists import EdgeLists, of_dfa
from ...programs.program import POP, CountedEdge, Edge, First, Program, State, TokenEdge, edge_of
from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet

QUOTE = 0x22

#: The end of a string.
END = First((edge_of(QUOTE, QUOTE, POP),))

#: Automata of earlier programs: schemas have much in common. By what they accept, and how that is written.
_RECENT: dict[tuple[Hashable, str], EdgeLists] = {}
_RECENT_SIZE, _RECENT_STATES = 256, 500


def _recent(members: StringSet | NumberSet, escapes: str, make: Callable[[], Dfa], meter: Meter) -> EdgeLists:
    """The automaton of a set, remembered if it is small."""
    key = (members.key, escapes)
    known = _RECENT.get(key)
    if known is None:
        known = of_dfa(make(), meter)
        if known.states <= _RECENT_STATES:
            if len(_RECENT) >= _RECENT_SIZE:
                _RECENT.clear()
            _RECENT[key] = known
    return known


#: Each class's state: -1 where no name of the class goes on so, ``()`` where that is so for all classes.
Classes: TypeAlias = tuple[int, ...]


class Move(NamedTuple):
    """Bytes, and the classes' states after them; three of them where a count decides."""

    low: int
    high: int
    after: tuple[Classes, ...]
    counted: tuple[int, int] | None = None  # operation and loop


@dataclass(eq=False)
class Body:
    """The inside of a string of some set, embedded: what may stand between the quotes.

    ``states[q]`` is the program's state for state ``q`` of the automaton; it pops at the closing quote. ``moves``
    are kept by `structgen.compiler.json_schema.lower.keys`.
    """

    automaton: EdgeLists
    states: list[State]
    loops: list[int]  # the program's numbers of the automaton's loops
    counts: list[int]  # the targets that the automaton's records are
    moves: dict[Classes, list[Move]] = field(default_factory=dict)

    @property
    def start(self) -> State:
        """The state after the opening quote."""
        return self.states[self.automaton.start]

    @property
    def is_counted(self) -> bool:
        """Whether edges count."""
        return bool(self.automaton.records)


class Embedding:
    """The automata of one program, each there once.

    Parameters
    ----------
    escapes:
        As `StringSet.body` takes it.
    ends:
        The edges where a string may end.
    """

    def __init__(self, program: Program, escapes: str, meter: Meter, ends: First = END) -> None:
        self.program = program
        self._escapes = escapes
        self._meter = meter
        self._ends = ends
        self._bodies: dict[Hashable, Body] = {}
        self._numbers: dict[Hashable, list[Edge]] = {}

    @classmethod
    def begun(cls, escapes: str, meter: Meter) -> Embedding:
        """An embedding into a new program, which begins with what nearly all programs have."""
        usual = _usual(escapes)
        embedding = cls(usual.program.continued(), escapes, meter)
        embedding._bodies.update(usual._bodies)
        embedding._numbers.update(usual._numbers)
        return embedding

    def body(self, strings: StringSet) -> Body:
        """The inside of a string of a set."""
        known = self._bodies.get(strings.key)
        if known is None:
            known = self._bodies[strings.key] = self._embed(strings)
        return known

    def _embed(self, strings: StringSet) -> Body:
        program = self.program
        inside = _recent(strings, self._escapes, lambda: strings.body(self._escapes, self._meter), self._meter)
        self._meter.check_states(len(program.edges) + inside.states, "lowering strings")
        number = np.full(inside.states, -1)
        if not strings.is_any():
            same = _common(inside, self.body(StringSet.ANY))
            number[[*same]] = [*same.values()]
        own = number < 0
        number[own] = program.states("string", int(own.sum())) + np.arange(own.sum())
        loops = [program.loop(*bounds) for bounds in inside.loops]
        body = Body(inside, number.tolist(), loops, [])
        states = [*body.states, -1]
        for operation, loop, *targets in inside.records:
            counted = CountedEdge(operation, loops[loop], *(states[q] for q in targets))
            body.counts.append(program.target((), counted))
        for q, live in enumerate(inside.live if loops else ()):
            if own[q] and live >= 0:
                program.live[states[q]] = loops[live]
        state, low, high, target = inside.columns[:, own[inside.columns[0]]]
        # The target -2 - r is record r: from the end, where that of a state -1 would be the last.
        to = np.array([*(number + 1), *body.counts[::-1], 0], np.int32)
        program.blocks.append(np.stack([number[state], low, high, to[target]]).astype(np.int32))
        for q in self._meter.each(np.flatnonzero(own & np.array(inside.accepting)).tolist(), "lowering strings"):
            program.give(states[q], self._ends)
        return body

    def first(self, body: Body) -> First:
        """The first edges of the inside of a string."""
        q, states = body.automaton.start, body.states
        edges = [
            edge_of(low, high, 1 + states[target] if target >= 0 else body.counts[-2 - target])
            for low, high, target in body.automaton.row(q)
        ]
        return First((*edges, *self._ends.edges), self._ends.tokens) if body.automaton.accepting[q] else First(edges)

    def has(self, strings: StringSet | None, numbers: NumberSet | None) -> bool:
        """Whether all of these are there already."""
        return (strings is None or strings.key in self._bodies) and (numbers is None or numbers.key in self._numbers)

    def number(self, numbers: NumberSet) -> list[Edge]:
        """The first edges of a number of a set; it ends in states that return."""
        known = self._numbers.get(numbers.key)
        if known is None:
            digits = _recent(numbers, "", lambda: numbers.dfa(self._meter), self._meter)
            self._meter.check_states(len(self.program.edges) + digits.states, "lowering numbers")
            known = self._numbers[numbers.key] = embedded(self.program, digits, "number")
        return known


@lru_cache(maxsize=8)
def _usual(escapes: str) -> Embedding:
    """Any string, any number and any integer, to be copied."""
    usual = Embedding(Program(), escapes, Meter(Budget()))
    usual.body(StringSet.ANY)
    usual.number(NumberSet.ANY)
    usual.number(NumberSet.INTEGERS)
    return usual


def embedded(
    program: Program, automaton: EdgeLists, name: str, tokens: Sequence[Sequence[TokenEdge]] = ()
) -> list[Edge]:
    """The first edges of an automaton that counts nothing, put into a program.

    Its states return where it accepts. Where nothing can follow there is no need for a state that only returns.
    ``tokens`` are the token edges of each state.
    """
    state, low, high, target = automaton.columns
    own = np.zeros(automaton.states, np.bool_)
    own[target] = True
    own &= np.diff(automaton.begins) > 0
    number = np.full(automaton.states, -1)
    number[own] = program.states(name, int(own.sum())) + np.arange(own.sum())
    for q in np.flatnonzero(own & np.array(automaton.accepting)).tolist():
        program.returns[number[q]] = True
    to = np.where(own, number + 1, POP)
    program.blocks.append(np.stack([number[state], low, high, to[target]])[:, own[state]].astype(np.int32))
    for q in np.flatnonzero(own).tolist() if tokens else ():
        program.give(int(number[q]), First((), tokens[q]))
    return [edge_of(first, last, int(to[q])) for first, last, q in automaton.row(automaton.start)]


def _common(inside: EdgeLists, other: Body) -> dict[int, State]:
    """The states that accept what ``other`` accepts, and those after them: its states stand for them.

    Equivalent states of minimal automata have isomorphic surroundings, found by walking in step; where one loops
    to itself so does the other. (An automaton that is not minimal only shares less.)
    """
    model = other.automaton
    first = model.edges[model.start]
    common: dict[int, int] = {}
    alike = (np.diff(inside.begins) == len(first)) & (np.array(inside.accepting) == model.accepting[model.start])
    for q in np.flatnonzero(alike).tolist():
        if any((mine[2] == q) != (its[2] == model.start) for mine, its in zip(inside.row(q), first, strict=True)):
            continue
        pairs = {q: model.start}
        todo = [q]
        while todo:
            here = todo.pop()
            there = pairs[here]
            if inside.accepting[here] != model.accepting[there] or not _step(
                inside.row(here), model.edges[there], pairs, todo
            ):
                break
        else:
            common |= pairs
    return {q: other.states[r] for q, r in common.items()}


def _step(
    mine: Sequence[tuple[int, int, int]], theirs: Sequence[tuple[int, int, int]], pairs: dict[int, int], todo: list[int]
) -> bool:
    """Pair the targets of two states; False where they differ."""
    if len(mine) != len(theirs):
        return False
    for (low, high, target), (its_low, its_high, its_target) in zip(mine, theirs, strict=True):
        if low != its_low or high != its_high or target < 0:
            return False
        if target not in pairs:
            pairs[target] = its_target
            todo.append(target)
        elif pairs[target] != its_target:
            return False
    return True
