"""Text up to the first of some strings: the automaton of Aho and Corasick (1975), over characters.

A state is the longest end of the text so far with which some string begins. Two things can follow from a state:

* *Free*: the text goes on. A character leads to the state of the text with it; where that completes an exit, the
  free text ends there, and the longest exit that does counts.
* *Leaving*: the text can only be left. Of the exits that have begun in it each goes on as it is written, and none
  begins any more. That is what remains where an excluded string is complete: it is no part of the free text if an
  exit that began within it is completed.

An exit that holds another one before its own end would never be completed; `AhoCorasick.of` refuses that. So no exit
is completed while one that began before it is still on its way, and leaving need not look for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...budget import Meter
from ...errors import DefinitionError
from ..automata.charset import Ranges, complement, normalise
from ..automata.nfa import NfaBuilder
from ..automata.utf8 import utf8_edges
from .syntax import FreeText

#: What a transition takes.
_BYTES_OF_TRANSITION = 100


@dataclass(frozen=True)
class Embedded:
    """The states of an automaton that became part of another one.

    Parameters
    ----------
    free:
        By state of the automaton: the state that has read free text; the first one is where it begins.
    completing:
        By exit: the states in which it is complete, or its token may follow.
    """

    free: list[int]
    completing: list[list[int]]


class Goal(NamedTuple):
    """What a character leads to: a complete exit, a state in which the text goes on, or states in which exits do."""

    exit: int = -1
    free: int = -1
    leaving: tuple[int, ...] = ()


class AhoCorasick:
    """The automaton of a `FreeText`, state 0 for no string begun."""

    def __init__(self) -> None:
        self._children: list[dict[str, int]] = [{}]
        self._suffix = [0]  # the longest proper end of it that is a state
        self._moves: list[dict[str, int]] = []  # to other states than 0
        self._exit = [-1]  # the exit that is complete
        self._begun: list[list[int]] = [[]]  # exits with a token that may follow here
        self._excluded = [False]
        self._is_exit = [False]  # whether some exit begins like that
        self._exits = 0

    @classmethod
    def of(cls, text: FreeText, meter: Meter, doing: str) -> AhoCorasick:
        """Build one. Raises `DefinitionError` for an exit that is never reached, and `BudgetExceededError`."""
        self = cls()
        self._exits = len(text.exits)
        for number, exit_ in enumerate(text.exits):
            for state in self._add(exit_.text, meter, doing):
                self._is_exit[state] = True
            if exit_.token >= 0:
                self._begun[state].append(number)
            elif self._exit[state] < 0:
                self._exit[state] = number
            else:
                raise DefinitionError(f"free text ends at {exit_.text!r} for two reasons")
        for excluded in text.excludes:
            *_, state = self._add(excluded, meter, doing)
            self._excluded[state] = True
        self._link(meter, doing)
        for exit_ in text.exits:
            self._check_reached(exit_.text)
        return self

    def __len__(self) -> int:
        return len(self._children)

    def _add(self, text: str, meter: Meter, doing: str) -> Iterator[int]:
        """The states of a string's beginnings, the empty one first."""
        state = 0
        yield state
        for character in text:
            known = self._children[state].get(character)
            if known is None:
                known = self._children[state][character] = len(self._children)
                self._children.append({})
                self._suffix.append(0)
                self._exit.append(-1)
                self._begun.append([])
                self._excluded.append(False)
                self._is_exit.append(False)
                meter.check_states(known, doing)
            state = known
            yield state

    def _link(self, meter: Meter, doing: str) -> None:
        """Suffixes and moves, of shorter beginnings first."""
        self._moves = [{}] * len(self)
        held = 0
        queue = [0]
        for state in queue:
            moves = {**self._moves[self._suffix[state]], **self._children[state]} if state else self._children[0]
            held += len(moves)
            meter.check_memory(held * _BYTES_OF_TRANSITION, doing)
            self._moves[state] = moves
            for character, child in self._children[state].items():
                if state:
                    suffix = self._suffix[child] = self._moves[self._suffix[state]].get(character, 0)
                    self._excluded[child] |= self._excluded[suffix]
                queue.append(child)

    def _completed(self, state: int) -> int:
        """The longest exit that is complete, -1 where none is."""
        while state and self._exit[state] < 0:
            state = self._suffix[state]
        return self._exit[state]

    def _check_reached(self, text: str) -> None:
        state = 0
        for character in text[:-1]:
            state = self._children[state][character]
            if self._completed(state) >= 0:
                raise DefinitionError(
                    f"free text never comes to the end of {text!r}, as another end is complete within it",
                    remedy="Leave one of the two out.",
                )

    # -- moves -----------------------------------------------------------------------------------------------

    def free_moves(self, state: int) -> Iterator[tuple[Ranges, Goal]]:
        """Where each character leads from a state in which the text may go on."""
        goals: dict[Goal, list[int]] = {}
        for character, target in self._moves[state].items():
            number = self._completed(target)
            if number < 0 and self._excluded[target]:
                goal = Goal(leaving=tuple(begun for begun in self.begun(target) if begun))
            else:
                goal = Goal(number, target if number < 0 else -1)
            goals.setdefault(goal, []).append(ord(character))
        for goal, codes in goals.items():
            yield normalise((code, code) for code in codes), goal
        yield complement(normalise((ord(c), ord(c)) for c in self._moves[state])), Goal(free=0)

    def leaving_moves(self, state: int) -> Iterator[tuple[Ranges, Goal]]:
        """Where each character leads from a state in which the exits that have begun so may go on, no others."""
        for character, child in self._children[state].items():
            if self._is_exit[child]:
                done = self._exit[child]
                code = ord(character)
                yield ((code, code),), Goal(done, leaving=(child,) if done < 0 else ())

    def begun(self, state: int) -> Iterator[int]:
        """All ends of a state with which some exit begins: states, the empty one last."""
        while state:
            if self._is_exit[state]:
                yield state
            state = self._suffix[state]
        yield 0

    def tokens(self, state: int) -> list[int]:
        """The exits whose token may follow what has begun."""
        return self._begun[state]

    def embed(self, builder: NfaBuilder, owner: int) -> Embedded:
        """Make it part of an automaton under construction, within a counted loop or none."""
        free = [builder.state(owner) for _ in range(len(self))]
        done = [builder.state(owner) for _ in range(self._exits)]
        completing = [[state] for state in done]
        leaving: dict[int, int] = {}
        queue: list[int] = []

        def there(goal: Goal) -> int:
            if goal.exit >= 0:
                return done[goal.exit]
            if goal.free >= 0:
                return free[goal.free]
            for begun in goal.leaving:
                if begun not in leaving:
                    leaving[begun] = builder.state(owner)
                    queue.append(begun)
            if len(goal.leaving) == 1:
                return leaving[goal.leaving[0]]
            state = builder.state(owner)
            for begun in goal.leaving:
                builder.epsilon(state, leaving[begun])
            return state

        for state, here in enumerate(free):
            for begun in self.begun(state):
                for number in self._begun[begun]:
                    completing[number].append(here)
            for ranges, goal in self.free_moves(state):
                builder.template(utf8_edges(ranges), here, there(goal), owner)
        for state in queue:
            for number in self._begun[state]:
                completing[number].append(leaving[state])
            for ranges, goal in self.leaving_moves(state):
                builder.template(utf8_edges(ranges), leaving[state], there(goal), owner)
        return Embedded(free, completing)
