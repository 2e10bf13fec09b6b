"""Equal subschemas made one: what is written twice is worked out once, and recognised as the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ....budget import Meter
from ..read.document import LIST_FIELDS, MAP_FIELDS, SINGLE_FIELDS, Schema, SchemaId
from ..read.equality import equality_key

_UNSAID = vars(Schema)
_DOING = "comparing subschemas"
_SILENT = frozenset({"pointer", "resource", "integer_is_exact", "dynamic_ref", "dynamic_default"})


def said(schema: Schema) -> dict[str, Any]:
    """The fields that say something, with their values."""
    return {
        name: value
        for name, value in vars(schema).items()
        if value is not _UNSAID[name] and name not in _SILENT and value != _UNSAID[name]
    }


def children(fields: dict[str, Any]) -> list[SchemaId]:
    """The subschemas among the fields."""
    found: list[SchemaId] = []
    for name, value in fields.items():
        if name in SINGLE_FIELDS:
            found.append(value)
        elif name in LIST_FIELDS:
            found += value
        elif name in MAP_FIELDS:
            found += value.values()
    return found


def representatives(schemas: Sequence[Schema], root: SchemaId, meter: Meter) -> list[SchemaId]:
    """For each subschema one that is equal, the same for all of them; cycles are not compared."""
    same = list(range(len(schemas)))
    known: dict[Hashable, SchemaId] = {}
    fields = said(schemas[root])
    stack = [(root, fields, iter(children(fields)))]
    seen = {root}
    while stack:
        node, fields, remaining = stack[-1]
        meter.check_time(_DOING)
        for child in remaining:
            if child not in seen:
                seen.add(child)
                inner = said(schemas[child])
                below = children(inner)
                if below:
                    stack.append((child, inner, iter(below)))
                    break
                same[child] = known.setdefault(_key(schemas[child], inner, same, meter), child)
        else:
            stack.pop()
            same[node] = known.setdefault(_key(schemas[node], fields, same, meter), node)
    return same


def _key(schema: Schema, fields: dict[str, Any], same: list[SchemaId], meter: Meter) -> Hashable:
    """Equal for subschemas that say the same, their children compared by representative."""
    parts: list[Hashable] = [schema.integer_is_exact]
    for name in sorted(fields):
        value = fields[name]
        parts.append(name)
        if name == "enum":
            value = tuple(map(equality_key, meter.each(value, _DOING)))
        parts.append(_FROZEN[name](value, same) if name in _FROZEN else value)
    return tuple(parts)


def _frozen_list(value: tuple[SchemaId, ...], same: list[SchemaId]) -> Hashable:
    return tuple([same[child] for child in value])


def _frozen_map(value: dict[str, SchemaId], same: list[SchemaId]) -> Hashable:
    return tuple([(name, same[child]) for name, child in value.items()])  # the order is that of the text


_FROZEN: dict[str, Callable[[Any, list[SchemaId]], Hashable]] = {
    **dict.fromkeys(SINGLE_FIELDS, lambda value, same: same[value]),
    **dict.fromkeys(LIST_FIELDS, _frozen_list),
    **dict.fromkeys(MAP_FIELDS, _frozen_map),
    "dependent_required": lambda value, same: tuple(value.items()),
}
