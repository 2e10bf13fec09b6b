"""Goals: conjunctions of subschemas, each taken as it is, negated, or only tested.

A *literal* is a node of the table (`nodes.Nodes`), the complement ``~node`` of one, or ``node | TESTED``, which has
the node's values in any spelling: ``if`` and ``contains`` ask for an integer, and 1.0 is one. A *goal* is a set of
literals: the values that satisfy all of them. There are finitely many literals, so there are finitely many goals, and
whatever is computed goal by goal ends, however the schema refers to itself.
"""

from __future__ import annotations

from typing import TypeAlias

#: A node's index, ``~index`` for its negation, ``index | TESTED`` for its values however they are spelled.
Literal: TypeAlias = int

TESTED = 1 << 48

#: The values that satisfy every literal.
Conjunction: TypeAlias = frozenset[Literal]

#: Every value: no literal at all.
ANYTHING: Conjunction = frozenset()

_IMPOSSIBLE: Literal = 1 << 62

#: No value.
NOTHING: Conjunction = frozenset((_IMPOSSIBLE,))


def both(left: Conjunction, right: Conjunction) -> Conjunction:
    """The conjunction: the union of the literals, `NOTHING` where a literal meets its negation."""
    if not left or left is right:
        return right
    if not right:
        return left
    union = left | right
    if _IMPOSSIBLE in union:
        return NOTHING
    few, many = (left, right) if len(left) < len(right) else (right, left)
    if any(~literal in many for literal in few):
        return NOTHING
    return _settled(union) if max(union) >= TESTED else union


def _settled(goal: Conjunction) -> Conjunction:
    """The goal without the tests of nodes that it has as they are; `NOTHING` where it has one's negation."""
    tested = [literal for literal in goal if literal >= TESTED]
    if any(~node_of(literal) in goal for literal in tested):
        return NOTHING
    return goal.difference([literal for literal in tested if node_of(literal) in goal])


def all_of(goals: list[Conjunction]) -> Conjunction:
    """The conjunction of any number of goals."""
    if len(goals) == 1:
        return goals[0]
    result = ANYTHING
    for goal in goals:
        result = both(result, goal)
    return result


def node_of(literal: Literal) -> int:
    """The node that a literal is about."""
    return ~literal if literal < 0 else literal & ~TESTED


def in_order(goal: Conjunction) -> list[Literal]:
    """The literals in the order of their nodes, which is the document's."""
    if len(goal) == 1:
        return [*goal]
    return sorted(goal, key=node_of)
