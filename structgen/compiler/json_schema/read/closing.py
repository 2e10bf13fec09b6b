"""The options ``additional_properties=False`` and ``"unevaluated"``: objects have the members that are listed.

Not every schema with ``properties`` can simply be given ``additionalProperties: false``: below ``allOf`` two such
schemas would exclude each other's members. What is to be closed is a *location*: the root, the value of a member,
an item. The schemas that apply to the same location (by ``$ref``, ``allOf``, ``anyOf``, ``then``, ...) list its
members together, and where there are several, ``unevaluatedProperties: false`` says what is meant. A location is left
alone if its schema has either keyword, or if no schema lists anything, as ``{"type": "object"}`` does not.

By itself that keyword counts what *every* branch of ``anyOf`` lists that a value satisfies, and open branches are
satisfied easily: a value could mix them. With ``False`` each branch is closed by itself: a location's schema is first
split into alternatives, in each of which every ``anyOf`` that lists members has one branch.

Closing only takes values away. So a schema is closed where it *applies*, and stands as it was written where more of
it would mean less: in ``not``, ``if`` and ``propertyNames``, where ``maxContains`` counts, and for the branches of
``oneOf`` that a value must not satisfy. A schema that does both, by way of references, has a copy for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType

from ....budget import Meter
from .branches import IN_PLACE, Alternatives, names_members
from .document import CHILD_FIELDS, Document, Schema, SchemaId
from .dynamic import without_dynamic_references

#: The fields that hold the schemas of other locations: of members and items.
_BELOW = (
    "properties", "pattern_properties", "prefix_items", "additional_properties", "unevaluated_properties", "items",
    "contains", "unevaluated_items",
)  # fmt: skip

#: Those whose schemas are tried, and do not apply.
_TRIED = ("not_", "if_", "property_names")


def close_objects(document: Document, meter: Meter, *, branches: bool) -> Document:
    """The document with its locations closed; ``branches``: and in them each branch of ``anyOf`` by itself.

    Its dynamic references are resolved. Raises `BudgetExceededError` for branches in too many combinations.
    """
    schemas, root = without_dynamic_references(document, meter)
    document = replace(document, schemas=schemas, root=root, dynamic_anchors=MappingProxyType({}))
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
        applying = [*{*locations, *users}, *range(self._never, len(self._schemas))]
        before = [*self._schemas]
        for schema_id in applying:
            self._schemas[schema_id] = self._redirected(before[schema_id], closed)
        written = self._written(applying, before)
        for schema_id in applying:
            self._schemas[schema_id] = self._trying(self._schemas[schema_id], before[schema_id], written)
        for each, place in (*zip(written, written, strict=True), *closed.items()):
            as_written = written.get(each, each)
            if as_written != place:
                self._schemas[place] = self._schemas[place].changed({"written": as_written})
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
        group = _reached([location], self._schemas, IN_PLACE)
        if not any(names_members(self._schemas[member]) for member in group):
            return location
        if users:
            return self._added(Schema(schema.pointer, refs=(location,), unevaluated_properties=self._never))
        is_alone = len(group) == 1 and schema.if_ is None
        keyword = "additional_properties" if is_alone else "unevaluated_properties"
        self._schemas[location] = schema.changed({keyword: self._never})
        return location

    def _added(self, schema: Schema) -> SchemaId:
        self._schemas.append(schema)
        return len(self._schemas) - 1

    def _redirected(self, schema: Schema, closed: dict[SchemaId, SchemaId]) -> Schema:
        """A schema whose locations have their closed schemas."""

        def to(child: SchemaId) -> SchemaId:
            return closed.get(self._target(child), child)

        if all(to(child) == child for child in schema.children(_BELOW)):
            return schema
        return schema.with_children(_BELOW, to)

    # -- what stands as it was written ---------------------------------------------------------------------

    def _written(self, applying: list[SchemaId], before: list[Schema]) -> dict[SchemaId, SchemaId]:
        """Copies, as they were written, of schemas that are tried and that closing has changed, or what is below."""
        sources = (*self._document.schemas, *before[self._never :])
        tried = {child for each in applying for child in _tried(before[each])}
        parents: dict[SchemaId, list[SchemaId]] = {}
        for each in (reached := _reached(sorted(tried), sources, CHILD_FIELDS)):
            for child in sources[each].children(CHILD_FIELDS):
                parents.setdefault(child, []).append(each)
        changed = dict.fromkeys(each for each in reached if self._schemas[each] is not sources[each])
        for each in (todo := [*changed]):
            new = [parent for parent in parents.get(each, ()) if parent not in changed]
            changed.update(dict.fromkeys(new))
            todo += new
        applies = {*applying}
        written = {each: self._added(sources[each]) if each in applies else each for each in sorted(changed)}
        for each, place in written.items():
            self._schemas[place] = sources[each].with_children(CHILD_FIELDS, lambda child: written.get(child, child))
        return written

    def _trying(self, schema: Schema, before: Schema, written: dict[SchemaId, SchemaId]) -> Schema:
        """A schema that applies, and that tries others as they were written."""

        def to(child: SchemaId) -> SchemaId:
            return written.get(child, child)

        if any(child in written for child in schema.children(_TRIED)):
            schema = schema.with_children(_TRIED, to)
        if before.contains is None or before.max_contains is None or schema.contains == to(before.contains):
            return schema
        many = {"contains": to(before.contains), "min_contains": before.max_contains + 1}
        too_many = self._added(Schema(schema.pointer, types=frozenset({"array"}), **many))
        fewer = self._added(Schema(schema.pointer, not_=too_many))
        return schema.changed({"max_contains": None, "all_of": (*schema.all_of, fewer)})


def _reached(begin: Iterable[SchemaId], schemas: Sequence[Schema], fields: Iterable[str]) -> list[SchemaId]:
    """The schemas that some lead to by these fields, themselves first."""
    found = dict.fromkeys(begin)
    for each in (todo := [*found]):
        new = [child for child in schemas[each].children(fields) if child not in found]
        found.update(dict.fromkeys(new))
        todo += dict.fromkeys(new)
    return todo


def _tried(schema: Schema) -> Iterable[SchemaId]:
    """The schemas that one tries or counts."""
    counted = ("contains",) if schema.max_contains is not None else ()
    return schema.children((*_TRIED, "one_of", *counted))


def _is_reference(schema: Schema) -> bool:
    """Whether it says nothing beside its references."""
    about = ("pointer", "resource", "refs")
    said = ((name, value) for name, value in vars(schema).items() if name not in about)
    return not names_members(schema) and all(value == getattr(Schema, name) for name, value in said)
