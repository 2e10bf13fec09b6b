"""JSON text, read and written without losing anything: numbers keep their digits, text its order.

Python's `json` turns ``0.10`` into a binary fraction and ``1e400`` into infinity, writes keys that are no strings
as if they were, and puts NaN into documents. Schemas come from strangers and end in cache keys, so none of that
may happen to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from json.encoder import encode_basestring_ascii as quote
from typing import TYPE_CHECKING, NoReturn

from ..errors import BudgetExceededError, DefinitionError
from ..system.garbage import paused
from ..system.types import with_article

if TYPE_CHECKING:
    from decimal import Decimal

    from ..system.types import Foreign

#: Digits up to which a number is read as an int or float; past them `int` is slow or refuses.
_SHORT = 300

#: Levels of nesting that `dumps` writes. Far more than a compile is granted (`Budget.depth`).
_MAX_DEPTH = 100_000

#: Values that `dumps` writes, characters of their strings and long numbers, and bits of an integer. A few Python
#: containers that hold each other more than once can stand for a text of any size.
_MAX_VALUES = 1_000_000
_MAX_CHARACTERS = 1 << 26
_MAX_BITS = 400_000

#: Values, characters of their strings, and levels of nesting that are written by Python's encoder.
_FEW_VALUES, _FEW_CHARACTERS, _FEW_LEVELS = 1 << 16, 1 << 20, 500

#: Parts of a text that are as soon written anew as remembered.
_FEW_PARTS = 16

_SCALARS, _STRINGS = frozenset({int, float, bool, type(None)}), frozenset({str})

#: Writes in C, as `_Writer` does, what is `_plain`.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def loads(text: str) -> object:
    """Parse a JSON document. Numbers are int or float where that says exactly what was written, else Decimal.

    Raises
    ------
    DefinitionError
        With line and column, where the text is not JSON (RFC 8259).
    BudgetExceededError
        Where it is nested too deeply for Python's parser.
    """
    try:
        value: object = json.loads(text, parse_float=_fraction, parse_int=_integer, parse_constant=_constant)
        return value
    except json.JSONDecodeError as error:
        raise DefinitionError(
            f"the text is not JSON: {error.msg}",
            where=f"line {error.lineno}, column {error.colno}",
            remedy="Correct the text.",
        ) from error
    except RecursionError as error:
        raise _too_deep() from error


def _integer(digits: str) -> int | Decimal:
    if len(digits) <= _SHORT:
        return int(digits)
    from decimal import Decimal

    return Decimal(digits)


def _fraction(digits: str) -> float | Decimal:
    from decimal import Decimal, InvalidOperation

    try:
        exact = Decimal(digits)
    except InvalidOperation as error:
        raise DefinitionError(
            f"the number {_shortened(digits)} is out of range", remedy="Use a smaller exponent."
        ) from error
    value = float(digits) if len(digits) <= _SHORT else 0.0
    return value if repr(value) == digits else exact


def _constant(name: str) -> NoReturn:
    raise DefinitionError(f"{name} is not a JSON number", remedy="Leave the bound out, or write a number.")


def dumps(value: object) -> str:
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
    with suppress(ValueError, RecursionError):
        return dumps_plain([value])[0]
    writer = _Writer()
    with paused():
        writer.write(value)
    return "".join(writer.parts)


def dumps_plain(values: Sequence[object]) -> list[str]:
    """What `dumps` writes of each of some values that are `_plain`.

    Raises `ValueError` for others and for a NaN, `RecursionError` for nesting that is too deep for Python's encoder.
    """
    if not _plain([*values]):
        raise ValueError("values of other types, or too many")
    return [_ENCODER.encode(value) for value in values]


def _plain(value: Foreign) -> bool:
    """Whether a value is a small one of dicts with string keys, lists, strings, short numbers, bools and None."""
    level, values, characters = [value], 0, 0
    for _ in range(_FEW_LEVELS):  # Python's encoder recurses; a value that contains itself has more
        below: list[Foreign] = []
        for each in level:
            kind = type(each)
            if kind is str:
                characters += len(each)
            elif kind is dict:
                if not _STRINGS.issuperset(map(type, each)):
                    return False
                characters += sum(map(len, each))
                below += each.values()
            elif kind is list:
                below += each
            elif kind not in _SCALARS or (kind is int and each.bit_length() >= _SHORT):
                return False
        values += len(level)
        if values + len(below) > _FEW_VALUES or characters > _FEW_CHARACTERS:
            return False
        if not below:
            return True
        level = below
    return False


class _Writer:
    """What has been written, and what is still open.

    A container or a long number that comes again is not walked again, but for the smallest: what was written of it
    is counted and repeated.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._path: list[object] = []  # the key in each open container
        self._open_ids: set[int] = set()
        self._values = self._characters = 0
        # By id: the value, which is kept alive; its first part and the one after its last; its values and characters.
        self._written: dict[int, tuple[object, int, int, int, int]] = {}

    def write(self, value: object) -> None:
        """Write a value and all that is in it."""
        stack: list[Iterator[object]] = []
        todo = iter([value])
        add, quoted, written = self.parts.append, self._quoted, self._written
        while True:
            for item in todo:
                if isinstance(item, str):
                    add(quoted(item))
                elif id(item) in written:
                    self._repeat(*written[id(item)][1:])
                elif type(item) not in _SCALARS and isinstance(item, (dict, list, tuple, Mapping)):
                    stack.append(todo)
                    todo = self._items(item)
                    break
                else:
                    add(text := self._scalar(item))
                    if len(text) > _SHORT:
                        self._characters += len(text)
                        self._remember(item, len(self.parts) - 1, self._values, self._characters - len(text))
            else:
                if not stack:
                    return
                todo = stack.pop()

    def _items(self, container: Mapping[object, object] | Sequence[object]) -> Iterator[object]:
        """Write an array or object, handing out each item when it is to be written."""
        if id(container) in self._open_ids:
            raise DefinitionError("the value contains itself", where=self._pointer(), remedy="In a schema, use $ref.")
        if len(self._path) >= _MAX_DEPTH:
            raise _too_deep()
        before = len(self.parts), self._values, self._characters
        self._values += len(container)
        if self._values > _MAX_VALUES:
            raise _too_large()
        self._open_ids.add(id(container))
        is_object = isinstance(container, (dict, Mapping))  # most are dicts, which are told faster
        separator, closing = "{}" if is_object else "[]"
        add, path, name = self.parts.append, self._path, self._name
        path.append(None)
        for key, item in container.items() if isinstance(container, (dict, Mapping)) else enumerate(container):
            add(f"{separator}{name(key)}:" if is_object else separator)
            separator, path[-1] = ",", key
            yield item
        add(closing if len(container) else separator + closing)
        self._path.pop()
        self._open_ids.discard(id(container))
        if len(self.parts) - before[0] > _FEW_PARTS:
            self._remember(container, *before)

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

    def _name(self, key: object) -> str:
        if isinstance(key, str):
            return self._quoted(key)
        self._path.pop()
        what = f"a key is {_shortened(repr(key))}, and JSON's keys are strings"
        raise DefinitionError(what, where=self._pointer(), remedy="Make it a string.")

    def _quoted(self, text: str) -> str:
        self._characters += len(text)
        if self._characters > _MAX_CHARACTERS:
            raise _too_large()
        return quote(text if type(text) is str else str.__str__(text))

    def _scalar(self, item: object) -> str:
        if item is True or item is False or item is None:
            return "true" if item else "null" if item is None else "false"
        from decimal import Decimal

        if isinstance(item, Enum):
            item = item.value
        if isinstance(item, str):
            return self._quoted(item)
        if isinstance(item, int) and not isinstance(item, bool):
            if item.bit_length() > _MAX_BITS:
                what = "the number has more than 100,000 digits"
                raise BudgetExceededError(what, where=self._pointer(), remedy="Write a shorter number.")
            return int.__repr__(item) if item.bit_length() < _SHORT else str(Decimal(int(item)))
        if isinstance(item, float) and item - item == 0:
            return float.__repr__(item)
        if isinstance(item, Decimal) and item.is_finite():
            return str(item)
        if isinstance(item, float | Decimal):
            what = f"{item} is not a JSON number"
            raise DefinitionError(what, where=self._pointer(), remedy="Use a finite number.")
        raise DefinitionError(
            f"{with_article(type(item))} is not a JSON value",
            where=self._pointer(),
            remedy="Build the schema of dicts, lists, strings, numbers, bools and None.",
        )

    def _pointer(self) -> str:
        """Where the writer is, as a JSON pointer (RFC 6901)."""
        keys = (str(key).replace("~", "~0").replace("/", "~1") for key in self._path)
        return _shortened("".join(f"/{key}" for key in keys), 400)


def _shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _too_large() -> BudgetExceededError:
    return BudgetExceededError(
        f"the JSON has more than {_MAX_VALUES:,} values or {_MAX_CHARACTERS:,} characters",
        remedy="In a schema, give parts that come again a name in $defs, and use $ref.",
    )


def _too_deep() -> BudgetExceededError:
    return BudgetExceededError(
        "the JSON is nested too deeply", remedy="In a schema, give nested parts a name in $defs, and use $ref."
    )
