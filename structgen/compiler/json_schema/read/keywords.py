"""The keywords of every draft: what their values must be, and what they say of a subschema.

`KEYWORDS` has a table for each draft: keyword to handler. A handler checks the value as the draft's metaschema
does, writes fields of `Schema`, and passes on the subschemas that it finds. Keywords that a draft doesn't know have
no handler and no meaning, as the specification wants it; ``title``, ``default``, ``readOnly`` and the like are
checked where the metaschema knows them, and say nothing about values.

Metaschemas also ask for well-formed URIs (``format``), which is an annotation and left to the reference that fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from ....budget import Meter
from ....errors import BudgetExceededError, DefinitionError
from .document import Json, SchemaId
from .drafts import DRAFT4, DRAFT6, DRAFT7, DRAFT2019, DRAFT2020, UNDECLARED, Dialect
from .equality import equality_key
from .json_values import describe
from .references import Location, shown_segment

#: Digits of a number, those that its exponent stands for included: any float has at most 1,100.
MAX_DIGITS = 5_000

#: A larger count is as good as this one: no text is that long.
MAX_COUNT = 1 << 62

_TYPES = {name: frozenset((name,)) for name in ("array", "boolean", "integer", "null", "number", "object", "string")}
_ANCHOR_2019 = re.compile(r"[A-Za-z][-A-Za-z0-9.:_]*")
_ANCHOR_2020 = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")


class Sink(Protocol):
    """What takes the subschemas and references that handlers find.

    ``meter``: of the compile. ``all_draft4``: the whole document is held to Draft 4's metaschema,
    not just a part with a ``$schema`` of its own, which the metaschema of the document around it governs.
    """

    meter: Meter
    all_draft4: bool

    def add(self, value: Json, path: str, around: Subschema, *, boolean: bool = False) -> SchemaId:
        """A subschema that is applied. ``boolean``: may be one even in Draft 4."""

    def store(self, value: Json, path: str, around: Subschema, *, boolean: bool = False) -> None:
        """A subschema that is only checked, unless a reference leads to it."""

    def refer(self, keyword: str, reference: str, source: Subschema) -> None:
        """A reference to be resolved once the document has been read."""

    def synthesize(self, fields: dict[str, Any], path: str, around: Subschema) -> SchemaId:
        """A schema that the document doesn't have."""


class Subschema:
    """A subschema while it is read.

    Parameters
    ----------
    schema_id:
        Its place among the schemas; None for one that is only checked.
    fields:
        The fields of its `Schema` so far.
    conjuncts:
        For its field ``all_of``, to which several keywords add.
    """

    __slots__ = ("conjuncts", "depth", "draft", "fields", "node", "pointer", "resource", "schema_id", "sink")

    def __init__(
        self,
        sink: Sink,
        node: dict[str, Json],
        pointer: str,
        resource: int,
        draft: Dialect,
        depth: int,
        schema_id: SchemaId | None,
    ) -> None:
        self.sink = sink
        self.node = node
        self.pointer = pointer
        self.resource = resource
        self.draft = draft
        self.depth = depth
        self.schema_id = schema_id
        self.fields: dict[str, Any] = {}
        self.conjuncts: list[SchemaId] = []

    @property
    def place(self) -> Location:
        """Where it is, for references."""
        return Location(self.node, self.pointer, self.resource, self.draft)

    def error(self, path: str, wanted: str, value: Json) -> DefinitionError:
        """The error for a value that a keyword doesn't allow. ``path`` leads to it from here."""
        keyword = path.split("/")[-1]
        return DefinitionError(
            f"{keyword!r} must be {wanted}, not {describe(value)}",
            where=f"{self.pointer}/{path}",
            remedy=_remedy(keyword, value, self.draft),
        )


Handler: TypeAlias = Callable[[Subschema, str, Json], None]


def _remedy(keyword: str, value: Json, draft: Dialect) -> str:
    if keyword == "required" and isinstance(value, bool):
        return "List the required names in 'required' of the object that has the properties."
    if keyword == "items" and isinstance(value, list):
        return "Write 'prefixItems', or name the draft that the schema was written for in $schema."
    if keyword in ("exclusiveMinimum", "exclusiveMaximum") and not draft.exact_integers:
        return "Give the bound itself, or name the draft that the schema was written for in $schema."
    return "Correct the schema."


# Values


