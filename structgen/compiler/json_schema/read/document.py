"""A schema document as the reader hands it over: every draft's spelling brought to that of Draft 2020-12.

Every subschema is a `Schema`; children are indexes into `Document.schemas`, references are resolved to such
indexes, so that the algebra never sees a URI. Numbers are `Decimal`, exactly as written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, TypeAlias

#: Index of a subschema in `Document.schemas`.
SchemaId: TypeAlias = int

#: A JSON value: None, bool, Decimal (every number), str, list, dict.
Json: TypeAlias = Any

#: Fields of a `Schema` that hold a subschema, several, and several by name.
SINGLE_FIELDS = (
    "not_", "if_", "then", "else_", "additional_properties", "property_names", "unevaluated_properties", "items",
    "contains", "unevaluated_items",
)  # fmt: skip
LIST_FIELDS = ("refs", "all_of", "any_of", "one_of", "prefix_items")
MAP_FIELDS = ("properties", "pattern_properties", "dependent_schemas")

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Schema:
    """One subschema. A field at its default says nothing; ``False`` schemas have ``never`` set.

    Siblings of ``$ref`` are kept (2019-09 and later) or were dropped (draft-07 and earlier) by the reader.
    Draft-04's boolean ``exclusiveMinimum``, ``dependencies``, the array form of ``items`` with
    ``additionalItems``, ``id``, ``definitions``, ``$recursiveRef`` have been rewritten.
    """

    pointer: str
    never: bool = False
    types: frozenset[str] | None = None  # of null boolean number integer string array object
    integer_is_exact: bool = False  # draft-04: 1.0 is not an integer
    enum: tuple[Json, ...] | None = None  # const is an enum of one; both present: two entries in all_of
    # references and applicators
    refs: tuple[SchemaId, ...] = ()  # $ref and resolved $dynamicRef
    dynamic_ref: str | None = None  # a $dynamicRef whose target depends on the path: the anchor's name
    dynamic_default: SchemaId | None = None  # where it leads if no resource on the path has that dynamic anchor
    resource: int = 0  # which resource (document part with its own $id) this subschema lies in
    all_of: tuple[SchemaId, ...] = ()
    any_of: tuple[SchemaId, ...] | None = None
    one_of: tuple[SchemaId, ...] | None = None
    not_: SchemaId | None = None
    if_: SchemaId | None = None
    then: SchemaId | None = None
    else_: SchemaId | None = None
    # objects
    properties: Mapping[str, SchemaId] = field(default_factory=lambda: _NONE)
    pattern_properties: Mapping[str, SchemaId] = field(default_factory=lambda: _NONE)
    additional_properties: SchemaId | None = None
    property_names: SchemaId | None = None
    required: tuple[str, ...] = ()
    min_properties: int = 0
    max_properties: int | None = None
    dependent_required: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NONE)
    dependent_schemas: Mapping[str, SchemaId] = field(default_factory=lambda: _NONE)
    unevaluated_properties: SchemaId | None = None
    # arrays
    prefix_items: tuple[SchemaId, ...] = ()
    items: SchemaId | None = None  # for the items after prefix_items
    min_items: int = 0
    max_items: int | None = None
    contains: SchemaId | None = None
    min_contains: int = 1
    max_contains: int | None = None
    unique_items: bool = False
    unevaluated_items: SchemaId | None = None
    # strings
    min_length: int = 0
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    # numbers
    minimum: Decimal | None = None
    maximum: Decimal | None = None
    exclusive_minimum: Decimal | None = None
    exclusive_maximum: Decimal | None = None
    multiple_of: Decimal | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Schema:
        """A schema with these fields. Its other fields stay with the class, which is ten times as fast."""
        schema = object.__new__(cls)
        vars(schema).update(_NO_MEMBERS, **fields)
        return schema


#: The fields whose defaults the class can't hold, as Python 3.10 takes every unhashable default for a mistake.
_NO_MEMBERS = dict.fromkeys(("properties", "pattern_properties", "dependent_required", "dependent_schemas"), _NONE)


@dataclass(frozen=True, eq=False)
class Document:
    """All subschemas that can be reached from the root.

    Parameters
    ----------
    schemas:
        By `SchemaId`.
    root:
        The whole document's.
    dynamic_anchors:
        For each resource that has any: its ``$dynamicAnchor`` names and where they lead.
    draft:
        ``"draft4"``, ``"draft6"``, ``"draft7"``, ``"2019-09"`` or ``"2020-12"``.
    """

    schemas: tuple[Schema, ...]
    root: SchemaId
    draft: str = "2020-12"
    dynamic_anchors: Mapping[int, Mapping[str, SchemaId]] = field(default_factory=lambda: MappingProxyType({}))
