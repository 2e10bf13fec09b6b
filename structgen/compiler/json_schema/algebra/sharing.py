"""Equal subschemas made one: what is written twice is worked out once, and recognised as the same."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

from ....budget import Meter
from ....system.depth_first import post_order
from ..read.blame import placed
from ..read.document import LIST_FIELDS, MAP_FIELDS, SINGLE_FIELDS, Schema, SchemaId
from ..read.equality import equality_key

_DOING = "comparing subschemas"
_SILENT = {"pointer", "resource", "integer_is_exact", "dynamic_ref", "dynamic_default", "written"}
_UNSAID = {name: value for name, value in vars(Schema).items() if name not in _SILENT}
#: The fields of subschemas.
BELOW = frozenset({*SINGLE_FIELDS, *LIST_FIELDS, *MAP_FIELDS})


def said(schema: Schema) -> list[str]:
    """The fields that say something."""
    return [name for name, value in vars(schema).items() if _UNSAID.get(name, value) != value]


def representatives(
    schemas: Sequence[Schema], root: SchemaId, meter: Meter
) -> tuple[list[SchemaId], list[frozenset[str] | None]]:
    """For each subschema one that is equal, the same for all of them, and the fields in which it says something.

    Cycles are not compared. The fields are None of what the root does not lead to.
    """
    same = list(range(len(schemas)))
    fields: list[frozenset[str] | None] = [None] * len(schemas)
    known: dict[Hashable, SchemaId] = {}

    def children(node: SchemaId) -> list[SchemaId]:
        names = said(schemas[node])
        fields[node] = frozenset(names)
        below = [name for name in names if name in BELOW]
        return schemas[node].children(["written", *below]) if below or schemas[node].written is not None else []

    node = root
    with placed(lambda: schemas[node].pointer):
        for node in meter.each(post_order([root], children), _DOING, every=64):
            same[node] = known.setdefault(_key(schemas[node], fields[node] or (), same, meter), node)
    return same, fields


def _key(schema: Schema, names: Collection[str], same: list[SchemaId], meter: Meter) -> Hashable:
    """Equal for subschemas that say the same, their children compared by representative."""
    if len(names) == 1 and schema.types is not None:
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
        elif name == "enum":
            value = tuple([equality_key(each, written=True) for each in meter.each(value, _DOING)])
        elif name == "dependent_required":
            value = tuple(value.items())
        parts += name, value
    return tuple(parts)
