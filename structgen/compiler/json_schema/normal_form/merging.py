"""Alternatives that differ in one place only, made one.

Apart from counts, a shape is a product: of what may stand at each name, or position. Products that differ in a single
factor are together the product with the union of the two factors.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias, TypeVar

from .shapes import ArrayShape, Choice, ObjectShape, Property

_Shape = TypeVar("_Shape", ArrayShape, ObjectShape)

#: What a shape is a product of, by name or position: a choice, and whether something must be there.
_Factors: TypeAlias = dict[str | int, tuple[Choice, bool]]

#: So many times at most, all alternatives are compared; each time, each takes part in one union.
_ROUNDS = 8


def merged(shapes: Iterable[_Shape]) -> list[_Shape]:
    """The union of the shapes, by fewer of them where they differ in one member, or in one item of the prefix."""
    current = list(dict.fromkeys(shapes))
    for _ in range(_ROUNDS):
        if len(current) < 2:
            break
        factors = [_factors(shape) for shape in current]
        groups: dict[tuple[Hashable, str | int, int], list[int]] = {}
        for k, of_one in enumerate(factors):
            # What is left when one factor is taken out, by its hash: an exclusive or of the factors' hashes.
            hashes = {place: hash((place, factor)) for place, factor in of_one.items()}
            everything = 0
            for value in hashes.values():
                everything ^= value
            frame = _frame(current[k])
            for place, value in hashes.items():
                groups.setdefault((frame, place, everything ^ value), []).append(k)
        kept: dict[int, _Shape] = dict(enumerate(current))
        for (_, place, _), members in sorted(groups.items(), key=lambda group: -len(group[1])):
            group = [k for k in members if factors[k]]
            if len(group) > 1 and _alike([factors[k] for k in group], place):
                kept[group[0]] = _united(current[group[0]], place, [factors[k][place] for k in group])
                for k in group:
                    factors[k] = {}  # it has taken part in a union
                for k in group[1:]:
                    del kept[k]
        if len(kept) == len(current):
            break
        current = list(kept.values())
    return current


def _alike(several: list[_Factors], place: str | int) -> bool:
    """Whether they are indeed equal but for one factor, and not only their hashes."""
    first, *others = ({other: factor for other, factor in each.items() if other != place} for each in several)
    return all(other == first for other in others)


def _factors(shape: ArrayShape | ObjectShape) -> _Factors:
    """Its factors; none where items or members are counted."""
    if isinstance(shape, ArrayShape):
        return {} if shape.contains else {k: (choice, True) for k, choice in enumerate(shape.prefix)}
    return {} if shape.exists else {name: (choice, must) for name, choice, must in shape.properties}


def _frame(shape: ArrayShape | ObjectShape) -> Hashable:
    """What is no factor."""
    if isinstance(shape, ArrayShape):
        return shape.rest, shape.min_items, shape.max_items, shape.unique, len(shape.prefix)
    names = tuple([member.name for member in shape.properties])  # in their order, which is the alternative's own
    return shape.others, shape.min_properties, shape.max_properties, names


def _united(shape: _Shape, place: str | int, factors: list[tuple[Choice, bool]]) -> _Shape:
    """The shape with the union of some factors at a place."""
    union = tuple(dict.fromkeys(option for choice, _ in factors for option in choice))
    if isinstance(shape, ArrayShape):
        return shape._replace(prefix=tuple(union if k == place else item for k, item in enumerate(shape.prefix)))
    member = Property(str(place), union, all(must for _, must in factors))
    return shape._replace(properties=tuple(member if p.name == place else p for p in shape.properties))
