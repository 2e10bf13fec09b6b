"""From the automata of rules to a pushdown program.

A state of a rule's automaton is a state of the program: it moves where the automaton moves, and returns where the
rule may end. A call of the rule ``r`` that leads on to the state ``q`` takes the edges of ``r``'s first state, with
``q`` pushed first: ``(q, ...)``. Those may be calls, in turn; since no rule begins with itself, that comes to an end.
Nothing is pushed where ``q`` could only return, so ``list ::= item ("," list)?`` takes no stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...budget import Meter
from ...system.depth_first import post_order
from ...system.properties import remembered
from ..automata.edge_lists import EdgeLists
from ..programs.program import CountedEdge, Edge, Program, State
from .interiors import Interiors

_DOING = "putting the rules together"

#: What an edge takes in each list that it is in.
_BYTES_OF_PLACE = 8


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
    """

    def __init__(self, rules: dict[int, EdgeLists], names: dict[int, str], meter: Meter) -> None:
        self.program = Program()
        self._rules = rules
        self._names = names
        self._meter = meter
        self._interiors = Interiors(self.program)
        self._loops = {rule: [self.program.loop(*bounds) for bounds in there.loops] for rule, there in rules.items()}
        self._states: dict[tuple[int, int], State] = {}
        self._first: dict[int, list[Edge]] = {}
        self._todo: list[tuple[int, int]] = []
        self._edges = 0

    def run(self, start: int) -> Program:
        """The program of a rule. Raises `BudgetExceededError`."""
        self._find_first_edges()
        self.program.start = self._state(start, self._rules[start].start)
        while self._todo:
            rule, q = self._todo.pop()
            edges = self._first[rule] if q == self._rules[rule].start else self._edges_of(rule, q)
            self.program.edges[self._states[rule, q]].extend(edges)
            self._check()
        return self.program

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
            self._todo.append((rule, q))
        return state

    @remembered
    def _sequence(self, rule: int, q: int) -> tuple[State, ...]:
        """What to put in a rule's place to go on from ``q``."""
        return () if self._rules[rule].is_end(q) else self._interior(rule, q) or (self._state(rule, q),)

    def _interior(self, rule: int, q: int) -> tuple[State, ...] | None:
        """The sequence by way of an interior, where ``q`` has one."""
        found = self._interiors.find(self._rules[rule], q)
        if found is None:
            return None
        interior, after = found
        if self._rules[rule].is_end(after):
            return (interior,)
        return self._state(rule, after), interior

    # -- edges -----------------------------------------------------------------------------------------

    def _find_first_edges(self) -> None:
        """The edges of all rules' first states, callees before callers."""
        for rule in post_order(self._rules, self._called_first):
            self._first[rule] = self._edges_of(rule, self._rules[rule].start)
            self._check()

    def _called_first(self, rule: int) -> Iterator[int]:
        there = self._rules[rule]
        return (callee for callee, _ in there.calls[there.start])

    def _edges_of(self, rule: int, q: int) -> list[Edge]:
        there = self._rules[rule]
        edges = [self._edge(rule, low, high, (), target) for low, high, target in there.edges[q]]
        for callee, target in there.calls[q]:
            self._check(len(edges))
            edges += self._call(rule, self._first[callee], target)
        self._edges += len(edges)
        return edges

    def _call(self, rule: int, first: list[Edge], target: int) -> Iterable[Edge]:
        if target >= 0 and not self._sequence(rule, target):
            return first
        each = self._meter.each(first, _DOING)
        return (self._edge(rule, edge.low, edge.high, edge.sequence, target) for edge in each)

    def _edge(self, rule: int, low: int, high: int, above: tuple[State, ...], target: int) -> Edge:
        """An edge to a state of a rule's automaton, or by a record, with a callee's states above it."""
        if target >= 0:
            return Edge(low, high, self._sequence(rule, target) + above)
        operation, loop, *zones = self._rules[rule].records[-2 - target]
        states = [self._state(rule, zone) if zone >= 0 else -1 for zone in zones]
        return Edge(low, high, above, CountedEdge(operation, self._loops[rule][loop], *states))
