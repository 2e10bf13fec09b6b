"""Walks of graphs in depth, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

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
                    if below := children(child):
                        path.append(child)
                        remaining.append(iter(below))
                        break
                    left.add(child)
                    yield child
                elif on_cycle is not None and child not in left:
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


def flattened(root: tuple[object, ...]) -> list[tuple[object, ...]]:
    """Nested tuples as a list without nesting, the outermost last: for pickles, which recurse. `nested` reads it.

    A tuple within another one is replaced by ``(number,)``, its place in the list.
    """
    places, found, todo = dict[int, int](), list[tuple[object, ...]](), [root]
    while todo:
        node = todo[-1]
        inner = [each for each in node if type(each) is tuple and id(each) not in places]
        if inner:
            todo += inner
            continue
        todo.pop()
        if id(node) not in places:
            places[id(node)] = len(found)
            found.append(tuple([(places[id(each)],) if type(each) is tuple else each for each in node]))
    return found


def nested(flat: Iterable[tuple[object, ...]]) -> tuple[Any, ...]:
    """The nested tuples of which `flattened` made a list."""
    made: list[tuple[object, ...]] = []
    for node in flat:
        made.append(tuple([made[each[0]] if type(each) is tuple else each for each in node]))
    return made[-1]
