"""Shapes that say no more than they have to: without marks that are earned anyway, and within bounds that matter."""

from __future__ import annotations

from typing import TypeVar

from .shapes import ArrayShape, Choice, ObjectShape, Option, Property


def without_idle_marks(shape: ObjectShape) -> ObjectShape:
    """The shape without forbidden classes, and marks that are earned anyway. It must have members."""
    others = tuple([each for each in shape.others if each.choice])
    if not shape.exists:
        return shape if len(others) == len(shape.others) else shape._replace(others=others)
    properties, kept = list(shape.properties), []
    for mark in range(shape.exists):
        earning = [k for k, (_, choice, _) in enumerate(properties) if _some(choice, mark)]
        if any(properties[k].required and _all(properties[k].choice, mark) for k in earning):
            continue
        if len(earning) == 1 and not any(_some(choice, mark) for _, choice in others):
            (k,) = earning
            name, choice, _ = properties[k]
            properties[k] = Property(name, tuple(option for option in choice if option.marks >> mark & 1), True)
        else:
            kept.append(mark)
    shape = ObjectShape(tuple(properties), others, shape.min_properties, shape.max_properties, shape.exists)
    return _with_marks(shape, kept)._replace(exists=len(kept)) if len(kept) < shape.exists else shape


def bounded(shape: ObjectShape) -> ObjectShape:
    """The shape with bounds that say no more than its members do."""
    properties, others = shape.properties, shape.others
    low, high = shape.min_properties, shape.max_properties
    if not low and high is None and () not in [choice for _, choice, _ in properties]:
        return shape
    required = sum([p.required for p in properties])
    if high == required:  # no room for anything that may be left out
        properties, others = tuple(p for p in properties if p.required), ()
    if others:
        properties = tuple([p for p in properties if p.choice or any(p.name in keys for keys, _ in others)])
    else:
        properties = tuple([p for p in properties if p.choice])
        if low >= len(properties):
            properties = tuple(p._replace(required=True) for p in properties)
            required = len(properties)
        if high is not None and high >= len(properties):
            high = None
    return ObjectShape(properties, others, low if low > required else 0, high, shape.exists)


def trimmed_array(shape: ArrayShape) -> ArrayShape:
    """The shape without marks that all items earn, or none, cut where no further item can stand."""
    low, high = shape.min_items, shape.max_items
    beyond = next((k for k, choice in enumerate(shape.prefix) if not choice), len(shape.prefix))
    if beyond < len(shape.prefix):
        shape = shape._replace(prefix=shape.prefix[:beyond], rest=())
    kept = []
    for mark, count in enumerate(shape.contains):
        if all(_all(choice, mark) for choice in shape.choices()):  # then all items count
            low = max(low, count.min)
            if count.max is not None:
                high = count.max if high is None else min(high, count.max)
        elif any(_some(choice, mark) for choice in shape.choices()):
            kept.append(mark)
    unique = shape.unique and high not in (0, 1)
    if len(kept) < len(shape.contains):
        shape = _with_marks(shape, kept)._replace(contains=tuple(shape.contains[mark] for mark in kept))
    prefix, rest = list(shape.prefix), shape.rest
    if not rest:
        high = beyond if high is None else min(high, beyond)
    elif high is not None and high <= beyond:
        rest = ()
    if high is not None:
        del prefix[high:]
    while prefix and prefix[-1] == rest:
        prefix.pop()
    return ArrayShape(tuple(prefix), rest, low, high, shape.contains, unique)


def _some(choice: Choice, mark: int) -> bool:
    return any(marks >> mark & 1 for _, marks in choice)


def _all(choice: Choice, mark: int) -> bool:
    return all(marks >> mark & 1 for _, marks in choice)


_Shape = TypeVar("_Shape", ArrayShape, ObjectShape)


def _with_marks(shape: _Shape, kept: list[int]) -> _Shape:
    """The shape with those marks only, numbered anew."""

    def renumbered(choice: Choice) -> Choice:
        options = (Option(ref, sum((marks >> mark & 1) << k for k, mark in enumerate(kept))) for ref, marks in choice)
        return tuple(dict.fromkeys(options))

    return shape.mapped(renumbered)
