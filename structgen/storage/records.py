"""Frozen dataclasses as JSON, and back, field by field.

What a field may hold is its annotation: ``int`` (from 0 to below 2³¹), ``float`` (finite), ``bool``, ``str``,
``bytes`` (hexadecimal digits in JSON), a ``Literal``, another dataclass, ``X | None``, ``tuple[X, ...]``, and numbers
``Annotated`` with a pair of bounds. Fields with a default may be missing; no others may be there.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import FormatError
from ..system.types import JsonMap, JsonValue

T = TypeVar("T")

_MOST = (1 << 31) - 1

#: Records in records.
_DEEPEST = 8

#: What an annotation is.
_Hint = Any

#: By annotation: the types of values that need no further look, as most are.
_PLAIN: dict[_Hint, tuple[type, ...]] = {str: (str,), str | None: (str, NoneType)}


def written(record: Any) -> JsonMap:
    """A dataclass as what `json.dumps` takes."""
    found: JsonMap = _written(record)
    return found


def _written(value: Any) -> JsonValue:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if is_dataclass(value):
        return {field.name: _written(getattr(value, field.name)) for field in fields(value)}
    return value


def read_text(cls: type[T], text: str | bytes, where: str) -> T:
    """A dataclass from JSON text; see `read`."""
    return read(cls, parsed(text, where), where)


def parsed(text: str | bytes, where: str) -> JsonValue:
    """What JSON text says. Raises `FormatError`."""
    try:
        found: JsonValue = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # ValueError: no JSON, no UTF-8, or a number of many digits
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise FormatError(f"the file is not JSON: {what}", where=where) from error
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def read(cls: type[T], data: JsonValue, where: str) -> T:
    """A dataclass from what `written` made, or a stranger did.

    Raises `FormatError`, which names the first field that isn't as it must be.
    """
    record: T = _record(cls, data, where, "", _DEEPEST)
    return record


@cache
def _fields(cls: Any) -> dict[str, tuple[_Hint, tuple[type, ...], bool]]:
    """By name of a field: what it may hold, the types of values that are plain, and whether it may be missing."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        field.name: (hint := hints[field.name], _PLAIN.get(hint, ()), field.default is not MISSING)
        for field in fields(cls)
    }


def _record(cls: Any, data: JsonValue, where: str, path: str, left: int) -> Any:
    if not isinstance(data, dict):
        raise _fault("an object", data, where, path)
    if not left:
        raise FormatError("records are nested too deeply", where=f"{where}, {path}")
    wanted, found = _fields(cls), {}
    for name in data:
        if name not in wanted:
            raise FormatError(f"{name!r} is no field of a {cls.__name__}", where=f"{where}, {path or '/'}")
    for name, (hint, plain, may_miss) in wanted.items():
        if name in data:
            value = data[name]
            found[name] = value if type(value) in plain else _value(hint, value, where, f"{path}/{name}", left)
        elif not may_miss:
            raise FormatError(f"the field {name!r} is missing", where=f"{where}, {path or '/'}")
    return cls(**found)


def _value(hint: _Hint, value: JsonValue, where: str, path: str, left: int) -> Any:
    if hint is str and type(value) is str:
        return value
    origin: Any = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None:
            return None
        inner = [each for each in get_args(hint) if each is not type(None)]
        return _value(inner[0], value, where, path, left)
    if origin is tuple:
        if not isinstance(value, list):
            raise _fault("an array", value, where, path)
        item = get_args(hint)[0]
        if {*map(type, value)} <= {*_PLAIN.get(item, ())}:  # thousands, of the names of a grammar's rules
            return tuple(value)
        return tuple([_value(item, each, where, f"{path}/{i}", left) for i, each in enumerate(value)])
    if origin is Literal:
        if value not in get_args(hint):
            raise _fault(f"one of {', '.join(get_args(hint))}", value, where, path)
        return value
    if is_dataclass(hint):
        return _record(hint, value, where, path, left - 1)
    hint, bounds = get_args(hint) if origin is Annotated else (hint, None)
    return _scalar(hint, bounds, value, where, path)


def _scalar(hint: _Hint, bounds: tuple[float, float] | None, value: JsonValue, where: str, path: str) -> Any:
    if hint is bytes:
        return _octets(value, where, path)
    if hint in (str, bool):
        if type(value) is not hint:
            raise _fault("a text" if hint is str else "true or false", value, where, path)
        return value
    low, high = bounds or ((0, _MOST) if hint is int else (-math.inf, math.inf))
    kinds = (int,) if hint is int else (int, float)
    if type(value) not in kinds or not low <= value <= high or (hint is float and abs(value) > 1e300):
        what = "an integer" if hint is int else "a number"
        raise _fault(what if bounds is None and hint is float else f"{what} from {low} to {high}", value, where, path)
    return value if hint is int else float(value)


def _octets(value: JsonValue, where: str, path: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise _fault("hexadecimal digits", value, where, path) from None


def _fault(wanted: str, value: JsonValue, where: str, path: str) -> FormatError:
    shown = repr(value) if isinstance(value, int | float | str) else type(value).__name__
    return FormatError(f"expected {wanted}, got {shown[:80]}", where=f"{where}, {path or '/'}")
