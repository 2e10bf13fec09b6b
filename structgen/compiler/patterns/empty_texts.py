"""A pattern without the empty text."""

from __future__ import annotations

from .measures import children, post_order
from .syntax import Alternate, Concat, Look, Node, Repeat

#: No text at all.
NOTHING = Alternate(())


def without_empty(tree: Node) -> Node | None:
    """The tree of a pattern's other texts, `NOTHING` where there are none; None where the empty text is none of it.

    Matches are preferred as `re` would prefer them if it went on looking after an empty one. None as well for
    patterns with look-around, which may decide about the empty text.
    """
    nullable, others = dict[int, bool](), dict[int, Node]()
    for node in post_order(tree):
        if isinstance(node, Look):
            return None
        below = [nullable[id(each)] for each in children(node)]
        is_nullable = nullable[id(node)] = _is_nullable(node, below)
        others[id(node)] = _others(node, nullable, others) if is_nullable else node
    return others[id(tree)] if nullable[id(tree)] else None


def _is_nullable(node: Node, below: list[bool]) -> bool:
    if isinstance(node, Concat):
        return all(below)
    return (isinstance(node, Repeat) and node.min == 0) or any(below)


def _others(node: Node, nullable: dict[int, bool], others: dict[int, Node]) -> Node:
    """As `without_empty`, of a node that can be empty, from what its parts have besides."""
    found: list[tuple[Node, ...]]
    if isinstance(node, Repeat):
        rest = Repeat(node.item, max(node.min - 1, 0), node.max and node.max - 1, node.column, node.lazy)
        found = [(others[id(node.item)], rest)] if node.max != 0 else []
    elif isinstance(node, Concat):  # what is first not empty, after parts that are
        found = [(others[id(part)], *node.parts[i + 1 :]) for i, part in enumerate(node.parts)]
    else:
        found = [(others[id(each)],) for each in children(node)]
    options = tuple(Concat(parts) if len(parts) > 1 else parts[0] for parts in found if parts[0] is not NOTHING)
    return Alternate(options) if options else NOTHING
