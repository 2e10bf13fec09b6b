"""The parser's stack: LALR(1) moves over stacks that are shared, and remember what was asked of them.

A stack is a chain of parser states. Equal stacks are the same object, so what a stack accepts is worked out once, and a step
that was made before is a look-up. In programs the same few stacks come again and again: a list of statements
is one state, however long the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import BudgetExceededError, FormatError
from .grammar_tables import GrammarTables, sets_of

#: Reductions before one terminal; a sound grammar makes as many as its stack is deep.
_MOST_REDUCTIONS = 1_000_000


class Stack:
    """A parser state on top of another stack, or of nothing."""

    __slots__ = ("above", "accepted", "after", "below", "state")

    def __init__(self, state: int, below: Stack | None) -> None:
        self.state, self.below = state, below
        self.above: dict[int, Stack] = {}
        self.accepted: int | None = None  # a set of terminals
        self.after: dict[int, Stack | None] = {}  # by terminal

    def states(self) -> Iterator[int]:
        """The states, the top first."""
        stack: Stack | None = self
        while stack is not None:
            yield stack.state
            stack = stack.below


class Parser:
    """Moves over stacks.

    Parameters
    ----------
    tables:
        The parser; without conflicts.
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
        self._shifted = [sum(1 << terminal for terminal in shifts) for shifts in self._shifts]
        #: The stack before the first terminal.
        self.start = Stack(0, None)

    def accepted(self, stack: Stack) -> int:
        """The terminals that may come next, as a set; exact, where lookaheads alone promise too much."""
        if stack.accepted is not None:
            return stack.accepted
        todo = [stack]
        while todo:
            here = todo[-1]
            if here.accepted is not None:
                todo.pop()
                continue
            found, missing = self._shifted[here.state], []
            for length, origin, terminals in self._reductions[here.state]:
                reduced = self._reduce(here, length, origin)
                if reduced.accepted is None:
                    missing.append(reduced)
                else:
                    found |= terminals & reduced.accepted
            if not missing:
                here.accepted = found
                todo.pop()
            elif len(todo) > _MOST_REDUCTIONS:
                raise _endless()
            else:
                todo += missing
        assert stack.accepted is not None
        return stack.accepted

    def after(self, stack: Stack, terminal: int) -> Stack | None:
        """The stack after a terminal; None where it can't come."""
        try:
            return stack.after[terminal]
        except KeyError:
            pass
        here: Stack | None = stack
        for _ in range(_MOST_REDUCTIONS):
            assert here is not None
            target = self._shifts[here.state].get(terminal)
            if target is not None:
                here = self._push(here, target)
                break
            for length, origin, terminals in self._reductions[here.state]:
                if terminals >> terminal & 1:
                    here = self._reduce(here, length, origin)
                    break
            else:
                here = None
                break
        else:
            raise _endless()
        stack.after[terminal] = here
        return here

    def _reduce(self, stack: Stack, length: int, origin: int) -> Stack:
        here: Stack | None = stack
        for _ in range(length):
            here = here and here.below
        target = None if here is None else self._gotos[here.state].get(origin)
        if here is None or target is None:
            raise FormatError("the parser's tables contradict themselves")
        return self._push(here, target)

    @staticmethod
    def _push(stack: Stack, state: int) -> Stack:
        pushed = stack.above.get(state)
        if pushed is None:
            pushed = stack.above.setdefault(state, Stack(state, stack))
        return pushed


def _endless() -> BudgetExceededError:
    return BudgetExceededError(
        "the parser reduces without end", remedy="A rule of the grammar derives itself: take it out."
    )
