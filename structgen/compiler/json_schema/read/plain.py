"""Schemas of which one look says that they are well formed and have a value: most of those that tools have."""

from __future__ import annotations

from collections.abc import Callable

from ....system.types import Foreign

_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "object", "array"})

#: Keywords whose values are lists of strings, or of numbers.
_LISTED = frozenset({"enum", "required"})

#: Keywords whose values are schemas within, and those that have no say.
_SCHEMAS, _SILENT = frozenset({"items", "additionalProperties"}), frozenset({"title", "description"})


def is_plain(schema: Foreign, *, tagged: bool = False) -> bool:
    """Whether a schema is seen to be satisfiable, and to have nothing that could be refused.

    That is one of types, lists of strings or integers, and objects and arrays of such; no more keywords than it takes
    to say that. Of others it is not known. One that is to be written in tags is an object, has simple names, and no
    ``<`` in its strings.
    """
    if tagged and not (type(schema) is dict and schema.get("type") == "object"):
        return False
    todo, strings, names = [schema], list[Foreign](), list[Foreign]()
    while todo:
        each = todo.pop()
        if each is True:
            continue
        if type(each) is not dict:
            return False
        for keyword, value in each.items():
            if keyword == "properties" and type(value) is dict:
                todo += value.values()
                names += value
            elif keyword in _SCHEMAS and value is not False:
                todo.append(value)
            elif keyword in _SILENT and type(value) is str:
                continue
            elif keyword not in _CHECKS or not _CHECKS[keyword](value, each):
                return False
            elif keyword in _LISTED:
                (names if keyword == "required" else strings).extend(value)
    if tagged and not (all(map(_is_name, names)) and not any("<" in str(each) for each in strings)):
        return False
    return all(map(_is_text, strings + names))


def _is_text(value: Foreign) -> bool:
    """Whether it can be written, other than half of a character."""
    return type(value) is not str or value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def _is_name(name: Foreign) -> bool:
    return type(name) is str and name.replace("-", "_").isidentifier()


def _is_type(value: Foreign, schema: dict[str, Foreign]) -> bool:
    if type(value) is str:
        return value in _TYPES
    names = value if type(value) is list else []
    return bool(names) and all(type(name) is str and name in _TYPES for name in names) and len(names) == len({*names})


def _is_enum(value: Foreign, schema: dict[str, Foreign]) -> bool:
    kind = {"string": str, "integer": int}.get(schema.get("type", ""))
    return type(value) is list and bool(value) and all(type(each) is kind for each in value)


def _is_required(value: Foreign, schema: dict[str, Foreign]) -> bool:
    if type(value) is not list or not all(type(name) is str for name in value):
        return False
    closed = schema.get("additionalProperties") is False
    return len({*value}) == len(value) and (not closed or schema.get("properties", {}).keys() >= {*value})


def _is_closed(value: Foreign, schema: dict[str, Foreign]) -> bool:
    return value is False


_CHECKS: dict[str, Callable[[Foreign, dict[str, Foreign]], bool]] = {
    "type": _is_type,
    "enum": _is_enum,
    "required": _is_required,
    "additionalProperties": _is_closed,
}
