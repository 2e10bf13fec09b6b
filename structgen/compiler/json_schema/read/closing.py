"""The options ``additional_properties=False`` and ``"unevaluated"``: objects have the members that are listed.

Not every schema with ``properties`` can simply be given ``additionalProperties: false``: below ``allOf`` two such
schemas would exclude each other's members. What is to be closed is a *location*: the root, the value of a member,
an item. The schemas that apply to the same location (by ``$ref``, ``allOf``, ``anyOf``, ``then``, ...) list its
members together, and where there are several, ``unevaluatedProperties: false`` says what is meant. A location is left
alone if its schema has either keyword, or if no schema lists anything, as ``{"type": "object"}`` does not.

By itself that keyword counts what *every* branch of ``anyOf`` lists that a value satisfies, and open branches are
satisfied easily: a value could mix them. With ``False`` each branch is closed by itself: a location's schema is first
split into alternatives, in each of which every ``anyOf`` that lists members has one branch. What is negated or only
tested is not closed, so that closing never makes a value valid: ``oneOf`` still counts branches as they were written.
"""

from __future__ import annotations

from dataclasses import replace

from ....budget import Meter
from .branches import IN_PLACE, Alternatives, names_members
from .document import Document, Schema, SchemaId

#: The fields that hold the schemas of other locations: of members and items.
_BELOW = (
    "properties", "pattern_properties", "prefix_items", "additional_properties", "unevaluated_properties", "items",
    "contains", "unevaluated_items",
)  # fmt: skip


def close_objects(document: Document, meter: Meter, *, branches: bool) -> Document:
    """The document with its locations closed; ``branches``: and in them each branch of ``anyOf`` by itself.

    Raises `BudgetExceededError` for branches in too many combinations, `UnsupportedError` for some behind a
    ``$dynamicRef``.
    """
    return _Closing(document, Alternatives(document, meter) if branches else None).run()


class _Closing:
    def __init__(self, document: Document, alternatives: Alternatives | None) -> None:
        self._document = document
        self._alternatives = alternatives
        self._schemas = [*document.schemas, Schema("", never=True)]
        self._never = len(document.schemas)

    def run(self) -> Document:
        locations, users = self._survey()
        closed = {location: self._closed(location, users.get(location, 0)) for location in locations}
        for schema_id in range(len(self._schemas)):
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
            for child in schema.children(IN_PLACE):
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
        found = [location] if self._alternatives is None else self._alternatives.of(location, self._schemas)
        if len(found) == 1:
            return self._closed_alone(location, users)
        return self._added(Schema(schema.pointer, any_of=tuple([self._closed_alone(each, 1) for each in found])))

    def _closed_alone(self, location: SchemaId, users: int) -> SchemaId:
        """The same of a schema whose branches count together, or that has one of each ``anyOf``."""
        schema = self._schemas[location]
        group = self._group(location)
        if not any(names_members(self._schemas[member]) for member in group):
            return location
        if users:
            return self._added(Schema(schema.pointer, refs=(location,), unevaluated_properties=self._never))
        keyword = "additional_properties" if len(group) == 1 else "unevaluated_properties"
        self._schemas[location] = schema.changed({keyword: self._never})
        return location

    def _added(self, schema: Schema) -> SchemaId:
        self._schemas.append(schema)
        return len(self._schemas) - 1

    def _group(self, location: SchemaId) -> list[SchemaId]:
        """The schemas that apply to a location."""
        group, seen = [location], {location}
        for member in group:
            for child in self._schemas[member].children(IN_PLACE):
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
