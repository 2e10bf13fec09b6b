"""OpenAI's strict mode: which schemas its structured outputs take, and the schemas of types made so.

The rules are those of the page "Structured model outputs" of OpenAI's API documentation, sections "Supported schemas"
and what follows, as of 2026. What that page leaves open is taken as OpenAI's own SDK for Java has it
(``JsonSchemaValidator``): how deep a schema is nested, and that a keyword which is not listed is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import NoReturn

from ..errors import DefinitionError
from ..system.types import Foreign
from .json_text import loads
from .schema_sources import schema_text

#: Properties of all objects; levels of subschemas below the root, references not followed.
MOST_PROPERTIES, MOST_LEVELS = 5_000, 10

#: Characters of all names of properties and definitions, and of all values of ``enum`` and ``const``.
MOST_CHARACTERS = 120_000

#: Values of all ``enum``; where one has more strings than `LONG_ENUM`, the characters of these.
MOST_VALUES, LONG_ENUM, MOST_CHARACTERS_OF_ENUM = 1_000, 250, 15_000

#: Values of ``format``.
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})

_NOTES = frozenset({"title", "description"})
_AT_ROOT = frozenset({"$schema", "$id", "$defs", "definitions"})
_KEYWORDS = _NOTES | {
    "type", "enum", "const", "anyOf", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
}  # fmt: skip
_INSTEAD = {
    "oneOf": "Use anyOf.", "allOf": "Write what its schemas say together in one.", "not": "Say what is allowed.",
    "default": "Leave it out: every property is written.", "uniqueItems": "Check it in the program.",
    "prefixItems": "Use an object with a property for each.",
}  # fmt: skip

_Place = tuple[Foreign, str, int]  # a subschema, its JSON pointer, its level


def strict_schema(source: object) -> object:
    """The schema that ``source`` stands for, as `JsonSchema` takes it; that of a type is made strict.

    Raises `DefinitionError` as `check_strict`, and what reading the schema raises.
    """
    text = schema_text(source)
    schema = loads(text)
    if isinstance(source, bool | Mapping | str | PathLike):
        check_strict(schema)
        return text
    schema = made_strict(schema)
    check_strict(schema)
    return schema


def check_strict(schema: Foreign) -> None:
    """Check that strict mode takes a schema. Raises `DefinitionError` with the JSON pointer of what it doesn't."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        _refuse("the root is no object", "", 'Give it "type": "object"; wrap anything else in a property.')
    _Check().run(schema)


class _Check:
    """Walks over a schema in document order, and counts."""

    def __init__(self) -> None:
        self._properties = self._characters = self._values = 0

    def run(self, root: Foreign) -> None:
        todo: list[_Place] = [(root, "", 0)]
        while todo:
            schema, pointer, level = todo.pop()
            self._look(schema, pointer, level)
            todo += reversed(list(_subschemas(schema, pointer, level)))

    def _look(self, schema: Foreign, pointer: str, level: int) -> None:
        if not isinstance(schema, Mapping):
            _refuse("it is no object with keywords", pointer, "Say what type it has.")
        if level > MOST_LEVELS:
            _refuse(f"it is nested more than {MOST_LEVELS} levels deep", pointer, "Move it to $defs, or flatten it.")
        kinds = [name for name in ("type", "anyOf", "$ref") if name in schema]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none"
            _refuse(f"it has {found} of type, anyOf and $ref", pointer, "Give it exactly one of them.")
        allowed = _NOTES | {"$ref"} if "$ref" in schema else _KEYWORDS
        for keyword in schema:
            if keyword not in allowed and not (level == 0 and keyword in _AT_ROOT):
                remedy = _INSTEAD.get(keyword, "Leave it out.")
                _refuse(f"the keyword {keyword!r} is not supported", f"{pointer}/{_segment(keyword)}", remedy)
        for keyword, check in _CHECKS.items():
            if keyword in schema:
                check(self, schema, f"{pointer}/{keyword}")
        if "object" in _types(schema) or "properties" in schema:
            self._object(schema, pointer)
        if "array" in _types(schema) and "items" not in schema:
            _refuse("an array has no items", pointer, "Say in items what they are.")

    def _object(self, schema: Mapping[str, Foreign], pointer: str) -> None:
        if schema.get("additionalProperties") is not False:
            _refuse("an object is not closed", pointer, 'Say "additionalProperties": false.')
        names, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(names, Mapping) or not isinstance(required, list):
            return  # which is said when it is compiled
        listed = {name for name in required if isinstance(name, str)}
        for name in names:
            if name not in listed:
                remedy = "List it in required; for an optional one allow null besides."
                _refuse("a property is not required", f"{pointer}/properties/{_segment(name)}", remedy)
        for at, name in enumerate(required):
            if name not in names:
                _refuse(f"{name!r} is no property", f"{pointer}/required/{at}", "List it in properties.")

    def _count_names(self, schema: Mapping[str, Foreign], pointer: str) -> None:
        keyword = pointer.rpartition("/")[2]
        is_properties = keyword == "properties"
        for name in schema[keyword] if isinstance(schema[keyword], Mapping) else ():
            where = f"{pointer}/{_segment(name)}"
            self._count_characters(name, where)
            self._properties += is_properties
            if self._properties > MOST_PROPERTIES:
                _refuse(f"there are more than {MOST_PROPERTIES:,} properties", where, "Use fewer.")

    def _count_enum(self, schema: Mapping[str, Foreign], pointer: str) -> None:
        values = schema["enum"] if isinstance(schema["enum"], list) else []
        for at, value in enumerate(values):
            self._values += 1
            if self._values > MOST_VALUES:
                _refuse(f"there are more than {MOST_VALUES:,} values of enums", f"{pointer}/{at}", "Use fewer.")
            self._count_characters(value, f"{pointer}/{at}")
        strings = [value for value in values if isinstance(value, str)]
        if len(strings) > LONG_ENUM and sum(map(len, strings)) > MOST_CHARACTERS_OF_ENUM:
            _refuse(
                f"{len(strings):,} strings have more than {MOST_CHARACTERS_OF_ENUM:,} characters",
                pointer,
                f"Use shorter ones, or at most {LONG_ENUM}.",
            )

    def _count_const(self, schema: Mapping[str, Foreign], pointer: str) -> None:
        self._count_characters(schema["const"], pointer)

    def _count_characters(self, value: Foreign, where: str) -> None:
        """Count a name or a value; what is no string counts as JSON."""
        self._characters += len(value) if isinstance(value, str) else len(json.dumps(value, default=str))
        if self._characters > MOST_CHARACTERS:
            _refuse(f"names and values have more than {MOST_CHARACTERS:,} characters", where, "Use shorter ones.")

    def _format(self, schema: Mapping[str, Foreign], pointer: str) -> None:
        name = schema["format"]
        if not isinstance(name, str) or name not in FORMATS:
            remedy = f"Use one of {', '.join(sorted(FORMATS))}, or a pattern."
            _refuse(f"the format {name!r} is not supported", pointer, remedy)


