"""The option ``additional_properties=False``: objects have no members but those that their schema lists.

Not every schema with ``properties`` can simply be given ``additionalProperties: false``: below ``allOf`` two such
schemas would exclude each other's members. What is to be closed is a *location*: the root, the value of a member,
an item. The schemas that apply to the same location (by ``$ref``, ``allOf``, ``anyOf``, ``then``, ...) list its
members together, and where there are several, ``unevaluatedProperties: false`` says what is meant. A location is left
alone if its schema has either keyword, or if no schema lists anything, as ``{"type": "object"}`` does not.
"""

from __future__ import annotations

from dataclasses import replace

from .document import Document, Schema, SchemaId

#: The fields that hold the schemas of other locations: of members and items.
_BELOW = (
    "properties", "pattern_properties", "prefix_items", "additional_properties", "unevaluated_properties", "items",
    "contains", "unevaluated_items",
)  # fmt: skip

#: Those for the same location whose schemas may list its members; not those that are only tried.
_IN_PLACE = ("refs", "all_of", "any_of", "one_of", "dependent_schemas", "then", "else_", "dynamic_default")


def close_objects(document: Document) -> Document:
    """The document with its locations closed."""
    return _Closing(document).run()


class _Closing:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._schemas = [*document.schemas, Schema("", never=True)]
        self._never = len(document.schemas)

    def run(self) -> Document:
        locations, users = self._survey()
        closed = {location: self._closed(location, users.get(location, 0)) for location in locations}
        for schema_id in range(len(self._document.schemas)):
            self._schemas[schema_id] = self._redirected(self._schemas[schema_id], closed)
        root = self._target(self._document.root)
        return replace(self._document, schemas=tuple(self._schemas), root=closed[root])

    def _survey(self) -> tuple[list[SchemaId], dict[SchemaId, int]]:
        """The locations' schemas, references followed, and by how many others each schema is used in place."""
        root = self._target(self._document.root)
        locations = {root: None}
        users: dict[SchemaId, int] = {}
        todo, seen = [root], {root}
        for schema_id in todo:
            schema = self._schemas[schema_id]
            found = [self._target(child) for child in schema.children(_BELOW)]
            locations.update(dict.fromkeys(found))
            for child in schema.children(_IN_PLACE):
                users[child] = users.get(child, 0) + 1
                found.append(child)
            for child in found:
                if child not in seen:
                    seen.add(child)
                    todo.append(child)
        return list(locations), users

    def _target(self, schema_id: SchemaId) -> SchemaId:
        """The schema itself, or the one it stands for if it is nothing but a reference."""
        seen = set()
        while schema_id not in seen:
            seen.add(schema_id)
            schema = self._schemas[schema_id]
            if len(schema.refs) != 1 or not _is_reference(schema):
                return schema_id
            schema_id = schema.refs[0]
        return schema_id

    def _closed(self, location: SchemaId, users: int) -> SchemaId:
        """The schema for a location: the same, changed in its place, unless others use it in theirs."""
        schema = self._schemas[location]
        if schema.additional_properties is not None or schema.unevaluated_properties is not None:
            return location
        group = self._group(location)
        if not any(self._schemas[member].properties or self._schemas[member].pattern_properties for member in group):
            return location
        if users:
            self._schemas.append(Schema(schema.pointer, refs=(location,), unevaluated_properties=self._never))
            return len(self._schemas) - 1
        keyword = "additional_properties" if len(group) == 1 else "unevaluated_properties"
        self._schemas[location] = schema.changed({keyword: self._never})
        return location

    def _group(self, location: SchemaId) -> list[SchemaId]:
        """The schemas that apply to a location."""
        group, seen = [location], {location}
        for member in group:
            for child in self._schemas[member].children(_IN_PLACE):
                if child not in seen:
                    seen.add(child)
                    group.append(child)
        return group

    def _redirected(self, schema: Schema, closed: dict[SchemaId, SchemaId]) -> Schema:
        """A schema whose locations have their closed schemas."""

        def to(child: SchemaId) -> SchemaId:
            return closed.get(self._target(child), child)

        if all(to(child) == child for child in schema.children(_BELOW)):
            return schema
        return schema.with_children(_BELOW, to)


def _is_reference(schema: Schema) -> bool:
    """Whether it says nothing beside its references."""
    about = ("pointer", "resource", "refs")
    return all(name in about or value == getattr(Schema, name) for name, value in vars(schema).items())