def _is_integer(value: Json, draft: Dialect) -> bool:
    if not isinstance(value, Decimal):
        return False
    exponent = value.as_tuple().exponent
    if draft.exact_integers:
        return exponent == 0
    if not isinstance(exponent, int):
        return False
    return exponent >= 0 or not any(value.as_tuple().digits[exponent:]) or value.is_zero()


def _counted(sub: Subschema, keyword: str, value: Json) -> int:
    if not _is_integer(value, sub.draft) or value < 0:
        raise sub.error(keyword, "a non-negative integer", value)
    return int(value) if value.adjusted() < 18 else MAX_COUNT


def check_size(number: Decimal, pointer: str) -> None:
    """Refuse a number that would take thousands of digits to write out."""
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise DefinitionError(f"{number} is not a JSON number", where=pointer)
    if max(number.adjusted(), 0) + max(-exponent, 0) > MAX_DIGITS:
        raise BudgetExceededError(
            f"the number has more than {MAX_DIGITS:,} digits", where=pointer, remedy="Write a shorter number."
        )


def _checked_number(sub: Subschema, keyword: str, value: Json) -> Decimal:
    if not isinstance(value, Decimal):
        raise sub.error(keyword, "a number", value)
    check_size(value, f"{sub.pointer}/{keyword}")
    return value


def _check_constant(value: Json, pointer: str, meter: Meter) -> None:
    """Check the numbers and the depth of a value that stands for itself."""
    level, depth = [value], meter.budget.depth
    while level:
        below: list[Json] = []
        for item in meter.each(level, "reading the schema"):
            if isinstance(item, Decimal):
                check_size(item, pointer)
            elif isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        level = below
        depth -= 1
        if depth < 0:
            raise BudgetExceededError(
                "a constant is nested too deeply",
                where=pointer,
                remedy="Flatten it, or pass a larger budget=Budget(depth=...).",
            )


def _names(sub: Subschema, path: str, value: Json) -> tuple[str, ...]:
    """An array of different strings."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise sub.error(path, "an array of strings", value)
    if sub.sink.all_draft4 and not value:
        raise sub.error(path, "an array of at least one string, in Draft 4", value)
    if len(set(value)) != len(value):
        raise sub.error(path, "an array of strings without repetitions", value)
    return tuple(value)


def _members(sub: Subschema, keyword: str, value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise sub.error(keyword, "an object", value)
    return value


def _several(sub: Subschema, keyword: str, value: Json) -> list[Json]:
    if not isinstance(value, list) or not value:
        raise sub.error(keyword, "an array of at least one schema", value)
    return value


# Handlers for kinds of keywords


def _count(field: str) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        sub.fields[field] = _counted(sub, keyword, value)

    return handle


def _count_of_contains(field: str) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        count = _counted(sub, keyword, value)
        if "contains" in sub.node:
            sub.fields[field] = count

    return handle


def _number(field: str) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        sub.fields[field] = _checked_number(sub, keyword, value)

    return handle


def _bound(field: str, exclusive_keyword: str, exclusive_field: str) -> Handler:
    """``minimum``, which a boolean beside it makes exclusive, in Draft 4."""

    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        exclusive = sub.node.get(exclusive_keyword) is True
        sub.fields[exclusive_field if exclusive else field] = _checked_number(sub, keyword, value)

    return handle


def _exclusive_flag(bound: str) -> Handler:
    """Draft 4's ``exclusiveMinimum``, which says how to take ``minimum``."""

    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        if not isinstance(value, bool):
            raise sub.error(keyword, "true or false, in Draft 4", value)
        if bound not in sub.node:
            raise sub.error(keyword, f"beside {bound!r}", value)

    return handle


def _exclusive(field: str, bound: str) -> Handler:
    """Either form of ``exclusiveMinimum``."""
    flag, number = _exclusive_flag(bound), _number(field)

    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        (flag if isinstance(value, bool) else number)(sub, keyword, value)

    return handle


def _text(field: str) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        if not isinstance(value, str):
            raise sub.error(keyword, "a string", value)
        sub.fields[field] = value

    return handle


def _schema(field: str) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        sub.fields[field] = sub.sink.add(value, keyword, sub)

    return handle


def _schema_beside(other: str, field: str) -> Handler:
    """A schema that is applied only where another keyword is there."""

    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        if other in sub.node:
            sub.fields[field] = sub.sink.add(value, keyword, sub)
        else:
            sub.sink.store(value, keyword, sub)

    return handle


