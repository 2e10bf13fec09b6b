"""JSON text, read and written without losing anything: numbers keep their digits, text its order.

Python's `json` turns ``0.10`` into a binary fraction and ``1e400`` into infinity, writes keys that are no strings
as if they were, and puts NaN into documents. Schemas come from strangers and end in cache keys, so none of that
may happen to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from enum import Enum
from json.encoder import encode_basestring_ascii as quote
from typing import Any

from .errors import BudgetExceededError, DefinitionError

#: Digits up to which a number is read as an int or float; past them `int` is slow or refuses.
_SHORT = 300

#: Levels of nesting that `dumps` writes. Far more than a compile is granted (`Budget.depth`).
_MAX_DEPTH = 100_000

#: Values that `dumps` writes, characters of their strings, and bits of an integer: some seconds' work. A few Python
#: containers that hold each other more than once can stand for a text of any size.
_MAX_VALUES = 1_000_000
_MAX_CHARACTERS = 1 << 26
_MAX_BITS = 400_000


def loads(text: str) -> Any:
    """Parse a JSON document. Numbers are int or float where that says exactly what was written, else Decimal.

    Raises
    ------
    DefinitionError
        With line and column, where the text is not JSON (RFC 8259).
    BudgetExceededError
        Where it is nested too deeply for Python's parser.
    """
    try:
        return json.loads(text, parse_float=_fraction, parse_int=_integer, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise DefinitionError(
            f"the text is not JSON: {error.msg}", where=f"line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise _too_deep() from error


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _SHORT else Decimal(digits)


def _fraction(digits: str) -> float | Decimal:
    try:
        exact = Decimal(digits)
    except InvalidOperation as error:
        raise DefinitionError(
            f"the number {_shortened(digits)} is out of range", remedy="Use a smaller exponent."
        ) from error
    value = float(digits) if len(digits) <= _SHORT else 0.0
    return value if repr(value) == digits else exact


def _constant(name: str) -> Any:
    raise DefinitionError(f"{name} is not a JSON number", remedy="Leave the bound out, or write a number.")


def dumps(value: Any) -> str:
    """Write a value as compact ASCII JSON, members in their order.

    Takes what JSON has: mappings with string keys, lists, tuples, strings, bools, None, and numbers (int, float,
    Decimal), each exactly. Walks on a stack of its own, so that no depth is too much for Python's.

    Raises
    ------
    DefinitionError
        For anything else, a NaN, or a value that contains itself; ``where`` is the JSON pointer.
    BudgetExceededError
        For a value nested deeper than 100,000 levels, or of more than a million parts or 64 Mi characters.
    """
    parts: list[str] = []
    add = parts.append
    values = characters = 0
    stack: list[_Container] = []
    open_ids: set[int] = set()
    item = value
    while True:
        kind = type(item)
        if kind is str:
            characters += len(item)
            if characters > _MAX_CHARACTERS:
                raise _too_large()
            add(quote(item))
        elif item is True or item is False or item is None:
            add("true" if item else "null" if item is None else "false")
        elif isinstance(item, Mapping | list | tuple):
            if id(item) in open_ids:
                raise DefinitionError("the schema contains itself", where=_pointer(stack), remedy="Use $ref.")
            if len(stack) >= _MAX_DEPTH:
                raise _too_deep()
            values += len(item)
            if values > _MAX_VALUES:
                raise _too_large()
            open_ids.add(id(item))
            stack.append(_Container(item))
            add(stack[-1].opening)
        else:
            add(_scalar(item, stack))
        while stack:
            top = stack[-1]
            try:
                key = next(top.rest)
            except StopIteration:
                add(top.closing)
                open_ids.discard(id(top.value))
                stack.pop()
                continue
            if top.began:
                add(",")
            top.began = True
            top.key = key
            item = top.value[key]
            if top.is_object:
                if type(key) is not str:
                    key = _name(key, stack)
                characters += len(key)
                add(quote(key))
                add(":")
            break
        else:
            return "".join(parts)


class _Container:
    """An array or object that is being written."""

    __slots__ = ("began", "closing", "is_object", "key", "opening", "rest", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.is_object = isinstance(value, Mapping)
        self.rest: Iterator[Any] = iter(value) if self.is_object else iter(range(len(value)))
        self.opening, self.closing = "{}" if self.is_object else "[]"
        self.began = False
        self.key: Any = None


def _name(key: Any, stack: list[_Container]) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise DefinitionError(
        f"a key is {_shortened(repr(key))}, and JSON's keys are strings", where=_pointer(stack[:-1])
    )


def _scalar(item: Any, stack: list[_Container]) -> str:
    if isinstance(item, Enum):
        item = item.value
    if isinstance(item, str):
        return quote(str.__str__(item))
    if isinstance(item, int) and not isinstance(item, bool):
        if item.bit_length() > _MAX_BITS:
            raise BudgetExceededError(
                "the number has more than 100,000 digits", where=_pointer(stack), remedy="Write a shorter number."
            )
        return int.__repr__(item) if item.bit_length() < _SHORT else str(Decimal(int(item)))
    if isinstance(item, float) and item - item == 0:
        return float.__repr__(item)
    if isinstance(item, Decimal) and item.is_finite():
        return str(item)
    if isinstance(item, float | Decimal):
        raise DefinitionError(f"{item} is not a JSON number", where=_pointer(stack))
    raise DefinitionError(
        f"a {type(item).__name__} is not a JSON value",
        where=_pointer(stack),
        remedy="Build the schema of dicts, lists, strings, numbers, bools and None.",
    )


def _pointer(stack: list[_Container]) -> str:
    """Where the writer is, as a JSON pointer (RFC 6901)."""
    keys = (str(each.key).replace("~", "~0").replace("/", "~1") for each in stack)
    return _shortened("".join(f"/{key}" for key in keys), 400)


def _shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _too_large() -> BudgetExceededError:
    return BudgetExceededError(
        f"the schema has more than {_MAX_VALUES:,} values or {_MAX_CHARACTERS:,} characters",
        remedy="Give parts that come again a name in $defs, and use $ref.",
    )


def _too_deep() -> BudgetExceededError:
    return BudgetExceededError(
        "the schema is nested too deeply", remedy="Give nested parts a name in $defs, and use $ref."
    )
