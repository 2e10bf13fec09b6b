"""Whether a parser whose conflicts were resolved can complete whatever it has taken: a proof, for most grammars.

A parser without conflicts can: each of its states stands for the beginning of a sentence. Where an action was taken
away, what is left may lead nowhere: ``s: "a" s "a" | "a"`` shifts for ever. The proof is a way to complete any stack.
In each state one rule that is under way there is picked, and a shortest text for the rest of it. Then it is looked at
what the parser does with that text, whatever comes after it by the same choice in the states below: it must read the
rest of the rule, and reduce that rule.

That ends: behind ``A: α . β`` the stack has as many states less as ``α`` has symbols, but one. Where that is none,
the states that are on top of the stack then must have been given a rule before.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from .... import kernels
from ....budget import Meter
from ....runtime.core.digraph import set_of, solve
from ....system.properties import cached_property
from ..parser.conflicts import shortest_texts
from ..parser.lalr import Lalr
from ..parser.symbols import Symbol

#: What the meter is told.
_DOING = "seeing whether the parser can complete what it has taken"

#: Reductions before one terminal; past that nothing is proved.
_MOST_REDUCTIONS = 1000

#: Places that are looked at between two looks at the clock.
_STEPS = 1 << 20


@dataclass(frozen=True)
class Way:
    """A way to be done with what is on top of a stack.

    Parameters
    ----------
    text:
        Terminals that are read, each with the state that it is shifted to; the end of the text with -1.
    after:
        The states of which one is on top then, up to what lies below.
    is_lower:
        Whether the stack is lower then. (Otherwise it is as high, and one must not go round in circles.)
    """

    text: tuple[tuple[Symbol, int], ...]
    after: tuple[int, ...]
    is_lower: bool


@dataclass(frozen=True)
class _Plan:
    """What a state does: read a text, then reduce a rule of which it has read so many symbols."""

    rule: int
    read: int
    text: tuple[Symbol, ...]


class Completing:
    """Ways to complete what a parser has taken, for texts without some terminals.

    Parameters
    ----------
    table, never:
        The parser, and the terminals.
    weights:
        By terminal: the greater, the less it is wanted in a text.
    is_resolved:
        Whether of actions that compete one was taken.
    """

    def __init__(self, table: Lalr, never: int, weights: list[int], meter: Meter, *, is_resolved: bool) -> None:
        self._is_contested = is_resolved and bool(table.conflicts)
        self._table = table
        self._meter = meter
        self._weights = weights
        symbols = table.symbols
        self._texts = shortest_texts(symbols, meter, never, weights)
        self._root = len(symbols.rules) - 1
        self._moves = table.automaton.moves
        self._shifts = [set_of(shifts) for shifts in table.shifts]
        #: The states that such texts come to, and by state those that lie right below it.
        self._below: dict[int, set[int]] = {0: set()}
        todo = [0]
        for state in todo:  # grows as it goes
            for symbol, target in self._moves[state].items():
                if symbol != symbols.end and self._texts[symbol] is not None:
                    if target not in self._below:
                        todo.append(target)
                    self._below.setdefault(target, set()).add(state)
        self._under: dict[tuple[int, int], frozenset[int]] = {}
        self._put_on: dict[tuple[frozenset[int], Symbol], list[tuple[int, Symbol]]] = {}

    def unproved(self) -> set[int]:
        """The states on top of stacks that nothing is proved to complete. Raises `BudgetExceededError`."""
        if not self._is_contested:
            return set()
        plans = self._plans
        found = {state for state in self._below if state not in plans}
        first = self._first(plans)
        come_from: dict[int, set[int]] = {}
        for state, plan in self._meter.each(plans.items(), _DOING):
            ahead = 0
            for below, origin in self._after(state, plan):
                ahead |= first[below, origin]
                come_from.setdefault(self._moves[below][origin], set()).add(state)
            if self._read(state, plan, ahead) is None:
                found.add(state)
        todo = list(found)
        for state in todo:  # grows as it goes
            more = come_from.get(state, set()) - found
            found |= more
            todo += more
        return found - {0}  # which no text leads to

    def ways(self) -> dict[int, list[Way]]:
        """By state on top: ways to be done with it, each of which the parser goes along with.

        Raises `BudgetExceededError`.
        """
        unproved = self.unproved()
        found: dict[int, list[Way]] = {}
        for state, candidates in self._meter.each(self._candidates.items(), _DOING):
            if state in unproved or (self._is_contested and state not in self._plans):
                continue
            found[state] = []
            for plan in [self._plans[state]] if self._is_contested else candidates:
                targets = self._read(state, plan, 0)
                if targets is not None:
                    text = tuple(zip(plan.text, targets, strict=True))
                    after = {self._moves[below][origin] for below, origin in self._after(state, plan)}
                    end = ((self._table.symbols.end, -1),) if plan.rule == self._root else ()
                    found[state].append(Way(text + end, tuple(sorted(after)), self._is_contested or plan.read > 1))
        return found

    def _first(self, plans: dict[int, _Plan]) -> dict[tuple[int, Symbol], int]:
        """By state and nonterminal put on it: the terminals that the plans from there on may begin with."""
        end = self._table.symbols.end
        number: dict[tuple[int, Symbol], int] = {}
        for below in self._below:
            for symbol, target in self._moves[below].items():
                if symbol > end and target in self._below:
                    number[below, symbol] = len(number)
        values, related = [], []
        for below, symbol in self._meter.each(number, _DOING):
            state = self._moves[below][symbol]
            plan = plans.get(state)
            if plan is None or plan.rule == self._root:
                values.append(1 << end)
            else:
                values.append(1 << plan.text[0] if plan.text else 0)
            then = [] if plan is None or values[-1] else self._after(state, plan, below)
            related.append([number[each] for each in then])
        solve(values, related, lambda: self._meter.check_time(_DOING))
        return dict(zip(number, values, strict=True))

    @cached_property
    def _candidates(self) -> dict[int, list[_Plan]]:
        """By state: the rules that are under way, the one with the least left first."""
        symbols, items = self._table.symbols, self._table.automaton.items
        found: dict[int, list[_Plan]] = {}
        held = 0
        for state in self._below:
            self._meter.check_time(_DOING)
            self._meter.check_memory(held, _DOING)
            candidates = found[state] = []
            for item in self._table.automaton.kernels[state] if state else ():
                rule = items.rule[item]
                read = item - items.first[rule]
                rest = [self._texts[symbol] for symbol in symbols.rules[rule][1][read:]]
                if None not in rest:
                    candidates.append(_Plan(rule, read, tuple(s for text in rest for s in text or ())))
                    held += 200 + 8 * len(candidates[-1].text)
            candidates.sort(key=lambda plan: sum(self._weights[t] for t in plan.text))
        return found

    @cached_property
    def _plans(self) -> dict[int, _Plan]:
        plans: dict[int, _Plan] = {}
        for state, candidates in self._candidates.items():
            sure = [plan for plan in candidates if plan.read > 1 or plan.rule == self._root]
            if sure:
                plans[state] = sure[0]
        while True:
            found = {}
            for state, candidates in self._candidates.items():
                self._meter.check_time(_DOING)
                for plan in candidates if state not in plans else ():
                    if all(self._moves[below][origin] in plans for below, origin in self._after(state, plan)):
                        found[state] = plan
                        break
            if not found:
                return plans
            plans |= found

    def _after(self, state: int, plan: _Plan, below: int = -1) -> list[tuple[int, Symbol]]:
        """What may be put on which states after a plan was carried out; maybe only with a given state right below."""
        if plan.rule == self._root:
            return []
        origin = self._table.symbols.rules[plan.rule][0]
        lower = self._lower(state, plan.read) if below < 0 else self._lower(below, plan.read - 1)
        found = self._put_on.get((lower, origin))
        if found is None:
            found = [(each, origin) for each in sorted(lower) if self._moves[each].get(origin) in self._below]
            self._put_on[lower, origin] = found
        return found

    def _lower(self, state: int, count: int) -> frozenset[int]:
        """The states that may lie so many states below one."""
        key = state, count
        if key not in self._under:
            found = {state}
            for _ in range(count):
                self._meter.check_time(_DOING)
                found = {below for each in found for below in self._below[each]}
            self._under[key] = frozenset(found)
        return self._under[key]

    def _read(self, state: int, plan: _Plan, ahead: int) -> list[int] | None:
        """The states that a plan's text is shifted to; None where the parser does not carry the plan out.

        Or would not if one of some terminals came next.
        """
        stack, found = [state], []
        for terminal in plan.text:
            if not self._reduced(stack, 1 << terminal, None):
                return None
            stack.append(self._table.shifts[stack[-1]][terminal])
            found.append(stack[-1])
        return found if not ahead or plan.rule == self._root or self._reduced(stack, ahead, plan) else None

    def _reduced(self, stack: list[int], ahead: int, plan: _Plan | None) -> bool:
        """Make the reductions before some terminals, all the same: up to a shift, or up to a plan's rule."""
        symbols = self._table.symbols
        for _ in range(_MOST_REDUCTIONS):
            here = self._table.reductions[stack[-1]]
            if ahead & self._shifts[stack[-1]]:
                return plan is None
            rule = next((rule for rule, terminals in here.items() if not ahead & ~terminals), None)
            if rule is None:
                return False
            origin, expansion = symbols.rules[rule]
            if len(expansion) >= len(stack):
                return plan is not None and rule == plan.rule and len(expansion) == len(stack) - 1 + plan.read
            del stack[len(stack) - len(expansion) :]
            stack.append(self._moves[stack[-1]][origin])
        return False


class Alternative(NamedTuple):
    """A way that can be read: for each state that may be on top then, its places; whether the stack is lower."""

    groups: list[list[int]]
    is_lower: bool


def are_good(options: list[list[Alternative]], meter: Meter) -> list[bool]:
    """By place: whether some option leads to the end, supposed of what comes then while the stack gets lower.

    Raises `BudgetExceededError`.
    """
    every = [option for there in options for option in there]
    groups = [group for option in every for group in option.groups]
    arrays = (
        *(np.array([0, *accumulate(map(len, each))]) for each in (options, [o.groups for o in every], groups)),
        np.array([*chain.from_iterable(groups)], np.int64),
        np.array([o.is_lower for o in every], np.bool_),
    )
    good, proved = np.ones(len(options), np.uint8), np.zeros(len(options), np.uint8)
    at = np.array([len(options) - 1, 0])
    # Places come after those that led to them, so the last ones are looked at first.
    while not kernels.prove_places(*arrays, good, proved, at, _STEPS):
        meter.check_time("looking for what can follow lexemes")
    return [bool(each) for each in good]
