"""From the automata of rules to a pushdown program.

A state of a rule's automaton is a state of the program: it moves where the automaton moves, and returns where the
rule may end. A call of the rule ``r`` that leads on to the state ``q`` takes the edges of ``r``'s first state, with
``q`` pushed first: ``(q, ...)``. Those may be calls, in turn; since no rule begins with itself, that comes to an end.
Nothing is pushed where ``q`` could only return, so ``list ::= item ("," list)?`` takes no stack.

Callees may be external: tokens, and what is lowered by others, which may be later. A state that calls what is not
lowered yet is *open* until it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Protocol

from ...budget import Meter
from ...runtime.pushdown.captures.labels import RuleLabel
from ...system.depth_first import post_order
from ..automata.edge_lists import EdgeLists
from ..programs.program import POP, CountedEdge, Edge, First, Program, State, TokenBound, TokenEdge, TokenSet, edge_of
from .interiors import Interiors

_DOING = "putting the rules together"

#: What an edge takes in each list that it is in.
_BYTES_OF_PLACE = 8


class Externals(Protocol):
    """What rules call that is not among them, by number."""

    def tokens(self, number: int) -> TokenSet | None:
        """The tokens that an external is one of; None for a definition."""

    def first(self, number: int) -> First:
        """What the first state of a definition does, which is lowered now, if it was not before."""

    def waits(self, number: int) -> bool:
        """Whether a definition is not lowered yet."""


class Lowering:
    """Puts the rules' automata together.

    Parameters
    ----------
    rules:
        The automaton of each rule that is called, and of the start.
    names:
        What to call them in the program.
    meter:
        Bounds time, states and memory.
    interiors:
        Of the program that they become part of; None begins one.
    externals:
        What they call besides.
    labels:
        By rule what is said of its texts: a state with that label lies on the stack below the rule's own.
    """

    def __init__(
        self,
        rules: dict[int, EdgeLists],
        names: dict[int, str],
        meter: Meter,
        interiors: Interiors | None = None,
        externals: Externals | None = None,
        labels: Mapping[int, RuleLabel] | None = None,
    ) -> None:
        self.interiors = interiors or Interiors(Program())
        self.program = self.interiors.program
        #: States without edges yet, each with its rule and the state there.
        self.open: dict[State, tuple[int, int]] = {}
        self._rules = rules
        self._names = names
        self._meter = meter
        self._externals = externals
        self._labels = labels or {}
        self._labelled: dict[int, First] = {}
        self._uncalled = -1  # a rule whose states are at the bottom of the stack
        self._loops = {rule: [self.program.loop(*bounds) for bounds in there.loops] for rule, there in rules.items()}
        self._states: dict[tuple[int, int], State] = {}
        self._sequences: dict[tuple[int, int], tuple[State, ...]] = {}
        self._first: dict[int, First] = {}
        self._todo: list[tuple[int, int]] = []
        self._edges = 0

    def run(self, start: int) -> Program:
        """The program of a rule, which is called by none. Raises `BudgetExceededError`."""
        if start in self._labels:
            there = self._rules[start]
            self.program.start = self.program.state(self._names[start], returns=there.accepting[there.start])
            self.program.give(self.program.start, self._callee(start))
        else:
            self._uncalled = start
            self.program.start = self._state(start, self._rules[start].start)
        self._drain()
        return self.program

    def continued(self, meter: Meter, externals: Externals | None) -> Lowering:
        """One to go on with from here, in a program of its own, where parts are external to others.

        Raises `BudgetExceededError` for what a meter does not allow.
        """
        found = copy(self)
        found.interiors = self.interiors.continued()
        found.program = found.interiors.program
        found.open, found._states, found._sequences = self.open.copy(), self._states.copy(), self._sequences.copy()
        found._first, found._todo = self._first.copy(), []
        found._meter, found._externals = meter, externals
        found._check()
        return found

    def first(self, rule: int) -> First:
        """What the first state of a rule does; the states that it leads to are lowered."""
        found = self._first_of(rule)
        self._drain()
        return found

    def go_on(self, states: Iterable[State]) -> None:
        """Lower some open states, and what they lead to."""
        for state in states:
            self._lower(state, *self.open.pop(state))
        self._drain()

    def ready(self) -> list[State]:
        """Open states whose definitions are lowered by now."""
        outside = self._externals
        return [s for s, place in self.open.items() if outside is None or not self._waits(*place, outside)]

    def _drain(self) -> None:
        while self._todo:
            rule, q = self._todo.pop()
            state = self._states[rule, q]
            if self._externals is not None and self._waits(rule, q, self._externals):
                self.open[state] = rule, q
            else:
                self._lower(state, rule, q)

    def _lower(self, state: State, rule: int, q: int) -> None:
        is_first = q == self._rules[rule].start
        self.program.give(state, self._first_of(rule) if is_first else self._edges_of(rule, q))
        if rule == self._uncalled and self._externals is not None:
            found = self.interiors.find(self._rules[rule], q, ending=self._rules[rule].accepting[q])
            if found is not None:
                self.program.interiors[state] = found[0], self._state(rule, found[1])
        self._check()

    def _waits(self, rule: int, q: int, externals: Externals) -> bool:
        """Whether what a state does depends on a definition that is not lowered yet."""
        if not self._rules[rule].calls[q]:
            return False
        called = [callee for callee, _ in self._rules[rule].calls[q]]
        reached = post_order([callee for callee in called if callee >= 0], self._called_first)
        outside = [callee for each in reached for callee, _ in self._start_calls(each) if callee < 0]
        numbers = {-1 - callee for callee in (*called, *outside) if callee < 0}
        return any(externals.tokens(number) is None and externals.waits(number) for number in numbers)

    def _check(self, edges: int = 0) -> None:
        self._meter.check_states(len(self.program.edges), _DOING)
        self._meter.check_memory((self._edges + edges) * _BYTES_OF_PLACE, _DOING)

    def _state(self, rule: int, q: int) -> State:
        """The program's state for one of a rule's; its edges come later."""
        state = self._states.get((rule, q))
        if state is None:
            there = self._rules[rule]
            live = self._loops[rule][there.live[q]] if there.live[q] >= 0 else -1
            state = self.program.state(self._names[rule], returns=there.accepting[q], live=live)
            self._states[rule, q] = state
            if q in there.bounds:
                most, exhausted = there.bounds[q]
                self.program.token_bounds[state] = TokenBound(most, self._state(rule, exhausted))
            self._todo.append((rule, q))
        return state

    def _sequence(self, rule: int, q: int) -> tuple[State, ...]:
        """What to put in a rule's place to go on from ``q``."""
        found = self._sequences.get((rule, q))
        if found is None:
            found = () if self._rules[rule].is_end(q) else self._interior(rule, q) or (self._state(rule, q),)
            self._sequences[rule, q] = found
        return found

    def _interior(self, rule: int, q: int) -> tuple[State, ...] | None:
        """The sequence by way of an interior, where ``q`` has one."""
        found = self.interiors.find(self._rules[rule], q)
        if found is None:
            return None
        interior, after = found
        if self._rules[rule].is_end(after):
            return (interior,)
        return self._state(rule, after), interior

    # -- edges -----------------------------------------------------------------------------------------

    def _first_of(self, rule: int) -> First:
        """What a rule's first state does, after those of the rules that it may begin with."""
        if rule in self._first:
            return self._first[rule]
        for each in post_order([rule], self._called_first):
            if each not in self._first:
                self._first[each] = self._edges_of(each, self._rules[each].start)
                self._check()
        return self._first[rule]

    def _start_calls(self, rule: int) -> tuple[tuple[int, int], ...]:
        there = self._rules[rule]
        return there.calls[there.start]

    def _called_first(self, rule: int) -> Iterator[int]:
        return (callee for callee, _ in self._start_calls(rule) if callee >= 0)

    def _edges_of(self, rule: int, q: int) -> First:
        there = self._rules[rule]
        edges = [edge_of(low, high, self._target(rule, target, POP)) for low, high, target in there.edges[q]]
        tokens: list[TokenEdge] = []
        for callee, target in there.calls[q]:
            self._check(len(edges))
            first = self._callee(callee)
            edges += self._call(rule, first.edges, target)
            tokens += (TokenEdge(each, self._target(rule, target, plain)) for each, plain in first.tokens)
        self._edges += len(edges)
        return First(edges, tokens)

    def _callee(self, callee: int) -> First:
        """What the first state of a rule does, or an external."""
        if callee in self._labels:
            return self._first_labelled(callee)
        if callee >= 0:
            return self._first_of(callee)
        assert self._externals is not None
        tokens = self._externals.tokens(-1 - callee)
        return First((), [TokenEdge(tokens, POP)]) if tokens is not None else self._externals.first(-1 - callee)

    def _first_labelled(self, rule: int) -> First:
        """What the first state of a rule does, above a state with the rule's label."""
        if rule not in self._labelled:
            first, below = self._first_of(rule), self.program.state(self._names[rule], returns=True)
            self.program.labels[below] = self._labels[rule]
            self._labelled[rule] = First(
                self.program.all_above(below, first.edges),
                [TokenEdge(tokens, self.program.above(below, target)) for tokens, target in first.tokens],
            )
        return self._labelled[rule]

    def _call(self, rule: int, first: Sequence[Edge], target: int) -> Iterable[Edge]:
        if target >= 0 and not self._sequence(rule, target):
            return first
        each = self._meter.each(first, _DOING)
        return (self._target(rule, target, edge >> 16) << 16 | edge & 0xFFFF for edge in each)

    def _target(self, rule: int, target: int, above: int) -> int:
        """That of an edge to a state of a rule's automaton, or by a record, with a callee's states above it."""
        callee = self.program.sequence(above)
        if target >= 0:
            return self.program.target(self._sequence(rule, target) + callee)
        operation, loop, *zones = self._rules[rule].records[-2 - target]
        states = [self._state(rule, zone) if zone >= 0 else -1 for zone in zones]
        return self.program.target(callee, CountedEdge(operation, self._loops[rule][loop], *states))
