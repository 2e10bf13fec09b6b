"""Alternatives that differ in one place only, made one.

Apart from counts, a shape is a product: of what may stand at each name, or position. Products that differ in a single
factor are together the product with the union of the two factors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from .trimming import Choice, Member, TrimmedArray, TrimmedObject

Shape = TypeVar("Shape", TrimmedObject, TrimmedArray)

#: So many times at most, all alternatives are compared; each time, each takes part in one union.
_ROUNDS = 8


def merged_objects(shapes: Iterable[TrimmedObject]) -> list[TrimmedObject]:
    """The union of the shapes, by fewer of them where they differ in one member."""
    return _merged(shapes, _object_factors, _united_objects)


def merged_arrays(shapes: Iterable[TrimmedArray]) -> list[TrimmedArray]:
    """The union of the shapes, by fewer of them where they differ in one item of the prefix."""
    return _merged(shapes, _array_factors, _united_arrays)


def _merged(
    shapes: Iterable[Shape],
    factors_of: Callable[[Shape], tuple[Hashable, dict[Hashable, Hashable]] | None],
    united: Callable[[list[Shape], Hashable], Shape],
) -> list[Shape]:
    current = list(dict.fromkeys(shapes))
    for _ in range(_ROUNDS):
        if len(current) < 2:
            break
        groups: dict[Hashable, list[int]] = {}
        for k, shape in enumerate(current):
            found = factors_of(shape)
            if found is not None:
                frame, factors = found
                # What is left when one factor is taken out, by its hash: an exclusive or of the factors' hashes.
                everything = 0
                hashes = {place: hash((place, factor)) for place, factor in factors.items()}
                for value in hashes.values():
                    everything ^= value
                for place, value in hashes.items():
                    groups.setdefault((frame, place, everything ^ value), []).append(k)
        taken: set[int] = set()
        unions = []
        for (_, place, _), members in sorted(groups.items(), key=lambda group: -len(group[1])):  # type: ignore[misc]
            group = [k for k in members if k not in taken]
            if len(group) > 1 and _alike([current[k] for k in group], place, factors_of):
                taken.update(group)
                unions.append((group[0], united([current[k] for k in group], place)))
        if not unions:
            break
        kept = [(k, shape) for k, shape in enumerate(current) if k not in taken]
        current = [shape for _, shape in sorted(kept + unions, key=lambda entry: entry[0])]
    return current


def _alike(
    shapes: list[Shape],
    place: Hashable,
    factors_of: Callable[[Shape], tuple[Hashable, dict[Hashable, Hashable]] | None],
) -> bool:
    """Whether the shapes are indeed equal but for one factor, and not only their hashes."""
    rests = []
    for shape in shapes:
        found = factors_of(shape)
        assert found is not None
        rests.append({other: factor for other, factor in found[1].items() if other != place})
    return all(rest == rests[0] for rest in rests[1:])


def _object_factors(shape: TrimmedObject) -> tuple[Hashable, dict[Hashable, Hashable]] | None:
    if shape.exists:
        return None
    return (shape.others, shape.low, shape.high), {m.name: (m.choice, m.required) for m in shape.members}


def _united_objects(shapes: list[TrimmedObject], name: Hashable) -> TrimmedObject:
    differing = [next(member for member in shape.members if member.name == name) for shape in shapes]
    union = Member(
        differing[0].name,
        _union([member.choice for member in differing]),
        all(member.required for member in differing),
    )
    members = tuple(union if member.name == name else member for member in shapes[0].members)
    return shapes[0]._replace(members=members)


def _array_factors(shape: TrimmedArray) -> tuple[Hashable, dict[Hashable, Hashable]] | None:
    if shape.counts:
        return None
    return (shape.rest, shape.low, shape.high, shape.unique, len(shape.prefix)), dict(enumerate(shape.prefix))


def _united_arrays(shapes: list[TrimmedArray], position: Hashable) -> TrimmedArray:
    prefix = list(shapes[0].prefix)
    assert isinstance(position, int)
    prefix[position] = _union([shape.prefix[position] for shape in shapes])
    return shapes[0]._replace(prefix=tuple(prefix))


def _union(choices: Iterable[Choice]) -> Choice:
    return tuple(dict.fromkeys(option for choice in choices for option in choice))
