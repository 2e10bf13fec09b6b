"""Members in the order in which a schema declares them.

Constrained decoders write an object's members in one order. MaskBench's data has them mostly in that order
already; this brings the rest there, where the order can be read off the schema without validating anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

#: Applicators whose subschemas speak about the same value, in the order in which they are looked at.
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("$ref", "if", "then", "else")

#: Subschemas looked at for one value; a schema may refer to itself without end.
_ENOUGH = 1_000


def ordered(schema: Any, data: Any) -> Any:
    """``data`` with the members of its objects in the schema's order, undeclared ones last and as they are."""
    return _ordered(schema, [schema], data)


def _ordered(root: Any, schemas: list[Any], data: Any) -> Any:
    """The same for a value that several subschemas speak about; recursion is as deep as the data."""
    about = [schema for schema in _all_about(root, schemas) if isinstance(schema, dict)]
    if isinstance(data, list):
        return [_ordered(root, list(_of_item(about, position)), item) for position, item in enumerate(data)]
    if not isinstance(data, dict):
        return data
    declared = dict.fromkeys(
        name for schema in about for name in (*_mapping(schema, "properties"), *_names(schema)) if name in data
    )
    return {
        name: _ordered(root, list(_of_member(about, name)), data[name]) for name in dict.fromkeys([*declared, *data])
    }


def _all_about(root: Any, schemas: list[Any]) -> list[Any]:
    """The schemas, and all that they refer to or are composed of, breadth last."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = schemas[::-1]
    while waiting and len(found) < _ENOUGH:
        schema = waiting.pop()
        if id(schema) in seen or not isinstance(schema, dict):
            continue
        seen.add(id(schema))
        found.append(schema)
        waiting.extend(reversed(list(_parts(root, schema))))
    return found


def _parts(root: Any, schema: dict[str, Any]) -> Iterator[Any]:
    for keyword in _SINGLE:
        part = schema.get(keyword)
        yield _pointed_to(root, part) if keyword == "$ref" else part
    for keyword in _LISTS:
        parts = schema.get(keyword)
        yield from parts if isinstance(parts, list) else ()
    for keyword in ("dependentSchemas", "dependencies"):
        yield from _mapping(schema, keyword).values()


def _pointed_to(root: Any, reference: Any) -> Any:
    """Where a reference inside the document leads, None for any other one."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place = root
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and name in place:
            place = place[name]
        elif isinstance(place, list) and name.isdecimal() and int(name) < len(place):
            place = place[int(name)]
        else:
            return None
    return place


def _of_member(about: list[dict[str, Any]], name: str) -> Iterator[Any]:
    """What the schemas say about a member's value."""
    for schema in about:
        yield _mapping(schema, "properties").get(name, schema.get("additionalProperties"))


def _of_item(about: list[dict[str, Any]], position: int) -> Iterator[Any]:
    """What the schemas say about an item."""
    for schema in about:
        items = schema.get("items")
        prefix = items if isinstance(items, list) else schema.get("prefixItems")
        if isinstance(prefix, list) and position < len(prefix):
            yield prefix[position]
        else:
            yield schema.get("additionalItems") if isinstance(items, list) else items


def _mapping(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _names(schema: dict[str, Any]) -> list[str]:
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
