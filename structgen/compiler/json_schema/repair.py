"""Schemas that are no schemas, as lenient definitions take them: malformed keywords are respelled or left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from ...definitions.json_text import dumps, loads
from ...errors import DefinitionError, EmptyLanguageError, UnsupportedError

Read = TypeVar("Read")

#: What stands behind the pointer to a pattern.
_COLUMN = re.compile(r", column \d+$")

#: Malformed keywords of one schema that are left out.
_MOST_REPAIRS = 100

#: Types as OpenAPI, Gemini and programming languages spell them, in lower case.
_TYPES: Mapping[str, str | None] = {
    "dict": "object", "map": "object", "struct": "object", "list": "array", "tuple": "array", "set": "array",
    "float": "number", "double": "number", "decimal": "number", "int": "integer", "long": "integer", "str": "string",
    "text": "string", "bool": "boolean", "none": "null", "nonetype": "null", "any": None,
    **{name: name for name in ("array", "boolean", "integer", "null", "number", "object", "string")},
}  # fmt: skip


def read_leniently(text: str, read: Callable[[str], Read]) -> tuple[Read, list[str]]:
    """What ``read`` makes of a schema, and a line for each malformed keyword that was respelled or left out.

    Raises what ``read`` does where no keyword is at fault, or too many are.
    """
    notes: list[str] = []
    while True:
        try:
            return read(text), notes
        except (EmptyLanguageError, UnsupportedError):  # which are well formed
            raise
        except DefinitionError as error:
            mended = _mended(loads(text), error.where) if len(notes) < _MOST_REPAIRS else None
            if mended is None:
                raise
            text, done = mended
            notes.append(f"{error.where}: {done}, since {error.what}")


def _mended(schema: object, where: str) -> tuple[str, str] | None:
    """A schema without what a pointer leads to, as text, and what was done; None where it leads to no keyword."""
    holder: object = None
    key: str | int = ""
    found, parent = schema, ""
    for token in _COLUMN.sub("", where).split("/")[1:]:
        holder, parent = found, str(key)
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdigit():
            key = int(key)
        try:
            found = found[key]  # type: ignore[index]
        except (LookupError, TypeError):
            return None
    if not isinstance(holder, dict | list):
        return None
    done = "left out"
    if isinstance(holder, list) or parent in ("properties", "$defs", "definitions", "patternProperties"):
        holder[key] = True  # type: ignore[index]
    elif key == "type" and (respelled := _respelled(found)) != found and respelled:
        holder[key] = respelled
        done = f"read as {dumps(respelled)}"
    else:
        del holder[key]  # type: ignore[arg-type]
    return dumps(schema), done


def _respelled(kinds: object) -> object:
    """Types as JSON Schema spells them; None where one stands for any."""
    listed = kinds if isinstance(kinds, list) else [kinds]
    known = [_TYPES.get(kind.lower()) if isinstance(kind, str) else None for kind in listed]
    if None in known:
        return None
    return list(dict.fromkeys(known)) if isinstance(kinds, list) else known[0]
