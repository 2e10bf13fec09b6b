"""Equal subschemas made one: what is written twice is worked out once, and recognised as the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from ....budget import Meter
from ..read.blame import placed
from ..read.document import LIST_FIELDS, MAP_FIELDS, SINGLE_FIELDS, Schema, SchemaId
from ..read.equality import equality_key

#: By subschema, the fields in which it says something.
Fields: TypeAlias = Mapping[SchemaId, frozenset[str]]

_DOING = "comparing subschemas"
_TYPES = frozenset({"types"})
_SILENT = {"pointer", "resource", "integer_is_exact", "dynamic_ref", "dynamic_default", "written"}
_UNSAID = {name: value for name, value in vars(Schema).items() if name not in _SILENT}
#: The fields of subschemas.
BELOW = frozenset({*SINGLE_FIELDS, *LIST_FIELDS, *MAP_FIELDS})
#: The types without which some say nothing.
_HOLDING = {"items": "array", "properties": "object", "additional_properties": "object"}


def said(schema: Schema) -> frozenset[str]:
    """The fields that say something."""
    if len(vars(schema)) == 2 and schema.types is not None:  # beside the pointer
        return _TYPES
    return frozenset([name for name, value in vars(schema).items() if _UNSAID.get(name, value) != value])


def places(schemas: Sequence[Schema], root: SchemaId, meter: Meter) -> dict[SchemaId, frozenset[str]]:
    """The subschemas that a root leads to, and the fields in which each says something.

    Each comes after those that it leads to, as far as cycles allow; behind the root is what closed ones were before.
    """
    fields: dict[SchemaId, frozenset[str]] = {}
    node, todo = root, [*[each.written for each in schemas if each.written is not None], root]
    with placed(lambda: schemas[max(node, ~node)].pointer):
        while todo:
            if not len(fields) & 63:
                meter.check_time(_DOING)
            node = todo.pop()
            if node < 0:  # all that it leads to is done
                fields[~node] = fields.pop(~node)
            elif node not in fields:
                schema = schemas[node]
                names, types = said(schema), schema.types
                if types is not None and not names.isdisjoint(_HOLDING):
                    names = names.difference([name for name, held in _HOLDING.items() if held not in types])
                fields[node] = names
                if not names.isdisjoint(BELOW):
                    below = [name for name in vars(schema) if name in names and name in BELOW]
                    todo += (~node, *reversed(schema.children(below)))
    return fields


def representatives(schemas: Sequence[Schema], fields: Fields, meter: Meter) -> list[SchemaId]:
    """For each subschema one that is equal, the same for all of them; of `places`, and cycles are not compared."""
    same = list(range(len(schemas)))
    known: dict[Hashable, SchemaId] = {}
    node = 0
    with placed(lambda: schemas[node].pointer):
        for node, names in meter.each(fields.items(), _DOING, every=64):
            same[node] = known.setdefault(_key(schemas[node], names, same, meter), node)
    return same


def _key(schema: Schema, names: frozenset[str], same: list[SchemaId], meter: Meter) -> Hashable:
    """Equal for subschemas that say the same, their children compared by representative."""
    if names == _TYPES:
        return schema.types, schema.integer_is_exact
    parts: list[Hashable] = [schema.integer_is_exact, schema.order() if len(names) > 1 else ()]
    for name in sorted(names):
        value = getattr(schema, name)
        if name in BELOW:  # the order is that of the text
            if isinstance(value, int):
                value = same[value]
            elif isinstance(value, tuple):
                value = tuple([same[child] for child in value])
            else:
                value = (*value, *[same[child] for child in value.values()])
        elif name == "enum" and {*map(type, value)} != {str}:
            value = tuple([equality_key(each, written=True) for each in meter.each(value, _DOING)])
        elif name == "dependent_required":
            value = tuple(value.items())
        parts += name, value
    return tuple(parts)
