"""The automaton of a called rule: over bytes, and a marker for each rule that it calls.

Thompson's construction (1968), the rules that are not called written out, then the subset construction. Nothing but
the language counts in GBNF, so the smallest deterministic automaton over bytes and calls will do for the rule. (Where
determinism takes too many states, as in ``[ab]* "a" [ab]{20}``, the rule stays as it is, and a text may take several
threads.) A call never reads the empty text: where the rule called has it, the call can be left out. So each symbol
reads something.

Counting is as in `structgen.compiler.patterns.lower`, but for the turns written out before a loop: two, so that no
count begins with the first byte of a rule. That byte's edge is where a caller's return state is pushed, and one edge
cannot do both.
"""

from __future__ import annotations

from ...budget import Meter
from ...errors import BudgetExceededError
from ..automata.charset import Ranges
from ..automata.dfa import CounterConflictError, determinize, minimize
from ..automata.edge_lists import EdgeLists, of_dfa, of_nfa
from ..automata.nfa import BYTES, Loop, Nfa, NfaBuilder
from ..automata.utf8 import utf8_edges
from .calls import Plan
from .facts import RuleFacts
from .free_text import AhoCorasick
from .syntax import (
    CharacterSet,
    Choice,
    External,
    FreeText,
    Network,
    NodeId,
    QuotedText,
    Reference,
    Repetition,
    Sequence,
)

#: A rule stays nondeterministic if otherwise it had so many times as many states, and more than these.
_BLOWN_UP, _MANY = 8, 2_000


def automaton_of(facts: RuleFacts, plan: Plan, rule: int, meter: Meter) -> EdgeLists:
    """The automaton of a rule: the minimal one, unless that is far larger. Raises `BudgetExceededError`."""
    counted = plan.counted
    doing = f"the automaton of the rule {facts.document.rules[rule].name}"
    while True:
        construction = _Construction(facts, plan.called, counted, meter, doing)
        nfa = construction.run(facts.document.rules[rule].root)
        try:
            most = max(_MANY, _BLOWN_UP * len(nfa.owner))
            dfa = minimize(determinize(nfa, meter, doing, most=most), meter)
        except CounterConflictError as conflict:
            # Spell out the cheaper of the two loops.
            loops = [construction.loops[i] for i in conflict.loops]
            counted = counted - {min(loops, key=plan.sizes.__getitem__)}
        except BudgetExceededError:
            meter.check_time(doing)
            if not construction.loops:
                return of_nfa(nfa, list(construction.markers), meter, doing)
            counted = frozenset()
        else:
            return of_dfa(dfa, meter, list(construction.markers))


def network_of(lists: EdgeLists, only: Ranges = ((0, 255),)) -> Network:
    """The texts of an automaton that calls nothing, whose start becomes state 0; state 1 is behind all of them.

    ``only``: the bytes that may be in them.
    """
    if not lists.edges:
        return Network(2)
    number = {state: 2 + state for state in range(len(lists.edges))} | {lists.start: 0}
    moves = tuple(
        (number[state], max(low, first), min(high, last), number[target])
        for state, edges in enumerate(lists.edges)
        for low, high, target in edges
        for first, last in only
        if max(low, first) <= min(high, last)
    )
    ends = tuple((number[state], 1) for state, accepts in enumerate(lists.accepting) if accepts)
    return Network(2 + len(lists.edges), bytes=moves, empty=ends)


def written_out(facts: RuleFacts, root: NodeId, meter: Meter, doing: str) -> EdgeLists:
    """The minimal automaton of a node, with all rules written out and nothing counted; no rule in it mentions itself.

    Raises `BudgetExceededError`.
    """
    nfa = _Construction(facts, frozenset(), frozenset(), meter, doing).run(root)
    return of_dfa(minimize(determinize(nfa, meter, doing), meter), meter)


