"""The parser's stack: LALR(1) moves over stacks that are shared, and remember what was asked of them.

A stack is a chain of parser states. Equal stacks are the same object, so what a stack accepts is worked out once, and a step
that was made before is a look-up. In programs the same few stacks come again and again: a list of statements
is one state, however long the list.

Some states can only reduce one rule, whatever comes next; what follows is up to the state that then is on top. So such a
reduction is made at once, and texts that differ no more come to the same stack: after ``x``, ``f(x)`` or ``(1)`` the same
may follow.

Answers say how far down they *looked*. All that lies lower makes no difference to them, so they hold for every stack with
the same states on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..errors import BudgetExceededError, FormatError
from .grammar_tables import GrammarTables, sets_of
from .parser_cover import Cover

#: Reductions before one terminal; a sound grammar makes as many as its stack is deep.
_MOST_REDUCTIONS = 1_000_000


class Accepted(NamedTuple):
    """The terminals that may come next, as a set, and the depth of the lowest state that was looked at."""

    terminals: int
    looked: int


class After(NamedTuple):
    """What a terminal leads to.

    Parameters
    ----------
    stacks:
        The stacks after it: one; none where it can't come; several where conflicts were kept, without those that
        others cover (`structgen.runtime.parser_cover`). With each the context in which the lexer reads on: that of
        the state which shifted the terminal, before any reduction.
    looked:
        The depth of the lowest state that was looked at.
    """

    stacks: tuple[tuple[Stack, int], ...]
    looked: int


class Stack:
    """A parser state on top of another stack, or of nothing; the lowest state has depth 0."""

    __slots__ = ("above", "accepted", "after", "below", "depth", "parses", "state")

    def __init__(self, state: int, below: Stack | None) -> None:
        self.state, self.below = state, below
        self.depth: int = 0 if below is None else below.depth + 1
        self.above: dict[int, Stack] = {}
        self.accepted: Accepted | None = None
        self.after: dict[int, After] = {}  # by terminal
        self.parses: dict[Any, Any] = {}  # see `structgen.runtime.parses`

    def states(self) -> Iterator[int]:
        """The states, the top first."""
        stack: Stack | None = self
        while stack is not None:
            yield stack.state
            stack = stack.below

    def under(self, count: int) -> Stack | None:
        """What is left without the uppermost states; None where there are no more."""
        stack: Stack | None = self
        for _ in range(count):
            if stack is None:
                break
            stack = stack.below
        return stack

    def top(self, count: int) -> tuple[int, ...]:
        """The uppermost states, the top first; fewer where there are no more."""
        found = []
        stack: Stack | None = self
        while stack is not None and count:
            found.append(stack.state)
            stack = stack.below
            count -= 1
        return tuple(found)


class Parser:
    """Moves over stacks.

    Parameters
    ----------
    tables:
        The parser. Where actions compete, all of them are followed.
    """

    def __init__(self, tables: GrammarTables) -> None:
        states = len(tables.context)
        self._shifts: list[dict[int, int]] = [{} for _ in range(states)]
        self._gotos: list[dict[int, int]] = [{} for _ in range(states)]
        self._reductions: list[list[tuple[int, int, int]]] = [[] for _ in range(states)]
        for state, symbol, target in tables.shift.tolist():
            self._shifts[state][symbol] = target
        for state, symbol, target in tables.goto.tolist():
            self._gotos[state][symbol] = target
        for (state, length, origin), terminals in zip(tables.reduce.tolist(), sets_of(tables.before), strict=True):
            self._reductions[state].append((length, origin, terminals))
        self._context: list[int] = tables.context.tolist()
        self._certain = [self._reductions[s][r - a] if r >= 0 else None for s, (a, r) in enumerate(_certain(tables))]
        self._shifted = [sum(1 << terminal for terminal in shifts) for shifts in self._shifts]
        #: The stack before the first terminal.
        self.start = Stack(0, None)
        #: How many stacks are known.
        self.stacks = 1
        #: Tells stacks that are needed from others; None where there is one at a time.
        self.cover = None if tables.is_deterministic else Cover(self)

    def accepted(self, stack: Stack) -> Accepted:
        """The terminals that may come next; exact, where lookaheads alone promise too much."""
        if stack.accepted is not None:
            return stack.accepted
        todo = [stack]
        while todo:
            here = todo[-1]
            if here.accepted is not None:
                todo.pop()
                continue
            found, looked, missing = self._shifted[here.state], here.depth, []
            for length, origin, terminals in self._reductions[here.state]:
                reduced = self._reduce(here, length, origin)
                if reduced.accepted is None:
                    missing.append(reduced)
                else:
                    found |= terminals & reduced.accepted.terminals
                    looked = min(looked, reduced.depth - 1, reduced.accepted.looked)
            if not missing:
                here.accepted = Accepted(found, looked)
                todo.pop()
            elif len(todo) > _MOST_REDUCTIONS:
                raise _endless()
            else:
                todo += missing
        assert stack.accepted is not None
        return stack.accepted

    def after(self, stack: Stack, terminal: int) -> After:
        """The stack after a terminal."""
        known = stack.after.get(terminal)
        if known is not None:
            return known
        found, looked = self._after(stack, terminal)
        if self.cover is not None and len(found) > 1:
            found, there = self.cover.thinned(found)
            looked = min(looked, there)
        answer = stack.after[terminal] = After(tuple(found), looked)
        return answer

    def _after(self, stack: Stack, terminal: int) -> tuple[list[tuple[Stack, int]], int]:
        """All stacks after a terminal, with their contexts, and the lowest depth looked at."""
        looked = stack.depth
        found: dict[tuple[Stack, int], None] = {}
        reached = {stack: None}
        for here in (todo := [stack]):  # grows as it goes
            target = self._shifts[here.state].get(terminal)
            if target is not None:
                after, there = self._shift(here, target)
                looked = min(looked, there)
                found[after, self._context[target]] = None
            for length, origin, terminals in self._reductions[here.state]:
                if terminals >> terminal & 1:
                    reduced = self._reduce(here, length, origin)
                    looked = min(looked, reduced.depth - 1)
                    if reduced not in reached:
                        reached[reduced] = None
                        todo.append(reduced)
            if len(todo) > _MOST_REDUCTIONS:
                raise _endless()
        return list(found), looked

    def _shift(self, stack: Stack, target: int) -> tuple[Stack, int]:
        """The stack after a shift and the reductions that are certain then, and the lowest depth looked at."""
        after, looked = self.push(stack, target), stack.depth
        while (certain := self._certain[after.state]) is not None:
            after = self._reduce(after, certain[0], certain[1])
            looked = min(looked, after.depth - 1)
        return after, looked

    # -- what stacks are compared by -------------------------------------------------------------------------

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self._shifts)

    def edges(self) -> Iterator[tuple[int, int]]:
        """The states that one symbol leads from, and to."""
        for moves in (self._shifts, self._gotos):
            for state, there in enumerate(moves):
                yield from ((state, target) for target in there.values())

    def complete(self, state: int) -> Iterator[tuple[int, int]]:
        """The rules that a state reduces, as length and nonterminal."""
        return ((length, origin) for length, origin, _ in self._reductions[state])

    def reduced(self, stack: Stack) -> list[Stack]:
        """The stacks that one reduction leads to, whatever comes next."""
        return [self._reduce(stack, length, origin) for length, origin, _ in self._reductions[stack.state]]

    def shifted(self, stack: Stack) -> Iterator[tuple[int, tuple[Stack, int], int]]:
        """By terminal that is shifted at once: the stack after it with its context, the lowest depth looked at."""
        for terminal, target in self._shifts[stack.state].items():
            after, looked = self._shift(stack, target)
            yield terminal, (after, self._context[target]), looked

    def every(self, stack: Stack, terminal: int) -> tuple[list[tuple[Stack, int]], int]:
        """All stacks after a terminal with their contexts, covered or not; and the lowest depth looked at."""
        return self._after(stack, terminal)

    def replaced(self, stack: Stack, length: int, origin: int) -> Stack | None:
        """The stack with a nonterminal in place of the uppermost states; None where it cannot be there."""
        here: Stack | None = stack
        for _ in range(length):
            here = here and here.below
        target = None if here is None else self._gotos[here.state].get(origin)
        return None if here is None or target is None else self.push(here, target)

    def _reduce(self, stack: Stack, length: int, origin: int) -> Stack:
        reduced = self.replaced(stack, length, origin)
        if reduced is None:
            raise FormatError("the parser's tables contradict themselves")
        return reduced

    def forget(self) -> None:
        """Forget what was asked of stacks, and that equal ones are the same; whoever holds one may go on with it."""
        todo = [self.start]
        while todo:
            stack = todo.pop()
            todo += stack.above.values()
            stack.above, stack.after, stack.parses, stack.accepted = {}, {}, {}, None
        self.stacks = 1
        if self.cover is not None:
            self.cover.forget()

    def push(self, stack: Stack, state: int) -> Stack:
        """A state on top of a stack; the same object for the same."""
        pushed = stack.above.get(state)
        if pushed is None:
            self.stacks += 1
            pushed = stack.above.setdefault(state, Stack(state, stack))
        return pushed


def _certain(tables: GrammarTables) -> list[tuple[int, int]]:
    """By state: its first reduction, and the one that it makes whatever comes next, or -1."""
    starts = np.searchsorted(tables.reduce[:, 0], np.arange(len(tables.context) + 1)).tolist()
    certain = tables.certain.tolist()
    return [(first, first if certain[state] else -1) for state, first in enumerate(starts[:-1])]


def _endless() -> BudgetExceededError:
    return BudgetExceededError(
        "the parser reduces without end", remedy="A rule of the grammar derives itself: take it out."
    )
