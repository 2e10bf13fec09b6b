"""Rules that mention each other at their ends alone, said otherwise: as an automaton over what comes before that.

XGrammar writes all repeats so: ``word ::= [a-z] word | [a-z]``.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from ....budget import Meter
from ....runtime.core.digraph import circles
from ....system.depth_first import fold, post_order
from ..syntax import (
    Choice,
    GbnfGrammar,
    Network,
    Node,
    NodeId,
    Reference,
    Repetition,
    Rule,
    Sequence,
    children,
    with_children,
)

_DOING = "looking for rules that end with themselves"

#: A node's alternatives: what comes before the end, and the rule that is mentioned there; None for none.
_Tails: TypeAlias = "list[tuple[tuple[NodeId, ...], int | None]]"


def without_tail_recursion(
    grammar: GbnfGrammar, needed: Iterable[int], kept: Container[int], meter: Meter
) -> GbnfGrammar:
    """The grammar in which none of some rules, and of those that they need, mentions itself at its end alone.

    Others that mention themselves are as they were, and those with rules among them that are ``kept``. Raises
    `BudgetExceededError`.
    """
    mentioned: dict[int, list[int]] = {}

    def mentions(rule: int) -> list[int]:
        meter.check_time(_DOING)
        nodes = grammar.nodes[grammar.rules[rule].first : grammar.rules[rule].root + 1]
        return mentioned.setdefault(rule, [*dict.fromkeys(n.rule for n in nodes if isinstance(n, Reference))])

    order = [*post_order(needed, mentions)]
    meter.check_memory(len(order) ** 2 // 8, _DOING)
    place = {rule: at for at, rule in enumerate(order)}
    relation = [[place[each] for each in mentions(rule)] for rule in order]
    found = [[order[at] for at in circle] for circle in circles(relation, lambda: meter.check_time(_DOING))]
    found = [circle for circle in found if not any(rule in kept for rule in circle)]
    return _Unrolling(grammar, meter).run(found) if found else grammar


class _Unrolling:
    """Writes some rules anew, behind all others' nodes."""

    def __init__(self, grammar: GbnfGrammar, meter: Meter) -> None:
        self._grammar = grammar
        self._nodes: list[Node] = [*grammar.nodes]
        self._meter = meter

    def run(self, circles: list[list[int]]) -> GbnfGrammar:
        """The grammar with automata for rules of circles, where these are mentioned at ends alone."""
        rules = [*self._grammar.rules]
        for circle in circles:
            found = {rule: self._tails(rules[rule], frozenset(circle)) for rule in circle}
            tails = {rule: each for rule, each in found.items() if each is not None}
            for rule in circle if len(tails) == len(circle) else ():
                first = len(self._nodes)
                root = self._network(rule, tails)
                rules[rule] = replace(rules[rule], first=first, root=root)
        return replace(self._grammar, nodes=tuple(self._nodes), rules=tuple(rules))

    def _network(self, start: int, tails: dict[int, _Tails]) -> NodeId:
        """The automaton of a rule of a circle: a state for each rule."""
        state = {rule: 2 + place for place, rule in enumerate(tails)}
        parts: list[tuple[int, NodeId, int]] = []
        empty = [(0, state[start])]
        for rule, here in state.items():
            for before, behind in tails[rule]:
                target = 1 if behind is None else state[behind]
                if before:
                    parts.append((here, self._add(Sequence((*map(self._copy, before),))), target))
                else:
                    empty.append((here, target))
        return self._add(Network(2 + len(state), parts=tuple(parts), empty=tuple(empty)))

    def _tails(self, rule: Rule, circle: frozenset[int]) -> _Tails | None:
        """What comes before each mention of the circle; None where one is not at the end."""
        holds: set[NodeId] = set()
        for number in range(rule.first, rule.root + 1):
            node = self._nodes[number]
            if (isinstance(node, Reference) and node.rule in circle) or not holds.isdisjoint(children(node)):
                holds.add(number)
        return [*self._each(rule.root, holds)] if all(self._is_at_end(each, holds) for each in holds) else None

    def _is_at_end(self, number: NodeId, holds: set[NodeId]) -> bool:
        """Whether what holds the circle does so at its end alone."""
        node = self._nodes[number]
        if isinstance(node, Sequence):
            return holds.isdisjoint(node.parts[:-1])
        return isinstance(node, Reference | Choice) or (isinstance(node, Repetition) and node.max == 1)

    def _each(self, root: NodeId, holds: set[NodeId]) -> Iterator[tuple[tuple[NodeId, ...], int | None]]:
        todo: list[tuple[NodeId, tuple[NodeId, ...]]] = [(root, ())]
        while todo:
            self._meter.check_time(_DOING)
            number, before = todo.pop()
            node = self._nodes[number]
            if number not in holds:
                yield (*before, number), None
            elif isinstance(node, Reference):
                yield before, node.rule
            elif isinstance(node, Choice):
                todo += ((option, before) for option in node.options)
            elif isinstance(node, Sequence):
                todo.append((node.parts[-1], (*before, *node.parts[:-1])))
            elif isinstance(node, Repetition):
                todo.append((node.item, before))
                if node.min == 0:
                    yield before, None

    def _add(self, node: Node) -> NodeId:
        self._nodes.append(node)
        self._meter.check_states(len(self._nodes) // 4, _DOING)
        return len(self._nodes) - 1

    def _copy(self, root: NodeId) -> NodeId:
        """The same node among the new ones."""
        old = self._nodes
        return fold(root, lambda at: (children(old[at]), lambda below: self._add(with_children(old[at], below))))
