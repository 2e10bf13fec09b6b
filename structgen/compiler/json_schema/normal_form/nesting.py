"""How deep a schema's values nest: bounded, or for ever.

A fixed indentation needs to know. A line begins with as many spaces as there are brackets open, times two or so, and
comparing the two takes a count for which a pushdown automaton has no second stack. So depths are told apart by
states, and there must be a deepest one.
"""

from __future__ import annotations

from ....system.depth_first import post_order
from .shapes import Ref, Value, Values


def endless(values: Values) -> Value | None:
    """A value that can contain itself, or None where nesting is bounded."""
    circular: list[Ref] = []

    def children(ref: Ref) -> list[Ref]:
        return values.values[ref].children()

    for _ in post_order([values.root], children, lambda path, ref: circular.append(ref)):
        if circular:
            break
    return values.values[circular[0]] if circular else None
