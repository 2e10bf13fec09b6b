"""Parsers of lm-format-enforcer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..definitions import Definition, Fsm, JsonSchema, Regex, one_of, sequence
from ..definitions.schema_sources import schema_text
from ..errors import DefinitionError, UnsupportedError
from ..system.types import Foreign, with_article
from .migrated import DEEPEST_TERM, Migrated, kept_to, whole_patterns

_ANY_CHARACTER = "Any character of Unicode may stand where those of an alphabet may there."
_EXPONENTS = "Integers have no exponent."


def from_lm_format_enforcer(parser: object) -> Migrated:
    """Convert a parser of lm-format-enforcer, or the argument that it is made of.

    Parameters
    ----------
    parser:
        A parser, the dict of a schema, None for any value, or a str with a regex.

    Raises
    ------
    DefinitionError
        For anything else.
    UnsupportedError
        For a parser that is nested too deeply.
    """
    if parser is None or isinstance(parser, Mapping):
        return _enforced_schema(True if parser is None else parser)
    if isinstance(parser, str):
        return Migrated(Regex(parser, re.ASCII), (_ANY_CHARACTER,))
    changes: dict[str, None] = {}
    return Migrated(_enforced(parser, changes), tuple(changes))


def _enforced(parser: Any, changes: dict[str, None], depth: int = 0) -> Definition:
    """The definition of a parser of lm-format-enforcer's; what it changes is added."""
    name = type(parser).__name__
    if depth > DEEPEST_TERM:
        raise UnsupportedError("the parser is nested too deeply", remedy="Write a grammar instead.")
    if name in ("UnionParser", "SequenceParser"):
        parts = [_enforced(each, changes, depth + 1) for each in parser.parsers]
        return one_of(*parts) if name == "UnionParser" else sequence(*parts)
    if name == "StringParser":
        return Regex(re.escape(parser.target_str))
    if name == "RegexParser":
        found = Migrated(Fsm(parser.context.pattern), (_ANY_CHARACTER,))
    elif name == "JsonSchemaParser":
        found = _enforced_schema(_plain_schema(parser.context.model_class), parser.config)
    else:
        what = f"{with_article(type(parser))} is no parser of lm-format-enforcer's"
        raise DefinitionError(what, remedy="Pass a JsonSchemaParser, RegexParser or StringParser, or a schema.")
    changes.update(dict.fromkeys(found.changes))
    return found.definition


#: Keywords of which lm-format-enforcer makes less than JSON Schema, or refuses them.
_LESS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format", "uniqueItems", "contains",
     "minContains", "maxContains", "prefixItems", "unevaluatedItems", "minProperties", "maxProperties",
     "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "allOf", "oneOf",
     "not", "if", "additionalProperties, properties"}
)  # fmt: skip


def _enforced_schema(schema: object, config: object = None) -> Migrated:
    changes = [_ANY_CHARACTER, _EXPONENTS, "No space stands around the whole text."]
    in_order = getattr(config, "force_json_field_order", False)
    if in_order:
        changes.append("Members come in the schema's order, not in that of its required ones.")
    schema, patterns = whole_patterns(schema_text(schema))
    changes += [*patterns, *kept_to(schema, "lm-format-enforcer", _LESS)]
    closed = JsonSchema(
        schema, whitespace="any", escapes="any", additional_properties=False,
        max_whitespace=getattr(config, "max_consecutive_whitespaces", 12),
        max_items=getattr(config, "max_json_array_length", 20), property_order="schema" if in_order else "any",
    )  # fmt: skip
    return Migrated(closed, tuple(changes))


def _plain_schema(value: Any, depth: int = 0) -> Foreign:
    """The JSON of a ``JsonSchemaObject``, which keeps what it does not know beside its fields."""
    if depth > DEEPEST_TERM:
        raise UnsupportedError("the schema is nested too deeply", remedy="Pass its dict.")
    if isinstance(value, Mapping):
        return {name: _plain_schema(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain_schema(each, depth + 1) for each in value]
    if not hasattr(value, "extras"):
        return value
    named = {"ref": "$ref", "id": "$id"}
    fields = sorted(name for name in value.model_fields_set if name != "extras")
    known = {named.get(name, name): _plain_schema(getattr(value, name), depth + 1) for name in fields}
    return {name: each for name, each in known.items() if each is not None} | dict(value.extras)
