"""What became of another engine's definition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from ..compiler.json_schema.read.drafts import UNDECLARED
from ..definitions import Definition
from ..definitions.json_text import dumps, loads
from ..system.types import Foreign


@dataclass(frozen=True)
class Migrated:
    """A converted definition, with the differences from the original.

    Parameters
    ----------
    definition:
        The definition, to be compiled as any other.
    changes:
        The differences, a sentence for each. Empty where the texts are the same.
    """

    definition: Definition
    changes: tuple[str, ...] = ()


#: How deep the objects may be nested that other engines' definitions are made of.
DEEPEST_TERM = 100

#: A change that many of them have.
ANY_ESCAPE = 'Strings may be spelled with any escape of JSON, by escapes="any".'


#: A change of schemas with patterns, which are written as `whole_patterns` has them.
PATTERN = "A pattern is about the whole string, as JavaScript reads it, however JSON spells the string."

#: Keywords that say nothing of a value's text by themselves.
_ANNOTATIONS = frozenset(
    {"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples",
     "deprecated", "readOnly", "writeOnly", "$anchor", "x-guidance"}
)  # fmt: skip
_JSON_TYPES: dict[type, tuple[str, ...]] = {
    bool: ("boolean",), int: ("integer", "number"), str: ("string",), dict: ("object",), list: ("array",),
    type(None): ("null",),
}  # fmt: skip
#: Keywords of values of one type.
_OF_A_TYPE = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
     "format", "minItems", "maxItems", "items", "prefixItems", "minProperties", "maxProperties", "properties",
     "patternProperties", "propertyNames", "additionalProperties", "required"}
)  # fmt: skip


def subschemas(schema: Foreign) -> Iterator[dict[str, Foreign]]:
    """A schema and those within it, each before those within it."""
    return _subschemas(_read(schema))


def _subschemas(root: Foreign) -> Iterator[dict[str, Foreign]]:
    todo = [root]
    while todo:
        each = todo.pop()
        if not isinstance(each, dict):
            continue
        yield each
        for keyword, value in each.items():
            if keyword in UNDECLARED.several and isinstance(value, list):
                todo += value
            elif keyword in UNDECLARED.one:
                todo.append(value)
            elif keyword in UNDECLARED.several and isinstance(value, dict):
                todo += value.values()


def _read(schema: Foreign) -> Foreign:
    return loads(schema if isinstance(schema, str) else dumps(schema))


def corrected(
    schema: Foreign, correct: Callable[[dict[str, Foreign]], bool], change: str
) -> tuple[Foreign, tuple[str, ...]]:
    """A schema each of whose subschemas ``correct`` has corrected, and the ``change`` where it says that it did."""
    root = _read(schema)
    is_changed = False
    for each in _subschemas(root):
        is_changed |= correct(each)
    return (dumps(root), (change,)) if is_changed else (schema, ())


def whole_patterns(
    schema: Foreign, plain: Callable[[str], str] = str, *, names: bool = False
) -> tuple[Foreign, tuple[str, ...]]:
    """A schema whose patterns are about whole strings, and with ``names`` about whole names, and what changes.

    ``plain`` spells a pattern as JavaScript does.
    """
    of_names: set[int] = set()
    has_patterns = False

    def whole(pattern: str) -> str:
        nonlocal has_patterns
        has_patterns, pattern = True, plain(pattern)
        is_whole = pattern.startswith("^") and pattern.endswith("$") and not pattern.endswith("\\$")
        return pattern if is_whole and "|" not in pattern else f"^(?:{pattern})$"

    def correct(each: dict[str, Foreign]) -> bool:
        if not names:
            of_names.add(id(each.get("propertyNames")))
        before = dict(each)
        if isinstance(each.get("pattern"), str) and id(each) not in of_names:
            each["pattern"] = whole(each["pattern"])
        if names and isinstance(each.get("patternProperties"), dict):
            each["patternProperties"] = {whole(name): value for name, value in each["patternProperties"].items()}
        return before != each

    schema, _ = corrected(schema, correct, PATTERN)
    return schema, (PATTERN,) if has_patterns else ()


def kept_to(schema: Foreign, engine: str, less: Collection[str], *, is_whole: bool = False) -> tuple[str, ...]:
    """A sentence on the keywords of a schema of which an engine makes ``less`` than JSON Schema, where there are any.

    Unless ``is_whole`` says that it reads all of a schema, it makes less, too, of what stands beside a ``$ref`` or a
    list of values, and of keywords without a type.
    """
    found: set[str] = set()
    for each in subschemas(schema):
        said = each.keys() - _ANNOTATIONS
        found |= said & set(less)
        if is_whole:
            continue
        if "additionalProperties, properties" in less and said >= {"additionalProperties", "properties"}:
            found |= {"additionalProperties"} if each["additionalProperties"] is not False else set()
        values = each.get("enum") if isinstance(each.get("enum"), list) else [each[k] for k in said & {"const"}]
        if values:
            found |= said - {"enum", "const", "type"} | ({"type"} if not _all_of(values, each.get("type")) else set())
        elif said & {"$ref", "anyOf"}:
            found |= said - {"$ref", "anyOf"}
        elif "type" not in said:
            found |= said & _OF_A_TYPE
    named = ", ".join(sorted(found))
    return (f"JSON Schema is kept to where {engine} makes less of it, or refuses it: {named}.",) if found else ()


def _all_of(values: list[Foreign], named: Foreign) -> bool:
    """Whether values are all of a type, or of one of several."""
    types = [named] if isinstance(named, str) else named
    return types is None or all(
        isinstance(types, list) and not set(_JSON_TYPES.get(type(value), ("number",))).isdisjoint(types)
        for value in values
    )