def _schemas(field: str) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        several = _several(sub, keyword, value)
        sub.fields[field] = tuple([sub.sink.add(item, f"{keyword}/{i}", sub) for i, item in enumerate(several)])

    return handle


def _schema_members(field: str) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        add = sub.sink.add
        sub.fields[field] = {
            name: add(item, f"{keyword}/{shown_segment(name)}", sub)
            for name, item in _members(sub, keyword, value).items()
        }

    return handle


# Handlers of single keywords


def _ref(sub: Subschema, keyword: str, value: Json) -> None:
    if not isinstance(value, str):
        raise sub.error(keyword, "a string", value)
    if sub.schema_id is not None:
        sub.sink.refer(keyword, value, sub)


def _recursive_ref(sub: Subschema, keyword: str, value: Json) -> None:
    if value != "#":
        raise sub.error(keyword, "'#'", value)
    _ref(sub, keyword, value)


def _type(sub: Subschema, keyword: str, value: Json) -> None:
    if isinstance(value, str):
        types = _TYPES.get(value)
        if types is None:
            raise sub.error(keyword, f"one of {', '.join(_TYPES)}", value)
    else:
        names = _names(sub, keyword, value)
        if not names or not all(name in _TYPES for name in names):
            wrong = next((name for name in names if name not in _TYPES), value)
            raise sub.error(keyword, f"some of {', '.join(_TYPES)}", wrong)
        types = frozenset(names)
    sub.fields["types"] = types
    if sub.draft.exact_integers:
        sub.fields["integer_is_exact"] = True


def _enum(sub: Subschema, keyword: str, value: Json) -> None:
    if not isinstance(value, list):
        raise sub.error(keyword, "an array", value)
    _check_constant(value, f"{sub.pointer}/{keyword}", sub.sink.meter)
    if sub.sink.all_draft4 and len({equality_key(item) for item in value}) != max(1, len(value)):
        raise sub.error(keyword, "an array of different values, at least one, in Draft 4", value)
    sub.fields["enum"] = tuple(value)


def _const(sub: Subschema, keyword: str, value: Json) -> None:
    _check_constant(value, f"{sub.pointer}/{keyword}", sub.sink.meter)
    if "enum" in sub.node:
        sub.conjuncts.append(sub.sink.synthesize({"enum": (value,)}, keyword, sub))
    else:
        sub.fields["enum"] = (value,)


def _all_of(sub: Subschema, keyword: str, value: Json) -> None:
    several = _several(sub, keyword, value)
    sub.conjuncts.extend([sub.sink.add(item, f"{keyword}/{i}", sub) for i, item in enumerate(several)])


def _required(sub: Subschema, keyword: str, value: Json) -> None:
    sub.fields["required"] = _names(sub, keyword, value)


def _unique_items(sub: Subschema, keyword: str, value: Json) -> None:
    _boolean(sub, keyword, value)
    sub.fields["unique_items"] = value


def _multiple_of(sub: Subschema, keyword: str, value: Json) -> None:
    number = _checked_number(sub, keyword, value)
    if number <= 0:
        raise sub.error(keyword, "a number greater than 0", value)
    sub.fields["multiple_of"] = number


def _schema_or_boolean(sub: Subschema, keyword: str, value: Json) -> None:
    """``additionalProperties`` in Draft 4, whose other schemas can't be booleans."""
    sub.fields["additional_properties"] = sub.sink.add(value, keyword, sub, boolean=True)


def _items(sub: Subschema, keyword: str, value: Json) -> None:
    """``items`` before 2020-12, where an array has a schema for each position."""
    if not isinstance(value, list):
        sub.fields["items"] = sub.sink.add(value, keyword, sub)
        return
    if sub.draft.tolerant and "prefixItems" in sub.node:
        raise sub.error(keyword, "a schema beside 'prefixItems'", value)
    if value or not sub.draft.tolerant:
        _schemas("prefix_items")(sub, keyword, value)


def _additional_items(sub: Subschema, keyword: str, value: Json) -> None:
    if isinstance(sub.node.get("items"), list):
        sub.fields["items"] = sub.sink.add(value, keyword, sub, boolean=True)
    elif not sub.draft.tolerant:  # to Draft 2020-12 it means nothing at all
        sub.sink.store(value, keyword, sub, boolean=True)


