"""A schema document as the reader hands it over: every draft's spelling brought to that of Draft 2020-12.

Every subschema is a `Schema`; children are indexes into `Document.schemas`, references are resolved to such
indexes, so that the algebra never sees a URI. Numbers are `Decimal`, exactly as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple, TypeAlias


class SchemaFinding(NamedTuple):
    """A keyword or a format that checks nothing: what it is, its JSON pointer, what to write."""

    what: str
    where: str
    remedy: str
    is_likely: bool  # to be another one, or to be meant to check something


#: Index of a subschema in `Document.schemas`.
SchemaId: TypeAlias = int

#: A JSON value.
Json: TypeAlias = "bool | Decimal | str | list[Json] | dict[str, Json] | None"

#: Fields of a `Schema` that hold a subschema, several, and several by name.
SINGLE_FIELDS = (
    "not_", "if_", "then", "else_", "additional_properties", "property_names", "unevaluated_properties", "items",
    "contains", "unevaluated_items",
)  # fmt: skip
LIST_FIELDS = ("refs", "all_of", "any_of", "one_of", "prefix_items")
MAP_FIELDS = ("properties", "pattern_properties", "dependent_schemas")
CHILD_FIELDS = (*LIST_FIELDS, *SINGLE_FIELDS, *MAP_FIELDS)

#: Fields whose schemas declare members, in the order in which these come unless the text has another.
_DECLARING = ("properties", "refs", "all_of", "any_of", "one_of")
_APPLYING = frozenset(_DECLARING[1:])


class Schema:
    """One subschema. A field at its default says nothing; ``False`` schemas have ``never`` set.

    Siblings of ``$ref`` are kept (2019-09 and later) or were dropped (draft-07 and earlier) by the reader.
    Draft-04's boolean ``exclusiveMinimum``, ``dependencies``, the array form of ``items`` with
    ``additionalItems``, ``id``, ``definitions``, ``$recursiveRef`` have been rewritten.
    """

    pointer: str = ""
    never: bool = False
    types: frozenset[str] | None = None  # of null boolean number integer string array object
    integer_is_exact: bool = False  # draft-04: 1.0 is not an integer
    enum: tuple[Json, ...] | None = None  # const is an enum of one; both present: two entries in all_of
    # references and applicators
    refs: tuple[SchemaId, ...] = ()  # $ref and resolved $dynamicRef
    dynamic_ref: str | None = None  # a $dynamicRef whose target depends on the path: the anchor's name
    dynamic_default: SchemaId | None = None  # where it leads if no resource on the path has that dynamic anchor
    written: SchemaId | None = None  # of a closed schema: the one as it was written, which allows all that this does
    resource: int = 0  # which resource (document part with its own $id) this subschema lies in
    all_of: tuple[SchemaId, ...] = ()
    any_of: tuple[SchemaId, ...] | None = None
    one_of: tuple[SchemaId, ...] | None = None
    not_: SchemaId | None = None
    if_: SchemaId | None = None
    then: SchemaId | None = None
    else_: SchemaId | None = None
    # objects
    properties: Mapping[str, SchemaId] = MappingProxyType({})
    pattern_properties: Mapping[str, SchemaId] = MappingProxyType({})
    additional_properties: SchemaId | None = None
    property_names: SchemaId | None = None
    required: tuple[str, ...] = ()
    min_properties: int = 0
    max_properties: int | None = None
    dependent_required: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    dependent_schemas: Mapping[str, SchemaId] = MappingProxyType({})
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
    # how they are written, as outlines-core has it: digits of integers, and of the parts of other numbers
    min_digits: int = 0
    max_digits: int | None = None
    min_digits_integer: int = 0
    max_digits_integer: int | None = None
    min_digits_fraction: int = 0
    max_digits_fraction: int | None = None
    min_digits_exponent: int = 0
    max_digits_exponent: int | None = None

    def __init__(self, pointer: str, **fields: object) -> None:
        self.pointer = pointer
        if fields:
            vars(self).update(fields)  # the others stay with the class

    def order(self) -> tuple[str, ...]:
        """The fields that declare members as the text has them; nothing where that is the usual order.

        ``additionalProperties`` is one with ``properties``, as llguidance has it; so is ``required`` alone.
        """
        if _APPLYING.isdisjoint(vars(self)):
            return ()
        own: tuple[str, ...] = ("properties", "additional_properties")
        if vars(self).keys().isdisjoint(own):
            own = ("required",)
        found = dict.fromkeys(_DECLARING[0] if name in own else name for name in vars(self))
        order = tuple([name for name in found if name in _DECLARING])
        return order if order != tuple([name for name in _DECLARING if name in found]) else ()

    def changed(self, fields: Mapping[str, object]) -> Schema:
        """A copy with other values of some fields."""
        copy = Schema(self.pointer)
        vars(copy).update(vars(self), **fields)
        return copy

    def children(self, names: Iterable[str]) -> list[SchemaId]:
        """The subschemas in these fields."""
        found: list[SchemaId] = []
        for name in names:
            value = getattr(self, name)
            if isinstance(value, int):
                found.append(value)
            elif value:
                found += value if isinstance(value, tuple) else value.values()
        return found

    def with_children(self, names: Iterable[str], to: Callable[[SchemaId], SchemaId]) -> Schema:
        """A copy that has, in these fields, others in place of its subschemas."""
        changes: dict[str, object] = {}
        for name in names:
            value = getattr(self, name)
            if isinstance(value, int):
                changes[name] = to(value)
            elif value and isinstance(value, Mapping):
                changes[name] = {key: to(child) for key, child in value.items()}
            elif value:
                changes[name] = tuple(map(to, value))
        return self.changed(changes)


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
    unchecked:
        What validators check besides, by ``x-unchecked``.
    findings:
        The keywords and formats that check nothing, and that their author may have misspelt.
    """

    schemas: tuple[Schema, ...]
    root: SchemaId
    draft: str = "2020-12"
    dynamic_anchors: Mapping[int, Mapping[str, SchemaId]] = field(default_factory=lambda: MappingProxyType({}))
    unchecked: tuple[str, ...] = ()
    findings: tuple[SchemaFinding, ...] = ()
