"""A text read once more, for what it captures.

A *reading* is a thread whose stack is one alone, with the places at which labelled states were pushed and left. Of
readings that come to the same thread one stays: the one that begins a part first, and then that ends one last. So a
text has one way to be read, however many there are: parts begin as soon as they can, and go on as long as they can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple, Protocol, TypeAlias

from ....errors import BudgetExceededError, FormatError
from ...core.machine import Captured
from ..stacks import END, Stack, Thread
from ..tables import Moves
from .labels import RuleLabel

#: Readings of one text that are followed side by side.
_MOST_READINGS = 1 << 12

#: Threads of one text that are looked at, some ten seconds: a byte is left to all rules that may be over before it.
_MOST_WORK = 1 << 22

#: Events that are gone through in the time of one thread.
_EVENTS = 16

#: In place of a labelled state: the last one that was pushed is left.
_LEFT = -1


class StackMoves(Protocol):
    """What moves threads."""

    @property
    def start_threads(self) -> tuple[Thread, ...]:
        """Those before the text."""

    def returns(self, state: int) -> bool:
        """Whether the next byte may be left to what is below a state."""

    def moves_at(self, state: int, byte: int) -> Moves:
        """The moves of a state with a byte."""

    def token_moves_at(self, thread: Thread, token_id: int) -> list[Moves]:
        """The moves of a thread's own state with a token as such."""

    def at_token_end(self, thread: Thread) -> Thread:
        """A thread where a token ends."""

    def make(
        self,
        record: tuple[int, ...] | None,
        sequence: tuple[int, ...],
        count: int,
        frame: Stack,
        found: dict[Thread, None],
    ) -> None:
        """Make one move of one thread."""


class _Event(NamedTuple):
    """A labelled state that is pushed, or the last one left, behind so many bytes; how many events there are."""

    at: int
    state: int
    number: int
    before: _Event | None


#: What happened on the way to each thread.
_Readings: TypeAlias = "dict[Thread, _Event | None]"