def _dependencies(sub: Subschema, keyword: str, value: Json) -> None:
    """Draft 7's mixture of ``dependentRequired`` and ``dependentSchemas``."""
    required: dict[str, tuple[str, ...]] = dict(sub.fields.get("dependent_required", ()))
    schemas: dict[str, SchemaId] = dict(sub.fields.get("dependent_schemas", ()))
    for name, item in _members(sub, keyword, value).items():
        path = f"{keyword}/{shown_segment(name)}"
        if isinstance(item, list):
            required[name] = required.get(name, ()) + _names(sub, path, item)
        elif name in schemas:
            both = (schemas[name], sub.sink.add(item, path, sub))
            schemas[name] = sub.sink.synthesize({"all_of": both}, path, sub)
        else:
            schemas[name] = sub.sink.add(item, path, sub)
    sub.fields["dependent_required"] = required
    sub.fields["dependent_schemas"] = schemas


def _unused_dependencies(sub: Subschema, keyword: str, value: Json) -> None:
    """``dependencies`` where the draft doesn't know them any more, though its metaschema does."""
    for name, item in _members(sub, keyword, value).items():
        path = f"{keyword}/{shown_segment(name)}"
        if isinstance(item, list):
            _names(sub, path, item)
        else:
            sub.sink.store(item, path, sub)


def _dependent_required(sub: Subschema, keyword: str, value: Json) -> None:
    required: dict[str, tuple[str, ...]] = dict(sub.fields.get("dependent_required", ()))
    for name, item in _members(sub, keyword, value).items():
        names = _names(sub, f"{keyword}/{shown_segment(name)}", item)
        required[name] = required.get(name, ()) + names
    sub.fields["dependent_required"] = required


def _dependent_schemas(sub: Subschema, keyword: str, value: Json) -> None:
    schemas: dict[str, SchemaId] = dict(sub.fields.get("dependent_schemas", ()))
    for name, item in _members(sub, keyword, value).items():
        path = f"{keyword}/{shown_segment(name)}"
        child = sub.sink.add(item, path, sub)
        if name in schemas:
            child = sub.sink.synthesize({"all_of": (schemas[name], child)}, path, sub)
        schemas[name] = child
    sub.fields["dependent_schemas"] = schemas


def _definitions(sub: Subschema, keyword: str, value: Json) -> None:
    for name, item in _members(sub, keyword, value).items():
        sub.sink.store(item, f"{keyword}/{shown_segment(name)}", sub)


def _stored_schema(sub: Subschema, keyword: str, value: Json) -> None:
    sub.sink.store(value, keyword, sub)


# Handlers that only check


def _string(sub: Subschema, keyword: str, value: Json) -> None:
    if not isinstance(value, str):
        raise sub.error(keyword, "a string", value)


def _boolean(sub: Subschema, keyword: str, value: Json) -> None:
    if not isinstance(value, bool):
        raise sub.error(keyword, "true or false", value)


def _array(sub: Subschema, keyword: str, value: Json) -> None:
    if not isinstance(value, list):
        raise sub.error(keyword, "an array", value)


def _id(sub: Subschema, keyword: str, value: Json) -> None:
    """A URI without a fragment; where earlier drafts may be meant, a fragment is an anchor."""
    if not isinstance(value, str) or ("#" in value[:-1] and not sub.draft.tolerant):
        raise sub.error(keyword, "a URI without a fragment", value)


def _anchor(name: re.Pattern[str]) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        if not isinstance(value, str) or not name.fullmatch(value):
            raise sub.error(keyword, f"a name that matches {name.pattern}", value)

    return handle


def _recursive_anchor(sub: Subschema, keyword: str, value: Json) -> None:
    """What either draft says: Draft 2019-09 has a boolean, Draft 2020-12 reserves the keyword with a name."""
    if not isinstance(value, bool):
        _anchor(_ANCHOR_2020)(sub, keyword, value)


def _vocabulary(sub: Subschema, keyword: str, value: Json) -> None:
    for uri, needed in _members(sub, keyword, value).items():
        if not isinstance(needed, bool):
            raise sub.error(f"{keyword}/{shown_segment(uri)}", "true or false", needed)


