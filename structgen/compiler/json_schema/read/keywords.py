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
from typing import TypeAlias

from ....budget import Meter
from ....errors import BudgetExceededError
from .document import Json, SchemaId
from .drafts import DRAFT4, DRAFT6, DRAFT7, DRAFT2019, DRAFT2020, UNDECLARED, Dialect
from .references import shown_segment
from .subschemas import DOING, Subschema

#: Digits of a number, those that its exponent stands for included: any float has at most 1,100.
MAX_DIGITS = 5_000

#: A larger count is as good as this one: no text is that long.
MAX_COUNT = 1 << 62

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_ANY_TYPE = frozenset(_TYPES)
_ANCHOR_2019 = re.compile(r"[A-Za-z][-A-Za-z0-9.:_]*")
_ANCHOR_2020 = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")

#: What digits are counted of.
_DIGITS = ("", "Integer", "Fraction", "Exponent")

Handler: TypeAlias = Callable[[Subschema, str, Json], None]


# Values


def _counted(sub: Subschema, keyword: str, value: Json) -> int:
    """A non-negative integer; in Draft 4, one that is written without a fraction."""
    if not isinstance(value, Decimal) or value < 0 or not _is_integer(value, exact=sub.draft.exact_integers):
        raise sub.error(keyword, "a non-negative integer", value)
    return int(value) if value.adjusted() < 18 else MAX_COUNT


def _is_integer(value: Decimal, *, exact: bool) -> bool:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exact:
        return exponent == 0
    return exponent >= 0 or not any(digits[exponent:])


#: States of each letter of a value or a name that a schema spells out, and of a member beside its name and its value.
_OF_LETTER, _OF_MEMBER = 6, 12


def check_size(number: Decimal, pointer: str) -> None:
    """Refuse a number that would take thousands of digits to write out."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
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
    """Check the numbers and the depth of a value that stands for itself; its letters may take states."""
    level, depth = [value], meter.budget.depth
    while level:
        below: list[Json] = []
        texts = [item for item in level if isinstance(item, str)]
        meter.grant(_OF_LETTER * sum(map(len, texts)))
        for item in meter.each(level, DOING) if len(texts) < len(level) else ():
            if isinstance(item, Decimal):
                check_size(item, pointer)
                meter.grant(_OF_LETTER * len(item.as_tuple().digits))
            elif isinstance(item, dict):
                meter.grant(sum([_OF_LETTER * len(name) + _OF_MEMBER for name in item]))
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
    names = [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(names) < len(value):
        raise sub.error(path, "an array of strings", value)
    if sub.found.all_draft4 and not value:
        raise sub.error(path, "an array of at least one string, in Draft 4", value)
    if len(set(names)) != len(names):
        raise sub.error(path, "an array of strings without repetitions", value)
    return tuple(names)


def _members(sub: Subschema, keyword: str, value: Json) -> list[tuple[str, str, Json]]:
    """The members of an object: name, path, value."""
    if not isinstance(value, dict):
        raise sub.error(keyword, "an object", value)
    return [(name, f"{keyword}/{shown_segment(name)}", item) for name, item in value.items()]


def _several(sub: Subschema, keyword: str, value: Json) -> tuple[SchemaId, ...]:
    if not isinstance(value, list) or not value:
        raise sub.error(keyword, "an array of at least one schema", value)
    return tuple([sub.add(item, f"{keyword}/{i}") for i, item in enumerate(value)])


# Handlers that only check


def _kind(kind: type, wanted: str) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        if not isinstance(value, kind):
            raise sub.error(keyword, wanted, value)

    return handle


_string = _kind(str, "a string")
_boolean = _kind(bool, "true or false")
_array = _kind(list, "an array")


def _id(sub: Subschema, keyword: str, value: Json) -> None:
    """A URI without a fragment; where earlier drafts may be meant, a fragment is an anchor."""
    if not isinstance(value, str) or ("#" in value[:-1] and not sub.draft.tolerant):
        raise sub.error(keyword, "a URI without a fragment", value)


def _anchor(name: re.Pattern[str]) -> Handler:
    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        if not isinstance(value, str) or not name.fullmatch(value):
            raise sub.error(keyword, f"a name that matches {name.pattern}", value)

    return handle


_anchor_2020 = _anchor(_ANCHOR_2020)


def _recursive_anchor(sub: Subschema, keyword: str, value: Json) -> None:
    """What either draft says: Draft 2019-09 has a boolean, Draft 2020-12 reserves the keyword with a name."""
    if not isinstance(value, bool):
        _anchor_2020(sub, keyword, value)


def _vocabulary(sub: Subschema, keyword: str, value: Json) -> None:
    for _, path, needed in _members(sub, keyword, value):
        _boolean(sub, path, needed)


def _exclusive_flag(sub: Subschema, keyword: str, value: Json) -> None:
    """Draft 4's ``exclusiveMinimum``, which says how to take ``minimum``."""
    if not isinstance(value, bool):
        raise sub.error(keyword, "true or false, in Draft 4", value)
    bound = keyword.removeprefix("exclusive").lower()
    if bound not in sub.node:
        raise sub.error(keyword, f"beside {bound!r}", value)