class StackRecording:
    """The readings of a text.

    Parameters
    ----------
    machine:
        What moves the threads; its stacks are used by nothing else meanwhile.
    labels:
        Those of states.
    """

    def __init__(self, machine: StackMoves, labels: dict[int, RuleLabel]) -> None:
        self._machine, self._labels = machine, labels
        self._readings: _Readings = dict.fromkeys(machine.start_threads)
        self._at = self._work = 0

    def read(self, tokens: Iterable[tuple[int, bytes]]) -> None:
        """Read tokens by their bytes, and by their ids; an id of -1 is bytes alone.

        Raises `FormatError` where that is no beginning of a text, and `BudgetExceededError`.
        """
        for token, data in tokens:
            if not data and token < 0:
                continue
            taken = self._over_token(token) if token >= 0 else {}
            read = self._readings if data else {}
            for byte in data:
                moves = self._machine.moves_at
                read = self._step((thread, event, moves(thread[0], byte)) for thread, event in self._left(read))
                self._at += 1
            for thread, event in read.items():
                self._keep(taken, thread, event)
            self._readings = {}
            self._spend(0)
            for thread, event in taken.items():
                self._keep(self._readings, self._machine.at_token_end(thread) if token >= 0 else thread, event)
        if not self._readings:
            raise FormatError("a text that was accepted is refused when it is read once more")

    def captured(self) -> tuple[Captured, ...]:
        """What is captured of the text if it is complete; else what is, however it goes on."""
        complete: _Readings = {}
        for thread, event in self._left(self._readings):
            state, _, frame = thread
            if state == END or (frame is None and state not in self._labels and self._machine.returns(state)):
                self._keep(complete, (END, 0, None), event)
        if complete:
            return tuple(self._parts(complete[END, 0, None]))
        first, *others = self._over_ends()
        certain = dict.fromkeys(self._parts(first))
        for event in others:
            if not certain:
                break
            parts = {*self._parts(event)}
            certain = {each: None for each in certain if each in parts}
        return tuple(certain)

    # -- steps -----------------------------------------------------------------------------------------

    def _over_token(self, token: int) -> _Readings:
        """Where a token leads that is taken by its id."""
        return self._step(
            (thread, event, moves)
            for thread, event in self._left(self._readings)
            for moves in self._machine.token_moves_at(thread, token)
        )

    def _step(self, moves: Iterable[tuple[Thread, _Event | None, Moves]]) -> _Readings:
        found: _Readings = {}
        for (_, count, frame), event, made in moves:
            for record, sequence in made:
                after: dict[Thread, None] = {}
                self._machine.make(record, sequence, count, frame, after)
                here = event
                for state in sequence:
                    here = self._event(state, here) if state in self._labels else here
                for thread in after:
                    self._keep(found, thread, here)
        if len(found) > _MOST_READINGS:
            raise BudgetExceededError(f"the text can be read in more than {_MOST_READINGS:,} ways")
        return found

    def _left(self, readings: _Readings) -> Iterator[tuple[Thread, _Event | None]]:
        """Readings, and those that leave the states on top that return."""
        found: _Readings = {}
        todo = list(readings.items())
        for thread, event in todo:  # grows as it goes
            if not self._keep(found, thread, event):
                continue
            state, _, frame = thread
            if state >= 0 and frame is not None and self._machine.returns(state):
                left = self._event(_LEFT, event) if state in self._labels else event
                todo.append(((frame.state, frame.count, frame.below), left))
            elif state in self._labels:
                todo.append(((END, 0, None), self._event(_LEFT, event)))
        self._spend(len(todo))
        return iter(found.items())

    def _over_ends(self) -> Iterator[_Event | None]:
        """The events of each reading, with those that come next whatever does."""
        for (state, _, frame), event in self._readings.items():
            while state in self._labels:
                event = self._event(_LEFT, event)
                if frame is None:
                    break
                state, frame = frame.state, frame.below
            yield event

    # -- events ----------------------------------------------------------------------------------------

    def _event(self, state: int, before: _Event | None) -> _Event:
        return _Event(self._at, state, 1 + (before.number if before else 0), before)

    def _keep(self, readings: _Readings, thread: Thread, event: _Event | None) -> bool:
        """Enter a reading if there is none that is as good. Returns whether it was."""
        if thread in readings and not self._is_before(event, readings[thread]):
            return False
        readings[thread] = event
        return True

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > _MOST_WORK:
            raise BudgetExceededError(f"what the text captures takes more than {_MOST_WORK:,} steps")

    def _is_before(self, one: _Event | None, other: _Event | None) -> bool:
        """Whether a reading is preferred to another one: at the first difference, to begin a part is best, to end one
        worst, and to do neither yet in between."""
        ours: list[_Event] = []
        theirs: list[_Event] = []
        while one is not other:
            numbers = one.number if one else 0, other.number if other else 0
            if one is not None and numbers[0] >= numbers[1]:
                ours.append(one)
                one = one.before
            if other is not None and numbers[1] >= numbers[0]:
                theirs.append(other)
                other = other.before
        self._spend((len(ours) + len(theirs)) // _EVENTS)
        for pair in zip_longest(reversed(ours), reversed(theirs)):
            ranks = [*map(_rank, pair)]
            if ranks[0] != ranks[1]:
                return ranks[0] < ranks[1]
        return False

    def _parts(self, event: _Event | None) -> Iterator[Captured]:
        """What was captured, by where it ended."""
        events: list[_Event] = []
        while event is not None:
            events.append(event)
            event = event.before
        self._spend(len(events))
        begun: list[_Event] = []
        for each in reversed(events):
            if each.state != _LEFT:
                begun.append(each)
                continue
            if not begun:
                raise FormatError("a rule that captures ends where none was begun")
            start = begun.pop()
            yield from self._labels[start.state].captured(start.at, each.at)


def _rank(event: _Event | None) -> tuple[int, int, int]:
    if event is None:
        return 1, 0, 0
    return (2, -event.at, 0) if event.state == _LEFT else (0, event.at, event.state)
