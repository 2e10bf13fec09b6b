"""JSON values as the compiler sees them: dicts, lists, strings, None, booleans, and a `Decimal` for every number.

A tree, always: no two places hold the same container, so that ``id(node)`` names a place of the document.
"""

from __future__ import annotations

import json
from decimal import Decimal

from ....errors import BudgetExceededError
from .document import Json

_DECODER = json.JSONDecoder(parse_int=Decimal, parse_float=Decimal)


def parse_json(text: str) -> Json:
    """The value of a text that is JSON. Raises `BudgetExceededError` where it is too deep for Python's parser."""
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError:
        raise BudgetExceededError(
            "the JSON text is nested too deeply to be parsed",
            remedy="Flatten it, or name its parts under $defs and refer to them.",
        ) from None
    return value


def describe(value: Json) -> str:
    """A value's kind and, where short, the value itself, for messages: ``the string "int"``."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Decimal):
        text = str(value)
        return f"the number {text}" if len(text) <= 40 else "a long number"
    if isinstance(value, str):
        return f"the string {json.dumps(value)}" if len(value) <= 60 else "a long string"
    return "an array" if isinstance(value, list) else "an object"