def _definitions(sub: Subschema, keyword: str, value: Json) -> None:
    for _, path, item in _members(sub, keyword, value):
        sub.store(item, path)


def _stored_schema(sub: Subschema, keyword: str, value: Json) -> None:
    sub.store(value, keyword)


# Handlers for kinds of keywords


def _text(sub: Subschema, keyword: str, value: Json) -> None:
    _string(sub, keyword, value)
    sub.say(keyword, value)


def _flag(sub: Subschema, keyword: str, value: Json) -> None:
    _boolean(sub, keyword, value)
    sub.say(keyword, value)


def _count(sub: Subschema, keyword: str, value: Json) -> None:
    sub.say(keyword, _counted(sub, keyword, value))


def _digits(sub: Subschema, keyword: str, value: Json) -> None:
    """outlines-core's bounds of digits, which no draft has: read where a document names none."""
    _count(sub, keyword, value)
    part = keyword[3:]
    least, most = (sub.node.get(bound + part) for bound in ("min", "max"))
    if isinstance(least, Decimal) and isinstance(most, Decimal) and most < least:
        raise sub.error(keyword, f"in order with the other bound of '{part}'", value)


def _number(sub: Subschema, keyword: str, value: Json) -> None:
    sub.say(keyword, _checked_number(sub, keyword, value))


def _bound(sub: Subschema, keyword: str, value: Json) -> None:
    """``minimum``, which a boolean beside it makes exclusive, in Draft 4."""
    exclusive = f"exclusive{keyword.capitalize()}"
    sub.say(exclusive if sub.node.get(exclusive) is True else keyword, _checked_number(sub, keyword, value))


def _exclusive(sub: Subschema, keyword: str, value: Json) -> None:
    """Either form of ``exclusiveMinimum``."""
    (_exclusive_flag if isinstance(value, bool) else _number)(sub, keyword, value)


def _schema(sub: Subschema, keyword: str, value: Json) -> None:
    sub.say(keyword, sub.add(value, keyword))


def _schema_or_boolean(sub: Subschema, keyword: str, value: Json) -> None:
    """``additionalProperties`` in Draft 4, whose other schemas can't be booleans."""
    sub.say(keyword, sub.add(value, keyword, boolean=True))


def _schemas(sub: Subschema, keyword: str, value: Json) -> None:
    sub.say(keyword, _several(sub, keyword, value))


def _schema_members(sub: Subschema, keyword: str, value: Json) -> None:
    members = _members(sub, keyword, value)
    if keyword == "properties":
        sub.found.meter.grant(sum([len(name) for name, _, _ in members]) * _OF_LETTER + len(members) * _OF_MEMBER)
    sub.say(keyword, {name: sub.add(item, path) for name, path, item in members})


def _beside(other: str, handler: Handler) -> Handler:
    """A keyword that counts only where another one is there."""

    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        handler(sub if other in sub.node else sub.aside(), keyword, value)

    return handle


