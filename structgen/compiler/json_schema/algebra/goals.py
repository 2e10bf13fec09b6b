"""Goals: conjunctions of subschemas, each taken as it is or negated.

A *literal* is a node of the table (`nodes.Nodes`), or the complement ``~node`` of one. A *goal* is a set of literals:
the values that satisfy all of them. There are finitely many literals, so there are finitely many goals, and whatever
is computed goal by goal ends, however the schema refers to itself.
"""

from __future__ import annotations

from typing import TypeAlias

#: A node's index, or ``~index`` for its negation.
Literal: TypeAlias = int

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
    return NOTHING if any(~literal in many for literal in few) else union


def all_of(goals: list[Conjunction]) -> Conjunction:
    """The conjunction of any number of goals."""
    if len(goals) == 1:
        return goals[0]
    result = ANYTHING
    for goal in goals:
        result = both(result, goal)
    return result


def in_order(goal: Conjunction) -> list[Literal]:
    """The literals in the order of their nodes, which is the document's."""
    if len(goal) == 1:
        return [*goal]
    return sorted(goal, key=lambda literal: literal if literal >= 0 else ~literal)
