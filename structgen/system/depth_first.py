"""Walks of graphs in depth, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

_Node = TypeVar("_Node", bound=Hashable)
_Part = TypeVar("_Part")
_Value = TypeVar("_Value")


def post_order(
    roots: Iterable[_Node],
    children: Callable[[_Node], Iterable[_Node]],
    on_cycle: Callable[[list[_Node], _Node], object] | None = None,
) -> Iterator[_Node]:
    """What some roots lead to, each node after those that it leads to, as far as cycles allow.

    ``on_cycle`` is called with a path and one of its nodes that the path's last one leads back to.
    """
    seen, left = set[_Node](), set[_Node]()
    for root in roots:
        if root in seen:
            continue
        path = [root]
        seen.add(root)
        remaining = [iter(children(root))]
        while path:
            for child in remaining[-1]:
                if child not in seen:
                    seen.add(child)
                    path.append(child)
                    remaining.append(iter(children(child)))
                    break
                if on_cycle is not None and child not in left:
                    on_cycle(path, child)
            else:
                remaining.pop()
                node = path.pop()
                if on_cycle is not None:
                    left.add(node)
                yield node


def fold(root: _Part, expand: Callable[[_Part], tuple[Iterable[_Part], Callable[[list[_Value]], _Value]]]) -> _Value:
    """The value of a node: ``expand`` gives its parts, and what makes a value of theirs."""
    parts, make = expand(root)
    frames: list[tuple[Iterator[_Part], list[_Value], Callable[[list[_Value]], _Value]]] = [(iter(parts), [], make)]
    while True:
        remaining, values, make = frames[-1]
        for part in remaining:
            parts, make = expand(part)
            frames.append((iter(parts), [], make))
            break
        else:
            frames.pop()
            value = make(values)
            if not frames:
                return value
            frames[-1][1].append(value)
