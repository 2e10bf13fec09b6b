"""Text up to the first of some strings: the automaton of Aho and Corasick (1975), over characters.

A state is the longest end of the text so far with which some string begins. A character leads to the state of the
text with it, unless an excluded string is complete there, or a trigger (the longest of several).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ...budget import Meter
from ..automata.charset import Ranges, complement, normalise
from ..automata.nfa import NfaBuilder
from ..automata.utf8 import utf8_edges
from .syntax import FreeText

_Target = TypeVar("_Target", bound=Hashable)

#: What a transition takes.
_BYTES_OF_TRANSITION = 100


@dataclass(frozen=True)
class PlacedText:
    """The states of an automaton that became part of another one.

    Parameters
    ----------
    free:
        By state of the automaton: the state that has read free text; the first one is where it begins.
    completing:
        By trigger: the states in which it is complete, or its token may follow.
    """

    free: list[int]
    completing: list[list[int]]


class AhoCorasick:
    """The automaton of a `FreeText`, state 0 for no string begun."""

    def __init__(self) -> None:
        self._children: list[dict[str, int]] = [{}]
        self._suffix = [0]  # the longest proper end of it that is a state
        self._moves: list[dict[str, int]] = []  # to other states than 0
        self._trigger = [-1]  # the longest trigger that is complete
        self._is_over = [False]  # whether an excluded string is complete
        self._before_token: list[tuple[int, ...]] = [()]  # triggers whose token may follow
        self._triggers = 0

    @classmethod
    def of(cls, text: FreeText, meter: Meter, doing: str) -> AhoCorasick:
        """Build one. Raises `BudgetExceededError`."""
        self = cls()
        self._triggers = len(text.triggers)
        for number, trigger in enumerate(text.triggers):
            state = self._add(trigger.text, meter, doing)
            if trigger.token >= 0:
                self._before_token[state] += (number,)
            else:
                self._trigger[state] = number
        for excluded in text.excludes:
            self._is_over[self._add(excluded, meter, doing)] = True
        self._link(meter, doing)
        return self

    def __len__(self) -> int:
        return len(self._children)

    def _add(self, text: str, meter: Meter, doing: str) -> int:
        """The state of a string."""
        state = 0
        for character in text:
            known = self._children[state].get(character)
            if known is None:
                known = self._children[state][character] = len(self._children)
                self._children.append({})
                self._suffix.append(0)
                self._trigger.append(-1)
                self._is_over.append(False)
                self._before_token.append(())
                meter.check_states(known, doing)
            state = known
        return state

    def _link(self, meter: Meter, doing: str) -> None:
        """Suffixes and moves, of shorter beginnings first."""
        self._moves = [{}] * len(self)
        held = 0
        queue = [0]
        for state in queue:
            moves = {**self._moves[self._suffix[state]], **self._children[state]} if state else self._children[0]
            held += len(moves) + len(self._before_token[state])
            meter.check_memory(held * _BYTES_OF_TRANSITION, doing)
            self._moves[state] = moves
            for character, child in self._children[state].items():
                suffix = self._moves[self._suffix[state]].get(character, 0) if state else 0
                self._suffix[child] = suffix
                self._is_over[child] |= self._is_over[suffix]
                self._before_token[child] += self._before_token[suffix]
                if self._trigger[child] < 0:
                    self._trigger[child] = self._trigger[suffix]
                queue.append(child)

    def moves(self, state: int) -> dict[str, int]:
        """Where characters lead: states; ``-1`` to nothing; ``-2 - k`` to trigger k. Others lead to state 0."""
        return {character: self._goal(target) for character, target in self._moves[state].items()}

    def _goal(self, target: int) -> int:
        if self._is_over[target]:
            return -1
        return -2 - self._trigger[target] if self._trigger[target] >= 0 else target

    def embed(self, builder: NfaBuilder, owner: int) -> PlacedText:
        """Make it part of an automaton under construction, within a counted loop or none."""
        free = [builder.state(owner) for _ in range(len(self))]
        done = [builder.state(owner) for _ in range(self._triggers)]
        completing = [[state] for state in done]
        for state, here in enumerate(free):
            for number in self._before_token[state]:
                completing[number].append(here)
            for ranges, goal in by_target(self.moves(state), 0):
                if goal != -1:
                    target = free[goal] if goal >= 0 else done[-2 - goal]
                    builder.template(utf8_edges(ranges), here, target, owner)
        return PlacedText(free, completing)


def by_target(moves: Mapping[str, _Target], others: _Target | None) -> Iterator[tuple[Ranges, _Target]]:
    """The characters that lead to each target; to ``others`` those that are not among them."""
    found: dict[_Target, list[tuple[int, int]]] = {}
    for character, target in moves.items():
        found.setdefault(target, []).append((ord(character), ord(character)))
    for target, codes in found.items():
        yield normalise(codes), target
    if others is not None:
        yield complement(normalise(code for codes in found.values() for code in codes)), others
