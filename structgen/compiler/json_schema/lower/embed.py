"""Automata inside a pushdown program: the insides of strings, and numbers, each embedded once.

The state that matters most is the one inside a string that may be anything. Schemas are full of automata that
come to accept any continuation (``^x-`` is two letters and then that state), so states of other automata that
accept what unconstrained strings do *are* those states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ....system.properties import branch, remembered
from ...automata.dfa import Dfa
from ...automata.edge_lists import EdgeLists, of_dfa
from ...programs.fragments import FIRST, GIVEN, NOTHING, Fragment
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


@dataclass(eq=False)
class Body:
    """The inside of a string of some set, embedded: what may stand between the quotes.

    ``states[q]`` is the program's state for state ``q`` of the automaton; it pops at the closing quote.
    """

    automaton: EdgeLists
    states: list[State]
    loops: list[int]  # the program's numbers of the automaton's loops
    counts: list[int]  # the targets that the automaton's records are

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

    def continued(self, program: Program, meter: Meter) -> Embedding:
        """One to go on with from here, for a program that goes on from this one."""
        found = branch(self)
        found.program, found._meter = program, meter
        return found

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
        others = None if strings.is_any() else self.body(StringSet.ANY)
        made = _of_strings if inside.states <= _RECENT_STATES else _of_strings.__wrapped__
        part = made(inside, others and others.automaton)
        first, beside = len(program.edges), others.states[0] if others else 0
        loops = [program.loop(*bounds) for bounds in inside.loops]
        body = Body(inside, (part.targets(first, beside) - 1).tolist(), loops, [])
        states = [*body.states, -1]
        for operation, loop, *targets in inside.records:
            counted = CountedEdge(operation, loops[loop], *(states[q] for q in targets))
            body.counts.append(program.target((), counted))
        program.copy(part.fragment, beside, *body.counts)
        for q, live in enumerate(inside.live if loops else ()):
            if states[q] >= first and live >= 0:
                program.live[states[q]] = loops[live]
        for q in self._meter.each(part.accepting, "lowering strings"):
            program.give(first + q, self._ends)
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
        """Whether all of these are there already, or are what nearly all programs have."""
        return (strings is None or strings.is_any() or strings.key in self._bodies) and (
            numbers is None or numbers in (NumberSet.ANY, NumberSet.INTEGERS) or numbers.key in self._numbers
        )

    def number(self, numbers: NumberSet) -> list[Edge]:
        """The first edges of a number of a set; it ends in states that return."""
        known = self._numbers.get(numbers.key)
        if known is None:
            digits = _recent(numbers, "", lambda: numbers.dfa(self._meter), self._meter)
            self._meter.check_states(len(self.program.edges) + digits.states, "lowering numbers")
            known = self._numbers[numbers.key] = embedded(self.program, digits, "number")
        return known

    def word(self, word: bytes) -> Edge:
        """The first edge of a word."""
        return edge_of(word[0], word[0], self._end_of_word(word[1:]))

    @remembered
    def _end_of_word(self, rest: bytes) -> int:
        return 1 + self.program.state("word", (self.word(rest),)) if rest else POP


def embedded(
    program: Program, automaton: EdgeLists, name: str, tokens: Sequence[Sequence[TokenEdge]] = ()
) -> list[Edge]:
    """The first edges of an automaton that counts nothing, put into a program.

    Its states return where it accepts. Where nothing can follow there is no need for a state that only returns.
    ``tokens`` are the token edges of each state.
    """
    part = (_of_numbers if automaton.states <= _RECENT_STATES else _of_numbers.__wrapped__)(automaton, name)
    first = program.copy(part.fragment)
    program.returns.update([first + q for q in part.accepting])
    if tokens:
        for state, q in enumerate(np.flatnonzero(part.is_own).tolist(), first):
            program.give(state, First((), tokens[q]))
    return [(first + target if target > 0 else target) << 16 | read for target, read in part.begin]


class _Part:
    """An automaton as a fragment: the states that are its own.

    The arguments of the fragment are what is added to ``others``, and then the targets that records are.

    Parameters
    ----------
    is_own:
        By state of the automaton.
    others:
        By state what edges to it lead to, where it is none of these.
    """

    def __init__(self, automaton: EdgeLists, name: str, is_own: NDArray[np.bool_], others: NDArray[np.int32]) -> None:
        self.is_own = is_own
        states = int(is_own.sum())
        self._targets = np.where(is_own, np.cumsum(is_own), others).astype(np.int32)
        self._added = np.where(is_own, FIRST, np.where(others > 0, GIVEN, NOTHING))
        self.accepting: tuple[int, ...] = tuple((self._targets[is_own & automaton.accepting] - 1).tolist())
        state, low, high, target = automaton.columns[:, is_own[automaton.columns[0]]]
        counts, to = target < 0, np.maximum(target, 0)
        edges = np.stack([self._targets[state] - 1, low, high, np.where(counts, 0, self._targets[to])], axis=1)
        added = np.full(edges.shape, NOTHING, np.intp)
        added[:, 0], added[:, 3] = FIRST, np.where(counts, GIVEN - 1 - target, self._added[to])
        self.fragment = Fragment((name,) * states, (edges.ravel(), added.ravel()))
        #: The target, and the bytes, of each of the first edges.
        self.begin = tuple(
            [(int(self._targets[q]), high << 8 | low) for low, high, q in automaton.row(automaton.start)]
        )

    def targets(self, first: State, beside: State) -> NDArray[np.int32]:
        """By state of the automaton, the target that it is in a program."""
        added: NDArray[np.int32] = np.array([0, first, 0, beside], np.int32)[self._added]
        return self._targets + added


@lru_cache(maxsize=_RECENT_SIZE)
def _of_strings(automaton: EdgeLists, model: EdgeLists | None) -> _Part:
    """The part of strings' insides, without the states that another automaton has, too."""
    others = np.zeros(automaton.states, np.int32)
    common = {} if model is None else _common(automaton, model)
    others[[*common]] = [1 + state for state in common.values()]
    return _Part(automaton, "string", others == 0, others)


@lru_cache(maxsize=_RECENT_SIZE)
def _of_numbers(automaton: EdgeLists, name: str) -> _Part:
    """The part of an automaton without the states that only accept, and a first one that nothing leads back to."""
    is_own = np.zeros(automaton.states, np.bool_)
    is_own[automaton.columns[3]] = True
    is_own &= np.diff(automaton.begins) > 0
    return _Part(automaton, name, is_own, np.full(automaton.states, POP, np.int32))


def _common(inside: EdgeLists, model: EdgeLists) -> dict[int, int]:
    """The states that accept what ``model`` accepts, and those after them, with those of the model.

    Equivalent states of minimal automata have isomorphic surroundings, found by walking in step; where one loops
    to itself so does the other. (An automaton that is not minimal only shares less.)
    """
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
    return common


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
