"""Grammars and schemas of llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping

from ..definitions import Gbnf, JsonSchema
from ..errors import DefinitionError
from ..system.types import Foreign, with_article
from .migrated import ANY_ESCAPE, Migrated, corrected

_NO_END = "No space stands behind the whole text."


def from_llama_cpp(grammar: object) -> Migrated:
    """Convert a grammar of llama.cpp or llama-cpp-python.

    Parameters
    ----------
    grammar:
        The text of a grammar, as str or UTF-8 bytes; a ``LlamaGrammar``; or a ``response_format`` of type
        ``json_object`` or ``json_schema``.

    Raises
    ------
    DefinitionError
        For anything else.
    """
    if isinstance(grammar, Mapping):
        if grammar.get("type") not in ("json_object", "json_schema"):
            remedy = 'Its type is "json_object" or "json_schema".'
            raise DefinitionError("the response_format is none of llama.cpp's", remedy=remedy)
        inner = grammar.get("json_schema", grammar)
        schema = inner.get("schema") if isinstance(inner, Mapping) else None
        if schema is None and grammar["type"] == "json_schema":
            remedy = 'Put it under "json_schema" and "schema".'
            raise DefinitionError("the response_format has no schema", remedy=remedy)
        schema = schema or {"type": "object"}  # {} is any object, too
        schema, changes = corrected(schema, _same_items, "A prefixItems that is no array is items.")
        closed = JsonSchema(schema, escapes="any", additional_properties=False)
        return Migrated(closed, (ANY_ESCAPE, "Objects that list properties have no others.", _NO_END, *changes))
    text = getattr(grammar, "_grammar", grammar)
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise DefinitionError(f"the grammar is not UTF-8: {error}", remedy="Pass its text.") from error
    if not isinstance(text, str):
        raise DefinitionError(f"{with_article(type(grammar))} is no grammar", remedy="Pass its text.")
    return Migrated(Gbnf(text, start=getattr(grammar, "_root", "root")))


def _same_items(schema: dict[str, Foreign]) -> bool:
    """Name a schema ``items`` that llama.cpp takes for such."""
    if isinstance(schema.get("prefixItems", []), list):
        return False
    schema.setdefault("items", schema.pop("prefixItems"))
    return True
