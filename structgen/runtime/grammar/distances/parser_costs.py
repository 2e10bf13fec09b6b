"""The fewest bytes that complete a parser's stack, and the terminal that such a text begins with.

Reading on from a state on top of the stack comes, sooner or later, to a reduction that takes it off::

    outcomes(s) = {(A, m): bytes}   the state goes, m more go with it, and the nonterminal A is read there

These are the least solution of an equation per state, found cheapest first (Knuth 1977, who generalises Dijkstra's
algorithm). On a real stack they are added up from the top down.

A reduction is taken to be made whatever comes next. That is right for each terminal that can come next and has the
reduction in the table. Where a conflict was resolved some have not
(`structgen.runtime.grammar.distances.suppressed_lookaheads`). So outcomes are told apart by the terminals that must
not come next, and by the one that they begin with, if a reduction lost it.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from ....errors import BudgetExceededError, FormatError
from ...core.bitsets import sets_of
from ..parser.stack import Parser, Stack
from ..tables import GrammarTables
from .suppressed_lookaheads import suppressed_lookaheads

#: More bytes than any text has: what nothing completes.
FAR = 1 << 30

#: Stands for the nonterminal of a text that is complete.
_ACCEPTED = -1

#: What a text begins with: nothing that was read yet, or a terminal that no reduction lost.
_NONE, _ANY = -1, -2

#: Steps of the search for outcomes at most, some ten seconds.
_MOST_STEPS = 1 << 22


class CheapestDerivation(NamedTuple):
    """What a derivation ends with, and what must not follow it.

    Parameters
    ----------
    symbol:
        The nonterminal that is read then, or `_ACCEPTED`; of a push, the state that is pushed.
    more:
        States that are popped besides the one on top.
    avoid:
        The terminals that must not come next, as a set.
    head:
        The terminal that was read first, if some reduction lost it; else `_ANY` or `_NONE`.
    """

    symbol: int
    more: int
    avoid: int
    head: int

    def then(self, other: CheapestDerivation) -> tuple[int, int] | None:
        """`avoid` and `head` of the concatenation with another derivation; None where that cannot follow."""
        if other.head == _NONE:
            return self.avoid | other.avoid, self.head
        if other.head >= 0 and self.avoid >> other.head & 1:
            return None
        return other.avoid, other.head if self.head == _NONE else self.head


class Cost(NamedTuple):
    """Bytes, and the terminal that they begin with; -1 for none."""

    bytes: int
    first: int

    def then(self, other: Cost) -> Cost:
        """The cost of the concatenation: this, then another."""
        return Cost(self.bytes + other.bytes, other.first if self.first < 0 else self.first)


#: Nothing was read yet.
_NOTHING = Cost(0, -1)

#: A stack with the terminals that must not come next, as a set.
_StackBefore = tuple[Stack, int]


class ParserCosts:
    """Costs of one parser's stacks. Not for several threads of the process at once.

    Parameters
    ----------
    tables, parser:
        The parser; no two of its actions may compete.
    of_terminal:
        The bytes of the cheapest text of each terminal, `FAR` for one without.
    """

    def __init__(self, tables: GrammarTables, parser: Parser, of_terminal: list[int]) -> None:
        self._parser = parser
        self._end = tables.end
        states = len(tables.context)
        shifts: list[dict[int, int]] = [{} for _ in range(states)]
        self._gotos: list[dict[int, int]] = [{} for _ in range(states)]
        for moves, there in ((tables.shift, shifts), (tables.goto, self._gotos)):
            for state, symbol, target in moves.tolist():
                there[state][symbol] = target
        reductions: list[list[tuple[int, int, int]]] = [[] for _ in range(states)]
        for (state, length, origin), made in zip(tables.reduce.tolist(), sets_of(tables.before), strict=True):
            reductions[state].append((length, origin, made))
        suppressed = suppressed_lookaheads(shifts, self._gotos, reductions)
        self._suppressed = 0
        for each in (each for there in suppressed for each in there):
            self._suppressed |= each
        self._outcomes: list[dict[CheapestDerivation, Cost]] = [{} for _ in range(states)]
        self._solve(shifts, reductions, suppressed, of_terminal)
        self._levels: dict[tuple[int, int], dict[CheapestDerivation, Cost]] = {}
        self._known: dict[_StackBefore, int] = {}
        self._next: dict[Stack, int] = {}

    def _head(self, terminal: int) -> int:
        return terminal if self._suppressed >> terminal & 1 else _ANY

    def _solve(
        self,
        shifts: list[dict[int, int]],
        reductions: list[list[tuple[int, int, int]]],
        suppressed: list[list[int]],
        of_terminal: list[int],
    ) -> None:
        """Find `_outcomes`, together with what it takes to push states on others."""
        found = self._outcomes
        pushed: list[dict[CheapestDerivation, Cost]] = [{} for _ in shifts]
        under: list[list[tuple[int, CheapestDerivation]]] = [
            [] for _ in shifts
        ]  # by state: what it is pushed on, and how
        heap: list[tuple[Cost, int, bool, CheapestDerivation]] = []
        for state, (shifted, reduced) in enumerate(zip(shifts, reductions, strict=True)):
            for terminal, target in shifted.items():
                if terminal == self._end:
                    end = CheapestDerivation(_ACCEPTED, 0, 0, self._head(terminal))
                    heap.append((Cost(0, terminal), state, False, end))
                elif of_terminal[terminal] < FAR:
                    push = CheapestDerivation(target, 0, 0, self._head(terminal))
                    heap.append((Cost(of_terminal[terminal], terminal), state, True, push))
            for (length, origin, _), avoid in zip(reduced, suppressed[state], strict=True):
                if length:
                    heap.append((_NOTHING, state, False, CheapestDerivation(origin, length - 1, avoid, _NONE)))
                else:
                    if origin not in self._gotos[state]:
                        raise FormatError("the parser's tables contradict themselves")
                    push = CheapestDerivation(self._gotos[state][origin], 0, avoid, _NONE)
                    heap.append((_NOTHING, state, True, push))
        heapq.heapify(heap)

        def join(state: int, push: CheapestDerivation, outcome: CheapestDerivation) -> None:
            """What comes of a state that has another one pushed on it, which comes to an outcome."""
            both = push.then(outcome)
            if both is None:
                return
            cost = pushed[state][push].then(found[push.symbol][outcome])
            if outcome.symbol == _ACCEPTED or outcome.more:
                more = 0 if outcome.symbol == _ACCEPTED else outcome.more - 1
                heapq.heappush(heap, (cost, state, False, CheapestDerivation(outcome.symbol, more, *both)))
            elif (target := self._gotos[state].get(outcome.symbol)) is not None:
                heapq.heappush(heap, (cost, state, True, CheapestDerivation(target, 0, *both)))

        steps = 0
        while heap:
            steps += 1
            if steps + len(heap) > _MOST_STEPS:
                raise BudgetExceededError(
                    "the distances that max_tokens needs take too long: there are too many ways through the parser",
                    remedy="Use a grammar with fewer conflicts, or leave max_tokens out.",
                )
            cost, state, is_push, what = heapq.heappop(heap)
            known = pushed[state] if is_push else found[state]
            if what in known:
                continue
            known[what] = cost
            if is_push:
                under[what.symbol].append((state, what))
                for outcome in list(found[what.symbol]):
                    join(state, what, outcome)
            else:
                for below, push in list(under[state]):
                    join(below, push, what)

    def level(self, below: int, state: int) -> dict[CheapestDerivation, Cost]:
        """What comes of a state on another one when that one goes, too."""
        known = self._levels.get((below, state))
        if known is None:
            known = self._levels[below, state] = self._level(below, state)
        return known

    def _level(self, below: int, state: int) -> dict[CheapestDerivation, Cost]:
        found: dict[CheapestDerivation, Cost] = {}
        seen: set[CheapestDerivation] = set()
        heap = [(_NOTHING, CheapestDerivation(state, 0, 0, _NONE))]
        while heap:
            cost, push = heapq.heappop(heap)
            if push in seen:
                continue
            seen.add(push)
            for outcome, further in self._outcomes[push.symbol].items():
                both = push.then(outcome)
                if both is None:
                    continue
                total = cost.then(further)
                if outcome.symbol == _ACCEPTED or outcome.more:
                    more = 0 if outcome.symbol == _ACCEPTED else outcome.more - 1
                    left = CheapestDerivation(outcome.symbol, more, *both)
                    found[left] = min(total, found.get(left, total))
                elif (target := self._gotos[below].get(outcome.symbol)) is not None:
                    heapq.heappush(heap, (total, CheapestDerivation(target, 0, *both)))
        return found

    def firsts(self) -> int:
        """The terminals that `next` can be, and maybe others, as a set."""
        return sum({1 << cost.first for there in self._outcomes for cost in there.values() if cost.first >= 0})

    def least(self, below: int, state: int, *, any_head: bool) -> int:
        """The fewest bytes that take a state and the one below it away, or `FAR`.

        Without ``any_head`` they begin with no terminal that some reduction has lost.
        """
        level = self.level(below, state)
        return min((cost.bytes for what, cost in level.items() if any_head or what.head < 0), default=FAR)

    def _options(self, stack_before: _StackBefore) -> list[tuple[Cost, _StackBefore | None]]:
        """What comes of a stack's top, and what is left then; None for a text that is complete."""
        stack, avoid = stack_before
        below = stack.below
        outcomes = self._outcomes[stack.state] if below is None else self.level(below.state, stack.state)
        found: list[tuple[Cost, _StackBefore | None]] = []
        for outcome, cost in outcomes.items():
            if outcome.head >= 0 and avoid >> outcome.head & 1:
                continue
            if outcome.symbol == _ACCEPTED:
                found.append((cost, None))
                continue
            here = below and below.under(1 + outcome.more)
            target = None if here is None else self._gotos[here.state].get(outcome.symbol)
            if here is not None and target is not None:
                left = avoid | outcome.avoid if outcome.head == _NONE else outcome.avoid
                found.append((cost, (self._parser.push(here, target), left)))
        return found

    def bytes(self, stack: Stack, avoid: int = 0) -> int:
        """The fewest bytes that complete a stack, some terminals not coming next; `FAR` where nothing does."""
        known, start = self._known, (stack, avoid)
        if start in known:
            return known[start]
        todo = [start]
        while todo:
            here = todo[-1]
            options = self._options(here)
            missing = [after for _, after in options if after is not None and after not in known]
            if missing:  # each is less deep
                todo += missing
                continue
            todo.pop()
            sums = (cost.bytes + (0 if after is None else known[after]) for cost, after in options)
            known[here] = min(FAR, min(sums, default=FAR))
        return known[start]

    def next(self, stack: Stack) -> int:
        """The terminal, maybe the end, that a cheapest text begins with. Something must complete the stack."""
        found = self._next.get(stack, -1)
        here: _StackBefore | None = (stack, 0)
        while found < 0:
            if here is None:
                raise FormatError("the parser's tables contradict themselves")
            wanted = self.bytes(*here)
            for cost, after in self._options(here):
                if cost.bytes + (0 if after is None else self.bytes(*after)) == wanted:
                    found, here = cost.first, after
                    break
            else:
                raise FormatError("the parser's tables contradict themselves")
        self._next[stack] = found
        return found

    @property
    def remembered(self) -> int:
        """How much is remembered of stacks."""
        return len(self._known) + len(self._next)

    def forget(self) -> None:
        """Forget what is remembered of stacks."""
        self._known, self._next = {}, {}
