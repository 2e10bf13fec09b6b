"""The temperature at which the next token is sampled, by the rules that it may belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from ..stacks import Fork, Stack, Thread


class StateSequences(Protocol):
    """What knows the moves of threads."""

    def sequences_at(self, thread: Thread) -> Iterator[tuple[int, ...]]:
        """The states that a move of a thread's own state puts in its place, for each of its moves."""


def highest(machine: StateSequences, threads: Iterable[Thread], temperatures: Mapping[int, float]) -> float | None:
    """The highest of those that the innermost rules with one have, whatever comes next; None where none has one.

    ``threads`` are all that the next byte may be left to; ``temperatures`` are by labelled state.
    """
    found: set[float] = set()
    outer: dict[Stack, None] = {}
    for thread in threads:
        for sequence in machine.sequences_at(thread):
            said = [temperatures[state] for state in sequence if state in temperatures]
            if said:
                found.add(said[-1])
            else:
                outer[thread[2]] = None
    todo = list(outer)
    for stack in todo:  # grows as it goes
        if stack is None:
            continue
        if stack.state in temperatures:
            found.add(temperatures[stack.state])
            continue
        for below in stack.members if isinstance(stack, Fork) else (stack.below,):
            if below not in outer:
                outer[below] = None
                todo.append(below)
    return max(found, default=None)
