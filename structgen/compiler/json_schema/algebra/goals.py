"""Goals: conjunctions of subschemas, each taken as it is or negated.

An *atom* is a node of the table (`nodes.Nodes`), or the complement ``~node`` of one. A *goal* is a set of atoms: the
values that satisfy all of them. As there are finitely many atoms, there are finitely many goals, and whatever is
computed goal by goal ends, however the schema refers to itself.
"""

from __future__ import annotations

from typing import TypeAlias

#: A node's index, or ``~index`` for its negation.
Atom: TypeAlias = int

#: The values that satisfy every atom.
Conjunction: TypeAlias = frozenset[Atom]

#: Every value: no atom at all.
ANYTHING: Conjunction = frozenset()

_IMPOSSIBLE: Atom = 1 << 62

#: No value.
NOTHING: Conjunction = frozenset((_IMPOSSIBLE,))


def both(left: Conjunction, right: Conjunction) -> Conjunction:
    """The conjunction: the union of the atoms, `NOTHING` where an atom meets its negation."""
    if not left or left is right:
        return right
    if not right:
        return left
    union = left | right
    if _IMPOSSIBLE in union:
        return NOTHING
    few, many = (left, right) if len(left) < len(right) else (right, left)
    return NOTHING if any(~atom in many for atom in few) else union


def all_of(goals: list[Conjunction]) -> Conjunction:
    """The conjunction of any number of goals."""
    result = ANYTHING
    for goal in goals:
        result = both(result, goal)
    return result


def in_order(goal: Conjunction) -> list[Atom]:
    """The atoms in the order of their nodes, which is the document's."""
    return sorted(goal, key=lambda atom: atom if atom >= 0 else ~atom)
