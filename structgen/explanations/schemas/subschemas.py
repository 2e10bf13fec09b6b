"""Which subschemas of a schema apply to a value together."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from ...compiler.json_schema.read.document import SchemaId
from .probes import SchemaProbes

#: A choice: a subschema, and its field.
Choice: TypeAlias = "tuple[SchemaId, str]"


class ApplyingSubschemas:
    """The subschemas of a schema, as they apply to values, members and items.

    Parameters
    ----------
    probes:
        The schema.
    """

    def __init__(self, probes: SchemaProbes) -> None:
        self._probes = probes

    def applied(self, goal: frozenset[SchemaId], by: tuple[str, ...] = ("refs", "all_of")) -> list[SchemaId]:
        """The subschemas that apply with some others ``by`` way of references and ``allOf``, or of other fields."""
        found = dict.fromkeys(sorted(goal))
        todo = list(found)
        for each in todo:  # grows
            for other in self._probes.schemas[each].children(by):
                if other not in found:
                    found[other] = None
                    todo.append(other)
        return todo

    def choices(self, schemas: Iterable[SchemaId], made: Collection[Choice]) -> list[Choice]:
        """The choices among alternatives, but for those that were made."""
        return [
            (each, field)
            for each in schemas
            for field in ("any_of", "one_of")
            if field in self._probes.said[each] and (each, field) not in made
        ]

    def of(self, schema: SchemaId, field: str) -> tuple[SchemaId, ...]:
        """The alternatives of a choice."""
        found: tuple[SchemaId, ...] = getattr(self._probes.schemas[schema], field)
        return found

    def of_member(self, schema: SchemaId, name: str) -> list[SchemaId]:
        """What a subschema says of the value of a member."""
        source = self._probes.schemas[schema]
        found = [source.properties[name]] if name in source.properties else []
        found += [child for pattern, child in source.pattern_properties.items() if self._probes.is_name(pattern, name)]
        if not found and source.additional_properties is not None:
            found = [source.additional_properties]
        return found

    def of_item(self, schema: SchemaId, at: int) -> list[SchemaId]:
        """What a subschema says of the item at a position."""
        source = self._probes.schemas[schema]
        if at < len(source.prefix_items):
            return [source.prefix_items[at]]
        return [] if source.items is None else [source.items]
