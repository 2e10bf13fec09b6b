"""JSON values as the compiler sees them: dicts, lists, strings, None, booleans, and a `Decimal` for every number.

A tree, always: no two places hold the same container, so that ``id(node)`` names a place of the document.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal, InvalidOperation
from typing import Any

from ....budget import Meter
from ....errors import BudgetExceededError, DefinitionError
from .document import Json

#: Bytes that a node of the tree takes, about; to hold copies of Python values against the budget.
_NODE_BYTES = 512

_TOO_DEEP = "Flatten it, or name its parts under $defs and refer to them."


def parse_json(text: str) -> Json:
    """The value that a JSON text spells; of members with the same name, the last one counts, as for `json.loads`.

    Raises `DefinitionError` with line and column, and `BudgetExceededError` where Python's parser would need more
    stack than it has.
    """
    try:
        return json.loads(text, parse_int=Decimal, parse_float=Decimal, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise DefinitionError(f"not JSON: {error.msg}", where=where, remedy="Pass the schema as JSON text.") from None
    except InvalidOperation:
        raise DefinitionError("a number's exponent has too many digits", remedy="Write a smaller number.") from None
    except RecursionError:
        raise BudgetExceededError("the JSON text is nested too deeply to be parsed", remedy=_TOO_DEEP) from None


def from_python(value: Any, meter: Meter) -> Json:
    """A copy of a Python value as a tree of JSON values. Floats stand for the decimal number that they print as.

    Raises `DefinitionError` for what JSON can't say, and `BudgetExceededError` for what is nested too deeply, as a
    container within itself is.
    """
    holder: list[Json] = []
    todo: list[tuple[Any, Any, int]] = [([value], holder, 0)]
    limit = 2 * meter.budget.depth + 2
    nodes = 0
    while todo:
        source, copy, depth = todo.pop()
        if depth > limit:
            what = f"the schema is nested deeper than {limit:,} containers, or contains itself"
            raise BudgetExceededError(what, remedy=_TOO_DEEP)
        nodes += 1 + len(source)
        meter.check_memory(nodes * _NODE_BYTES, "reading the schema")
        meter.check_time("reading the schema")
        items = []
        for item in source.values() if isinstance(source, dict) else source:
            if isinstance(item, dict | list | tuple):
                inner: Json = {} if isinstance(item, dict) else []
                todo.append((item, inner, depth + 1))
                items.append(inner)
            else:
                items.append(_scalar(item))
        if isinstance(source, dict):
            copy.update(zip(map(_name, source), items, strict=True))
        else:
            copy.extend(items)
    return holder[0]


def describe(value: Json) -> str:
    """A value's kind and, where short, the value itself, for messages: ``the string "int"``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        text = str(value)
        return f"the number {text}" if len(text) <= 40 else "a long number"
    if isinstance(value, str):
        return f"the string {json.dumps(value)}" if len(value) <= 60 else "a long string"
    return "an array" if isinstance(value, list) else "an object"


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise DefinitionError(f"an object's key is {key!r}, not a string", remedy="Use string keys.")
    return str.__str__(key)


def _scalar(value: Any) -> Json:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # an enumeration's member becomes its text
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, int):
        number = Decimal(int(value))
    elif isinstance(value, float):
        number = Decimal(float.__repr__(value)) if math.isfinite(value) else Decimal("NaN")
    else:
        kind = type(value).__name__
        raise DefinitionError(f"a {kind} is not a JSON value", remedy="Pass JSON text, or what json.loads returns.")
    if not number.is_finite():
        _refuse_constant(str(value))
    return number


def _refuse_constant(name: str) -> None:
    raise DefinitionError(f"{name} is not a JSON number", remedy="Write a finite number, or leave the keyword out.")
