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

from ..errors import BudgetExceededError, DefinitionError
from ..system.garbage import paused

#: Digits up to which a number is read as an int or float; past them `int` is slow or refuses.
_SHORT = 300

#: Levels of nesting that `dumps` writes. Far more than a compile is granted (`Budget.depth`).
_MAX_DEPTH = 100_000

#: Values that `dumps` writes, characters of their strings and long numbers, and bits of an integer. A few Python
#: containers that hold each other more than once can stand for a text of any size.
_MAX_VALUES = 1_000_000
_MAX_CHARACTERS = 1 << 26
_MAX_BITS = 400_000

#: Parts of a text that are as soon written anew as remembered.
_FEW_PARTS = 16


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
    writer = _Writer()
    with paused():
        writer.write(value)
    return "".join(writer.parts)


class _Container:
    """An array or object that is being written; ``before`` it came so many parts, values and characters."""

    __slots__ = ("before", "closing", "is_object", "key", "rest", "separator", "value")

    def __init__(self, value: Any, before: tuple[int, int, int]) -> None:
        self.value, self.before = value, before
        self.is_object = isinstance(value, Mapping)
        if type(value) is dict:
            self.rest: Iterator[tuple[Any, Any]] = iter(value.items())
        elif self.is_object:
            self.rest = ((key, value[key]) for key in value)
        else:
            self.rest = enumerate(value)
        self.separator, self.closing = "{}" if self.is_object else "[]"
        self.key: Any = None


class _Writer:
    """What has been written, and what is still open.

    A container or a long number that comes again is not walked again, but for the smallest: what was written of it
    is counted and repeated.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._stack: list[_Container] = []
        self._open_ids: set[int] = set()
        self._values = self._characters = 0
        # By id: the value, which is kept alive; its first part and the one after its last; its values and characters.
        self._written: dict[int, tuple[object, int, int, int, int]] = {}

    def write(self, value: Any) -> None:
        """Write a value and all that is in it."""
        if not self._open(value):
            self.parts.append(_scalar(value, []))
        while self._stack:
            top = self._stack[-1]
            if not self._go_on(top):
                # An empty container has not written its opening bracket yet.
                self.parts.append(top.closing if top.separator == "," else top.separator + top.closing)
                self._open_ids.discard(id(top.value))
                if len(self.parts) - top.before[0] > _FEW_PARTS:
                    self._remember(top.value, *top.before)
                self._stack.pop()

    def _go_on(self, top: _Container) -> bool:
        """Write the parts of a container, up to one that is a container itself; False when all are written."""
        add, is_object = self.parts.append, top.is_object
        for key, item in top.rest:
            add(top.separator)
            top.separator = ","
            top.key = key
            kind = type(item)
            length = len(item) if kind is str else 0
            if is_object:
                name = key if type(key) is str else _name(key, self._stack)
                length += len(name)
                add(quote(name))
                add(":")
            self._characters += length
            if self._characters > _MAX_CHARACTERS:
                raise _too_large()
            if kind is str:
                add(quote(item))
            elif id(item) in self._written:
                self._repeat(*self._written[id(item)][1:])
            elif kind in _SCALARS or not self._open(item):
                add(text := _scalar(item, self._stack))
                if len(text) > _SHORT:
                    self._characters += len(text)
                    self._remember(item, len(self.parts) - 1, self._values, self._characters - len(text))
            else:
                return True
        return False

    def _open(self, value: Any) -> bool:
        """Begin an array or object; False for any other value."""
        if not isinstance(value, (dict, list, tuple, Mapping)):
            return False
        if id(value) in self._open_ids:
            raise DefinitionError("the schema contains itself", where=_pointer(self._stack), remedy="Use $ref.")
        if len(self._stack) >= _MAX_DEPTH:
            raise _too_deep()
        self._stack.append(_Container(value, (len(self.parts), self._values, self._characters)))
        self._values += len(value)
        if self._values > _MAX_VALUES:
            raise _too_large()
        self._open_ids.add(id(value))
        return True

    def _remember(self, value: object, part: int, values: int, characters: int) -> None:
        """What was written of a value, and of nothing else, since there were so many parts, values and characters."""
        size = self._values - values, self._characters - characters
        self._written[id(value)] = (value, part, len(self.parts), *size)

    def _repeat(self, first: int, end: int, values: int, characters: int) -> None:
        """Write some parts once more."""
        self._values += values
        self._characters += characters
        if self._values > _MAX_VALUES or self._characters > _MAX_CHARACTERS:
            raise _too_large()
        self.parts += self.parts[first:end]


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _name(key: Any, stack: list[_Container]) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise DefinitionError(
        f"a key is {_shortened(repr(key))}, and JSON's keys are strings", where=_pointer(stack[:-1])
    )


def _scalar(item: Any, stack: list[_Container]) -> str:
    if item is True or item is False or item is None:
        return "true" if item else "null" if item is None else "false"
    if isinstance(item, Enum):
        item = item.value
    if isinstance(item, str):
        if len(item) > _MAX_CHARACTERS:
            raise _too_large()
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
