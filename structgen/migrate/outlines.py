"""Definitions of Outlines."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from ..definitions import Definition, JsonSchema, Regex, as_definition
from ..errors import UnsupportedError
from ..system.types import Foreign, with_article
from .llguidance import from_llguidance
from .migrated import DEEPEST_TERM, Migrated, corrected, kept_to, whole_patterns


def from_outlines(output_type: Any) -> Migrated:
    """Convert an output type of ``outlines.Generator(model, output_type)``.

    Parameters
    ----------
    output_type:
        A type of Outlines, Python or Pydantic.

    Raises
    ------
    DefinitionError
        For anything else. Also the errors of the definition.
    """
    make = _OUTLINES.get(type(output_type).__name__)
    if make is not None and not isinstance(output_type, Definition):
        return make(output_type)
    if get_origin(output_type) is Literal:
        return Migrated(Regex.choice(str(each) for each in get_args(output_type)))
    if isinstance(output_type, type) and issubclass(output_type, Enum):
        return Migrated(Regex.choice(str(each.value) for each in output_type))
    if isinstance(output_type, type) and output_type in _OUTLINES_PYTHON:
        return Migrated(Regex(_OUTLINES_PYTHON[output_type], dialect="rust"))
    return Migrated(as_definition(output_type), _OUTLINES_JSON)


#: Keywords of which outlines-core makes less than JSON Schema, or refuses them.
_LESS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "contains",
     "minContains", "maxContains", "maxProperties", "patternProperties", "propertyNames", "dependentRequired",
     "dependentSchemas", "dependencies", "allOf", "oneOf", "not", "if", "format", "prefixItems",
     "additionalProperties, properties"}
)  # fmt: skip
_SPELLED = (
    "Strings have more escapes, exponents need no sign, and values without a type nest without bound.",
    "Objects may have keys that no schema lists, unless it forbids them.",
)


def _outlines_schema(output_type: Any) -> Migrated:
    pattern = getattr(output_type, "whitespace_pattern", None)
    schema, changes = corrected(output_type.schema, _untyped, "Beside const and enum, unknown types mean nothing.")
    schema, patterns = whole_patterns(schema)
    changes += (*patterns, *kept_to(schema, "outlines-core", _LESS), *_SPELLED)
    return Migrated(JsonSchema(schema, whitespace="single" if pattern is None else pattern), changes)


def _untyped(schema: dict[str, Foreign]) -> bool:
    """Take away a ``type`` that outlines-core does not look at."""
    named, is_listed = schema.get("type"), "const" in schema or "enum" in schema
    return is_listed and isinstance(named, str) and named not in _TYPES and schema.pop("type") is not None


_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


_OUTLINES_JSON = (
    'White space is one space or none; whitespace="any" lets there be more.',
    "Lists, tuples, dicts and unions are JSON: true and null, not True and None.",
)

#: What Outlines writes down for Python's types by themselves (``outlines.types``).
_INTEGER = "[+-]?(0|[1-9][0-9]*)"
_DATE, _TIME = r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", "([0-1][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])"
_OUTLINES_PYTHON: dict[type, str] = {
    str: '"[^"]*"', int: _INTEGER, float: rf"{_INTEGER}(\.[0-9]+)?([eE][+-]?[0-9]+)?", bool: "True|False",
    date: _DATE, time: _TIME, datetime: rf"{_DATE}\s{_TIME}",
}  # fmt: skip


#: How a term comes again, by the name of its class.
_QUANTIFIERS: dict[str, Callable[[Any], str]] = {
    "KleeneStar": lambda term: "*",
    "KleenePlus": lambda term: "+",
    "Optional": lambda term: "?",
    "QuantifyExact": lambda term: f"{{{int(term.count)}}}",
    "QuantifyMinimum": lambda term: f"{{{int(term.min_count)},}}",
    "QuantifyMaximum": lambda term: f"{{0,{int(term.max_count)}}}",
    "QuantifyBetween": lambda term: f"{{{int(term.min_count)},{int(term.max_count)}}}",
}


def _outlines_term(term: Any, depth: int = 0) -> str:
    """The regex of a term of Outlines'. Raises `UnsupportedError` for schemas and grammars in one."""
    name = type(term).__name__
    if depth > DEEPEST_TERM:
        raise UnsupportedError("the term is nested too deeply", remedy="Give a regex instead.")
    if name == "String":
        return re.escape(str(term.value))
    if name == "Regex":
        return f"({term.pattern})"
    if name == "Choice":
        return f"({'|'.join(re.escape(str(item)) for item in term.items)})"
    if name in ("Sequence", "Alternatives"):
        parts = [_outlines_term(each, depth + 1) for each in term.terms]
        return "".join(parts) if name == "Sequence" else f"({'|'.join(parts)})"
    if name in _QUANTIFIERS:
        return f"({_outlines_term(term.term, depth + 1)}){_QUANTIFIERS[name](term)}"
    what = f"{with_article(type(term))} within a term of Outlines' is not read"
    raise UnsupportedError(what, remedy="Put definitions together with sg.sequence and sg.one_of.")


def _outlines_regex(term: Any) -> Migrated:
    pattern = term.pattern if type(term).__name__ == "Regex" else _outlines_term(term)
    if re.search(r"\(\?<?[=!]", pattern) is None:
        return Migrated(Regex(pattern, dialect="rust"))
    return Migrated(Regex(pattern), ("The regex has look-around, and is read as Python's: Rust's have none.",))


#: By the name of a class of ``outlines.types``.
_OUTLINES: dict[str, Callable[[Any], Migrated]] = {
    **dict.fromkeys(("Regex", "String", "Sequence", "Alternatives", *_QUANTIFIERS), _outlines_regex),
    "CFG": lambda given: from_llguidance(given.definition, "lark"),  # which reads it there
    "JsonSchema": _outlines_schema,
    "Choice": lambda given: Migrated(Regex.choice(str(each) for each in given.items)),
}
