"""Equal subschemas made one: what is written twice is worked out once, and recognised as the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from ....budget import Meter
from ....system.depth_first import post_order
from ..read.document import LIST_FIELDS, MAP_FIELDS, SINGLE_FIELDS, Schema, SchemaId
from ..read.equality import equality_key

_UNSAID = vars(Schema)
_DOING = "comparing subschemas"
_SILENT = frozenset({"pointer", "resource", "integer_is_exact", "dynamic_ref", "dynamic_default"})
_BELOW = frozenset({*SINGLE_FIELDS, *LIST_FIELDS, *MAP_FIELDS})


def said(schema: Schema) -> list[str]:
    """The fields that say something."""
    return [
        name
        for name, value in vars(schema).items()
        if value is not _UNSAID[name] and name not in _SILENT and value != _UNSAID[name]
    ]


def representatives(schemas: Sequence[Schema], root: SchemaId, meter: Meter) -> list[SchemaId]:
    """For each subschema one that is equal, the same for all of them; cycles are not compared."""
    same = list(range(len(schemas)))
    known: dict[Hashable, SchemaId] = {}
    fields: dict[SchemaId, list[str]] = {}

    def children(node: SchemaId) -> Iterator[SchemaId]:
        meter.check_time(_DOING)
        names = fields[node] = said(schemas[node])
        return schemas[node].children(filter(_BELOW.__contains__, names))

    for node in post_order([root], children):
        key = tuple(_key(schemas[node], fields.pop(node), same, meter))
        same[node] = known.setdefault(key, node)
    return same


def _key(schema: Schema, names: list[str], same: list[SchemaId], meter: Meter) -> Iterator[Hashable]:
    """Equal for subschemas that say the same, their children compared by representative."""
    yield schema.integer_is_exact
    for name in sorted(names):
        yield name
        value = getattr(schema, name)
        if name == "enum":
            yield tuple(map(equality_key, meter.each(value, _DOING)))
        elif isinstance(value, Mapping):  # the order is that of the text
            yield tuple([(key, same[child] if name in MAP_FIELDS else child) for key, child in value.items()])
        elif name in SINGLE_FIELDS:
            yield same[value]
        else:
            yield tuple([same[child] for child in value]) if name in LIST_FIELDS else value
