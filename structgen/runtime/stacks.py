"""The stacks of an automaton as a graph, in which what threads have in common is there once (Tomita 1986).

A thread is a state with a count, and a stack. Threads with equal states and counts are one thread with a set of
stacks below, a `Fork`, since ``s U | s V = s (U | V)``. Frames and forks are interned: equal ones are one object.
So threads are at most as many as states with counts, and 2^n ways through n nested values take O(n) frames.

*What is left out.* A state that returns may leave the next byte to what lies below it. So whatever follows a stack
``t U`` also follows ``s ... t U``, where all states above ``t`` return: of both in one set, the shorter adds nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

#: The state of a text that is complete, with nothing on the stack; and that of a `Fork`, which has none.
END, FORK = -1, -2

#: Frames that a search for a stack that adds nothing looks at. (What it does not find costs time, no more.)
_LOOKED = 32


class Frame:
    """A state to return to, with its count, and the frames below it.

    ``ends`` is whether all of them may return, so that the text may be complete.
    """

    __slots__ = ("below", "count", "ends", "state")

    def __init__(self, state: int, count: int, below: Stack, ends: bool) -> None:
        self.state, self.count, self.ends = state, count, ends
        self.below = below

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
    """

    def __init__(self, returns: bytes) -> None:
        self._returns = returns
        self._frames: dict[Thread, Frame] = {}
        self._forks: dict[frozenset[Stack], Fork] = {}

    def __len__(self) -> int:
        return len(self._frames) + len(self._forks)

    def forget(self) -> None:
        """Let go of all frames; those that nobody stands on go."""
        self._frames, self._forks = {}, {}

    def push(self, state: int, count: int, below: Stack) -> Frame:
        """The frame of a state on a stack."""
        key = state, count, below
        found = self._frames.get(key)
        if found is None:
            ends = bool(self._returns[state]) and (below is None or below.ends)
            found = self._frames.setdefault(key, Frame(state, count, below, ends))
        return found

    def opened(self, stack: Stack) -> tuple[Thread, ...]:
        """The threads that a thread becomes by popping its state off a stack."""
        if stack is None:
            return ((END, 0, None),)
        if not isinstance(stack, Fork):
            return ((stack.state, stack.count, stack.below),)
        if stack.tops is None:
            stack.tops = self.united(dict.fromkeys(top for member in stack.members for top in self.opened(member)))
        return stack.tops

    def united(self, threads: Collection[Thread]) -> tuple[Thread, ...]:
        """Threads, those with equal states and counts made one, without those that add nothing."""
        by_top: dict[tuple[int, int], list[Stack]] = {}
        for state, count, stack in threads:
            by_top.setdefault((state, count), []).append(stack)
        if len(by_top) == len(threads):
            found = {top: stacks[0] for top, stacks in by_top.items()}
        else:
            found = {top: self.union(stacks) for top, stacks in by_top.items()}
        if len(found) > 1:
            self._thin(found)
        return tuple([(state, count, stack) for (state, count), stack in found.items()])

    def union(self, stacks: Iterable[Stack]) -> Stack:
        """All of some stacks."""
        members: dict[Stack, None] = {}
        for stack in stacks:
            if isinstance(stack, Fork):
                members.update(stack.members)
            else:
                members[stack] = None
        if len(members) > 1:
            for frame in [member for member in members if member is not None and self._returns[member.state]]:
                if frame.ends:
                    members.pop(None, None)
                for lower in self._handed(frame.below):
                    members.pop(lower, None)
                if len(members) == 1:
                    break
        if len(members) == 1:
            return next(iter(members))
        key = frozenset(members)
        fork = self._forks.get(key)
        return fork if fork is not None else self._forks.setdefault(key, Fork(members))

    def _thin(self, found: dict[tuple[int, int], Stack]) -> None:
        """Leave out the threads that another one comes to by returning."""
        for top, stack in list(found.items()):
            if top[0] < 0 or not self._returns[top[0]]:
                continue
            if stack is None or stack.ends:
                found.pop((END, 0), None)
            for frame in self._handed(stack):
                lower = frame.state, frame.count
                if lower in found and lower != top and _is_within(found[lower], frame.below):
                    del found[lower]
            if len(found) == 1:
                return

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
            if self._returns[here.state]:
                todo[here.below] = None


def _is_within(stack: Stack, other: Stack) -> bool:
    """Whether one set of stacks is part of another one."""
    if stack is other:
        return True
    if not isinstance(other, Fork):
        return False
    return all(each in other.members for each in (stack.members if isinstance(stack, Fork) else (stack,)))
