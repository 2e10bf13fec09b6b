"""Schemas of which one look says that they are well formed and have a value: most of those that tools have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from graphlib import CycleError, TopologicalSorter

from ....system.types import Foreign

#: By the Python type of a value, its type in a schema; integers are numbers besides.
_TYPE_OF: dict[type, str] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
_TYPES = frozenset({*_TYPE_OF.values(), "number", "object", "array"})

#: Formats whose strings hold no ``<``.
FORMATS = frozenset({"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"})

#: Patterns that match some text without ``<``: a row of characters and of sets, none of them empty, perhaps repeated.
_UNIT = r"""(?:[\w @:/,;=%#&!'"-]|\\[dws.+*/-]|\[(?:a-z|A-Z|a-f|A-F|0-9|[\w .:/@]|\\[dws])+-?\])"""
_PATTERN = re.compile(rf"\^?(?:{_UNIT}(?:[*+?]|\{{\d\d?,?\}}|\{{[01],[1-9]\d\d?\}})?)*\$?")

#: The largest bound of a number.
_MOST = 10**15

#: A member's name that can be written in any tag.
_NAME = re.compile(r"[\w.-]+")

#: Where definitions stand. What refers to them has a name that is written as it is.
_DEFINITIONS = ("$defs", "definitions")
_REFERENCE = re.compile(r"#/(?:\$defs|definitions)/[\w.-]+", re.ASCII)

#: Keywords that say which values there are: a schema has but one of them, or one pair of bounds.
_LENGTHS = ("minLength", "maxLength")
_LOWER, _UPPER = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
_VALUES = frozenset({"enum", "const", "format", "pattern", *_LENGTHS})
_BOUNDED = _VALUES | {*_LOWER, *_UPPER}

#: Keywords that say nothing of values, and are strings.
_TEXTS = frozenset({"title", "description", "$comment"})

#: Keywords with schemas or names within.
_NESTED = frozenset(
    {"properties", "required", "items", "additionalProperties", "anyOf", "oneOf", "$ref", "enum", "const"}
)

_Schema = dict[str, Foreign]


def is_plain(schema: Foreign, *, tagged: bool = False, closed: bool = False) -> bool:
    """Whether a schema is seen to be satisfiable, and to have nothing that could be refused or relaxed.

    Of others it is not known. One that is to be written in tags is an object with simple names, and has no ``<`` in
    its strings. Where objects are ``closed``, they have the members that they list, unless they say otherwise.
    """
    if schema is True:
        return not tagged
    if type(schema) is not dict or (tagged and schema.get("type") != "object"):
        return False
    definitions: dict[str, Foreign] = {}
    for place in _DEFINITIONS:
        if place in schema:
            if type(schema[place]) is not dict:
                return False
            definitions |= {f"#/{place}/{name}": each for name, each in schema[place].items()}
    look = _Look(definitions, closed)
    root = {keyword: value for keyword, value in schema.items() if keyword not in _DEFINITIONS}
    if not look.is_plain(root) or not all(map(look.is_plain, definitions.values())) or not look.is_finite():
        return False
    if tagged and not all(map(_NAME.fullmatch, look.names)):
        return False
    strings = look.names + look.strings
    return "".join(strings).isidentifier() or all(_is_text(each, tagged) for each in strings)


class _Look:
    """Looks at the root and at the definitions, one by one."""

    def __init__(self, definitions: dict[str, Foreign], closed: bool) -> None:
        #: The names of members, and the strings of enumerations.
        self.names: list[str] = []
        self.strings: list[str] = []
        self._definitions = definitions
        self._closed = closed
        self._references: list[set[str]] = []  # of the root, and of each definition

    def is_finite(self) -> bool:
        """Whether no definition refers to itself, by way of others or not."""
        if not self._definitions:
            return True
        _, *references = self._references
        try:
            TopologicalSorter(dict(zip(self._definitions, references, strict=True))).prepare()
        except CycleError:
            return False
        return True

    def is_plain(self, schema: Foreign) -> bool:
        """Whether a schema is, apart from what it refers to."""
        todo, references = [schema], set[str]()
        self._references.append(references)
        for each in todo:  # grows
            if each is True:
                continue
            if type(each) is not dict:
                return False
            for keyword, value in each.items():
                if type(value) is str and (keyword in _TEXTS or (keyword == "type" and value in _TYPES)):
                    continue
                check = _CHECKS.get(keyword)
                if check is None or not check(value, each):
                    return False
            if not _NESTED.isdisjoint(each) and not self._nested(each, todo, references):
                return False
        return True

    def _nested(self, schema: _Schema, todo: list[Foreign], references: set[str]) -> bool:
        """Note what stands within a schema."""
        properties, required = schema.get("properties", {}), schema.get("required", ())
        todo += properties.values()
        self.names += (*properties, *required)
        if "enum" in schema or "const" in schema:
            values = (*schema.get("enum", ()), schema.get("const"))
            self.strings += (value for value in values if type(value) is str)
        if "items" in schema:
            todo.append(schema["items"])
        others = schema.get("additionalProperties", not self._closed)
        if others is not False:
            todo.append(others)
        elif not properties.keys() >= {*required}:
            return False
        if "$ref" in schema:
            references.add(schema["$ref"])
            return not self._closed and schema["$ref"] in self._definitions
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                todo += schema[keyword]
                return not self._closed and self._differ(schema[keyword])
        return True

    def _differ(self, options: Iterable[Foreign]) -> bool:
        """Whether options are of one type each, and no two of the same."""
        found = set[str]()
        for each in options:
            if type(each) is dict and "$ref" in each:
                each = self._definitions.get(each["$ref"])
            name = each.get("type") if type(each) is dict else None
            if type(name) is not str or name in found:
                return False
            found |= {"integer", "number"} if name in ("integer", "number") else {name}
        return True


def _is_text(value: str, tagged: bool) -> bool:
    """Whether a string can be written: it has no half of a character; and no ``<``, if it is ``tagged``."""
    return not (tagged and "<" in value) and not any("\ud800" <= each <= "\udfff" for each in value)


# -- keywords ------------------------------------------------------------------------------------------------


def _is_flag(value: Foreign, schema: _Schema) -> bool:
    return type(value) is bool


def _is_any(value: Foreign, schema: _Schema) -> bool:
    return True


def _is_type(value: Foreign, schema: _Schema) -> bool:
    names = value if type(value) is list else []
    return bool(names) and all(type(name) is str and name in _TYPES for name in names) and len(names) == len({*names})


def _is_enum(value: Foreign, schema: _Schema) -> bool:
    return type(value) is list and bool(value) and all(_is_value(each, schema, "enum") for each in value)


def _is_const(value: Foreign, schema: _Schema) -> bool:
    return _is_value(value, schema, "const")


def _is_value(value: Foreign, schema: _Schema, keyword: str) -> bool:
    """Whether a value is simple, and of a type of the schema, which says nothing else of it."""
    name, said = _TYPE_OF.get(type(value)), schema.get("type")
    if name is None or not (_BOUNDED - {keyword}).isdisjoint(schema):
        return False
    return said is None or name in ([said] if type(said) is str else said)


def _is_format(value: Foreign, schema: _Schema) -> bool:
    return type(value) is str and value in FORMATS and (_VALUES - {"format"}).isdisjoint(schema)


def _is_pattern(value: Foreign, schema: _Schema) -> bool:
    return type(value) is str and bool(_PATTERN.fullmatch(value)) and (_VALUES - {"pattern"}).isdisjoint(schema)


def _are_counts(low: str, high: str) -> Callable[[Foreign, _Schema], bool]:
    """Whether both bounds of a count are in order."""

    def check(value: Foreign, schema: _Schema) -> bool:
        least, most = schema.get(low, 0), schema.get(high, _MOST)
        return type(least) is int and type(most) is int and 0 <= least <= most <= _MOST

    return check


def _are_bounds(value: Foreign, schema: _Schema) -> bool:
    """Whether a number is between the bounds, an integer where it must be one."""
    lower = [schema[keyword] for keyword in _LOWER if keyword in schema]
    upper = [schema[keyword] for keyword in _UPPER if keyword in schema]
    if not all(type(each) in (int, float) and abs(each) <= _MOST for each in (*lower, *upper)):
        return False
    if not lower or not upper:
        return True
    gap, said = min(upper) - max(lower), {type(each) for each in (*lower, *upper)}
    if gap >= 2 or (gap > 0 and schema.get("type") == "number"):
        return True
    return gap >= 0 and said == {int} and schema.keys().isdisjoint((_LOWER[1], _UPPER[1]))


def _is_required(value: Foreign, schema: _Schema) -> bool:
    return type(value) is list and all(type(name) is str for name in value) and len({*value}) == len(value)


def _are_properties(value: Foreign, schema: _Schema) -> bool:
    return type(value) is dict


def _are_options(value: Foreign, schema: _Schema) -> bool:
    return type(value) is list and bool(value) and _stands_alone(schema)


def _is_reference(value: Foreign, schema: _Schema) -> bool:
    return type(value) is str and bool(_REFERENCE.fullmatch(value)) and _stands_alone(schema)


def _stands_alone(schema: _Schema) -> bool:
    """Whether a schema has but one keyword that says something of values."""
    return len(schema.keys() - _SILENT.keys() - _TEXTS) == 1


_Check = Callable[[Foreign, _Schema], bool]

#: Keywords that say nothing of values.
_SILENT: dict[str, _Check] = {
    **dict.fromkeys(("readOnly", "writeOnly", "deprecated"), _is_flag),
    "default": _is_any,
    "examples": lambda value, schema: type(value) is list,
}
_CHECKS: dict[str, _Check] = {
    **_SILENT,
    "type": _is_type,
    "enum": _is_enum,
    "const": _is_const,
    "format": _is_format,
    "pattern": _is_pattern,
    **dict.fromkeys(_LENGTHS, _are_counts(*_LENGTHS)),
    **dict.fromkeys((*_LOWER, *_UPPER), _are_bounds),
    **dict.fromkeys(("minItems", "maxItems"), _are_counts("minItems", "maxItems")),
    "required": _is_required,
    "properties": _are_properties,
    **dict.fromkeys(("items", "additionalProperties"), _is_any),
    **dict.fromkeys(("anyOf", "oneOf"), _are_options),
    "$ref": _is_reference,
}