_CHECKS: dict[str, Callable[[_Check, Mapping[str, Foreign], str], None]] = {
    **dict.fromkeys(("properties", "$defs", "definitions"), _Check._count_names),
    "enum": _Check._count_enum,
    "const": _Check._count_const,
    "format": _Check._format,
}


def made_strict(schema: Foreign) -> Foreign:
    """The schema of a type, as Pydantic describes it, with all its objects closed and all their members required.

    Like ``openai.lib._pydantic.to_strict_json_schema``; besides, defaults are left out, and the branches of a union
    with a discriminator, which exclude each other, are those of ``anyOf``.
    """
    if not isinstance(schema, Mapping):
        return schema
    root = dict(schema)
    reference = root.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):  # a type that contains itself
        del root["$ref"]
        root = {**root["$defs"][reference.removeprefix("#/$defs/")], **root}
    todo = [root]
    for node in todo:  # grows
        for keyword in ("default", "examples", "x-unchecked"):
            node.pop(keyword, None)
        if "$ref" in node:
            node.pop("required", None)  # as are all members of what it leads to
        if "discriminator" in node:
            del node["discriminator"]
            node["anyOf"] = node.pop("oneOf")
        if node.get("type") == "object":
            node.setdefault("additionalProperties", False)
        if "properties" in node:
            node["required"] = list(node["properties"])
        for keyword in ("properties", "$defs"):
            if keyword in node:
                node[keyword] = {name: dict(each) for name, each in node[keyword].items()}
                todo += node[keyword].values()
        if isinstance(node.get("items"), Mapping):
            node["items"] = dict(node["items"])
            todo.append(node["items"])
        if "anyOf" in node:
            node["anyOf"] = [dict(each) for each in node["anyOf"]]
            todo += node["anyOf"]
    return root


def _subschemas(schema: Mapping[str, Foreign], pointer: str, level: int) -> Iterator[_Place]:
    """The subschemas that are a level below a schema."""
    for keyword in ("$defs", "definitions", "properties"):
        named = schema.get(keyword)
        if isinstance(named, Mapping):
            for name, each in named.items():
                yield each, f"{pointer}/{keyword}/{_segment(name)}", level + 1
    if "items" in schema:
        yield schema["items"], f"{pointer}/items", level + 1
    branches = schema.get("anyOf")
    for at, each in enumerate(branches if isinstance(branches, list) else ()):
        yield each, f"{pointer}/anyOf/{at}", level + 1


def _types(schema: Mapping[str, Foreign]) -> list[Foreign]:
    found = schema.get("type")
    return found if isinstance(found, list) else [found]


def _segment(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _refuse(what: str, pointer: str, remedy: str) -> NoReturn:
    raise DefinitionError(f"not for OpenAI's strict mode: {what}", where=pointer or "the root", remedy=remedy)
