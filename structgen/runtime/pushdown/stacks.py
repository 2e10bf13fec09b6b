"""The stacks of an automaton as a graph, in which what threads have in common is there once (Tomita 1986).

A thread is a state with a count, and a stack. Threads with equal states and counts are one thread with a set of
stacks below, a `Fork`, since ``s U | s V = s (U | V)``. Frames and forks are interned: equal ones are one object.
So threads are at most as many as states with counts, and 2^n ways through n nested values take O(n) frames.

*What is left out.* A state that returns may leave the next byte to what lies below it. So whatever follows a stack
``t U`` also follows ``s ... t U``, where all states above ``t`` return; and whatever follows ``q V`` also follows
``q U``, where ``U`` has all that ``V`` has. Of two such stacks in one set the first adds nothing.

*Returning.* Before a byte is read, all frames that it may be left to are threads beside those on top, and made one
where their states and counts are equal. So a step pushes as many frames as there are states with moves, however many
ways led there: frames grow with the text, not with the number of ways to read it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...budget import StepMeter

#: The state of a text that is complete, with nothing on the stack; and that of a `Fork`, which has none.
END, FORK = -1, -2

#: The part of a count that kernels know: what a loop has counted, or a set. Above it are the tokens that have ended
#: in a state with a token bound.
LOOP_COUNT = (1 << 64) - 1

#: Among so many threads or stacks it is looked for what adds nothing, through so many frames that a byte may be left
#: to, and so far below equal ones. (What is not found costs time, no more.)
_FEW, _LOOKED, _DEEP = 32, 32, 4

#: Comparisons of stacks that are remembered; past that the memory starts afresh.
_MOST_COMPARED = 1 << 16

#: Counts the work of steps of every automaton: a thread makes one at a time.
_STEPS = StepMeter()


class Frame:
    """A state to return to, with its count, and the frames below it.

    ``ends`` is whether all of them may return, so that the text may be complete.
    """

    __slots__ = ("below", "closed", "count", "ends", "state")

    def __init__(self, state: int, count: int, below: Stack, ends: bool) -> None:
        self.state, self.count, self.ends = state, count, ends
        self.below = below
        self.closed: tuple[Thread, ...] | None = None  # see `Stacks.closed`

    def __repr__(self) -> str:
        shown: list[str] = []
        frame: Stack = self
        while frame is not None and len(shown) < 12:
            if isinstance(frame, Fork):
                shown.append(f"({len(frame.members)} stacks)")
                break
            shown.append(f"{frame.state}#{frame.count}" if frame.count else str(frame.state))
            frame = frame.below
        return f"<{' '.join(shown)}>"


#: None where nothing is on it.
Stack = Frame | None

#: State, count, and the stack.
Thread = tuple[int, int, Stack]


class Fork(Frame):
    """Several stacks at once. To pop one is to come to its ``tops``, the threads that stand where a member does."""

    __slots__ = ("members", "tops")

    def __init__(self, members: dict[Stack, None]) -> None:
        super().__init__(FORK, 0, None, any(member is None or member.ends for member in members))
        self.members = members
        self.tops: tuple[Thread, ...] | None = None


class Stacks:
    """The frames and forks of one automaton.

    Parameters
    ----------
    returns:
        By state, 1 where the next byte may be left to the state below.
    telling:
        States that are told apart from what is below them although they return: no stack is left out for them.
    """

    def __init__(self, returns: bytes | bytearray, telling: Collection[int] = ()) -> None:
        #: Counts the work of a step.
        self.steps = _STEPS
        self._returns = returns
        self._telling = telling
        self._frames: dict[Thread, Frame] = {}
        self._forks: dict[frozenset[Stack], Fork] = {}
        self._members = 0  # of all forks
        self._subsumed: dict[tuple[Stack, Stack], bool] = {}

    def __len__(self) -> int:
        return len(self._frames) + self._members

    def forget(self) -> None:
        """Let go of all frames; those that nobody stands on go."""
        self._frames, self._forks, self._subsumed, self._members = {}, {}, {}, 0

    def push(self, state: int, count: int, below: Stack) -> Frame:
        """The frame of a state on a stack."""
        key = state, count, below
        found = self._frames.get(key)
        if found is None:
            ends = bool(self._returns[state]) and (below is None or below.ends)
            found = self._frames.setdefault(key, Frame(state, count, below, ends))
        return found

    def of_cell(
        self,
        cell: int,
        cells: NDArray[np.int64],
        known: dict[int, Stack],
        count_of: Callable[[int], int] = lambda word: word,
    ) -> Stack:
        """The inverse of `laid_out` for one cell; ``known`` has the stacks of those before, and of -1.

        ``count_of`` says what a kernel's count stands for.
        """
        todo = [cell]
        while todo:
            here = todo[-1]
            if here in known:
                todo.pop()
                continue
            state, count, below = cells[here, :3].tolist()
            lower = [below]
            if state == FORK:
                lower = [count]
                while below >= 0:
                    lower.append(int(cells[below, 1]))
                    below = int(cells[below, 2])
            missing = [number for number in lower if number not in known]
            if missing:
                todo += missing
            elif state == FORK:
                known[here] = self.union([known[number] for number in lower])
            else:
                known[here] = self.push(state, count_of(count), known[below])
        return known[cell]

    def opened(self, stack: Stack) -> tuple[Thread, ...]:
        """The threads that a thread becomes by popping its state off a stack."""
        if stack is None:
            return ((END, 0, None),)
        if not isinstance(stack, Fork):
            return ((stack.state, stack.count, stack.below),)
        if stack.tops is None:
            stack.tops = self.united(dict.fromkeys(top for member in stack.members for top in self.opened(member)))
        return stack.tops

    def closed(self, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """Threads, and all that the next byte may be left to; each only for the moves of its own state."""
        returns = self._returns
        found: dict[Thread, None] = dict.fromkeys(threads)
        for state, _, stack in threads:
            if state >= 0 and returns[state] and stack is not None:
                found.update(dict.fromkeys(stack.closed or self._close(stack)))
        if len(found) <= len(threads):
            return threads
        return self._by_top(found)

    def _close(self, stack: Frame) -> tuple[Thread, ...]:
        """`closed` for the threads that stand where a stack does; kept in its frames, the lowest one first."""
        todo = [stack]
        while todo:
            here = todo[-1]
            if isinstance(here, Fork):
                lower = [member for member in here.members if member is not None]
                found: dict[Thread, None] = {}
            else:
                lower = [here.below] if here.below is not None and self._returns[here.state] else []
                found = {(here.state, here.count, here.below): None}
            missing = [each for each in lower if each.closed is None]
            if missing:
                todo += missing
                continue
            todo.pop()
            self.steps.spend(sum(len(each.closed or ()) for each in lower))
            for each in lower:
                found.update(dict.fromkeys(each.closed or ()))
            here.closed = self._by_top(found)
        return stack.closed or ()

    def _by_top(self, threads: Collection[Thread]) -> tuple[Thread, ...]:
        """Threads, those with equal states and counts made one."""
        if len({(state, count) for state, count, _ in threads}) == len(threads):
            return tuple(threads)
        by_top: dict[tuple[int, int], list[Stack]] = {}
        for state, count, stack in threads:
            by_top.setdefault((state, count), []).append(stack)
        return tuple(
            [
                (state, count, stacks[0] if len(stacks) == 1 else self.union(stacks))
                for (state, count), stacks in by_top.items()
            ]
        )

    def united(self, threads: Collection[Thread]) -> tuple[Thread, ...]:
        """Threads merged by state and count, without those whose texts another thread takes as well."""
        found = self._by_top(threads)
        returns = self._returns
        if not 1 < len(found) <= _FEW or not any(state >= 0 and returns[state] for state, _, _ in found):
            return found
        left = {(state, count): stack for state, count, stack in found}
        for state, count, stack in found:
            if state < 0 or not returns[state] or (state, count) not in left:
                continue
            if stack is None or stack.ends:
                left.pop((END, 0), None)
            for frame in self._handed(stack):
                lower = frame.state, frame.count
                if lower in left and lower != (state, count) and self._subsumes(frame.below, left[lower], _DEEP):
                    del left[lower]
        return tuple([(state, count, stack) for (state, count), stack in left.items()])

    def union(self, stacks: Iterable[Stack]) -> Stack:
        """The union of stacks: one of them, or a fork."""
        members: dict[Stack, None] = {}
        for stack in stacks:
            if isinstance(stack, Fork):
                members.update(stack.members)
            else:
                members[stack] = None
        self.steps.spend(len(members))
        if 1 < len(members) <= _FEW:
            self._thin(members)
        if len(members) == 1:
            return next(iter(members))
        key = frozenset(members)
        fork = self._forks.get(key)
        if fork is None:
            fork = self._forks.setdefault(key, Fork(members))
            self._members += len(members)
        return fork

    def _thin(self, members: dict[Stack, None]) -> None:
        """Leave out the stacks that add nothing to another one."""
        by_top: dict[tuple[int, int], list[Frame]] = {}
        for frame in [member for member in members if member is not None]:
            if frame not in members:
                continue
            if self._returns[frame.state] and frame.state not in self._telling:
                if frame.ends:
                    members.pop(None, None)
                for lower in self._handed(frame.below):
                    members.pop(lower, None)
            others = by_top.setdefault((frame.state, frame.count), [])
            for other in others:
                if other in members and self._subsumes(other.below, frame.below, _DEEP):
                    del members[frame]
                    break
                if other in members and self._subsumes(frame.below, other.below, _DEEP):
                    del members[other]
            others.append(frame)

    def _subsumes(self, stack: Stack, other: Stack, deep: int) -> bool:
        """Whether ``other`` is seen to add nothing to ``stack``."""
        if stack is other:
            return True
        if stack is None or deep == 0:
            return False
        found = self._subsumed.get((stack, other))
        if found is None:
            if len(self._subsumed) >= _MOST_COMPARED:
                self._subsumed = {}
            found = self._subsumed[stack, other] = self._find_subsumed(stack, other, deep)
        return found

    def _find_subsumed(self, stack: Frame, other: Stack, deep: int) -> bool:
        handed = dict.fromkeys(self._handed(stack))
        for each in other.members if isinstance(other, Fork) else (other,):
            if each is None:
                if not stack.ends:
                    return False
            elif each not in handed and not any(
                frame.state == each.state
                and frame.count == each.count
                and self._subsumes(frame.below, each.below, deep - 1)
                for frame in handed
            ):
                return False
        return True

    def _handed(self, stack: Stack) -> Iterator[Frame]:
        """The frames that the next byte may be left to, the upper ones first: the first `_LOOKED` of them."""
        todo: dict[Stack, None] = {stack: None}
        looked = 0
        while todo and looked < _LOOKED:
            here = next(iter(todo))
            del todo[here]
            looked += 1
            if here is None:
                continue
            if isinstance(here, Fork):
                todo.update(here.members)
                continue
            yield here
            if self._returns[here.state] and here.state not in self._telling:
                todo[here.below] = None


def _loop_count(count: int) -> int:
    return count & LOOP_COUNT


def laid_out(
    threads: Iterable[Thread], most: int = 1 << 62, word: Callable[[int], int] = _loop_count
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Threads and the frames below them, down to the bottom, as `structgen.kernels` has threads and cells.

    Only some of the frames, and no thread, where there are more than ``most`` frames. ``word`` says what kernels
    have for a count or a set.
    """
    numbers: dict[Stack, int] = {None: -1}
    cells: list[tuple[int, int, int, int, int]] = []
    todo = [stack for _, _, stack in threads]
    while todo:
        here = todo[-1]
        if here is None or here in numbers:
            todo.pop()
            continue
        lower = list(here.members) if isinstance(here, Fork) else [here.below]
        missing = [each for each in lower if each not in numbers]
        if missing:
            todo += missing
            continue
        if len(cells) > most:
            return np.empty((0, 3), np.int64), np.array(cells, np.int64)
        if isinstance(here, Fork):
            number, ends = -2, 0
            for member in sorted(lower, key=numbers.__getitem__, reverse=True):
                ends |= int(member is None or member.ends)
                cells.append((FORK, numbers[member], number, ends, 0))
                number = len(cells) - 1
        else:
            cells.append((here.state, word(here.count), numbers[here.below], int(here.ends), 0))
            number = len(cells) - 1
        numbers[here] = number
    found = [(state, word(count), numbers[stack]) for state, count, stack in threads if state >= 0]
    return np.array(found, np.int64).reshape(-1, 3), np.array(cells, np.int64).reshape(-1, 5)