_DRAFT4: dict[str, Handler] = {
    "$ref": _ref,
    "id": _string,
    "title": _string,
    "description": _string,
    "multipleOf": _multiple_of,
    "maximum": _bound("maximum", "exclusiveMaximum", "exclusive_maximum"),
    "exclusiveMaximum": _exclusive_flag("maximum"),
    "minimum": _bound("minimum", "exclusiveMinimum", "exclusive_minimum"),
    "exclusiveMinimum": _exclusive_flag("minimum"),
    "maxLength": _count("max_length"),
    "minLength": _count("min_length"),
    "pattern": _text("pattern"),
    "additionalItems": _additional_items,
    "items": _items,
    "maxItems": _count("max_items"),
    "minItems": _count("min_items"),
    "uniqueItems": _unique_items,
    "maxProperties": _count("max_properties"),
    "minProperties": _count("min_properties"),
    "required": _required,
    "additionalProperties": _schema_or_boolean,
    "definitions": _definitions,
    "properties": _schema_members("properties"),
    "patternProperties": _schema_members("pattern_properties"),
    "dependencies": _dependencies,
    "enum": _enum,
    "type": _type,
    "format": _text("format"),
    "allOf": _all_of,
    "anyOf": _schemas("any_of"),
    "oneOf": _schemas("one_of"),
    "not": _schema("not_"),
}
_DRAFT6: dict[str, Handler] = {
    **{keyword: handler for keyword, handler in _DRAFT4.items() if keyword != "id"},
    "$id": _string,
    "examples": _array,
    "maximum": _number("maximum"),
    "exclusiveMaximum": _number("exclusive_maximum"),
    "minimum": _number("minimum"),
    "exclusiveMinimum": _number("exclusive_minimum"),
    "additionalProperties": _schema("additional_properties"),
    "contains": _schema("contains"),
    "propertyNames": _schema("property_names"),
    "const": _const,
}
_DRAFT7: dict[str, Handler] = {
    **_DRAFT6,
    "$comment": _string,
    "readOnly": _boolean,
    "contentMediaType": _string,
    "contentEncoding": _string,
    "if": _schema("if_"),
    "then": _schema_beside("if", "then"),
    "else": _schema_beside("if", "else_"),
}
_DRAFT2019: dict[str, Handler] = {
    **_DRAFT7,
    "$id": _id,
    "$anchor": _anchor(_ANCHOR_2019),
    "$recursiveRef": _recursive_ref,
    "$recursiveAnchor": _boolean,
    "$vocabulary": _vocabulary,
    "$defs": _definitions,
    "writeOnly": _boolean,
    "deprecated": _boolean,
    "contentSchema": _stored_schema,
    "minContains": _count_of_contains("min_contains"),
    "maxContains": _count_of_contains("max_contains"),
    "dependencies": _unused_dependencies,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "unevaluatedItems": _schema("unevaluated_items"),
    "unevaluatedProperties": _schema("unevaluated_properties"),
}
_DRAFT2020: dict[str, Handler] = {
    **{keyword: handler for keyword, handler in _DRAFT2019.items() if keyword != "additionalItems"},
    "$anchor": _anchor(_ANCHOR_2020),
    "$dynamicAnchor": _anchor(_ANCHOR_2020),
    "$dynamicRef": _ref,
    "$recursiveRef": _string,
    "$recursiveAnchor": _anchor(_ANCHOR_2020),
    "items": _schema("items"),
    "prefixItems": _schemas("prefix_items"),
}
_UNDECLARED: dict[str, Handler] = {
    **_DRAFT2020,
    "$recursiveRef": _recursive_ref,
    "$recursiveAnchor": _recursive_anchor,
    "maximum": _DRAFT4["maximum"],
    "exclusiveMaximum": _exclusive("exclusive_maximum", "maximum"),
    "minimum": _DRAFT4["minimum"],
    "exclusiveMinimum": _exclusive("exclusive_minimum", "minimum"),
    "items": _items,
    "additionalItems": _additional_items,
    "dependencies": _dependencies,
}

#: The handlers of each draft's keywords.
KEYWORDS: Mapping[Dialect, Mapping[str, Handler]] = {
    DRAFT4: _DRAFT4,
    DRAFT6: _DRAFT6,
    DRAFT7: _DRAFT7,
    DRAFT2019: _DRAFT2019,
    DRAFT2020: _DRAFT2020,
    UNDECLARED: _UNDECLARED,
}