def _unused(handler: Handler) -> Handler:
    """A keyword that the draft doesn't know any more, though its metaschema does."""

    def handle(sub: Subschema, keyword: str, value: Json) -> None:
        handler(sub.aside(), keyword, value)

    return handle


# Handlers of single keywords


def _ref(sub: Subschema, keyword: str, value: Json) -> None:
    if not isinstance(value, str):
        raise sub.error(keyword, "a string", value)
    sub.refer(keyword, value)


def _recursive_ref(sub: Subschema, keyword: str, value: Json) -> None:
    if value != "#":
        raise sub.error(keyword, "'#'", value)
    _ref(sub, keyword, value)


def _type(sub: Subschema, keyword: str, value: Json) -> None:
    types = (value,) if isinstance(value, str) else _names(sub, keyword, value)
    sub.schema.types = frozenset(types)
    if not types or not sub.schema.types <= _ANY_TYPE:
        wrong = next((name for name in types if name not in _TYPES), value)
        raise sub.error(keyword, f"{'one' if isinstance(value, str) else 'some'} of {', '.join(_TYPES)}", wrong)
    if sub.draft.exact_integers:
        sub.schema.integer_is_exact = True


def _enum(sub: Subschema, keyword: str, value: Json) -> None:
    if not isinstance(value, list):
        raise sub.error(keyword, "an array", value)
    _check_constant(value, f"{sub.pointer}/{keyword}", sub.found.meter)
    if sub.found.all_draft4 and not value:
        raise sub.error(keyword, "an array of at least one value, in Draft 4", value)
    sub.schema.enum = tuple(value)


def _const(sub: Subschema, keyword: str, value: Json) -> None:
    _check_constant(value, f"{sub.pointer}/{keyword}", sub.found.meter)
    if "enum" in sub.node:
        sub.schema.all_of += (sub.synthesize(keyword, enum=(value,)),)
    else:
        sub.schema.enum = (value,)


def _all_of(sub: Subschema, keyword: str, value: Json) -> None:
    sub.schema.all_of += _several(sub, keyword, value)


def _guidance(sub: Subschema, keyword: str, value: Json) -> None:
    """llguidance's options, which are a `JsonSchema`'s at its root; see `structgen.definitions.guidance_options`."""
    if sub.pointer:
        raise sub.error(keyword, "at the root of the schema", value)


def _unchecked(sub: Subschema, keyword: str, value: Json) -> None:
    """What a validator checks that no schema says; see `structgen.definitions.pydantic_types`."""
    _string(sub, keyword, value)
    if sub.applied:
        where = sub.pointer or "the root"
        sub.found.unchecked.append(f"{where}: Pydantic checks more than its schema says: {value}")


def _format(sub: Subschema, keyword: str, value: Json) -> None:
    _text(sub, keyword, value)
    if isinstance(value, str):
        sub.found.unknown.format(value, sub.pointer, sub.node.get("type", "string"))


def _required(sub: Subschema, keyword: str, value: Json) -> None:
    sub.schema.required = _names(sub, keyword, value)


def _multiple_of(sub: Subschema, keyword: str, value: Json) -> None:
    number = _checked_number(sub, keyword, value)
    if number <= 0:
        raise sub.error(keyword, "a number greater than 0", value)
    sub.schema.multiple_of = number


def _items(sub: Subschema, keyword: str, value: Json) -> None:
    """``items`` before 2020-12, where an array has a schema for each position."""
    if not isinstance(value, list):
        sub.schema.items = sub.add(value, keyword)
        return
    if sub.draft.tolerant and "prefixItems" in sub.node:
        raise sub.error(keyword, "a schema beside 'prefixItems'", value)
    if value or not sub.draft.tolerant:
        sub.schema.prefix_items = _several(sub, keyword, value)


def _additional_items(sub: Subschema, keyword: str, value: Json) -> None:
    if isinstance(sub.node.get("items"), list):
        sub.schema.items = sub.add(value, keyword, boolean=True)
    elif not sub.draft.tolerant:  # to Draft 2020-12 it means nothing at all
        sub.store(value, keyword, boolean=True)


