"""The parser's stack: LALR(1) moves over stacks that are shared, and remember what was asked of them.

A stack is a chain of parser states. Equal stacks are the same object, so what a stack accepts is worked out once, and
a step that was made before is a look-up. In programs the same few stacks come again and again: a list of statements
is one state, however long the list.

Some states can only reduce one rule, whatever comes next; what follows is up to the state that then is on top. So
such a reduction is made at once, and texts that differ no more come to the same stack: after ``x``, ``f(x)`` or
``(1)`` the same may follow.

For the same reason states are taken out of the stack where what is left accepts the same (`GrammarTables.same`, found
by `structgen.compiler.grammar.parser.equivalent`): after ``a, b``, in a list, the same may follow as after ``b``.

Answers say how far down they *read*. All that lies lower makes no difference to them, so they hold for every stack
with the same states on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy
from itertools import count as numbers
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....errors import FormatError
from ...core.bitsets import sets_of
from ...core.lazy_table import LazyTable
from ..tables import SYMBOLS, GrammarTables

#: Reductions before one terminal, besides so many for each state of the stack as the parser has; a sound grammar
#: makes less.
_MOST_REDUCTIONS = 1_000_000

#: Forgotten stacks that are taken apart whenever another one is made.
_PIECES = 4

#: What nothing was entered into yet; never written to.
_NOTHING: dict[Any, Any] = {}


class Accepted(NamedTuple):
    """The terminals that may come next, as a set, and the depth of the lowest state that was looked at."""

    terminals: int
    depth_read: int


class After(NamedTuple):
    """What a terminal leads to.

    Parameters
    ----------
    stacks:
        The stacks after it: one; none where it can't come; several where conflicts were kept
        (`structgen.runtime.grammar.parser.gss`). With each the context in which the lexer reads on: that of
        the state which shifted the terminal, before any reduction.
    depth_read:
        The depth of the lowest state that was looked at.
    """

    stacks: tuple[tuple[Stack, int], ...]
    depth_read: int


class Stack:
    """A parser state on top of another stack, or of nothing; the lowest state has depth 0."""

    __slots__ = ("above", "accepted", "after", "below", "cell", "depth", "epoch", "parses", "reduced", "state")

    def __init__(self, state: int, below: Stack | None) -> None:
        self.state, self.below = state, below
        self.depth: int = 0 if below is None else below.depth + 1
        # Dictionaries of their own come with the first entry: most stacks are met once, and nothing is asked of them.
        self.above: dict[int, Stack] = _NOTHING
        self.accepted: Accepted | None = None
        self.after: dict[int, After] = _NOTHING  # by terminal
        self.reduced: tuple[tuple[Stack, int], ...] | None = None  # where conflicts are kept
        self.parses: dict[Any, Any] = _NOTHING  # see `structgen.runtime.grammar.parser.parser_driver`
        self.cell = self.epoch = 0  # see `structgen.runtime.grammar.kernel_gss.KernelGss`

    def remember(self, key: object, parse: Any) -> Any:
        """Enter a parse on this stack, if there is none; returns the one that is there."""
        entered = self.parses
        if entered is _NOTHING:
            entered = self.parses = {}
        return entered.setdefault(key, parse)

    @property
    def belows(self) -> tuple[Stack, ...]:
        """What the state is on top of: one stack, or none; several for a
        `structgen.runtime.grammar.parser.gss.Merge`."""
        return () if self.below is None else (self.below,)

    def enter(self, pushed: Stack) -> Stack:
        """Enter a stack that is this one with a state on top; returns the one that is there."""
        entered = self.above
        if entered is _NOTHING:
            entered = self.above = {}
        return entered.setdefault(pushed.state, pushed)

    def remember_after(self, terminal: int, answer: After) -> None:
        """Enter what a terminal leads to."""
        entered = self.after
        if entered is _NOTHING:
            entered = self.after = {}
        entered[terminal] = answer

    def forget(self) -> Iterable[Stack]:
        """Forget what was asked of the stack, and that others are above it, which are returned."""
        above, parses = self.above, self.parses
        self.above, self.after, self.parses, self.accepted, self.reduced = _NOTHING, _NOTHING, _NOTHING, None, None
        for parse in parses.values():
            parse.after = {}
        return above.values()

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

    def top(self, count: int) -> tuple[object, ...]:
        """The uppermost states, the top first; fewer where there are no more.

        One that is on top of several stacks stands for all that they are.
        """
        found: list[object] = []
        last: Stack = self
        stack: Stack | None = self
        while stack is not None and count:
            found.append(stack.state)
            last, stack = stack, stack.below
            count -= 1
        if count and len(last.belows) > 1:
            found.append(last)
        return tuple(found)


class Parser:
    """Moves over stacks.

    Parameters
    ----------
    tables:
        A parser none of whose actions compete; see `structgen.runtime.grammar.parser.gss` for others.
    """

    def __init__(self, tables: GrammarTables) -> None:
        #: By state, each when the parser first comes to it.
        self._shifts = LazyTable(_moves(tables, tables.shift))
        self._gotos = LazyTable(_moves(tables, tables.goto))
        self._reductions = LazyTable(_reductions(tables))
        self._defaults = LazyTable(lambda state: self._reductions[state][0] if tables.defaults[state] else None)
        end = tables.end
        self._before_end = LazyTable(
            lambda s: end in self._shifts[s] or any(before >> end & 1 for *_, before in self._reductions[s])
        )
        self._shifted = LazyTable(lambda state: sum(1 << terminal for terminal in self._shifts[state]))
        self._context: list[int] = tables.context.tolist()
        self._states = len(tables.context)
        self._same = LazyTable(_same(tables))
        #: The stack before the first terminal.
        self.start: Stack = Stack(0, None)
        #: How many stacks are known.
        self.stacks = 1
        #: Forgotten ones that are taken apart as others are made.
        self._forgotten: list[Stack] = []

    def whole(self) -> Parser:
        """The same that takes nothing out of stacks, and knows none yet."""
        found = copy(self)
        found._same, found.start, found.stacks, found._forgotten = LazyTable(lambda _: []), Stack(0, None), 1, []
        return found

    def _check(self, done: int, stack: Stack) -> None:
        """Raise `FormatError` where the parser reduces without end; a grammar that does is refused when compiling."""
        if done > _MOST_REDUCTIONS + stack.depth * self._states:
            raise FormatError("the parser's tables contradict themselves")

    def accepted(self, stack: Stack) -> Accepted:
        """The terminals that may come next; exact, where lookaheads alone promise too much."""
        # Another thread may make the parser forget at any time, so what is remembered is read once.
        if (known := stack.accepted) is not None:
            return known
        todo = [stack]
        while True:
            here = todo[-1]
            answer = here.accepted
            if answer is None:
                found, depth_read, missing = self._shifted[here.state], here.depth, []
                for reduced, before in self.reduced(here):
                    after = reduced.accepted
                    if after is None:
                        missing.append(reduced)
                    else:
                        found |= before & after.terminals
                        depth_read = min(depth_read, reduced.depth - 1, after.depth_read)
                if missing:
                    self._check(len(todo), stack)
                    todo += missing
                    continue
                answer = here.accepted = Accepted(found, depth_read)
            todo.pop()
            if not todo:
                return answer

    def reduced(self, stack: Stack, terminals: int = -1) -> Iterable[tuple[Stack, int]]:
        """The stacks that one reduction before some terminals leads to, each with those before which it is made."""
        return [
            (self._reduce(stack, length, origin), before)
            for length, origin, before in self._reductions[stack.state]
            if before & terminals
        ]

    def accepts(self, stack: Stack, terminal: int) -> bool:
        """Whether a terminal may come next: as `accepted` says, in less time where that is not known."""
        if (known := stack.accepted) is not None:
            return bool(known.terminals >> terminal & 1)
        return any(terminal in self._shifts[here.state] for here in self._reached(stack, terminal))

    def may_be_last(self, stack: Stack, terminal: int) -> bool:
        """Whether the text may be complete after a terminal, as far as the table tells: never False where it may."""
        targets = (self._shifts[here.state].get(terminal) for here in self._reached(stack, terminal))
        return any(target is not None and self._before_end[target] for target in targets)

    def _reached(self, stack: Stack, terminal: int) -> Iterator[Stack]:
        """The stack, and all that it is reduced to before a terminal."""
        known = {stack}
        for here in (todo := [stack]):  # grows as it goes
            yield here
            for length, origin, terminals in self._reductions[here.state]:
                if terminals >> terminal & 1:
                    reduced = self._reduce(here, length, origin)
                    if reduced not in known:
                        known.add(reduced)
                        todo.append(reduced)
            if len(todo) > _MOST_REDUCTIONS:
                self._check(len(todo), stack)

    def after(self, stack: Stack, terminal: int) -> After:
        """The stack after a terminal."""
        known = stack.after.get(terminal)
        if known is not None:
            return known
        answer = self._find(stack, terminal)
        stack.remember_after(terminal, answer)
        return answer

    def _find(self, stack: Stack, terminal: int) -> After:
        depth_read = stack.depth
        found: dict[tuple[Stack, int], None] = {}
        reached = {stack: None}
        for here in (todo := [stack]):  # grows as it goes
            target = self._shifts[here.state].get(terminal)
            if target is not None:
                after, there = self._shift(here, target)
                depth_read = min(depth_read, there)
                found[after, self._context[target]] = None
            for length, origin, terminals in self._reductions[here.state]:
                if terminals >> terminal & 1:
                    reduced = self._reduce(here, length, origin)
                    depth_read = min(depth_read, reduced.depth - 1)
                    simple, there = self._simplest(reduced)
                    depth_read = min(depth_read, there)
                    if simple not in reached:  # else what stands for it is what it comes from, by something empty
                        reduced = simple
                    if reduced not in reached:
                        reached[reduced] = None
                        todo.append(reduced)
            if len(todo) > _MOST_REDUCTIONS:
                self._check(len(todo), stack)
        return After(tuple(found), depth_read)

    def _shift(self, stack: Stack, target: int) -> tuple[Stack, int]:
        """The stack after a shift and the default reductions behind it, and the lowest depth looked at."""
        after, depth_read = self.push(stack, target), stack.depth
        for done in numbers():
            if done > _MOST_REDUCTIONS:
                self._check(done, stack)
            defaults = self._defaults[after.state]
            if defaults is None:
                after, there = self._simplest(after)
                return after, min(depth_read, there)
            after = self._reduce(after, defaults[0], defaults[1])
            depth_read = min(depth_read, after.depth - 1)
        raise AssertionError

    def mentioned(self, state: int) -> int:
        """The terminals before which a state does anything, as a set: more than are accepted, and none less."""
        found = self._shifted[state]
        for _, _, terminals in self._reductions[state]:
            found |= terminals
        return found

    def shifted_to(self, state: int, terminal: int) -> int | None:
        """The state that a terminal is shifted to, if it is."""
        return self._shifts[state].get(terminal)

    def reductions(self, state: int, terminal: int) -> Iterator[tuple[int, int]]:
        """The length and the nonterminal of each reduction that is made before a terminal."""
        return ((length, origin) for length, origin, before in self._reductions[state] if before >> terminal & 1)

    def goto(self, state: int, origin: int) -> int | None:
        """The state on top of another one and a nonterminal."""
        return self._gotos[state].get(origin)

    def context(self, state: int) -> int:
        """The context in which the lexer reads on behind a terminal that was shifted to a state."""
        return self._context[state]

    def _simplest(self, stack: Stack) -> tuple[Stack, int]:
        """The simplest stack known to accept the same, and the depth of the lowest state that was looked at.

        What does not apply leaves the stack as it is, so only what applied counts.
        """
        depth_read, start = stack.depth, stack
        for done in numbers():
            if done > _MOST_REDUCTIONS:
                self._check(done, start)
            below = -1 if stack.below is None else stack.below.state
            known = self._same[(below + 1) * self._states + stack.state]
            found = next(filter(None, (_replaced(stack, *each) for each in known)), None)
            if found is None:
                return stack, depth_read
            stack, lowest, symbols = found
            depth_read = min(depth_read, lowest)
            for symbol in symbols:
                stack = self.push(stack, self._read(stack.state, symbol))
        raise AssertionError

    def _read(self, state: int, symbol: int) -> int:
        """The state after a symbol of either kind."""
        target = self._shifts[state].get(symbol)
        target = self._gotos[state].get(symbol) if target is None else target
        if target is None:
            raise FormatError("the parser's tables contradict themselves")
        return target

    def _reduce(self, stack: Stack, length: int, origin: int) -> Stack:
        """The stack with a nonterminal in place of the uppermost states."""
        here = stack.under(length) if length else stack
        target = None if here is None else self._gotos[here.state].get(origin)
        if here is None or target is None:
            raise FormatError("the parser's tables contradict themselves")
        return self.push(here, target)

    def forget(self) -> None:
        """Forget what was asked of stacks, and that equal ones are the same; whoever holds one may go on with it.

        To free them takes as long as hundreds of steps, which share it.
        """
        self._forgotten += self.start.forget()
        self.stacks = 1

    def push(self, stack: Stack, state: int) -> Stack:
        """A state on top of a stack; the same object for the same."""
        pushed = stack.above.get(state)
        if pushed is None:
            self.stacks += 1
            pushed = stack.enter(Stack(state, stack))
            if self._forgotten:
                self._take_apart()
        return pushed

    def _take_apart(self) -> None:
        """Have some forgotten stacks lead nowhere. Other threads may do the same."""
        with suppress(IndexError):
            for _ in range(_PIECES):
                self._forgotten += self._forgotten.pop().forget()


#: What a stack may be replaced by: states from its top down, how many are taken away, what is read in their place.
_Same: TypeAlias = tuple[tuple[int, ...], int, tuple[int, ...]]


def _same(tables: GrammarTables) -> Callable[[int], list[_Same]]:
    """By state on top, and the number of states for each one up to the state below it: what may be replaced.

    See `GrammarTables.same`.
    """
    states = len(tables.context)
    tops = tables.same[:, 2 + SYMBOLS]
    same = tables.same[np.argsort(tops, kind="stable")]
    starts = np.searchsorted(same[:, 2 + SYMBOLS], np.arange(states + 1)).tolist()
    symbol_of = np.full(states, -1, np.int32)
    for moves in (tables.goto, tables.shift):
        symbol_of[moves[:, 2]] = moves[:, 1]

    def of(key: int) -> list[_Same]:
        below, state = divmod(key, states)
        found: list[_Same] = []
        for kept, popped, *rest in same[starts[state] : starts[state + 1]].tolist():
            there = tuple(s for s in rest[SYMBOLS:] if s >= 0)
            if there[1:2] not in ((), (below - 1,)):
                continue
            symbols = [symbol for symbol in rest[:SYMBOLS] if symbol >= 0]
            if kept:
                symbols.append(int(symbol_of[state]))
            found.append((there, kept + popped, tuple(symbols)))
        return found

    return of


def _replaced(
    stack: Stack, states: tuple[int, ...], popped: int, symbols: tuple[int, ...]
) -> tuple[Stack, int, tuple[int, ...]] | None:
    """What is left if the stack has certain states on top, the lowest depth looked at, and what is read upon it."""
    here: Stack | None = stack
    left: Stack | None = None
    for count, state in enumerate(states, 1):
        if here is None or here.state != state:
            return None
        here = here.below
        if count == popped:
            left = here
    return None if left is None else (left, stack.depth - len(states), symbols)


def _moves(tables: GrammarTables, moves: NDArray[np.int32]) -> Callable[[int], dict[int, int]]:
    """By state: the next state after each symbol."""
    starts = np.searchsorted(moves[:, 0], np.arange(len(tables.context) + 1)).tolist()
    return lambda state: dict(moves[starts[state] : starts[state + 1], 1:].tolist())


def _reductions(tables: GrammarTables) -> Callable[[int], list[tuple[int, int, int]]]:
    """By state: the length and the nonterminal of each reduction, and the terminals before which it is made."""
    starts = np.searchsorted(tables.reduce[:, 0], np.arange(len(tables.context) + 1)).tolist()

    def of(state: int) -> list[tuple[int, int, int]]:
        which = slice(starts[state], starts[state + 1])
        moves = tables.reduce[which, 1:].tolist()
        return [(*move, terminals) for move, terminals in zip(moves, sets_of(tables.before[which]), strict=True)]

    return of
