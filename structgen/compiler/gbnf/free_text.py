"""Text up to the first of some strings: the automaton of Aho and Corasick (1975), over characters.

A state is the longest end of the text so far with which some string begins. Two things can follow from a state:

* *Free*: the text goes on. A character leads to the state of the text with it.
* *Leaving*: the text is over. Of the ends that have begun in it each goes on as it is written, and none begins any
  more. That is what remains where an exit or an excluded string is complete, for those that began within it.

Where a trigger is complete (the longest of several), it counts, unless an end or an excluded string is complete
there, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...budget import Meter
from ..automata.charset import Ranges, complement, normalise
from ..automata.nfa import NfaBuilder
from ..automata.utf8 import utf8_edges
from .syntax import Exit, FreeText

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
        By exit: the states in which it is complete, or its token may follow.
    """

    free: list[int]
    completing: list[list[int]]


class Goal(NamedTuple):
    """What a character leads to: a state in which the text goes on; or a complete exit, and states that leave."""

    exit: int = -1
    free: int = -1
    leaving: tuple[int, ...] = ()


class AhoCorasick:
    """The automaton of a `FreeText`, state 0 for no string begun."""

    def __init__(self) -> None:
        self._children: list[dict[str, int]] = [{}]
        self._suffix = [0]  # the longest proper end of it that is a state
        self._moves: list[dict[str, int]] = []  # to other states than 0
        self._end = [-1]  # the end that this is
        self._trigger = [-1]  # the trigger that this is
        self._begun: list[list[int]] = [[]]  # exits with a token that may follow here
        self._is_over = [False]  # whether an end or an excluded string is complete
        self._is_exit = [False]  # whether some exit begins like that
        self._is_leaving = [False]  # whether some end does, and goes on
        self._exits: tuple[Exit, ...] = ()

    @classmethod
    def of(cls, text: FreeText, meter: Meter, doing: str) -> AhoCorasick:
        """Build one. Raises `BudgetExceededError`."""
        self = cls()
        self._exits = text.exits
        for number, exit_ in enumerate(text.exits):
            self._add_exit(number, exit_, meter, doing)
        for excluded in text.excludes:
            *_, state = self._add(excluded, meter, doing)
            self._is_over[state] = True
        self._link(meter, doing)
        return self

    def __len__(self) -> int:
        return len(self._children)

    def _add_exit(self, number: int, exit_: Exit, meter: Meter, doing: str) -> None:
        *before, last = self._add(exit_.text, meter, doing)
        for state in (*before, last):
            self._is_exit[state] = True
        if exit_.is_end:
            for state in before:
                self._is_leaving[state] = True
        if exit_.token >= 0:
            self._begun[last].append(number)
            self._is_leaving[last] |= exit_.is_end
        elif exit_.is_end:
            self._end[last] = number
            self._is_over[last] = True
        else:
            self._trigger[last] = number

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
                self._end.append(-1)
                self._trigger.append(-1)
                self._begun.append([])
                self._is_over.append(False)
                self._is_exit.append(False)
                self._is_leaving.append(False)
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
                    self._is_over[child] |= self._is_over[suffix]
                queue.append(child)

    def _completed(self, state: int) -> int:
        """The longest exit that is complete, an end where the text is over; -1 where none is."""
        exits = self._end if self._is_over[state] else self._trigger
        while state and exits[state] < 0:
            state = self._suffix[state]
        return exits[state]

    # -- moves -----------------------------------------------------------------------------------------------

    def free_moves(self, state: int) -> Iterator[tuple[Ranges, Goal]]:
        """Where each character leads from a state in which the text may go on."""
        goals: dict[Goal, list[int]] = {}
        for character, target in self._moves[state].items():
            number = self._completed(target)
            if number < 0 and not self._is_over[target]:
                goal = Goal(free=target)
            else:
                leaving = (begun for begun in self.begun(target) if begun and self._is_leaving[begun])
                goal = Goal(number, leaving=tuple(leaving))
            goals.setdefault(goal, []).append(ord(character))
        for goal, codes in goals.items():
            yield normalise((code, code) for code in codes), goal
        yield complement(normalise((ord(c), ord(c)) for c in self._moves[state])), Goal(free=0)

    def leaving_moves(self, state: int) -> Iterator[tuple[Ranges, Goal]]:
        """Where each character leads from a state in which the ends that have begun so may go on, no others."""
        for character, child in self._children[state].items():
            if self._end[child] >= 0 or self._is_leaving[child]:
                code = ord(character)
                yield ((code, code),), Goal(self._end[child], leaving=(child,) if self._is_leaving[child] else ())

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

    def embed(self, builder: NfaBuilder, owner: int) -> PlacedText:
        """Make it part of an automaton under construction, within a counted loop or none."""
        free = [builder.state(owner) for _ in range(len(self))]
        done = [builder.state(owner) for _ in self._exits]
        completing = [[state] for state in done]
        leaving: dict[int, int] = {}
        queue: list[int] = []

        def there(goal: Goal) -> int:
            if goal.free >= 0:
                return free[goal.free]
            for begun in goal.leaving:
                if begun not in leaving:
                    leaving[begun] = builder.state(owner)
                    queue.append(begun)
            targets = [leaving[begun] for begun in goal.leaving]
            if goal.exit >= 0:
                targets.append(done[goal.exit])
            if len(targets) == 1:
                return targets[0]
            state = builder.state(owner)
            for target in targets:
                builder.epsilon(state, target)
            return state

        for state, here in enumerate(free):
            for begun in self.begun(state):
                for number in self._begun[begun]:
                    completing[number].append(here)
            for ranges, goal in self.free_moves(state):
                builder.template(utf8_edges(ranges), here, there(goal), owner)
        for state in queue:
            for number in self._begun[state]:
                if self._exits[number].is_end:
                    completing[number].append(leaving[state])
            for ranges, goal in self.leaving_moves(state):
                builder.template(utf8_edges(ranges), leaving[state], there(goal), owner)
        return PlacedText(free, completing)
