"""Rules that begin with themselves, said otherwise: as automata over what else they begin with.

What rules of one circle begin with each other becomes one automaton for each of them. From its start, what a rule of
the circle begins with otherwise leads to the end of that rule; from there, what follows it in a rule that begins with
it leads to the end of that one (left corners: Rosenkrantz & Lewis 1970). What stands first must not be empty: it is
replaced by what it comes to but for the empty text, in rules of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from ...budget import Meter
from ...errors import UnsupportedError
from ...runtime.core.digraph import circles
from ...system.depth_first import fold, post_order
from .facts import RuleFacts, establish, left_corners
from .syntax import (
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

_DOING = "looking for left recursion"

#: Rules that begin with each other.
_Circle: TypeAlias = "frozenset[int]"


def without_left_recursion(facts: RuleFacts, meter: Meter) -> RuleFacts:
    """The facts of a grammar with the same rules, of which none begins with itself.

    Raises `UnsupportedError` for one that does so behind free text, or has attributes, and `BudgetExceededError`.
    """
    rules = facts.document.rules
    relation = [sorted(set(left_corners(facts, rule.root))) for rule in meter.each(rules, _DOING)]
    begun: list[int] = []
    for _ in post_order(range(len(rules)), relation.__getitem__, lambda _, rule: begun.append(rule)):
        meter.check_time(_DOING)
    if not begun:
        return facts
    meter.check_memory(len(rules) ** 2 // 8, _DOING)
    found = circles(relation, lambda: meter.check_time(_DOING))
    circle_of = {number: circle for circle in map(frozenset, found) for number in circle}
    return establish(_Rewriting(facts, circle_of, meter).run(), meter)


class _Begun(NamedTuple):
    """A rule of a circle, with which another one begins."""

    rule: int


class _Rewriting:
    """Writes all rules anew; rules that are made have the numbers behind those of the grammar."""

    def __init__(self, facts: RuleFacts, circles: dict[int, _Circle], meter: Meter) -> None:
        self._facts = facts
        self._rules = facts.document.rules
        self._old: list[Node] = [*facts.document.nodes]  # and what is made of them on the way
        self._circles = circles
        self._meter = meter
        self._nodes: list[Node] = []
        self._made: dict[int, int] = {}  # by rule that may be empty: the rule of its other texts

    def run(self) -> GbnfGrammar:
        """All rules."""
        rules: list[Rule] = []
        todo = [(number, number in self._circles) for number in range(len(self._rules))]
        for number, is_new in todo:  # grows as it goes
            old, first = self._rules[number], len(self._nodes)
            if is_new and old.is_attributed and number in self._circles:
                raise UnsupportedError(
                    f"the rule {old.name} begins with itself, and has attributes",
                    where=old.where,
                    remedy="Give them to a rule that is nothing but this one: text[capture] ::= sum.",
                )
            root = self._copy(old.root) if not is_new else self._not_empty(number)
            if is_new and len(rules) < len(self._rules) and self._facts.nullable(old.root):
                root = self._add(Choice((self._add(Sequence(())), root)))
            rules.append(replace(old, first=first, root=root))
            todo += ((each, True) for each in [*self._made][len(todo) - len(self._rules) :])
        return GbnfGrammar(tuple(self._nodes), tuple(rules), self._facts.document.tokens)

    def _add(self, node: Node) -> NodeId:
        self._nodes.append(node)
        if len(self._nodes) % 1024 == 0:
            self._meter.check_time(_DOING)
            self._meter.check_states(len(self._nodes) // 4, _DOING)
        return len(self._nodes) - 1

    def _copy(self, root: NodeId) -> NodeId:
        """The same node among the new ones."""
        return fold(
            root, lambda number: (children(self._old[number]), lambda below: self._copied(self._old[number], below))
        )

    def _copied(self, node: Node, below: list[NodeId]) -> NodeId:
        return self._add(with_children(node, below))

    def _keep(self, node: Node) -> NodeId:
        """The number of a node that is made of old ones."""
        self._old.append(node)
        return len(self._old) - 1

    def _not_empty(self, number: int) -> NodeId:
        """The texts of a rule but for the empty one, by what the rules of its circle begin with."""
        circle = self._circles.get(number, frozenset({number}))
        done = {rule: 2 + place for place, rule in enumerate(sorted(circle))}
        parts: list[tuple[int, NodeId, int]] = []
        empty = [(done[number], 1)]
        for rule, there in done.items():
            for first, rest in self._corners(self._rules[rule].root, circle):
                here, read = (done[first.rule], rest) if isinstance(first, _Begun) else (0, (first, *rest))
                if read:
                    parts.append((here, self._copy(self._keep(Sequence(read))), there))
                elif here != there:
                    empty.append((here, there))
        return self._add(Network(2 + len(done), parts=tuple(parts), empty=tuple(empty)))

    def _corners(self, root: NodeId, circle: _Circle) -> Iterator[tuple[NodeId | _Begun, tuple[NodeId, ...]]]:
        """What the texts of a node but for the empty one begin with, and what follows."""
        todo: list[tuple[NodeId, tuple[NodeId, ...]]] = [(root, ())]
        while todo:
            self._meter.check_time(_DOING)
            number, rest = todo.pop()
            node = self._old[number]
            if not self._facts.fertile(number):
                continue
            if isinstance(node, Reference) and node.rule in circle:
                yield _Begun(node.rule), rest
            elif not self._facts.nullable(number) and circle.isdisjoint(left_corners(self._facts, number)):
                yield number, rest
            elif isinstance(node, Choice):
                todo += ((option, rest) for option in node.options)
            elif isinstance(node, Sequence):
                for place, part in enumerate(node.parts):
                    todo.append((part, (*node.parts[place + 1 :], *rest)))
                    if not self._facts.nullable(part):
                        break
            elif isinstance(node, Repetition):
                least = 0 if self._facts.nullable(node.item) else max(node.min - 1, 0)
                others = Repetition(node.item, least, None if node.max is None else node.max - 1)
                todo.append((node.item, (self._keep(others), *rest) if others.max != 0 else rest))
            elif isinstance(node, Reference):
                made = self._made.setdefault(node.rule, len(self._rules) + len(self._made))
                yield self._keep(Reference(made)), rest
            else:
                # Free text, or a regex, that may be empty: if what follows it begins with the circle, that is found
                # when all is done, and refused.
                yield number, rest
