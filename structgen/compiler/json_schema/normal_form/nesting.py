"""How deep a schema's values nest: bounded, or for ever.

A fixed indentation needs to know. A line begins with as many spaces as there are brackets open, times two or so, and
comparing the two takes a count for which a pushdown automaton has no second stack. So depths are told apart by
states, and there must be a deepest one.
"""

from __future__ import annotations

from collections.abc import Iterator

from .shapes import Choice, Ref, Value, Values


def endless(values: Values) -> Value | None:
    """A value that can contain itself, or None where nesting is bounded. Linear, on a stack of its own."""
    path: list[tuple[Ref, Iterator[Ref]]] = [(values.root, _inside(values.values[values.root]))]
    on_path, seen = {values.root}, {values.root}
    while path:
        ref, rest = path[-1]
        child = next(rest, None)
        if child is None:
            path.pop()
            on_path.discard(ref)
        elif child in on_path:
            return values.values[child]
        elif child not in seen:
            seen.add(child)
            on_path.add(child)
            path.append((child, _inside(values.values[child])))
    return None


def _inside(value: Value) -> Iterator[Ref]:
    """What a value's items and members may be."""
    for array in value.arrays:
        for choice in (*array.prefix, array.rest):
            yield from _refs(choice)
    for shape in value.objects:
        for declared in shape.properties:
            yield from _refs(declared.choice)
        for other in shape.others:
            yield from _refs(other.choice)


def _refs(choice: Choice) -> Iterator[Ref]:
    return (option.value for option in choice)