class _Construction:
    """Thompson's construction with an explicit stack of nodes, each between two states, inside a loop or none."""

    def __init__(
        self, facts: RuleFacts, called: frozenset[int], counted: frozenset[NodeId], meter: Meter, doing: str
    ) -> None:
        self._facts = facts
        self._called = called
        self._counted = counted
        self._meter = meter
        self._doing = doing
        self._builder = NfaBuilder()
        self._todo: list[tuple[NodeId, int, int, int]] = []
        self.loops: list[NodeId] = []  # the repeat of each loop
        self.markers: dict[int, int] = {}  # by rule, or -1 minus the number of what is external

    def run(self, root: NodeId) -> Nfa:
        """Build a node between two new states."""
        builder, facts = self._builder, self._facts
        start, accept = builder.state(), builder.state()
        self._todo.append((root, start, accept, -1))
        steps = 0
        while self._todo:
            steps += 1
            if steps % 256 == 0:
                self._meter.check_time(self._doing)
                self._check_size(0)
            number, source, target, owner = self._todo.pop()
            if facts.fertile(number):
                self._build(number, source, target, owner)
            elif facts.nullable(number):
                builder.epsilon(source, target)
        builder.markers = len(self.markers)
        return builder.build(start, accept)

    def _check_size(self, more: int) -> None:
        # A state of this automaton costs a fraction of what one of the deterministic one does.
        self._meter.check_states((len(self._builder.owners) + more) // 4, self._doing)

    def _build(self, number: NodeId, source: int, target: int, owner: int) -> None:
        builder, node = self._builder, self._facts.document.nodes[number]
        if isinstance(node, QuotedText):
            self._check_size(len(node.data))
            for byte in node.data[:-1]:
                there = builder.state(owner)
                builder.edge(source, byte, byte, there)
                source = there
            builder.edge(source, node.data[-1], node.data[-1], target)
        elif isinstance(node, CharacterSet):
            builder.template(utf8_edges(node.ranges), source, target, owner)
        elif isinstance(node, Reference):
            self._reference(node, source, target, owner)
        elif isinstance(node, External):
            self._call(-1 - node.number, source, target)
            if node.nullable:
                builder.epsilon(source, target)
        elif isinstance(node, Network):
            self._network(node, source, target, owner)
        elif isinstance(node, FreeText):
            self._free_text(node, source, target, owner)
        elif isinstance(node, Choice):
            self._todo.extend((option, source, target, owner) for option in node.options)
        elif isinstance(node, Sequence):
            self._in_a_row(list(node.parts), source, target, owner)
        elif number in self._counted and owner < 0:
            self._counted_repeat(number, node, source, target)
        else:
            self._repeat(node, source, target, owner)

    def _reference(self, node: Reference, source: int, target: int, owner: int) -> None:
        root = self._facts.document.rules[node.rule].root
        if node.rule not in self._called:
            self._todo.append((root, source, target, owner))
            return
        self._call(node.rule, source, target)
        if self._facts.nullable(root):
            self._builder.epsilon(source, target)

    def _call(self, callee: int, source: int, target: int) -> None:
        marker = BYTES + self.markers.setdefault(callee, len(self.markers))
        self._builder.edge(source, marker, marker, target)

    def _free_text(self, node: FreeText, source: int, target: int, owner: int) -> None:
        """The states of an Aho-Corasick automaton; where a trigger is complete goes on with what is behind it."""
        builder = self._builder
        automaton = AhoCorasick.of(node, self._meter, self._doing)
        self._check_size(2 * len(automaton))
        begin = automaton.embed(builder, owner)
        builder.epsilon(source, begin.free[0])
        for state in begin.free:
            builder.epsilon(state, target)
        for number, trigger in enumerate(node.triggers):
            there = builder.state(owner)
            for state in begin.completing[number]:
                if trigger.token < 0:
                    builder.epsilon(state, there)
                else:
                    self._call(-1 - trigger.token, state, there)
            self._todo.append((trigger.behind, there, begin.free[0] if trigger.again else target, owner))

    def _network(self, node: Network, source: int, target: int, owner: int) -> None:
        """Its states, between the two."""
        builder = self._builder
        self._check_size(node.states)
        states = [builder.state(owner) for _ in range(node.states)]
        builder.epsilon(source, states[0])
        builder.epsilon(states[1], target)
        for here, low, high, there in node.bytes:
            builder.edge(states[here], low, high, states[there])
        for here, there in node.empty:
            builder.epsilon(states[here], states[there])
        self._todo.extend((part, states[here], states[there], owner) for here, part, there in node.parts)

    def _in_a_row(self, parts: list[NodeId], source: int, target: int, owner: int) -> None:
        """One part after the other."""
        for i, part in enumerate(parts):
            there = self._builder.state(owner) if i < len(parts) - 1 else target
            self._todo.append((part, source, there, owner))
            source = there

    def _repeat(self, node: Repetition, source: int, target: int, owner: int) -> None:
        builder, turns = self._builder, node.min if node.max is None else node.max
        self._check_size(turns)
        here = source
        for turn in range(turns):
            if turn >= node.min:
                builder.epsilon(here, target)
            there = builder.state(owner)
            self._todo.append((node.item, here, there, owner))
            here = there
        if node.max is None:
            hub = builder.state(owner)
            builder.epsilon(here, hub)
            self._todo.append((node.item, hub, hub, owner))
            here = hub
        builder.epsilon(here, target)

    def _counted_repeat(self, number: NodeId, node: Repetition, source: int, target: int) -> None:
        """Two turns spelled out, then a counted loop for the third to the last, which counts from the second on."""
        builder = self._builder
        least, most = node.min, node.max if node.max is not None else node.min
        if node.max is None:
            # X{m,} is X{m} X*
            hub = builder.state()
            self._todo.append((node.item, hub, hub, -1))
            builder.epsilon(hub, target)
            target = hub
        loop = len(builder.loops)
        once, twice, body, turned = (builder.state(owner) for owner in (-1, -1, loop, loop))
        builder.loop(Loop(max(least - 1, 0), most - 1, body, target))
        self.loops.append(number)
        if least == 0:
            builder.epsilon(source, target)
        if least <= 1:
            builder.epsilon(once, target)
        self._todo.append((node.item, source, once, -1))
        self._todo.append((node.item, once, twice, -1))
        builder.enter(twice, loop)
        self._todo.append((node.item, body, turned, loop))
        builder.again(turned, loop)
