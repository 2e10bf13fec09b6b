"""Which tokens an automaton can read at all: more than it does, and never fewer.

Counts are left out, and whatever can lie below a state on the stack is taken to lie there; in a grammar any lexeme
may follow any other. What is left is a finite automaton, of which subsets are followed through the trie of all
tokens, each with every byte once.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..budget import Meter
from ..runtime.core.machine import LexemeAutomaton, Symbol
from ..runtime.core.reference_walk import row_of_nodes, walk
from ..runtime.rows.bitmask import unpack
from ..vocabulary.vocabulary import Vocabulary
from .languages import GreibachLanguage

_DOING = "looking for tokens that are never allowed"


class Subsets(Protocol):
    """A finite automaton, by sets of its states."""

    #: Where it can be in the midst of a text.
    every: frozenset[int]

    def step(self, states: frozenset[int], byte: int) -> frozenset[int]:
        """Where it can be after a byte; empty where nothing takes it. Raises `BudgetExceededError`."""
        ...


def possible_tokens(states: Subsets, vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """``bool[size]``: False for tokens with bytes that no text has. Raises `BudgetExceededError`."""
    found = walk(vocabulary.trie, lambda subset, byte: states.step(subset, byte) or None, states.every)
    return unpack(row_of_nodes(vocabulary, (nodes for nodes, _, _ in found)), vocabulary.size)


class LexemeStates:
    """The states of lexemes of which any may follow any other.

    Parameters
    ----------
    lexemes:
        Their automaton.
    meter:
        Bounds the work.
    """

    def __init__(self, lexemes: LexemeAutomaton, meter: Meter) -> None:
        self._meter = meter
        self._class_of, self._rows = lexemes.class_of.tolist(), lexemes.table.tolist()
        self._starts, self._ends = frozenset(lexemes.starts.tolist()), frozenset(lexemes.ends.tolist())
        self.every = frozenset(range(len(self._rows)))
        self._known: dict[tuple[frozenset[int], int], frozenset[int]] = {}

    def step(self, states: frozenset[int], byte: int) -> frozenset[int]:
        """See `Subsets`."""
        key = states, self._class_of[byte]
        found = self._known.get(key)
        if found is None:
            self._meter.check_time(_DOING)
            found = frozenset([self._rows[state][key[1]] for state in states]) - {-1}
            if not self._ends.isdisjoint(found):
                found |= self._starts
            self._known[key] = found
        return found


class StackTops:
    """The states that can be on top of the stack.

    Parameters
    ----------
    language:
        Symbols without counts.
    meter:
        Bounds the work.
    """

    def __init__(self, language: GreibachLanguage[Symbol], meter: Meter) -> None:
        self._meter = meter
        of = [state for state, _ in language.symbols]
        ends: dict[int, bool] = {}
        below: dict[int, set[int]] = {state: set() for state in of}
        self._moves: dict[int, dict[bytes, set[int]]] = {state: {} for state in of}
        firsts: dict[int, set[int]] = {state: set() for state in of}
        pops: dict[int, set[bytes]] = {state: set() for state in of}
        for state, is_end in zip(of, language.ends, strict=True):
            ends[state] = ends.get(state, False) or is_end
        for symbol, made in language.useful():
            state, sequence = of[symbol], [of[each] for each in made.symbols]
            for lower, upper in pairwise(sequence):
                below[upper].add(lower)
            if sequence:
                firsts[state].add(sequence[0])
                self._moves[state].setdefault(made.data, set()).add(sequence[-1])
            else:
                pops[state].add(made.data)
        _spread(below, firsts, meter)
        for state, kinds in pops.items():
            for data in kinds:
                self._moves[state].setdefault(data, set()).update(below[state])
        self._handed = {state: _handed(state, ends, below) for state in self._moves}
        self.every = self._closed(set(self._moves))
        self._moves[_NOTHING] = {}
        self._by_byte: dict[frozenset[int], dict[int, frozenset[int]]] = {}

    def _closed(self, states: set[int]) -> frozenset[int]:
        return frozenset().union(*[self._handed[state] for state in states])

    def step(self, states: frozenset[int], byte: int) -> frozenset[int]:
        """See `Subsets`."""
        spelled = self._by_byte.get(states)
        if spelled is None:
            self._meter.check_time(_DOING)
            targets: dict[int, set[int]] = {}
            for state in states:
                for data, after in self._moves[state].items():
                    for each in data:
                        targets.setdefault(each, set()).update(after)
            closed: dict[frozenset[int], frozenset[int]] = {}
            spelled = self._by_byte[states] = {}
            for each, after in targets.items():
                key = frozenset(after)
                spelled[each] = closed[key] if key in closed else closed.setdefault(key, self._closed(after) or _END)
        return spelled.get(byte, frozenset())


#: In place of a state: what takes the last one off the stack leads there, and only there where nothing lies below.
_NOTHING = -1
_END = frozenset([_NOTHING])


def _spread(below: dict[int, set[int]], firsts: dict[int, set[int]], meter: Meter) -> None:
    """What is first in a sequence has below it what its state had."""
    todo = [state for state in below if below[state]]
    while todo:
        meter.check_time(_DOING)
        state = todo.pop()
        for first in firsts[state]:
            if not below[state] <= below[first]:
                below[first] |= below[state]
                todo.append(first)


def _handed(state: int, ends: dict[int, bool], below: dict[int, set[int]]) -> frozenset[int]:
    """A state, and those below that the next byte may be left to."""
    found, todo = {state}, [state]
    while todo:
        here = todo.pop()
        for each in below[here] - found if ends[here] else ():
            found.add(each)
            todo.append(each)
    return frozenset(found)