def _dependencies(sub: Subschema, keyword: str, value: Json) -> None:
    """``dependentRequired`` and ``dependentSchemas``, and Draft 7's mixture of the two."""
    required, schemas = dict(sub.schema.dependent_required), dict(sub.schema.dependent_schemas)
    for name, path, item in _members(sub, keyword, value):
        if keyword == "dependentRequired" or (keyword == "dependencies" and isinstance(item, list)):
            required[name] = required.get(name, ()) + _names(sub, path, item)
        elif name in schemas:
            schemas[name] = sub.synthesize(path, all_of=(schemas[name], sub.add(item, path)))
        else:
            schemas[name] = sub.add(item, path)
    sub.schema.dependent_required, sub.schema.dependent_schemas = required, schemas


_DRAFT4: dict[str, Handler] = {
    **dict.fromkeys(("id", "title", "description"), _string),
    "pattern": _text,
    "format": _format,
    **dict.fromkeys(("maximum", "minimum"), _bound),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _exclusive_flag),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _count),
    **dict.fromkeys(("properties", "patternProperties"), _schema_members),
    **dict.fromkeys(("anyOf", "oneOf"), _schemas),
    "$ref": _ref,
    "type": _type,
    "enum": _enum,
    "multipleOf": _multiple_of,
    "items": _items,
    "additionalItems": _additional_items,
    "uniqueItems": _flag,
    "required": _required,
    "additionalProperties": _schema_or_boolean,
    "definitions": _definitions,
    "dependencies": _dependencies,
    "allOf": _all_of,
    "not": _schema,
    "x-guidance": _guidance,
    "x-unchecked": _unchecked,
}
_DRAFT6: dict[str, Handler] = {
    **{keyword: handler for keyword, handler in _DRAFT4.items() if keyword != "id"},
    **dict.fromkeys(("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"), _number),
    **dict.fromkeys(("additionalProperties", "contains", "propertyNames"), _schema),
    "$id": _string,
    "examples": _array,
    "const": _const,
}
_DRAFT7: dict[str, Handler] = {
    **_DRAFT6,
    **dict.fromkeys(("$comment", "contentMediaType", "contentEncoding"), _string),
    "readOnly": _boolean,
    "if": _schema,
    **dict.fromkeys(("then", "else"), _beside("if", _schema)),
}
_DRAFT2019: dict[str, Handler] = {
    **_DRAFT7,
    "$id": _id,
    "$anchor": _anchor(_ANCHOR_2019),
    "$recursiveRef": _recursive_ref,
    "$vocabulary": _vocabulary,
    "$defs": _definitions,
    **dict.fromkeys(("$recursiveAnchor", "writeOnly", "deprecated"), _boolean),
    "contentSchema": _stored_schema,
    **dict.fromkeys(("minContains", "maxContains"), _beside("contains", _count)),
    "dependencies": _unused(_dependencies),
    **dict.fromkeys(("dependentRequired", "dependentSchemas"), _dependencies),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), _schema),
}
_DRAFT2020: dict[str, Handler] = {
    **{keyword: handler for keyword, handler in _DRAFT2019.items() if keyword != "additionalItems"},
    **dict.fromkeys(("$anchor", "$dynamicAnchor", "$recursiveAnchor"), _anchor_2020),
    "$dynamicRef": _ref,
    "$recursiveRef": _string,
    "items": _schema,
    "prefixItems": _schemas,
}
_UNDECLARED: dict[str, Handler] = {
    **_DRAFT2020,
    **{f"{bound}Digits{part}": _digits for bound in ("min", "max") for part in _DIGITS},
    "$recursiveRef": _recursive_ref,
    "$recursiveAnchor": _recursive_anchor,
    **dict.fromkeys(("maximum", "minimum"), _bound),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _exclusive),
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

#: Those that some draft has.
KNOWN = frozenset(keyword for handlers in KEYWORDS.values() for keyword in handlers)
