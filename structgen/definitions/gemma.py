"""Values in Gemma's notation as formats: keys are bare, strings stand between tokens of their own.

``{city:<|"|>Zürich<|"|>,days:3}``. Nothing in a string is escaped, so any text is one that does not hold the mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import UnsupportedError
from ..system.types import Foreign
from .json_text import dumps, loads
from .schema_sources import Schema

Format: TypeAlias = "dict[str, object]"

_QUOTE = '<|"|>'
_KEY = re.compile(r"[^\s{}\[\]:,<>|\"]+")

#: Formats that one schema may become: where no member is required, objects take more than they have members.
_MOST_FORMATS = 50_000

#: Levels of arrays and objects in a value of any kind.
_LEVELS = 4

#: Levels of a schema, references included.
_MOST_LEVELS = 100

_ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema",
    "$id", "$defs", "definitions",
})  # fmt: skip

#: By type, what a schema may say of it besides.
_KEYWORDS = {
    "string": frozenset({"maxLength"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "boolean": frozenset[str](),
    "null": frozenset[str](),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}


def gemma_format(schema: Schema, *, alphabetical: bool, excludes: Sequence[str] = ()) -> Format:
    """The format of a schema's values. Objects that declare members are closed.

    Members come in ``alphabetical`` order, as chat templates write them, or as declared; strings hold no
    ``excludes``. Values of any kind are nested four levels deep at most.

    Raises `UnsupportedError`, with the JSON pointer, for schemas that it cannot honour: where members are declared
    and others allowed, recursive ones, and keywords other than types, enumerations, ``anyOf``, bounds of numbers,
    and lengths of arrays and strings. Raises what `dumps` does for what is no JSON.
    """
    document = loads(dumps(schema))
    return _Schemas(document, alphabetical, excludes).format(document, "", ())


@dataclass
class _Schemas:
    """The document, and how many formats it has become so far."""

    root: object
    alphabetical: bool
    excludes: Sequence[str]
    formats: int = 0

    def format(self, schema: object, where: str, above: tuple[str, ...]) -> Format:
        """The format of a value; ``above`` are the references that it stands in."""
        self.formats += 1
        if self.formats > _MOST_FORMATS:
            raise _unsupported("a schema that becomes so many formats", where)
        if where.count("/") + len(above) > _MOST_LEVELS:
            raise _unsupported("a schema of so many levels", where)
        if schema is True:
            schema = {}
        if not isinstance(schema, Mapping):
            raise _unsupported("the schema false", where)
        said = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
        if not said:
            return _one_of(self._values(_LEVELS, where))
        said = _of_objects(said)
        if "$ref" in said:
            return self._referred(said, where, above)
        for key in ("enum", "const"):
            if key in said:
                values = said[key] if key == "enum" else [said[key]]
                if not isinstance(values, list) or not values or said.keys() - {key, "type"}:
                    raise _unsupported(f"the keyword {key!r} beside others", where)
                return _one_of([_const(_written(value, where)) for value in values])
        for key in ("anyOf", "oneOf"):
            if key in said:
                each = said[key]
                if len(said) > 1 or not isinstance(each, list) or (key == "oneOf" and not _kinds_differ(each)):
                    raise _unsupported(f"this {key!r}", where)
                return _one_of([self.format(one, f"{where}/{key}/{i}", above) for i, one in enumerate(each)])
        kinds = said.pop("type", "object" if "properties" in said else None)
        listed: list[Foreign] = kinds if isinstance(kinds, list) else [kinds]
        known = frozenset[str]().union(*(_KEYWORDS.get(kind, ()) for kind in listed if isinstance(kind, str)))
        if not listed or not all(isinstance(kind, str) and kind in _KEYWORDS for kind in listed):
            raise _unsupported("a value of any kind", where)
        if said.keys() - known:
            raise _unsupported(f"the keyword {min(said.keys() - known)!r}", where)
        return _one_of([self._kind(kind, said, where, above) for kind in listed])

    def _referred(self, said: Mapping[str, object], where: str, above: tuple[str, ...]) -> Format:
        reference = said["$ref"]
        parts = reference.split("/") if isinstance(reference, str) else []
        if len(said) > 1 or len(parts) < 2 or parts[0] != "#" or reference in above:
            raise _unsupported(f"the reference {reference!r}", where)
        target: object = self.root
        for part in parts[1:]:
            target = target.get(part) if isinstance(target, Mapping) else None
        return self.format(target, where, (*above, str(reference)))

    def _kind(self, kind: str, said: Mapping[str, object], where: str, above: tuple[str, ...]) -> Format:
        if kind == "object":
            return self._object(said, where, above)
        if kind == "array":
            return self._array(said, where, above)
        if kind == "string":
            most = said.get("maxLength")
            text: Format = {"type": "any_text"} if most is None else {"type": "any_text", "max_chars": most}
            text |= {"excludes": [*self.excludes]} if self.excludes else {}
            return {"type": "tag", "begin": _QUOTE, "content": text, "end": _QUOTE}
        if kind == "null":
            return _const("null")
        said = {key: value for key, value in said.items() if key in _KEYWORDS[kind]}
        return {"type": "json_schema", "json_schema": {"type": kind, **said}}

    def _array(self, said: Mapping[str, object], where: str, above: tuple[str, ...]) -> Format:
        item = self.format(said.get("items", {}), f"{where}/items", above)
        least, most = said.get("minItems", 0), said.get("maxItems", -1)
        if type(least) is not int or type(most) is not int or least < 0 or -1 < most < least or most < -1:
            raise _unsupported("these bounds of an array", where)
        if most == 0:
            return _const("[]")
        more: Format = {
            "type": "repeat",
            "min": max(least - 1, 0),
            "max": most - 1 if most > 0 else -1,
            "content": _after(",", item),
        }
        items = _sequence([item, more])
        return _sequence([*([_after("[", items)] if least else [_const("["), _optional(items)]), _const("]")])

    def _object(self, said: Mapping[str, object], where: str, above: tuple[str, ...]) -> Format:
        properties, named = said.get("properties"), said.get("required", [])
        if not named and properties is None and said.get("additionalProperties", True) is True:
            return self._values(_LEVELS, where)[-1]
        properties = {} if properties is None else properties
        if said.get("additionalProperties", False) is not False:
            raise _unsupported("members without a name of their own", where)
        if not isinstance(properties, Mapping) or not isinstance(named, list):
            raise _unsupported("these members of an object", where)
        if not all(isinstance(key, str) and key in properties for key in named):
            raise _unsupported("a required member that is not declared", where)
        members: list[tuple[Format, bool]] = []
        order = sorted(properties, key=lambda key: (key.lower(), key)) if self.alphabetical else properties
        for key in order:
            if not _KEY.fullmatch(key):
                raise _unsupported(f"a member with the name {key!r}", where)
            value = self.format(properties[key], f"{where}/properties/{key}", above)
            members.append((_after(f"{key}:", value), key in named))
        return _sequence([_const("{"), *self._members(members), _const("}")])

    def _values(self, levels: int, where: str) -> list[Format]:
        """The values of any kind, of so many levels of arrays and objects; objects come last."""
        self.formats += 1 << levels
        if self.formats > _MOST_FORMATS:
            raise _unsupported("a schema that becomes so many formats", where)
        values = [self._kind(kind, {}, where, ()) for kind in ("string", "number", "boolean", "null")]
        if levels:
            value = _one_of(self._values(levels - 1, where))
            key: Format = {"type": "regex", "pattern": _KEY.pattern}
            for begin, item, end in (("[", value, "]"), ("{", _sequence([key, _const(":"), value]), "}")):
                tag: Format = {"type": "tag", "begin": "", "content": item, "end": ""}
                items: Format = {"type": "tags_with_separator", "tags": [tag], "separator": ","}
                values.append(_sequence([_const(begin), items, _const(end)]))
        return values

    def _members(self, members: list[tuple[Format, bool]]) -> Iterator[Format]:
        first = next((i for i, (_, required) in enumerate(members) if required), None)
        if first is None:
            if members:
                yield _optional(self._some([member for member, _ in members]))
            return
        for i, (member, required) in enumerate(members):
            if i < first:
                yield _optional(_sequence([member, _const(",")]))
            elif i == first:
                yield member
            else:
                whole = _after(",", member)
                yield whole if required else _optional(whole)

    def _some(self, members: list[Format]) -> Format:
        """At least one of the members, in order: of the first half and perhaps of the second, or of that alone."""
        self.formats += len(members)
        if self.formats > _MOST_FORMATS:
            raise _unsupported("an object of so many members of which none is required", "")
        if len(members) == 1:
            return members[0]
        half = len(members) // 2
        right = self._some(members[half:])
        return _one_of([_sequence([self._some(members[:half]), _optional(_after(",", right))]), right])


def _of_objects(said: dict[str, object]) -> dict[str, object]:
    """Keywords less those that say once more that a value is an object."""
    clauses, branches = said.get("allOf"), said.get("anyOf", said.get("oneOf"))
    if said.get("type") == "object" and len(said) == 2:
        if isinstance(clauses, list) and len(clauses) == 1 and isinstance(clauses[0], dict):
            return clauses[0]
        if isinstance(branches, list) and all(isinstance(each, dict) and _is_object(each) for each in branches):
            return {key: each for key, each in said.items() if key != "type"}
    return said


def _is_object(schema: Mapping[str, object]) -> bool:
    return schema.get("type", "object" if "properties" in schema else None) == "object"


def _written(value: object, where: str) -> str:
    if isinstance(value, str) and _QUOTE not in value:
        return f"{_QUOTE}{value}{_QUOTE}"
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    raise _unsupported(f"the value {value!r}", where)


def _kinds_differ(schemas: list[object]) -> bool:
    kinds = [each.get("type") if isinstance(each, Mapping) else None for each in schemas]
    return None not in kinds and len({str(kind) for kind in kinds}) == len(kinds) and "number" not in kinds


def _unsupported(what: str, where: str) -> UnsupportedError:
    return UnsupportedError(
        f"Gemma's notation cannot honour {what}",
        where=where,
        remedy='Simplify the schema, or pass the tool with "strict": false.',
    )


def _const(text: str) -> Format:
    return {"type": "const_string", "value": text}


def _after(text: str, format: Format) -> Format:
    """A format with a text before it, in as few formats as will do."""
    kind, elements = format["type"], format.get("elements")
    if kind == "const_string":
        return _const(f"{text}{format['value']}")
    if kind == "tag":
        return {**format, "begin": f"{text}{format['begin']}"}
    if kind == "sequence" and isinstance(elements, list):
        return _sequence([_after(text, elements[0]), *elements[1:]])
    return _sequence([_const(text), format])


def _optional(content: Format) -> Format:
    return {"type": "optional", "content": content}


def _sequence(elements: list[Format]) -> Format:
    return {"type": "sequence", "elements": elements}


def _one_of(elements: list[Format]) -> Format:
    return elements[0] if len(elements) == 1 else {"type": "or", "elements": elements}
